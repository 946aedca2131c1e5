package rpicmd_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"selfsame.dev/selfsame/internal/canon"
	"selfsame.dev/selfsame/rpi"
	"selfsame.dev/selfsame/rpi/rpicmd"
	"selfsame.dev/selfsame/rpi/rpitest"
)

// generated is a stream of n documents, a third of them mutated.
func generated(n int) []byte {
	var in []byte
	for seed := range uint64(n) {
		g := rpitest.New(seed)
		o := g.Options()
		document := rpitest.Object("validations", rpi.ListOf(g.Rounds()...), "options",
			rpitest.Object("repair_rounds", rpi.Integer(o.RepairRounds), "cross_model", rpi.Boolean(o.CrossModel)))
		if seed%3 == 0 {
			document = g.Mutate(document)
		}
		in = append(document.AppendJSON(in), '\n')
	}
	return in
}

// 10,000 documents: no crash, one line out for each line in, the same bytes again, and a line
// is what the law says of its document alone.
func TestTenThousandDocuments(t *testing.T) {
	const n = 10000
	in := generated(n)
	judge := rpicmd.Repair(rpicmd.Overrides{})
	var first, second bytes.Buffer
	tally, err := rpicmd.Lines(bytes.NewReader(in), &first, judge)
	if err != nil || tally.Holds+tally.Stops+tally.Refused != n {
		t.Fatalf("%+v, %v", tally, err)
	}
	if tally.Holds < 500 || tally.Stops < 2000 || tally.Refused < 500 {
		t.Errorf("the documents say little: %+v", tally)
	}
	if _, err := rpicmd.Lines(iotest.HalfReader(bytes.NewReader(in)), &second, judge); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(first.Bytes(), second.Bytes()) {
		t.Error("a second run differs")
	}
	documents, results := bytes.Split(in, []byte("\n")), bytes.Split(first.Bytes(), []byte("\n"))
	if len(documents) != len(results) {
		t.Fatalf("%d lines for %d", len(results), len(documents))
	}
	for i := 0; i < n; i += 7 {
		if want := alone(t, documents[i]); string(results[i]) != want {
			t.Fatalf("line %d: got %s, alone %s", i, results[i], want)
		}
	}
}

// alone is the result line of one document, made without rpicmd.
func alone(t *testing.T, raw []byte) string {
	value, err := rpi.Decode(raw)
	if err != nil {
		t.Fatal(err)
	}
	document, err := rpi.ReadDocument(value)
	var outcome rpi.Outcome
	if err == nil {
		outcome, err = document.Run()
	}
	name, result := "ok", any(outcome)
	if err != nil {
		name, result = "error", err.Error()
	}
	line, err := canon.Marshal(map[string]any{name: result})
	if err != nil {
		t.Fatal(err)
	}
	return string(line)
}

func TestEveryLineIsAnswered(t *testing.T) {
	good := `{"validations":[{"status":"PASS","findings":[],"evidence_refs":["r"],"checked":["c"],"subject_digest":"` + rpitest.Subject(0) + `"}]}`
	in := good + "\n\n{}\r\nnot json\n\xff\n" + `{"a":1,"a":2}` + "\n" + good
	var out bytes.Buffer
	tally, err := rpicmd.Lines(strings.NewReader(in), &out, rpicmd.Repair(rpicmd.Overrides{}))
	if err != nil || tally != (rpicmd.Tally{Holds: 2, Refused: 5}) {
		t.Fatalf("%+v, %v", tally, err)
	}
	results := strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")
	for i, prefix := range []string{`{"ok":{`, `{"error":"`, `{"error":"/validations: `, `{"error":"`, `{"error":"`, `{"error":"/a: `, `{"ok":{`} {
		if i >= len(results) || !strings.HasPrefix(results[i], prefix) {
			t.Fatalf("line %d does not begin with %s:\n%s", i, prefix, out.String())
		}
		if err := canon.Check([]byte(results[i])); err != nil {
			t.Errorf("line %d: %v", i, err)
		}
	}
	out.Reset()
	if tally, err := rpicmd.Lines(strings.NewReader(""), &out, rpicmd.Guard); err != nil || tally != (rpicmd.Tally{}) || out.Len() > 0 {
		t.Errorf("an empty stream: %+v, %v, %q", tally, err, out.String())
	}
}

func TestBrokenStreams(t *testing.T) {
	broken := errors.New("broken")
	in := bytes.Repeat([]byte("{}\n"), 100000)
	if _, err := rpicmd.Lines(io.MultiReader(bytes.NewReader(in), iotest.ErrReader(broken)), io.Discard, rpicmd.Guard); !errors.Is(err, broken) {
		t.Errorf("reading: %v", err)
	}
	if _, err := rpicmd.Lines(bytes.NewReader(in), brokenWriter{broken}, rpicmd.Guard); !errors.Is(err, broken) {
		t.Errorf("writing: %v", err)
	}
}

type brokenWriter struct{ err error }

func (w brokenWriter) Write([]byte) (int, error) { return 0, w.err }

func TestOverridesWin(t *testing.T) {
	value, err := rpi.Decode([]byte(`{"validations":[{"status":"PASS","findings":[],"evidence_refs":["r"],"checked":["c"],"subject_digest":"` +
		rpitest.Subject(0) + `"}],"options":{"cross_model":false,"repair_rounds":5}}`))
	if err != nil {
		t.Fatal(err)
	}
	bound := 0
	for _, tc := range []struct {
		overrides rpicmd.Overrides
		holds     bool
	}{{rpicmd.Overrides{}, true}, {rpicmd.Overrides{CrossModel: true}, false}, {rpicmd.Overrides{RepairRounds: &bound}, true}} {
		if _, holds, err := rpicmd.Repair(tc.overrides)(value); err != nil || holds != tc.holds {
			t.Errorf("%+v: holds %v, %v", tc.overrides, holds, err)
		}
	}
	if o := (rpicmd.Overrides{RepairRounds: &bound}).Apply(rpi.Options{RepairRounds: 5}); o.RepairRounds != 0 {
		t.Errorf("a bound of zero does not win: %d", o.RepairRounds)
	}
}

func BenchmarkLines(b *testing.B) {
	in := generated(3000)
	b.SetBytes(int64(len(in)))
	for b.Loop() {
		if _, err := rpicmd.Lines(bytes.NewReader(in), io.Discard, rpicmd.Repair(rpicmd.Overrides{})); err != nil {
			b.Fatal(err)
		}
	}
}

func TestTableKeepsItsCells(t *testing.T) {
	value, err := rpi.Decode([]byte(fmt.Sprintf(`[{"status":"FAIL","findings":[{"id":"a\tb\u001b[31m\nX","class":"é"}],"evidence_refs":[],"subject_digest":%q}]`, rpitest.Subject(0))))
	if err != nil {
		t.Fatal(err)
	}
	document, err := rpi.ReadDocument(value)
	if err != nil {
		t.Fatal(err)
	}
	steps, outcome, err := document.Explain()
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := rpicmd.Table(&out, steps, outcome); err != nil {
		t.Fatal(err)
	}
	want := `ROUND  FINDING            CLASS  STATE  WHY
0                                FAIL   subject 000000010000
0      a\tb\x1b[31m\nX  é      open   first judgment

not_converged after 0 repair rounds: rounds are left; repair may go on
FAIL, 1 findings open
`
	if got := out.String(); strings.Join(strings.Fields(got), " ") != strings.Join(strings.Fields(want), " ") {
		t.Errorf("got\n%s", got)
	}
}

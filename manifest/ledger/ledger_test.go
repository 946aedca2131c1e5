package ledger

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"selfsame.dev/selfsame/internal/canon"
	"selfsame.dev/selfsame/schemas"
)

// build makes a ledger from words of label, host and identity ("leo a 1").
func build(tb testing.TB, words ...string) []byte {
	tb.Helper()
	var data []byte
	l := &Ledger{}
	for i, word := range words {
		f := strings.Fields(word)
		line, err := l.Next(Entry{Label: f[0], Host: f[1], Identity: canon.Sum([]byte("identity " + f[2])), Manifest: canon.Sum([]byte("manifest " + f[len(f)-1])),
			At: fmt.Sprintf("2026-01-02T03:%02d:%02dZ", i/60, i%60)})
		if err != nil {
			tb.Fatal(err)
		}
		data = append(data, line...)
		if l, err = Read("l", data); err != nil {
			tb.Fatal(err)
		}
	}
	return data
}

func lines(data []byte) [][]byte {
	return bytes.SplitAfter(bytes.TrimSuffix(data, []byte("\n")), []byte("\n"))
}

func join(parts ...[]byte) []byte {
	var out []byte
	for _, p := range parts {
		out = append(append(out, bytes.TrimSuffix(p, []byte("\n"))...), '\n')
	}
	return out
}

// Whatever is done to the inside of a ledger shows by the chain alone.
func TestHostile(t *testing.T) {
	data := build(t, "leo a 1", "leo b 1", "leo c 1", "leo a 1")
	l := lines(data)
	other := lines(build(t, "leo z 1", "leo b 1"))
	replace := func(old, new string) []byte { return bytes.Replace(data, []byte(old), []byte(new), 1) }
	for _, tc := range []struct {
		name   string
		data   []byte
		broken int    // line of a BrokenError
		input  string // or key of an InputError
	}{
		{"control", data, 0, ""},
		{"host changed", replace(`"host":"b"`, `"host":"d"`), 3, ""},
		{"time changed", replace(`03:00:01Z`, `03:00:09Z`), 3, ""},
		{"digest changed", replace(canon.Sum([]byte("identity 1")).String(), canon.Sum([]byte("identity 2")).String()), 2, ""},
		{"removed first", join(l[1:]...), 1, ""},
		{"removed middle", join(l[0], l[2], l[3]), 2, ""},
		{"removed two", join(l[0], l[3]), 2, ""},
		{"reordered", join(l[0], l[2], l[1], l[3]), 2, ""},
		{"duplicate", join(l[0], l[1], l[1], l[2], l[3]), 3, ""},
		{"duplicate last", join(l[0], l[1], l[2], l[3], l[3]), 5, ""},
		{"first of another", join(other[0], l[1], l[2]), 2, ""},
		{"torn", data[:len(data)-7], 0, "line 4"},
		{"no last newline", data[:len(data)-1], 0, "line 4"},
		{"empty line", join(l[0], nil, l[1]), 0, "line 2"},
		{"carriage return", bytes.Replace(data, []byte("\n"), []byte("\r\n"), 1), 0, "line 1"},
		{"white space", replace(`,"host"`, `, "host"`), 0, "line 1"},
		{"name twice", replace(`"host":"a"`, `"host":"a","host":"a"`), 0, "line 1/host"},
		{"unknown name", replace(`"host"`, `"hosu":1,"host"`), 0, "line 1"},
		{"other format", replace(`ledger.v1`, `ledger.v2`), 0, "line 1/format"},
		{"upper case digest", replace(`"prior_sha256":"0`, `"prior_sha256":"A`), 0, "line 1/prior_sha256"},
		{"no day", replace(`2026-01-02`, `2026-02-29`), 0, "line 1/at"},
		{"no hour", replace(`T03:00:00Z`, `T24:00:00Z`), 0, "line 1/at"},
		{"control character", replace(`"host":"a"`, `"host":"a\u001b"`), 0, "line 1/host"},
		{"binary", []byte("\x00\xff\n"), 0, "line 1"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if tc.name != "control" && bytes.Equal(tc.data, data) {
				t.Fatal("nothing was changed")
			}
			_, err := Read("l", tc.data)
			var broken *BrokenError
			var input *canon.InputError
			switch {
			case tc.broken > 0:
				if !errors.As(err, &broken) || broken.Line != tc.broken || broken.Hint() == "" {
					t.Errorf("%v, want a broken line %d", err, tc.broken)
				}
			case tc.input != "":
				if !errors.As(err, &input) || input.Key != tc.input || input.File != "l" || input.Fix == "" {
					t.Errorf("%v, want a refusal at %q", err, tc.input)
				}
			case err != nil:
				t.Error(err)
			}
		})
	}
}

// A place that is not the record's is refused even where the chain of digests holds.
func TestPlace(t *testing.T) {
	for place, holds := range map[int64]bool{0: true, 1: false} {
		e := Entry{Label: "leo", Host: "a", At: "2026-01-02T03:04:05Z"}
		line, err := canon.Marshal(Record{Format: Format, Sequence: place, Entry: e})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := Read("l", append(line, '\n')); (err == nil) != holds {
			t.Errorf("place %d: %v", place, err)
		}
	}
}

// No single changed bit but one of the last line passes the chain; those, and lines that were cut off, show against a head.
func TestHead(t *testing.T) {
	data := build(t, "leo a 1", "leo b 1", "leo c 1")
	whole, err := Read("l", data)
	if err != nil {
		t.Fatal(err)
	}
	last := bytes.LastIndexByte(data[:len(data)-1], '\n') + 1
	passed := 0
	for i := range data {
		for bit := range 8 {
			changed := slices.Clone(data)
			changed[i] ^= 1 << bit
			l, err := Read("l", changed)
			if err != nil {
				continue
			}
			passed++
			if i < last {
				t.Fatalf("bit %d of byte %d passes the chain", bit, i)
			}
			if l.Continues("l", whole.Head()) == nil {
				t.Fatalf("bit %d of byte %d passes the head", bit, i)
			}
		}
	}
	if passed == 0 {
		t.Error("control: no change of the last line passes the chain, so the head is not needed")
	}
	cut, err := Read("l", data[:last])
	if err != nil {
		t.Fatalf("control: whole lines cut off are not seen by the chain: %v", err)
	}
	if err := cut.Continues("l", whole.Head()); err == nil {
		t.Error("a ledger without its last line continues")
	}
	if err := whole.Continues("l", cut.Head()); err != nil {
		t.Errorf("control: a ledger that grew: %v", err)
	}
	anew, err := Read("l", build(t, "leo a 2", "leo b 1", "leo c 1"))
	if err != nil || anew.Continues("l", cut.Head()) == nil {
		t.Errorf("a ledger written anew continues: %v", err)
	}
	if whole.Continues("l", canon.Digest{}) == nil {
		t.Error("the zero digest is a head")
	}
}

func TestAgreement(t *testing.T) {
	for _, tc := range []struct {
		name     string
		records  []string
		required int
		holds    bool
		labels   string // label: agree machines since-sequence since-host | hosts by finding
	}{
		{"nothing", nil, 1, false, ""},
		{"alone", []string{"leo a 1"}, 1, true, "leo: true 1 0 a | a"},
		{"alone is too few", []string{"leo a 1", "leo a 1"}, 2, false, "leo: true 1 0 a | a"},
		{"two agree from the second on", []string{"leo a 1", "leo b 1", "leo a 1"}, 2, true, "leo: true 2 1 b | a b"},
		{"the third differs", []string{"leo a 1", "leo b 1", "leo c 2", "leo d 2"}, 1, false, "leo: false 4 2 c | a b | c d"},
		{"only the manifest differs", []string{"leo a 1 1", "leo b 1 2"}, 1, false, "leo: false 2 1 b | a | b"},
		{"healed", []string{"leo a 1", "leo b 2", "leo b 1"}, 1, true, "leo: true 2 2 b | a b"},
		{"moved together", []string{"leo a 1", "leo b 1", "leo a 2", "leo b 2"}, 1, true, "leo: true 2 3 b | a b"},
		{"the present break counts", []string{"leo a 1", "leo b 2", "leo b 1", "leo c 1", "leo a 3", "leo c 3"}, 1, false, "leo: false 3 4 a | b | a c"},
		{"swapped", []string{"leo a 1", "leo b 2", "leo a 2", "leo b 1"}, 1, false, "leo: false 2 3 b | b | a"},
		{"labels apart", []string{"leo a 1", "ada a 2", "leo b 1", "ada b 3"}, 1, false, "leo: true 2 2 b | a b; ada: false 2 3 b | a | b"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			l, err := Read("l", build(t, tc.records...))
			if err != nil {
				t.Fatal(err)
			}
			got := l.Agreement(tc.required)
			var all []string
			for _, label := range got.Labels {
				text := fmt.Sprintf("%s: %v %d %d %s", label.Label, label.Agree, label.Machines, label.Since.Sequence, label.Since.Host)
				for _, f := range label.Findings {
					text += " |"
					for _, h := range f.Hosts {
						text += " " + h.Host
					}
				}
				all = append(all, text)
			}
			if got.Holds != tc.holds || strings.Join(all, "; ") != tc.labels || got.Head != l.Head() {
				t.Errorf("holds %v, %s\nwant %v, %s", got.Holds, strings.Join(all, "; "), tc.holds, tc.labels)
			}
			data, err := canon.Marshal(got)
			if err != nil {
				t.Fatal(err)
			}
			if err := schemas.DecodeCanonical("x", AgreementFormat, data, new(Agreement)); err != nil {
				t.Error(err)
			}
		})
	}
	l, err := Read("l", build(t, "leo a 1", "leo b 2", "leo b 1", "leo b 1"))
	if err != nil {
		t.Fatal(err)
	}
	b := l.Agreement(1).Labels[0].Findings[0].Hosts[1]
	if b.Since.Sequence != 2 || b.Latest.Sequence != 3 {
		t.Errorf("%+v: a machine's run begins with the record after its break", b)
	}
}

// A bad entry gives no line.
func TestNextRefuses(t *testing.T) {
	good := Entry{Label: "leo@v1", Host: "ci-a", Identity: canon.Sum(nil), Manifest: canon.Sum(nil), At: "2024-02-29T00:00:00Z"}
	if _, err := new(Ledger).Next(good); err != nil {
		t.Fatalf("control: %v", err)
	}
	for name, edit := range map[string]func(*Entry){
		"host empty": func(e *Entry) { e.Host = "" }, "host with newline": func(e *Entry) { e.Host = "a\nb" },
		"label with space": func(e *Entry) { e.Label = "a b" }, "not UTF-8": func(e *Entry) { e.Label = "\xff" },
		"no leap year": func(e *Entry) { e.At = "2026-02-29T00:00:00Z" }, "local time": func(e *Entry) { e.At = "2026-01-01T00:00:00+01:00" },
	} {
		e := good
		edit(&e)
		if line, err := new(Ledger).Next(e); err == nil {
			t.Errorf("%s: %s", name, line)
		}
	}
}

var update = flag.Bool("update", false, "write the golden files anew")

// The formats over time: a record and an agreement are these bytes.
func TestGolden(t *testing.T) {
	data := build(t, "leo@1 ci-a 1", "leo@1 ci-b 1", "leo@1 ci-c 2")
	l, err := Read("l", data)
	if err != nil {
		t.Fatal(err)
	}
	agreement, err := canon.Marshal(l.Agreement(2))
	if err != nil {
		t.Fatal(err)
	}
	for name, have := range map[string][]byte{"record.json": bytes.TrimSuffix(lines(data)[1], []byte("\n")), "agreement.json": agreement} {
		file := "../../fixtures/ledger/" + name
		if *update {
			if err := os.WriteFile(file, have, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if want, err := os.ReadFile(file); err != nil || !bytes.Equal(want, have) {
			t.Errorf("%s differs (%v); if that is meant: go test ./manifest/ledger -run TestGolden -update\n%s", name, err, have)
		}
	}
}

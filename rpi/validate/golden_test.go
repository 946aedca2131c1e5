package validate_test

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"testing"

	"selfsame.dev/selfsame/internal/canon"
	"selfsame.dev/selfsame/rpi"
	"selfsame.dev/selfsame/rpi/validate"
)

var update = flag.Bool("update", false, "write the golden judgment anew")

// golden is one synthetic document of every format that a repair leaves, and a whole chain.
const golden = "../../fixtures/judgment"

// goldenFiles makes them all, by name.
func goldenFiles(t *testing.T) map[string][]byte {
	t.Helper()
	files := map[string][]byte{}
	dir := converged(t)
	for _, file := range chainFiles(t, dir) {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		name, err := filepath.Rel(dir, file)
		if err != nil {
			t.Fatal(err)
		}
		files[filepath.Join("chain", name)] = data
	}
	put := func(name string, value any) {
		raw, err := canon.Marshal(value)
		if err != nil {
			t.Fatal(err)
		}
		files[name] = raw
	}
	replayed, err := validate.Replay(dir, "", "")
	if err != nil {
		t.Fatal(err)
	}
	put("rounds.json", rpi.ObjectOf(
		rpi.Member{Name: "validations", Value: rpi.ListOf(replayed.Rounds...)},
		rpi.Member{Name: "options", Value: rpi.ObjectOf(rpi.Member{Name: "repair_rounds", Value: rpi.Integer(3)})}))
	put("outcome.json", replayed.Outcome)
	put("report.json", replayed.Outcome.Report)
	facts, draft := passing(t, "three")
	draft.Bound = []validate.Binding{resolves(t, "fix-leak", "three", "leak")}
	put("subject.json", facts.Subject)
	put("check.json", facts.Receipts["unit"].Check)
	put("receipt.json", facts.Receipts["unit"])
	put("draft.json", draft)
	j := failing(t, "one", map[string]string{"slow": "timeout", "leak": ""})
	put("verdict-fail.json", j.Verdict)
	put("bindings-fail.json", j.Bindings)
	j = judge(t, facts, draft, draft.Bound)
	put("verdict-pass.json", j.Verdict)
	put("bindings-pass.json", j.Bindings)
	return files
}

// The same work leaves the same bytes, signatures included, and the committed chain replays.
func TestGolden(t *testing.T) {
	want := goldenFiles(t)
	if *update {
		if err := os.RemoveAll(golden); err != nil {
			t.Fatal(err)
		}
		for name, data := range want {
			write(t, golden, name, string(data))
		}
	}
	for name, data := range want {
		have, err := os.ReadFile(filepath.Join(golden, name))
		if err != nil || !bytes.Equal(have, data) {
			t.Errorf("%s differs (%v); run: go test ./rpi/validate -run TestGolden -update", name, err)
		}
	}
	replayed, err := validate.Replay(filepath.Join(golden, "chain"), validate.PublicKey(keyOf(1)), "")
	if err != nil || replayed.Outcome.StopReason != rpi.Converged {
		t.Errorf("the committed chain: %v", err)
	}
	want["outcome.json"] = append(want["outcome.json"], ' ')
	if have, err := os.ReadFile(filepath.Join(golden, "outcome.json")); err != nil || bytes.Equal(have, want["outcome.json"]) {
		t.Error("control: a changed file goes unnoticed")
	}
}

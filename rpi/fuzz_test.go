package rpi_test

import (
	"bytes"
	"path/filepath"
	"testing"

	"selfsame.dev/selfsame/rpi"
	"selfsame.dev/selfsame/rpi/rpicmd"
	"selfsame.dev/selfsame/rpi/rpitest"
)

func FuzzDecode(f *testing.F) {
	for _, doc := range documents {
		f.Add([]byte(doc))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		if differs := agrees(raw); differs != "" {
			t.Fatalf("%q: %s", raw, differs)
		}
	})
}

// FuzzLaw runs any document of rounds: no crash, the input stays, PASS means converged, and
// the document says the same again from its canonical form.
func FuzzLaw(f *testing.F) {
	f.Add([]byte(document(1)))
	for seed := range uint64(40) {
		g := rpitest.New(seed)
		f.Add(g.Mutate(rpi.ListOf(g.Rounds()...)).AppendJSON(nil))
	}
	repair := rpicmd.Repair(rpicmd.Overrides{})
	f.Fuzz(func(t *testing.T, raw []byte) {
		value, err := rpi.Decode(raw)
		if err != nil {
			return
		}
		before := value.AppendJSON(nil)
		outcome, holds, err := repair(value)
		if !bytes.Equal(value.AppendJSON(nil), before) {
			t.Fatalf("%q: input changed", raw)
		}
		again, err2 := rpi.Decode(before)
		if err2 != nil {
			t.Fatalf("%q: canonical form is refused: %v", raw, err2)
		}
		second, _, err2 := repair(again)
		if (err == nil) != (err2 == nil) || outcome.String() != second.String() {
			t.Fatalf("%q: %s %v, then %s %v", raw, outcome, err, second, err2)
		}
		if err != nil {
			return
		}
		report, _ := outcome.Get("report")
		if pass := text(report, "status") == "PASS"; pass != holds || holds != (text(outcome, "stop_reason") == "converged") {
			t.Fatalf("%q: %s", raw, outcome)
		}
		if report.Len() != len(reportKeys) || outcome.Len() != 4 {
			t.Fatalf("%q: %s", raw, outcome)
		}
	})
}

// The corpora that earlier runs found are committed and run with every test.
func TestCorpora(t *testing.T) {
	for _, target := range []string{"FuzzDecode", "FuzzLaw"} {
		files, err := filepath.Glob(filepath.Join("testdata/fuzz", target, "*"))
		if err != nil || len(files) < 5 {
			t.Errorf("%s: %d files, %v", target, len(files), err)
		}
	}
}

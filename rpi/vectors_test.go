package rpi_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"selfsame.dev/selfsame/internal/canon"
	"selfsame.dev/selfsame/rpi"
	"selfsame.dev/selfsame/rpi/rpicmd"
	"selfsame.dev/selfsame/schemas"
)

// vectors is the folder of scenarios, one rpi-vector.v1 a file.
const vectors = "../fixtures/rpi"

type vector struct {
	name, kind     string
	input          rpi.Value
	outcome        rpi.Value
	refused        rpi.Rule
	expectsOutcome bool
}

func readVectors(t *testing.T) []vector {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(vectors, "*.json"))
	if err != nil || len(files) < 100 {
		t.Fatalf("%d vectors in %s, %v", len(files), vectors, err)
	}
	var all []vector
	for _, file := range files {
		raw, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if exact, err := canon.Canonicalize(raw); err != nil || !bytes.Equal(exact, raw) {
			t.Fatalf("%s is not canonical: %v", file, err)
		}
		if err := schemas.Validate(file, "rpi-vector.v1", raw); err != nil {
			t.Fatal(err)
		}
		doc, err := rpi.Decode(raw)
		if err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		v := vector{name: filepath.Base(file), kind: text(doc, "kind")}
		v.input, _ = doc.Get("input")
		expect, _ := doc.Get("expect")
		v.outcome, v.expectsOutcome = expect.Get("outcome")
		v.refused = rpi.Rule(text(expect, "refused"))
		all = append(all, v)
	}
	return all
}

func text(v rpi.Value, name string) string {
	member, _ := v.Get(name)
	s, _ := member.Text()
	return s
}

var judges = map[string]rpicmd.Judge{
	"repair": rpicmd.Repair(rpicmd.Overrides{}),
	"once":   rpicmd.Once,
	"guard":  rpicmd.Guard,
}

// check says how the program differs from the vector, or nil.
func (v vector) check() error {
	judge := judges[v.kind]
	if judge == nil {
		return fmt.Errorf("kind %q is unknown", v.kind)
	}
	got, _, err := judge(v.input)
	if v.expectsOutcome {
		if err != nil {
			return fmt.Errorf("refused: %w", err)
		}
		if got.String() != v.outcome.String() {
			return fmt.Errorf("got  %s\nwant %s", got, v.outcome)
		}
		return nil
	}
	var refusal *rpi.Refusal
	var input *canon.InputError
	switch {
	case err == nil:
		return fmt.Errorf("got %s, want a refusal by %s", got, v.refused)
	case !errors.As(err, &refusal) || !errors.As(err, &input):
		return fmt.Errorf("the error is no refusal: %w", err)
	case refusal.Rule != v.refused:
		return fmt.Errorf("refused by %s (%w), want %s", refusal.Rule, err, v.refused)
	case input.Fix == "":
		return fmt.Errorf("%w: no fix", err)
	}
	return nil
}

func TestVectors(t *testing.T) {
	seen := map[string]bool{}
	for _, v := range readVectors(t) {
		t.Run(v.name, func(t *testing.T) {
			if err := v.check(); err != nil {
				t.Error(err)
			}
		})
		seen[string(v.refused)] = true
		seen[text(v.outcome, "stop_reason")] = true
		seen[v.kind] = true
	}
	for _, reason := range rpi.StopReasons() {
		if !seen[string(reason)] {
			t.Errorf("no vector stops with %s", reason)
		}
	}
	for rule := range rpi.Rules() {
		if !seen[string(rule)] {
			t.Errorf("no vector is refused by %s", rule)
		}
	}
}

// The check itself must see a wrong reason, a missing refusal and a wrong rule.
func TestVectorsControl(t *testing.T) {
	all := readVectors(t)
	byName := func(name string) vector {
		i := slices.IndexFunc(all, func(v vector) bool { return v.name == name })
		if i < 0 {
			t.Fatalf("no vector %s", name)
		}
		return all[i]
	}
	wrong := byName("reopened.json")
	wrong.outcome = wrong.outcome.With(rpi.ObjectOf(rpi.Member{Name: "stop_reason", Value: rpi.String("converged")}))
	swallowed := byName("first-round-pass.json")
	swallowed.expectsOutcome, swallowed.refused = false, rpi.LegShape
	other := byName("finding-twice.json")
	other.refused = rpi.LegShape
	for _, v := range []vector{wrong, swallowed, other} {
		if v.check() == nil {
			t.Errorf("%s: a wrong expectation passes", v.name)
		}
	}
}

// A refusal names round, leg, finding and rule, and points into the document.
func TestRefusalNamesPlace(t *testing.T) {
	value, err := rpi.Decode([]byte(`{"validations":[[
		{"status":"FAIL","findings":[{"id":"slow","class":"a"}],"evidence_refs":[],"subject_digest":"` + digestA + `"},
		{"status":"FAIL","findings":[{"id":"other"},{"id":"slow","class":"b"}],"evidence_refs":[],"subject_digest":"` + digestA + `"}]]}`))
	if err != nil {
		t.Fatal(err)
	}
	_, _, err = rpicmd.Repair(rpicmd.Overrides{})(value)
	want := `/validations/0/1/findings/1: round 0, leg 1, finding "slow": legs may not give one finding two classes (finding-class-conflict)`
	if err == nil || err.Error() != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
}

const digestA = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"

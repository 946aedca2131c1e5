package rpi_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"selfsame.dev/selfsame/rpi"
	"selfsame.dev/selfsame/rpi/rpitest"
)

// recorder answers as told and remembers who was asked, with what.
type recorder struct {
	calls   []string
	answers map[string]rpi.Value
	fails   string
}

var errPhase = errors.New("the phase broke")

func (r *recorder) call(name string, with ...rpi.Value) (rpi.Value, error) {
	for _, v := range with {
		name += " " + v.String()
	}
	r.calls = append(r.calls, name)
	short, _, _ := strings.Cut(name, " ")
	if r.fails == short {
		return rpi.Value{}, errPhase
	}
	return r.answers[short], nil
}

func (r *recorder) Guard(intent rpi.Value) (rpi.Value, error)   { return r.call("guard", intent) }
func (r *recorder) Plan(intent rpi.Value) (rpi.Value, error)    { return r.call("plan", intent) }
func (r *recorder) Implement(plan rpi.Value) (rpi.Value, error) { return r.call("implement", plan) }
func (r *recorder) Validate(plan, subject rpi.Value) (rpi.Value, error) {
	return r.call("validate", plan, subject)
}

func newRecorder() *recorder {
	return &recorder{answers: map[string]rpi.Value{
		"guard": rpitest.Object("decision", "CONTINUE", "reason", "It needs proof.", "frozen_outcome", "o",
			"parked_process_work", rpi.ListOf(), "remaining_proof", rpi.ListOf(), "stop_condition", "s"),
		"plan":      rpitest.Object("acceptance_digest", digestA),
		"implement": rpitest.Object("subject_manifest_digest", rpitest.Subject(1)),
		"validate": rpitest.Object("verdict", "PASS", "acceptance_digest", digestA, "subject_manifest_digest", rpitest.Subject(1),
			"author_context_id", "a", "validator_context_id", "b",
			"freshness_attestation", rpitest.Object("source", "caller", "attester_identity", "c")),
	}}
}

func TestEachPhaseOnceInOrder(t *testing.T) {
	plan, built := `{"acceptance_digest":"`+digestA+`"}`, `{"subject_manifest_digest":"`+rpitest.Subject(1)+`"}`
	all := []string{`guard "do it"`, `plan "do it"`, "implement " + plan, "validate " + plan + " " + built}
	stop := rpitest.Object("decision", "STOP")
	for _, tc := range []struct {
		name   string
		change func(*recorder)
		calls  int
		status rpi.Status
	}{
		{"all", func(*recorder) {}, 4, rpi.Pass},
		{"stop", func(r *recorder) { r.answers["guard"] = r.answers["guard"].With(stop) }, 1, rpi.NotPlanned},
		{"no plan", func(r *recorder) { r.answers["plan"] = rpi.Value{} }, 2, rpi.NotPlanned},
		{"no subject", func(r *recorder) { r.answers["implement"] = rpi.Value{} }, 3, rpi.NotBuilt},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r := newRecorder()
			tc.change(r)
			report, err := rpi.InvokeOnce(rpi.String("do it"), r)
			if err != nil || report.Status != tc.status {
				t.Errorf("%v, %v", report.Status, err)
			}
			if !slices.Equal(r.calls, all[:tc.calls]) {
				t.Errorf("calls %q, want %q", r.calls, all[:tc.calls])
			}
		})
	}
}

func TestFailedPhaseEndsTheTraversal(t *testing.T) {
	for i, name := range []string{"guard", "plan", "implement", "validate"} {
		r := newRecorder()
		r.fails = name
		_, err := rpi.InvokeOnce(rpi.Value{}, r)
		if !errors.Is(err, errPhase) || !strings.HasPrefix(err.Error(), name+": ") || len(r.calls) != i+1 {
			t.Errorf("%s: %v after %d calls", name, err, len(r.calls))
		}
	}
}

package rpi

import "strings"

// Guard is an admission decision: go on, or stop before a plan is made.
type Guard struct {
	Continue bool
	// Reason is exactly one sentence.
	Reason string
	Fields Value
}

var guardFields = [...]string{
	"decision", "reason", "frozen_outcome", "parked_process_work", "remaining_proof", "stop_condition",
}

// ReadGuard checks the answer of a guard: exactly six members, one sentence of reason.
func ReadGuard(value Value) (Guard, error) {
	if value.kind != Object {
		return Guard{}, refuse(GuardShape, "")
	}
	var fields [len(guardFields)]*Value
	for i, name := range guardFields {
		fields[i] = value.member(name)
		if fields[i] == nil {
			return Guard{}, refuse(GuardFields, "/"+name)
		}
	}
	if len(value.kids) != len(guardFields) {
		return Guard{}, refuse(GuardFields, "")
	}
	decision, reason, outcome, parked, proof, stop := fields[0], fields[1], fields[2], fields[3], fields[4], fields[5]
	switch {
	case decision.kind != Text || (decision.text != "CONTINUE" && decision.text != "STOP"):
		return Guard{}, refuse(GuardDecision, "/decision")
	case reason.kind != Text || !oneSentence(reason.text):
		return Guard{}, refuse(GuardReason, "/reason")
	case outcome.kind != Text || blank(outcome.text):
		return Guard{}, refuse(GuardOutcome, "/frozen_outcome")
	case !parked.nonemptyStrings():
		return Guard{}, refuse(GuardParked, "/parked_process_work")
	case !proof.nonemptyStrings():
		return Guard{}, refuse(GuardProof, "/remaining_proof")
	case stop.kind != Text || blank(stop.text):
		return Guard{}, refuse(GuardStop, "/stop_condition")
	}
	return Guard{Continue: decision.text == "CONTINUE", Reason: reason.text, Fields: value}, nil
}

// oneSentence: one line that holds one end mark, as its last character.
func oneSentence(s string) bool {
	return !blank(s) && !strings.Contains(s, "\n") && strings.IndexAny(s, ".!?") == len(s)-1
}

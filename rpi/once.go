package rpi

import (
	"fmt"
)

// Phases are the caller's guard and its three phases. A null answer of Plan or Implement
// says that nothing was planned or built. Errors of a phase end the traversal as they are.
type Phases interface {
	Guard(intent Value) (Value, error)
	Plan(intent Value) (Value, error)
	Implement(plan Value) (Value, error)
	Validate(plan, subject Value) (Value, error)
}

// InvokeOnce asks the guard once, then dispatches each phase at most once, and reports.
// The digests that plan and implement declare must be those that validate derived itself;
// the judge must be another context than the author's. It never retries and chooses no next action.
func InvokeOnce(intent Value, phases Phases) (Report, error) {
	answer, err := phases.Guard(intent)
	if err != nil {
		return Report{}, fmt.Errorf("guard: %w", err)
	}
	guard, err := ReadGuard(answer)
	if err != nil {
		return Report{}, err
	}
	if !guard.Continue {
		return Report{
			Status:     NotPlanned,
			Checked:    []Value{String("anti-ceremony guard: STOP — " + guard.Reason)},
			NotChecked: []Value{String("plan"), String("implement"), String("validate")},
		}, nil
	}

	answer, err = phases.Plan(intent)
	if err != nil {
		return Report{}, fmt.Errorf("plan: %w", err)
	}
	if answer.IsNull() {
		return Report{Status: NotPlanned, NotChecked: []Value{String("implement"), String("validate")}}, nil
	}
	plan, ok := answer.mapping()
	if !ok {
		return Report{}, refuse(PlanShape, "")
	}
	intentRef := "caller"
	if ref := plan.member("intent_ref"); ref != nil && ref.kind == Text && ref.text != "" {
		intentRef = ref.text
	}
	acceptance, ok := plan.member("acceptance_digest").digest()
	if !ok {
		return Report{}, refuse(PlanDigest, "/acceptance_digest")
	}

	answer, err = phases.Implement(plan)
	if err != nil {
		return Report{}, fmt.Errorf("implement: %w", err)
	}
	if answer.IsNull() {
		return Report{
			Status:           NotBuilt,
			IntentRef:        String(intentRef),
			AcceptanceDigest: String(acceptance),
			Checked:          []Value{String("plan")},
			NotChecked:       []Value{String("validate")},
		}, nil
	}
	subject, ok := answer.mapping()
	if !ok {
		return Report{}, refuse(SubjectShape, "")
	}

	answer, err = phases.Validate(plan, subject)
	if err != nil {
		return Report{}, fmt.Errorf("validate: %w", err)
	}
	validation, ok := answer.mapping()
	if !ok {
		return Report{}, refuse(ValidationShape, "")
	}
	report, refusal := judged(acceptance, subject, validation)
	if refusal != nil {
		return Report{}, refusal
	}
	report.IntentRef = String(intentRef)
	return report, nil
}

// judged holds what validate answered against what plan and implement declared.
func judged(acceptance string, subject, validation Value) (Report, *Refusal) {
	verdict := validation.member("verdict")
	if verdict == nil || verdict.kind != Text {
		return Report{}, refuse(Verdict, "/verdict")
	}
	status, ok := ParseJudgment(verdict.text)
	if !ok {
		return Report{}, refuse(Verdict, "/verdict")
	}
	if again := validation.member("acceptance_digest"); again == nil || again.kind != Text || again.text != acceptance {
		return Report{}, refuse(IntentMismatch, "/acceptance_digest")
	}
	digest, ok := validation.member("subject_manifest_digest").digest()
	if !ok {
		return Report{}, refuse(SubjectDigest, "/subject_manifest_digest")
	}
	if built := subject.member("subject_manifest_digest"); built != nil && !built.IsNull() &&
		(built.kind != Text || built.text != digest) {
		return Report{}, refuse(SubjectMismatch, "/subject_manifest_digest")
	}
	author, validator := nonempty(validation.member("author_context_id")), nonempty(validation.member("validator_context_id"))
	if author == "" || validator == "" || author == validator {
		return Report{}, refuse(Freshness, "/validator_context_id")
	}
	freshness := validation.member("freshness_attestation")
	if freshness == nil || freshness.kind != Object {
		return Report{}, refuse(Freshness, "/freshness_attestation")
	}
	if source := nonempty(freshness.member("source")); source != "runtime" && source != "caller" {
		return Report{}, refuse(Freshness, "/freshness_attestation/source")
	}
	if nonempty(freshness.member("attester_identity")) == "" {
		return Report{}, refuse(Freshness, "/freshness_attestation/attester_identity")
	}
	ref, _ := validation.Get("verdict_ref")
	verdictDigest, _ := validation.Get("verdict_digest")
	if ref.IsNull() != verdictDigest.IsNull() {
		return Report{}, refuse(VerdictPair, "/verdict_ref")
	}
	if !ref.IsNull() {
		if nonempty(&ref) == "" {
			return Report{}, refuse(VerdictIdentity, "/verdict_ref")
		}
		if _, ok := verdictDigest.digest(); !ok {
			return Report{}, refuse(VerdictIdentity, "/verdict_digest")
		}
	}
	checked, ok := spread(validation.member("checked"))
	if !ok {
		return Report{}, refuse(ReportList, "/checked")
	}
	notChecked, ok := spread(validation.member("not_checked"))
	if !ok {
		return Report{}, refuse(ReportList, "/not_checked")
	}
	return Report{
		Status:           status,
		AcceptanceDigest: String(acceptance),
		SubjectDigest:    String(digest),
		VerdictRef:       ref,
		VerdictDigest:    verdictDigest,
		Checked:          checked,
		NotChecked:       notChecked,
	}, nil
}

// nonempty returns the string that v is, or "".
func nonempty(v *Value) string {
	if v == nil || v.kind != Text {
		return ""
	}
	return v.text
}

// spread is the reference's list(v or []).
func spread(v *Value) ([]Value, bool) {
	if v == nil || !v.truthy() {
		return nil, true
	}
	return v.sequence()
}

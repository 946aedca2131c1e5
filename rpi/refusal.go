package rpi

import (
	"fmt"
	"strings"

	"selfsame.dev/selfsame/internal/canon"
)

// Rule names what refused input broke; it is the failure class of the vectors.
type Rule string

// Rules of rounds and of the repair phase.
const (
	RoundShape          Rule = "round-shape"
	RoundEmpty          Rule = "round-empty"
	LegShape            Rule = "leg-shape"
	LegStatus           Rule = "leg-status"
	FindingsMissing     Rule = "findings-missing"
	FindingsShape       Rule = "findings-shape"
	FindingShape        Rule = "finding-shape"
	FindingID           Rule = "finding-id"
	FindingTwice        Rule = "finding-twice"
	FindingClass        Rule = "finding-class"
	FindingConflict     Rule = "finding-class-conflict"
	PassWithFindings    Rule = "pass-with-findings"
	FailWithoutFindings Rule = "fail-without-findings"
	EvidenceMissing     Rule = "evidence-missing"
	EvidenceShape       Rule = "evidence-shape"
	EvidenceEntry       Rule = "evidence-entry"
	EvidenceRef         Rule = "evidence-ref"
	EvidenceIDs         Rule = "evidence-ids"
	EvidenceDigest      Rule = "evidence-digest"
	EvidenceConflict    Rule = "evidence-conflict"
	EvidenceNull        Rule = "evidence-null"
	LegDigest           Rule = "leg-digest"
	LegDisagreement     Rule = "leg-disagreement"
	CheckedShape        Rule = "checked-shape"
	NoRounds            Rule = "no-rounds"
	RepairRounds        Rule = "repair-rounds"
	OptionsShape        Rule = "options-shape"
	DocumentShape       Rule = "document-shape"
)

// Rules of one traversal.
const (
	GuardShape      Rule = "guard-shape"
	GuardFields     Rule = "guard-fields"
	GuardDecision   Rule = "guard-decision"
	GuardReason     Rule = "guard-reason"
	GuardOutcome    Rule = "guard-outcome"
	GuardParked     Rule = "guard-parked"
	GuardProof      Rule = "guard-proof"
	GuardStop       Rule = "guard-stop"
	PlanShape       Rule = "plan-shape"
	PlanDigest      Rule = "plan-digest"
	SubjectShape    Rule = "subject-shape"
	ValidationShape Rule = "validation-shape"
	Verdict         Rule = "verdict"
	IntentMismatch  Rule = "intent-mismatch"
	SubjectDigest   Rule = "subject-digest"
	SubjectMismatch Rule = "subject-mismatch"
	Freshness       Rule = "freshness"
	VerdictPair     Rule = "verdict-pair"
	VerdictIdentity Rule = "verdict-identity"
	ReportList      Rule = "report-list"
)

var ruleTexts = map[Rule]struct{ problem, fix string }{
	RoundShape:          {"a round is one validate result or a list of them", "give an object, or a list of objects"},
	RoundEmpty:          {"a round needs at least one validate result", "remove the empty round, or record the legs that judged it"},
	LegShape:            {"a validate result is an object", "give the leg as an object"},
	LegStatus:           {"a leg reports PASS, FAIL or NOT_PROVEN under status, or else under verdict", "record the judgment of this leg"},
	FindingsMissing:     {"a leg carries a findings list", "write \"findings\": [] where nothing is open"},
	FindingsShape:       {"findings is a list", "give a list of objects"},
	FindingShape:        {"a finding is an object", "give an object with an id"},
	FindingID:           {"a finding has an id that is not blank", "give it the stable id it keeps in every round"},
	FindingTwice:        {"a finding appears once in a leg", "merge the two entries"},
	FindingClass:        {"a class, where present, is a string that is not blank", "name the class or leave the member out"},
	FindingConflict:     {"legs may not give one finding two classes", "let the legs agree on one class"},
	PassWithFindings:    {"a PASS leg has no open finding", "close the findings, or report NOT_PROVEN or FAIL"},
	FailWithoutFindings: {"a FAIL leg names at least one finding", "name what fails"},
	EvidenceMissing:     {"a leg carries an evidence_refs list", "write \"evidence_refs\": [] where there is none"},
	EvidenceShape:       {"evidence_refs is a list", "give a list of labels and bindings"},
	EvidenceEntry:       {"evidence is a label or a binding object", "give a string or an object with a ref"},
	EvidenceRef:         {"a binding has a ref that is not blank", "name the receipt it binds"},
	EvidenceIDs:         {"resolves, preexisting and introduced are lists of finding ids", "give a list of strings that are not blank"},
	EvidenceDigest:      {"the subject_digest of a binding is 64 lowercase hexadecimal digits", "bind the exact subject or leave the member out"},
	EvidenceConflict:    {"one ref has one binding", "give the second receipt a ref of its own, or make the bindings equal"},
	EvidenceNull:        {"a binding to the judged subject has a list where the law reads one, not null", "give a list or leave the member out"},
	LegDigest:           {"a leg carries the digest of its subject, 64 lowercase hexadecimal digits", "record subject_digest or subject_manifest_digest"},
	LegDisagreement:     {"all legs of a round judge one subject", "judge the same subject in every leg"},
	CheckedShape:        {"checked and not_checked are lists of strings that are not blank", "give a list of strings"},
	NoRounds:            {"the repair phase needs at least one validation round", "record the first validation"},
	RepairRounds:        {"repair_rounds is an integer, zero or more", "declare the bound as a whole number"},
	OptionsShape:        {"options has only the members of the law", "see selfsame rpi repair --help"},
	DocumentShape:       {"the document is a list of rounds or {\"validations\": [...], \"options\": {...}}", "give one of the two"},
	GuardShape:          {"the guard answers with an object", "give a guard decision"},
	GuardFields:         {"the guard answers with exactly decision, reason, frozen_outcome, parked_process_work, remaining_proof and stop_condition", "give these six members and no other"},
	GuardDecision:       {"decision is CONTINUE or STOP", "decide one of the two"},
	GuardReason:         {"reason is exactly one sentence", "write one line with one full stop, exclamation mark or question mark, at its end"},
	GuardOutcome:        {"frozen_outcome is a string that is not blank", "name the outcome"},
	GuardParked:         {"parked_process_work is a list of strings that are not blank", "give a list, empty if none"},
	GuardProof:          {"remaining_proof is a list of strings that are not blank", "give a list, empty if none"},
	GuardStop:           {"stop_condition is a string that is not blank", "name the condition"},
	PlanShape:           {"plan answers with an object or null", "give the resolved intent"},
	PlanDigest:          {"plan declares acceptance_digest, the SHA-256 of the exact intent bytes it stored", "take it from selfsame rpi intent"},
	SubjectShape:        {"implement answers with an object or null", "give the subject"},
	ValidationShape:     {"validate answers with an object", "give the judgment"},
	Verdict:             {"validate returns PASS, FAIL or NOT_PROVEN as verdict", "record the judgment"},
	IntentMismatch:      {"validate judged another intent than the plan resolved", "judge the stored intent bytes"},
	SubjectDigest:       {"validate returns the exact subject_manifest_digest", "derive it from the judged subject"},
	SubjectMismatch:     {"validate judged another subject than implement built", "judge the implemented subject"},
	Freshness:           {"validate returns distinct author and validator contexts and a freshness attestation of runtime or caller", "let a context other than the author's judge, attested by name"},
	VerdictPair:         {"verdict_ref and verdict_digest come together", "return both, or neither"},
	VerdictIdentity:     {"verdict_ref is a nonempty string and verdict_digest a SHA-256", "return the identity of the stored verdict"},
	ReportList:          {"checked and not_checked of a judgment are lists", "give a list of strings"},
}

// Rules lists every rule with what it demands, for documentation and tests.
func Rules() map[Rule]string {
	texts := make(map[Rule]string, len(ruleTexts))
	for rule, text := range ruleTexts {
		texts[rule] = text.problem
	}
	return texts
}

// Refusal says which rule refused input broke, and where. It unwraps to a
// [*canon.InputError].
type Refusal struct {
	Rule Rule
	// Round and Leg count from zero; -1 where they do not apply.
	Round, Leg int
	// Kind is "finding" or "evidence", with the list concerned, where Name is its id or ref.
	Kind, Name string
	// Path is the JSON pointer from the round (or document) on.
	Path string
}

func refuse(rule Rule, path string) *Refusal {
	return &Refusal{Rule: rule, Round: -1, Leg: -1, Path: path}
}

// Error names round, leg, finding and rule.
func (r *Refusal) Error() string { return r.input().Error() }

// Unwrap returns the error as an [*canon.InputError].
func (r *Refusal) Unwrap() error { return r.input() }

func (r *Refusal) input() *canon.InputError {
	var where []string
	if r.Round >= 0 {
		where = append(where, fmt.Sprintf("round %d", r.Round))
	}
	if r.Leg >= 0 {
		where = append(where, fmt.Sprintf("leg %d", r.Leg))
	}
	if r.Kind != "" {
		where = append(where, fmt.Sprintf("%s %q", r.Kind, r.Name))
	}
	text := ruleTexts[r.Rule]
	problem := text.problem + " (" + string(r.Rule) + ")"
	if len(where) > 0 {
		problem = strings.Join(where, ", ") + ": " + problem
	}
	return &canon.InputError{Key: r.Path, Problem: problem, Fix: text.fix}
}

package rpi

// Status is the state of a report. Judgments are ordered: PASS, NOT_PROVEN, FAIL.
type Status uint8

// Pass, NotProven and Fail are judgments; NotPlanned and NotBuilt end a traversal before one.
const (
	Pass Status = iota
	NotProven
	Fail
	NotPlanned
	NotBuilt
)

var statusNames = [...]string{"PASS", "NOT_PROVEN", "FAIL", "NOT_PLANNED", "NOT_BUILT"}

func (s Status) String() string { return statusNames[s] }

// ParseJudgment reads PASS, NOT_PROVEN or FAIL.
func ParseJudgment(text string) (Status, bool) {
	for s := Pass; s <= Fail; s++ {
		if statusNames[s] == text {
			return s, true
		}
	}
	return Pass, false
}

// StopReason says why a repair phase ended.
type StopReason string

// The nine reasons. Converged is the only success.
const (
	Converged            StopReason = "converged"
	DiversityUnsatisfied StopReason = "diversity_unsatisfied"
	BudgetExhausted      StopReason = "repair_budget_exhausted"
	ReopenedFinding      StopReason = "reopened_finding"
	RecurringClass       StopReason = "recurring_finding_class"
	IntroducedRegression StopReason = "introduced_regression"
	UnknownCause         StopReason = "new_finding_requires_causal_review"
	NoProgress           StopReason = "no_acceptance_progress"
	NotConverged         StopReason = "not_converged"
)

// StopReasons lists them in the order of the reference.
func StopReasons() []StopReason {
	return []StopReason{
		Converged, DiversityUnsatisfied, BudgetExhausted, ReopenedFinding, RecurringClass,
		IntroducedRegression, UnknownCause, NoProgress, NotConverged,
	}
}

// LawStop reports whether the reason is a violation that [LawViolation] returns.
func (r StopReason) LawStop() bool {
	switch r {
	case ReopenedFinding, RecurringClass, IntroducedRegression, UnknownCause, NoProgress:
		return true
	}
	return false
}

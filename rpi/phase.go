package rpi

import (
	"errors"
	"strconv"
)

// DefaultRepairRounds is the bound where the caller declares none.
const DefaultRepairRounds = 2

// Options are what the caller declares for a repair phase.
type Options struct {
	// RepairRounds bounds the rounds after the first validation; zero or more.
	RepairRounds int
	// CrossModel asks for a second validator family.
	CrossModel bool
	// RiskySurface is a hint kept for compatibility; it selects nothing.
	RiskySurface bool
	// The four below are carried into the report unread; null where not declared.
	IntentRef, AcceptanceDigest, VerdictRef, VerdictDigest Value
}

// DefaultOptions declares nothing but the default bound.
func DefaultOptions() Options { return Options{RepairRounds: DefaultRepairRounds} }

// Outcome is the result of a repair phase (rpi-outcome.v1).
type Outcome struct {
	Report Report
	// Open are the findings open at the stop, one an id.
	Open []Finding
	// RoundsUsed counts repair rounds; the first validation spends none.
	RoundsUsed int
	StopReason StopReason
}

// Value returns the outcome as JSON, its members sorted.
func (o Outcome) Value() Value {
	open := make([]Member, len(o.Open))
	for i := range o.Open {
		open[i].Value = o.Open[i].Fields
	}
	return Value{kind: Object, kids: []Member{
		{"open_findings", Value{kind: List, kids: open}},
		{"report", o.Report.Value()},
		{"rounds_used", Integer(o.RoundsUsed)},
		{"stop_reason", String(string(o.StopReason))},
	}}
}

// MarshalJSON returns the RFC 8785 form.
func (o Outcome) MarshalJSON() ([]byte, error) { return o.Value().AppendJSON(nil), nil }

// Phase walks validation rounds, one at a time, under the convergence law. It dispatches
// nothing and has no budget of its own.
type Phase struct {
	options  Options
	rounds   int
	used     int
	current  *Round
	closed   Closed
	lines    []Value
	reason   StopReason
	finished bool
}

// NewPhase starts a phase. A negative bound is refused.
func NewPhase(options Options) (*Phase, error) {
	if options.RepairRounds < 0 {
		return nil, refuse(RepairRounds, "/options/repair_rounds")
	}
	return &Phase{options: options, reason: NotConverged}, nil
}

// Offer shows the phase the next round. Once the phase has stopped, or when the bound is
// spent, the round is not looked at. It reports whether the phase would take another.
func (p *Phase) Offer(round Value) (more bool, err error) {
	if p.finished {
		return false, nil
	}
	first := p.current == nil
	if !first && p.used >= p.options.RepairRounds {
		p.stop(BudgetExhausted)
		return false, nil
	}
	current, err := NormalizeRound(round)
	if err != nil {
		return false, inRound(err, p.rounds)
	}
	previous := p.current
	if !first {
		p.used++
	}
	p.current = current
	p.lines = append(p.lines, String("repair round "+strconv.Itoa(p.used)+": "+strconv.Itoa(len(current.open))+" open findings"))
	if !first {
		violation, err := LawViolation(previous, current, &p.closed)
		if err != nil {
			return false, inRound(err, p.rounds)
		}
		if violation != "" {
			p.stop(violation)
			return false, nil
		}
		p.closed.Close(previous, current)
	}
	p.rounds++
	if current.status == Pass {
		if p.options.CrossModel && len(current.families.list) < 2 {
			p.stop(DiversityUnsatisfied)
		} else {
			p.stop(Converged)
		}
	}
	return !p.finished, nil
}

func (p *Phase) stop(reason StopReason) { p.reason, p.finished = reason, true }

// Outcome says where the phase stands after the rounds offered so far; nil error only
// after the first.
func (p *Phase) Outcome() (Outcome, error) {
	if p.current == nil {
		return Outcome{}, refuse(NoRounds, "")
	}
	reason := p.reason
	if reason == NotConverged && p.used >= p.options.RepairRounds && len(p.current.open) > 0 {
		reason = BudgetExhausted
	}
	status := p.current.status
	if reason == DiversityUnsatisfied || (reason.LawStop() && status == Pass) {
		// A PASS that broke the law is a flip, not a proof; a FAIL that broke it stays one.
		status = NotProven
	}
	checked := make([]Value, 0, len(p.lines)+len(p.current.checked))
	checked = append(append(checked, p.lines...), p.current.checked...)
	return Outcome{
		Report: Report{
			Status:           status,
			IntentRef:        p.options.IntentRef,
			AcceptanceDigest: p.options.AcceptanceDigest,
			SubjectDigest:    String(p.current.digest),
			VerdictRef:       p.options.VerdictRef,
			VerdictDigest:    p.options.VerdictDigest,
			Checked:          checked,
			NotChecked:       p.current.notChecked,
		},
		Open:       p.current.open,
		RoundsUsed: p.used,
		StopReason: reason,
	}, nil
}

// RunRepairPhase walks rounds that already happened: the first fresh validation, then
// every repair round. Rounds behind a stop or past the bound are never looked at.
func RunRepairPhase(rounds []Value, options Options) (Outcome, error) {
	if len(rounds) == 0 {
		return Outcome{}, refuse(NoRounds, "")
	}
	phase, err := NewPhase(options)
	if err != nil {
		return Outcome{}, err
	}
	for i := range rounds {
		more, err := phase.Offer(rounds[i])
		if err != nil {
			return Outcome{}, err
		}
		if !more {
			break
		}
	}
	return phase.Outcome()
}

// inRound adds the number of the round to a refusal.
func inRound(err error, round int) error {
	var refusal *Refusal
	if !errors.As(err, &refusal) {
		return err
	}
	placed := *refusal
	placed.Round = round
	placed.Path = "/" + strconv.Itoa(round) + refusal.Path
	return &placed
}

package rpi

import (
	"slices"
	"strconv"
	"sync"
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
		open[i].Value = *o.Open[i].fields
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
	offered  int // rounds that were looked at
	used     int
	closed   Closed
	opened   []int // how many findings each round left open
	reason   StopReason
	finished bool
	refusal  *Refusal

	// rounds take turns as the current and the previous one; with the rooms they make an
	// ordinary phase one allocation.
	rounds [2]Round
	room   [8]string
	counts [6]int
}

// NewPhase starts a phase. A negative bound is refused.
func NewPhase(options Options) (*Phase, error) {
	p := &Phase{}
	if err := p.begin(options); err != nil {
		return nil, err
	}
	return p, nil
}

func (p *Phase) begin(options Options) error {
	if options.RepairRounds < 0 {
		return refuse(RepairRounds, "/options/repair_rounds")
	}
	p.options, p.reason = options, NotConverged
	p.closed.ids.list, p.closed.classes.list = p.room[:0:5], p.room[5:5]
	p.opened = p.counts[:0]
	return nil
}

// Offer shows the phase the next round. Once the phase has stopped, or when the bound is
// spent, the round is not looked at. It reports whether the phase would take another.
func (p *Phase) Offer(round Value) (more bool, err error) {
	if p.finished {
		return false, nil
	}
	first := p.offered == 0
	if !first && p.used >= p.options.RepairRounds {
		p.stop(BudgetExhausted)
		return false, nil
	}
	previous, current := p.current(), &p.rounds[p.offered%2]
	if refusal := current.normalize(&round); refusal != nil {
		return p.refused(refusal)
	}
	p.opened = append(p.opened, len(current.open))
	p.offered++
	if !first {
		p.used++
		violation, refusal := lawViolation(previous, current, &p.closed)
		if refusal != nil {
			p.offered--
			return p.refused(refusal)
		}
		if violation != "" {
			p.stop(violation)
			return false, nil
		}
		p.closed.Close(previous, current)
	}
	if current.status == Pass {
		if p.options.CrossModel && len(current.families.list) < 2 {
			p.stop(DiversityUnsatisfied)
		} else {
			p.stop(Converged)
		}
	}
	return !p.finished, nil
}

// current is the last round that was looked at.
func (p *Phase) current() *Round { return &p.rounds[(p.offered+1)%2] }

// refused ends the phase for good: after a refused round it has no outcome.
func (p *Phase) refused(refusal *Refusal) (bool, error) {
	refusal.Round = p.offered
	refusal.Path = "/" + strconv.Itoa(p.offered) + refusal.Path
	p.finished, p.refusal = true, refusal
	return false, refusal
}

func (p *Phase) stop(reason StopReason) { p.reason, p.finished = reason, true }

// Outcome says where the phase stands after the rounds offered so far. It refuses when
// there was none, or when one was refused.
func (p *Phase) Outcome() (Outcome, error) {
	switch {
	case p.refusal != nil:
		return Outcome{}, p.refusal
	case p.offered == 0:
		return Outcome{}, refuse(NoRounds, "")
	}
	current := p.current()
	reason := p.reason
	if reason == NotConverged && p.used >= p.options.RepairRounds && len(current.open) > 0 {
		reason = BudgetExhausted
	}
	status := current.status
	if reason == DiversityUnsatisfied || (reason.LawStop() && status == Pass) {
		// The law was broken: such a PASS proves nothing, while such a FAIL still stands.
		status = NotProven
	}
	checked := make([]Value, 0, len(p.opened)+count(current.checked))
	checked = p.lines(checked)
	return Outcome{
		Report: Report{
			Status:           status,
			IntentRef:        p.options.IntentRef,
			AcceptanceDigest: p.options.AcceptanceDigest,
			SubjectDigest:    String(current.digest),
			VerdictRef:       p.options.VerdictRef,
			VerdictDigest:    p.options.VerdictDigest,
			Checked:          flatten(checked, current.checked),
			NotChecked:       flatten(nil, current.notChecked),
		},
		Open:       slices.Clone(current.open),
		RoundsUsed: p.used,
		StopReason: reason,
	}, nil
}

var phases = sync.Pool{New: func() any { return &Phase{} }}

// RunRepairPhase walks rounds that already happened: the first fresh validation, then
// every repair round. Rounds behind a stop or past the bound are never looked at.
func RunRepairPhase(rounds []Value, options Options) (Outcome, error) {
	if len(rounds) == 0 {
		return Outcome{}, refuse(NoRounds, "")
	}
	// An outcome shares nothing with its phase, which is large: the next run takes it over.
	phase := phases.Get().(*Phase)
	defer func() {
		*phase = Phase{}
		phases.Put(phase)
	}()
	if err := phase.begin(options); err != nil {
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

// lines appends one line a round, cut from one string.
func (p *Phase) lines(dst []Value) []Value {
	var room [256]byte
	var at [len(p.counts) + 1]int
	text, ends := room[:0], at[:0]
	for round, open := range p.opened {
		text = strconv.AppendInt(append(text, "repair round "...), int64(round), 10)
		text = strconv.AppendInt(append(text, ": "...), int64(open), 10)
		text = append(text, " open findings"...)
		ends = append(ends, len(text))
	}
	all, start := string(text), 0
	for _, end := range ends {
		dst = append(dst, String(all[start:end]))
		start = end
	}
	return dst
}

func count(lists [][]Member) (n int) {
	for _, list := range lists {
		n += len(list)
	}
	return n
}

func flatten(dst []Value, lists [][]Member) []Value {
	for _, list := range lists {
		for i := range list {
			dst = append(dst, list[i].Value)
		}
	}
	return dst
}

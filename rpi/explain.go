package rpi

import "strings"

// Step tells what one round did to the findings, and why the phase stopped there if it did.
type Step struct {
	Round   int
	Status  Status
	Subject string
	// Receipts are the refs that are new in this round and bound to its subject.
	Receipts []string
	Findings []Move
	// Stop is "" where the round was admitted and the phase went on.
	Stop StopReason
}

// Move is what a round did to one finding.
type Move struct {
	ID, Class, State, Why string
}

// Explain walks the rounds as [RunRepairPhase] does and tells each step.
func Explain(rounds []Value, options Options) ([]Step, Outcome, error) {
	if len(rounds) == 0 {
		return nil, Outcome{}, refuse(NoRounds, "")
	}
	phase, err := NewPhase(options)
	if err != nil {
		return nil, Outcome{}, err
	}
	var steps []Step
	for more, i := true, 0; more && i < len(rounds); i++ {
		looked := phase.offered
		if more, err = phase.Offer(rounds[i]); err != nil {
			return nil, Outcome{}, err
		}
		if phase.offered > looked {
			steps = append(steps, phase.step())
		}
	}
	outcome, err := phase.Outcome()
	if err != nil {
		return nil, Outcome{}, err
	}
	steps[len(steps)-1].Stop = outcome.StopReason
	return steps, outcome, nil
}

// step tells the last round that was looked at.
func (p *Phase) step() Step {
	current, previous := p.current(), &p.rounds[p.offered%2]
	s := Step{Round: p.offered - 1, Status: current.status, Subject: current.digest}
	if s.Round == 0 {
		for _, f := range current.open {
			s.Findings = append(s.Findings, Move{f.ID, f.Class, "open", "first judgment"})
		}
		return s
	}
	for i := range current.evidence {
		if e := &current.evidence[i]; e.SubjectDigest == current.digest && !previous.refs.has(e.Ref) {
			s.Receipts = append(s.Receipts, e.Ref)
		}
	}
	for _, f := range previous.open {
		if current.ids.has(f.ID) {
			continue
		}
		why := "no new receipt bound to this subject resolves it"
		if refs := current.refsNaming(f.ID, current.digest, func(e *Evidence) []Member { return current.resolved(e, previous) }); refs != "" {
			why = "proven by " + refs
		}
		s.Findings = append(s.Findings, Move{f.ID, f.Class, "closed", why})
	}
	for _, f := range current.open {
		s.Findings = append(s.Findings, p.origin(f, previous, current))
	}
	return s
}

// origin says how a finding that is open now came to be.
func (p *Phase) origin(f Finding, previous, current *Round) Move {
	m := Move{ID: f.ID, Class: f.Class}
	blamed := current.refsNaming(f.ID, current.digest, func(e *Evidence) []Member { return kids(e.introduced) })
	seen := current.refsNaming(f.ID, previous.digest, func(e *Evidence) []Member { return kids(e.preexisting) })
	switch {
	case p.closed.ids.has(f.ID):
		m.State, m.Why = "reopened", "an earlier round closed it"
	case f.Class != "" && p.closed.classes.has(f.Class):
		m.State, m.Why = "recurring", "an earlier round closed its class"
	case blamed != "":
		m.State, m.Why = "introduced", "blamed on this subject by "+blamed
	case previous.ids.has(f.ID):
		m.State, m.Why = "still open", ""
	case seen != "":
		m.State, m.Why = "discovered", "seen on the prior subject by "+seen
	default:
		m.State, m.Why = "new", "cause unknown"
	}
	return m
}

// refsNaming lists the receipts bound to a subject whose list names the finding.
func (r *Round) refsNaming(id, subject string, list func(*Evidence) []Member) string {
	var refs []string
	for i := range r.evidence {
		e := &r.evidence[i]
		if e.SubjectDigest != subject {
			continue
		}
		for _, item := range list(e) {
			if item.Value.text == id {
				refs = append(refs, e.Ref)
				break
			}
		}
	}
	return strings.Join(refs, ", ")
}

func kids(v *Value) []Member {
	if v == nil {
		return nil
	}
	return v.kids
}

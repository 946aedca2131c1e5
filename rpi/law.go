package rpi

// Closed remembers the findings and classes that earlier rounds closed. The zero value is
// empty.
type Closed struct {
	ids, classes names
}

// Close records what was open in previous and is not in current. A class counts as
// closed once the last of its findings is.
func (c *Closed) Close(previous, current *Round) {
	for _, id := range previous.ids.list {
		if !current.ids.has(id) {
			c.ids.add(id)
		}
	}
	for _, class := range previous.classes.list {
		if !current.classes.has(class) {
			c.classes.add(class)
		}
	}
}

// LawViolation returns the condition of the convergence law that current violates after
// previous, or "" when all hold. The order: a closed finding reopened, a closed class back,
// a regression introduced, a new finding without proof that it was there before, and at
// last no acceptance progress. It refuses ([EvidenceNull]) a null list where it has to read one.
func LawViolation(previous, current *Round, closed *Closed) (StopReason, error) {
	violation, refusal := lawViolation(previous, current, closed)
	if refusal != nil {
		return "", refusal
	}
	return violation, nil
}

func lawViolation(previous, current *Round, closed *Closed) (StopReason, *Refusal) {
	for _, id := range current.ids.list {
		if closed.ids.has(id) {
			return ReopenedFinding, nil
		}
	}
	for _, class := range current.classes.list {
		if closed.classes.has(class) {
			return RecurringClass, nil
		}
	}
	introduced := false
	for i := range current.evidence {
		e := &current.evidence[i]
		ids, refusal := e.bound(current.digest, e.introduced, "introduced")
		if refusal != nil {
			return "", refusal
		}
		for j := range ids {
			introduced = introduced || current.ids.has(ids[j].Value.text)
		}
	}
	if introduced {
		return IntroducedRegression, nil
	}
	var preexisting names
	for i := range current.evidence {
		e := &current.evidence[i]
		ids, refusal := e.bound(previous.digest, e.preexisting, "preexisting")
		if refusal != nil {
			return "", refusal
		}
		for j := range ids {
			preexisting.add(ids[j].Value.text)
		}
	}
	for _, id := range current.ids.list {
		if !previous.ids.has(id) && !preexisting.has(id) {
			return UnknownCause, nil
		}
	}
	moved := current.digest != previous.digest ||
		(previous.status == NotProven && current.status != Fail)
	if !moved || !current.progress(previous) {
		return NoProgress, nil
	}
	return "", nil
}

// bound returns a list of the receipt where that binds the subject; null in its place is
// refused, as the law cannot read it.
func (e *Evidence) bound(subject string, list *Value, name string) ([]Member, *Refusal) {
	switch {
	case e.SubjectDigest != subject || list == nil:
		return nil, nil
	case list.kind == Null:
		refusal := refuse(EvidenceNull, "")
		refusal.Kind, refusal.Name = name+" of evidence", e.Ref
		return nil, refusal
	}
	return list.kids, nil
}

// resolved returns the findings that a receipt says are resolved, where it is bound to the judged
// subject and new in this round.
func (r *Round) resolved(e *Evidence, previous *Round) []Member {
	if e.resolves == nil || e.SubjectDigest != r.digest || previous.refs.has(e.Ref) {
		return nil
	}
	return e.resolves.kids
}

// progress reports whether such a receipt resolves a finding that this round really closed.
func (r *Round) progress(previous *Round) bool {
	for i := range r.evidence {
		for _, id := range r.resolved(&r.evidence[i], previous) {
			if previous.ids.has(id.Value.text) && !r.ids.has(id.Value.text) {
				return true
			}
		}
	}
	return false
}

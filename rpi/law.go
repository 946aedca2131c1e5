package rpi

import "strconv"

// Closed remembers the findings and classes that earlier rounds closed. The zero value is
// empty.
type Closed struct {
	ids, classes names
}

// Close records what was open in previous and is not in current. A class closes only
// when none of its findings stays open.
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
	introduced, err := current.introduces()
	if err != nil {
		return "", err
	}
	if introduced {
		return IntroducedRegression, nil
	}
	preexisting, err := current.preexisting(previous)
	if err != nil {
		return "", err
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

// bound returns the named list of the i-th receipt where that binds the subject; a
// member that is null there is refused, as the law cannot read it.
func (r *Round) bound(i int, subject, name string) ([]Member, error) {
	e := &r.evidence[i]
	if e.SubjectDigest != subject {
		return nil, nil
	}
	list := e.Fields.member(name)
	switch {
	case list == nil:
		return nil, nil
	case list.kind == Null:
		refusal := refuse(EvidenceNull, "/evidence_refs/"+strconv.Itoa(i)+"/"+name)
		refusal.Kind, refusal.Name = "evidence", e.Ref
		return nil, refusal
	}
	return list.kids, nil
}

// introduces reports whether a receipt bound to the judged subject blames it for an open finding.
func (r *Round) introduces() (found bool, err error) {
	for i := range r.evidence {
		ids, err := r.bound(i, r.digest, "introduced")
		if err != nil {
			return false, err
		}
		for j := range ids {
			found = found || r.ids.has(ids[j].Value.text)
		}
	}
	return found, nil
}

// preexisting returns the findings that receipts bound to the prior subject saw there.
func (r *Round) preexisting(previous *Round) (found names, err error) {
	for i := range r.evidence {
		ids, err := r.bound(i, previous.digest, "preexisting")
		if err != nil {
			return names{}, err
		}
		for j := range ids {
			found.add(ids[j].Value.text)
		}
	}
	return found, nil
}

// progress reports whether a receipt that is new in this round and bound to the judged
// subject resolves a finding that this round really closed.
func (r *Round) progress(previous *Round) bool {
	for i := range r.evidence {
		if len(r.proves(i, previous)) > 0 {
			return true
		}
	}
	return false
}

// proves returns the findings whose closure the i-th receipt proves.
func (r *Round) proves(i int, previous *Round) (closed []string) {
	e := &r.evidence[i]
	if e.SubjectDigest != r.digest || previous.refs.has(e.Ref) {
		return nil
	}
	resolves := e.Fields.member("resolves")
	if resolves == nil {
		return nil
	}
	for j := range resolves.kids {
		if id := resolves.kids[j].Value.text; previous.ids.has(id) && !r.ids.has(id) {
			closed = append(closed, id)
		}
	}
	return closed
}

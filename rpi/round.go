package rpi

import "strconv"

// Finding is one open finding: its stable id, its class ("" if none), and every member
// that the legs gave it.
type Finding struct {
	ID, Class string
	fields    *Value
}

// Fields returns the finding as an object.
func (f Finding) Fields() Value { return *f.fields }

// Evidence is one receipt: a bare label, or a binding to a subject that names the findings
// it resolves, saw on the prior subject (preexisting), or blames on the judged one (introduced).
type Evidence struct {
	Ref           string
	SubjectDigest string // "" where unbound
	// The entry itself, nil for a bare label, and its lists, nil where missing.
	fields, resolves, preexisting, introduced *Value
}

// Round is what the law reads of one validation round. Only [NormalizeRound] makes one.
type Round struct {
	status     Status
	ids        names
	open       []Finding
	classes    names
	digest     string
	valid      string // the digest last found well-formed, mostly the next one too
	refs       names
	evidence   []Evidence
	families   names
	checked    [][]Member
	notChecked [][]Member

	// first is room for a round of ordinary size, so that it is one allocation.
	first struct {
		names      [11]string
		open       [4]Finding
		evidence   [2]Evidence
		checked    [2][]Member
		notChecked [2][]Member
	}
}

// reset empties the round. What it held may not be read any more.
func (r *Round) reset() {
	room := &r.first
	r.status, r.digest = Pass, ""
	r.ids, r.classes = names{list: room.names[:0:4]}, names{list: room.names[4:4:6]}
	r.refs, r.families = names{list: room.names[6:6:9]}, names{list: room.names[9:9:11]}
	r.open, r.evidence = room.open[:0], room.evidence[:0]
	r.checked, r.notChecked = room.checked[:0], room.notChecked[:0]
}

// Status is the worst status of the legs; PASS without proof of its own counts as NOT_PROVEN.
func (r *Round) Status() Status { return r.status }

// Open returns the union of the legs' findings in first-seen order; not to be changed.
func (r *Round) Open() []Finding { return r.open }

// HasOpen reports whether the finding with this id is open.
func (r *Round) HasOpen(id string) bool { return r.ids.has(id) }

// SubjectDigest is the subject that every leg judged.
func (r *Round) SubjectDigest() string { return r.digest }

// Evidence returns the receipts, one a ref; not to be changed.
func (r *Round) Evidence() []Evidence { return r.evidence }

// Families returns the distinct validator families in first-seen order; not to be changed.
func (r *Round) Families() []string { return r.families.list }

// NormalizeRound folds the legs of one round, given as one object or a list of them.
// Malformed legs are refused with a [*Refusal].
func NormalizeRound(value Value) (*Round, error) {
	r := &Round{}
	if refusal := r.normalize(&value); refusal != nil {
		return nil, refusal
	}
	return r, nil
}

func (r *Round) normalize(value *Value) *Refusal {
	r.reset()
	switch value.kind {
	case Object:
		if refusal := r.fold(value, 0, nil); refusal != nil {
			return refusal
		}
	case List:
		if len(value.kids) == 0 {
			return refuse(RoundEmpty, "")
		}
		lastLeg := make([]int, 0, 8)
		for i := range value.kids {
			if refusal := r.fold(&value.kids[i].Value, i, &lastLeg); refusal != nil {
				refusal.Path = "/" + strconv.Itoa(i) + refusal.Path
				return refusal
			}
		}
	default:
		return refuse(RoundShape, "")
	}
	for i := range r.open {
		if class := r.open[i].Class; class != "" {
			r.classes.add(class)
		}
	}
	return nil
}

// members are the parts of a leg that the law reads; nil where missing.
type members struct {
	status, verdict, findings, evidence, digest, manifestDigest, family, checked, notChecked *Value
}

func readLeg(leg *Value) (m members) {
	for i := range leg.kids {
		value := &leg.kids[i].Value
		switch leg.kids[i].Name {
		case "status":
			m.status = value
		case "verdict":
			m.verdict = value
		case "findings":
			m.findings = value
		case "evidence_refs":
			m.evidence = value
		case "subject_digest":
			m.digest = value
		case "subject_manifest_digest":
			m.manifestDigest = value
		case "validator_family":
			m.family = value
		case "checked":
			m.checked = value
		case "not_checked":
			m.notChecked = value
		}
	}
	return m
}

// either is the value under the first spelling, else under the second: a member that is
// present wins, whatever it holds.
func either(first, second *Value) *Value {
	if first != nil {
		return first
	}
	return second
}

// fold adds one leg, in the order of checks of the reference. lastLeg has, for each open
// finding, the last leg that named it; nil where the round is one leg.
func (r *Round) fold(leg *Value, number int, lastLeg *[]int) *Refusal {
	no := func(rule Rule, path string) *Refusal {
		refusal := refuse(rule, path)
		refusal.Leg = number
		return refusal
	}
	if leg.kind != Object {
		return no(LegShape, "")
	}
	m := readLeg(leg)
	said := either(m.status, m.verdict)
	if said == nil || said.kind != Text {
		return no(LegStatus, "")
	}
	status, ok := ParseJudgment(said.text)
	if !ok {
		return no(LegStatus, "")
	}
	r.status = max(r.status, status)

	switch {
	case m.findings == nil:
		return no(FindingsMissing, "")
	case m.findings.kind != List:
		return no(FindingsShape, "/findings")
	}
	for i := range m.findings.kids {
		if rule, id := r.foldFinding(&m.findings.kids[i].Value, number, lastLeg); rule != "" {
			refusal := no(rule, "/findings/"+strconv.Itoa(i))
			if id != "" {
				refusal.Kind, refusal.Name = "finding", id
			}
			return refusal
		}
	}
	switch open := len(m.findings.kids) > 0; {
	case status == Pass && open:
		return no(PassWithFindings, "/findings")
	case status == Fail && !open:
		return no(FailWithoutFindings, "/findings")
	}
	if m.family != nil && m.family.kind == Text && m.family.text != "" {
		r.families.add(m.family.text)
	}

	switch {
	case m.evidence == nil:
		return no(EvidenceMissing, "")
	case m.evidence.kind != List:
		return no(EvidenceShape, "/evidence_refs")
	}
	for i := range m.evidence.kids {
		if rule, path, ref := r.foldEvidence(&m.evidence.kids[i].Value); rule != "" {
			refusal := no(rule, "/evidence_refs/"+strconv.Itoa(i)+path)
			if ref != "" {
				refusal.Kind, refusal.Name = "evidence", ref
			}
			return refusal
		}
	}

	digest, ok := r.readDigest(either(m.digest, m.manifestDigest))
	switch {
	case !ok:
		return no(LegDigest, "")
	case r.digest != "" && r.digest != digest:
		return no(LegDisagreement, "")
	}
	r.digest = digest

	if m.checked != nil {
		if !m.checked.nonemptyStrings() {
			return no(CheckedShape, "/checked")
		}
		r.checked = append(r.checked, m.checked.kids)
	}
	if m.notChecked != nil {
		if !m.notChecked.nonemptyStrings() {
			return no(CheckedShape, "/not_checked")
		}
		r.notChecked = append(r.notChecked, m.notChecked.kids)
	}
	// Each leg stands on its own proof: a peer's receipts do not repair a PASS without any.
	proven := len(m.evidence.kids) > 0 && m.checked != nil && len(m.checked.kids) > 0 &&
		(m.notChecked == nil || len(m.notChecked.kids) == 0)
	if status == Pass && !proven {
		r.status = max(r.status, NotProven)
	}
	return nil
}

func (r *Round) readDigest(v *Value) (string, bool) {
	if v != nil && v.kind == Text && v.text == r.valid && v.text != "" {
		return v.text, true
	}
	digest, ok := v.digest()
	r.valid = digest
	return digest, ok
}

// foldFinding returns the rule that a finding breaks, or "", and its id where it has one.
func (r *Round) foldFinding(finding *Value, leg int, lastLeg *[]int) (Rule, string) {
	if finding.kind != Object {
		return FindingShape, ""
	}
	id := finding.member("id")
	if id == nil || id.kind != Text || blank(id.text) {
		return FindingID, ""
	}
	at, fresh := r.ids.add(id.text)
	if !fresh && (lastLeg == nil || (*lastLeg)[at] == leg) {
		return FindingTwice, id.text
	}
	class := ""
	if c := finding.member("class"); c != nil {
		if c.kind != Text || blank(c.text) {
			return FindingClass, id.text
		}
		class = c.text
	}
	if fresh {
		r.open = append(r.open, Finding{id.text, class, finding})
		if lastLeg != nil {
			*lastLeg = append(*lastLeg, leg)
		}
		return "", ""
	}
	(*lastLeg)[at] = leg
	known := &r.open[at]
	if known.Class != "" && class != "" && class != known.Class {
		return FindingConflict, id.text
	}
	if class != "" {
		known.Class = class
	}
	merged := known.fields.With(*finding)
	known.fields = &merged
	return "", ""
}

// foldEvidence returns the rule that an entry breaks, or "", where in it, and its ref.
func (r *Round) foldEvidence(entry *Value) (rule Rule, path, ref string) {
	var e Evidence
	switch entry.kind {
	case Text:
		e.Ref = entry.text
	case Object:
		var name, digest *Value
		for i := range entry.kids {
			value := &entry.kids[i].Value
			switch entry.kids[i].Name {
			case "ref":
				name = value
			case "subject_digest":
				digest = value
			case "resolves":
				e.resolves = value
			case "preexisting":
				e.preexisting = value
			case "introduced":
				e.introduced = value
			}
		}
		if name == nil || name.kind != Text || blank(name.text) {
			return EvidenceRef, "", ""
		}
		e.Ref, e.fields = name.text, entry
		switch {
		case !e.resolves.idsOrNull():
			return EvidenceIDs, "/resolves", e.Ref
		case !e.preexisting.idsOrNull():
			return EvidenceIDs, "/preexisting", e.Ref
		case !e.introduced.idsOrNull():
			return EvidenceIDs, "/introduced", e.Ref
		}
		if digest != nil {
			digest, ok := r.readDigest(digest)
			if !ok {
				return EvidenceDigest, "/subject_digest", e.Ref
			}
			e.SubjectDigest = digest
		}
	default:
		return EvidenceEntry, "", ""
	}
	at, fresh := r.refs.add(e.Ref)
	if fresh {
		r.evidence = append(r.evidence, e)
	} else if !same(&r.evidence[at], &e) {
		return EvidenceConflict, "", e.Ref
	}
	return "", "", ""
}

// idsOrNull reports whether a list of finding ids may stand in a receipt.
func (v *Value) idsOrNull() bool { return v == nil || v.kind == Null || v.nonemptyStrings() }

// same reports whether two entries of one ref say the same; a bare label is a binding
// with a ref and nothing else.
func same(a, b *Evidence) bool {
	if a.fields == nil {
		a, b = b, a
	}
	if b.fields == nil {
		return a.fields == nil || len(a.fields.kids) == 1
	}
	return equal(a.fields, b.fields)
}

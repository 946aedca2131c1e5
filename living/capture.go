package living

import (
	"fmt"
	"strings"

	"selfsame.dev/selfsame/internal/canon"
)

// Reason says why a claim was refused.
type Reason string

// The reasons, in the order in which they are looked for.
const (
	Malformed             Reason = "malformed"
	UnknownAxis           Reason = "unknown_axis"
	NoEvidence            Reason = "no_evidence"
	OtherTurn             Reason = "other_turn"
	DigestMismatch        Reason = "digest_mismatch"
	Recalled              Reason = "recalled"
	BaselineContradiction Reason = "baseline_contradiction"
	OverLimit             Reason = "over_limit"
)

// Refusal is one refused claim, or, without axis and value, a report refused whole: its
// position in the report, what it said, and why it was not admitted.
type Refusal struct {
	Axis     string `json:"axis"`
	Claims   int64  `json:"claims"` // how many it covers; 0 if the report was not read so far
	Detail   string `json:"detail"`
	Position int64  `json:"position"`
	Reason   Reason `json:"reason"`
	Value    string `json:"value"` // JSON, shortened
}

// Outcome parts the claims of one report into the admitted delta and the refusals.
type Outcome struct {
	Turn    int64
	Delta   *Delta
	Refused []Refusal
}

// Capture reads a turn report (living-turn.v1) and admits the facts whose cited
// evidence was produced in that same turn and whose bytes match the cited digest (law
// L5). A claim has no field with which it could vouch for itself.
//
// doc is the memory the turn was given: facts of earlier turns are memory, and evidence
// that only repeats them is refused as recalled. Errors are [*canon.InputError]: the
// report as a whole is malformed, or not this owner's.
func Capture(doc *Document, base *Baseline, raw []byte) (*Outcome, error) {
	if err := pinned(doc, base); err != nil {
		return nil, err
	}
	turn := int64(0)
	whole := func(reason Reason, claims int, format string, args ...any) (*Outcome, error) {
		out := refusedWhole(doc, int64(claims), reason, fmt.Sprintf(format, args...))
		out.Turn = turn
		return out, nil
	}
	if n := int64(len(raw)); n > doc.limits.ReportBytes {
		return whole(OverLimit, 0, "the report has %d bytes, the limit is %d", n, doc.limits.ReportBytes)
	}
	r, err := decodeReport(raw)
	if err != nil {
		return nil, err
	}
	if r.Owner != doc.owner {
		return nil, refuse("/owner", fmt.Sprintf("the report is for %q, the profile is %q", r.Owner, doc.owner), "send it to its own owner")
	}
	turn = r.Turn
	last := doc.LastTurn()
	switch n := len(r.Claims); {
	case int64(n) > doc.limits.DeltaFacts:
		return whole(OverLimit, n, "%d claims, the limit is %d", n, doc.limits.DeltaFacts)
	case r.Turn <= doc.floor:
		return whole(OtherTurn, n, "turn %d lies before the restore at turn %d", r.Turn, doc.floor)
	case r.Turn-last > doc.limits.TurnGap:
		return whole(OverLimit, n, "turn %d is more than %d ahead of turn %d", r.Turn, doc.limits.TurnGap, last)
	}
	c := capturer{doc: doc, base: base, report: r, memory: newMemory(doc, r.Turn), evidence: map[string]*produced{}}
	for i := range r.Evidence {
		c.evidence[r.Evidence[i].Name] = &r.Evidence[i]
	}
	out := &Outcome{Turn: turn}
	admitted := map[string][]*Fact{}
	for i, raw := range r.Claims {
		axis, f, refusal := c.claim(int64(i), raw)
		if refusal != nil {
			out.Refused = append(out.Refused, *refusal)
			continue
		}
		admitted[axis] = append(admitted[axis], f)
	}
	out.Delta = newDelta(doc.owner, admitted)
	return out, nil
}

// refusedWhole is the outcome of a report that admits nothing, for one reason.
func refusedWhole(doc *Document, claims int64, reason Reason, detail string) *Outcome {
	return &Outcome{Delta: newDelta(doc.owner, nil), Refused: []Refusal{{Claims: claims, Reason: reason, Detail: detail}}}
}

type capturer struct {
	doc      *Document
	base     *Baseline
	report   *report
	memory   *memory
	evidence map[string]*produced
}

func (c *capturer) claim(position int64, raw []byte) (string, *Fact, *Refusal) {
	said := &Refusal{Claims: 1, Position: position, Value: excerpt(string(raw))}
	no := func(reason Reason, format string, args ...any) (string, *Fact, *Refusal) {
		said.Reason, said.Detail = reason, fmt.Sprintf(format, args...)
		return "", nil, said
	}
	var cl claim
	if err := canon.Decode(raw, &cl); err != nil {
		return no(Malformed, "%v", err)
	}
	said.Axis, said.Value = excerpt(cl.Axis), excerpt(string(cl.Value))
	if c.doc.axis(cl.Axis) == nil {
		return no(UnknownAxis, "the baseline declares no axis %q", excerpt(cl.Axis))
	}
	value, err := NormalizeValue(cl.Value)
	if err != nil {
		return no(Malformed, "value: %v", err)
	}
	said.Value = excerpt(value)
	if len(cl.Evidence) == 0 {
		return no(NoEvidence, "no evidence is cited")
	}
	if len(cl.Evidence) > maxEvidence {
		return no(OverLimit, "%d citations, the limit is %d", len(cl.Evidence), maxEvidence)
	}
	id := identity(cl.Axis, value)
	var evidence []Evidence
	for _, cite := range cl.Evidence {
		if cite.Turn != c.report.Turn {
			return no(OtherTurn, "evidence %q is cited from turn %d, this is turn %d", excerpt(cite.Name), cite.Turn, c.report.Turn)
		}
		e := c.evidence[cite.Name]
		if e == nil || len(e.data) == 0 {
			return no(NoEvidence, "turn %d produced no evidence %q, or an empty one", c.report.Turn, excerpt(cite.Name))
		}
		if e.digest != cite.SHA256 {
			return no(DigestMismatch, "evidence %q: cited %s, produced %s", excerpt(cite.Name), cite.SHA256, e.digest)
		}
		if why := c.memory.repeated(e, cl.Axis, id); why != "" {
			return no(Recalled, "evidence %q %s", excerpt(cite.Name), why)
		}
		evidence = append(evidence, Evidence{Bytes: int64(len(e.data)), SHA256: cite.SHA256, Source: e.Source})
	}
	if s := c.base.contradicts(cl.Axis, value); s != nil {
		return no(BaselineContradiction, "the baseline %s %s", s.Rule, excerpt(string(s.Value)))
	}
	f := newFact(cl.Axis, value, c.report.Turn, position, evidence)
	if n := int64(len(f.raw)); n > c.doc.limits.FactBytes {
		return no(OverLimit, "the fact has %d bytes, the limit is %d", n, c.doc.limits.FactBytes)
	}
	return cl.Axis, f, nil
}

// pinned refuses a baseline other than the one the document grew on.
func pinned(doc *Document, base *Baseline) error {
	if actual := canon.Sum(base.raw); actual != doc.baseline || base.digest != actual {
		return &BaselineDriftError{Expected: doc.baseline, Actual: actual}
	}
	if base.owner != doc.owner {
		return refuse("/owner", fmt.Sprintf("the baseline is for %q, the profile is %q", base.owner, doc.owner), "use the owner's own baseline")
	}
	return nil
}

// memorySource marks evidence that a harness knows to come from memory.
const memorySource = "memory:"

// memory is what a turn was told: the facts of earlier turns.
type memory struct {
	doc   *Document
	turn  int64
	facts map[canon.Digest]*Fact
	ids   map[canon.Digest]bool // of all facts: no honest turn, early or late, comes upon one elsewhere
	words *words                // made when first asked for
}

// echo is what evidence has of memory.
type echo struct {
	fact   *canon.Digest // a remembered fact that it shows
	folded string        // its letters and digits
	only   bool          // it is put together from nothing but what memory states
}

func newMemory(doc *Document, turn int64) *memory {
	m := &memory{doc: doc, turn: turn, facts: map[canon.Digest]*Fact{}, ids: map[canon.Digest]bool{}}
	for _, a := range doc.axes {
		for _, f := range a.facts {
			m.ids[f.id] = true
			if f.turn < turn {
				m.facts[f.id] = f
			}
		}
	}
	return m
}

// repeated says in which way evidence is memory come back, or "".
//
//   - It names the source memory:, or holds the identity of a fact of the document, which
//     only seeds and views show, however it is spaced or escaped.
//   - Its letters and digits are nothing but remembered axes, values and sources, in any
//     order and number, whatever it is cited for.
//   - It is cited for a remembered fact and says no more than memory said of it: its
//     letters and digits are a part of that statement's.
func (m *memory) repeated(e *produced, axis string, claimed canon.Digest) string {
	if strings.HasPrefix(e.Source, memorySource) {
		return "has memory as its source"
	}
	if e.echo == nil {
		e.echo = m.look(e)
	}
	if e.echo.fact != nil {
		return fmt.Sprintf("shows the remembered fact %s", e.echo.fact)
	}
	const nothingNew = "says no more than memory did; give what the source itself showed"
	if e.echo.only {
		return nothingNew
	}
	f := m.facts[claimed]
	if f == nil {
		return ""
	}
	statement := axis + " " + text([]byte(f.value))
	for _, known := range f.evidence {
		statement += " " + known.Source
	}
	if strings.Contains(fold(statement), e.echo.folded) {
		return nothingNew
	}
	return ""
}

func (m *memory) look(e *produced) *echo {
	seen := &echo{folded: fold(text(e.data))}
	for _, shown := range [][]byte{e.data, []byte(seen.folded)} {
		for id := range hexDigests(shown) {
			if m.ids[id] {
				seen.fact = &id
				return seen
			}
		}
	}
	if m.words == nil {
		m.words = m.vocabulary()
	}
	seen.only = m.words.compose(seen.folded)
	return seen
}

func (m *memory) vocabulary() *words {
	w := &words{known: map[string]bool{}}
	for _, a := range m.doc.axes {
		for _, f := range a.facts {
			if f.turn >= m.turn {
				continue
			}
			w.add(fold(a.name))
			w.add(fold(text([]byte(f.value))))
			for _, known := range f.evidence {
				w.add(fold(known.Source))
			}
		}
	}
	return w
}

package living

import (
	"bytes"
	"container/heap"
	"fmt"
	"slices"
	"sort"

	"selfsame.dev/selfsame/internal/canon"
)

// Modification records a real change (seed record version-provenance).
type Modification struct {
	At           Instant        `json:"at"`
	ChangedAxes  []string       `json:"changed_axes"`
	DeltaSHA256  canon.Digest   `json:"delta_sha256,omitzero"` // absent on restore and rebase
	Evidence     []canon.Digest `json:"evidence"`
	PriorVersion int64          `json:"prior_version"`
}

// Merge joins a delta into a document. If that changes nothing it returns doc itself
// and no modification; else a new document, one version on. It is pure: at is only
// written down. A delta over the limits of the document is refused whole, with an
// [*canon.InputError]. See the package comment for why this is a join.
func Merge(doc *Document, delta *Delta, at Instant) (*Document, *Modification, error) {
	if delta.owner != doc.owner {
		return nil, nil, refuse("/owner", fmt.Sprintf("the delta is for %q, the profile is %q", delta.owner, doc.owner), "apply it to its own owner")
	}
	if err := delta.within(doc.limits); err != nil {
		return nil, nil, err
	}
	names := sortedKeys(delta.axes)
	for _, name := range names {
		if doc.axis(name) == nil {
			return nil, nil, refuse("/axes/"+name, "the profile has no such axis", "declare it in the baseline")
		}
	}
	next := *doc
	var changed []string
	for _, name := range names {
		a := doc.axis(name)
		facts, differs := join(a.facts, aboveFloor(delta.axes[name], doc.floor), a.Cap)
		if !differs {
			continue
		}
		if changed == nil {
			next.axes = append([]*axis(nil), doc.axes...)
		}
		changed = append(changed, name)
		i := sort.Search(len(next.axes), func(i int) bool { return next.axes[i].name >= name })
		next.axes[i] = &axis{name: name, Axis: a.Axis, facts: facts}
	}
	if changed == nil {
		return doc, nil, nil
	}
	next.version++
	return &next, &Modification{At: at, ChangedAxes: changed, DeltaSHA256: delta.Digest(), Evidence: delta.Evidence(), PriorVersion: doc.version}, nil
}

func aboveFloor(facts []*Fact, floor int64) []*Fact {
	kept := make([]*Fact, 0, len(facts))
	for _, f := range facts {
		if f.turn > floor {
			kept = append(kept, f)
		}
	}
	return kept
}

// join is top(max(have ∪ add)) of the package comment. Both lists are sorted by
// identity; the result is too. It reports whether the result differs from have.
func join(have, add []*Fact, limit int64) ([]*Fact, bool) {
	united := make([]*Fact, 0, len(have)+len(add))
	rest := have
	for _, f := range add {
		i := sort.Search(len(rest), func(i int) bool { return bytes.Compare(rest[i].id[:], f.id[:]) >= 0 })
		united = append(united, rest[:i]...)
		rest = rest[i:]
		if len(rest) > 0 && rest[0].id == f.id {
			if compareFacts(f, rest[0]) <= 0 {
				f = rest[0]
			}
			rest = rest[1:]
		}
		united = append(united, f)
	}
	united = greatest(append(united, rest...), int(limit))
	if len(united) != len(have) {
		return united, true
	}
	for i := range united {
		if united[i] != have[i] {
			return united, true
		}
	}
	return have, false
}

// greatest drops all but the n facts with the greatest stamps and keeps the order. It
// is linear for the few that a delta pushes out.
func greatest(facts []*Fact, n int) []*Fact {
	drop := len(facts) - n
	if drop <= 0 {
		return facts
	}
	least := worst{facts: facts, at: make([]int, 0, drop)}
	for i, f := range facts {
		if len(least.at) < drop {
			heap.Push(&least, i)
		} else if compareFacts(f, facts[least.at[0]]) < 0 {
			least.at[0] = i
			heap.Fix(&least, 0)
		}
	}
	slices.Sort(least.at)
	kept := make([]*Fact, 0, n)
	from := 0
	for _, i := range least.at {
		kept = append(kept, facts[from:i]...)
		from = i + 1
	}
	return append(kept, facts[from:]...)
}

// worst is a heap of places in facts with the greatest stamp on top.
type worst struct {
	facts []*Fact
	at    []int
}

func (w worst) Len() int           { return len(w.at) }
func (w worst) Less(i, j int) bool { return compareFacts(w.facts[w.at[i]], w.facts[w.at[j]]) > 0 }
func (w worst) Swap(i, j int)      { w.at[i], w.at[j] = w.at[j], w.at[i] }
func (w *worst) Push(x any)        { w.at = append(w.at, x.(int)) }
func (w *worst) Pop() any {
	last := w.at[len(w.at)-1]
	w.at = w.at[:len(w.at)-1]
	return last
}

// Restore returns the content of an earlier version as a new version. It opens a new
// epoch: what turns up to now have shown, and the earlier version did not hold, must be
// shown again to come back. A restore to equal content changes nothing.
func Restore(doc, earlier *Document, at Instant) (*Document, *Modification, error) {
	if earlier.owner != doc.owner || earlier.version >= doc.version {
		return nil, nil, refuse("/version", fmt.Sprintf("version %d is not earlier than %d", earlier.version, doc.version), "name an earlier version")
	}
	next := *doc
	next.axes = append([]*axis(nil), doc.axes...)
	var changed []string
	for i, a := range doc.axes {
		old := earlier.axis(a.name)
		if old == nil || old.Axis != a.Axis {
			return nil, nil, refuse("/axes/"+a.name, "the earlier version declares the axis otherwise", "restore a version with the same axes")
		}
		if !equalFacts(old.facts, a.facts) {
			changed = append(changed, a.name)
			next.axes[i] = old
		}
	}
	if changed == nil {
		return doc, nil, nil
	}
	next.version++
	next.floor = doc.LastTurn()
	return &next, &Modification{At: at, ChangedAxes: changed, Evidence: []canon.Digest{}, PriorVersion: doc.version}, nil
}

// Rebase pins a document to a changed baseline: scope may change, axes and limits may
// not. Facts stay; those that the new scope contradicts are kept apart by [Seed].
func Rebase(doc *Document, base *Baseline, at Instant) (*Document, *Modification, error) {
	if base.owner != doc.owner {
		return nil, nil, refuse("/owner", fmt.Sprintf("the baseline is for %q, the profile is %q", base.owner, doc.owner), "use the owner's own baseline")
	}
	if base.limits != doc.limits || len(base.axes) != len(doc.axes) {
		return nil, nil, refuse("/limits", "axes or limits differ from the profile's", "change the scope only, or begin a new profile")
	}
	for _, a := range doc.axes {
		if base.axes[a.name] != a.Axis {
			return nil, nil, refuse("/axes/"+a.name, "the axis differs from the profile's", "change the scope only, or begin a new profile")
		}
	}
	if base.digest == doc.baseline {
		return doc, nil, nil
	}
	next := *doc
	next.version++
	next.baseline = base.digest
	return &next, &Modification{At: at, ChangedAxes: []string{}, Evidence: []canon.Digest{}, PriorVersion: doc.version}, nil
}

func equalFacts(a, b []*Fact) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if !bytes.Equal(a[i].raw, b[i].raw) {
			return false
		}
	}
	return true
}

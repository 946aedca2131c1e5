package living

import (
	"errors"
	"fmt"
	"slices"
	"strconv"

	"selfsame.dev/selfsame/internal/canon"
)

// Rehearsal is a history of turn reports taken in from an empty document, in order.
type Rehearsal struct {
	Document *Document
	Steps    []Rehearsed

	deltas []*Delta
}

// Rehearsed says what one report of a rehearsal did.
type Rehearsed struct {
	Turn     int64
	Admitted int64
	Changed  []string // axes
	Refused  []Refusal
}

// Rehearse captures and merges reports in order. Errors are a [*BaselineDriftError] or
// what cannot be: a delta that capture admits and merge refuses.
func Rehearse(base *Baseline, reports [][]byte) (*Rehearsal, error) {
	r := &Rehearsal{Document: NewDocument(base)}
	for i, raw := range reports {
		out, err := Capture(r.Document, base, raw)
		var input *canon.InputError
		if errors.As(err, &input) {
			out = refusedWhole(r.Document, 0, Malformed, excerpt(input.Error()))
		} else if err != nil {
			return nil, err
		}
		doc, mod, err := Merge(r.Document, out.Delta, epoch)
		if err != nil {
			return nil, fmt.Errorf("report %d: %w", i+1, err)
		}
		step := Rehearsed{Turn: out.Turn, Admitted: out.Delta.Len(), Refused: out.Refused}
		if mod != nil {
			step.Changed = mod.ChangedAxes
		}
		r.Document = doc
		r.Steps = append(r.Steps, step)
		r.deltas = append(r.deltas, out.Delta)
	}
	return r, nil
}

// epoch stands where an instant is only written down and then thrown away.
const epoch = Instant("1970-01-01T00:00:00Z")

// Converges applies the admitted deltas again in other orders, each order twice over,
// and returns how many orders it tried, or an error that names the first order that
// came to other content (law L2). All orders are tried for up to five deltas, else 100
// that depend on nothing but their number.
func (r *Rehearsal) Converges(base *Baseline) (orders int, err error) {
	want := r.Document.ContentDigest()
	for order := range permutations(len(r.deltas)) {
		doc := NewDocument(base)
		for _, i := range append(slices.Clone(order), order...) {
			if doc, _, err = Merge(doc, r.deltas[i], epoch); err != nil {
				return orders, err
			}
		}
		if got := doc.ContentDigest(); got != want {
			return orders, fmt.Errorf("in the order %v, twice over, the content is %s; in the given order it is %s", order, got, want)
		}
		orders++
	}
	return orders, nil
}

func permutations(n int) func(yield func([]int) bool) {
	return func(yield func([]int) bool) {
		order := make([]int, n)
		for i := range order {
			order[i] = i
		}
		if n <= 5 {
			var place func(k int) bool
			place = func(k int) bool {
				if k == n {
					return yield(order)
				}
				for i := k; i < n; i++ {
					order[k], order[i] = order[i], order[k]
					if !place(k + 1) {
						return false
					}
					order[k], order[i] = order[i], order[k]
				}
				return true
			}
			place(0)
			return
		}
		for try := range 100 {
			rank := make([]canon.Digest, n)
			for i := range rank {
				rank[i] = canon.Sum([]byte(strconv.Itoa(try) + " " + strconv.Itoa(i)))
			}
			slices.SortFunc(order, func(a, b int) int { return slices.Compare(rank[a][:], rank[b][:]) })
			if !yield(order) {
				return
			}
		}
	}
}

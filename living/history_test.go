package living

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
	"selfsame.dev/selfsame/internal/canon"
)

// The full run is -rapid.checks=100000; without that flag the join properties see
// 3,000 random histories, to keep a plain go test quick.
func TestMain(m *testing.M) {
	flag.Parse()
	explicit := false
	flag.Visit(func(f *flag.Flag) { explicit = explicit || f.Name == "rapid.checks" })
	if !explicit {
		flag.Set("rapid.checks", "3000")
	}
	os.Exit(m.Run())
}

// joinFunc merges admitted facts into those of one axis; both are sorted by identity.
type joinFunc func(have, add []*Fact, limit int64) []*Fact

func realJoin(have, add []*Fact, limit int64) []*Fact {
	out, _ := join(have, add, limit)
	return out
}

// history is a list of deltas for one axis, and what to do with them.
type history struct {
	limit  int64
	deltas [][]*Fact
	order  []int // a permutation of deltas
	again  []int // deltas applied again at the end
	groups []int // cut points
}

var historyGen = rapid.Custom(func(t *rapid.T) history {
	h := history{limit: rapid.Int64Range(1, 4).Draw(t, "cap")}
	n := rapid.IntRange(1, 7).Draw(t, "deltas")
	for i := range n {
		turn := rapid.Int64Range(1, 6).Draw(t, "turn")
		var facts []*Fact
		for p := range rapid.IntRange(1, 4).Draw(t, "facts") {
			value := fmt.Sprint(rapid.IntRange(0, 5).Draw(t, "value"))
			source := fmt.Sprint("s", rapid.IntRange(0, 1).Draw(t, "source"))
			facts = append(facts, newFact("a", value, turn, int64(p), []Evidence{{Bytes: 1, SHA256: canon.Sum([]byte(source)), Source: source}}))
		}
		h.deltas = append(h.deltas, newDelta("o", map[string][]*Fact{"a": facts}).axes["a"])
		h.order = append(h.order, i)
	}
	h.order = rapid.Permutation(h.order).Draw(t, "order")
	h.again = rapid.SliceOfN(rapid.IntRange(0, n-1), 0, 6).Draw(t, "again")
	h.groups = rapid.SliceOfN(rapid.IntRange(0, n), 0, 3).Draw(t, "groups")
	slices.Sort(h.groups)
	return h
})

func show(facts []*Fact) string {
	var b strings.Builder
	for _, f := range facts {
		fmt.Fprintf(&b, "%s@%d.%d/%s ", f.value, f.turn, f.position, f.evidence[0].Source)
	}
	return b.String()
}

// broken names the first join property that a merge violates on a history, or "".
func broken(h history, merge joinFunc) string {
	apply := func(have []*Fact, deltas ...[]*Fact) []*Fact {
		for _, d := range deltas {
			have = merge(have, d, h.limit)
		}
		return have
	}
	unite := func(deltas [][]*Fact) []*Fact {
		return newDelta("o", map[string][]*Fact{"a": slices.Concat(deltas...)}).axes["a"]
	}
	pick := func(indexes []int) [][]*Fact {
		var out [][]*Fact
		for _, i := range indexes {
			out = append(out, h.deltas[i])
		}
		return out
	}
	differ := func(property string, got, want []*Fact) string {
		if equalFacts(got, want) {
			return ""
		}
		return fmt.Sprintf("%s: got %s, want %s", property, show(got), show(want))
	}

	straight := apply(nil, h.deltas...)
	if int64(len(straight)) > h.limit {
		return "bounded: " + show(straight)
	}
	if len(unite(h.deltas)) > 0 && len(straight) == 0 {
		return "nothing was learned"
	}
	for _, d := range h.deltas {
		once := apply(straight, d)
		if why := differ("applied again", once, straight); why != "" {
			return why
		}
	}
	if why := differ("other order", apply(nil, pick(h.order)...), straight); why != "" {
		return why
	}
	if why := differ("doubled", apply(apply(nil, pick(append(slices.Clone(h.order), h.again...))...), pick(h.again)...), straight); why != "" {
		return why
	}
	var grouped, nested []*Fact
	last := 0
	for _, cut := range append(slices.Clone(h.groups), len(h.deltas)) {
		if group := h.deltas[last:cut]; len(group) > 0 {
			grouped = apply(grouped, unite(group))
			nested = apply(nested, apply(nil, group...)) // a state joined as a whole
		}
		last = cut
	}
	if why := differ("grouped as deltas", grouped, straight); why != "" {
		return why
	}
	if why := differ("grouped as states", nested, straight); why != "" {
		return why
	}
	// The oracle: everything at once, by the definition in the package comment.
	all := unite(h.deltas)
	slices.SortFunc(all, func(a, b *Fact) int { return compareFacts(b, a) })
	all = all[:min(int64(len(all)), h.limit)]
	return differ("oracle", straight, unite([][]*Fact{all}))
}

func TestMergeIsAJoin(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h := historyGen.Draw(t, "history")
		if why := broken(h, realJoin); why != "" {
			t.Fatal(why)
		}
	})
}

// Merges that look right and are no joins must fail the same properties.
func TestJoinPropertiesCatchWrongMerges(t *testing.T) {
	byID := func(facts []*Fact) []*Fact { return newDelta("o", map[string][]*Fact{"a": facts}).axes["a"] }
	for name, merge := range map[string]func() joinFunc{
		"keep the last N applied": func() joinFunc {
			var applied []*Fact // in order of application
			return func(have, add []*Fact, limit int64) []*Fact {
				if have == nil {
					applied = nil
				}
				for _, f := range add {
					applied = slices.DeleteFunc(applied, func(old *Fact) bool { return old.id == f.id })
					applied = append(applied, f)
				}
				applied = applied[max(0, len(applied)-int(limit)):]
				return byID(slices.Clone(applied))
			}
		},
		"refuse what does not fit": func() joinFunc {
			return func(have, add []*Fact, limit int64) []*Fact {
				out := byID(slices.Concat(have, add))
				if int64(len(out)) > limit {
					if have == nil {
						return out[:limit]
					}
					return have
				}
				return out
			}
		},
		"keep where a fact was first seen": func() joinFunc {
			return func(have, add []*Fact, limit int64) []*Fact {
				out := slices.Clone(have)
				for _, f := range add {
					if !slices.ContainsFunc(out, func(old *Fact) bool { return old.id == f.id }) {
						out = append(out, f)
					}
				}
				return greatest(byID(out), int(limit))
			}
		},
		"cap before deduplicating": func() joinFunc {
			return func(have, add []*Fact, limit int64) []*Fact {
				all := slices.Concat(have, add)
				slices.SortFunc(all, func(a, b *Fact) int { return compareFacts(b, a) })
				return byID(all[:min(int64(len(all)), limit)])
			}
		},
		"append without a cap": func() joinFunc {
			return func(have, add []*Fact, limit int64) []*Fact { return byID(slices.Concat(have, add)) }
		},
		"toggle": func() joinFunc { // adding the same fact twice deletes it
			return func(have, add []*Fact, limit int64) []*Fact {
				out := slices.Clone(have)
				for _, f := range add {
					n := len(out)
					out = slices.DeleteFunc(out, func(old *Fact) bool { return old.id == f.id })
					if len(out) == n {
						out = append(out, f)
					}
				}
				return greatest(byID(out), int(limit))
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			for seed := range 3000 {
				if why := broken(historyGen.Example(seed), merge()); why != "" {
					t.Logf("caught by history %d: %s", seed, why)
					return
				}
			}
			t.Fatal("the wrong merge passes every property")
		})
	}
}

// The same law one level up: documents with every kind of axis, deltas in any order.
func TestDocumentsConverge(t *testing.T) {
	base := testBaseline(t)
	empty := NewDocument(base)
	rapid.Check(t, func(t *rapid.T) {
		var deltas []*Delta
		for range rapid.IntRange(1, 5).Draw(t, "deltas") {
			facts := map[string][]*Fact{}
			turn := rapid.Int64Range(1, 5).Draw(t, "turn")
			for p := range rapid.IntRange(1, 6).Draw(t, "facts") {
				axis := rapid.SampledFrom([]string{"language", "tools", "notes"}).Draw(t, "axis")
				value := fmt.Sprintf("%q", rapid.SampledFrom([]string{"a", "b", "c", "d", "e"}).Draw(t, "value"))
				facts[axis] = append(facts[axis], newFact(axis, value, turn, int64(p), []Evidence{{Bytes: 1, SHA256: canon.Sum(nil), Source: "s"}}))
			}
			deltas = append(deltas, newDelta(empty.owner, facts))
		}
		apply := func(deltas []*Delta) *Document {
			doc := empty
			for _, d := range deltas {
				before := doc.Bytes()
				next, mod, err := Merge(doc, d, "2026-01-01T00:00:00Z")
				if err != nil {
					t.Fatal(err)
				}
				if string(before) != string(doc.Bytes()) {
					t.Fatal("merge changed its input")
				}
				if (mod == nil) != (string(next.Bytes()) == string(before)) {
					t.Fatal("the modification does not tell whether something changed")
				}
				if mod != nil && (next.version != doc.version+1 || mod.PriorVersion != doc.version) {
					t.Fatalf("version %d after %d, prior %d", next.version, doc.version, mod.PriorVersion)
				}
				doc = next
			}
			return doc
		}
		straight := apply(deltas)
		shuffled := apply(rapid.Permutation(append(slices.Clone(deltas), deltas...)).Draw(t, "shuffled and doubled"))
		if straight.ContentDigest() != shuffled.ContentDigest() {
			t.Fatalf("straight %s\nshuffled %s", straight.encode(false), shuffled.encode(false))
		}
		back, err := DecodeDocument(straight.Bytes())
		if err != nil || back.Digest() != straight.Digest() {
			t.Fatalf("decoding what was encoded: %v", err)
		}
	})
}

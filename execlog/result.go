package execlog

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"unicode/utf8"
)

func (l *log) side() Side {
	s := Side{Name: l.name, SHA256: l.sha256, Encoding: l.encoding, Compressed: l.compressed, DigestFunction: l.hashFunction, Actions: len(l.spawns), UnknownEntries: map[string]int{}}
	for i := range l.spawns {
		if l.spawns[i].cacheHit {
			s.CacheHits++
		}
	}
	for kind, count := range l.unknown {
		s.UnknownEntries[strconv.Itoa(kind)] = count
	}
	return s
}

// result puts the units that differ, and their causes, into causal order.
func (n *analysis) result(names []Renamed) *Comparison {
	out := &Comparison{Format: Format, A: n.logA.side(), B: n.logB.side(), Configurations: names, Notes: n.notes(names), Causes: []Cause{}, Actions: []Action{}}
	var units []int
	for i := range n.units {
		if n.depth[i] >= 0 {
			units = append(units, i)
		} else {
			out.Counts.Equal++
		}
	}
	text := func(i int) (string, string, string) {
		s := n.spawnOf(n.units[i])
		return n.text(s.label), n.text(s.mnemonic), n.text(n.primary(s))
	}
	slices.SortStableFunc(units, func(i, j int) int {
		la, ma, oa := text(i)
		lb, mb, ob := text(j)
		return cmp.Or(cmp.Compare(n.depth[i], n.depth[j]), cmp.Compare(la, lb), cmp.Compare(ma, mb), cmp.Compare(oa, ob))
	})
	index := make([]int, len(n.units))
	for at, i := range units {
		index[i] = at
	}
	for _, i := range units {
		out.Actions = append(out.Actions, n.action(i, index))
		switch u := n.units[i]; {
		case u.b < 0:
			out.Counts.OnlyInA++
		case u.a < 0:
			out.Counts.OnlyInB++
		case len(n.own[i]) > 0:
			out.Counts.Causes++
		default:
			out.Counts.Consequences++
			if n.first[i] >= 0 {
				n.causes[n.first[i]].Consequences++
			}
		}
	}
	for _, c := range n.causes {
		c.Depth = len(n.units)
		c.Actions = []int{}
		for _, i := range c.units {
			c.Actions = append(c.Actions, index[i])
			c.Depth = min(c.Depth, int(n.depth[i]))
		}
		slices.Sort(c.Actions)
		out.Causes = append(out.Causes, c.Cause)
	}
	for _, c := range n.lateral {
		c.Actions = []int{}
		out.Causes = append(out.Causes, c)
	}
	for i := range out.Causes {
		if out.Causes[i].Suspects == nil {
			out.Causes[i].Suspects = []string{}
		}
	}
	slices.SortStableFunc(out.Causes, func(a, b Cause) int {
		return cmp.Or(cmp.Compare(a.Depth, b.Depth), cmp.Compare(b.Consequences, a.Consequences), cmp.Compare(len(b.Actions), len(a.Actions)),
			cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Subject, b.Subject), cmp.Compare(a.A, b.A), cmp.Compare(a.B, b.B))
	})
	out.Equal = len(out.Causes) == 0
	out.readable()
	return out
}

// readable quotes what is not UTF-8: JSON cannot hold it.
func (c *Comparison) readable() {
	fix := func(texts ...*string) {
		for _, t := range texts {
			if !utf8.ValidString(*t) {
				*t = strconv.QuoteToASCII(*t)
			}
		}
	}
	fix(&c.A.Name, &c.B.Name, &c.A.DigestFunction, &c.B.DigestFunction)
	for i := range c.Configurations {
		fix(&c.Configurations[i].A, &c.Configurations[i].B)
	}
	for i := range c.Notes {
		fix(&c.Notes[i])
	}
	for i := range c.Causes {
		cause := &c.Causes[i]
		fix(&cause.Subject, &cause.A, &cause.B, &cause.Origin, &cause.Next)
		for j := range cause.Suspects {
			fix(&cause.Suspects[j])
		}
	}
	for i := range c.Actions {
		a := &c.Actions[i]
		fix(&a.Label, &a.Mnemonic, &a.Output, &a.RunnerA, &a.RunnerB)
		for j := range a.Arguments {
			fix(&a.Arguments[j].A, &a.Arguments[j].B)
		}
		for j := range a.Outputs {
			fix(&a.Outputs[j].Path, &a.Outputs[j].A, &a.Outputs[j].B)
		}
	}
}

func (n *analysis) action(i int, index []int) Action {
	u := n.units[i]
	s := n.spawnOf(u)
	out := Action{Label: n.text(s.label), Mnemonic: n.text(s.mnemonic), Output: n.text(n.primary(s)), Side: "both", Cause: len(n.own[i]) > 0, Depth: int(n.depth[i]),
		Because: []int{}, Differs: []string{}, Arguments: []Argued{}, Outputs: []Produced{}}
	n.eachBecause(i, func(j int) { out.Because = append(out.Because, index[j]) })
	slices.Sort(out.Because)
	if u.a >= 0 {
		out.RunnerA = n.text(n.logA.spawns[u.a].runner)
	}
	if u.b >= 0 {
		out.RunnerB = n.text(n.logB.spawns[u.b].runner)
	}
	switch {
	case u.b < 0:
		out.Side = "a"
		return out
	case u.a < 0:
		out.Side = "b"
		return out
	}
	for bit, name := range facets {
		if n.facets[i]&(1<<bit) != 0 {
			out.Differs = append(out.Differs, name)
		}
	}
	a, b := &n.logA.spawns[u.a], &n.logB.spawns[u.b]
	if n.facets[i]&inArguments != 0 {
		for _, d := range n.argued(a, b) {
			if d.withheld {
				d.fullA, d.fullB = blank(d.fullA), blank(d.fullB)
			}
			out.Arguments = append(out.Arguments, Argued{d.index, d.fullA, d.fullB})
		}
	}
	if n.facets[i]&inOutputs != 0 {
		n.changes = n.setDiff(a.outputs, b.outputs, n.changes)
		for _, c := range n.changes {
			p := Produced{n.text(c.path), n.show(c.a), n.show(c.b)}
			if n.secretFile(p.Path) {
				p.A, p.B = blank(p.A), blank(p.B)
			}
			out.Outputs = append(out.Outputs, p)
		}
	}
	return out
}

func (n *analysis) notes(names []Renamed) []string {
	notes := []string{}
	for _, r := range names {
		notes = append(notes, fmt.Sprintf("the output folder %s of B was taken for %s of A: the options of the builds differ (compilation mode, platform, build settings)", r.B, r.A))
	}
	for _, l := range []*log{n.logA, n.logB} {
		for kind, count := range l.unknown {
			notes = append(notes, fmt.Sprintf("%s: %d entries of kind %d are unknown to this version: what they hold was not compared", l.name, count, kind))
		}
	}
	slices.Sort(notes)
	if n.logA.expanded() != n.logB.expanded() {
		notes = append(notes, "one log lists files one by one, the other holds trees: symlink actions and empty folders were not compared; make both with --execution_log_compact_file")
	}
	return notes
}

// Summary is what a failing command says of a comparison, in one line.
func (c *Comparison) Summary() string {
	if c.Equal {
		return "equal"
	}
	first := c.Causes[0]
	return fmt.Sprintf("they differ: %s, the first is %s %s", plural(len(c.Causes), "cause"), first.Kind.words(), clean(first.Subject))
}

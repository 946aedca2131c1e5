package execlog

import (
	"encoding/binary"
	"slices"
	"strings"
)

// What differs in a unit.
const (
	inArguments = 1 << iota
	inEnvironment
	inPlatform
	inExecution
	inInputs
	inTools
	inOutputs
	inDeclared
	inExit
)

var facets = []string{"arguments", "environment", "platform", "execution", "inputs", "tools", "outputs", "declared_outputs", "exit"}

// analysis goes from the units that differ back to what made them differ.
type analysis struct {
	*walker
	logA, logB *log
	units      []unit
	secrets    Secrets

	facets  []uint16
	madeBy  map[ref]int32 // unit by path of an output
	mapped  map[mappedFile]int32
	links   map[ref]ref // output of a symlink action -> its input
	because [][]byte    // by unit: units, as differences
	causes  []cause
	at      map[causeKey]int
	own     [][]int32 // by unit: causes
	depth   []int32
	first   []int32 // by unit: the cause that it leads back to
	changes []change
	tools   []change
	lateral []Cause // of Bazel's own actions
}

func (n *analysis) only(i int) bool { return n.units[i].a < 0 || n.units[i].b < 0 }

// differs reports that whoever reads the outputs of a unit may see another thing.
func (n *analysis) differs(i int) bool { return n.only(i) || n.facets[i]&(inOutputs|inDeclared) != 0 }

func (n *analysis) spawnOf(u unit) *spawn {
	if u.a >= 0 {
		return &n.logA.spawns[u.a]
	}
	return &n.logB.spawns[u.b]
}

// setDiff is what two sets do not agree on, in whatever way the logs hold them.
func (n *analysis) setDiff(a, b ref, to []change) []change {
	if a == b {
		return to[:0]
	}
	if n.logA.expanded() != n.logB.expanded() {
		return n.diffExpanded(a, b, to[:0])
	}
	return n.diff(a, b, to[:0])
}

func (n *analysis) compare(names []Renamed) *Comparison {
	n.facets = make([]uint16, len(n.units))
	n.madeBy = map[ref]int32{}
	n.mapped = map[mappedFile]int32{}
	n.links = map[ref]ref{}
	n.because = make([][]byte, len(n.units))
	n.own = make([][]int32, len(n.units))
	n.at = map[causeKey]int{}
	for i := range n.units {
		n.producers(i)
		n.look(i)
	}
	for _, l := range []*log{n.logA, n.logB} {
		for _, s := range l.symlinks {
			n.links[s.out] = s.in
		}
	}
	for i := range n.units {
		if n.only(i) || n.facets[i] != 0 {
			n.explain(i)
		}
	}
	n.symlinkActions()
	n.order()
	return n.result(names)
}

// producers notes what the spawns of a unit make.
func (n *analysis) producers(i int) {
	u := n.units[i]
	note := func(s *spawn) {
		for path := range n.each(s.listed) {
			n.madeBy[path] = int32(i)
		}
		n.epoch++
		n.reach(s.outputs, n.inA, &n.a)
		n.filesOf(n.a, func(ref) bool { return true }, func(f ref) {
			made := n.file(f)
			n.madeBy[made.path] = int32(i)
			if n.logA.expanded() || n.logB.expanded() {
				if path := mapPath(n.text(made.path)); path != "" {
					at := n.keepText(path)
					n.mapped[mappedFile{at, made.digest}] = int32(i)
					n.mapped[mappedFile{at, anyContent}] = int32(i)
				}
			}
		})
	}
	if u.a >= 0 {
		note(&n.logA.spawns[u.a])
	}
	if u.b >= 0 && (u.a < 0 || n.logA.spawns[u.a].outputs != n.logB.spawns[u.b].outputs) {
		note(&n.logB.spawns[u.b])
	}
}

// look finds which facets of a unit differ.
func (n *analysis) look(i int) {
	if n.only(i) {
		return
	}
	a, b := &n.logA.spawns[n.units[i].a], &n.logB.spawns[n.units[i].b]
	var found uint16
	set := func(facet uint16, differs bool) {
		if differs {
			found |= facet
		}
	}
	set(inArguments, a.args != b.args)
	set(inEnvironment, a.env != b.env)
	set(inPlatform, a.platform != b.platform)
	set(inExecution, a.timeout != b.timeout || a.remotable != b.remotable || a.cacheable != b.cacheable || a.remoteCacheable != b.remoteCacheable)
	set(inDeclared, a.listed != b.listed)
	set(inExit, a.exit != b.exit || a.status != b.status)
	set(inOutputs, len(n.setDiff(a.outputs, b.outputs, n.changes)) > 0)
	set(inInputs, len(n.setDiff(a.inputs, b.inputs, n.changes)) > 0)
	// With mapped paths the expanded forms do not mark the runfiles of tools.
	set(inTools, n.logA.expanded() == n.logB.expanded() && len(n.setDiff(a.tools, b.tools, n.tools)) > 0)
	n.facets[i] = found
}

// explain finds the causes that a unit has itself, and the units whose outputs it differs because of.
func (n *analysis) explain(i int) {
	u := n.units[i]
	if n.only(i) {
		n.onlyIn(i)
		return
	}
	a, b := &n.logA.spawns[u.a], &n.logB.spawns[u.b]
	found := n.facets[i]
	if found&inArguments != 0 {
		n.arguments(i, a, b)
	}
	if found&inEnvironment != 0 {
		n.named(i, Environment, a.env, b.env)
	}
	if found&inPlatform != 0 {
		n.named(i, Platform, a.platform, b.platform)
	}
	if found&inExecution != 0 {
		n.execution(i, a, b)
	}
	if found&inDeclared != 0 {
		n.declared(i, a, b)
	}
	if found&(inInputs|inTools) != 0 {
		n.inputs(i, a, b)
	}
	if len(n.own[i]) == 0 && len(n.because[i]) == 0 && !n.sourceModes(i, a) {
		if found&inExit != 0 {
			n.exit(i, a, b)
		} else {
			n.unrecorded(i, a, b)
		}
	}
}

// inputs divides the inputs that differ into outputs of units that differ, and causes.
func (n *analysis) inputs(i int, a, b *spawn) {
	n.changes = n.setDiff(a.inputs, b.inputs, n.changes)
	n.tools = n.setDiff(a.tools, b.tools, n.tools)
	var edges []int32
	for _, c := range n.changes {
		path := n.artifact(c.path)
		if maker, made := n.maker(path, c); made && maker != i && n.differs(maker) {
			edges = append(edges, int32(maker))
			continue
		}
		if n.inOtherFile(c) {
			continue // the other kind of file is the cause
		}
		_, tool := n.find(n.tools, n.text(c.path))
		n.inputCause(i, path, c, tool)
	}
	for _, t := range n.tools {
		if n.facets[i]&inTools == 0 {
			break
		}
		if _, differs := n.find(n.changes, n.text(t.path)); differs {
			continue
		}
		if maker, made := n.maker(n.artifact(t.path), t); made && maker != i && n.differs(maker) {
			edges = append(edges, int32(maker))
			continue
		}
		n.inputCause(i, n.artifact(t.path), t, true)
	}
	slices.Sort(edges)
	last := int32(0)
	for _, e := range slices.Compact(edges) {
		n.because[i] = binary.AppendUvarint(n.because[i], uint64(e-last))
		last = e
	}
}

// find looks for a path in changes, which are sorted by it.
func (n *analysis) find(changes []change, path string) (int, bool) {
	return slices.BinarySearchFunc(changes, path, func(c change, path string) int { return strings.Compare(n.text(c.path), path) })
}

// eachBecause calls f with the units that a unit differs because of.
func (n *analysis) eachBecause(i int, f func(int)) {
	at := 0
	for d := range numbers(n.because[i]) {
		at += int(d)
		f(at)
	}
}

// mappedFile is an output as actions see it that Bazel runs with mapped paths (--experimental_output_paths=strip), whose
// inputs the expanded forms list below bazel-out/cfg, whatever their configuration: its content tells which it is.
type mappedFile struct{ path, digest ref }

const anyContent = ^ref(0)

// maker is the unit that made a file.
func (n *analysis) maker(path ref, c change) (int, bool) {
	if by, made := n.madeBy[path]; made {
		return int(by), true
	}
	for _, f := range []ref{c.a, c.b} {
		if f != 0 {
			if by, made := n.mapped[mappedFile{path, n.file(f).digest}]; made {
				return int(by), true
			}
		}
	}
	return 0, false
}

// artifact follows runfiles paths and symlink actions to what an input is.
func (n *analysis) artifact(path ref) ref {
	for range 16 {
		if to, linked := n.links[path]; linked {
			path = to
			continue
		}
		if _, made := n.madeBy[path]; made {
			return path
		}
		from := n.fromRunfiles(path)
		if from == path {
			return path
		}
		path = from
	}
	return path
}

// order finds how deep each unit lies: after how many other differing ones. Where units wait for each other,
// which no build can do, the one that is met again counts as a cause.
func (n *analysis) order() {
	const white, grey = -1, -2
	n.depth = make([]int32, len(n.units))
	n.first = make([]int32, len(n.units))
	for i := range n.depth {
		n.depth[i], n.first[i] = white, -1
	}
	type frame struct {
		unit  int
		edges []int
	}
	var stack []frame
	push := func(i int) {
		n.depth[i] = grey
		f := frame{unit: i}
		n.eachBecause(i, func(j int) { f.edges = append(f.edges, j) })
		stack = append(stack, f)
	}
	for i := range n.units {
		if n.depth[i] != white || len(n.own[i]) == 0 && len(n.because[i]) == 0 {
			continue
		}
		push(i)
		for len(stack) > 0 {
			top := &stack[len(stack)-1]
			if len(top.edges) > 0 {
				next := top.edges[0]
				top.edges = top.edges[1:]
				if n.depth[next] == white {
					push(next)
				} else if n.depth[next] == grey && len(n.own[top.unit]) == 0 {
					n.waiting(top.unit, next)
				}
				continue
			}
			i := top.unit
			stack = stack[:len(stack)-1]
			depth, lead := int32(0), int32(-1)
			n.eachBecause(i, func(j int) {
				if n.depth[j] < 0 {
					return
				}
				depth = max(depth, n.depth[j]+1)
				if lead < 0 || n.depth[j] < n.depth[lead] {
					lead = int32(j)
				}
			})
			n.depth[i] = depth
			switch {
			case len(n.own[i]) > 0:
				n.first[i] = n.own[i][0]
			case lead >= 0:
				n.first[i] = n.first[lead]
			}
		}
	}
}

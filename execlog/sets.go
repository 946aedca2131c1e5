package execlog

import (
	"bytes"
	"cmp"
	"slices"
	"strings"
)

// change is a path that two sets do not agree on; a or b is 0 where one has nothing there.
type change struct {
	path ref
	a, b ref // files
}

// walker goes through sets of a store. Its marks are as large as the store, and reused.
type walker struct {
	*store
	inA, inB  []uint32
	epoch     uint32
	queue     []ref
	direct    []ref
	a, b      walk
	leftA     []ref
	leftB     []ref
	workspace [2]string // runfiles folders of the main repositories
}

// walk is what a set holds: sets, and the files right in it where it is one file.
type walk struct{ nodes, files []ref }

func newWalker(s *store, a, b *log) *walker {
	return &walker{store: s, inA: make([]uint32, len(s.items)), inB: make([]uint32, len(s.items)), workspace: [2]string{a.workspace, b.workspace}}
}

// reach marks and lists all sets that r holds.
func (w *walker) reach(r ref, marks []uint32, to *walk) {
	to.nodes, to.files = to.nodes[:0], to.files[:0]
	if r == 0 {
		return
	}
	w.queue = append(w.queue[:0], r)
	for len(w.queue) > 0 {
		at := w.queue[len(w.queue)-1]
		w.queue = w.queue[:len(w.queue)-1]
		if marks[at] == w.epoch {
			continue
		}
		marks[at] = w.epoch
		if isFile(w.tag(at)) {
			to.files = append(to.files, at)
			continue
		}
		to.nodes = append(to.nodes, at)
		w.direct = w.entries(at, w.direct[:0])
		for _, r := range w.direct {
			if !isFile(w.tag(r)) {
				w.queue = append(w.queue, r)
			}
		}
	}
}

// filesOf calls f with the files right in the sets that keep says.
func (w *walker) filesOf(k walk, keep func(node ref) bool, f func(file ref)) {
	for _, file := range k.files {
		if keep(file) {
			f(file)
		}
	}
	for _, node := range k.nodes {
		if !keep(node) {
			continue
		}
		w.direct = w.entries(node, w.direct[:0])
		for _, r := range w.direct {
			if isFile(w.tag(r)) {
				f(r)
			}
		}
	}
}

// diff appends what two sets do not agree on, by path. Sets that both hold are not looked into, unless a
// file that seems to be in one only could be in them.
func (w *walker) diff(a, b ref, to []change) []change {
	if a == b {
		return to
	}
	w.epoch++
	w.reach(a, w.inA, &w.a)
	w.reach(b, w.inB, &w.b)
	w.leftA, w.leftB = w.leftA[:0], w.leftB[:0]
	w.filesOf(w.a, func(n ref) bool { return w.inB[n] != w.epoch }, func(f ref) { w.leftA = append(w.leftA, f) })
	w.filesOf(w.b, func(n ref) bool { return w.inA[n] != w.epoch }, func(f ref) { w.leftB = append(w.leftB, f) })
	w.cancel()
	begin := len(to)
	to = w.pair(to)
	if !slices.ContainsFunc(to[begin:], func(c change) bool { return c.a == 0 || c.b == 0 }) {
		return to
	}
	// What is in one side's own sets only may be in a set of both.
	w.epoch++
	mark := func(f ref) { w.inA[f] = w.epoch }
	old := w.epoch - 1
	w.filesOf(w.a, func(n ref) bool { return w.inB[n] == old }, mark)
	return slices.DeleteFunc(to, func(c change) bool {
		return (c.a == 0 || c.b == 0) && w.inA[c.a|c.b] == w.epoch
	})
}

// cancel takes away what is left on both sides, and what is there twice.
func (w *walker) cancel() {
	slices.Sort(w.leftA)
	slices.Sort(w.leftB)
	a, b := slices.Compact(w.leftA), slices.Compact(w.leftB)
	w.leftA, w.leftB = w.leftA[:0], w.leftB[:0]
	for len(a) > 0 || len(b) > 0 {
		switch {
		case len(b) == 0 || len(a) > 0 && a[0] < b[0]:
			w.leftA = append(w.leftA, a[0])
			a = a[1:]
		case len(a) == 0 || b[0] < a[0]:
			w.leftB = append(w.leftB, b[0])
			b = b[1:]
		default:
			a, b = a[1:], b[1:]
		}
	}
}

// pair brings together what both sides have at one path.
func (w *walker) pair(to []change) []change {
	begin := len(to)
	for _, f := range w.leftA {
		to = append(to, change{w.file(f).path, f, 0})
	}
	for _, f := range w.leftB {
		to = append(to, change{w.file(f).path, 0, f})
	}
	mine := to[begin:]
	slices.SortStableFunc(mine, func(x, y change) int { return bytes.Compare(w.items[x.path], w.items[y.path]) })
	kept := mine[:0]
	for _, c := range mine {
		if n := len(kept); n > 0 && kept[n-1].path == c.path && (kept[n-1].b == 0 && c.a == 0) {
			kept[n-1].b = c.b
			continue
		}
		kept = append(kept, c)
	}
	return to[:begin+len(kept)]
}

// diffExpanded is diff where one log lists files one by one and the other holds runfiles as trees:
// each file at the path where an action sees it.
func (w *walker) diffExpanded(a, b ref, to []change) []change {
	left, right := w.expand(a, 0), w.expand(b, 1)
	if isMapped(left) != isMapped(right) {
		left, right = mapAll(left), mapAll(right)
	}
	begin := len(to)
	for path, f := range left {
		if other := right[path]; other == 0 || !w.sameContent(f, other) {
			to = append(to, change{w.keepText(path), f, other})
		}
	}
	for path, f := range right {
		if left[path] == 0 {
			to = append(to, change{w.keepText(path), 0, f})
		}
	}
	slices.SortFunc(to[begin:], func(x, y change) int { return bytes.Compare(w.items[x.path], w.items[y.path]) })
	return to
}

// mapPath is the path that an output has where Bazel maps paths, "" of what is none.
func mapPath(path string) string {
	c := configurationOf(path)
	if c == "" {
		return ""
	}
	return mappedOutputs + path[len(outputs)+len(c)+1:]
}

const mappedOutputs = outputs + "cfg/"

func isMapped(files map[string]ref) bool {
	for path := range files {
		if strings.HasPrefix(path, mappedOutputs) {
			return true
		}
	}
	return false
}

func mapAll(files map[string]ref) map[string]ref {
	out := make(map[string]ref, len(files))
	for path, f := range files {
		out[cmp.Or(mapPath(path), path)] = f
	}
	return out
}

func (w *walker) sameContent(a, b ref) bool {
	x, y := w.file(a), w.file(b)
	return x.tag == y.tag && x.digest == y.digest && x.size == y.size && x.target == y.target
}

// expand returns files by the path where an action sees them.
func (w *walker) expand(r ref, side int) map[string]ref {
	out := map[string]ref{}
	seen := map[ref]bool{}
	var visit func(r ref, place func(path string) []string)
	visit = func(r ref, place func(string) []string) {
		if r == 0 {
			return
		}
		tag := w.tag(r)
		if isFile(tag) {
			if tag == tagFile || tag == tagSymlink {
				for _, path := range place(w.text(w.file(r).path)) {
					out[path] = r
				}
			}
			return
		}
		if seen[r] {
			return
		}
		seen[r] = true
		switch tag {
		case tagRunfiles:
			t := w.runfiles(r)
			root := w.text(t.path) + "/"
			main := root + w.workspace[side] + "/"
			outer := seen
			seen = map[ref]bool{} // the same set may also be outside of the tree
			w.linked(t.links, main, visit)
			visit(t.set, func(path string) []string { return runfilesPaths(path, root, w.workspace[side], t.legacy) })
			seen = outer
			for _, e := range t.empty {
				visit(e, func(path string) []string {
					if _, there := out[path]; there {
						return nil
					}
					return []string{path}
				})
			}
			w.linked(t.rootLinks, root, visit)
			visit(t.mapping, func(path string) []string { return []string{path} })
		default:
			for _, e := range w.entries(r, nil) {
				visit(e, place)
			}
		}
	}
	visit(r, func(path string) []string { return []string{path} })
	return out
}

// linked visits what runfiles links name, at the links' own paths below root.
func (w *walker) linked(r ref, root string, visit func(ref, func(string) []string)) {
	if r == 0 {
		return
	}
	direct, sets := w.unlink(r)
	for _, s := range sets {
		w.linked(s, root, visit)
	}
	for _, l := range direct {
		visit(l.entry, func(string) []string { return []string{root + w.text(l.path)} })
	}
}

// runfilesPaths says where the artifact at path is in a tree of runfiles.
func runfilesPaths(path, root, workspace string, legacy bool) []string {
	rest := belowOutputs(path)
	external, isExternal := strings.CutPrefix(rest, "external/")
	if !isExternal {
		external, isExternal = strings.CutPrefix(rest, "../")
	}
	switch {
	case !isExternal:
		return []string{root + workspace + "/" + rest}
	case legacy:
		return []string{root + external, root + workspace + "/external/" + external}
	}
	return []string{root + external}
}

// belowOutputs takes bazel-out/CONFIGURATION/bin/ off a path.
func belowOutputs(path string) string {
	if configuration := configurationOf(path); configuration != "" {
		rest := path[len(outputs)+len(configuration)+1:]
		if _, below, ok := strings.Cut(rest, "/"); ok {
			return below
		}
	}
	return path
}

const outputs = "bazel-out/"

// configurationOf is the folder below bazel-out, "" where there is none.
func configurationOf(path string) string {
	rest, ok := strings.CutPrefix(path, outputs)
	if !ok {
		return ""
	}
	configuration, _, ok := strings.Cut(rest, "/")
	if !ok {
		return ""
	}
	return configuration
}

package execlog

import (
	"bytes"
	"cmp"
	"maps"
	"slices"
	"strings"
)

// unit is an action as both logs have it; a or b is -1 where only one has it.
type unit struct{ a, b int32 }

// primary is the first output of a spawn, by name.
func (s *store) primary(sp *spawn) ref {
	for r := range s.each(sp.listed) {
		return r
	}
	return 0
}

type key struct{ label, mnemonic, output ref }

func (s *store) key(sp *spawn) key { return key{sp.label, sp.mnemonic, s.primary(sp)} }

// match brings the actions of two logs together by target, mnemonic and first output, repeated ones (attempts of a
// test) in their order.
func match(st *store, a, b *log) []unit {
	inB := map[key][]int32{}
	for i := range b.spawns {
		k := st.key(&b.spawns[i])
		inB[k] = append(inB[k], int32(i))
	}
	units := make([]unit, 0, len(a.spawns))
	taken := make([]bool, len(b.spawns))
	for i := range a.spawns {
		k := st.key(&a.spawns[i])
		u := unit{int32(i), -1}
		if list := inB[k]; len(list) > 0 {
			u.b, inB[k] = list[0], list[1:]
			taken[u.b] = true
		}
		units = append(units, u)
	}
	for i := range b.spawns {
		if !taken[i] {
			units = append(units, unit{-1, int32(i)})
		}
	}
	return units
}

// Renamed is a configuration whose output folder is called otherwise in B.
type Renamed struct {
	A string `json:"a"`
	B string `json:"b"`
}

// configurations pairs output folders that only one log has with those of the other that hold most of the
// same outputs.
func configurations(st *store, a, b *log) []Renamed {
	inA, inB := st.configurations(a), st.configurations(b)
	type tail struct {
		label, mnemonic ref
		path            string
	}
	where := map[tail][]string{}
	each := func(l *log, own, other map[string]bool, f func(tail, string)) {
		for i := range l.spawns {
			path := st.text(st.primary(&l.spawns[i]))
			if c := configurationOf(path); c != "" && own[c] && !other[c] {
				f(tail{l.spawns[i].label, l.spawns[i].mnemonic, path[len(outputs)+len(c):]}, c)
			}
		}
	}
	each(a, inA, inB, func(t tail, c string) { where[t] = append(where[t], c) })
	if len(where) == 0 {
		return []Renamed{}
	}
	votes := map[Renamed]int{}
	each(b, inB, inA, func(t tail, c string) {
		for _, of := range where[t] {
			votes[Renamed{of, c}]++
		}
	})
	order := slices.SortedFunc(maps.Keys(votes), func(x, y Renamed) int {
		return cmp.Or(votes[y]-votes[x], cmp.Compare(x.A, y.A), cmp.Compare(x.B, y.B))
	})
	out := []Renamed{}
	for _, r := range order {
		if !slices.ContainsFunc(out, func(o Renamed) bool { return o.A == r.A || o.B == r.B }) {
			out = append(out, r)
		}
	}
	return out
}

func (s *store) configurations(l *log) map[string]bool {
	found := map[string]bool{}
	for i := range l.spawns {
		path := s.items[s.primary(&l.spawns[i])]
		if !bytes.HasPrefix(path, []byte(outputs)) {
			continue
		}
		rest := path[len(outputs):]
		if end := bytes.IndexByte(rest, '/'); end > 0 && !found[string(rest[:end])] {
			found[string(rest[:end])] = true
		}
	}
	return found
}

// renamer writes a log anew with its configurations called as in the other one.
type renamer struct {
	*store
	words *strings.Replacer
	texts map[ref]ref
	sets  map[ref]ref
	lists map[ref]ref
}

func rename(st *store, l *log, names []Renamed) {
	var words []string
	for _, n := range names {
		words = append(words, outputs+n.B+"/", outputs+n.A+"/")
	}
	r := &renamer{st, strings.NewReplacer(words...), map[ref]ref{}, map[ref]ref{}, map[ref]ref{}}
	for i := range l.spawns {
		s := &l.spawns[i]
		s.args, s.env, s.listed = r.list(s.args), r.list(s.env), r.list(s.listed)
		s.inputs, s.tools, s.outputs = r.set(s.inputs), r.set(s.tools), r.set(s.outputs)
	}
	for i := range l.symlinks {
		s := &l.symlinks[i]
		s.in, s.out = r.text(s.in), r.text(s.out)
	}
}

func (r *renamer) text(old ref) ref {
	made, done := r.texts[old]
	if !done {
		made = old
		if bytes.Contains(r.items[old], []byte(outputs)) {
			made = r.keepText(r.words.Replace(string(r.items[old])))
		}
		r.texts[old] = made
	}
	return made
}

func (r *renamer) list(old ref) ref {
	made, done := r.lists[old]
	if !done {
		var refs []ref
		for t := range r.each(old) {
			refs = append(refs, r.text(t))
		}
		made = r.store.list(refs)
		r.lists[old] = made
	}
	return made
}

// set renames the paths in a set or file.
func (r *renamer) set(old ref) ref {
	if old == 0 {
		return 0
	}
	made, done := r.sets[old]
	if done {
		return made
	}
	switch r.tag(old) {
	case tagSet:
		entries := r.entries(old, nil)
		for i, e := range entries {
			entries[i] = r.set(e)
		}
		made = r.store.set(entries)
	case tagLinks:
		direct, sets := r.unlink(old)
		for i, l := range direct {
			direct[i] = link{r.text(l.path), r.set(l.entry), r.set(l.mapping)}
		}
		for i, s := range sets {
			sets[i] = r.set(s)
		}
		made = r.links(direct, sets)
	case tagRunfiles:
		t := r.runfiles(old)
		t.path, t.set, t.links, t.rootLinks, t.mapping = r.text(t.path), r.set(t.set), r.set(t.links), r.set(t.rootLinks), r.set(t.mapping)
		for i, e := range t.empty {
			t.empty[i] = r.set(e)
		}
		made = r.keepRunfiles(t)
	default:
		f := r.file(old)
		f.path = r.text(f.path)
		if f.tag == tagMapping {
			f.target = r.text(f.target)
		}
		made = r.keepFile(f)
	}
	r.sets[old] = made
	return made
}

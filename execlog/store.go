package execlog

import (
	"encoding/binary"
	"hash/maphash"
	"iter"
	"slices"
)

// ref names what a [store] keeps; 0 is nothing, the empty text and the empty set alike.
type ref uint32

// Tags begin what the store keeps of files and sets. Text and lists have none: who holds a ref knows which it is.
const (
	tagFile     byte = iota + 1 // path, digest, size
	tagEmptyDir                 // path
	tagSymlink                  // path, target: an unresolved link
	tagMapping                  // path, target: a runfiles path that names an artifact
	tagSet                      // entries, sorted, as differences
	tagLinks                    // runfiles links: count, (path, entry, mapping)..., sets
	tagRunfiles                 // path, set, links, root links, mapping file, empty files...
)

// store keeps every distinct text, list, file and set of both logs once, so that equal things have equal refs and
// memory grows with what is distinct, not with what a log repeats.
type store struct {
	seed   maphash.Seed
	items  [][]byte
	hashes []uint32
	slots  []ref
	chunk  []byte
	size   int64
	limit  int64 // in bytes; see full
	buf    []byte
}

func newStore(limit int64) *store {
	return &store{seed: maphash.MakeSeed(), items: make([][]byte, 1), hashes: make([]uint32, 1), slots: make([]ref, 1<<12), limit: limit}
}

// full reports that the limit was passed: what was put in since is lost.
func (s *store) full() bool { return s.size > s.limit }

// keep returns the ref of b, which may be written over afterwards.
func (s *store) keep(b []byte) ref {
	if len(b) == 0 || s.full() {
		return 0
	}
	hash := uint32(maphash.Bytes(s.seed, b))
	mask := uint32(len(s.slots) - 1)
	at := hash & mask
	for ; s.slots[at] != 0; at = (at + 1) & mask {
		if r := s.slots[at]; s.hashes[r] == hash && string(s.items[r]) == string(b) {
			return r
		}
	}
	s.size += int64(len(b)) + itemCost
	if s.full() {
		return 0
	}
	if len(b) > cap(s.chunk)-len(s.chunk) {
		s.chunk = make([]byte, 0, max(chunkSize, len(b)))
	}
	begin := len(s.chunk)
	s.chunk = append(s.chunk, b...)
	r := ref(len(s.items))
	s.items = append(s.items, s.chunk[begin:len(s.chunk):len(s.chunk)])
	s.hashes = append(s.hashes, hash)
	s.slots[at] = r
	if len(s.items)*4 > len(s.slots)*3 {
		s.grow()
	}
	return r
}

const (
	chunkSize = 1 << 18
	itemCost  = 40 // bytes that an item costs beside its own
)

func (s *store) grow() {
	s.slots = make([]ref, 2*len(s.slots))
	mask := uint32(len(s.slots) - 1)
	for r := 1; r < len(s.items); r++ {
		at := s.hashes[r] & mask
		for s.slots[at] != 0 {
			at = (at + 1) & mask
		}
		s.slots[at] = ref(r)
	}
}

func (s *store) text(r ref) string { return string(s.items[r]) }

func (s *store) keepText(text string) ref {
	s.buf = append(s.buf[:0], text...)
	return s.keep(s.buf)
}

// list keeps refs in their order.
func (s *store) list(refs []ref) ref {
	s.buf = s.buf[:0]
	for _, r := range refs {
		s.buf = binary.AppendUvarint(s.buf, uint64(r))
	}
	return s.keep(s.buf)
}

// each yields the refs of a list.
func (s *store) each(list ref) iter.Seq[ref] { return numbers(s.items[list]) }

func numbers(b []byte) iter.Seq[ref] {
	return func(yield func(ref) bool) {
		for len(b) > 0 {
			v, n := binary.Uvarint(b)
			b = b[n:]
			if !yield(ref(v)) {
				return
			}
		}
	}
}

// pairs keeps names and values, in whatever order they came, by name.
func (s *store) pairs(refs []ref) ref {
	type pair struct{ name, value ref }
	sorted := make([]pair, 0, len(refs)/2)
	for i := 0; i+1 < len(refs); i += 2 {
		sorted = append(sorted, pair{refs[i], refs[i+1]})
	}
	slices.SortStableFunc(sorted, func(a, b pair) int { return slices.Compare(s.items[a.name], s.items[b.name]) })
	for i, p := range sorted {
		refs[2*i], refs[2*i+1] = p.name, p.value
	}
	return s.list(refs)
}

// file is one input or output, as far as a log records it: no mode, no time.
type file struct {
	tag    byte
	path   ref
	digest ref // of the raw digest; 0 for an empty file
	size   int64
	target ref
}

func (s *store) keepFile(f file) ref {
	if f.size == 0 { // logs may leave the digest of an empty file out
		f.digest = 0
	}
	s.buf = append(s.buf[:0], f.tag)
	for _, v := range []uint64{uint64(f.path), uint64(f.digest), uint64(f.size), uint64(f.target)} {
		s.buf = binary.AppendUvarint(s.buf, v)
	}
	return s.keep(s.buf)
}

func (s *store) file(r ref) file {
	b := s.items[r]
	var v [4]uint64
	at := 1
	for i := range v {
		value, n := binary.Uvarint(b[at:])
		v[i], at = value, at+n
	}
	return file{b[0], ref(v[0]), ref(v[1]), int64(v[2]), ref(v[3])}
}

func (s *store) tag(r ref) byte { return s.items[r][0] }

func isFile(tag byte) bool { return tag < tagSet }

// set keeps entries (files and sets) without order; a set of one is that one.
func (s *store) set(entries []ref) ref {
	slices.Sort(entries)
	entries = slices.Compact(entries)
	if len(entries) > 0 && entries[0] == 0 {
		entries = entries[1:]
	}
	if len(entries) < 2 {
		if len(entries) == 1 {
			return entries[0]
		}
		return 0
	}
	s.buf = append(s.buf[:0], tagSet)
	last := ref(0)
	for _, r := range entries {
		s.buf = binary.AppendUvarint(s.buf, uint64(r-last))
		last = r
	}
	return s.keep(s.buf)
}

// link is one runfiles link: where it is in the tree, and what it names.
type link struct{ path, entry, mapping ref }

func (s *store) links(direct []link, sets []ref) ref {
	slices.SortFunc(direct, func(a, b link) int { return slices.Compare(s.items[a.path], s.items[b.path]) })
	s.buf = binary.AppendUvarint(append(s.buf[:0], tagLinks), uint64(len(direct)))
	for _, l := range direct {
		for _, r := range []ref{l.path, l.entry, l.mapping} {
			s.buf = binary.AppendUvarint(s.buf, uint64(r))
		}
	}
	for _, r := range sets {
		s.buf = binary.AppendUvarint(s.buf, uint64(r))
	}
	return s.keep(s.buf)
}

// unlink is the reverse of links.
func (s *store) unlink(r ref) (direct []link, sets []ref) {
	b := s.items[r]
	count, n := binary.Uvarint(b[1:])
	for v := range numbers(b[1+n:]) {
		sets = append(sets, v)
	}
	for range count {
		direct = append(direct, link{sets[0], sets[1], sets[2]})
		sets = sets[3:]
	}
	return direct, sets
}

// runfiles is a tree of runfiles as the compact form has it.
type runfiles struct {
	path, set, links, rootLinks ref
	legacy                      bool // external files also at _main/external
	mapping                     ref  // the file _repo_mapping
	empty                       []ref
}

func (s *store) keepRunfiles(t runfiles) ref {
	s.buf = append(s.buf[:0], tagRunfiles)
	legacy := ref(0)
	if t.legacy {
		legacy = 1
	}
	for _, r := range append([]ref{t.path, t.set, t.links, t.rootLinks, legacy, t.mapping}, t.empty...) {
		s.buf = binary.AppendUvarint(s.buf, uint64(r))
	}
	return s.keep(s.buf)
}

func (s *store) runfiles(r ref) runfiles {
	all := slices.Collect(numbers(s.items[r][1:]))
	return runfiles{all[0], all[1], all[2], all[3], all[4] == 1, all[5], all[6:]}
}

// entries appends what a set holds directly: files and other sets.
func (s *store) entries(r ref, to []ref) []ref {
	b := s.items[r]
	switch b[0] {
	case tagSet:
		at := ref(0)
		for d := range numbers(b[1:]) {
			at += d
			to = append(to, at)
		}
	case tagLinks:
		direct, sets := s.unlink(r)
		for _, l := range direct {
			to = append(to, l.entry, l.mapping)
		}
		to = append(to, sets...)
	case tagRunfiles:
		t := s.runfiles(r)
		to = append(append(to, t.set, t.links, t.rootLinks, t.mapping), t.empty...)
	}
	return slices.DeleteFunc(to, func(r ref) bool { return r == 0 })
}

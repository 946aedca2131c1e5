package validate

import (
	"fmt"
	"slices"
	"strings"

	"selfsame.dev/selfsame/internal/canon"
	"selfsame.dev/selfsame/schemas"
)

// SubjectFormat names the format of a subject manifest.
const SubjectFormat = "subject-manifest.v1"

// Subject is a subject-manifest.v1: the state of every declared path, and every path that
// changed since the base. Its digest is that of its canonical form; any change of a declared
// path, of the base or of the scope moves it.
type Subject struct {
	Format string       `json:"format"`
	Base   canon.Digest `json:"base_sha256"`
	// Tree is the digest of everything in the folder, what did not change included: a stray file beside
	// the declared ones is another subject.
	Tree  canon.Digest `json:"tree_sha256"`
	Scope Scope        `json:"scope"`
	// Entries are the declared paths, sorted; they cover all of Changed.
	Entries    []Entry  `json:"entries"`
	Changed    []string `json:"changed"`
	OutOfScope []string `json:"out_of_scope"`
}

// Digest identifies the subject.
func (s Subject) Digest() (canon.Digest, error) { return canon.DigestOf(s) }

// ReadSubject decodes a subject-manifest.v1 and refuses one that no folder can have.
func ReadSubject(file string, raw []byte) (Subject, error) {
	var s Subject
	if err := schemas.DecodeCanonical(file, SubjectFormat, raw, &s); err != nil {
		return Subject{}, err
	}
	return s, canon.InFile(file, s.check())
}

// BuildSubject compares a folder with its base. Declared names the paths that the author says
// were touched; nil declares whatever changed. A change that is not declared is refused, as is a
// declared path that neither folder has. A change out of scope is recorded: it forbids a PASS.
func BuildSubject(dir, base string, declared []string, scope Scope) (Subject, error) {
	if err := scope.Check(); err != nil {
		return Subject{}, err
	}
	now, err := List(dir)
	if err != nil {
		return Subject{}, err
	}
	before, err := List(base)
	if err != nil {
		return Subject{}, err
	}
	s := Subject{Format: SubjectFormat, Scope: scope}
	if s.Tree, err = TreeDigest(now); err != nil {
		return Subject{}, err
	}
	if s.Base, err = TreeDigest(before); err != nil {
		return Subject{}, err
	}
	old := make(map[string]Entry, len(before))
	for _, e := range before {
		old[e.Path] = e
	}
	state := make(map[string]Entry, len(now))
	for _, e := range now {
		state[e.Path] = e
		if known, ok := old[e.Path]; !ok || known != e {
			s.Changed = append(s.Changed, e.Path)
		}
	}
	for _, e := range before {
		if _, ok := state[e.Path]; !ok {
			state[e.Path] = Entry{Path: e.Path, Kind: Deleted}
			s.Changed = append(s.Changed, e.Path)
		}
	}
	slices.Sort(s.Changed)
	if declared == nil {
		declared = s.Changed
	}
	declared = slices.Compact(slices.Sorted(slices.Values(declared)))
	for _, name := range declared {
		e, ok := state[name]
		if !ok {
			return Subject{}, &canon.InputError{File: dir, Key: name, Problem: "a declared path is neither in the folder nor in its base", Fix: "declare relative slash paths of files that are or were there"}
		}
		s.Entries = append(s.Entries, e)
	}
	var missing []string
	for _, name := range s.Changed {
		if _, ok := slices.BinarySearch(declared, name); !ok {
			missing = append(missing, name)
		}
		if !scope.Holds(name) {
			s.OutOfScope = append(s.OutOfScope, name)
		}
	}
	if len(missing) > 0 {
		return Subject{}, &canon.InputError{File: dir, Key: strings.Join(missing[:min(len(missing), 5)], ", "),
			Problem: fmt.Sprintf("%d changed paths are not declared", len(missing)), Fix: "declare every changed path, or undo the change"}
	}
	return s, nil
}

// Matches refuses a folder that is not the subject, in a declared path or in any other.
func (s Subject) Matches(dir string) error {
	now, err := List(dir)
	if err != nil {
		return err
	}
	return s.matches(dir, now)
}

func (s Subject) matches(dir string, now []Entry) error {
	state := make(map[string]Entry, len(now))
	for _, e := range now {
		state[e.Path] = e
	}
	for _, want := range s.Entries {
		have, ok := state[want.Path]
		if !ok {
			have = Entry{Path: want.Path, Kind: Deleted}
		}
		if have != want {
			return &canon.InputError{File: dir, Key: want.Path, Problem: fmt.Sprintf("the subject has a %s %s, the folder a %s %s", want.Kind, want.Digest, have.Kind, have.Digest),
				Fix: "judge the exact subject, or make a new manifest"}
		}
	}
	tree, err := TreeDigest(now)
	if err == nil && tree != s.Tree {
		err = &canon.InputError{File: dir, Key: "tree_sha256", Problem: fmt.Sprintf("the subject is %s, the folder %s: a path that is not declared was added, changed or removed", s.Tree, tree),
			Fix: "judge the exact subject, or make a new manifest"}
	}
	return err
}

// check refuses a manifest that [BuildSubject] cannot have made, however its digest reads.
func (s Subject) check() error {
	paths := make([]string, len(s.Entries))
	for i, e := range s.Entries {
		paths[i] = e.Path
		if e.Kind == Deleted && (e.Size != 0 || !e.Digest.IsZero()) {
			return &canon.InputError{Key: e.Path, Problem: "a deleted path has content", Fix: "make the manifest with selfsame rpi subject"}
		}
	}
	if !ascending(paths) || !ascending(s.Changed) {
		return &canon.InputError{Key: "entries", Problem: "paths are not sorted and unique", Fix: "make the manifest with selfsame rpi subject"}
	}
	var outside []string
	for _, name := range s.Changed {
		if _, ok := slices.BinarySearch(paths, name); !ok {
			return &canon.InputError{Key: name, Problem: "a changed path has no entry", Fix: "make the manifest with selfsame rpi subject"}
		}
		if !s.Scope.Holds(name) {
			outside = append(outside, name)
		}
	}
	if !slices.Equal(outside, s.OutOfScope) {
		return &canon.InputError{Key: "out_of_scope", Problem: "it is not what the scope says of the changed paths", Fix: "make the manifest with selfsame rpi subject"}
	}
	return s.Scope.Check()
}

func ascending(names []string) bool {
	for i := 1; i < len(names); i++ {
		if names[i-1] >= names[i] {
			return false
		}
	}
	return true
}

func sortEntries(entries []Entry) {
	slices.SortFunc(entries, func(a, b Entry) int { return strings.Compare(a.Path, b.Path) })
}

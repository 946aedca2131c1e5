package validate_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"selfsame.dev/selfsame/internal/canon"
	"selfsame.dev/selfsame/rpi/validate"
)

// write makes a file below dir, with its folders.
func write(t *testing.T, dir, name, data string) {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(data), 0o644); err != nil {
		t.Fatal(err)
	}
}

func refused(t *testing.T, what string, err error, part string) {
	t.Helper()
	var input *canon.InputError
	switch {
	case err == nil:
		t.Errorf("%s is accepted", what)
	case !errors.As(err, &input) || input.Fix == "" || !strings.Contains(err.Error(), part):
		t.Errorf("%s: %v, want a refusal that says %q and a fix", what, err, part)
	}
}

// The identity of an intent is that of its bytes (law R2): two spellings of one value are two
// intents, and a file that was edited is no intent any more.
func TestIntentIsItsBytes(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "intents")
	spaced := []byte("{\n  \"acceptance\": [\"works\"],\n  \"ref\": \"synthetic\"\n}\n")
	packed := []byte(`{"ref":"synthetic","acceptance":["works"]}`)
	path, digest, err := validate.SnapshotIntent(dir, spaced)
	if err != nil || filepath.Base(path) != digest.String()+".intent" || digest != canon.Sum(spaced) {
		t.Fatal(path, digest, err)
	}
	if raw, again, err := validate.ReadIntent(path); err != nil || string(raw) != string(spaced) || again != digest {
		t.Error(string(raw), again, err)
	}
	if samePath, same, err := validate.SnapshotIntent(dir, spaced); err != nil || same != digest || samePath != path {
		t.Error("storing twice:", samePath, same, err)
	}
	_, other, err := validate.SnapshotIntent(dir, packed)
	if err != nil || other == digest {
		t.Error("two spellings share an identity:", err)
	}
	// Control: a digest of the value would not tell them apart.
	a, _ := canon.Canonicalize(spaced)
	b, _ := canon.Canonicalize(packed)
	if canon.Sum(a) != canon.Sum(b) {
		t.Error("control: the two are not one value")
	}
	if err := os.Chmod(path, 0o644); err != nil {
		t.Fatal(err)
	}
	write(t, dir, filepath.Base(path), string(spaced)+" ")
	_, _, err = validate.ReadIntent(path)
	refused(t, "an edited intent", err, "its bytes have the digest")
	_, _, err = validate.SnapshotIntent(dir, spaced)
	refused(t, "storing over damaged bytes", err, "not those of its name")
	for _, raw := range []string{"", "\xff\x00 not JSON"} {
		if path, digest, err := validate.SnapshotIntent(dir, []byte(raw)); err != nil || digest != canon.Sum([]byte(raw)) {
			t.Errorf("%q: %s, %v", raw, path, err)
		}
	}
}

func TestScope(t *testing.T) {
	for _, tc := range []struct {
		include, exclude string
		name             string
		holds            bool
	}{
		{"**", "", "a/b/c.go", true},
		{"*", "", "a", true},
		{"*", "", "a/b", false},
		{"src/**", "", "src/a/b", true},
		{"src/**", "", "src", true},
		{"src/**", "", "srcs/a", false},
		{"src/**/*.go", "", "src/a.go", true},
		{"src/**/*.go", "", "src/x/y/a.go", true},
		{"src/**/*.go", "", "src/x/y/a.c", false},
		{"**/gen/**/x.pb", "", "a/gen/b/gen/c/x.pb", true},
		{"**/gen/*/x.pb", "", "a/gen/b/gen/c/x.pb", true},
		{"**/gen/*/x.pb", "", "a/gen/b/gen/c/d/x.pb", false},
		{"src/**", "src/**/*_test.go", "src/a/b_test.go", false},
		{"src/**", "src/**/*_test.go", "src/a/b.go", true},
		{"a[0-9]/?", "", "a7/x", true},
	} {
		s := validate.Scope{Include: []string{tc.include}}
		if tc.exclude != "" {
			s.Exclude = []string{tc.exclude}
		}
		if err := s.Check(); err != nil {
			t.Error(err)
		}
		if s.Holds(tc.name) != tc.holds {
			t.Errorf("%+v on %s: %v", s, tc.name, !tc.holds)
		}
	}
	for _, bad := range []string{"", "/abs", "a//b", "../x", "a/", "[", "./a"} {
		refused(t, bad, validate.Scope{Include: []string{bad}}.Check(), "pattern")
	}
	refused(t, "an empty scope", validate.Scope{}.Check(), "includes nothing")
}

var everything = validate.Scope{Include: []string{"**"}}

// trees makes a base and a changed copy of it.
func trees(t *testing.T) (dir, base string) {
	dir, base = t.TempDir(), t.TempDir()
	for _, tree := range []string{dir, base} {
		write(t, tree, "src/a.txt", "alpha")
		write(t, tree, "src/b.txt", "beta")
		write(t, tree, "run.sh", "#!/bin/sh\n")
		write(t, tree, ".git/config", tree)
		if err := os.Symlink("src/a.txt", filepath.Join(tree, "link")); err != nil {
			t.Fatal(err)
		}
	}
	write(t, dir, "src/a.txt", "alpha 2")
	write(t, dir, "new/c.txt", "gamma")
	if err := os.Remove(filepath.Join(dir, "src/b.txt")); err != nil {
		t.Fatal(err)
	}
	return dir, base
}

func build(t *testing.T, dir, base string, declared []string, scope validate.Scope) (validate.Subject, canon.Digest) {
	t.Helper()
	s, err := validate.BuildSubject(dir, base, declared, scope)
	if err != nil {
		t.Fatal(err)
	}
	digest, err := s.Digest()
	if err != nil {
		t.Fatal(err)
	}
	return s, digest
}

func TestSubject(t *testing.T) {
	dir, base := trees(t)
	s, digest := build(t, dir, base, nil, everything)
	if want := []string{"new/c.txt", "src/a.txt", "src/b.txt"}; !slices.Equal(s.Changed, want) || len(s.OutOfScope) != 0 || len(s.Entries) != 3 {
		t.Fatalf("%+v", s)
	}
	if e := s.Entries[2]; e.Kind != validate.Deleted || !e.Digest.IsZero() {
		t.Errorf("%+v", e)
	}
	if e := s.Entries[0]; e.Digest != canon.Sum([]byte("gamma")) || e.Size != 5 {
		t.Errorf("%+v", e)
	}
	raw, err := canon.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	again, err := validate.ReadSubject("s.json", raw)
	if d, _ := again.Digest(); err != nil || d != digest {
		t.Error(d, err)
	}
	if err := s.Matches(dir); err != nil {
		t.Error(err)
	}
	refused(t, "the base as the subject", s.Matches(base), "the folder a")
	// What is not declared is the subject too.
	for name, change := range map[string]func(dir string){
		"a stray file":      func(dir string) { write(t, dir, "stray", "x") },
		"an unchanged path": func(dir string) { write(t, dir, "run.sh", "#!/bin/false\n") },
		"a removed path": func(dir string) {
			if err := os.Remove(filepath.Join(dir, "link")); err != nil {
				t.Fatal(err)
			}
		},
	} {
		dir, _ := trees(t)
		if err := s.Matches(dir); err != nil {
			t.Errorf("control: %v", err)
		}
		change(dir)
		refused(t, name, s.Matches(dir), "not declared")
	}

	_, err = validate.BuildSubject(dir, base, []string{"src/a.txt", "new/c.txt"}, everything)
	refused(t, "an undeclared deletion", err, "src/b.txt: 1 changed paths are not declared")
	_, err = validate.BuildSubject(dir, base, append(slices.Clone(s.Changed), "no/such"), everything)
	refused(t, "a declared path that never was", err, "no/such")
	more, other := build(t, dir, base, append(slices.Clone(s.Changed), "run.sh", "run.sh"), everything)
	if len(more.Entries) != 4 || other == digest {
		t.Errorf("a declared unchanged path is not part of the subject: %+v", more)
	}
	scoped, _ := build(t, dir, base, nil, validate.Scope{Include: []string{"src/**"}})
	if !slices.Equal(scoped.OutOfScope, []string{"new/c.txt"}) {
		t.Errorf("out of scope: %v", scoped.OutOfScope)
	}
}

// Any change of a declared path moves the digest, and so does the base and the scope.
func TestAnyChangeMovesTheSubject(t *testing.T) {
	declared := []string{"src/a.txt", "src/b.txt", "new/c.txt", "run.sh", "link"}
	subject := func(change func(dir, base string)) (canon.Digest, error) {
		dir, base := trees(t)
		change(dir, base)
		s, err := validate.BuildSubject(dir, base, declared, everything)
		if err != nil {
			return canon.Digest{}, err
		}
		return s.Digest()
	}
	must := func(err error) {
		if err != nil {
			t.Fatal(err)
		}
	}
	first, err := subject(func(string, string) {})
	must(err)
	if same, err := subject(func(dir, _ string) { write(t, dir, ".git/HEAD", "other") }); err != nil || same != first {
		t.Errorf("control: equal trees differ: %v", err)
	}
	if same, err := subject(func(dir, _ string) { must(os.Mkdir(filepath.Join(dir, "empty"), 0o755)) }); err != nil || same != first {
		t.Errorf("control: an empty folder counts: %v", err)
	}
	for name, change := range map[string]func(dir, base string){
		"content":  func(dir, _ string) { write(t, dir, "src/a.txt", "alpha 3") },
		"exec bit": func(dir, _ string) { must(os.Chmod(filepath.Join(dir, "run.sh"), 0o755)) },
		"restored": func(dir, _ string) { write(t, dir, "src/b.txt", "beta") },
		"deletion": func(dir, _ string) { must(os.Remove(filepath.Join(dir, "run.sh"))) },
		"link target": func(dir, _ string) {
			must(os.Remove(filepath.Join(dir, "link")))
			must(os.Symlink("src/x.txt", filepath.Join(dir, "link")))
		},
		"link to file": func(dir, _ string) { must(os.Remove(filepath.Join(dir, "link"))); write(t, dir, "link", "src/a.txt") },
		"base":         func(_, base string) { write(t, base, "src/b.txt", "beta 0") },
	} {
		if moved, err := subject(change); err != nil || moved == first {
			t.Errorf("%s: the digest stays, %v", name, err)
		}
	}
	_, err = subject(func(dir, _ string) { write(t, dir, "stray", "x") })
	refused(t, "an undeclared new file", err, "stray")
	_, err = subject(func(dir, _ string) { must(syscall.Mkfifo(filepath.Join(dir, "fifo"), 0o644)) })
	refused(t, "a pipe", err, "fifo")
	_, err = subject(func(dir, _ string) { must(os.WriteFile(filepath.Join(dir, "\xff"), nil, 0o644)) })
	refused(t, "a name that is not UTF-8", err, "not UTF-8")
}

// A manifest that was edited and hashed again is refused where it contradicts itself.
func TestForgedSubject(t *testing.T) {
	dir, base := trees(t)
	for name, forge := range map[string]func(*validate.Subject){
		"uncovered":    func(s *validate.Subject) { s.Entries = s.Entries[1:] },
		"out of scope": func(s *validate.Subject) { s.Scope.Include = []string{"src/**"} },
		"unsorted":     func(s *validate.Subject) { s.Entries[0], s.Entries[1] = s.Entries[1], s.Entries[0] },
		"twice":        func(s *validate.Subject) { s.Entries = append(s.Entries, s.Entries[2]) },
		"deleted full": func(s *validate.Subject) { s.Entries[2].Size = 3 },
		"other format": func(s *validate.Subject) { s.Format = "subject-manifest.v2" },
		"kind":         func(s *validate.Subject) { s.Entries[0].Kind = "device" },
	} {
		s, _ := build(t, dir, base, nil, everything)
		forge(&s)
		raw, err := canon.Marshal(s)
		if err != nil {
			t.Fatal(err)
		}
		_, err = validate.ReadSubject("s.json", raw)
		refused(t, name, err, "s.json")
	}
	s, _ := build(t, dir, base, nil, everything)
	raw, _ := canon.Marshal(s)
	_, err := validate.ReadSubject("s.json", append(raw, '\n'))
	refused(t, "a line feed at the end", err, "not canonical")
}

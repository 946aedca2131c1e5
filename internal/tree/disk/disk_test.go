//go:build unix

package disk

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
	"pgregory.net/rapid"

	"selfsame.dev/selfsame/internal/canon"
	"selfsame.dev/selfsame/internal/tree"
)

// readers are all the ways to read a tree; they must not differ in anything.
var readers = []struct {
	name string
	with func(Options) Options
}{
	{"plain", func(o Options) Options { o.plain = true; return o }},
	{"fast, one worker", func(o Options) Options { o.Workers = 1; return o }},
	{"fast, one a CPU", func(o Options) Options { return o }},
	{"fast, many workers", func(o Options) Options { o.Workers = 9; return o }},
	{"fast, old system", func(o Options) Options { o.old = true; return o }},
}

// outcome is a result or an error in a form that can be compared.
func outcome(entries []tree.Entry, err error) string {
	if err != nil {
		return fmt.Sprintf("%T: %v", err, err)
	}
	var b strings.Builder
	for _, e := range entries {
		fmt.Fprintf(&b, "%s %d %s\n", e.Digest, e.Size, e.Path)
	}
	return b.String()
}

// hashAll reads root in every way and returns the one outcome.
func hashAll(t testing.TB, root string, opts Options) ([]tree.Entry, error) {
	t.Helper()
	entries, err := Hash(root, readers[0].with(opts))
	want := outcome(entries, err)
	for _, r := range readers[1:] {
		if diff := cmp.Diff(want, outcome(Hash(root, r.with(opts)))); diff != "" {
			t.Errorf("%s differs from %s (-plain +other):\n%s", r.name, readers[0].name, diff)
		}
	}
	return entries, err
}

// spec makes what is at one path: content of a file, or a kind and its argument.
type spec map[string]string

const (
	link   = "\x00link "
	fifo   = "\x00fifo"
	socket = "\x00socket"
	dir    = "\x00dir"
)

func build(t testing.TB, root string, s spec) string {
	t.Helper()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(os.MkdirAll(root, 0o777))
	for path, what := range s {
		name := filepath.Join(root, path)
		if what == dir {
			must(os.MkdirAll(name, 0o777))
			continue
		}
		must(os.MkdirAll(filepath.Dir(name), 0o777))
		switch {
		case strings.HasPrefix(what, link):
			must(os.Symlink(strings.TrimPrefix(what, link), name))
		case what == fifo:
			must(unix.Mkfifo(name, 0o666))
		case what == socket:
			bind(t, name)
		default:
			must(os.WriteFile(name, []byte(what), 0o666))
		}
	}
	return root
}

// bind leaves a socket at name, whose path may be too long for bind itself.
func bind(t testing.TB, name string) {
	t.Helper()
	short, err := os.MkdirTemp("", "s")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(short)
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: filepath.Join(short, "s"), Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	l.SetUnlinkOnClose(false)
	l.Close()
	if err := os.Rename(filepath.Join(short, "s"), name); err != nil {
		t.Fatal(err)
	}
}

func entriesOf(s spec) []tree.Entry {
	var list []tree.Entry
	for path, content := range s {
		list = append(list, tree.Entry{Path: path, Size: int64(len(content)), Digest: canon.Sum([]byte(content))})
	}
	slices.SortFunc(list, func(a, b tree.Entry) int { return strings.Compare(a.Path, b.Path) })
	return list
}

func TestHashReadsWhatIsThere(t *testing.T) {
	many := spec{}
	for i := range 550 { // more than one buffer of directory entries
		many[fmt.Sprintf("d/%s-%d", strings.Repeat("x", 240), i)] = fmt.Sprint(i)
	}
	large := spec{}
	for _, n := range []int{0, 1, bufferSize - 1, bufferSize, bufferSize + 1, 2 * bufferSize, 1<<20 - 1, 1 << 20, 3<<20 + 7} {
		large[fmt.Sprintf("n%d", n)] = strings.Repeat("0123456789abcdef!", n/17+1)[:n]
	}
	for name, s := range map[string]spec{
		"empty":      {},
		"order":      {"a-b": "1", "a.b/x": "2", "a/b": "3", "a/b-c": "4", "a0": "5", "B/z": "6", "é/é": "7", "z/y/x/w": "8", "z/y-/x": "9"},
		"odd names":  {"..a/...": "1", " ": "2", "a b/ c": "3", "[x]{y}*?": "4", "-": "5", "~": "6", "日本語/😀": "7"},
		"many":       many,
		"large":      large,
		"deep":       {strings.Repeat("d/", 100) + "f": "deep"},
		"long names": {strings.Repeat("n", 255) + "/" + strings.Repeat("m", 255): "long"},
	} {
		t.Run(name, func(t *testing.T) {
			root := build(t, t.TempDir(), s)
			got, err := hashAll(t, root, Options{})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(outcome(entriesOf(s), nil), outcome(got, nil)); diff != "" {
				t.Error(diff)
			}
		})
	}
	t.Run("empty folders are not part of a tree", func(t *testing.T) {
		got, err := hashAll(t, build(t, t.TempDir(), spec{"a/b/c": dir, "f": "1"}), Options{})
		if err != nil || len(got) != 1 {
			t.Errorf("%v, %v", got, err)
		}
	})
}

// Any tree that a disk can hold reads as the model says, whatever modes and times it has.
func TestHashAgreesWithModel(t *testing.T) {
	name := rapid.StringMatching(`[abé.-]{1,2}`).Filter(func(s string) bool { return s != "." && s != ".." })
	path := rapid.Custom(func(t *rapid.T) string {
		return strings.Join(rapid.SliceOfN(name, 1, 4).Draw(t, "elements"), "/")
	})
	parent := t.TempDir()
	run := 0
	rapid.Check(t, func(rt *rapid.T) {
		run++
		s := spec{}
		for _, p := range tree.Check(rapid.SliceOfNDistinct(path, 0, 20, rapid.ID).Draw(rt, "paths"), nil).Valid {
			s[p] = rapid.StringN(0, 9, -1).Draw(rt, "content")
		}
		for p, content := range s {
			s[p] = strings.TrimLeft(content, "\x00")
		}
		root := build(t, filepath.Join(parent, fmt.Sprint(run)), s)
		defer os.RemoveAll(root)
		for p := range s {
			os.Chmod(filepath.Join(root, p), 0o444)
			os.Chtimes(filepath.Join(root, p), time.Unix(1, 0), time.Unix(int64(run), 0))
		}
		got, err := hashAll(t, root, Options{})
		if want := outcome(entriesOf(s), nil); err != nil || outcome(got, nil) != want {
			rt.Fatalf("got %s, %v; want %s", outcome(got, nil), err, want)
		}
	})
}

// wantRefusals checks that err names exactly these paths, in order, and what it says.
func wantRefusals(t *testing.T, err error, want ...string) {
	t.Helper()
	var refusals tree.Refusals
	if !errors.As(err, &refusals) {
		t.Fatalf("got %v, want refusals", err)
	}
	var got []string
	for _, r := range refusals {
		got = append(got, r.Error())
		if r.Fix == "" {
			t.Errorf("%v: no fix", r)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	var input *canon.InputError
	if !errors.As(err, &input) {
		t.Error("refusals are not an InputError")
	}
}

func TestHashRefusesByName(t *testing.T) {
	outside := build(t, t.TempDir(), spec{"secret": "outside"})
	for _, tc := range []struct {
		name string
		tree spec
		want []string
	}{
		{"link to a file", spec{"a": "1", "d/l": link + "../a"}, []string{"d/l: is a symbolic link, not a regular file"}},
		{"link to a folder", spec{"d/a": "1", "l": link + "d"}, []string{"l: is a symbolic link, not a regular file"}},
		{"link outside", spec{"l": link + outside}, []string{"l: is a symbolic link, not a regular file"}},
		{"dangling link", spec{"l": link + "nowhere"}, []string{"l: is a symbolic link, not a regular file"}},
		{"link to itself", spec{"l": link + "l"}, []string{"l: is a symbolic link, not a regular file"}},
		{"FIFO", spec{"d/p": fifo}, []string{"d/p: is a FIFO, not a regular file"}},
		{"socket", spec{"d/s": socket}, []string{"d/s: is a socket, not a regular file"}},
		{"invalid UTF-8", spec{"a\xff": "1"}, []string{`"a\xff": the name is not valid UTF-8`}},
		{"invalid UTF-8 folder", spec{"\xff/a": "1"}, []string{`"\xff": the name is not valid UTF-8`}},
		{"not NFC", spec{"e\u0301": "1"}, []string{"\"e\\u0301\": the name is not in Unicode normalization form C"}},
		{"control character", spec{"a\nb": "1"}, []string{`"a\nb": the name holds the control character U+000A`}},
		{"backslash", spec{`a\b`: "1"}, []string{`a\b: the name holds a backslash`}},
		{"case of files", spec{"d/README": "1", "d/readme": "1"}, []string{"d/readme: the path d/readme collides with the file d/README when case is folded"}},
		{"case of folders", spec{"A/x": "1", "a/y": "1"}, []string{"a/y: the path a collides with the folder A when case is folded"}},
		{"all of them", spec{"z": fifo, "a/l": link + "x", "m/\xfe": "1", "K": "1", "k": "2", "ok": "3"}, []string{
			"a/l: is a symbolic link, not a regular file",
			"k: the path k collides with the file K when case is folded",
			`"m/\xfe": the name is not valid UTF-8`,
			"z: is a FIFO, not a regular file",
		}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, err := hashAll(t, build(t, t.TempDir(), tc.tree), Options{})
			wantRefusals(t, err, tc.want...)
			if got != nil {
				t.Error("entries beside refusals")
			}
		})
	}
	t.Run("device", func(t *testing.T) {
		_, err := hashAll(t, "/dev", Options{Selection: tree.Selection{Include: []string{"null"}}})
		wantRefusals(t, err, "null: is a device, not a regular file")
	})
	t.Run("path too long", func(t *testing.T) {
		root := t.TempDir()
		deep := strings.Repeat(strings.Repeat("d", 200)+"/", 6)
		build(t, root, spec{deep + "f": "1"})
		_, err := hashAll(t, root, Options{})
		var refusals tree.Refusals // the text of an error shortens so long a key
		if !errors.As(err, &refusals) || len(refusals) != 1 || refusals[0].Key != deep[:201*6-1] || refusals[0].Problem != "the path is longer than 1024 bytes" {
			t.Errorf("got %v", err)
		}
	})
}

func TestRootMustBeAFolder(t *testing.T) {
	parent := build(t, t.TempDir(), spec{"real/a": "1", "link": link + "real", "file": "1", "fifo": fifo})
	for _, root := range []string{"link", "link/", "link/.", "link/./", "file", "fifo"} {
		_, err := hashAll(t, parent+"/"+root, Options{})
		var input *canon.InputError
		if !errors.As(err, &input) || !strings.HasSuffix(input.Problem, ", not a folder") || !strings.Contains(input.File, strings.Trim(root, "/.")) {
			t.Errorf("%s: %v", root, err)
		}
	}
	if _, err := hashAll(t, parent+"/none", Options{}); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no root: %v", err)
	}
	if _, err := hashAll(t, "", Options{}); err == nil {
		t.Error("the empty name is the current folder")
	}
	if got, err := hashAll(t, parent+"/link/../real/", Options{}); err != nil || len(got) != 1 {
		t.Errorf("control: %v, %v", got, err)
	}
	if _, err := Hash(parent, Options{Selection: tree.Selection{Include: []string{"["}}}); err == nil {
		t.Error("a malformed pattern is accepted")
	}
}

// What the selection leaves out may be anything; what it might have meant may not.
func TestSelection(t *testing.T) {
	root := build(t, t.TempDir(), spec{
		".git/HEAD": link + "x", ".git/\xff": "1", ".git/p": fifo, ".git/README": "1", ".git/readme": "1",
		"src/a.py": "a", "src/a.pyc": "b", "src/__pycache__/a": socket, "doc": link + "src", "run/pipe": fifo,
	})
	for _, tc := range []struct {
		name             string
		include, exclude []string
		want             []string
		refused          []string
	}{
		{"excluded by name", nil, []string{".git/**", "**/__pycache__/**", "doc", "run/*"}, []string{"src/a.py", "src/a.pyc"},
			[]string{}},
		{"one pattern less", nil, []string{".git/**", "**/__pycache__/**", "run/**"}, nil,
			[]string{"doc: is a symbolic link, not a regular file"}},
		{"included folder alone", []string{"src/*.py"}, nil, []string{"src/a.py"}, nil},
		{"a link where a selected file could be", []string{"**/*.py"}, []string{".git/**", "run/**"}, nil,
			[]string{"doc: is a symbolic link, not a regular file", "src/__pycache__/a: is a socket, not a regular file"}},
		{"nothing", []string{"none"}, nil, []string{}, nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, err := hashAll(t, root, Options{Selection: tree.Selection{Include: tc.include, Exclude: tc.exclude}})
			if len(tc.refused) > 0 {
				wantRefusals(t, err, tc.refused...)
				return
			}
			paths := []string{}
			for _, e := range got {
				paths = append(paths, e.Path)
			}
			if diff := cmp.Diff(tc.want, paths); err != nil || diff != "" {
				t.Error(err, diff)
			}
		})
	}
}

// The tree changes in the middle of a read; each reader gets its own copy.
func TestHashRefusesWhatChanges(t *testing.T) {
	content := strings.Repeat("x", 3*bufferSize)
	old := time.Unix(1e9, 0)
	for _, tc := range []struct {
		name   string
		at     string // when this is open
		change func(root string) error
		want   string
		fast   bool // only the fast reader can see it
	}{
		{"grows", "a", func(root string) error { return os.WriteFile(root+"/a", []byte(content+"y"), 0o666) }, "a: changed while it was read", false},
		{"shrinks", "a", func(root string) error { return os.Truncate(root+"/a", 5) }, "a: changed while it was read", false},
		{"same size", "a", func(root string) error { return os.WriteFile(root+"/a", []byte("y"+content[1:]), 0o666) }, "a: changed while it was read", false},
		{"same size and time", "a", func(root string) error {
			return errors.Join(os.WriteFile(root+"/a", []byte("y"+content[1:]), 0o666), os.Chtimes(root+"/a", old, old))
		}, "a: changed while it was read", true},
		{"file added", "d", func(root string) error { return os.WriteFile(root+"/d/new", nil, 0o666) }, "d: changed while it was read", false},
		{"file removed", ".", func(root string) error { return os.Remove(root + "/a") }, ".: changed while it was read", false},
		{"next becomes a link", "a", func(root string) error {
			return errors.Join(os.Remove(root+"/b"), os.Symlink("/etc/passwd", root+"/b"))
		}, "b: is a symbolic link, not a regular file", false},
		{"next becomes a FIFO", "a", func(root string) error {
			return errors.Join(os.Remove(root+"/b"), unix.Mkfifo(root+"/b", 0o666))
		}, "b: is a FIFO, not a regular file", false},
		{"next becomes a socket", "a", func(root string) error {
			bind(t, root+"/s")
			return os.Rename(root+"/s", root+"/b")
		}, "b: is a socket, not a regular file", false},
		{"next is gone", "a", func(root string) error { return os.Remove(root + "/b") }, "b: changed while it was read", false},
	} {
		for _, r := range readers {
			if r.name == "plain" && tc.fast || !strings.Contains(r.name, "one worker") && strings.HasPrefix(tc.name, "next") && r.name != "plain" {
				continue // with more workers b is read before a changes it
			}
			t.Run(tc.name+"/"+r.name, func(t *testing.T) {
				root := build(t, t.TempDir(), spec{"a": content, "b": "b", "d/c": "c"})
				for _, path := range []string{"a", "b", "d/c", "d", "."} {
					if err := os.Chtimes(filepath.Join(root, path), old, old); err != nil {
						t.Fatal(err)
					}
				}
				opts := r.with(Options{})
				if _, err := Hash(root, opts); err != nil {
					t.Fatalf("control: %v", err)
				}
				opts.opened = func(key string) {
					if key == tc.at {
						if err := tc.change(root); err != nil {
							t.Error(err)
						}
					}
				}
				_, err := Hash(root, opts)
				wantRefusals(t, err, tc.want)
			})
		}
	}
}

// A folder that becomes a link after it was listed is not followed, neither for itself nor
// for a folder in it.
func TestFolderBecomesALink(t *testing.T) {
	for _, r := range readers {
		for _, when := range []string{"a", "d/c"} {
			for _, target := range []string{"inside", "outside"} {
				t.Run(r.name+"/at "+when+", "+target, func(t *testing.T) {
					root := build(t, t.TempDir(), spec{"a": "1", "d/c": "2", "d/e/f": "3"})
					if target == "outside" {
						target = build(t, t.TempDir(), spec{"c": "4", "e/f": "other"})
					}
					opts := r.with(Options{})
					opts.Workers = 1
					if _, err := Hash(root, opts); err != nil {
						t.Fatalf("control: %v", err)
					}
					opened := map[string]bool{}
					opts.opened = func(key string) {
						opened[key] = true
						if key == when {
							if err := errors.Join(os.Rename(root+"/d", root+"/inside"), os.Symlink(target, root+"/d")); err != nil {
								t.Error(err)
							}
						}
					}
					_, err := Hash(root, opts)
					var refusals tree.Refusals
					if !errors.As(err, &refusals) || len(refusals) != 1 || !strings.HasPrefix(refusals[0].Key, "d") {
						t.Errorf("%v, want a refusal of d or d/e", err)
					}
					if r.name != "plain" && opened["d/e"] { // the plain reader may go on in the folder it has open
						t.Error("what is behind the link was opened")
					}
				})
			}
		}
	}
}

// Files of one folder are read at a time when a worker has nothing else to do. Which worker is first
// is up to the scheduler, so a busy machine gets several tries.
func TestFilesAreShared(t *testing.T) {
	root := build(t, t.TempDir(), spec{"a": "1", "b": "2"})
	shared := func(workers int) bool {
		met := make(chan string)
		var together atomic.Bool
		opts := Options{Workers: workers}
		opts.opened = func(key string) {
			if key == "." {
				return
			}
			select {
			case met <- key:
				together.Store(true)
			case <-met:
			case <-time.After(time.Second):
			}
		}
		if _, err := Hash(root, opts); err != nil {
			t.Error(err)
		}
		return together.Load()
	}
	if shared(1) {
		t.Error("control: one worker reads two files at a time")
	}
	for try := 0; !shared(2); try++ {
		if try == 10 {
			t.Fatal("two workers never read two files at a time")
		}
	}
}

// Failures of the system are not refusals and come first; what two workers find is said once.
func TestSettle(t *testing.T) {
	refused := faults{{"d", changed("d")}, {"b", changed("b")}, {"d", changed("d")}}
	_, err := refused.settle(nil)
	wantRefusals(t, err, "b: changed while it was read", "d: changed while it was read")
	_, err = append(refused, fault{"c", failed("c", &fs.PathError{Op: "open", Path: "/above/c", Err: unix.EIO})}).settle(nil)
	var input *canon.InputError
	if errors.As(err, &input) || !errors.Is(err, unix.EIO) || err.Error() != "read c: input/output error" {
		t.Errorf("an error of the system becomes %v", err)
	}
}

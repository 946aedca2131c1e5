package disk_test

import (
	"bytes"
	"encoding/hex"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"selfsame.dev/selfsame/internal/canon"
	"selfsame.dev/selfsame/internal/tree"
	hash "selfsame.dev/selfsame/internal/tree/disk"
	"selfsame.dev/selfsame/manifest/bundle"
	"selfsame.dev/selfsame/manifest/bundle/disk"
)

// folder makes a folder of files.
func folder(t testing.TB, files map[string]string) string {
	t.Helper()
	root := filepath.Join(t.TempDir(), "tree")
	for path, content := range files {
		put(t, filepath.Join(root, path), content)
	}
	return root
}

func put(t testing.TB, name, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

var sample = map[string]string{"a": "1", "a-b/c": "2", "a-b.c": "3", "d/e/f/g": "4", "d/e/h": "", "d/i": "5", "z/é": "6"}

func create(t testing.TB, root string, selection tree.Selection) ([]byte, bundle.Summary) {
	t.Helper()
	var out bytes.Buffer
	w, err := bundle.Compress(&out, "default")
	if err != nil {
		t.Fatal(err)
	}
	s, err := disk.Create(w, root, selection)
	if err := errors.Join(err, w.Close()); err != nil {
		t.Fatal(err)
	}
	return out.Bytes(), s
}

func extract(data []byte, target string) (bundle.Summary, error) {
	return disk.Extract(bytes.NewReader(data), bundle.DefaultLimits, target, nil)
}

// refused checks that err is a refusal that speaks of problem.
func refused(t testing.TB, err error, problem string) {
	t.Helper()
	var input *canon.InputError
	if !errors.As(err, &input) || !strings.Contains(err.Error(), problem) || input.Fix == "" {
		t.Errorf("%v, want a refusal that speaks of %q, with a fix", err, problem)
	}
}

func names(t testing.TB, dir string) []string {
	t.Helper()
	list, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, e := range list {
		out = append(out, e.Name())
	}
	return out
}

// The digest of the tree in a bundle is that of the folder, before and after; modes, times and the umask have no say.
func TestThereAndBack(t *testing.T) {
	root := folder(t, sample)
	data, s := create(t, root, tree.Selection{})
	if err := os.Chmod(filepath.Join(root, "a"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Chtimes(filepath.Join(root, "d/i"), time.Unix(1, 0), time.Unix(1, 0)); err != nil {
		t.Fatal(err)
	}
	if again, same := create(t, root, tree.Selection{}); !bytes.Equal(again, data) || same != s {
		t.Error("modes and times change the bundle")
	}
	old := unix.Umask(0o077)
	defer unix.Umask(old)
	target := filepath.Join(t.TempDir(), "out")
	if got, err := extract(data, target); err != nil || got != s {
		t.Fatalf("%+v, %v, want %+v", got, err, s)
	}
	entries, err := hash.Hash(target, hash.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if sum, err := tree.Summarize(entries); err != nil || sum != s.Tree || len(entries) != len(sample) {
		t.Errorf("%+v, %v, want %+v", sum, err, s.Tree)
	}
	err = filepath.WalkDir(target, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		want := fs.FileMode(0o644)
		if d.IsDir() {
			want = 0o755
		}
		if err == nil && info.Mode().Perm() != want {
			t.Errorf("%s has mode %v", path, info.Mode())
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
	if list := names(t, filepath.Dir(target)); len(list) != 1 {
		t.Errorf("left beside it: %v", list)
	}
	part, _ := create(t, root, tree.Selection{Include: []string{"d/**"}, Exclude: []string{"d/e/h"}})
	target = filepath.Join(t.TempDir(), "part")
	if s, err := extract(part, target); err != nil || s.Tree.FileCount != 2 {
		t.Errorf("%+v, %v", s, err)
	}
}

// Nothing that is not a file of the tree, and no tree that changes, gets into a bundle.
func TestCreateRefuses(t *testing.T) {
	for name, tc := range map[string]struct {
		plant   func(at string) error
		problem string
	}{
		"link":          {func(at string) error { return os.Symlink("a", at) }, "new: is a symbolic link"},
		"dangling link": {func(at string) error { return os.Symlink("none", at) }, "new: is a symbolic link"},
		"FIFO":          {func(at string) error { return unix.Mkfifo(at, 0o600) }, "new: is a FIFO"},
		"collision":     {func(at string) error { return os.WriteFile(filepath.Join(filepath.Dir(at), "A"), nil, 0o600) }, "collides"},
	} {
		t.Run(name, func(t *testing.T) {
			root := folder(t, sample)
			if err := tc.plant(filepath.Join(root, "new")); err != nil {
				t.Fatal(err)
			}
			_, err := disk.Create(io.Discard, root, tree.Selection{})
			refused(t, err, tc.problem)
		})
	}
	for name, change := range map[string]func(at string) error{
		"content": func(at string) error { return os.WriteFile(at, []byte("x"), 0o600) },
		"longer":  func(at string) error { return os.WriteFile(at, []byte("6+"), 0o600) },
		"a FIFO":  func(at string) error { return errors.Join(os.Remove(at), unix.Mkfifo(at, 0o600)) },
		"a link to other content": func(at string) error {
			return errors.Join(os.Remove(at), os.Symlink("../a", at))
		},
	} {
		t.Run("changed to "+name, func(t *testing.T) {
			root := folder(t, sample)
			done := false
			_, err := disk.Create(writer(func(p []byte) (int, error) { // after the digests were taken
				if done {
					return len(p), nil
				}
				done = true
				return len(p), change(filepath.Join(root, "z/é"))
			}), root, tree.Selection{})
			refused(t, err, "changed while it was read")
		})
	}
}

type writer func([]byte) (int, error)

func (w writer) Write(p []byte) (int, error) { return w(p) }

// Every hostile bundle of the vectors is refused, and leaves nothing: no target, no sibling, nothing outside.
func TestExtractHostile(t *testing.T) {
	raw, err := os.ReadFile("../../../fixtures/bundle/vectors.json")
	if err != nil {
		t.Fatal(err)
	}
	var v struct {
		Format string `json:"format"`
		Valid  []any  `json:"valid"`
		Bad    []struct {
			Name    string `json:"name"`
			Hex     string `json:"hex"`
			Problem string `json:"problem"`
		} `json:"invalid"`
	}
	if err := canon.Decode(raw, &v); err != nil || len(v.Bad) < 60 {
		t.Fatal(len(v.Bad), err)
	}
	for _, tc := range v.Bad {
		data, err := hex.DecodeString(tc.Hex)
		if err != nil {
			t.Fatal(err)
		}
		outer := t.TempDir()
		inner := filepath.Join(outer, "inner")
		if err := os.Mkdir(inner, 0o755); err != nil {
			t.Fatal(err)
		}
		_, err = extract(data, filepath.Join(inner, "out"))
		refused(t, err, tc.Problem)
		if list := append(names(t, inner), names(t, outer)[1:]...); len(list) > 0 {
			t.Errorf("%s: left %v", tc.Name, list)
		}
	}
}

func TestExtractTarget(t *testing.T) {
	data, s := create(t, folder(t, sample), tree.Selection{})
	for name, tc := range map[string]struct {
		plant func(at string) error
		ok    bool
	}{
		"control: nothing":      {func(string) error { return nil }, true},
		"control: empty folder": {func(at string) error { return os.Mkdir(at, 0o755) }, true},
		"folder with a file": {func(at string) error {
			return errors.Join(os.Mkdir(at, 0o755), os.WriteFile(filepath.Join(at, "mine"), []byte("mine"), 0o644))
		}, false},
		"file":          {func(at string) error { return os.WriteFile(at, []byte("mine"), 0o644) }, false},
		"link":          {func(at string) error { return os.Symlink(".", at) }, false},
		"dangling link": {func(at string) error { return os.Symlink("none", at) }, false},
	} {
		t.Run(name, func(t *testing.T) {
			parent := t.TempDir()
			target := filepath.Join(parent, "out")
			if err := tc.plant(target); err != nil {
				t.Fatal(err)
			}
			before := names(t, parent)
			got, err := extract(data, target)
			if tc.ok {
				if err != nil || got != s {
					t.Errorf("%+v, %v", got, err)
				}
				return
			}
			refused(t, err, "is not an empty folder")
			if after := names(t, parent); strings.Join(after, " ") != strings.Join(before, " ") {
				t.Errorf("left %v", after)
			}
		})
	}
	// One that is filled while the bundle is read keeps what it got.
	target := filepath.Join(t.TempDir(), "out")
	_, err := disk.Extract(bytes.NewReader(data), bundle.DefaultLimits, target, func(bundle.Summary) error {
		put(t, filepath.Join(target, "mine"), "mine")
		return nil
	})
	refused(t, err, "is not an empty folder")
	if list := append(names(t, target), names(t, filepath.Dir(target))...); strings.Join(list, " ") != "mine out" {
		t.Errorf("left %v", list)
	}
	// And what is not accepted does not appear.
	unwanted := errors.New("unwanted")
	target = filepath.Join(t.TempDir(), "out")
	if _, err := disk.Extract(bytes.NewReader(data), bundle.DefaultLimits, target, func(bundle.Summary) error { return unwanted }); !errors.Is(err, unwanted) {
		t.Error(err)
	}
	if list := names(t, filepath.Dir(target)); len(list) > 0 {
		t.Errorf("left %v", list)
	}
}

// A folder that is replaced by a link while it is filled leads nothing outside.
func TestExtractNeverOutside(t *testing.T) {
	// The first file is larger than all buffers, so that the folder is there before the second is read.
	data, err := func() ([]byte, error) {
		var out bytes.Buffer
		_, err := disk.Create(&out, folder(t, map[string]string{"d/1": strings.Repeat("x", 1<<20), "d/2": "y", "d/e/3": "z"}), tree.Selection{})
		return out.Bytes(), err
	}()
	if err != nil {
		t.Fatal(err)
	}
	parent, outside := t.TempDir(), t.TempDir()
	swapped := false
	r := reader(func(p []byte) (int, error) {
		if list, _ := filepath.Glob(filepath.Join(parent, ".out.*", "d")); len(list) == 1 && !swapped {
			swapped = true
			if err := errors.Join(os.Rename(list[0], filepath.Join(parent, "moved")), os.Symlink(outside, list[0])); err != nil {
				t.Error(err)
			}
		}
		n := copy(p, data)
		data = data[n:]
		if n == 0 {
			return 0, io.EOF
		}
		return n, nil
	})
	if _, err := disk.Extract(r, bundle.DefaultLimits, filepath.Join(parent, "out"), nil); err != nil {
		t.Log(err)
	}
	if list := names(t, outside); !swapped || len(list) > 0 {
		t.Errorf("swapped %v, written outside: %v", swapped, list)
	}
	if list := names(t, filepath.Join(parent, "moved")); len(list) < 2 {
		t.Errorf("control: the folder that was moved got %v", list)
	}
}

type reader func([]byte) (int, error)

func (r reader) Read(p []byte) (int, error) { return r(p) }

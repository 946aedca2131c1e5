//go:build unix

package disk

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"selfsame.dev/selfsame/internal/canon"
	"selfsame.dev/selfsame/internal/tree"
)

// layout is what Bazel makes of a workspace: the workspace itself, the exec root that
// stages its top by links, and a sandbox that stages each input by a link.
type layout struct{ top, workspace, execRoot, sandbox string }

func newLayout(t *testing.T, workspace spec) layout {
	t.Helper()
	top, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	l := layout{top, top + "/home/work", top + "/out/execroot/_main", top + "/out/sandbox/linux-sandbox/7/execroot/_main"}
	build(t, l.workspace, workspace)
	staged := spec{}
	items, err := os.ReadDir(l.workspace)
	if err != nil {
		t.Fatal(err)
	}
	for _, item := range items {
		staged[item.Name()] = link + filepath.Join(l.workspace, item.Name())
	}
	build(t, l.execRoot, staged)
	return l
}

// stage makes the sandbox for exec paths.
func (l layout) stage(t *testing.T, paths ...string) {
	t.Helper()
	inputs := spec{}
	for _, path := range paths {
		inputs[path] = link + l.execRoot + "/" + path
	}
	build(t, l.sandbox, inputs)
}

func listed(paths ...string) []File {
	var list []File
	for _, path := range paths {
		list = append(list, File{"in/" + path, path})
	}
	return list
}

// hashFilesAll calls HashFiles with every reader.
func hashFilesAll(t *testing.T, list []File, base string, opts Options) ([]tree.Entry, error) {
	t.Helper()
	entries, err := HashFiles(list, base, readers[0].with(opts))
	for _, r := range readers[1:] {
		if diff := cmp.Diff(outcome(entries, err), outcome(HashFiles(list, base, r.with(opts)))); diff != "" {
			t.Errorf("%s differs:\n%s", r.name, diff)
		}
	}
	return entries, err
}

func TestHashFilesInEveryLayout(t *testing.T) {
	source := spec{"README.md": "top", "fixtures/a/b.txt": "b", "fixtures/c": "c", "z": "z"}
	l := newLayout(t, source)
	build(t, l.execRoot, spec{"bazel-out/k8-fastbuild/bin/gen/g": "generated"})
	// Repositories: fetched, local (a link), and one whose top is planted by links, behind a link as in the exec root.
	build(t, l.top, spec{
		"out/external/fetched+/p/q": "q", "home/local/p/q": "q2", "out/external/local+": link + l.top + "/home/local",
		"home/planted/p/q": "q3", "home/planted/f": "f", "out/external/planted+/p": link + l.top + "/home/planted/p", "out/external/planted+/f": link + l.top + "/home/planted/f",
	})
	build(t, l.execRoot, spec{"external/fetched+": link + l.top + "/out/external/fetched+", "external/local+": link + l.top + "/out/external/local+", "external/planted+": link + l.top + "/out/external/planted+"})

	paths := []string{
		"README.md", "fixtures/a/b.txt", "fixtures/c", "z", "bazel-out/k8-fastbuild/bin/gen/g",
		"external/fetched+/p/q", "external/local+/p/q", "external/planted+/p/q", "external/planted+/f",
	}
	want := entriesOf(spec{
		"in/README.md": "top", "in/fixtures/a/b.txt": "b", "in/fixtures/c": "c", "in/z": "z", "in/bazel-out/k8-fastbuild/bin/gen/g": "generated",
		"in/external/fetched+/p/q": "q", "in/external/local+/p/q": "q2", "in/external/planted+/p/q": "q3", "in/external/planted+/f": "f",
	})
	l.stage(t, paths...)
	for name, base := range map[string]string{"sandbox": l.sandbox, "exec root": l.execRoot} {
		got, err := hashFilesAll(t, listed(paths...), base, Options{})
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if diff := cmp.Diff(outcome(want, nil), outcome(got, nil)); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
	got, err := hashFilesAll(t, listed(paths[:4]...), l.workspace, Options{})
	if err != nil || len(got) != 4 {
		t.Errorf("workspace: %v, %v", got, err)
	}

	t.Run("path mapping", func(t *testing.T) {
		build(t, l.sandbox, spec{"bazel-out/cfg/bin/gen/g": link + l.execRoot + "/bazel-out/k8-fastbuild/bin/gen/g"})
		if _, err := hashFilesAll(t, listed("bazel-out/cfg/bin/gen/g"), l.sandbox, Options{}); err != nil {
			t.Error(err)
		}
	})
	t.Run("current folder by a link", func(t *testing.T) {
		t.Chdir(l.sandbox)
		for _, base := range []string{"", ".", "/proc/self/cwd"} {
			if _, err := os.Stat(base); base != "" && err != nil {
				continue // only Linux has the last one
			}
			if got, err := hashFilesAll(t, listed(paths...), base, Options{}); err != nil || len(got) != len(want) {
				t.Errorf("base %q: %v, %v", base, got, err)
			}
		}
	})
	t.Run("selection is over logical paths", func(t *testing.T) {
		list := append(listed("z", "fixtures/c"), File{"skip/none", "no/such/file"})
		got, err := hashFilesAll(t, list, l.sandbox, Options{Selection: tree.Selection{Exclude: []string{"skip/**", "in/z"}}})
		if err != nil || len(got) != 1 || got[0].Path != "in/fixtures/c" {
			t.Errorf("%v, %v", got, err)
		}
	})
	t.Run("same as the folder", func(t *testing.T) {
		var list []File
		for path := range source {
			list = append(list, File{path, path})
		}
		files, err := HashFiles(list, l.sandbox, Options{})
		folder, err2 := Hash(l.workspace, Options{})
		if diff := cmp.Diff(outcome(folder, err2), outcome(files, err)); diff != "" {
			t.Error(diff)
		}
	})
}

// A link in the source tree is refused by name, however Bazel stages it.
func TestHashFilesRefusesSourceLinks(t *testing.T) {
	elsewhere := build(t, t.TempDir(), spec{"d/f": "outside", "execroot/x/d/f": "outside"})
	for _, tc := range []struct {
		name, path string
		source     spec
		want       string // behind "in/PATH: "
	}{
		{"file", "d/l", spec{"d/l": link + "f", "d/f": "1"}, "is a symbolic link, not a regular file"},
		{"dangling", "d/l", spec{"d/l": link + "nowhere"}, "is a symbolic link, not a regular file"},
		{"loop", "d/l", spec{"d/l": link + "l"}, "is a symbolic link, not a regular file"},
		{"absolute", "d/f", spec{"d/f": link + elsewhere + "/d/f"}, "is a symbolic link, not a regular file"},
		{"absolute, into an exec root", "d/f", spec{"d/f": link + elsewhere + "/execroot/x/d/f"}, "is a symbolic link, not a regular file"},
		{"folder", "d/sub/f", spec{"d/sub": link + "real", "d/real/f": "1"}, "is listed below d/sub, a symbolic link"},
		{"folder outside", "d/e/f", spec{"d/e": link + elsewhere + "/d"}, "is listed below d/e, a symbolic link"},
		{"top file", "l", spec{"l": link + "f", "f": "1"}, "is a symbolic link, not a regular file"},
		{"top folder", "d/f", spec{"d": link + "real", "real/f": "1"}, "is listed below d, a symbolic link"},
		{"top folder outside", "d/f", spec{"d": link + elsewhere + "/d"}, "is listed below d, a symbolic link"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			l := newLayout(t, tc.source)
			l.stage(t, tc.path)
			for name, base := range map[string]string{"sandbox": l.sandbox, "exec root": l.execRoot, "workspace": l.workspace} {
				_, err := hashFilesAll(t, listed(tc.path), base, Options{})
				t.Log(name)
				wantRefusals(t, err, "in/"+tc.path+": "+tc.want)
			}
			// The folder itself is refused too, so both routes agree.
			if _, err := Hash(l.workspace, Options{}); err == nil {
				t.Error("control: Hash accepts the workspace")
			}
		})
	}
}

func TestHashFilesRefusesForeignStaging(t *testing.T) {
	l := newLayout(t, spec{"d/f": "1", "d/g": "2", "d/e/f": "3"})
	for _, tc := range []struct {
		name, path, target string
		want               string
	}{
		{"another file", "d/f", l.execRoot + "/d/g", "is a symbolic link, not a regular file"},
		{"relative", "d/f", "../../../../../../execroot/_main/d/f", "is a symbolic link, not a regular file"},
		{"not clean", "d/f", l.execRoot + "/d/../d/f", "is a symbolic link, not a regular file"},
		{"another name", "f", l.execRoot + "/d/g", "is a symbolic link, not a regular file"},
		{"past the exec root", "d/f", l.workspace + "/d/f", "is a symbolic link, not a regular file"},
		{"no file there", "d/h", l.execRoot + "/d/h", "is a symbolic link, not a regular file"},
		{"a folder", "d/e", l.execRoot + "/d/e", "is a folder, not a regular file"},
		{"other output", "bazel-out/cfg/bin/g", l.execRoot + "/bazel-out/cfg/bin/h", "is a symbolic link, not a regular file"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			sandbox := build(t, l.top+"/"+strings.ReplaceAll(tc.name, " ", "-")+"/execroot/_main", spec{tc.path: link + tc.target})
			_, err := hashFilesAll(t, listed(tc.path), sandbox, Options{})
			wantRefusals(t, err, "in/"+tc.path+": "+tc.want)
		})
	}
	t.Run("not an exec root", func(t *testing.T) {
		base := build(t, l.top+"/elsewhere/_main", spec{"d/f": link + l.execRoot + "/d/f"})
		_, err := hashFilesAll(t, listed("d/f"), base, Options{})
		wantRefusals(t, err, "in/d/f: is a symbolic link, not a regular file")
	})
	t.Run("a sandbox folder that is a link", func(t *testing.T) {
		base := build(t, l.top+"/s/execroot/_main", spec{"x/d": link + l.execRoot + "/d"})
		_, err := hashFilesAll(t, listed("x/d/f"), base, Options{})
		wantRefusals(t, err, "in/x/d/f: is listed below x/d, a symbolic link")
	})
}

func TestHashFilesRefusesBadLists(t *testing.T) {
	base := build(t, t.TempDir(), spec{"a": "1", "b": "2", "d/c": "3", "p": fifo})
	for _, tc := range []struct {
		name string
		list []File
		want []string
	}{
		{"twice", []File{{"x", "a"}, {"x", "b"}}, []string{"x: the path is there twice"}},
		{"case", []File{{"X", "a"}, {"x", "b"}}, []string{"x: the path x collides with the file X when case is folded"}},
		{"logical name", []File{{"../x", "a"}}, []string{"../x: the path has the element .."}},
		{"absolute", []File{{"x", base + "/a"}}, []string{"x: is listed at " + base + "/a, not a clean relative path"}},
		{"outside", []File{{"x", "../a"}}, []string{"x: is listed at ../a, not a clean relative path"}},
		{"not clean", []File{{"x", "d//c"}, {"y", "./a"}, {"z", ""}}, []string{
			"x: is listed at d//c, not a clean relative path", "y: is listed at ./a, not a clean relative path", `z: is listed at , not a clean relative path`}},
		{"missing", []File{{"x", "no"}, {"y", "a/b"}, {"ok", "a"}}, []string{"x: is listed at no, where no file is", "y: is listed at a/b, where no file is"}},
		{"not a file", []File{{"x", "d"}, {"y", "p"}}, []string{"x: is a folder, not a regular file", "y: is a FIFO, not a regular file"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, err := hashFilesAll(t, tc.list, base, Options{})
			wantRefusals(t, err, tc.want...)
		})
	}
	if got, err := hashFilesAll(t, nil, base, Options{}); err != nil || len(got) != 0 {
		t.Errorf("no files: %v, %v", got, err)
	}
	// One file may stand at two places.
	if got, err := hashFilesAll(t, []File{{"x", "a"}, {"w", "a"}}, base, Options{}); err != nil || len(got) != 2 || got[0].Digest != canon.Sum([]byte("1")) {
		t.Errorf("control: %v, %v", got, err)
	}
	if _, err := hashFilesAll(t, nil, base+"/none", Options{}); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no base: %v", err)
	}
}

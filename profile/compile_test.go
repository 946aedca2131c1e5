package profile_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"selfsame.dev/selfsame/internal/canon"
	"selfsame.dev/selfsame/manifest"
	"selfsame.dev/selfsame/manifest/leotest"
	"selfsame.dev/selfsame/manifest/source"
	"selfsame.dev/selfsame/profile"
	"selfsame.dev/selfsame/schemas"
)

// listing gives every path below dir with its mode and content.
func listing(t *testing.T, dir string) map[string]string {
	t.Helper()
	out := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		relative, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		text := info.Mode().String()
		if info.Mode().IsRegular() {
			data, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			text += " " + string(data)
		}
		out[filepath.ToSlash(relative)] = text
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func compiled(t *testing.T) (*manifest.Manifest, manifest.Sources, string) {
	t.Helper()
	m, s := leotest.Build(t, leotest.Copy(t, repository))
	return m, s, compile(t, m, s)
}

func compile(t *testing.T, m *manifest.Manifest, s manifest.Sources) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "profile")
	if err := profile.Compile(m, s.Template, dir, profile.Options{}); err != nil {
		t.Fatal(err)
	}
	return dir
}

// The profile is exactly what the manifest gives, with declared modes whatever the umask; the parts of
// a template that are not identity are absent.
func TestCompile(t *testing.T) {
	m, s, first := compiled(t)
	want := listing(t, first)
	var top []string
	for path := range want {
		if !strings.Contains(path, "/") && path != "." {
			top = append(top, path)
		}
	}
	slices.Sort(top)
	if exact := []string{"SOUL.md", "config.yaml", "database-tools", "identity.json", "plugins", "profile-manifest.json", "skills"}; !slices.Equal(top, exact) {
		t.Errorf("top level %v, want %v", top, exact)
	}
	for path, text := range want {
		mode := "-rw-r--r--"
		switch {
		case strings.HasPrefix(text, "d"):
			mode = "drwxr-xr-x"
		case path == "database-tools/leo-read-only-query":
			mode = "-rwxr-xr-x"
		}
		if !strings.HasPrefix(text, mode) {
			t.Errorf("%s has mode %.10s, want %s", path, text, mode)
		}
	}
	for _, planted := range leotest.Credentials(t, repository).Planted {
		for path, text := range want {
			if found := leotest.Leaks([]byte(text), planted.Value); len(found) > 0 {
				t.Errorf("%s holds %v", path, found)
			}
		}
	}
	for i, mask := range []int{0, 0o077, 0o027} {
		dir := filepath.Join(t.TempDir(), "profile")
		old := syscall.Umask(mask)
		empty := i == 1
		var err error
		if empty {
			err = os.Mkdir(dir, 0o700)
		}
		if err == nil {
			err = profile.Compile(m, s.Template, dir, profile.Options{Durable: i == 0})
		}
		syscall.Umask(old)
		if err != nil {
			t.Fatal(err)
		}
		have := listing(t, dir)
		if fmt.Sprint(have) != fmt.Sprint(want) {
			t.Errorf("umask %o gives another profile", mask)
		}
		if differences, err := profile.Verify(dir, m); err != nil || len(differences) > 0 {
			t.Errorf("%v, %v", differences, err)
		}
	}
	var doc profile.Document
	data := []byte(strings.SplitN(want["profile-manifest.json"], " ", 2)[1])
	if err := schemas.DecodeCanonical("profile-manifest.json", "profile-manifest.v1", data, &doc); err != nil {
		t.Fatal(err)
	}
	if doc.IdentitySHA256 != m.IdentitySHA256 || len(doc.Files) != 15 {
		t.Errorf("%+v", doc)
	}
	var view manifest.IdentityDocument
	if err := schemas.DecodeCanonical("identity.json", manifest.ViewFormat, []byte(strings.SplitN(want["identity.json"], " ", 2)[1]), &view); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"identity.json": want["identity.json"], "SOUL.md": want["SOUL.md"]} {
		if !strings.Contains(text, "synthetic_noncanonical_fixture") || !strings.Contains(text, m.Identity.InputsSHA256.String()) {
			t.Errorf("%s is without label or provenance", name)
		}
	}
}

// nothing is left beside target after a compilation that failed.
func nothingLeft(t *testing.T, target string) {
	t.Helper()
	list, err := os.ReadDir(filepath.Dir(target))
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range list {
		if strings.HasPrefix(entry.Name(), ".") {
			t.Errorf("%s is left behind", entry.Name())
		}
	}
}

func TestCompileRefusesTargets(t *testing.T) {
	m, s := leotest.Build(t, leotest.Copy(t, repository))
	for name, prepare := range map[string]func(target string) error{
		"file in it": func(target string) error {
			return errors.Join(os.Mkdir(target, 0o755), os.WriteFile(filepath.Join(target, "state.db"), nil, 0o644))
		},
		"folder in it":        func(target string) error { return os.MkdirAll(filepath.Join(target, "sessions"), 0o755) },
		"a file":              func(target string) error { return os.WriteFile(target, nil, 0o644) },
		"a link to a folder":  func(target string) error { return os.Symlink(filepath.Dir(target), target) },
		"a dangling link":     func(target string) error { return os.Symlink("nowhere", target) },
		"a profile already":   func(target string) error { return profile.Compile(m, s.Template, target, profile.Options{}) },
		"no folder around it": func(target string) error { return os.Remove(filepath.Dir(target)) },
	} {
		t.Run(name, func(t *testing.T) {
			around := filepath.Join(t.TempDir(), "around")
			if err := os.Mkdir(around, 0o755); err != nil {
				t.Fatal(err)
			}
			target := filepath.Join(around, "profile")
			if err := prepare(target); err != nil {
				t.Fatal(err)
			}
			var before map[string]string
			if name != "no folder around it" {
				before = listing(t, around)
			}
			err := profile.Compile(m, s.Template, target, profile.Options{})
			var input *canon.InputError
			if err == nil || before != nil && !errors.As(err, &input) {
				t.Fatalf("%v is no refusal", err)
			}
			if before != nil && fmt.Sprint(listing(t, around)) != fmt.Sprint(before) {
				t.Error("something changed")
			}
		})
	}
}

// A template other than the pinned one is refused while it is copied, and nothing of it becomes visible.
func TestCompileRefusesTemplates(t *testing.T) {
	for _, tc := range []struct {
		name    string
		change  func(template string) error
		problem string
	}{
		{"changed skill", func(template string) error {
			return os.WriteFile(filepath.Join(template, "skills/refuse-and-explain/SKILL.md"), []byte("changed"), 0o644)
		}, "where the manifest pins"},
		{"longer tool", func(template string) error {
			f, err := os.OpenFile(filepath.Join(template, "database-tools/leo-read-only-query"), os.O_APPEND|os.O_WRONLY, 0)
			if err != nil {
				return err
			}
			_, err = f.WriteString("#")
			return errors.Join(err, f.Close())
		}, "where the manifest pins"},
		{"missing plugin", func(template string) error {
			return os.Remove(filepath.Join(template, "plugins/leo-reply-guard/plugin.yaml"))
		}, "missing in the profile template"},
		{"unknown name", func(template string) error { return os.WriteFile(filepath.Join(template, "hooks.yaml"), nil, 0o644) }, "allowlist"},
		{"dangling link", func(template string) error { return os.Symlink("nowhere", filepath.Join(template, "cache")) }, "symbolic link"},
		{"link in a skill", func(template string) error {
			return os.Symlink("SKILL.md", filepath.Join(template, "skills/leo-voice/other.md"))
		}, "symbolic link"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			root := leotest.Copy(t, repository)
			m, _ := leotest.Build(t, root)
			template := leotest.Paths(root).ProfileTemplate
			if err := tc.change(template); err != nil {
				t.Fatal(err)
			}
			changed, err := source.Template(template)
			if err != nil {
				t.Fatal(err)
			}
			target := filepath.Join(t.TempDir(), "profile")
			err = profile.Compile(m, changed, target, profile.Options{})
			var input *canon.InputError
			if !errors.As(err, &input) || !strings.Contains(err.Error(), tc.problem) {
				t.Errorf("%v, want it to say %q", err, tc.problem)
			}
			if _, err := os.Lstat(target); !errors.Is(err, fs.ErrNotExist) {
				t.Error("the target is there")
			}
			nothingLeft(t, target)
		})
	}
}

// watched is a file system that looks at the target whenever a file is opened, and fails at the last.
type watched struct {
	fs.FS
	opened func(name string) error
}

func (w watched) Open(name string) (fs.File, error) {
	if err := w.opened(name); err != nil {
		return nil, err
	}
	return w.FS.Open(name)
}

// While it is compiled nothing is at the target, and a failure at any file leaves nothing.
func TestCompileIsAtomic(t *testing.T) {
	m, s := leotest.Build(t, leotest.Copy(t, repository))
	failure := errors.New("disk gone")
	total := 0
	for fail := 0; fail <= 12; fail++ {
		target := filepath.Join(t.TempDir(), "profile")
		opened := 0
		look := func(string) error {
			if _, err := os.Lstat(target); !errors.Is(err, fs.ErrNotExist) {
				t.Error("a part of the profile is visible")
			}
			if opened++; opened == fail {
				return failure
			}
			return nil
		}
		template := s.Template
		for _, r := range []*manifest.Root{&template.Skills, &template.Plugins, &template.DatabaseTools} {
			r.Files = watched{r.Files, look}
		}
		err := profile.Compile(m, template, target, profile.Options{})
		if fail == 0 {
			total = opened
			if err != nil {
				t.Fatal(err)
			}
			continue
		}
		if !errors.Is(err, failure) {
			t.Errorf("failure at file %d of %d: %v", fail, total, err)
		}
		if _, err := os.Lstat(target); !errors.Is(err, fs.ErrNotExist) {
			t.Error("the target is there")
		}
		nothingLeft(t, target)
	}
	if total != 12 {
		t.Errorf("%d files are copied", total)
	}
}

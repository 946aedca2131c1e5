package source_test

import (
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"selfsame.dev/selfsame/manifest"
	"selfsame.dev/selfsame/manifest/leotest"
	"selfsame.dev/selfsame/manifest/source"
)

// inputList writes the lines of a list for the fixtures below the current folder, in random order.
func inputList(t *testing.T, change func(lines []string) []string) string {
	t.Helper()
	var lines []string
	add := func(part, root string) {
		err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			logical, err := filepath.Rel(root, path)
			lines = append(lines, part+"\t"+filepath.ToSlash(logical)+"\t"+filepath.ToSlash(path))
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	add("profile-template", filepath.Join(leotest.Folder, "profile-template"))
	add("hermes-root", filepath.Join(leotest.Folder, "hermes-runtime"))
	add("deployment-root", filepath.Join(leotest.Folder, "teleo-deployment"))
	for part, name := range map[string]string{"database-fingerprint": "leo-database-fingerprint-v1.json", "constitution": "leo-constitution-v1.json", "database-identity": "leo-database-identity-v1.json",
		"source-root": "evidence/naming-record.md", "source-root ": "evidence/role-charter.md", "source-root  ": "evidence/review-notes.md"} {
		path := leotest.Folder + "/" + name
		lines = append(lines, strings.TrimSpace(part)+"\t"+path+"\t"+path)
	}
	rand.Shuffle(len(lines), func(i, j int) { lines[i], lines[j] = lines[j], lines[i] })
	if change != nil {
		lines = change(lines)
	}
	file := filepath.Join(t.TempDir(), "inputs.list")
	put(t, file, strings.Join(lines, "\n")+"\n")
	return file
}

func encoded(t *testing.T, s manifest.Sources) (behavior, identity string) {
	t.Helper()
	b, err := manifest.Observe(s)
	if err != nil {
		t.Fatal(err)
	}
	m, err := manifest.Generate(b, s)
	if err != nil {
		t.Fatal(err)
	}
	b.Operational.Origins = nil
	bytesOf := func(encode func() ([]byte, error)) string {
		data, err := encode()
		if err != nil {
			t.Fatal(err)
		}
		return string(data)
	}
	return bytesOf(b.Encode), bytesOf(m.Encode)
}

// Law I1: folders and lists give the same bytes.
func TestRoutesAgree(t *testing.T) {
	root := leotest.Copy(t, repository)
	t.Chdir(root)
	folders, err := source.Folders(leotest.Paths("."))
	if err != nil {
		t.Fatal(err)
	}
	behavior, identity := encoded(t, folders)
	for range 3 {
		s, err := source.List(inputList(t, nil))
		if err != nil {
			t.Fatal(err)
		}
		b, m := encoded(t, s)
		if b != behavior || m != identity {
			t.Errorf("a list gives other bytes:\n%s\n%s", b, behavior)
		}
	}
	put(t, leotest.Folder+"/profile-template/skills/leo-voice/SKILL.md", "changed\n")
	s, err := source.List(inputList(t, nil))
	if err != nil {
		t.Fatal(err)
	}
	if _, m := encoded(t, s); m == identity {
		t.Error("control: a changed skill gives the same bytes")
	}
}

// What is wrong with a list is said by line, part or path.
func TestListRefuses(t *testing.T) {
	root := leotest.Copy(t, repository)
	t.Chdir(root)
	without := func(part string) func([]string) []string {
		return func(lines []string) []string {
			var kept []string
			for _, line := range lines {
				if !strings.HasPrefix(line, part) {
					kept = append(kept, line)
				}
			}
			return kept
		}
	}
	with := func(line string) func([]string) []string {
		return func(lines []string) []string { return append(lines, line) }
	}
	for _, tc := range []struct {
		name    string
		change  func([]string) []string
		problem string
	}{
		{"missing field", with("hermes-root\ta"), "2 fields"},
		{"empty line", with(""), "1 fields"},
		{"unknown part", with("hermes\ta\tb"), "unknown part"},
		{"twice", func(lines []string) []string { return append(lines, lines[0]) }, "again"},
		{"no constitution", without("constitution"), "listed 0 times"},
		{"two constitutions", with("constitution\tother.json\tother.json"), "listed 2 times"},
		{"no runtime", without("hermes-root"), "hermes-code: holds no files"},
		{"no configuration", without("profile-template\tconfig.yaml"), "config.yaml: is missing"},
		{"evidence missing", without("source-root\t" + leotest.Folder + "/evidence/role-charter.md"), "role-charter.md is missing"},
		{"evidence that no row cites", with("source-root\t" + leotest.Folder + "/leo-fixed-query-v1.json\t" + leotest.Folder + "/leo-fixed-query-v1.json"), "cited by no row"},
		{"no such file", with("hermes-root\tnone.py\tnone.py"), "none.py"},
		{"unknown name in the template", with("profile-template\tnotes.txt\t" + leotest.Folder + "/leo-fixed-query-v1.json"), "exact top level allowlist"},
		{"file and folder", with("profile-template\tskills\t" + leotest.Folder + "/leo-fixed-query-v1.json"), "both a file and a folder"},
		{"absolute path", with("hermes-root\ta.py\t/etc/hostname"), "not a clean relative path"},
		{"logical path above the root", with("hermes-root\t../a.py\t" + leotest.Folder + "/leo-fixed-query-v1.json"), ".."},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s, err := source.List(inputList(t, tc.change))
			if err == nil {
				_, err = manifest.Build(s)
			}
			if err == nil || !strings.Contains(err.Error(), tc.problem) {
				t.Errorf("%v, want it to say %q", err, tc.problem)
			}
		})
	}
	put(t, "real.py", "x = 1\n")
	if err := os.Symlink("real.py", "link.py"); err != nil {
		t.Fatal(err)
	}
	s, err := source.List(inputList(t, with("hermes-root\tlink.py\tlink.py")))
	if err == nil {
		_, err = manifest.Build(s)
	}
	if err == nil || !strings.Contains(err.Error(), "link.py: is a symbolic link") {
		t.Errorf("a link in the source tree: %v", err)
	}
	for _, name := range []string{"profile-template/config.yaml", "leo-constitution-v1.json", "hermes-runtime/selfsame-root.json"} {
		file := filepath.Join(leotest.Folder, name)
		if err := os.Rename(file, "real"); err != nil {
			t.Fatal(err)
		}
		up := strings.Repeat("../", strings.Count(leotest.Folder+"/"+name, "/"))
		if err := os.Symlink(up+"real", file); err != nil {
			t.Fatal(err)
		}
		s, err := source.List(inputList(t, nil))
		if err == nil {
			_, err = manifest.Build(s)
		}
		if err == nil || !strings.Contains(err.Error(), "symbolic link") {
			t.Errorf("%s is a link: %v", name, err)
		}
		if err := os.Rename("real", file); err != nil {
			t.Fatal(err)
		}
	}
	if s, err := source.List(inputList(t, nil)); err != nil {
		t.Error(err)
	} else if _, err := manifest.Build(s); err != nil {
		t.Errorf("control: %v", err)
	}
}

// Law I1: neither place, user, home, time zone, locale, umask, times nor order of files make a difference.
func TestSameBytesAnywhere(t *testing.T) {
	var want string
	for i, place := range []string{"a", strings.Repeat("long/", 30) + "path", "spaces and ünicode"} {
		t.Run(place[:1], func(t *testing.T) {
			root := filepath.Join(t.TempDir(), filepath.FromSlash(place))
			for name, values := range map[string][]string{"TZ": {"UTC", "Asia/Kathmandu", ""}, "LC_ALL": {"C", "tr_TR.UTF-8", ""}, "HOME": {"/", "/nonexistent", ""}, "USER": {"a", "b", ""}} {
				t.Setenv(name, values[i])
			}
			old := syscall.Umask([]int{0o022, 0o077, 0o002}[i])
			defer syscall.Umask(old)
			if err := os.MkdirAll(root, 0o755); err != nil {
				t.Fatal(err)
			}
			leotest.CopyTo(t, repository, root)
			then := time.Unix(int64(i)*1e8, 0)
			err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
				if err == nil {
					err = os.Chtimes(path, then, then)
				}
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
			m, s := leotest.Build(t, root)
			data, err := m.Encode()
			if err != nil {
				t.Fatal(err)
			}
			if want == "" {
				want = string(data)
			}
			if string(data) != want {
				t.Error("other bytes")
			}
			for _, hint := range []string{root, place, "/tmp"} {
				if len(hint) > 1 && strings.Contains(string(data), hint) {
					t.Errorf("the manifest names the place %s", hint)
				}
			}
			// The order in which an edge finds things is no matter.
			shuffle := func(r *manifest.Root) {
				rand.Shuffle(len(r.Entries), func(i, j int) { r.Entries[i], r.Entries[j] = r.Entries[j], r.Entries[i] })
			}
			for _, r := range []*manifest.Root{&s.Hermes, &s.Deployment, &s.Template.Skills, &s.Template.Plugins, &s.Template.DatabaseTools, &s.Evidence} {
				shuffle(r)
			}
			rand.Shuffle(len(s.Template.Names), func(i, j int) { s.Template.Names[i], s.Template.Names[j] = s.Template.Names[j], s.Template.Names[i] })
			shuffled, err := manifest.Build(s)
			if err != nil {
				t.Fatal(err)
			}
			if data, err := shuffled.Encode(); err != nil || string(data) != want {
				t.Errorf("shuffled entries give other bytes: %v", err)
			}
		})
	}
}

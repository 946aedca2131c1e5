package source_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"selfsame.dev/selfsame/internal/canon"
	"selfsame.dev/selfsame/internal/tree"
	"selfsame.dev/selfsame/manifest"
	"selfsame.dev/selfsame/manifest/leotest"
	"selfsame.dev/selfsame/manifest/source"
)

func gitIn(t *testing.T, dir string, args ...string) string {
	t.Helper()
	cmd := exec.Command("git", append([]string{"-C", dir, "-c", "user.name=Test", "-c", "user.email=test@example.invalid", "-c", "init.defaultBranch=main"}, args...)...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("git %v: %v: %s", args, err, out)
	}
	return strings.TrimSpace(string(out))
}

func needGit(t *testing.T) {
	t.Helper()
	if !leotest.Git(t) {
		t.SkipNow()
	}
}

// On the command line inputs must be those of a commit; what is not may not hide, and is named.
func TestCleanGit(t *testing.T) {
	needGit(t)
	root := leotest.Copy(t, repository)
	p := leotest.Paths(root)
	if _, err := source.CleanGit(p); err == nil || !strings.Contains(err.Error(), "no Git work tree") {
		t.Fatalf("outside a work tree: %v", err)
	}
	gitIn(t, root, "init", "-q")
	put(t, filepath.Join(root, ".gitignore"), "*.ignored\nignored-folder/\n.env\n")
	gitIn(t, root, "add", "-A", "-f")
	gitIn(t, root, "rm", "-q", "--cached", leotest.Folder+"/profile-template/.env")
	gitIn(t, root, "commit", "-q", "-m", "Leo")
	commit := gitIn(t, root, "rev-parse", "HEAD")

	origins, err := source.CleanGit(p)
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []manifest.Origin{
		{Root: "profile-template", Kind: manifest.OriginGit, Commit: commit, Path: leotest.Folder + "/profile-template"},
		{Root: "hermes-root", Kind: manifest.OriginGit, Commit: commit, Path: leotest.Folder + "/hermes-runtime"},
		{Root: "deployment-root", Kind: manifest.OriginGit, Commit: commit, Path: leotest.Folder + "/teleo-deployment"},
		{Root: "source-root", Kind: manifest.OriginGit, Commit: commit, Path: "."},
	} {
		if i >= len(origins) || origins[i] != want {
			t.Errorf("origins %v, want %v at %d", origins, want, i)
		}
	}
	in := func(name string) string { return filepath.Join(root, filepath.FromSlash(leotest.Folder), name) }
	for _, tc := range []struct {
		name  string
		dirty bool
		path  string
		do    func(t *testing.T, at string)
	}{
		{"modified skill", true, "profile-template/skills/leo-voice/SKILL.md", func(t *testing.T, at string) { put(t, at, "changed") }},
		{"staged code", true, "hermes-runtime/hermes/prompt.py", func(t *testing.T, at string) { put(t, at, "changed"); gitIn(t, root, "add", at) }},
		{"untracked code", true, "hermes-runtime/hermes/new.py", func(t *testing.T, at string) { put(t, at, "new") }},
		{"ignored code", true, "hermes-runtime/hermes/new.ignored", func(t *testing.T, at string) { put(t, at, "new") }},
		{"ignored folder", true, "hermes-runtime/ignored-folder/a.py", func(t *testing.T, at string) { put(t, at, "new") }},
		{"removed code", true, "teleo-deployment/deploy.yaml", func(t *testing.T, at string) {
			if err := os.Remove(at); err != nil {
				t.Fatal(err)
			}
		}},
		{"constitution", true, "leo-constitution-v1.json", func(t *testing.T, at string) { edit(t, at, strings.ToUpper) }},
		{"evidence", true, "evidence/role-charter.md", func(t *testing.T, at string) { put(t, at, "changed") }},
		{"hidden by assume-unchanged", true, "hermes-runtime/hermes/config.py", func(t *testing.T, at string) {
			gitIn(t, root, "update-index", "--assume-unchanged", at)
			put(t, at, "changed")
		}},
		{"hidden by skip-worktree", true, "hermes-runtime/hermes/config.py", func(t *testing.T, at string) {
			gitIn(t, root, "update-index", "--skip-worktree", at)
			put(t, at, "changed")
		}},
		{"name with a space and a newline", true, "hermes-runtime/a b\nc.py", func(t *testing.T, at string) { put(t, at, "new") }},
		{"session", false, "profile-template/sessions/new.jsonl", func(t *testing.T, at string) { put(t, at, "new") }},
		{"ignored credential file", false, "profile-template/.env", func(t *testing.T, at string) { put(t, at, "A=b") }},
		{"excluded by the code root", false, "teleo-deployment/notes/new.txt", func(t *testing.T, at string) { put(t, at, "new") }},
		{"a file beside the inputs", false, "report.json", func(t *testing.T, at string) { put(t, at, "new") }},
	} {
		t.Run(tc.name, func(t *testing.T) {
			tc.do(t, in(tc.path))
			_, err := source.CleanGit(p)
			var input *canon.InputError
			switch {
			case !tc.dirty && err != nil:
				t.Error(err)
			case tc.dirty && (!errors.As(err, &input) || input.Fix == "" || !strings.Contains(err.Error(), tree.Display(strings.TrimSuffix(leotest.Folder+"/"+tc.path, "/a.py")))):
				t.Errorf("%v does not name %s", err, tc.path)
			}
			if tc.name[:4] == "hidd" {
				gitIn(t, root, "update-index", "--no-assume-unchanged", in(tc.path))
				gitIn(t, root, "update-index", "--no-skip-worktree", in(tc.path))
			}
			gitIn(t, root, "reset", "-q", "--hard")
			gitIn(t, root, "clean", "-qfdx", "-e", ".env")
			if _, err := source.CleanGit(p); err != nil {
				t.Fatalf("control: restored, and still %v", err)
			}
		})
	}
	// The environment of a hook does not lead elsewhere.
	t.Setenv("GIT_DIR", t.TempDir())
	if _, err := source.CleanGit(p); err != nil {
		t.Errorf("with GIT_DIR set: %v", err)
	}
}

// What Git calls clean need not be the bytes of the commit: a filter or an end of line converts them, relaxed times
// hide a change, and a configuration may name another work tree. Each case has a repository of its own.
func TestCleanGitBelievesBytes(t *testing.T) {
	needGit(t)
	skill := leotest.Folder + "/profile-template/skills/leo-voice/SKILL.md"
	for _, tc := range []struct {
		name, says string
		do         func(t *testing.T, root, at string)
	}{
		{"end of line converted at checkout", skill, func(t *testing.T, root, at string) {
			gitIn(t, root, "config", "core.autocrlf", "true")
			remove(t, at)
			gitIn(t, root, "checkout", "-q", ".")
		}},
		{"clean filter", skill, func(t *testing.T, root, at string) {
			put(t, filepath.Join(root, ".git/info/attributes"), "SKILL.md filter=drop\n")
			gitIn(t, root, "config", "filter.drop.clean", "grep -v dropped")
			edit(t, at, func(s string) string { return s + "dropped\n" })
			gitIn(t, root, "add", "-A")
		}},
		{"same size, same time", skill, func(t *testing.T, root, at string) {
			gitIn(t, root, "config", "core.trustctime", "false")
			gitIn(t, root, "config", "core.checkStat", "minimal")
			past := time.Now().Add(-time.Hour).Truncate(time.Second)
			touch := func() {
				if err := os.Chtimes(at, past, past); err != nil {
					t.Fatal(err)
				}
			}
			touch()
			gitIn(t, root, "update-index", "--refresh", "-q")
			edit(t, at, strings.ToUpper)
			touch()
		}},
		{"another work tree", "core.worktree", func(t *testing.T, root, at string) {
			other := t.TempDir()
			gitIn(t, root, "worktree", "add", "-q", "--detach", filepath.Join(other, "w"))
			gitIn(t, root, "config", "core.worktree", filepath.Join(other, "w"))
			edit(t, at, strings.ToUpper)
		}},
		{"another commit in the place of the commit", skill, func(t *testing.T, root, at string) {
			edit(t, at, strings.ToUpper)
			gitIn(t, root, "commit", "-q", "-a", "-m", "other")
			other := gitIn(t, root, "rev-parse", "HEAD")
			gitIn(t, root, "reset", "-q", "--hard", "HEAD~1")
			gitIn(t, root, "replace", "HEAD", other)
			gitIn(t, root, "reset", "-q", "--hard")
		}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			root := leotest.Copy(t, repository)
			gitIn(t, root, "init", "-q")
			gitIn(t, root, "add", "-A", "-f")
			gitIn(t, root, "commit", "-q", "-m", "Leo")
			if _, err := source.CleanGit(leotest.Paths(root)); err != nil {
				t.Fatalf("control: %v", err)
			}
			tc.do(t, root, filepath.Join(root, skill))
			_, err := source.CleanGit(leotest.Paths(root))
			var input *canon.InputError
			if !errors.As(err, &input) || input.Fix == "" || !strings.Contains(err.Error()+input.Fix, tc.says) {
				t.Errorf("%v does not name %s", err, tc.says)
			}
		})
	}
}

// A submodule is held to the commit that the repository names.
func TestCleanGitSubmodule(t *testing.T) {
	needGit(t)
	root, module := leotest.Copy(t, repository), t.TempDir()
	gitIn(t, module, "init", "-q")
	put(t, filepath.Join(module, "m.py"), "one\n")
	gitIn(t, module, "add", "-A")
	gitIn(t, module, "commit", "-q", "-m", "module")
	gitIn(t, root, "init", "-q")
	gitIn(t, root, "-c", "protocol.file.allow=always", "submodule", "add", "-q", module, leotest.Folder+"/hermes-runtime/module")
	gitIn(t, root, "add", "-A", "-f")
	gitIn(t, root, "commit", "-q", "-m", "Leo")
	p := leotest.Paths(root)
	if _, err := source.CleanGit(p); err != nil {
		t.Fatalf("control: %v", err)
	}
	sub := filepath.Join(root, leotest.Folder, "hermes-runtime/module")
	gitIn(t, sub, "update-index", "--assume-unchanged", "m.py")
	put(t, filepath.Join(sub, "m.py"), "two\n")
	if _, err := source.CleanGit(p); err == nil || !strings.Contains(err.Error(), "module/m.py") {
		t.Errorf("hidden in a submodule: %v", err)
	}
}

func remove(t *testing.T, name string) {
	t.Helper()
	if err := os.Remove(name); err != nil {
		t.Fatal(err)
	}
}

// Why there is no commit is said as it is: no folder, no repository, or a Git that refuses.
func TestCleanGitSaysWhy(t *testing.T) {
	needGit(t)
	root := leotest.Copy(t, repository)
	p := leotest.Paths(root)
	gitIn(t, root, "init", "-q")
	if _, err := source.CleanGit(p); err == nil || !strings.Contains(err.Error(), "no Git work tree with a commit") {
		t.Errorf("without a commit: %v", err)
	}
	gitIn(t, root, "config", "core.repositoryFormatVersion", "99")
	if _, err := source.CleanGit(p); err == nil || strings.Contains(err.Error(), "no Git work tree") || !strings.Contains(err.Error(), "99") {
		t.Errorf("a repository that Git refuses: %v", err)
	}
	p.ProfileTemplate = filepath.Join(root, "absent")
	if _, err := source.CleanGit(p); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("no folder: %v", err)
	}
}

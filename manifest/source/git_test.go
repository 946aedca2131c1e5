package source_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

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

// needGit skips only under Bazel, whose sandbox may have no Git; elsewhere Git belongs to the environment.
func needGit(t *testing.T) {
	t.Helper()
	if _, err := exec.LookPath("git"); err != nil {
		if os.Getenv("TEST_SRCDIR") == "" {
			t.Fatal(err)
		}
		t.Skip("no git in this sandbox; go test covers it")
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

//go:build bazel

package tests

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"selfsame.dev/selfsame/internal/canon"
)

// TestTwice is law I1 for Bazel: every output of the public rules has the same bytes, wherever and
// however it is built; and its control, law I2: one changed byte makes them differ.
func TestTwice(t *testing.T) {
	base := scratchDir(t)
	here := newScratch(t, filepath.Join(base, "a"), nil)
	here.env = []string{"HOME=" + filepath.Join(base, "home-a"), "USER=ada", "TZ=UTC", "LANG=C"}
	here.server(t, filepath.Join(base, "out-a"))
	want, err := here.outputs(t)
	if err != nil {
		t.Fatal(err)
	}

	there := newScratch(t, filepath.Join(base, strings.Repeat("a-much-longer-path/", 4), "checkout"), slices.Reverse[[]string])
	old := time.Unix(1, 0)
	if err := filepath.WalkDir(there.dir, func(path string, _ os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		return os.Chtimes(path, old, old)
	}); err != nil {
		t.Fatal(err)
	}
	there.env = []string{"HOME=" + filepath.Join(base, "another-home"), "USER=grace", "TZ=Asia/Kathmandu", "LANG=tr_TR.UTF-8", "LC_ALL=tr_TR.UTF-8", "GOMAXPROCS=1"}
	there.umask = "077"
	there.server(t, filepath.Join(base, "out-b"), "--digest_function=SHA1")
	for _, v := range []struct {
		name string
		args []string
	}{
		{"other path, user, home, zone, locale, umask, digest function, times and order of files", nil},
		{"-c opt", []string{"-c", "opt"}},
		{"path mapping", []string{"--experimental_output_paths=strip"}},
		{"one job, environment of actions", []string{"--jobs=1", "--action_env=GOMAXPROCS=1", "--action_env=TZ=Asia/Kathmandu", "--action_env=LC_ALL=tr_TR.UTF-8", "--action_env=HOME=/nowhere"}},
		{"no sandbox", []string{"--spawn_strategy=local"}},
		{"stamped", []string{"--stamp", "--embed_label=another"}},
	} {
		t.Run(v.name, func(t *testing.T) {
			got, err := there.outputs(t, v.args...)
			if err != nil {
				t.Fatal(err)
			}
			if diff := difference(t, kept(t, t.Name()), want, got); diff != "" {
				t.Errorf("outputs differ:\n%s", diff)
			}
		})
	}

	shown := false
	for _, name := range []string{
		"profile-template/config.yaml", "profile-template/skills/leo-voice/SKILL.md", "hermes-runtime/hermes/prompt.py",
		"teleo-deployment/deploy.yaml", "evidence/role-charter.md",
	} {
		t.Run("control: one byte of "+name, func(t *testing.T) {
			path := there.path("fixtures/working-leo/leo-identity-v1/" + name)
			data, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			changed := slices.Clone(data)
			changed[len(changed)/2] ^= 1
			if err := os.WriteFile(path, changed, 0o644); err != nil {
				t.Fatal(err)
			}
			defer os.WriteFile(path, data, 0o644)
			// A changed byte may also be refused: what a row cites is no longer what it cited.
			got, err := there.outputs(t)
			switch {
			case err != nil && !strings.Contains(err.Error(), "selfsame: error: "):
				t.Error(err)
			case err == nil && bytes.Equal(got["manifest/leo.json"], want["manifest/leo.json"]):
				t.Error("the manifest is the same")
			case err == nil:
				shown = true
				namesDifference(t, want, got)
			}
		})
	}
	if !shown {
		t.Error("no changed byte gave other outputs")
	}
	got, err := there.outputs(t)
	if err != nil || !cmp.Equal(want, got) {
		t.Errorf("put back, outputs are not what they were: %v\n%s", err, cmp.Diff(want.digests(), got.digests()))
	}
}

// namesDifference is the control of [difference]: the manifest's difference is named, and its bytes are kept.
func namesDifference(t *testing.T, want, got outputs) {
	const name = "manifest/leo.json"
	dir := kept(t, "control")
	text := difference(t, dir, want, got)
	data, err := os.ReadFile(filepath.Join(dir, name+".difference.txt"))
	if err != nil || !strings.Contains(text, string(data)) {
		t.Fatalf("%v: %q is not in %q", err, data, text)
	}
	var at int
	if _, err := fmt.Sscanf(string(data), name+": first difference at offset %d;", &at); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(want[name][:at], got[name][:at]) || want[name][at] == got[name][at] {
		t.Errorf("offset %d is not the first difference", at)
	}
	for suffix, data := range map[string][]byte{".first": want[name], ".second": got[name]} {
		if kept, err := os.ReadFile(filepath.Join(dir, name+suffix)); err != nil || !bytes.Equal(kept, data) {
			t.Errorf("%s is not kept: %v", suffix, err)
		}
	}
	if text := difference(t, dir, want, want); text != "" {
		t.Errorf("equal outputs differ: %s", text)
	}
}

// TestFreshTool is law I1 for the tool itself: the whole checkout at another place, with another home and a new output
// base, compiles it anew, Go's standard library included, and no cache has a part in it. The programs, as actions run them, and
// what they make are, to the byte, what the Bazel that runs this test has.
func TestFreshTool(t *testing.T) {
	want, err := made(t, filepath.Join(os.Getenv("TEST_SRCDIR"), "_main"))
	if err != nil {
		t.Fatal(err)
	}
	programs := strings.Fields(os.Getenv("SELFSAME_PROGRAMS"))
	for _, name := range programs {
		if want[name], err = os.ReadFile(filepath.Join(os.Getenv("TEST_SRCDIR"), name)); err != nil {
			t.Fatal(err)
		}
	}
	base := scratchDir(t)
	s := &scratch{dir: filepath.Join(base, "another", "place", "of-the-checkout"), umask: "027"}
	for name, data := range checkout(t) {
		s.write(t, name, data)
	}
	s.env = []string{"HOME=" + filepath.Join(base, "home-of-grace"), "USER=grace", "TZ=Asia/Kathmandu", "LANG=tr_TR.UTF-8", "LC_ALL=tr_TR.UTF-8"}
	for _, name := range []string{"GOPROXY", "GOSUMDB", "SELFSAME_GOROOT"} {
		if value, ok := os.LookupEnv(name); ok {
			s.env = append(s.env, name+"="+value)
		}
	}
	s.startup = append(wholeAirgap(), "--output_user_root="+filepath.Join(base, "out"), "--max_idle_secs=60")
	t.Cleanup(func() { s.run(t, "shutdown") })

	out, err := s.run(t, "build", "--disk_cache=", "--remote_cache=", "//tools/check:programs_for_actions",
		"//manifest:leo", "//profile:leo", "--output_groups=+behavior")
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if regexp.MustCompile(`(disk|remote) cache hit`).MatchString(out) {
		t.Errorf("a cache has a part in it:\n%s", out)
	}
	bin, err := filepath.EvalSymlinks(s.path("bazel-bin"))
	if err != nil {
		t.Fatal(err)
	}
	got, err := made(t, bin)
	if err != nil {
		t.Fatal(err)
	}
	for name := range got { // results of checks are in no runfiles
		if strings.HasSuffix(name, ".verified.json") {
			delete(got, name)
		}
	}
	for _, name := range programs {
		if got[name], err = os.ReadFile(filepath.Join(bin, strings.TrimPrefix(name, "_main/"))); err != nil {
			t.Fatal(err)
		}
		t.Logf("%s  %s", canon.Sum(got[name]), name)
	}
	if diff := difference(t, kept(t, "fresh"), want, got); diff != "" {
		t.Errorf("outputs differ:\n%s", diff)
	}
}

// TestRefusedTrees shows that the rules refuse trees that only a whole build can: links in the
// source tree, whichever way Bazel stages it, and trees without files.
func TestRefusedTrees(t *testing.T) {
	base := scratchDir(t)
	s := newScratch(t, filepath.Join(base, "w"), nil)
	s.env = []string{"HOME=" + filepath.Join(base, "home")}
	s.server(t, filepath.Join(base, "out"))
	root := "fixtures/working-leo/leo-identity-v1/"
	for _, tc := range []struct {
		name, link, target string
		errors             []string
	}{
		{"link to a file", "teleo-deployment/link.yaml", "deploy.yaml", []string{"link.yaml", "is a symbolic link"}},
		{"link to a folder", "teleo-deployment/linked", "services", []string{"linked", "a symbolic link"}},
		{"link out of the tree", "hermes-runtime/hermes/out.json", "../../leo-constitution-v1.json", []string{"out.json", "is a symbolic link"}},
		{"link in the template", "profile-template/skills/leo-voice/more.md", "SKILL.md", []string{"more.md", "is a symbolic link"}},
		{"unknown entry of the template", "profile-template/unknown.txt", "", []string{"unknown.txt"}},
	} {
		for _, strategy := range []string{"sandboxed", "local"} {
			t.Run(tc.name+", "+strategy, func(t *testing.T) {
				path := s.path(root + tc.link)
				var err error
				if tc.target == "" {
					err = os.WriteFile(path, []byte("x"), 0o644)
				} else {
					err = os.Symlink(tc.target, path)
				}
				if err != nil {
					t.Fatal(err)
				}
				defer os.Remove(path)
				expectFailure(t, s, tc.errors, "--spawn_strategy="+strategy)
			})
		}
	}
	t.Run("dangling link", func(t *testing.T) {
		// A glob does not see it, so it is in no tree; named, it is refused.
		build := "fixtures/working-leo/BUILD.bazel"
		data, err := os.ReadFile(s.path(build))
		if err != nil {
			t.Fatal(err)
		}
		named := strings.Replace(string(data), `["leo-identity-v1/teleo-deployment/**"],
        allow_empty = False,
    )`, `["leo-identity-v1/teleo-deployment/**"],
        allow_empty = False,
    ) + ["leo-identity-v1/teleo-deployment/dangling"]`, 1)
		if named == string(data) {
			t.Fatal("the BUILD file has no such glob")
		}
		if err := os.Symlink("nowhere", s.path(root+"teleo-deployment/dangling")); err != nil {
			t.Fatal(err)
		}
		defer os.Remove(s.path(root + "teleo-deployment/dangling"))
		s.write(t, build, []byte(named))
		defer s.write(t, build, data)
		expectFailure(t, s, []string{"teleo-deployment/dangling"})
	})
	t.Run("tree without files", func(t *testing.T) {
		path := s.path(root + "teleo-deployment")
		if err := os.Rename(path, path+".away"); err != nil {
			t.Fatal(err)
		}
		defer os.Rename(path+".away", path)
		expectFailure(t, s, []string{"teleo-deployment/**", "didn't match anything"})
	})
	t.Run("missing input", func(t *testing.T) {
		path := s.path(root + "leo-constitution-v1.json")
		if err := os.Rename(path, path+".away"); err != nil {
			t.Fatal(err)
		}
		defer os.Rename(path+".away", path)
		expectFailure(t, s, []string{"leo-constitution-v1.json"})
	})
	if _, err := s.outputs(t); err != nil {
		t.Errorf("control: the tree as it was is refused: %v", err)
	}
}

func expectFailure(t *testing.T, s *scratch, texts []string, args ...string) {
	t.Helper()
	_, err := s.outputs(t, args...)
	if err == nil {
		t.Fatal("it builds")
	}
	for _, text := range texts {
		if !strings.Contains(err.Error(), text) {
			t.Errorf("the error does not say %q: %v", text, err)
		}
	}
}

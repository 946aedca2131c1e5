//go:build bazel

// Package tests builds the public rules in scratch workspaces, with a Bazel of their own.
package tests

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"sort"
	"strings"
	"testing"

	"selfsame.dev/selfsame/internal/canon"
)

// scratch is a workspace that holds the rules, Leo's inputs and the tool as a prebuilt program.
// It needs no other module.
type scratch struct {
	dir     string
	startup []string // options before the command
	env     []string
	umask   string
}

// parts of the checkout that a scratch workspace has; BUILD files of Go packages are left to it.
var copied = regexp.MustCompile(`^(rules/(defs\.bzl|BUILD\.bazel|private/.*)|fixtures/working-leo/.*)$`)

var files = map[string]string{
	"MODULE.bazel": `module(name = "selfsame")` + "\n",
	"tools/selfsame/BUILD.bazel": `load(":prebuilt.bzl", "prebuilt")
prebuilt(name = "selfsame", src = "selfsame.bin", visibility = ["//visibility:public"])
`,
	"tools/selfsame/prebuilt.bzl": `def _prebuilt_impl(ctx):
    out = ctx.actions.declare_file(ctx.label.name)
    ctx.actions.symlink(output = out, target_file = ctx.file.src, is_executable = True)
    return [DefaultInfo(files = depset([out]), executable = out)]

prebuilt = rule(implementation = _prebuilt_impl, executable = True, attrs = {"src": attr.label(allow_single_file = True)})
`,
}

// identity matches the targets of the rules in the BUILD files of Go packages.
var identity = regexp.MustCompile(`(?ms)^identity_\w+\(.*?^\)\n`)

// newScratch makes a workspace at dir. Files are written in the order of the given
// function, nil for byte order.
func newScratch(t *testing.T, dir string, order func(names []string)) *scratch {
	t.Helper()
	s := &scratch{dir: dir, umask: "022"}
	content := checkout(t)
	var names []string
	for name := range content {
		if copied.MatchString(name) {
			names = append(names, name)
		}
	}
	if len(names) < 50 {
		t.Fatalf("only %d files of the checkout are here", len(names))
	}
	if order != nil {
		order(names)
	}
	for _, name := range names {
		s.write(t, name, content[name])
	}
	for name, data := range files {
		s.write(t, name, []byte(data))
	}
	for _, pkg := range []string{"manifest", "profile"} {
		targets := identity.FindAll(content[pkg+"/BUILD.bazel"], -1)
		if len(targets) != 1 {
			t.Fatalf("%s/BUILD.bazel has %d identity targets", pkg, len(targets))
		}
		rule, _, _ := strings.Cut(string(targets[0]), "(")
		s.write(t, pkg+"/BUILD.bazel", append([]byte(fmt.Sprintf("load(\"//rules:defs.bzl\", %q)\n\n", rule)), targets[0]...))
	}
	tool, err := os.ReadFile(filepath.Join(os.Getenv("TEST_SRCDIR"), os.Getenv("SELFSAME_TOOL")))
	if err != nil {
		t.Fatal(err)
	}
	s.write(t, "tools/selfsame/selfsame.bin", tool)
	if err := os.Chmod(s.path("tools/selfsame/selfsame.bin"), 0o755); err != nil {
		t.Fatal(err)
	}
	return s
}

func (s *scratch) path(name string) string { return filepath.Join(s.dir, filepath.FromSlash(name)) }

func (s *scratch) write(t *testing.T, name string, data []byte) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(s.path(name)), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(s.path(name), data, 0o644); err != nil {
		t.Fatal(err)
	}
}

// scratchDir returns an empty folder. Bazel drops it with the test's own; the read-only outputs
// in it would stop t.TempDir from doing so.
func scratchDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "nested")
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// checkout returns the sources by path, from the runfiles.
func checkout(t *testing.T) map[string][]byte {
	t.Helper()
	root := filepath.Dir(filepath.Join(os.Getenv("TEST_SRCDIR"), os.Getenv("SELFSAME_CHECKOUT")))
	content := map[string][]byte{}
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		name, _ := filepath.Rel(root, path)
		content[strings.TrimSuffix(filepath.ToSlash(name), ".source")] = data
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return content
}

// bazel is the program to nest: named by SELFSAME_BAZEL, else bazelisk or bazel on PATH.
func bazel(t *testing.T) string {
	t.Helper()
	if path := os.Getenv("SELFSAME_BAZEL"); path != "" {
		return path
	}
	for _, name := range []string{"bazelisk", "bazel"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	t.Fatal("no Bazel to nest on PATH; name one with --test_env=SELFSAME_BAZEL=/path/to/bazel")
	return ""
}

// airgap returns startup options for the rc file that SELFSAME_BAZELRC names, without overrides of
// modules that a scratch workspace does not reach (Bazel refuses those).
func airgap(t *testing.T) []string {
	t.Helper()
	name := os.Getenv("SELFSAME_BAZELRC")
	if name == "" {
		return nil
	}
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	data = regexp.MustCompile(`(?m)^common --override_module=(gazelle|rules_go|rules_shell|package_metadata)=.*$`).ReplaceAll(data, nil)
	rc := filepath.Join(t.TempDir(), "bazelrc")
	if err := os.WriteFile(rc, data, 0o644); err != nil {
		t.Fatal(err)
	}
	return []string{"--bazelrc=" + rc}
}

// wholeAirgap is [airgap] for a workspace that reaches every module.
func wholeAirgap() []string {
	if name := os.Getenv("SELFSAME_BAZELRC"); name != "" {
		return []string{"--bazelrc=" + name}
	}
	return nil
}

// run starts Bazel in the workspace and returns what it printed.
func (s *scratch) run(t *testing.T, command string, args ...string) (string, error) {
	t.Helper()
	all := append([]string{bazel(t)}, s.startup...)
	all = append(all, command)
	if command != "shutdown" {
		all = append(all, "--lockfile_mode=off", "--color=no", "--curses=no", "--show_progress_rate_limit=60")
	}
	all = append(all, args...)
	cmd := exec.Command("/bin/sh", append([]string{"-c", "umask " + s.umask + `; exec "$@"`, "sh"}, all...)...)
	cmd.Dir = s.dir
	cmd.Env = append([]string{"PATH=/usr/local/bin:/usr/bin:/bin"}, s.env...)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err := cmd.Run()
	return out.String(), err
}

// outputs are files by path.
type outputs map[string][]byte

// digests gives the SHA-256 of each.
func (o outputs) digests() map[string]string {
	out := map[string]string{}
	for name, data := range o {
		out[name] = canon.Sum(data).String()
	}
	return out
}

// outputs builds the targets and returns every file that the identity rules made.
func (s *scratch) outputs(t *testing.T, args ...string) (outputs, error) {
	t.Helper()
	out, err := s.run(t, "build", append(args, "//manifest:leo", "//profile:leo", "--output_groups=+behavior")...)
	if err != nil {
		return nil, fmt.Errorf("%w\n%s", err, out)
	}
	bin, err := filepath.EvalSymlinks(s.path("bazel-bin"))
	if err != nil {
		t.Fatal(err)
	}
	return made(t, bin)
}

var leo = regexp.MustCompile(`^(manifest|profile)/leo[./]`)

// made returns what the identity rules made below a folder of outputs: all files of both packages that
// are named for Leo. Parameter files hold exec paths and are inputs of actions.
func made(t *testing.T, bin string) (outputs, error) {
	t.Helper()
	found := outputs{}
	for _, dir := range []string{"manifest", "profile"} {
		err := filepath.WalkDir(filepath.Join(bin, dir), func(path string, d fs.DirEntry, err error) error {
			name, _ := filepath.Rel(bin, path)
			if err != nil || !leo.MatchString(filepath.ToSlash(name)) || strings.HasSuffix(path, ".params") {
				return err
			}
			if info, err := os.Stat(path); err != nil || info.IsDir() {
				return err
			}
			found[filepath.ToSlash(name)], err = os.ReadFile(path)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if len(found) < 10 || found["manifest/leo.json"] == nil || found["profile/leo/identity.json"] == nil {
		return nil, fmt.Errorf("outputs are missing: %q", found.digests())
	}
	return found, nil
}

// difference names the files that differ, "" for none. Both versions of each go to a folder, with a text
// that gives the first differing offset.
func difference(t *testing.T, dir string, want, got outputs) string {
	t.Helper()
	var names []string
	for name := range want {
		if !bytes.Equal(want[name], got[name]) {
			names = append(names, name)
		}
	}
	for name := range got {
		if _, ok := want[name]; !ok {
			names = append(names, name)
		}
	}
	sort.Strings(names)
	var text strings.Builder
	for _, name := range names {
		first, second := want[name], got[name]
		at := 0
		for at < min(len(first), len(second)) && first[at] == second[at] {
			at++
		}
		line := fmt.Sprintf("%s: first difference at offset %d; first %d bytes, sha256 %s; second %d bytes, sha256 %s\n",
			name, at, len(first), canon.Sum(first), len(second), canon.Sum(second))
		text.WriteString(line)
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		for suffix, data := range map[string][]byte{".first": first, ".second": second, ".difference.txt": []byte(line)} {
			if err := os.WriteFile(path+suffix, data, 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	return text.String()
}

// kept is the folder for files that differ; Bazel keeps it.
func kept(t *testing.T, sub string) string {
	t.Helper()
	dir := os.Getenv("TEST_UNDECLARED_OUTPUTS_DIR")
	if dir == "" {
		t.Fatal("TEST_UNDECLARED_OUTPUTS_DIR is not set")
	}
	return filepath.Join(dir, sub)
}

// server gives the workspace a server of its own below dir; it ends with the test.
func (s *scratch) server(t *testing.T, dir string, options ...string) {
	t.Helper()
	s.startup = append(append(airgap(t), "--output_user_root="+dir, "--max_idle_secs=60"), options...)
	t.Cleanup(func() {
		if out, err := s.run(t, "shutdown"); err != nil {
			t.Errorf("shutdown: %v\n%s", err, out)
		}
	})
}

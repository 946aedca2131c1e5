package main

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/bazelbuild/buildtools/build"
)

const smallModule = "bazel_dep(name = \"selfsame\", version = \"0.1.0\")\nbazel_dep(name = \"rules_shell\", version = \"0.6.1\")\n"

// inWorkspace makes an empty workspace and works in it.
func inWorkspace(t *testing.T) (root string) {
	t.Helper()
	root = t.TempDir()
	put(t, filepath.Join(root, "MODULE.bazel"), smallModule)
	t.Chdir(root)
	return root
}

func put(t *testing.T, name, data string) {
	t.Helper()
	if err := os.WriteFile(name, []byte(data), 0o644); err != nil {
		t.Fatal(err)
	}
}

// A scaffolded package holds untouched, and each of its targets fails when what it is about is broken.
func TestInitTargets(t *testing.T) {
	inWorkspace(t)
	status, out, errs := call("init", "bob")
	if status != 0 || !strings.Contains(out, "bazel test //bob/...") || errs != "" {
		t.Fatalf("status %d\n%s%s", status, out, errs)
	}
	for target, failed := range runTargets(t, "bob") {
		if failed != "" {
			t.Errorf("untouched: %s: %s", target, failed)
		}
	}
	for _, control := range []struct{ file, from, to, target, says string }{
		{"template/config.yaml", "no_send", "send", "manifest", "send_policy"},
		{"evidence/name.md", "invented", "invented", "", ""}, // the control of the controls: nothing changes
		{"evidence/name.md", "invented", "real", "manifest", "evidence/name.md"},
		{"constitution.json", `"rank": 1`, `"rank": 2`, "manifest", "rank"},
		{"runtime/selfsame-root.json", "bob-agent", "other-agent", "manifest", "other-agent"},
		{"query.json", `"bob"`, `"eve"`, "restarts", "eve"},
		{"template/skills/plain-speech/SKILL.md", "\n", " \n", "is_pinned", "skills"},
		{"deployment/answer.py", "import json", "import json  # other", "is_pinned", "deployment-code"},
		{"pinned.json", "bob", "eve", "is_pinned", "pinned.json"},
		{"deployment/answer.py", `"identity-runtime.v1"`, `"identity-runtime.v0"`, "restarts", "identity-runtime.v0"},
		{"BUILD.bazel", "skills@first", "compiled-profile/nothing@first", "drifts", "nothing"},
		{"rounds.json", `"resolves":["leak"]`, `"resolves":["other"]`, "repair_converges", ""},
		{"rounds.json", `"status":"PASS"`, `"status":"FAIL"`, "repair_converges", ""},
		{"memory/turns/01-learns.json", "were found", "were lost", "memory_grows_from_evidence", "content"},
		{"memory/turns/02-guesses-once.json", "a guess", "a guess twice", "", ""}, // refused just the same
	} {
		at := filepath.Join("bob", control.file)
		whole, err := os.ReadFile(at)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Contains(whole, []byte(control.from)) {
			t.Fatalf("%s does not hold %s", control.file, control.from)
		}
		info, _ := os.Stat(at)
		if err := os.WriteFile(at, bytes.ReplaceAll(whole, []byte(control.from), []byte(control.to)), info.Mode()); err != nil {
			t.Fatal(err)
		}
		results := runTargets(t, "bob", control.target)
		if control.target != "" && (results[control.target] == "" || !strings.Contains(results[control.target], control.says)) {
			t.Errorf("control %s: %s to %s: target %s: %q", control.file, control.from, control.to, control.target, results[control.target])
		}
		for target, failed := range results {
			if control.target == "" && failed != "" {
				t.Errorf("control %s: %s to %s: target %s: %q", control.file, control.from, control.to, target, failed)
			}
		}
		put(t, at, string(whole))
	}
}

// runTargets runs, for each target of a scaffolded BUILD.bazel, the commands that its rule runs, and returns what
// failed, "" for what held. Named targets are the only ones, the manifest aside.
func runTargets(t *testing.T, dir string, only ...string) map[string]string {
	t.Helper()
	name := filepath.Join(dir, "BUILD.bazel")
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	file, err := build.ParseBuild(name, data)
	if err != nil {
		t.Fatal(err)
	}
	p := buildPackage{t, dir, t.TempDir(), file}
	results := map[string]string{}
	for _, r := range file.Rules("") {
		if len(only) > 0 && only[0] != "" && r.Name() != "manifest" && !slices.Contains(only, r.Name()) {
			continue
		}
		for _, args := range p.commands(r) {
			if status, _, errs := call(args...); status != 0 {
				results[r.Name()] = fmt.Sprintf("exit status %d: %s", status, errs)
				break
			}
			results[r.Name()] = ""
		}
	}
	if len(results) != 7 && len(only) == 0 {
		t.Fatalf("ran %d targets: %v", len(results), results)
	}
	return results
}

// buildPackage reads just the Starlark that the scaffold writes.
type buildPackage struct {
	t         *testing.T
	dir, work string
	file      *build.File
}

func (p buildPackage) commands(r *build.Rule) [][]string {
	at := func(attr string) string { return filepath.Join(p.dir, r.AttrString(attr)) }
	out := func(name string) string { return filepath.Join(p.work, r.Name()+name) }
	switch r.Kind() {
	case "load", "identity_tree", "sh_binary":
		return nil
	case "identity_manifest":
		list := p.inputs(r)
		return [][]string{
			{"--quiet", "manifest", "generate", "--input-list", list, "--output", p.manifest(), "--behavior-output", out(".behavior"), "--provenance", out(".provenance")},
			{"--quiet", "manifest", "verify", "--json", "--input-list", list, "--manifest", p.manifest(), "--output", out(".verified")},
		}
	case "identity_profile":
		return [][]string{
			{"--quiet", "profile", "compile", "--input-list", p.list(), "--manifest", p.manifest(), "--profile", out(""), "--digest", out(".sha256")},
			{"--quiet", "profile", "verify", "--manifest", p.manifest(), "--profile", out("")},
		}
	case "restart_canary_test", "drift_canary_test":
		runtime := p.file.RuleNamed(strings.TrimPrefix(r.AttrString("runtime"), ":"))
		args := []string{"canary", "run", "--input-list", p.list(), "--manifest", p.manifest(), "--query", at("query"),
			"--runtime", filepath.Join(p.dir, runtime.AttrStrings("srcs")[0]), "--output", out(".receipt")}
		if inject := r.AttrString("inject"); inject != "" {
			args = append(args, "--expect-drift", "--inject-drift", inject)
		}
		return [][]string{args}
	case "pinned_identity_test":
		return [][]string{{"compare", "--json", at("expect"), p.manifest(), "--output", out("")}}
	case "convergence_test":
		return [][]string{{"rpi", "repair", "--rounds", at("rounds"), "--expect-stop-reason", "converged", "--expect-status", "PASS", "--output", out("")}}
	case "living_profile_test":
		args := []string{"living", "replay", "--json", "--baseline", at("baseline"), "--expect-file", at("expect"), "--output", out("")}
		for _, kv := range r.Attr("expect_refused").(*build.DictExpr).List {
			args = append(args, "--expect-refused", kv.Key.(*build.StringExpr).Value+"="+kv.Value.(*build.StringExpr).Value)
		}
		return [][]string{append(args, p.files(r.Attr("deltas"))...)}
	}
	p.t.Fatalf("rule %s: no command is known", r.Kind())
	return nil
}

func (p buildPackage) manifest() string { return filepath.Join(p.work, "manifest.json") }
func (p buildPackage) list() string     { return filepath.Join(p.work, "inputs") }

// inputs writes the input list of a manifest as the rule does.
func (p buildPackage) inputs(r *build.Rule) string {
	var lines strings.Builder
	add := func(part, root string, files []string) {
		for _, f := range files {
			below, err := filepath.Rel(filepath.Join(p.dir, root), f)
			if err != nil {
				p.t.Fatal(err)
			}
			fmt.Fprintf(&lines, "%s\t%s\t%s\n", part, filepath.ToSlash(below), f)
		}
	}
	for attr, part := range map[string]string{"profile_template": "profile-template", "hermes_root": "hermes-root", "deployment_root": "deployment-root"} {
		tree := p.file.RuleNamed(strings.TrimPrefix(r.AttrString(attr), ":"))
		add(part, tree.AttrString("root"), p.files(tree.Attr("srcs")))
	}
	for attr, part := range map[string]string{"constitution": "constitution", "database_fingerprint": "database-fingerprint", "database_identity": "database-identity"} {
		add(part, "", []string{filepath.Join(p.dir, r.AttrString(attr))})
	}
	add("source-root", "", p.files(r.Attr("evidence")))
	put(p.t, p.list(), lines.String())
	return p.list()
}

// files are those of a glob with one pattern, FOLDER/** or FOLDER/*.json.
func (p buildPackage) files(e build.Expr) []string {
	pattern := build.Strings(e.(*build.CallExpr).List[0])[0]
	folder, last := filepath.Split(pattern)
	var found []string
	err := filepath.WalkDir(filepath.Join(p.dir, folder), func(name string, d fs.DirEntry, err error) error {
		if ok, _ := filepath.Match(strings.ReplaceAll(last, "**", "*"), d.Name()); err == nil && ok && !d.IsDir() {
			found = append(found, name)
		}
		return err
	})
	if err != nil || len(found) == 0 {
		p.t.Fatalf("glob %s: %d files, %v", pattern, len(found), err)
	}
	return found
}

// Every admissible name makes a package whose manifest holds; the package is the same wherever it lies.
func TestInitNames(t *testing.T) {
	inWorkspace(t)
	for _, agent := range []string{"0", "1e3", "no", "null", "a-_", "x__y--z-", "template", "manifest", "package_name", strings.Repeat("a1", 32)} {
		dir := filepath.Join("agents", "of-"+agent)
		if status, _, errs := call("init", agent, "--dir", dir); status != 0 {
			t.Fatalf("%s: status %d: %s", agent, status, errs)
		}
		for target, failed := range runTargets(t, dir, "profile", "memory_grows_from_evidence") {
			if failed != "" {
				t.Errorf("%s: %s: %s", agent, target, failed)
			}
		}
	}
}

func TestInitRefuses(t *testing.T) {
	root := inWorkspace(t)
	put(t, "file", "")
	put(t, ".bazelignore", "# not here\nignored/\n")
	for name, tc := range map[string]struct {
		status int
		says   string
		args   []string
	}{
		"no agent":               {2, "<agent>", nil},
		"two agents":             {2, "unexpected", []string{"bob", "eve"}},
		"checkout alone":         {2, "--selfsame needs --workspace", []string{"bob", "--selfsame", "."}},
		"empty name":             {3, "1 to 64 of a-z", []string{""}},
		"upper case":             {3, "1 to 64 of a-z", []string{"Bob"}},
		"path":                   {3, "1 to 64 of a-z", []string{"../bob"}},
		"option":                 {3, "beginning with a letter or digit", []string{"--", "-bob"}},
		"long name":              {3, "1 to 64 of a-z", []string{strings.Repeat("a", 65)}},
		"credential":             {3, "looks like a credential", []string{"sk-0123456789abcdef"}},
		"credential once filled": {3, "looks like a credential", []string{"sk-0123456789"}},
		"ignored":                {3, "ignored by the .bazelignore", []string{"bob", "--dir", "ignored/bob"}},
		"no good package":        {3, `"a b" is no good name`, []string{"bob", "--dir", "a b/bob"}},
		"folder that exists":     {3, root + ": exists", []string{"bob", "--dir", "."}},
		"file in the way":        {3, "file: exists", []string{"bob", "--dir", "file"}},
		"below a file":           {3, "file: is no folder", []string{"bob", "--dir", "file/bob"}},
		"deep below a file":      {3, "file: is no folder", []string{"bob", "--dir", "file/x/bob"}},
		"no checkout":            {3, "no checkout of Selfsame", []string{"bob", "--workspace", "--selfsame", "."}},
	} {
		status, out, errs := call(append([]string{"init"}, tc.args...)...)
		if status != tc.status || !strings.Contains(errs, tc.says) || out != "" {
			t.Errorf("%s: status %d, %q, %q", name, status, out, errs)
		}
	}
	if err := os.MkdirAll("eve/template", 0o755); err != nil {
		t.Fatal(err)
	}
	put(t, "eve/template/config.yaml", "mine")
	if status, _, errs := call("init", "eve"); status != 3 || !strings.Contains(errs, filepath.Join("eve", "template", "config.yaml")+": exists, and nothing is overwritten") {
		t.Errorf("status %d, %s", status, errs)
	}
	if data, err := os.ReadFile("eve/template/config.yaml"); err != nil || string(data) != "mine" {
		t.Errorf("overwritten: %s, %v", data, err)
	}
	if left := entries(t, root); !slices.Equal(left, []string{".bazelignore", "MODULE.bazel", "eve", "file"}) {
		t.Errorf("left behind: %v", left)
	}

	outside := t.TempDir()
	t.Chdir(outside)
	if status, _, errs := call("init", "bob"); status != 3 || !strings.Contains(errs, "lies in no Bazel workspace") || !strings.Contains(errs, "--workspace") {
		t.Errorf("outside of a workspace: status %d, %s", status, errs)
	}
	if left := entries(t, outside); len(left) != 0 {
		t.Errorf("left behind: %v", left)
	}
}

func entries(t *testing.T, dir string) []string {
	t.Helper()
	found, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range found {
		names = append(names, e.Name())
	}
	return names
}

func TestInitSaysWhatTheModuleLacks(t *testing.T) {
	inWorkspace(t)
	put(t, "MODULE.bazel", "bazel_dep(name = \"selfsame\", version = \"0.1.0\", repo_name = \"same\")\n")
	status, _, errs := call("init", "bob")
	if status != 0 || !strings.Contains(errs, `bazel_dep(name = "rules_shell"`) || strings.Contains(errs, `"selfsame"`) {
		t.Errorf("status %d, %s", status, errs)
	}
	if data, _ := os.ReadFile("bob/BUILD.bazel"); !bytes.Contains(data, []byte(`"@same//rules:defs.bzl"`)) || bytes.Contains(data, []byte("@selfsame")) {
		t.Errorf("loads from a name that MODULE.bazel does not give:\n%s", data)
	}
	put(t, "MODULE.bazel", "bazel_dep(\n")
	if status, _, errs := call("init", "eve"); status != 3 || !strings.Contains(errs, "MODULE.bazel") {
		t.Errorf("status %d, %s", status, errs)
	}
}

func TestInitWorkspace(t *testing.T) {
	checkout := t.TempDir()
	put(t, filepath.Join(checkout, "MODULE.bazel"), "module(name = \"selfsame\")\n")
	caller := filepath.Join(checkout, "elsewhere")
	if err := os.Mkdir(caller, 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("BUILD_WORKING_DIRECTORY", caller) // as `bazel run` sets it
	status, out, errs := call("init", "bob", "--workspace", "--selfsame", "..")
	if status != 0 || !strings.Contains(out, "cd bob\n") || !strings.Contains(errs, ".bazelignore") {
		t.Fatalf("status %d\n%s%s", status, out, errs)
	}
	data, err := os.ReadFile(filepath.Join(caller, "bob", "MODULE.bazel"))
	if err != nil || !strings.Contains(string(data), `path = "../.."`) {
		t.Errorf("%v\n%s", err, data)
	}
	t.Chdir(filepath.Join(caller, "bob"))
	for target, failed := range runTargets(t, "bob") {
		if failed != "" {
			t.Errorf("%s: %s", target, failed)
		}
	}
	put(t, filepath.Join(checkout, ".bazelignore"), "elsewhere\n")
	if _, _, errs := call("init", "ann", "--workspace", "--selfsame", ".."); errs != "" {
		t.Errorf("a note on what is ignored already: %s", errs)
	}
	if status, _, errs := call("init", "eve", "--workspace"); status != 0 || !strings.Contains(errs, "local_path_override") {
		t.Errorf("status %d, %s", status, errs)
	}
}

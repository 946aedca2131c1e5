package source_test

import (
	"debug/buildinfo"
	"errors"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"selfsame.dev/selfsame/internal/canon"
	"selfsame.dev/selfsame/manifest"
	"selfsame.dev/selfsame/manifest/leotest"
	"selfsame.dev/selfsame/manifest/source"
)

func TestPythonABI(t *testing.T) {
	const site = "venv/lib/python3.12/site-packages/"
	root := leotest.Copy(t, repository)
	m, _ := leotest.Build(t, root)
	abi := m.Identity.Inputs.Behavior.RuntimeABI
	if len(abi.Interpreters) != 1 || len(abi.Programs) != 0 {
		t.Fatalf("%+v", abi)
	}
	i := abi.Interpreters[0]
	var packages []string
	for _, p := range i.Packages {
		packages = append(packages, p.Name+" "+p.Version)
	}
	if i.Implementation != "CPython" || i.Version != "3.12.8" || i.ABITag != "cpython-312" || i.Root != manifest.HermesCode ||
		!slices.Equal(packages, []string{"hermes-agent 0.9.2", "httpx 0.28.1", "pyyaml 6.0.2"}) {
		t.Errorf("%+v %v", i, packages)
	}
	replace := func(from, to string) func(string) string {
		return func(s string) string { return strings.Replace(s, from, to, 1) }
	}
	for _, tc := range []struct {
		name    string
		file    string
		change  func(string) string
		problem string
	}{
		{"other version", "venv/pyvenv.cfg", replace("3.12.8.final.0", "3.12.9.final.0"), "declared version 3.12.8"},
		{"longer version", "venv/pyvenv.cfg", replace("3.12.8.final.0", "3.12.80"), "declared version 3.12.8"},
		{"other implementation", "venv/pyvenv.cfg", replace("CPython", "PyPy"), "declared implementation CPython"},
		{"system packages", "venv/pyvenv.cfg", replace("= false", "= true"), "outside the tree"},
		{"system packages unsaid", "venv/pyvenv.cfg", replace("include-system-site-packages = false\n", ""), "outside the tree"},
		{"other name in METADATA", site + "httpx-0.28.1.dist-info/METADATA", replace("Name: httpx", "Name: httpy"), "does not name the package"},
		{"other version in METADATA", site + "httpx-0.28.1.dist-info/METADATA", replace("Version: 0.28.1", "Version: 0.28.2"), "disagree"},
		{"two versions in METADATA", site + "httpx-0.28.1.dist-info/METADATA", replace("Version: 0.28.1", "Version: 0.28.1\nVersion: 9"), "twice"},
		{"version in the description", site + "httpx-0.28.1.dist-info/METADATA", replace("Version: 0.28.1\n", "\nVersion: 0.28.1\n"), "does not name the package"},
		{"package that changed", site + "yaml/__init__.py", strings.ToUpper, "not as the package records it"},
		{"size in RECORD", site + "httpx-0.28.1.dist-info/RECORD", func(s string) string { return regexp.MustCompile(`,(\d+)\n`).ReplaceAllString(s, ",${1}1\n") }, "not as the package records it"},
		{"file missing", site + "httpx-0.28.1.dist-info/RECORD", replace("httpx/__init__.py", "httpx/gone.py"), "not as the package records it"},
		{"weak hash", site + "httpx-0.28.1.dist-info/RECORD", replace("sha256=", "md5="), "not as the package records it"},
		{"short row", site + "httpx-0.28.1.dist-info/RECORD", replace("httpx-0.28.1.dist-info/RECORD,,", "x"), "is not CSV"},
		{"package that is not there", "selfsame-root.json", replace(`"httpx"`, `"requests"`), "0 dist-info"},
		{"declaration of another format", "selfsame-root.json", replace("code-root.v1", "code-root.v2"), "/format"},
		{"unknown name in the declaration", "selfsame-root.json", replace(`"exclude"`, `"ignore"`), "selfsame-root.json"},
		{"malformed pattern", "selfsame-root.json", replace("**/*.pyc", "**/[a].pyc"), "no meaning"},
		{"program that is not there", "selfsame-root.json", replace(`"go_programs": []`, `"go_programs": ["bin/none"]`), "not in the tree"},
		{"program that is none", "selfsame-root.json", replace(`"go_programs": []`, `"go_programs": ["hermes/prompt.py"]`), "no Go build information"},
		{"nothing declared", "selfsame-root.json", func(string) string {
			return `{"format":"code-root.v1","include":[],"exclude":[],"go_programs":[]}`
		}, "no code root declares"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			root := leotest.Copy(t, repository)
			edit(t, filepath.Join(leotest.Paths(root).HermesRoot, filepath.FromSlash(tc.file)), tc.change)
			s, err := source.Folders(leotest.Paths(root))
			if err != nil {
				t.Fatal(err)
			}
			var input *canon.InputError
			if _, err := manifest.Build(s); !errors.As(err, &input) || !strings.Contains(err.Error(), tc.problem) || input.Fix == "" {
				t.Errorf("%v, want it to say %q", err, tc.problem)
			}
		})
	}
}

// A Go program is read as debug/buildinfo reads it; the running test serves as one.
func TestGoABI(t *testing.T) {
	executable, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	want, err := buildinfo.ReadFile(executable)
	if err != nil {
		t.Fatal(err)
	}
	root := leotest.Copy(t, repository)
	hermes := leotest.Paths(root).HermesRoot
	if err := os.Mkdir(filepath.Join(hermes, "bin"), 0o755); err != nil {
		t.Fatal(err)
	}
	in, err := os.Open(executable)
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	out, err := os.Create(filepath.Join(hermes, "bin/agent"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(out, in); err != nil {
		t.Fatal(err)
	}
	if err := out.Close(); err != nil {
		t.Fatal(err)
	}
	edit(t, filepath.Join(hermes, manifest.CodeRootFile), func(s string) string {
		return strings.Replace(s, `"go_programs": []`, `"go_programs": ["bin/agent"]`, 1)
	})
	m, _ := leotest.Build(t, root)
	programs := m.Identity.Inputs.Behavior.RuntimeABI.Programs
	if len(programs) != 1 {
		t.Fatalf("%+v", programs)
	}
	p := programs[0]
	if p.Path != "bin/agent" || p.GoVersion != want.GoVersion || p.Main != want.Path || len(p.Modules) < len(want.Deps) {
		t.Errorf("%+v, want %+v", p, want)
	}
	for key := range p.Settings {
		if strings.HasPrefix(key, "vcs") || strings.Contains(key, "FLAGS") {
			t.Errorf("the setting %s depends on the building machine", key)
		}
	}
	data, err := m.Encode()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := manifest.Decode("m.json", data); err != nil {
		t.Error(err)
	}
}

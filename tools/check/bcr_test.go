package check

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/bazelbuild/buildtools/build"
	"go.yaml.in/yaml/v3"
)

// bcrMetadata is metadata.json of the Bazel Central Registry (its metadata.schema.json, and what its validation
// asks for beyond that).
type bcrMetadata struct {
	Homepage    string `json:"homepage"`
	Maintainers []struct {
		Name   string `json:"name"`
		Email  string `json:"email,omitempty"`
		GitHub string `json:"github,omitempty"`
		ID     int64  `json:"github_user_id,omitempty"`
	} `json:"maintainers"`
	Repository []string          `json:"repository"`
	Versions   []string          `json:"versions"`
	Yanked     map[string]string `json:"yanked_versions"`
}

// bcrSource is source.json, before the registry's publisher fills in {OWNER}, {REPO}, {VERSION} and {TAG}.
type bcrSource struct {
	Integrity   string `json:"integrity"`
	StripPrefix string `json:"strip_prefix"`
	URL         string `json:"url"`
}

type bcrTasks struct {
	Matrix map[string][]string `yaml:"matrix"`
	Tasks  map[string]struct {
		Name     string   `yaml:"name"`
		Platform string   `yaml:"platform"`
		Bazel    string   `yaml:"bazel"`
		Build    []string `yaml:"build_targets"`
		Test     []string `yaml:"test_targets"`
	} `yaml:"tasks"`
}

type bcrPresubmit struct {
	bcrTasks   `yaml:",inline"`
	TestModule struct {
		Path     string `yaml:"module_path"`
		bcrTasks `yaml:",inline"`
	} `yaml:"bcr_test_module"`
}

func TestRegistryFiles(t *testing.T) {
	files := checkout(t)
	if err := registryFiles(files); err != nil {
		t.Error(err)
	}
	for _, control := range []struct{ file, from, to, says string }{
		{".bcr/metadata.template.json", `"versions": []`, `"versions": ["0.1.0"]`, "the publisher fills it"},
		{".bcr/metadata.template.json", `"name"`, `"nickname"`, "unknown field"},
		{".bcr/metadata.template.json", `"homepage"`, `"home"`, "unknown field"},
		{".bcr/metadata.template.json", "OWNER/selfsame\"\n    ]", "OWNER/other\"\n    ]", "homepage"},
		{".bcr/metadata.template.json", `"name": "PLACEHOLDER`, `"github": "somebody", "name": "PLACEHOLDER`, "github_user_id"},
		{".bcr/source.template.json", "{TAG}", "{LABEL}", "{LABEL}"},
		{".bcr/source.template.json", "releases/download", "archive", "stable"},
		{".bcr/presubmit.yml", "bazel: [7.x]", "bazel: [6.x]", "6.x"},
		{".bcr/presubmit.yml", "    bazel: ${{ bazel }}\n", "", "names no bazel"},
		{".bcr/presubmit.yml", "${{ platform }}", "${{ machine }}", "machine"},
		{".bcr/presubmit.yml", "e2e/smoke", "e2e/smok", "MODULE.bazel"},
		{".bcr/presubmit.yml", "//ada:profile", "//ada:nobody", "//ada:nobody"},
		{".bcr/presubmit.yml", "@selfsame//tools/selfsame", "@selfsame//tools/nothing", "//tools/nothing"},
		{".bcr/presubmit.yml", "test_targets", "tests", "tests"},
		{"MODULE.bazel", `version = "0.1.0"`, `version = "0.2.0"`, "0.1.0"},
		{"e2e/smoke/MODULE.bazel", `"../.."`, `".."`, "e2e"},
		{"e2e/smoke/.bazelversion", "7.7.1", "7.6.0", "7.6.0"},
	} {
		if !bytes.Contains(files[control.file], []byte(control.from)) {
			t.Errorf("%s does not hold %q", control.file, control.from)
			continue
		}
		kept := files[control.file]
		files[control.file] = bytes.Replace(kept, []byte(control.from), []byte(control.to), 1)
		if err := registryFiles(files); err == nil || !strings.Contains(err.Error(), control.says) {
			t.Errorf("control %s: %q to %q: %v", control.file, control.from, control.to, err)
		}
		files[control.file] = kept
	}
}

func registryFiles(files map[string][]byte) error {
	return errors.Join(registryMetadata(files), registryPresubmit(files))
}

func registryMetadata(files map[string][]byte) error {
	var metadata bcrMetadata
	var source bcrSource
	for name, dst := range map[string]any{".bcr/metadata.template.json": &metadata, ".bcr/source.template.json": &source} {
		d := json.NewDecoder(bytes.NewReader(files[name]))
		d.DisallowUnknownFields()
		if err := d.Decode(dst); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	problem := func(format string, args ...any) error {
		return fmt.Errorf(".bcr: "+format, args...)
	}
	switch {
	case metadata.Homepage == "" || len(metadata.Maintainers) == 0 || metadata.Versions == nil || metadata.Yanked == nil:
		return problem("homepage, maintainers (one at least), versions and yanked_versions are required")
	case len(metadata.Versions) > 0 || source.Integrity != "":
		return problem("versions and integrity stay empty: the publisher fills it in")
	case len(metadata.Repository) != 1 || metadata.Homepage != strings.Replace(metadata.Repository[0], "github:", "https://github.com/", 1):
		return problem("homepage %s is not that of repository %v", metadata.Homepage, metadata.Repository)
	case !strings.HasPrefix(source.URL, "https://github.com/{OWNER}/{REPO}/releases/download/{TAG}/"):
		return problem("%s is no stable archive of a release", source.URL)
	}
	for _, m := range metadata.Maintainers {
		if m.Name == "" || (m.GitHub != "") != (m.ID != 0) {
			return problem("a maintainer has a name, and github only together with github_user_id")
		}
	}
	for _, hole := range regexp.MustCompile(`\{[^}]*\}`).FindAllString(source.URL+source.StripPrefix, -1) {
		if !slices.Contains([]string{"{OWNER}", "{REPO}", "{TAG}", "{VERSION}"}, hole) {
			return problem("the publisher does not know %s", hole)
		}
	}
	return nil
}

func registryPresubmit(files map[string][]byte) error {
	var presubmit bcrPresubmit
	d := yaml.NewDecoder(bytes.NewReader(files[".bcr/presubmit.yml"]))
	d.KnownFields(true)
	if err := d.Decode(&presubmit); err != nil {
		return fmt.Errorf(".bcr/presubmit.yml: %w", err)
	}
	version := strings.TrimSpace(string(files[".bazelversion"]))
	module := presubmit.TestModule.Path
	if own := strings.TrimSpace(string(files[module+"/.bazelversion"])); own != version {
		return fmt.Errorf("%s/MODULE.bazel is tested with Bazel %q, .bazelversion says %s", module, own, version)
	}
	if err := testModule(files, module); err != nil {
		return err
	}
	for root, tasks := range map[string]bcrTasks{"": presubmit.bcrTasks, module: presubmit.TestModule.bcrTasks} {
		if len(tasks.Tasks) == 0 || len(tasks.Matrix["platform"]) == 0 {
			return fmt.Errorf(".bcr/presubmit.yml: no task, or no platform")
		}
		major, _, _ := strings.Cut(version, ".")
		for _, b := range tasks.Matrix["bazel"] {
			if b != version && b != major+".x" {
				return fmt.Errorf(".bcr/presubmit.yml: bazel %s is not what .bazelversion says: %s", b, version)
			}
		}
		for name, task := range tasks.Tasks {
			if task.Bazel == "" || task.Name == "" {
				return fmt.Errorf(".bcr/presubmit.yml: task %s names no bazel, or has no name", name)
			}
			for _, v := range []string{task.Bazel, task.Platform} {
				if key := strings.TrimSuffix(strings.TrimPrefix(v, "${{ "), " }}"); tasks.Matrix[key] == nil {
					return fmt.Errorf(".bcr/presubmit.yml: task %s: the matrix has no %s", name, key)
				}
			}
			for _, target := range slices.Concat(task.Build, task.Test) {
				if !targetExists(files, root, target) {
					return fmt.Errorf(".bcr/presubmit.yml: task %s: there is no target %s", name, target)
				}
			}
			if len(task.Build)+len(task.Test) == 0 {
				return fmt.Errorf(".bcr/presubmit.yml: task %s has no target", name)
			}
		}
	}
	return nil
}

// testModule says what is wrong with a module that tests the one at the root.
func testModule(files map[string][]byte, folder string) error {
	own, err := build.ParseModule("MODULE.bazel", files["MODULE.bazel"])
	if err != nil {
		return err
	}
	name := folder + "/MODULE.bazel"
	f, err := build.ParseModule(name, files[name])
	if err != nil {
		return err
	}
	want := own.Rules("module")[0].AttrString("version")
	for _, dep := range f.Rules("bazel_dep") {
		if dep.Name() == "selfsame" && dep.AttrString("version") != want {
			return fmt.Errorf("%s asks for selfsame %s, it is %s", name, dep.AttrString("version"), want)
		}
	}
	for _, o := range f.Rules("local_path_override") {
		if o.AttrString("module_name") == "selfsame" {
			if at := path.Join(folder, o.AttrString("path")); at != "." {
				return fmt.Errorf("%s overrides selfsame with %s, which is not the root", name, at)
			}
			return nil
		}
	}
	return fmt.Errorf("%s does not override selfsame", name)
}

// targetExists looks for a target in the BUILD files of the module at root.
func targetExists(files map[string][]byte, root, target string) bool {
	target = strings.TrimPrefix(strings.TrimPrefix(target, "@selfsame"), "//")
	pkg, name, named := strings.Cut(target, ":")
	if pkg == "..." {
		return slices.ContainsFunc(slices.Collect(maps.Keys(files)), func(f string) bool {
			return strings.HasPrefix(f, root+"/") && path.Base(f) == "BUILD.bazel"
		})
	}
	if !named {
		name = path.Base(pkg)
	}
	at := path.Join(root, pkg, "BUILD.bazel")
	f, err := build.ParseBuild(at, files[at])
	return err == nil && f.RuleNamed(name) != nil
}

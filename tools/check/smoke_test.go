package check

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/bazelbuild/buildtools/build"

	"selfsame.dev/selfsame/tools/selfsame/scaffold"
)

const remake = "rm -r e2e/smoke && go run ./tools/selfsame init ada --workspace --dir e2e/smoke --selfsame ."

// e2e/smoke, which .ci/run builds and tests, is what selfsame init writes, byte for byte.
func TestSmokeIsScaffolded(t *testing.T) {
	files, err := scaffold.Workspace("ada", "../..")
	if err != nil {
		t.Fatal(err)
	}
	held := map[string][]byte{}
	for name, data := range checkout(t) {
		if below, ok := strings.CutPrefix(name, "e2e/smoke/"); ok {
			held[below] = data
		}
	}
	differs := func() (names []string) {
		made := map[string]bool{}
		for _, f := range files {
			made[f.Path] = true
			if data, ok := held[f.Path]; !ok || !bytes.Equal(data, f.Data) {
				names = append(names, f.Path)
			}
		}
		for name := range held {
			if !made[name] {
				names = append(names, name)
			}
		}
		return names
	}
	if names := differs(); len(names) > 0 {
		t.Errorf("e2e/smoke is not what selfsame init writes: %v; run: %s", names, remake)
	}
	held["ada/more"] = nil
	held["ada/query.json"] = append(held["ada/query.json"], '\n')
	if names := differs(); !slices.Equal(names, []string{"ada/query.json", "ada/more"}) {
		t.Errorf("control: %v", names)
	}
}

// A scaffold uses every public rule, and asks for the versions that this repository asks for.
func TestScaffoldIsComplete(t *testing.T) {
	tree := checkout(t)
	defs, err := build.ParseBzl("rules/defs.bzl", tree["rules/defs.bzl"])
	if err != nil {
		t.Fatal(err)
	}
	used, err := build.ParseBuild("BUILD.bazel", tree["e2e/smoke/ada/BUILD.bazel"])
	if err != nil {
		t.Fatal(err)
	}
	rules := 0
	for _, statement := range defs.Stmt {
		assign, ok := statement.(*build.AssignExpr)
		if !ok {
			continue
		}
		name := assign.LHS.(*build.Ident).Name
		if strings.HasSuffix(name, "Info") { // a provider
			continue
		}
		rules++
		if len(used.Rules(name)) == 0 {
			t.Errorf("selfsame init has no target of %s", name)
		}
	}
	if rules < 7 || len(used.Rules("no_such_rule")) > 0 {
		t.Errorf("control: %d rules were looked for", rules)
	}
	versions := func(name string) map[string]string {
		f, err := build.ParseModule(name, tree[name])
		if err != nil {
			t.Fatal(err)
		}
		found := map[string]string{}
		for _, r := range slices.Concat(f.Rules("module"), f.Rules("bazel_dep")) {
			found[r.Name()] = r.AttrString("version")
		}
		return found
	}
	own := versions("MODULE.bazel")
	for name, version := range versions("e2e/smoke/MODULE.bazel") {
		if own[name] != version {
			t.Errorf("selfsame init asks for %s %s, MODULE.bazel has %s", name, version, own[name])
		}
	}
	if a, b := tree[".bazelversion"], tree["e2e/smoke/.bazelversion"]; !bytes.Equal(a, b) {
		t.Errorf("selfsame init asks for Bazel %s, this repository for %s", b, a)
	}
}

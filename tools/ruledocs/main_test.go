package main

import (
	"bytes"
	"strings"
	"testing"
)

// docs/rules.md is what the docstrings say now.
func TestCurrent(t *testing.T) {
	read := under("../..")
	page, err := render(public, read)
	if err != nil {
		t.Fatal(err)
	}
	held, err := read(output)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(page, held) {
		t.Errorf("%s is not current; run: go run ./tools/ruledocs", output)
	}
}

// What the page must follow, and what it must refuse, each by a change of one file.
func TestControls(t *testing.T) {
	real := under("../..")
	page, err := render(public, real)
	if err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct{ file, from, to, says string }{
		{"rules/private/canary.bzl", "How long one start may take.", "How long.", ""},
		{"rules/private/canary.bzl", "default = 30,", "default = 31,", ""},
		{"rules/private/tree.bzl", "mandatory = True,", "", ""},
		{"rules/private/providers.bzl", "A compiled profile.", "A profile.", ""},
		{"rules/private/living.bzl", `"deltas": attr.label_list(`, `"turns": attr.label_list(`, ""},
		{"rules/defs.bzl", "\nidentity_tree = _identity_tree\n", "\n", ""},
		{"rules/private/tree.bzl", `            doc = "Folder`, `            documentation = "Folder`, "identity_tree: root: has no doc"},
		{"rules/private/canary.bzl", `doc = "Arguments of the runtime. Default: none."`, `doc = " "`, "canary_test: runtime_args: has an empty doc"},
		{"rules/private/profile.bzl", `    doc = """Compiles`, `    x = """Compiles`, "identity_profile: has no doc"},
		{"rules/private/providers.bzl", `"File: the folder"`, `""`, "IdentityProfileInfo: profile: has no doc"},
		{"rules/private/living.bzl", `attr.string_dict(`, `attr.output(`, "living_profile_test: expect_refused: the type attr.output"},
		{"rules/defs.bzl", "identity_tree = _identity_tree", "identity_tree = _nothing", "_nothing is no assignment"},
		{"rules/defs.bzl", "identity_tree = _identity_tree", "identity_tree = _identity_tree\ndef macro():\n    pass\n", "only assignments"},
		{"rules/defs.bzl", `"""Public rules`, `_DOC = """Public rules`, "has no docstring"},
	} {
		changed := false
		got, err := render(public, func(name string) ([]byte, error) {
			data, err := real(name)
			if name == tc.file {
				changed = bytes.Contains(data, []byte(tc.from))
				data = bytes.Replace(data, []byte(tc.from), []byte(tc.to), 1)
			}
			return data, err
		})
		switch {
		case !changed:
			t.Errorf("%s does not hold %q", tc.file, tc.from)
		case tc.says == "" && (err != nil || bytes.Equal(got, page)):
			t.Errorf("%s: %q to %q goes unnoticed: %v", tc.file, tc.from, tc.to, err)
		case tc.says != "" && (err == nil || !strings.Contains(err.Error(), tc.says)):
			t.Errorf("%s: %q to %q: %v", tc.file, tc.from, tc.to, err)
		}
	}
}

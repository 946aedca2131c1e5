package source_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"selfsame.dev/selfsame/internal/canon"
	"selfsame.dev/selfsame/internal/tree"
	"selfsame.dev/selfsame/manifest"
	"selfsame.dev/selfsame/manifest/bundle/disk"
	"selfsame.dev/selfsame/manifest/leotest"
	"selfsame.dev/selfsame/manifest/source"
)

// A bundle stands for the commit of a root that is in no clean work tree, as long as the root's inputs are those in it.
func TestOriginsOfBundles(t *testing.T) {
	root := leotest.Copy(t, repository)
	p := leotest.Paths(root)
	bundles, sums := map[string]string{}, map[string]canon.Digest{}
	for part, folder := range map[string]string{"profile-template": p.ProfileTemplate, "hermes-root": p.HermesRoot, "deployment-root": p.DeploymentRoot, "source-root": p.SourceRoot} {
		selection := tree.Selection{Exclude: []string{"**/.env", "**/auth.json"}}
		if part == "hermes-root" {
			var err error
			if selection, err = source.CodeSelection(folder); err != nil {
				t.Fatal(err)
			}
		}
		file, err := os.Create(filepath.Join(t.TempDir(), part))
		if err != nil {
			t.Fatal(err)
		}
		s, err := disk.Create(file, folder, selection)
		if err := errors.Join(err, file.Close()); err != nil {
			t.Fatal(err)
		}
		bundles[part], sums[part] = file.Name(), s.SHA256
	}
	origins, err := source.Origins(p, bundles)
	if err != nil || len(origins) != 4 {
		t.Fatalf("%v, %v", origins, err)
	}
	for _, o := range origins {
		if o.Kind != manifest.OriginBundle || o.Bundle == nil || *o.Bundle != sums[o.Root] || o.Commit != "" {
			t.Errorf("%+v, want bundle %s", o, sums[o.Root])
		}
	}
	s, err := source.Folders(p)
	if err != nil {
		t.Fatal(err)
	}
	s.Origins = origins
	b, err := manifest.Observe(s)
	if err != nil {
		t.Fatal(err)
	}
	data, err := b.Encode()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := manifest.DecodeBehavior("b", data); err != nil || !strings.Contains(string(data), `{"bundle_sha256":"`+sums["hermes-root"].String()+`","kind":"source_bundle","root":"hermes-root"}`) {
		t.Errorf("%v: %s", err, data)
	}
	forged := strings.Replace(string(data), `"bundle_sha256":"`+sums["hermes-root"].String()+`",`, "", 1)
	if _, err := manifest.DecodeBehavior("b", []byte(forged)); err == nil {
		t.Error("a source bundle without its digest is accepted")
	}

	refused := func(bundles map[string]string, problem string) {
		t.Helper()
		var input *canon.InputError
		if _, err := source.Origins(p, bundles); !errors.As(err, &input) || !strings.Contains(err.Error(), problem) || input.Fix == "" {
			t.Errorf("%v, want a refusal that speaks of %q", err, problem)
		}
	}
	hermes := func(file string) map[string]string {
		out := map[string]string{}
		for part, b := range bundles {
			out[part] = b
		}
		out["hermes-root"] = file
		return out
	}
	// Control: nothing else says where the files came from. Where there is no Git nobody can.
	if leotest.Git(t) {
		refused(nil, "no Git work tree")
	} else if _, err := source.Origins(p, nil); err == nil {
		t.Error("inputs of nowhere are accepted")
	}
	extra := hermes(bundles["hermes-root"])
	extra["no-root"] = bundles["hermes-root"]
	refused(extra, "--bundle")
	refused(hermes(bundles["deployment-root"]), "hermes-root: inputs are not those of bundle")
	whole, err := os.ReadFile(bundles["hermes-root"])
	if err != nil {
		t.Fatal(err)
	}
	damaged := filepath.Join(t.TempDir(), "damaged")
	put(t, damaged, string(whole[:len(whole)-1]))
	refused(hermes(damaged), damaged+": ends too early")

	put(t, filepath.Join(p.ProfileTemplate, "sessions/new.jsonl"), "{}\n") // no input
	if _, err := source.Origins(p, bundles); err != nil {
		t.Errorf("control: what is no input may differ: %v", err)
	}
	changed := filepath.Join(p.HermesRoot, "hermes/prompt.py")
	edit(t, changed, strings.ToUpper)
	refused(bundles, "hermes/prompt.py (changed)")
	if err := os.Rename(changed, filepath.Join(p.HermesRoot, "hermes/moved.py")); err != nil {
		t.Fatal(err)
	}
	refused(bundles, "hermes/moved.py (added), hermes/prompt.py (missing)")
}

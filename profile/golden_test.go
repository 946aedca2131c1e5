package profile_test

import (
	"flag"
	"os"
	"path/filepath"
	"testing"

	"selfsame.dev/selfsame/internal/canon"
	"selfsame.dev/selfsame/manifest"
	"selfsame.dev/selfsame/manifest/leotest"
	"selfsame.dev/selfsame/profile"
)

const repository = ".."

var update = flag.Bool("update", false, "write the golden files anew")

// Law I1 over time and machines: Leo's outputs are these bytes. Run with -update after a change of
// fixtures or formats that is meant.
func TestGolden(t *testing.T) {
	root := leotest.Copy(t, repository)
	m, s := leotest.Build(t, root)
	s.Origins = []manifest.Origin{{Root: "profile-template", Kind: manifest.OriginContentAddressed}}
	s.ObservationKey = []byte("a fixed key makes a fixed vector")
	b, err := manifest.Observe(s)
	if err != nil {
		t.Fatal(err)
	}
	provenance, err := manifest.ProvenanceOf(m, append(s.Origins, manifest.Origin{Root: "source-root", Kind: manifest.OriginGit, Commit: "0123456789abcdef0123456789abcdef01234567", Path: "."}))
	if err != nil {
		t.Fatal(err)
	}
	files, err := profile.Files(m)
	if err != nil {
		t.Fatal(err)
	}
	outputs := map[string]func() ([]byte, error){
		"leo-behavior-manifest-v1.json": b.Encode,
		"leo-identity-manifest-v1.json": m.Encode,
		"leo-provenance-v1.json":        func() ([]byte, error) { return canon.Marshal(provenance) },
	}
	for _, f := range files {
		if f.Data != nil {
			outputs["profile-"+f.Path] = func() ([]byte, error) { return f.Data, nil }
		}
	}
	if len(outputs) != 7 {
		t.Errorf("%d outputs", len(outputs))
	}
	for name, encode := range outputs {
		have, err := encode()
		if err != nil {
			t.Fatal(err)
		}
		file := filepath.Join(repository, "fixtures/working-leo/golden", name)
		if *update {
			if err := os.WriteFile(file, have, 0o644); err != nil {
				t.Fatal(err)
			}
			continue
		}
		want, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if string(have) != string(want) {
			t.Errorf("%s differs; if that is meant: go test ./profile -run TestGolden -update\n%s", name, have)
		}
	}
}

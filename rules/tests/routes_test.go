//go:build bazel

package tests

import (
	"os"
	"path/filepath"
	"testing"

	"selfsame.dev/selfsame/manifest/leotest"
)

const repository = "../.."

// TestRoutes holds the manifest that the rules made against the one made from folders, as the
// command line does: law I1 across both routes.
func TestRoutes(t *testing.T) {
	root := leotest.Copy(t, repository)
	read := func() string {
		m, _ := leotest.Build(t, root)
		data, err := m.Encode()
		if err != nil {
			t.Fatal(err)
		}
		return string(data)
	}
	made, err := os.ReadFile(output(t, "manifest/leo.json"))
	if err != nil {
		t.Fatal(err)
	}
	if read() != string(made) {
		t.Error("the rules and the folders give two manifests of one tree")
	}
	skill := filepath.Join(root, leotest.Folder, "profile-template/skills/leo-voice/SKILL.md")
	if err := os.WriteFile(skill, []byte("other\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if read() == string(made) {
		t.Error("control: another tree has the same manifest")
	}
}

// TestNoCredentialInOutputs searches everything that the rules made for every planted
// credential, plain, encoded or digested (law I4).
func TestNoCredentialInOutputs(t *testing.T) {
	var secrets []string
	for _, p := range leotest.Credentials(t, repository).Planted {
		secrets = append(secrets, p.Value)
	}
	if len(secrets) < 10 {
		t.Fatalf("only %d credentials are planted", len(secrets))
	}
	searched := 0
	for _, name := range []string{"manifest/leo.json", "manifest/leo.behavior.json", "manifest/leo.provenance.json", "profile/leo"} {
		err := filepath.WalkDir(output(t, name), func(path string, d os.DirEntry, err error) error {
			if err != nil {
				return err
			}
			if info, err := os.Stat(path); err != nil || info.IsDir() {
				return err
			}
			data, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			searched++
			if leaks := leotest.Leaks(data, secrets...); len(leaks) > 0 {
				t.Errorf("%s holds %v", path, leaks)
			}
			if len(leotest.Leaks(append(data, secrets[0]...), secrets...)) == 0 {
				t.Errorf("control: a leak in %s is not found", path)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if searched < 12 {
		t.Errorf("only %d files were searched", searched)
	}
}

// output returns the path of an output of the main repository in the runfiles.
func output(t *testing.T, name string) string {
	t.Helper()
	return filepath.Join(os.Getenv("TEST_SRCDIR"), os.Getenv("TEST_WORKSPACE"), filepath.FromSlash(name))
}

//go:build bazel

package check

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// TestGazelle asks the gazelle that the build uses whether it would change a BUILD file. It
// runs under Bazel alone, which builds gazelle and names it in SELFSAME_GAZELLE.
func TestGazelle(t *testing.T) {
	gazelle := runfile(t, "SELFSAME_GAZELLE")
	// The list of Go repositories, which gazelle's runner has beside it.
	configs, err := filepath.Glob(filepath.Join(os.Getenv("TEST_SRCDIR"), "*bazel_gazelle_go_repository_config", "WORKSPACE"))
	if err != nil || len(configs) != 1 {
		t.Fatalf("found %q, %v", configs, err)
	}
	root := t.TempDir()
	for name, data := range checkout(t) {
		write(t, filepath.Join(root, name), data)
	}
	diff := func() []byte {
		cmd := exec.Command(gazelle, "update", "-mode=diff", "-bzlmod", "-repo_config="+configs[0], "-repo_root="+root)
		cmd.Dir = root
		cmd.Env = append(os.Environ(), "GOPROXY=off", "GOFLAGS=-mod=mod", "HOME="+t.TempDir())
		var out bytes.Buffer
		cmd.Stdout, cmd.Stderr = &out, &out
		if err := cmd.Run(); err != nil && out.Len() == 0 {
			t.Fatal(err)
		}
		return out.Bytes()
	}
	if out := diff(); len(out) > 0 {
		t.Errorf("BUILD files are not what gazelle makes; run: ./bazelw run //:gazelle\n%s", out)
	}
	write(t, filepath.Join(root, "internal/canon/extra.go"), []byte("package canon\n"))
	if len(diff()) == 0 {
		t.Error("control: a source file that no BUILD file names goes unnoticed")
	}
}

func runfile(t *testing.T, variable string) string {
	t.Helper()
	name := os.Getenv(variable)
	if name == "" {
		t.Fatalf("%s is not set: run ./bazelw test //tools/check/...", variable)
	}
	return filepath.Join(os.Getenv("TEST_SRCDIR"), name)
}

func write(t *testing.T, path string, data []byte) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, data, 0o644); err != nil {
		t.Fatal(err)
	}
}

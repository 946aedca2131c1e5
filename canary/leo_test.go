package canary

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"selfsame.dev/selfsame/canary/respond/embedded"
	"selfsame.dev/selfsame/internal/atomicfile"
	"selfsame.dev/selfsame/manifest"
	"selfsame.dev/selfsame/manifest/leotest"
	"selfsame.dev/selfsame/manifest/source"
)

// repository is the way to the top from here.
const repository = ".."

// leo is the canary of the seed on a source root.
func leo(t testing.TB, root string) Config {
	t.Helper()
	paths := leotest.Paths(root)
	return Config{
		Agent:   NewSourced(func() (manifest.Sources, error) { return source.Folders(paths) }),
		Runtime: responder(t),
		Now:     time.Now,
	}
}

// responder is the program that SELFSAME_RESPONDER names, from here or from the top of the
// runfiles, or else this test binary in the same role.
func responder(t testing.TB) Runtime {
	t.Helper()
	name := os.Getenv("SELFSAME_RESPONDER")
	if name == "" {
		exe, err := os.Executable()
		if err != nil {
			t.Fatal(err)
		}
		return Runtime{Program: exe, Args: []string{embedded.Arg}, Variant: LocalResponder}
	}
	for _, base := range []string{"", filepath.Join(os.Getenv("TEST_SRCDIR"), os.Getenv("TEST_WORKSPACE")), os.Getenv("TEST_SRCDIR")} {
		if at, err := filepath.Abs(filepath.Join(base, name)); err == nil {
			if _, err := os.Stat(at); err == nil {
				return Runtime{Program: at, Variant: LocalResponder}
			}
		}
	}
	t.Fatalf("SELFSAME_RESPONDER=%s: no such file, here or in the runfiles", name)
	return Runtime{}
}

// keep stores a receipt where Bazel collects what a test leaves.
func keep(t *testing.T, name string, r *Receipt) {
	t.Helper()
	dir := os.Getenv("TEST_UNDECLARED_OUTPUTS_DIR")
	if dir == "" {
		return
	}
	data, err := r.Encode()
	if err != nil {
		t.Fatal(err)
	}
	if err := atomicfile.Write(filepath.Join(dir, strings.NewReplacer("/", "_", "@", "_", ":", "_").Replace(name)+".json"), data, 0o644); err != nil {
		t.Fatal(err)
	}
}

// noCredentials searches a receipt for the planted credentials and their digests (law I4).
func noCredentials(t *testing.T, r *Receipt) {
	t.Helper()
	data, err := r.Encode()
	if err != nil {
		t.Fatal(err)
	}
	var secrets []string
	for _, p := range leotest.Credentials(t, repository).Planted {
		secrets = append(secrets, p.Value)
	}
	if leaks := leotest.Leaks(data, secrets...); len(leaks) > 0 {
		t.Errorf("the receipt holds %v", leaks)
	}
	if len(leotest.Leaks(append(data, secrets[0]...), secrets...)) == 0 {
		t.Error("control: a leak is not found")
	}
}

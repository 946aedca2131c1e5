package canary

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"selfsame.dev/selfsame/internal/atomicfile"
	"selfsame.dev/selfsame/manifest"
	"selfsame.dev/selfsame/manifest/source"
)

// fixtures is where Leo's committed inputs are, from the source root.
const fixtures = "fixtures/working-leo/leo-identity-v1"

// leoRoot copies the fixtures below a new source root: under Bazel they are links, and
// a test may change what it owns.
func leoRoot(t testing.TB) string {
	t.Helper()
	root := t.TempDir()
	from := filepath.Join("..", filepath.FromSlash(fixtures))
	err := filepath.WalkDir(from, func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := os.Stat(name) // through links
		if err != nil || info.IsDir() {
			return err
		}
		relative, err := filepath.Rel(from, name)
		if err != nil {
			return err
		}
		data, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		to := filepath.Join(root, filepath.FromSlash(fixtures), relative)
		if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
			return err
		}
		return os.WriteFile(to, data, 0o644)
	})
	if err != nil {
		t.Fatal(err)
	}
	return root
}

func leoPaths(root string) source.Paths {
	at := func(name string) string { return filepath.Join(root, filepath.FromSlash(fixtures), name) }
	return source.Paths{
		ProfileTemplate: at("profile-template"), HermesRoot: at("hermes-runtime"), DeploymentRoot: at("teleo-deployment"), SourceRoot: root,
		DatabaseFingerprint: at("leo-database-fingerprint-v1.json"), Constitution: at("leo-constitution-v1.json"), DatabaseIdentity: at("leo-database-identity-v1.json"),
	}
}

// leo is the canary of the seed on a source root.
func leo(t testing.TB, root string) Config {
	t.Helper()
	paths := leoPaths(root)
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
		return Runtime{Program: exe, Args: []string{"respond"}, Variant: LocalResponder}
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

// Package leotest gives tests a copy of Leo's fixtures that they may change.
package leotest

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"selfsame.dev/selfsame/internal/canon"
	"selfsame.dev/selfsame/manifest"
	"selfsame.dev/selfsame/manifest/source"
)

// Folder is where the fixtures are, relative to the source root.
const Folder = "fixtures/working-leo/leo-identity-v1"

// Git reports whether Git is there. It must be under go test and in a Bazel that bazelw provisioned (which
// names its rc file to tests); another Bazel may run tests where Git is not installed, and says so.
func Git(t testing.TB) bool {
	t.Helper()
	_, err := exec.LookPath("git")
	switch {
	case err == nil:
		return true
	case os.Getenv("TEST_SRCDIR") == "" || os.Getenv("SELFSAME_BAZELRC") != "":
		t.Fatalf("Git is part of the environment of these tests: %v", err)
	default:
		t.Logf("NOT RUN: tests of clean checkouts, for want of Git; install git where Bazel runs tests (%v)", err)
	}
	return false
}

// Copy copies the fixtures into a new source root and returns it. Repository is the way from the folder of
// the test to the top of the repository. Files are read through links, as Bazel makes them.
func Copy(t testing.TB, repository string) string {
	t.Helper()
	root := t.TempDir()
	CopyTo(t, repository, root)
	return root
}

// CopyTo is [Copy] into an existing folder.
func CopyTo(t testing.TB, repository, root string) {
	t.Helper()
	from := filepath.Join(repository, filepath.FromSlash(Folder))
	count := 0
	err := filepath.WalkDir(from, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		relative, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		to := filepath.Join(root, filepath.FromSlash(Folder), relative)
		if d.IsDir() {
			return os.MkdirAll(to, 0o755)
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		count++
		return os.WriteFile(to, data, 0o644)
	})
	if err != nil {
		t.Fatal(err)
	}
	if count < 40 {
		t.Fatalf("only %d fixture files in %s: declare them as data", count, from)
	}
}

// Paths are the inputs of Leo below a source root.
func Paths(root string) source.Paths {
	at := func(name string) string { return filepath.Join(root, filepath.FromSlash(Folder), name) }
	return source.Paths{
		ProfileTemplate: at("profile-template"), HermesRoot: at("hermes-runtime"), DeploymentRoot: at("teleo-deployment"), SourceRoot: root,
		DatabaseFingerprint: at("leo-database-fingerprint-v1.json"), Constitution: at("leo-constitution-v1.json"), DatabaseIdentity: at("leo-database-identity-v1.json"),
	}
}

// Build reads the inputs below root and makes the manifest.
func Build(t testing.TB, root string) (*manifest.Manifest, manifest.Sources) {
	t.Helper()
	s, err := source.Folders(Paths(root))
	if err != nil {
		t.Fatal(err)
	}
	m, err := manifest.Build(s)
	if err != nil {
		t.Fatal(err)
	}
	return m, s
}

// Planted is the list of credentials in the fixtures.
type Planted struct {
	About   string `json:"about"`
	Planted []struct {
		File  string `json:"file"`
		Place string `json:"place"`
		Value string `json:"value"`
	} `json:"planted"`
}

// Credentials reads the list of planted credentials.
func Credentials(t testing.TB, repository string) Planted {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(repository, "fixtures/working-leo/planted-credentials.json"))
	if err != nil {
		t.Fatal(err)
	}
	var p Planted
	if err := canon.Decode(data, &p); err != nil {
		t.Fatal(err)
	}
	if len(p.Planted) < 20 {
		t.Fatalf("only %d planted credentials", len(p.Planted))
	}
	return p
}

// Leaks returns which of the secrets are in text: as they are, in base64, or as SHA-256 in hexadecimal or
// base64, with and without a trailing newline.
func Leaks(text []byte, secrets ...string) []string {
	var found []string
	lower := bytes.ToLower(text)
	for _, secret := range secrets {
		for _, form := range forms(secret) {
			if bytes.Contains(text, []byte(form)) || bytes.Contains(lower, []byte(form)) {
				found = append(found, form)
			}
		}
	}
	return found
}

func forms(secret string) []string {
	out := []string{secret}
	encode := func(data []byte) {
		for _, e := range []*base64.Encoding{base64.StdEncoding, base64.URLEncoding} {
			// Without padding a match is one with padding too. Inside longer data the base64 differs by offset.
			for offset := range 3 {
				text := e.EncodeToString(append(make([]byte, offset), data...))
				text = strings.TrimRight(text, "=")
				if cut := []int{0, 2, 3}[offset]; len(text)-cut > 12 {
					out = append(out, text[cut:len(text)-1])
				}
			}
		}
	}
	encode([]byte(secret))
	for _, data := range []string{secret, secret + "\n"} {
		sum := sha256.Sum256([]byte(data))
		out = append(out, hex.EncodeToString(sum[:]))
		encode(sum[:])
	}
	return out
}

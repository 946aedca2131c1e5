package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"selfsame.dev/selfsame/manifest/compare"
	"selfsame.dev/selfsame/schemas"
)

const goldens = "../../fixtures/working-leo/golden/"

func place(t *testing.T, data []byte, path ...string) string {
	t.Helper()
	file := filepath.Join(path...)
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, data, 0o644); err != nil {
		t.Fatal(err)
	}
	return file
}

func TestCompare(t *testing.T) {
	dir := t.TempDir()
	data := mustRead(t, goldens+"leo-identity-manifest-v1.json")
	a := place(t, data, dir, "a.json")
	behavior := place(t, mustRead(t, goldens+"leo-behavior-manifest-v1.json"), dir, "behavior.json")
	forged := place(t, bytes.Replace(data, []byte(`"size":`), []byte(`"size":1`), 1), dir, "forged.json")
	if status, out, _ := call("compare", a, a); status != exitHolds || !strings.HasSuffix(out, "equal\n") {
		t.Errorf("%d, %s", status, out)
	}
	var out, errs bytes.Buffer
	if status := run(context.Background(), []string{"compare", "-", a, "--json"}, streams{bytes.NewReader(data), &out, &errs}); status != exitHolds || !strings.Contains(out.String(), `"name":"-"`) {
		t.Errorf("standard input: %d, %s%s", status, &out, &errs)
	}
	for _, tc := range []struct {
		name   string
		args   []string
		status int
		says   string
	}{
		{"forged", []string{a, forged}, exitInput, "forged.json"},
		{"other format", []string{a, behavior}, exitInput, "/format"},
		{"twice standard input", []string{"-", "-"}, exitUsage, "standard input"},
		{"file and folder", []string{a, dir}, exitUsage, "folder"},
		{"one side", []string{a}, exitUsage, "<b>"},
		{"missing", []string{a, dir + "/none"}, exitEnvironment, "none"},
	} {
		if status, out, errs := call(append([]string{"compare"}, tc.args...)...); status != tc.status || !strings.Contains(errs, tc.says) || out != "" {
			t.Errorf("%s: %d, %s%s", tc.name, status, out, errs)
		}
	}
}

// Folders of outputs on disk: equal, one drifted, links refused, and credentials neither read nor named by a digest.
func TestCompareFolders(t *testing.T) {
	dir := t.TempDir()
	a, b := dir+"/a", dir+"/b"
	for _, side := range []string{a, b} {
		place(t, mustRead(t, goldens+"leo-identity-manifest-v1.json"), side, "leo.json")
		place(t, []byte("{}"), side, "leo_profile", "profile-manifest.json")
		place(t, []byte("soul"), side, "leo_profile", "SOUL.md")
	}
	link := dir + "/link"
	if err := os.Symlink(b, link); err != nil {
		t.Fatal(err)
	}
	if status, out, errs := call("compare", a, link); status != exitHolds {
		t.Fatalf("control: %d, %s%s", status, out, errs)
	}
	const secret = "sk-synthetic-0123456789abcdef"
	place(t, []byte(secret), a, ".env")
	place(t, []byte(secret+"2"), b, ".env")
	if err := os.Chmod(b+"/.env", 0); err != nil {
		t.Fatal(err)
	}
	status, out, errs := call("compare", a, b, "--json")
	if status != exitHolds || !strings.Contains(out, `"withheld":[".env"]`) || strings.Contains(out+errs, secret) {
		t.Errorf("rotated credential: %d, %s%s", status, out, errs)
	}
	if err := os.Remove(b + "/.env"); err != nil {
		t.Fatal(err)
	}
	status, out, errs = call("compare", a, b)
	if status != exitFails || !strings.Contains(out, "the identity is the same") || !strings.Contains(out, "credential_presence 1") || !strings.Contains(errs, "credentials") {
		t.Errorf("absent credential: %d, %s%s", status, out, errs)
	}
	place(t, []byte("other"), b, "leo_profile", "SOUL.md")
	result := dir + "/result.json"
	if status, out, _ := call("compare", a, b, "--json", "--output", result); status != exitFails || out != "" {
		t.Errorf("drift: %d, %s", status, out)
	}
	var c compare.Comparison
	if err := schemas.DecodeCanonical("result.json", compare.Format, mustRead(t, result), &c); err != nil || c.SameIdentity || c.Counts[compare.Generated] != 1 {
		t.Errorf("%+v, %v", c, err)
	}
	if err := os.Symlink("SOUL.md", b+"/leo_profile/other.md"); err != nil {
		t.Fatal(err)
	}
	if status, _, errs := call("compare", a, b); status != exitInput || !strings.Contains(errs, "leo_profile/other.md: is a symbolic link") {
		t.Errorf("link: %d, %s", status, errs)
	}
}

package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"selfsame.dev/selfsame/execlog"
	"selfsame.dev/selfsame/internal/canon"
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

// Two execution logs: equal, differing, on standard input, and what is none.
func TestCompareExeclog(t *testing.T) {
	const logs = "../../execlog/testdata/logs/"
	base, input := logs+"base.compact.zst", logs+"input.json"
	if status, out, errs := call("compare", "--execlog", base, logs+"again.compact.zst"); status != exitHolds || !strings.HasSuffix(out, "equal\n") || errs != "" {
		t.Errorf("%d, %s%s", status, out, errs)
	}
	status, out, errs := call("compare", "--execlog", base, input)
	if status != exitFails || !strings.Contains(out, "1. source file: input.txt") || !strings.Contains(out, "Genrule //:pack, because of Link //:link") || !strings.Contains(errs, "they differ: 1 cause, the first is source file input.txt") {
		t.Errorf("%d, %s%s", status, out, errs)
	}
	result := t.TempDir() + "/result.json"
	var stdout, stderr bytes.Buffer
	if status := run(context.Background(), []string{"compare", "--execlog", base, "-", "--json", "--output", result}, streams{bytes.NewReader(mustRead(t, input)), &stdout, &stderr}); status != exitFails || stdout.Len() > 0 {
		t.Errorf("standard input: %d, %s%s", status, &stdout, &stderr)
	}
	var c execlog.Comparison
	if err := schemas.DecodeCanonical("result.json", execlog.Format, mustRead(t, result), &c); err != nil || c.B.Name != "-" || len(c.Causes) != 1 || c.Causes[0].A[:7] != "sha256 " {
		t.Errorf("%+v, %v", c, err)
	}
	dir := t.TempDir()
	data := mustRead(t, base)
	cut := place(t, data[:len(data)-20], dir, "cut.zst")
	object := mustRead(t, input)
	half := place(t, object[:len(object)/2], dir, "half.json")
	empty := place(t, nil, dir, "empty")
	other := place(t, mustRead(t, goldens+"leo-identity-manifest-v1.json"), dir, "manifest.json")
	for _, tc := range []struct {
		name   string
		args   []string
		status int
		says   string
	}{
		{"cut zstd", []string{base, cut}, exitInput, "cut.zst: entry"},
		{"cut JSON", []string{half, base}, exitInput, "half.json: entry 4 at byte"},
		{"empty", []string{base, empty}, exitInput, "empty: is empty"},
		{"other JSON", []string{base, other}, exitInput, "manifest.json: entry 1"},
		{"twice standard input", []string{"-", "-"}, exitUsage, "standard input"},
		{"folder", []string{base, dir}, exitUsage, "is a folder"},
		{"one side", []string{base}, exitUsage, "<b>"},
		{"missing", []string{base, dir + "/none"}, exitEnvironment, "none"},
	} {
		if status, out, errs := call(append([]string{"compare", "--execlog"}, tc.args...)...); status != tc.status || !strings.Contains(errs, tc.says) || tc.status == exitInput && !strings.Contains(errs, "hint: ") || out != "" {
			t.Errorf("%s: %d, %s%s", tc.name, status, out, errs)
		}
	}
}

// A mode that differs is the cause where both listings are given; a listing is refused that is none, or has no use.
func TestCompareExeclogModes(t *testing.T) {
	const logs = "../../execlog/testdata/logs/"
	a, b, modesA, modesB := logs+"base.compact.zst", logs+"mode.compact.zst", logs+"base.modes", logs+"mode.modes"
	for _, tc := range []struct{ a, b, modesA, modesB, says string }{
		{a, b, modesA, modesB, "source mode: mode.txt\n   A     mode 0644\n   B     mode 0700\n"},
		{b, a, modesB, modesA, "source mode: mode.txt\n   A     mode 0700\n   B     mode 0644\n"},
		{a, b, modesA, modesA, "unrecorded: Mode //:mode\n"},
	} {
		status, out, errs := call("compare", "--execlog", tc.a, tc.b, "--modes-a", tc.modesA, "--modes-b", tc.modesB)
		if status != exitFails || !strings.Contains(out, "\n1. "+tc.says) || strings.Contains(out, "\n2. ") || !strings.Contains(errs, "they differ: 1 cause") {
			t.Errorf("%d, %s%s", status, out, errs)
		}
	}
	dir := t.TempDir()
	twice := place(t, []byte("644 a\n755 a\n"), dir, "twice.modes")
	manifest := goldens + "leo-identity-manifest-v1.json"
	for _, tc := range []struct {
		name   string
		args   []string
		status int
		says   string
	}{
		{"one listing", []string{"--execlog", a, b, "--modes-a", modesA}, exitUsage, "--modes-a and --modes-b must be used together"},
		{"the other", []string{"--execlog", a, b, "--modes-b", modesB}, exitUsage, "--modes-a and --modes-b must be used together"},
		{"no logs", []string{manifest, manifest, "--modes-a", modesA, "--modes-b", modesB}, exitUsage, "belong to --execlog"},
		{"standard input", []string{"--execlog", a, b, "--modes-a", modesA, "--modes-b", "-"}, exitUsage, "name a file"},
		{"folder", []string{"--execlog", a, b, "--modes-a", dir, "--modes-b", modesB}, exitUsage, "is a folder: name a listing of modes"},
		{"twice", []string{"--execlog", a, b, "--modes-a", modesA, "--modes-b", twice}, exitInput, "twice.modes: line 2: names a file that an earlier line names: a\nselfsame: hint: make the listing"},
		{"a log", []string{"--execlog", a, b, "--modes-a", logs + "base.json", "--modes-b", modesB}, exitInput, "base.json: line 1: begins with no mode"},
		{"missing", []string{"--execlog", a, b, "--modes-a", modesA, "--modes-b", dir + "/none"}, exitEnvironment, "none"},
		{"empty name", []string{"--execlog", a, b, "--modes-a=", "--modes-b="}, exitEnvironment, "no such file"},
	} {
		if status, out, errs := call(append([]string{"compare"}, tc.args...)...); status != tc.status || !strings.Contains(errs, tc.says) || out != "" {
			t.Errorf("%s: %d, %s%s", tc.name, status, out, errs)
		}
	}
}

// Credentials in a log are in no output, and no digest of one is (law I4).
func TestCompareExeclogSecrets(t *testing.T) {
	dir := t.TempDir()
	const secret = "sk-synthetic-0123456789abcdef"
	data := string(mustRead(t, "../../execlog/testdata/logs/base.json"))
	side := func(name, value string) string {
		edited := strings.ReplaceAll(data, `"GREETING"`, `"DEPLOY_TOKEN"`)
		edited = strings.ReplaceAll(edited, `"hello"`, `"`+value+`"`)
		edited = strings.ReplaceAll(edited, `"input.txt",`, `".env",`)
		return place(t, []byte(strings.ReplaceAll(edited, "b640e840b19d3786", canon.Sum([]byte(value)).String()[:16])), dir, name)
	}
	status, out, errs := call("compare", "--execlog", side("a", "v1"), side("b", secret), "--json")
	if status != exitFails || !strings.Contains(out, `"subject":"DEPLOY_TOKEN"`) || !strings.Contains(out, `"subject":".env"`) || !strings.Contains(out, `"withheld":true`) {
		t.Errorf("%d, %s%s", status, out, errs)
	}
	for _, leak := range []string{secret, `"v1"`, canon.Sum([]byte(secret)).String()[:16], canon.Sum([]byte("v1")).String()[:16]} {
		if strings.Contains(out+errs, leak) {
			t.Errorf("%s is in %s", leak, out)
		}
	}
}

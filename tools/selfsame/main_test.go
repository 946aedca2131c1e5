package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// The test binary is the command too, where a test or the canary starts it anew.
func TestMain(m *testing.M) {
	if slices.Contains([]string{"canary", "ledger"}, firstArg()) {
		main()
	}
	os.Exit(m.Run())
}

func firstArg() string {
	if len(os.Args) < 2 {
		return ""
	}
	return os.Args[1]
}

// call runs the command in this process.
func call(args ...string) (status int, stdout, stderr string) {
	var out, errs bytes.Buffer
	status = run(context.Background(), args, streams{bytes.NewReader(nil), &out, &errs})
	return status, out.String(), errs.String()
}

// What the system refuses comes with a way out, and status 4.
func TestSystemHints(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	for hint, args := range map[string][]string{
		"nothing is overwritten":   {"rpi", "key", "--output", file},
		"check the path":           {"rpi", "repair", "--rounds", filepath.Join(dir, "absent")},
		"that the folder it is in": {"rpi", "key", "--output", filepath.Join(dir, "absent", "key")},
		"not a folder":             {"rpi", "repair", "--rounds", dir},
		"name a folder":            {"rpi", "repair", "--rounds", filepath.Join(file, "x")},
	} {
		if status, _, stderr := call(args...); status != exitEnvironment || !strings.Contains(stderr, "hint: ") || !strings.Contains(stderr, hint) {
			t.Errorf("%v: status %d, %s", args, status, stderr)
		}
	}
}

// No output replaces an input.
func TestNoOutputIsAnInput(t *testing.T) {
	file := filepath.Join(t.TempDir(), "list")
	if err := os.WriteFile(file, []byte("precious"), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{
		{"manifest", "generate", "--input-list", file, "--output", file + ".json", "--provenance", filepath.Dir(file) + "/./list"},
		{"manifest", "generate", "--behavior-manifest", file, "--output", file},
		{"canary", "run", "--input-list", file, "--output", file},
	} {
		if status, _, stderr := call(args...); status != exitUsage || !strings.Contains(stderr, "is the input") {
			t.Errorf("%v: status %d, %s", args, status, stderr)
		}
	}
	if data, err := os.ReadFile(file); err != nil || string(data) != "precious" {
		t.Errorf("%q, %v", data, err)
	}
}

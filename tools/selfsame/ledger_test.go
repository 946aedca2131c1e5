package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"selfsame.dev/selfsame/manifest/ledger"
	"selfsame.dev/selfsame/manifest/leotest"
	"selfsame.dev/selfsame/schemas"
)

const leoManifest = goldens + "leo-identity-manifest-v1.json"

func addTo(file, host, manifest string, more ...string) (int, string, string) {
	return call(append([]string{"ledger", "add", file, "--manifest", manifest, "--label", "leo@1", "--host", host, "--now", "2026-01-02T03:04:05Z"}, more...)...)
}

// otherLeo makes the manifest of a Leo with a changed skill.
func otherLeo(t *testing.T) string {
	root := leotest.Copy(t, "../..")
	place(t, []byte("changed\n"), root, leotest.Folder, "profile-template/skills/leo-voice/SKILL.md")
	m, _ := leotest.Build(t, root)
	data, err := m.Encode()
	if err != nil {
		t.Fatal(err)
	}
	return place(t, data, t.TempDir(), "other.json")
}

func TestLedger(t *testing.T) {
	file := filepath.Join(t.TempDir(), "ledger.jsonl")
	other := otherLeo(t)
	expect := func(want int, says string, args ...string) string {
		t.Helper()
		status, out, errs := call(args...)
		if status != want || !strings.Contains(out+errs, says) {
			t.Fatalf("%v: %d, want %d and %q\n%s%s", args, status, want, says, out, errs)
		}
		return out
	}
	add := func(host, manifest string) string {
		t.Helper()
		status, out, errs := addTo(file, host, manifest)
		if status != exitHolds {
			t.Fatalf("%d, %s", status, errs)
		}
		_, head, _ := strings.Cut(strings.TrimSpace(out), "head_sha256 ")
		return head
	}
	expect(exitEnvironment, "no such file", "ledger", "check", file)
	add("ci-a", leoManifest)
	expect(exitHolds, "one machine alone", "ledger", "check", file)
	expect(exitFails, "1 of at least 2 machines", "ledger", "check", file, "--machines", "2")
	head := add("ci-b", leoManifest)
	expect(exitHolds, "2 machines agree since 2026-01-02T03:04:05Z (record 1, ci-b)", "ledger", "check", file, "--machines", "2")
	copied := mustRead(t, file)
	add("ci-c", other)
	out := expect(exitFails, "the first that did not is ci-c", "ledger", "check", file, "--json", "--head", head)
	if err := schemas.DecodeCanonical("out", ledger.AgreementFormat, []byte(strings.TrimSpace(out)), new(ledger.Agreement)); err != nil {
		t.Error(err)
	}
	add("ci-c", leoManifest)
	last := add("ci-a", leoManifest)
	expect(exitHolds, "3 machines agree since 2026-01-02T03:04:05Z (record 3, ci-c)", "ledger", "check", file, "--head", head)
	if out := expect(exitHolds, "", "ledger", "show", file, "--json"); out != string(mustRead(t, file)) {
		t.Errorf("show --json is not the file:\n%s", out)
	}
	if out := expect(exitHolds, "ci-c", "ledger", "show", file, "--host", "ci-c"); strings.Contains(out, "ci-a") || strings.Count(out, "identity ") != 2 {
		t.Errorf("%s", out)
	}

	whole := mustRead(t, file)
	for _, tc := range []struct {
		name string
		data []byte
		want int
		args []string
	}{
		{"control", whole, exitHolds, []string{"--head", last}},
		{"older copy", copied, exitFails, []string{"--head", last}},
		{"older copy without a head", copied, exitHolds, nil},
		{"host changed", bytes.Replace(whole, []byte("ci-b"), []byte("ci-z"), 1), exitFails, nil},
		{"torn", whole[:len(whole)-9], exitInput, nil},
		{"empty", nil, exitFails, nil},
		{"bad head", whole, exitUsage, []string{"--head", "sha256:" + last}},
		{"no machine", whole, exitUsage, []string{"--machines", "0"}},
	} {
		bad := place(t, tc.data, t.TempDir(), "l.jsonl")
		expect(tc.want, "", append([]string{"ledger", "check", bad}, tc.args...)...)
		if tc.name == "torn" || tc.name == "host changed" { // nothing is put behind what does not hold
			if status, _, errs := addTo(bad, "ci-a", leoManifest); status != tc.want || !bytes.Equal(mustRead(t, bad), tc.data) {
				t.Errorf("%s: add ends with %d and changes the file: %s", tc.name, status, errs)
			}
		}
	}
}

// What is refused leaves no file behind.
func TestLedgerRefuses(t *testing.T) {
	dir := t.TempDir()
	forged := place(t, bytes.Replace(mustRead(t, leoManifest), []byte(`"size":`), []byte(`"size":1`), 1), dir, "forged.json")
	file := dir + "/l.jsonl"
	for name, tc := range map[string]struct {
		host, manifest string
		more           []string
		want           int
	}{
		"forged manifest": {"ci-a", forged, nil, exitInput},
		"no manifest":     {"ci-a", dir + "/none", nil, exitEnvironment},
		"host":            {"ci a\n", leoManifest, nil, exitInput},
		"instant":         {"ci-a", leoManifest, []string{"--now", "2026-02-29T00:00:00Z"}, exitInput},
	} {
		if status, _, errs := addTo(file, tc.host, tc.manifest, tc.more...); status != tc.want {
			t.Errorf("%s: %d, %s", name, status, errs)
		}
		if _, err := os.Stat(file); err == nil {
			t.Fatalf("%s: left a ledger", name)
		}
	}
	if err := unix.Mkfifo(dir+"/fifo", 0o600); err != nil {
		t.Fatal(err)
	}
	if status, _, errs := call("ledger", "check", dir+"/fifo"); status != exitInput || !strings.Contains(errs, "no regular file") {
		t.Errorf("%d, %s", status, errs)
	}
	if status, _, errs := addTo(file, "ci-a", leoManifest); status != exitHolds {
		t.Errorf("control: %d, %s", status, errs)
	}
}

// Processes that add at the same time all get their line, and the chain holds.
func TestLedgerTogether(t *testing.T) {
	file := filepath.Join(t.TempDir(), "l.jsonl")
	const processes = 6
	var wait sync.WaitGroup
	for i := range processes {
		wait.Go(func() {
			cmd := exec.Command("/proc/self/exe", "ledger", "add", file, "--manifest", leoManifest, "--label", "leo@1", "--host", fmt.Sprintf("ci-%d", i), "--now", "2026-01-02T03:04:05Z")
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Errorf("%v: %s", err, out)
			}
		})
	}
	wait.Wait()
	if status, out, errs := call("ledger", "check", file, "--machines", fmt.Sprint(processes)); status != exitHolds {
		t.Errorf("%d, %s%s", status, out, errs)
	}
}

// An addition waits while the file is read, and ends when nobody reads.
func TestLedgerWaits(t *testing.T) {
	file := filepath.Join(t.TempDir(), "l.jsonl")
	if status, _, errs := addTo(file, "ci-a", leoManifest); status != exitHolds {
		t.Fatal(errs)
	}
	reader, err := openLocked(file, os.O_RDONLY, unix.LOCK_SH)
	if err != nil {
		t.Fatal(err)
	}
	before := mustRead(t, file)
	done := make(chan int)
	go func() {
		status, _, _ := addTo(file, "ci-b", leoManifest)
		done <- status
	}()
	select {
	case status := <-done:
		t.Errorf("ended with %d while the file was read", status)
	case <-time.After(300 * time.Millisecond):
	}
	if !bytes.Equal(mustRead(t, file), before) {
		t.Error("the file grew while it was read")
	}
	if err := reader.Close(); err != nil {
		t.Fatal(err)
	}
	if status := <-done; status != exitHolds || len(mustRead(t, file)) <= len(before) {
		t.Errorf("control: %d", status)
	}
}

// brokenDisk writes half and fails, or fails to sync.
type brokenDisk struct {
	*os.File
	half bool
}

func (d brokenDisk) WriteAt(data []byte, at int64) (int, error) {
	if !d.half {
		return d.File.WriteAt(data, at)
	}
	n, _ := d.File.WriteAt(data[:len(data)/2], at)
	return n, unix.ENOSPC
}

func (d brokenDisk) Sync() error { return unix.EIO }

func TestAppendWhole(t *testing.T) {
	for _, half := range []bool{true, false} {
		name := place(t, []byte("before\n"), t.TempDir(), "l")
		f, err := os.OpenFile(name, os.O_RDWR, 0)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		if err := appendWhole(brokenDisk{f, half}, 7, []byte("the line\n")); !errors.Is(err, unix.EIO) {
			t.Errorf("%v", err)
		}
		if got := string(mustRead(t, name)); got != "before\n" {
			t.Errorf("half %v: %q is left", half, got)
		}
		if err := appendWhole(f, 7, []byte("the line\n")); err != nil || string(mustRead(t, name)) != "before\nthe line\n" {
			t.Errorf("control: %v", err)
		}
	}
}

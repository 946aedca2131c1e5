package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"
)

func TestBuildIsWholeOrNothing(t *testing.T) {
	path := filepath.Join(t.TempDir(), "part")
	broken := errors.New("killed half-way")
	if err := build(path, func(dir string) error {
		return errors.Join(os.WriteFile(filepath.Join(dir, "half"), nil, 0o644), broken)
	}); !errors.Is(err, broken) {
		t.Fatal(err)
	}
	if _, err := os.Stat(path); !os.IsNotExist(err) {
		t.Fatalf("half a part is at its place: %v", err)
	}
	if err := removeLeftovers(filepath.Dir(path)); err != nil {
		t.Fatal(err)
	}
	if entries, _ := os.ReadDir(filepath.Dir(path)); len(entries) != 0 {
		t.Fatalf("left: %v", entries)
	}
	fill := func(dir string) error { return os.WriteFile(filepath.Join(dir, "whole"), nil, 0o644) }
	if err := build(path, fill); err != nil {
		t.Fatal(err)
	}
	if err := build(path, func(string) error { return broken }); err != nil {
		t.Fatalf("a finished part is built again: %v", err)
	}
}

// The lock outlives the process that took it for as long as a command of it runs.
func TestLockIsInherited(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	lock, err := acquire(path)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("sleep", "60")
	cmd.ExtraFiles = []*os.File{lock}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lock.Close()
	try := func() error {
		file, err := os.OpenFile(path, os.O_RDWR, 0)
		if err != nil {
			t.Fatal(err)
		}
		defer file.Close()
		return syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	}
	if err := try(); !errors.Is(err, syscall.EWOULDBLOCK) {
		t.Errorf("the lock is free while a command runs: %v", err)
	}
	cmd.Process.Kill()
	cmd.Wait()
	if err := try(); err != nil {
		t.Errorf("the lock is held by nobody: %v", err)
	}
}

// startAndWait, in the environment, makes this test program the parent that is killed.
const startAndWait = "SELFSAME_START_AND_WAIT"

// A command, and what it started in sessions of their own, ends at once when its parent is killed
// with SIGKILL; as a control, without dyingWithParent they outlive it.
func TestCommandsDieWithTheirParent(t *testing.T) {
	const script = `setsid sleep 10 & sleep 10 & echo started; wait`
	if how := os.Getenv(startAndWait); how != "" {
		cmd := exec.Command("sh", "-c", script)
		cmd.Stdout = os.Stdout // a pipe: its end is seen when the last process is gone
		cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGTERM}
		if how == "namespace" {
			cmd.SysProcAttr = dyingWithParent()
			if id := os.Geteuid(); id != 0 {
				cmd.SysProcAttr.Cloneflags |= syscall.CLONE_NEWUSER
				cmd.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{ContainerID: id, HostID: id, Size: 1}}
			}
		}
		runtime.LockOSThread()
		if err := cmd.Run(); err != nil {
			fmt.Println(err)
		}
		os.Exit(0)
	}
	left := func(how string, wait time.Duration) bool {
		cmd := exec.Command(os.Args[0], "-test.run=^TestCommandsDieWithTheirParent$")
		cmd.Env = append(os.Environ(), startAndWait+"="+how)
		cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
		read, write, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		defer read.Close()
		cmd.Stdout = write
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		write.Close()
		said := make([]byte, 200)
		n, _ := read.Read(said)
		if string(said[:n]) != "started\n" {
			t.Fatalf("%s: %q", how, said[:n])
		}
		cmd.Process.Kill()
		cmd.Wait()
		ended := make(chan struct{})
		go func() { io.Copy(io.Discard, read); close(ended) }()
		select {
		case <-ended:
			return false
		case <-time.After(wait):
			return true
		}
	}
	if left("namespace", 5*time.Second) {
		t.Error("processes outlive the parent")
	}
	if !left("signal", 300*time.Millisecond) {
		t.Error("control: processes end without a namespace of their own")
	}
}

func TestPatchNeedsItsPlace(t *testing.T) {
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, "m"), 0o755); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "m", "f.bzl")
	p := patch{"m", "f.bzl", "old\n", "new\n"}
	for content, want := range map[string]string{"a\nold\nb\n": "a\nnew\nb\n", "a\n": "", "old\nold\n": ""} {
		if err := os.WriteFile(file, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
		err := p.apply(dir)
		got, _ := os.ReadFile(file)
		if want == "" && (err == nil || string(got) != content) {
			t.Errorf("%q: %v, %q", content, err, got)
		}
		if want != "" && (err != nil || string(got) != want) {
			t.Errorf("%q: %v, %q, want %q", content, err, got, want)
		}
	}
}

func TestPinned(t *testing.T) {
	dir := t.TempDir()
	files := map[string]string{
		".bazelversion": "7.7.1\n",
		"go.mod":        "module m\n\ngo 1.26.8\n",
		"MODULE.bazel":  "bazel_dep(name = \"rules_go\", version = \"0.63.0\")\nbazel_dep(name = \"gazelle\", version = \"0.53.0\")\n",
	}
	for name, data := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(data), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if v, err := pinned(dir); err != nil || v != (versions{"7.7.1", "1.26.8", "0.63.0", "0.53.0"}) {
		t.Errorf("%+v, %v", v, err)
	}
	if err := os.WriteFile(filepath.Join(dir, "go.mod"), []byte("module m\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := pinned(dir); err == nil || !strings.Contains(err.Error(), "go.mod") {
		t.Errorf("a go.mod without a version: %v", err)
	}
}

func TestRemedy(t *testing.T) {
	for _, tc := range []struct {
		err  error
		says string
	}{
		{&os.PathError{Op: "write", Path: "x", Err: syscall.ENOSPC}, "SELFSAME_CACHE"},
		{errors.New("apt-get: exit status 100\nE: No space left on device"), "SELFSAME_CACHE"},
		{&problem{errors.New("not root"), "run as root"}, "run as root"},
		{errors.New("anything else"), "call bazelw again"},
	} {
		if got := remedy(tc.err); !strings.Contains(got, tc.says) {
			t.Errorf("%v: %q does not say %q", tc.err, got, tc.says)
		}
	}
}

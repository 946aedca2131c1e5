// Command airgap provisions Bazel on a machine that reaches only a Debian mirror and a Go
// module proxy: a Debian root of its own with bazel-bootstrap in it, local copies of
// the Bazel modules that MODULE.bazel names, and a launcher. bazelw calls it; nothing outside the
// cache folder is changed.
//
// Every part is built beside its place and renamed into it, under one lock, so a killed
// run leaves nothing that a later one would believe.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// problem is a failure with what the user can do instead.
type problem struct {
	err error
	fix string
}

func (p *problem) Error() string { return p.err.Error() }
func (p *problem) Unwrap() error { return p.err }

func main() {
	cache := flag.String("cache", "", "folder that holds everything provisioned")
	workspace := flag.String("workspace", ".", "root of the checkout")
	launcher := flag.String("launcher", "", "path of the launcher to write, inside the cache")
	flag.Parse()
	if *cache == "" || *launcher == "" || flag.NArg() > 0 {
		flag.Usage()
		os.Exit(2)
	}
	if err := provision(*cache, *workspace, *launcher); err != nil {
		fmt.Fprintf(os.Stderr, "bazelw: error: %v\n", err)
		if fix := remedy(err); fix != "" {
			fmt.Fprintf(os.Stderr, "bazelw: hint: %s\n", fix)
		}
		os.Exit(4)
	}
}

func remedy(err error) string {
	if errors.Is(err, syscall.ENOSPC) || strings.Contains(err.Error(), "No space left on device") {
		return "the disk is full: free space, or set SELFSAME_CACHE to a folder on a larger disk; then call bazelw again"
	}
	var p *problem
	if errors.As(err, &p) {
		return p.fix
	}
	return "call bazelw again: finished stages are kept; or install Bazel or Bazelisk and put it on PATH"
}

func provision(cache, workspace, launcher string) error {
	cache, err := filepath.Abs(cache)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(cache, 0o755); err != nil {
		return &problem{err, "set SELFSAME_CACHE to a folder that can be written"}
	}
	lock, err := acquire(filepath.Join(cache, "lock"))
	if err != nil {
		return err
	}
	defer lock.Close()
	if _, err := os.Stat(launcher); err == nil {
		return nil // another call finished it while this one waited
	}
	if err := removeLeftovers(cache); err != nil {
		return err
	}
	versions, err := pinned(workspace)
	if err != nil {
		return err
	}

	var goroot, root, modules string
	stages := []struct {
		name string
		run  func() error
	}{
		{"check the machine", func() error { return checkMachine(cache) }},
		{"Go SDK " + versions.goSDK, func() error { goroot, err = goSDK(versions.goSDK); return err }},
		{"Debian root with Bazel " + versions.bazel + " (two to three minutes, once)", func() error {
			root, err = debianRoot(cache, versions.bazel, lock)
			return err
		}},
		{fmt.Sprintf("Bazel modules (rules_go %s, gazelle %s)", versions.rulesGo, versions.gazelle), func() error {
			modules, err = bazelModules(cache, root, versions)
			return err
		}},
		{"launcher", func() error { return writeLauncher(launcher, root, modules, goroot) }},
	}
	for i, stage := range stages {
		fmt.Fprintf(os.Stderr, "bazelw: [%d/%d] %s ...\n", i+1, len(stages), stage.name)
		start := time.Now()
		if err := stage.run(); err != nil {
			return fmt.Errorf("%s: %w", stage.name, err)
		}
		fmt.Fprintf(os.Stderr, "bazelw: [%d/%d] done in %.1f s\n", i+1, len(stages), time.Since(start).Seconds())
	}
	return nil
}

// acquire takes the cache's lock. Commands inherit the open file, so that the lock outlives
// this process until the last of them has ended too.
func acquire(path string) (*os.File, error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, err
	}
	err = syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		fmt.Fprintln(os.Stderr, "bazelw: another call is provisioning; waiting for it (some minutes at most)")
		err = syscall.Flock(int(file.Fd()), syscall.LOCK_EX)
	}
	return file, err
}

const unfinished = ".unfinished"

// removeLeftovers removes what a killed run left half-made. A file system that it left
// mounted is detached first, so that removal cannot reach the host through it.
func removeLeftovers(cache string) error {
	leftovers, err := filepath.Glob(filepath.Join(cache, "*"+unfinished))
	if err != nil || len(leftovers) == 0 {
		return err
	}
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return err
	}
	lines := strings.Split(string(mounts), "\n")
	for _, leftover := range leftovers {
		fmt.Fprintf(os.Stderr, "bazelw: removing what an interrupted run left: %s\n", filepath.Base(leftover))
		for i := len(lines) - 1; i >= 0; i-- {
			fields := strings.Fields(lines[i])
			if len(fields) > 4 && strings.HasPrefix(fields[4], leftover+"/") {
				if err := syscall.Unmount(fields[4], syscall.MNT_DETACH); err != nil {
					return &problem{fmt.Errorf("unmount %s: %w", fields[4], err), "unmount it by hand, then call bazelw again"}
				}
			}
		}
		if err := os.RemoveAll(leftover); err != nil {
			return err
		}
	}
	return nil
}

// build makes the folder at path by calling fill on a sibling that is renamed when it is
// complete. It does nothing when path exists.
func build(path string, fill func(dir string) error) error {
	if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	dir := path + unfinished
	if err := os.Mkdir(dir, 0o755); err != nil {
		return err
	}
	if err := fill(dir); err != nil {
		return err
	}
	syscall.Sync()
	return os.Rename(dir, path)
}

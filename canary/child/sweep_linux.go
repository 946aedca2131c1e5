package child

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// killWait bounds how long SIGKILL may take to empty a tree. Only a process stuck in
// the kernel, or a fork bomb that outruns the search, needs more.
const killWait = 10 * time.Second

// A search reports what lives below this process; clean means that nothing does.
type search func() (alive []stat, clean bool, err error)

// searchAll is the guardian's search. It has no children of its own but the child, and
// is a subreaper, so whatever descends from it hangs on one of its children: when
// the kernel says that there are none (ECHILD) there is nothing below. That
// answer is exact, where a walk through /proc can be outrun; the walk only finds whom to kill.
func searchAll() ([]stat, bool, error) {
	for {
		switch pid, err := unix.Wait4(-1, nil, unix.WNOHANG|unix.WALL, nil); {
		case errors.Is(err, unix.ECHILD):
			return nil, true, nil
		case err != nil && !errors.Is(err, unix.EINTR):
			return nil, false, err
		case pid == 0:
			if alive, _ := living(newest(), nil); len(alive) > 0 {
				return alive, false, nil
			}
			all, err := scan()
			if err != nil {
				return nil, false, err
			}
			alive, _ := living(all, nil)
			return alive, false, nil
		}
	}
}

// searchOthers is the parent's search, when the guardian is dead and the parent has
// inherited what was below it. The parent may have children of its own: those in except stay.
// An environment that holds mark is the child's wherever it is in the tree.
func searchOthers(mark string, except map[Process]bool) search {
	clean := 0
	return func() ([]stat, bool, error) {
		if alive, _ := living(newest(), except); len(alive) > 0 {
			clean = 0
			return alive, false, nil
		}
		all, err := scan()
		if err != nil {
			return nil, false, err
		}
		alive, torn := living(all, except)
		seen := map[int]bool{os.Getpid(): true}
		for _, s := range alive {
			seen[s.PID] = true
		}
		for pid, s := range all {
			if !seen[pid] && !except[s.Process] && !s.dead() && traced(pid, []byte(mark)) {
				alive = append(alive, s)
			}
		}
		if clean++; len(alive) > 0 || torn {
			clean = 0
		}
		return alive, clean >= 2, nil
	}
}

// living returns what lives below this process and reaps what is dead. torn says that this is not all:
// a process was seen without its parent, or is dead and not yet to be reaped.
func living(all map[int]stat, except map[Process]bool) (alive []stat, torn bool) {
	self := os.Getpid()
	found, torn := below(all, self, except)
	for _, s := range found {
		if !s.dead() {
			alive = append(alive, s)
			continue
		}
		pid := 0
		if s.parent == self {
			pid, _ = unix.Wait4(s.PID, nil, unix.WNOHANG|unix.WALL, nil)
		}
		torn = torn || pid != s.PID
	}
	return alive, torn
}

// sweep first lets what lives end by itself for the time of grace, then kills until
// the search is clean. A killed process cannot fork, so the tree shrinks.
func sweep(find search, grace time.Duration) (Sweep, error) {
	var done Sweep
	killed := map[Process]bool{}
	start := time.Now()
	for {
		alive, clean, err := find()
		done.Scans++
		done.Left, done.Killed = len(alive), len(killed)
		if err != nil || clean {
			return done, err
		}
		elapsed := time.Since(start)
		if elapsed >= grace {
			for _, s := range alive {
				if err = kill(s.Process, unix.SIGKILL); err == nil {
					killed[s.Process] = true
				}
			}
			if elapsed > grace+killWait {
				return done, fmt.Errorf("after %v of SIGKILL something is left: %d processes seen, last error: %v", killWait, len(alive), err)
			}
		}
		if len(alive) > 0 {
			time.Sleep(time.Millisecond)
		}
	}
}

// removeFolder removes the folder open at handle, which was made at path: also when the child moved it, or
// put something else in its place. A nil handle is one that could not be had.
func removeFolder(path string, handle *os.File) error {
	err := removeTree(path)
	if handle == nil {
		return err
	}
	folder, statErr := handle.Stat()
	now, linkErr := os.Readlink("/proc/self/fd/" + strconv.Itoa(int(handle.Fd())))
	if err := errors.Join(err, statErr, linkErr); err != nil {
		return err
	}
	if there, err := os.Lstat(now); err != nil || !os.SameFile(there, folder) {
		return nil // "(deleted)"
	}
	return removeTree(now)
}

// removeTree removes path and everything below, also where the child took the
// permissions away. No link is followed.
func removeTree(path string) error {
	if err := os.RemoveAll(path); err == nil {
		return nil
	}
	_ = filepath.WalkDir(path, func(name string, entry os.DirEntry, err error) error {
		if entry != nil && entry.IsDir() && err == nil {
			_ = os.Chmod(name, 0o700)
		}
		return nil
	})
	return os.RemoveAll(path)
}

package store

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"selfsame.dev/selfsame/internal/canon"
	"selfsame.dev/selfsame/living"
	"selfsame.dev/selfsame/living/store/storetest"
)

// fault is what happens to a writer at the n-th system call that changes a file.
type fault struct {
	name string
	// at the call: kill the process before it, let only half a write happen and kill
	// after it, or fail it.
	kill, half bool
	errno      syscall.Errno
	onwards    bool // fail every later write too: the disk stays full
}

// A creation has many calls; a commit is always faulted at each of its own.
var everyFault = flag.Bool("living.faults", false, "fault a creation at every call, not every third")

var faults = []fault{
	{name: "kill -9", kill: true},
	{name: "half a write, then kill -9", half: true},
	{name: "the disk is full", errno: syscall.ENOSPC, onwards: true},
	{name: "an I/O error", errno: syscall.EIO},
}

// TestFaultsAtEveryWrite stops or fails a writer, through ptrace, at each of its system
// calls that change a file, one run a call. Whatever happens, what is left is the
// profile before or after the commit, fsck re-derives it from the log, and the same
// report brings it to the same end.
func TestFaultsAtEveryWrite(t *testing.T) {
	for _, start := range []struct {
		name  string
		turns int64 // before the fault; 0 is a creation
	}{{"create", 0}, {"commit", 2}} {
		template := newStore(t)
		before := int64(-1)
		if start.turns > 0 {
			grow(t, template, start.turns)
			before = start.turns
		}
		turn := start.turns + 1
		// What the fault-free run comes to.
		clean := copyStore(t, template.dir)
		if hit := trace(t, clean.dir, turn, fault{}, 1<<30); hit {
			t.Fatal("control: a fault that was not asked for")
		}
		want := mustFsck(t, clean)
		if want.Version != turn {
			t.Fatalf("control: version %d", want.Version)
		}
		for _, f := range faults {
			if start.turns == 0 && !f.kill && !f.onwards {
				continue // a creation has many calls; what differs in the others is the commit's
			}
			t.Run(start.name+"/"+f.name, func(t *testing.T) {
				outcomes := map[int64]int{}
				n := 0
				step := 1
				if start.turns == 0 && !*everyFault {
					step = 3
				}
				for call := 1; ; call += step {
					s := copyStore(t, template.dir)
					if !trace(t, s.dir, turn, f, call) {
						break
					}
					n++
					outcomes[afterFault(t, s, before, turn, want, call)]++
				}
				t.Logf("%d calls; versions left: %v", n, outcomes)
				if n < 10 {
					t.Errorf("only %d calls were hit", n)
				}
				if outcomes[turn] == 0 || n == outcomes[turn] {
					t.Errorf("all faults fell on one side of the commit: %v", outcomes)
				}
			})
		}
	}
}

// afterFault checks what a fault left behind and returns the version, -1 for nothing.
func afterFault(t *testing.T, s *Authoritative, before, turn int64, want *Audit, call int) int64 {
	t.Helper()
	left := int64(-1)
	got, err := s.Fsck(owner)
	var missing *living.NotFoundError
	switch {
	case errors.As(err, &missing) && before == -1:
	case err != nil:
		t.Fatalf("call %d: fsck: %v", call, err)
	default:
		left = got.Version
		if left != before && left != turn && !(before == -1 && left == 0) {
			t.Fatalf("call %d: version %d is neither before nor after", call, left)
		}
		if left == turn && got.DocumentSHA256 != want.DocumentSHA256 {
			t.Fatalf("call %d: the document is not the one that was committed", call)
		}
	}
	k := storetest.Kernel(t, s, owner)
	if _, err := k.Apply(storetest.Report(owner, turn, storetest.Saw("notes", fmt.Sprint("note ", turn)))); err != nil {
		t.Fatalf("call %d: the same report again: %v", call, err)
	}
	storetest.Learn(t, k, turn+1, storetest.Saw("notes", "after the fault"))
	again := mustFsck(t, s)
	doc, err := s.Version(owner, turn)
	if err != nil || doc.Digest() != want.DocumentSHA256 || again.Version != turn+1 || again.Unpublished != 0 {
		t.Fatalf("call %d: after recovery: %+v, %v", call, again, err)
	}
	return left
}

func mustFsck(t *testing.T, s *Authoritative) *Audit {
	t.Helper()
	got, err := s.Fsck(owner)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

func copyStore(t *testing.T, from string) *Authoritative {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "store")
	if err := os.CopyFS(dir, os.DirFS(from)); err != nil {
		t.Fatal(err)
	}
	keys, err := ReadKeys(dir)
	if err != nil {
		t.Fatal(err)
	}
	s := Open(dir, keys)
	s.noSync = true
	s.publish = publishWithoutSync
	return s
}

// Calls that change files below the store, by number (linux, amd64).
func changesFiles(regs *syscall.PtraceRegs) bool {
	switch regs.Orig_rax {
	case syscall.SYS_PWRITE64, syscall.SYS_FTRUNCATE, syscall.SYS_FSYNC, syscall.SYS_FDATASYNC, syscall.SYS_FALLOCATE,
		syscall.SYS_RENAME, syscall.SYS_RENAMEAT, syscall.SYS_RENAMEAT + 52 /* renameat2 */, syscall.SYS_UNLINK, syscall.SYS_UNLINKAT,
		syscall.SYS_MKDIR, syscall.SYS_MKDIRAT, syscall.SYS_FCHMOD, syscall.SYS_LINKAT:
		return true
	case syscall.SYS_OPENAT:
		return regs.Rdx&syscall.O_CREAT != 0
	case syscall.SYS_WRITE:
		return regs.Rdi > 2 && regs.Rdx != 8 // eight bytes wake the runtime's poller
	}
	return false
}

// trace runs a child that learns one fact at a turn, and does f to its n-th call that
// changes a file. It reports whether the child came that far.
func trace(t *testing.T, dir string, turn int64, f fault, n int) (hit bool) {
	t.Helper()
	runtime.LockOSThread() // ptrace requests must come from the thread that started it
	defer runtime.UnlockOSThread()
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	env := append(os.Environ(), fmt.Sprintf("%s=%s %d 1", childEnv, dir, turn), "GODEBUG=asyncpreemptoff=1", "GOMAXPROCS=1")
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	pid, err := syscall.ForkExec(self, []string{self}, &syscall.ProcAttr{
		Env: env, Files: []uintptr{null.Fd(), null.Fd(), null.Fd()}, Sys: &syscall.SysProcAttr{Ptrace: true},
	})
	if err != nil {
		t.Fatalf("this test traces a child of its own; ptrace must be allowed: %v", err)
	}
	var status syscall.WaitStatus
	if _, err := syscall.Wait4(pid, &status, 0, nil); err != nil || !status.Stopped() {
		t.Fatalf("the child did not stop: %v, %v", status, err)
	}
	const exitKill = 0x100000
	if err := syscall.PtraceSetOptions(pid, syscall.PTRACE_O_TRACESYSGOOD|syscall.PTRACE_O_TRACECLONE|exitKill); err != nil {
		t.Fatal(err)
	}
	if err := syscall.PtraceSyscall(pid, 0); err != nil {
		t.Fatal(err)
	}
	inside := map[int]func(*syscall.PtraceRegs){} // threads in a call, and what to do at its end
	calls := 0
	for {
		tid, err := syscall.Wait4(-1, &status, syscall.WALL, nil)
		if errors.Is(err, syscall.EINTR) {
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		if status.Exited() || status.Signaled() {
			if tid == pid {
				return hit
			}
			continue
		}
		signal := 0
		switch stop := status.StopSignal(); {
		case stop == syscall.SIGTRAP|0x80:
			var regs syscall.PtraceRegs
			if err := syscall.PtraceGetRegs(tid, &regs); err != nil {
				break // killed meanwhile
			}
			if atEnd, in := inside[tid]; in {
				delete(inside, tid)
				if atEnd != nil {
					atEnd(&regs)
				}
				break
			}
			inside[tid] = nil
			if !changesFiles(&regs) {
				break
			}
			calls++
			call := regs.Orig_rax
			write := call == syscall.SYS_PWRITE64 || call == syscall.SYS_WRITE
			grows := write || call == syscall.SYS_FTRUNCATE || call == syscall.SYS_OPENAT || call == syscall.SYS_MKDIRAT || call == syscall.SYS_MKDIR
			switch {
			case calls == n && f.kill, calls == n && f.half && !write:
				hit = true
				syscall.Kill(pid, syscall.SIGKILL)
			case calls == n && f.half:
				hit = true
				regs.Rdx /= 2
				syscall.PtraceSetRegs(tid, &regs)
				inside[tid] = func(*syscall.PtraceRegs) { syscall.Kill(pid, syscall.SIGKILL) }
			case f.errno != 0 && (calls == n || calls > n && f.onwards && grows):
				hit = true
				skip(tid, &regs)
				inside[tid] = func(regs *syscall.PtraceRegs) { result(tid, regs, -int64(f.errno)) }
			case call == syscall.SYS_FSYNC || call == syscall.SYS_FDATASYNC:
				skip(tid, &regs) // nobody loses power here; the test need not wait for disks
				inside[tid] = func(regs *syscall.PtraceRegs) { result(tid, regs, 0) }
			}
		case stop == syscall.SIGTRAP, stop == syscall.SIGSTOP: // a new thread, at both ends
		default:
			signal = int(stop)
		}
		syscall.PtraceSyscall(tid, signal) // fails only for what was killed
	}
}

func skip(tid int, regs *syscall.PtraceRegs) {
	regs.Orig_rax = ^uint64(0)
	syscall.PtraceSetRegs(tid, regs)
}

func result(tid int, regs *syscall.PtraceRegs, value int64) {
	regs.Rax = uint64(value)
	syscall.PtraceSetRegs(tid, regs)
}

// The faults find a store that is not atomic: one that writes the document beside the
// log, in two steps.
func TestFaultsCatchTwoStepWrites(t *testing.T) {
	s := newStore(t)
	grow(t, s, 1)
	state, err := s.Load(owner)
	if err != nil {
		t.Fatal(err)
	}
	// The first of the two steps, then nothing: as if killed between them.
	next := bytes.Replace(state.Document.Bytes(), []byte(`"version":1`), []byte(`"version":2`), 1)
	s.edit(t, putDocument(next))
	var corrupt *CorruptError
	if _, err := s.Fsck(owner); !errors.As(err, &corrupt) || !strings.Contains(err.Error(), "log") {
		t.Fatalf("a document without its record: %v", err)
	}
	if canon.Sum(next) == state.Document.Digest() {
		t.Fatal("control: nothing was changed")
	}
}

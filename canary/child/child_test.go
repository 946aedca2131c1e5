//go:build linux

package child

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"selfsame.dev/selfsame/canary/internal/hostile"
)

// Variables are set before init, where the guardian begins.
var _ = func() bool {
	subreap = os.Getenv("TEST_NO_SUBREAPER") == ""
	sweeping = os.Getenv("TEST_NO_SWEEP") == ""
	return true
}()

func TestMain(m *testing.M) {
	hostile.Main(func(query []byte) ([]byte, error) { return []byte(`{"answer":"` + string(query) + `"}`), nil })
	if len(os.Args) == 5 && os.Args[1] == "parent" {
		parent(os.Args[2], os.Args[3], os.Args[4])
	}
	os.Exit(m.Run())
}

var quick = Limits{Timeout: 20 * time.Second, Grace: 200 * time.Millisecond, Stdout: 4096, Stderr: 1 << 16}

func spec(deed string, args ...string) Spec {
	exe, err := os.Executable()
	if err != nil {
		panic(err)
	}
	return Spec{Program: exe, Args: append([]string{hostile.Word, deed}, args...), Env: []string{}, Dir: "/", Stdin: []byte("who"), Limits: quick}
}

// The whole table: what each deed is called, and that nothing is left of it.
func TestHostileChild(t *testing.T) {
	for _, tc := range []struct {
		deed    string
		problem Problem
		hides   bool // takes a pid file
		short   bool // of time
	}{
		{deed: "answer"},
		{deed: "setsid", problem: LeftProcesses, hides: true},
		{deed: "double-fork", problem: LeftProcesses, hides: true},
		{deed: "hide-and-hang", problem: TimedOut, hides: true, short: true},
		{deed: "hide-and-crash", problem: BadExit, hides: true},
		{deed: "headless", problem: LeftProcesses, hides: true},
		{deed: "hop", problem: LeftProcesses, hides: true},
		{deed: "ignore-term", problem: TimedOut, short: true},
		{deed: "hang", problem: TimedOut, short: true},
		{deed: "flood", problem: StdoutFlood},
		{deed: "flood-stderr", problem: StderrFlood},
		{deed: "crash", problem: BadExit},
		{deed: "kill-self", problem: BadExit},
		{deed: "exit-1", problem: BadExit},
		{deed: "linger", problem: Lingered},
		{deed: "silent"},
		{deed: "twice"}, // how many answers there are is for the reader of stdout
		{deed: "lock"},
	} {
		t.Run(tc.deed, func(t *testing.T) {
			s, base := openTest(t)
			it := spec(tc.deed)
			it.Env = append(it.Env, "TMPDIR="+base)
			if tc.hides {
				it.Args = append(it.Args, filepath.Join(t.TempDir(), "pid"))
			}
			if tc.short {
				it.Limits.Timeout = 300 * time.Millisecond
			}
			if tc.short && tc.hides { // which takes three more processes
				it.Limits.Timeout = 2 * time.Second
			}
			var told Process
			got, err := s.Run(context.Background(), it, func(p Process) {
				told = p
				if look, err := s.Look(); tc.short && !tc.hides && (err != nil || look.Present != 1 || look.Traced != 1) {
					t.Errorf("control: while the child runs it is seen: %+v, %v", look, err)
				}
			})
			if look, err := s.Look(); err != nil || !look.Clean() {
				t.Errorf("left before the end: %+v, %v", look, err)
			}
			if err != nil {
				t.Fatal(err)
			}
			if got.Problem != tc.problem {
				t.Errorf("problem %q (%s, stderr %q), want %q", got.Problem, got.Detail, got.Stderr.Tail, tc.problem)
			}
			if got.Process != told || told.PID == 0 || told.Session != told.PID || told.StartTicks == 0 {
				t.Errorf("the process is %+v, while it ran it was %+v", got.Process, told)
			}
			if tc.problem == "" && !strings.HasPrefix(string(got.Stdout), `{"answer":"who"}`) && tc.deed != "silent" {
				t.Errorf("stdout %q", got.Stdout)
			}
			if len(got.Stdout) > quick.Stdout || got.Stderr.Bytes > quick.Stderr {
				t.Errorf("%d bytes of stdout and %d of stderr pass the limit", len(got.Stdout), got.Stderr.Bytes)
			}
			if tc.hides && got.Sweep.Killed == 0 {
				t.Error("control: nothing hid")
			}
			closeTest(t, s, base)
			if tc.hides && tc.deed != "hop" {
				if pid := readPID(t, it.Args[2]); alive(pid) {
					t.Errorf("process %d is left", pid)
				}
			}
		})
	}
}

func openTest(t *testing.T, env ...string) (*Supervisor, string) {
	t.Helper()
	s, err := open(t.TempDir(), env)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	if err := s.Ready(); err != nil {
		t.Fatal(err)
	}
	return s, s.Base()
}

func closeTest(t *testing.T, s *Supervisor, base string) {
	t.Helper()
	if err := s.Close(); err != nil {
		t.Errorf("close: %v", err)
	}
	if look, err := s.Look(); err != nil || !look.Clean() {
		t.Errorf("left: %+v, %v", look, err)
	}
	if _, err := os.Lstat(base); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the folder is left: %v", err)
	}
}

func readPID(t *testing.T, file string) int {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(data)))
	if err != nil {
		t.Fatal(err)
	}
	return pid
}

func alive(pid int) bool {
	s, ok := readStat(pid)
	return ok && !s.dead()
}

func gonePID(pid int) bool {
	for range 3000 {
		if !alive(pid) {
			return true
		}
		time.Sleep(time.Millisecond)
	}
	return false
}

// The folder is removed where it is, not where it was, by the guardian and by the parent.
func TestFolderMoved(t *testing.T) {
	for _, killed := range []bool{false, true} {
		s, base := openTest(t)
		elsewhere := filepath.Join(t.TempDir(), "elsewhere")
		it := spec("move", elsewhere)
		it.Env = append(it.Env, "HERMES_HOME="+filepath.Join(base, "1", "profile"))
		if got, err := s.Run(context.Background(), it, nil); err != nil || got.Problem != "" {
			t.Fatalf("%+v, %v", got, err)
		}
		if err := errors.Join(os.WriteFile(filepath.Join(elsewhere, "file"), nil, 0o600), os.Symlink(elsewhere, base)); err != nil {
			t.Fatal("control: it was not moved: ", err)
		}
		if killed {
			unix.Kill(s.Guardian().PID, unix.SIGKILL)
		}
		closeTest(t, s, base)
		if _, err := os.Lstat(elsewhere); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("guardian killed %v: the folder is left where the child moved it: %v", killed, err)
		}
	}
}

// With the search switched off the same child must leave its process behind: the
// tests above see one when there is one. Likewise without a subreaper.
func TestControlWithoutSearch(t *testing.T) {
	for _, hook := range []string{"TEST_NO_SWEEP=1", "TEST_NO_SUBREAPER=1"} {
		t.Run(hook, func(t *testing.T) {
			s, base := openTest(t, hook)
			it := spec("double-fork", filepath.Join(t.TempDir(), "pid"))
			if got, err := s.Run(context.Background(), it, nil); err != nil || got.Problem == LeftProcesses {
				t.Fatalf("%+v, %v", got, err)
			}
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			pid := readPID(t, it.Args[2])
			if !alive(pid) {
				t.Error("nothing is left: the test of the search proves nothing")
			}
			unix.Kill(pid, unix.SIGKILL)
			if _, err := os.Lstat(base); err == nil {
				t.Error("the folder is left")
			}
		})
	}
}

// What reaches the child is what the Spec says and no more.
func TestClosedEnvironment(t *testing.T) {
	t.Setenv("SECRET_TOKEN", "planted")
	leak, err := os.Create(filepath.Join(t.TempDir(), "leak"))
	if err != nil {
		t.Fatal(err)
	}
	defer leak.Close()
	// Kept open over exec, as by a careless shell.
	if _, err := unix.FcntlInt(leak.Fd(), unix.F_SETFD, 0); err != nil {
		t.Fatal(err)
	}
	s, base := openTest(t)
	it := spec("confess")
	it.Env, it.Dir = []string{"HOME=" + base}, base
	got, err := s.Run(context.Background(), it, nil)
	if err != nil || got.Problem != "" {
		t.Fatalf("%+v, %v", got, err)
	}
	said := string(got.Stdout)
	for _, want := range []string{"env HOME=" + base + "\n", "status NoNewPrivs:\t1\n", "dir " + base + "\n", "status SigIgn:\t0000000000000000\n"} {
		if !strings.Contains(said, want) {
			t.Errorf("no %q in\n%s", want, said)
		}
	}
	if n := strings.Count(said, "env "); n != 1 {
		t.Errorf("%d variables reached the child:\n%s", n, said)
	}
	if strings.Contains(said, leak.Name()) {
		t.Errorf("an inherited file is open:\n%s", said)
	}
}

// A killed guardian: the parent finishes its work.
func TestGuardianKilled(t *testing.T) {
	for _, deed := range []string{"hide-and-hang", "kill-parent", "kill-parent-headless"} {
		t.Run(deed, func(t *testing.T) {
			bystander := exec.Command("/proc/self/exe", hostile.Word, "hang")
			bystander.Stdin = strings.NewReader("")
			if err := bystander.Start(); err != nil {
				t.Fatal(err)
			}
			defer bystander.Wait()
			defer bystander.Process.Kill()

			s, base := openTest(t)
			it := spec(deed, filepath.Join(t.TempDir(), "pid"))
			var child Process
			_, err := s.Run(context.Background(), it, func(p Process) {
				child = p
				if deed == "hide-and-hang" {
					waitPID(it.Args[2])
					unix.Kill(s.Guardian().PID, unix.SIGKILL)
				}
			})
			if !errors.Is(err, ErrGuardianLost) {
				t.Fatalf("Run says %v", err)
			}
			hidden := readPID(t, it.Args[2])
			if !alive(hidden) {
				t.Error("control: the hidden process died with the guardian")
			}
			closeTest(t, s, base)
			for _, pid := range []int{hidden, child.PID} {
				if alive(pid) {
					t.Errorf("process %d is left", pid)
				}
			}
			if !alive(bystander.Process.Pid) {
				t.Error("a process that is not the child's was killed")
			}
		})
	}
}

func waitPID(file string) {
	for range 5000 {
		if data, err := os.ReadFile(file); err == nil && len(data) > 0 {
			return
		}
		time.Sleep(time.Millisecond)
	}
}

// parent opens a supervisor in a process of its own, says what it has, and waits.
func parent(state, temp, pidFile string) {
	s, err := Open(temp)
	if err != nil {
		panic(err)
	}
	if state == "opened" {
		fmt.Println("here")
		select {}
	}
	base := s.Base()
	if err := s.Ready(); err != nil {
		panic(err)
	}
	os.MkdirAll(filepath.Join(base, "profile"), 0o700)
	os.WriteFile(filepath.Join(base, "profile", "SOUL.md"), []byte("soul"), 0o600)
	fmt.Println("guardian", s.Guardian().PID)
	if state == "ready" {
		fmt.Println("here")
		select {}
	}
	it := spec("hide-and-hang", pidFile)
	if state == "plain" {
		it = spec("hang")
	}
	s.Run(context.Background(), it, func(p Process) {
		fmt.Println("child", p.PID)
		if state != "plain" {
			waitPID(pidFile)
		}
		fmt.Println("here")
	})
	select {}
}

// Both killed at once: the child itself still dies with the guardian (PDEATHSIG). What it
// hid, and the folder, nobody is left to remove.
func TestBothKilled(t *testing.T) {
	temp := t.TempDir()
	cmd := exec.Command("/proc/self/exe", "parent", "plain", temp, "")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var guardian, child int
	lines := bufio.NewScanner(out)
	for lines.Scan() && lines.Text() != "here" {
		fmt.Sscanf(lines.Text(), "guardian %d", &guardian)
		fmt.Sscanf(lines.Text(), "child %d", &child)
	}
	if !alive(guardian) || !alive(child) {
		t.Fatal("control: they do not live")
	}
	unix.Kill(cmd.Process.Pid, unix.SIGSTOP) // or it would clean up in between
	unix.Kill(guardian, unix.SIGKILL)
	cmd.Process.Kill()
	cmd.Wait()
	if !gonePID(child) {
		unix.Kill(child, unix.SIGKILL)
		t.Error("the child is left")
	}
}

// Outside the tree the child's environment gives a process away.
func TestTracedOutsideTheTree(t *testing.T) {
	mark := filepath.Join(t.TempDir(), "mark")
	cmd := exec.Command("/bin/sh", "-c", "sleep 300 >&- 2>&- & echo $!")
	cmd.Env = []string{"PATH=/usr/bin:/bin", "HOME=" + mark}
	out, err := cmd.Output() // the shell has ended, and this process is no subreaper
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(out)))
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Kill(pid, unix.SIGKILL)
	all, err := scan()
	if err != nil {
		t.Fatal(err)
	}
	found, _ := below(all, os.Getpid(), nil)
	for _, s := range found {
		if s.PID == pid {
			t.Fatal("control: it is in the tree")
		}
	}
	except := map[Process]bool{}
	for _, s := range found {
		except[s.Process] = true
	}
	if done, err := sweep(searchOthers(mark, except), 0); err != nil || done.Killed != 1 || !gonePID(pid) {
		t.Errorf("%+v, %v", done, err)
	}
}

// A parent killed with SIGKILL, in every state: the guardian leaves nothing.
func TestParentKilled(t *testing.T) {
	for _, state := range []string{"opened", "ready", "running"} {
		t.Run(state, func(t *testing.T) {
			temp, pidFile := t.TempDir(), filepath.Join(t.TempDir(), "pid")
			cmd := exec.Command("/proc/self/exe", "parent", state, temp, pidFile)
			cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
			out, err := cmd.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			var pids []int
			lines := bufio.NewScanner(out)
			for lines.Scan() && lines.Text() != "here" {
				if _, pid, ok := strings.Cut(lines.Text(), " "); ok {
					n, _ := strconv.Atoi(pid)
					pids = append(pids, n)
				}
			}
			if state == "running" {
				pids = append(pids, readPID(t, pidFile))
				for _, pid := range pids {
					if !alive(pid) {
						t.Errorf("control: process %d does not live", pid)
					}
				}
			}
			cmd.Process.Kill()
			cmd.Wait()
			for _, pid := range pids {
				if !gonePID(pid) {
					t.Errorf("process %d of %v is left", pid, pids)
				}
			}
			if left := eventuallyEmpty(temp); len(left) != 0 {
				t.Errorf("left: %v", left)
			}
		})
	}
}

// eventuallyEmpty waits for a folder to become, and to stay, empty.
func eventuallyEmpty(dir string) (left []os.DirEntry) {
	deadline := time.Now().Add(10 * time.Second)
	for empty := 0; empty < 30 && time.Now().Before(deadline); time.Sleep(time.Millisecond) {
		if left, _ = os.ReadDir(dir); len(left) == 0 {
			empty++
		} else {
			empty = 0
		}
	}
	return left
}

// A caller that gives up: the child is stopped, the guardian serves on.
func TestStop(t *testing.T) {
	s, base := openTest(t)
	ctx, cancel := context.WithCancel(context.Background())
	it := spec("hang")
	it.Limits.Grace = 10 * time.Second
	got, err := s.Run(ctx, it, func(Process) { cancel() })
	if err != nil || got.Problem != Stopped || got.Exit.Signal != "SIGTERM" {
		t.Fatalf("%+v, %v", got, err)
	}
	if got, err = s.Run(context.Background(), spec("answer"), nil); err != nil || got.Problem != "" {
		t.Fatalf("%+v, %v", got, err)
	}
	closeTest(t, s, base)
}

func TestNotStarted(t *testing.T) {
	s, base := openTest(t)
	it := spec("answer")
	it.Program = filepath.Join(base, "absent")
	if got, err := s.Run(context.Background(), it, nil); err != nil || got.Problem != NotStarted || got.Detail == "" {
		t.Fatalf("%+v, %v", got, err)
	}
	closeTest(t, s, base)
}

// A guardian that no supervisor started removes nothing.
func TestGuardianByHand(t *testing.T) {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	theirs, ours := os.NewFile(uintptr(pair[1]), "control"), os.NewFile(uintptr(pair[0]), "control")
	defer theirs.Close()
	ours.Close() // the parent is gone: remove, end
	temp := t.TempDir()
	for name, tc := range map[string]struct {
		mode    os.FileMode
		control *os.File
		removed bool
	}{
		"precious":                {0o700, theirs, false},
		folderPrefix + "shared":   {0o755, theirs, false},
		folderPrefix + "no-fd":    {0o700, nil, false},
		folderPrefix + "terminal": {0o700, os.Stdin, false},
		folderPrefix + "control":  {0o700, theirs, true},
	} {
		dir := filepath.Join(temp, name)
		if err := errors.Join(os.Mkdir(dir, tc.mode), os.Chmod(dir, tc.mode)); err != nil {
			t.Fatal(err)
		}
		cmd := &exec.Cmd{Path: "/proc/self/exe", Args: []string{guardianName, dir}, Env: []string{}}
		if tc.control != nil {
			cmd.ExtraFiles = []*os.File{tc.control}
		}
		out, _ := cmd.CombinedOutput()
		if _, err := os.Lstat(dir); (err != nil) != tc.removed {
			t.Errorf("%s: removed %v, %s", name, err != nil, out)
		}
	}
}

// Where no folder can be made nothing is started.
func TestNoFolder(t *testing.T) {
	temp := t.TempDir()
	if _, err := open(filepath.Join(temp, "absent"), nil); err == nil || !strings.Contains(err.Error(), "absent") {
		t.Errorf("Open says %v", err)
	}
	for pid := range newest() {
		if line, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid)); bytes.Contains(line, []byte(temp)) {
			t.Errorf("the guardian is left: %d", pid)
		}
	}
}

func TestParseStat(t *testing.T) {
	const rest = " S 7 41 41 0 -1 0 0 0 0 0 0 0 0 0 20 0 3 0 123456 0 0"
	for _, name := range []string{"sh", ") R 1 1 1 (", "a b", "((("} {
		got, ok := parseStat([]byte("42 (" + name + ")" + rest))
		want := stat{Process: Process{PID: 42, Session: 41, StartTicks: 123456}, parent: 7, state: 'S', threads: 3}
		if !ok || got != want {
			t.Errorf("%q: %+v, %v", name, got, ok)
		}
	}
	for _, bad := range []string{"", "42", "42 (sh)", "42 (sh) S 7", "x (sh)" + rest, ")("} {
		if _, ok := parseStat([]byte(bad)); ok {
			t.Errorf("%q is accepted", bad)
		}
	}
}

// A number that went to another process is not killed: start times differ.
func TestKillKnowsReusedNumbers(t *testing.T) {
	cmd := exec.Command("/proc/self/exe", hostile.Word, "hang")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer cmd.Wait()
	defer cmd.Process.Kill()
	seen, ok := readStat(cmd.Process.Pid)
	if !ok {
		t.Fatal("no stat")
	}
	old := seen.Process
	old.StartTicks--
	if err := kill(old, unix.SIGKILL); err != nil {
		t.Fatal(err)
	}
	time.Sleep(20 * time.Millisecond)
	if !alive(cmd.Process.Pid) {
		t.Fatal("the new owner of the number was killed")
	}
	if err := kill(seen.Process, unix.SIGKILL); err != nil || !gonePID(cmd.Process.Pid) {
		t.Errorf("control: the right one lives (%v)", err)
	}
}

func TestBelow(t *testing.T) {
	p := func(pid, parent int) stat { return stat{Process: Process{PID: pid}, parent: parent, state: 'S'} }
	all := map[int]stat{}
	for _, s := range []stat{p(1, 0), p(10, 1), p(20, 10), p(30, 20), p(40, 30), p(21, 10), p(22, 21), p(50, 1), p(60, 999), p(70, 71), p(71, 70)} {
		all[s.PID] = s
	}
	found, torn := below(all, 10, map[Process]bool{{PID: 21}: true})
	var pids []int
	for _, s := range found {
		pids = append(pids, s.PID)
	}
	slices.Sort(pids)
	if !slices.Equal(pids, []int{20, 30, 40}) || !torn {
		t.Errorf("%v, torn %v", pids, torn)
	}
}

// The numbers of threads are not those of processes: /proc shows them when it is asked.
func TestNewestAreProcesses(t *testing.T) {
	threads := make(chan int)
	done := make(chan struct{})
	defer close(done)
	locked := func() int {
		go func() {
			runtime.LockOSThread()
			threads <- unix.Gettid()
			<-done
		}()
		return <-threads
	}
	tid := locked()
	if tid == os.Getpid() { // the goroutine got the main thread, whose number is the process's
		tid = locked()
	}
	if _, ok := readStat(tid); !ok || tid == os.Getpid() {
		t.Fatalf("control: /proc does not show thread %d of process %d", tid, os.Getpid())
	}
	if _, found := newest()[tid]; found {
		t.Errorf("thread %d is taken for a process", tid)
	}
}

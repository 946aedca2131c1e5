package child

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// answerWait bounds how long a guardian may take for anything but a running child.
const answerWait = 2*killWait + 5*time.Second

// Supervisor is the caller's end: one guardian, one folder, one child at a time. It
// is not safe for concurrent use. While it is open the calling process is a
// subreaper, and a child process that it starts elsewhere meanwhile is at risk
// if the guardian is killed.
type Supervisor struct {
	base     string
	folder   *os.File // open at base
	cmd      *exec.Cmd
	control  *os.File
	sending  sync.Mutex
	reports  chan report // closed when the guardian is gone
	ready    Process
	except   map[Process]bool // what lived below this process before
	subreap  int32            // the setting to restore
	before   counters         // when this was opened
	children []Process
	closed   bool
}

// Open makes a new private folder in parent, and starts the guardian that owns it. It returns
// before the guardian is ready; [Supervisor.Ready] waits.
func Open(parent string) (*Supervisor, error) { return open(parent, nil) }

func open(parent string, env []string) (*Supervisor, error) {
	parent, err := filepath.Abs(parent)
	if err != nil {
		return nil, err
	}
	s := &Supervisor{
		base:    filepath.Join(parent, folderPrefix+rand.Text()),
		except:  map[Process]bool{},
		reports: make(chan report, 4),
	}
	if !childless() {
		all, err := scan()
		if err != nil {
			return nil, err
		}
		before, _ := below(all, os.Getpid(), nil)
		for _, b := range before {
			s.except[b.Process] = true
		}
	}
	if _, _, errno := unix.RawSyscall(unix.SYS_PRCTL, unix.PR_GET_CHILD_SUBREAPER, uintptr(unsafe.Pointer(&s.subreap)), 0); errno != 0 {
		return nil, fmt.Errorf("subreaper: %w", errno)
	}
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return nil, fmt.Errorf("subreaper: %w", err)
	}
	s.before, _ = readCounters()
	if err := s.spawn(env); err != nil {
		s.restore()
		return nil, fmt.Errorf("start the guardian: %w", err)
	}
	// Not before the guardian lives: a folder without a keeper could be left.
	if err := s.makeFolder(); err != nil {
		_ = s.Close()
		return nil, err
	}
	return s, nil
}

func (s *Supervisor) makeFolder() error {
	if err := os.Mkdir(s.base, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	var err error
	s.folder, err = os.Open(s.base)
	return err
}

func (s *Supervisor) spawn(env []string) error {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	theirs := os.NewFile(uintptr(pair[1]), "control")
	defer theirs.Close()
	if err := unix.SetNonblock(pair[0], true); err != nil { // so that Close ends a read
		return err
	}
	s.control = os.NewFile(uintptr(pair[0]), "control")
	s.cmd = &exec.Cmd{
		Path:        "/proc/self/exe", // also when the file was replaced or removed
		Args:        []string{guardianName, s.base},
		Env:         append([]string{}, env...),
		Dir:         "/",
		ExtraFiles:  []*os.File{theirs},
		SysProcAttr: &syscall.SysProcAttr{Setsid: true}, // no terminal's signals
	}
	if err := s.cmd.Start(); err != nil {
		s.control.Close()
		return err
	}
	go func() {
		defer close(s.reports)
		in := json.NewDecoder(s.control)
		for {
			var r report
			if in.Decode(&r) != nil {
				return
			}
			s.reports <- r
		}
	}()
	return nil
}

// Base returns the folder, mode 0700, which exists up to [Supervisor.Close].
func (s *Supervisor) Base() string { return s.base }

// Ready waits for the guardian.
func (s *Supervisor) Ready() error {
	if s.ready != (Process{}) {
		return nil
	}
	r, err := s.next(answerWait)
	if err == nil && r.Ready == nil {
		err = errors.New("the guardian did not report first that it is ready")
	}
	if err == nil {
		s.ready = *r.Ready
	}
	return err
}

// Guardian returns the guardian's process, once it is ready.
func (s *Supervisor) Guardian() Process { return s.ready }

// ErrGuardianLost says that the guardian ended before its time.
var ErrGuardianLost = errors.New("the guardian was killed")

func (s *Supervisor) send(o order) error {
	data, err := json.Marshal(o)
	if err != nil {
		return err
	}
	s.sending.Lock()
	defer s.sending.Unlock()
	if _, err := s.control.Write(data); err != nil {
		return ErrGuardianLost
	}
	return nil
}

func (s *Supervisor) next(wait time.Duration) (report, error) {
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case r, ok := <-s.reports:
		if !ok {
			return r, ErrGuardianLost
		}
		if r.Error != "" {
			return r, errors.New("guardian: " + r.Error)
		}
		return r, nil
	case <-timer.C:
		return report{}, fmt.Errorf("the guardian does not answer for %v", wait)
	}
}

// Run starts one child and returns when it and all that it forked are gone. started, if
// not nil, is told of the child while it runs. When ctx is done the child is stopped and the
// result says so. An error means that the guardian failed; close the supervisor then.
func (s *Supervisor) Run(ctx context.Context, spec Spec, started func(Process)) (Result, error) {
	if err := s.Ready(); err != nil {
		return Result{}, err
	}
	if err := s.send(order{Start: &spec}); err != nil {
		return Result{}, err
	}
	stop := context.AfterFunc(ctx, func() { _ = s.send(order{Stop: true}) })
	defer stop()
	for {
		r, err := s.next(spec.Limits.Timeout + spec.Limits.Grace + answerWait)
		switch {
		case err != nil:
			return Result{}, err
		case r.Started != nil:
			s.children = append(s.children, *r.Started)
			if started != nil {
				started(*r.Started)
			}
		case r.Ended != nil:
			return *r.Ended, nil
		}
	}
}

// Remove removes one folder below Base with everything in it.
func (s *Supervisor) Remove(name string) error { return removeTree(filepath.Join(s.base, name)) }

// Look searches, from this process and apart from the guardian, for anything left of the
// children and, once the supervisor is closed, of the guardian.
func (s *Supervisor) Look() (Absence, error) {
	all, looked := since(s.ready.PID, s.before)
	if looked == 0 {
		var err error
		if all, err = scan(); err != nil {
			return Absence{}, err
		}
		looked = len(all)
	}
	seen := Absence{Scanned: looked}
	named := s.children
	if s.closed && s.ready != (Process{}) {
		named = append(slices.Clone(named), s.ready)
	}
	for pid, p := range all {
		for _, c := range named {
			switch {
			case pid == c.PID && p.StartTicks == c.StartTicks:
				seen.Present++
			case p.Session == c.Session && p.StartTicks >= c.StartTicks:
				seen.Session++
			}
		}
		// What is older than the guardian is not the child's.
		if pid != os.Getpid() && p.StartTicks >= s.ready.StartTicks && traced(pid, []byte(s.base)) {
			seen.Traced++
		}
	}
	return seen, nil
}

// Close kills what is left, removes the folder and ends the guardian; when the
// guardian cannot, it does so itself. It returns nil when nothing is left, and
// may be called twice.
func (s *Supervisor) Close() error {
	if s.closed {
		return nil
	}
	s.closed = true
	defer s.restore()
	err := s.finish()
	s.control.Close()
	if err != nil {
		_ = s.cmd.Process.Kill()
	}
	_ = s.cmd.Wait()
	if err != nil {
		_, sweepErr := sweep(searchOthers(s.base, s.except), 0)
		if errors.Is(err, ErrGuardianLost) {
			err = nil // what it would have done is done
		}
		err = errors.Join(err, sweepErr, removeFolder(s.base, s.folder))
	}
	s.folder.Close() // of a nil file it is an error and nothing else
	if _, statErr := os.Lstat(s.base); !errors.Is(statErr, os.ErrNotExist) {
		err = errors.Join(err, fmt.Errorf("the temporary folder is still there: %v", statErr))
	}
	return err
}

func (s *Supervisor) finish() error {
	if err := s.Ready(); err != nil {
		return err
	}
	if err := s.send(order{Finish: true}); err != nil {
		return err
	}
	for {
		r, err := s.next(answerWait)
		if err != nil || r.Finished {
			return err
		}
	}
}

func (s *Supervisor) restore() {
	_ = unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, uintptr(s.subreap), 0, 0, 0)
}

package child

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// guardianName is the guardian's argv[0]. Nothing else is called so.
const guardianName = "selfsame-canary-guardian"

// folderPrefix begins the name of every folder that a guardian keeps.
const folderPrefix = "selfsame-canary-"

// controlFD is the guardian's end of the socket to its parent.
const controlFD = 3

// subreap and sweeping are false only in the negative controls of the tests.
var subreap, sweeping = true, true

// order is what the parent says to the guardian; exactly one field is set. The end of the stream is an
// order too: kill, remove, end.
type order struct {
	Start  *Spec `json:"start,omitempty"`
	Stop   bool  `json:"stop,omitempty"`   // kill the running child; answered by its report
	Finish bool  `json:"finish,omitempty"` // remove the folder; the last order
}

// report is what the guardian says to the parent.
type report struct {
	Ready    *Process `json:"ready,omitempty"`    // the folder has a keeper
	Started  *Process `json:"started,omitempty"`  // the child runs
	Ended    *Result  `json:"ended,omitempty"`    // and is absent
	Finished bool     `json:"finished,omitempty"` // the folder is gone
	Error    string   `json:"error,omitempty"`
}

// Every program that can start children is a guardian when it is called so. Ahead of main, and so of what the
// rest of the program needs time to initialize: a guardian has no use for it.
func init() {
	if len(os.Args) == 2 && os.Args[0] == guardianName {
		os.Exit(guard(os.Args[1]))
	}
}

// guard is the guardian from start to end; base is the folder that it removes.
func guard(base string) int {
	// PDEATHSIG and no_new_privs belong to a thread; this one makes every child.
	runtime.LockOSThread()
	// Caught, not ignored: what is ignored stays so in the child.
	signal.Notify(make(chan os.Signal, 1), unix.SIGINT, unix.SIGTERM, unix.SIGHUP, unix.SIGQUIT, unix.SIGUSR1, unix.SIGUSR2, unix.SIGALRM)

	// Whatever this process is started with by hand, it removes nothing that no supervisor made.
	var socket, made unix.Stat_t
	if err := unix.Fstat(controlFD, &socket); err != nil || socket.Mode&unix.S_IFMT != unix.S_IFSOCK || !strings.HasPrefix(filepath.Base(base), folderPrefix) {
		fmt.Fprintln(os.Stderr, guardianName+": error: started by no supervisor")
		return 2
	}
	control := os.NewFile(controlFD, "control")
	g := &guardian{out: json.NewEncoder(control), orders: make(chan order)}
	if err := confine(); err != nil {
		return g.fail(err)
	}
	// The parent makes it, too, and need not wait for this process; whoever is first.
	if err := os.Mkdir(base, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return g.fail(err)
	}
	folder, err := os.OpenFile(base, os.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW, 0)
	if err != nil {
		return g.fail(err)
	}
	if err := unix.Fstat(int(folder.Fd()), &made); err != nil || int(made.Uid) != os.Geteuid() || made.Mode&0o077 != 0 {
		return g.fail(errors.Join(err, fmt.Errorf("%s is not the folder of this canary", base)))
	}
	self, _ := readStat(os.Getpid())
	g.say(report{Ready: &self.Process})

	go func() {
		defer close(g.orders)
		in := json.NewDecoder(control)
		for {
			var o order
			if in.Decode(&o) != nil {
				return
			}
			g.orders <- o
		}
	}()

	finish := false
	for o := range g.orders {
		if o.Start != nil {
			g.say(report{Ended: new(g.run(*o.Start))})
		}
		if finish = o.Finish; finish {
			break
		}
	}
	err = g.leave(base, folder)
	if err != nil {
		return g.fail(err)
	}
	if finish {
		g.say(report{Finished: true})
	}
	return 0
}

type guardian struct {
	out    *json.Encoder
	orders chan order // closed when the parent is gone
}

// say tells the parent. A parent that is gone hears nothing; the end of its stream
// says so.
func (g *guardian) say(r report) { _ = g.out.Encode(r) }

func (g *guardian) fail(err error) int {
	g.say(report{Error: err.Error()})
	return 1
}

// confine sets what the child inherits, and makes this process the reaper of all
// that descends from it.
func confine() error {
	unix.Umask(0o077)
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("no_new_privs: %w", err)
	}
	if subreap {
		if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
			return fmt.Errorf("subreaper: %w", err)
		}
	}
	// A core dump is a file left behind.
	if err := syscall.Setrlimit(syscall.RLIMIT_CORE, &syscall.Rlimit{}); err != nil {
		return fmt.Errorf("core limit: %w", err)
	}
	// Files that the parent itself inherited would reach the child.
	if err := unix.CloseRange(controlFD, ^uint(0), unix.CLOSE_RANGE_CLOEXEC); err != nil {
		return fmt.Errorf("close_range: %w", err)
	}
	return nil
}

// leave kills what is below and removes the folder.
func (g *guardian) leave(base string, folder *os.File) error {
	var err error
	if sweeping {
		_, err = sweep(searchAll, 0)
	}
	return errors.Join(err, removeFolder(base, folder))
}

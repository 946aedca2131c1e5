// Package hostile is a child process that misbehaves on demand. Test binaries become
// one by starting themselves anew.
package hostile

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Word is the first argument of a test binary that is to be hostile; the second
// names the deed, the rest belong to it.
const Word = "hostile"

// Main commits the deed named on the command line, if any, and ends the process.
// answer makes the proper answer to a query; a deed may spoil it.
func Main(answer func(query []byte) ([]byte, error)) {
	if len(os.Args) < 3 || os.Args[1] != Word {
		return
	}
	query, _ := io.ReadAll(os.Stdin)
	var good []byte
	if os.Args[2] != "descend" && os.Args[2] != "headless-child" { // which have no profile any more
		var err error
		if good, err = answer(query); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(9)
		}
	}
	deed, ok := deeds[os.Args[2]]
	if !ok {
		fmt.Fprintln(os.Stderr, "no such deed:", os.Args[2])
		os.Exit(8)
	}
	deed(good, os.Args[3:])
	os.Exit(0)
}

// The deed headless-child needs the first thread.
func init() {
	if len(os.Args) > 2 && os.Args[1] == Word && os.Args[2] == "headless-child" {
		runtime.LockOSThread()
	}
}

var deeds = map[string]func(good []byte, args []string){
	"answer": func(good []byte, _ []string) { os.Stdout.Write(good) },

	// Answers properly, leaving processes behind. The argument is a file for the last one's pid.
	"setsid":         func(good []byte, args []string) { leave(1, args[0]); os.Stdout.Write(good) },
	"double-fork":    func(good []byte, args []string) { leave(3, args[0]); os.Stdout.Write(good) },
	"hide-and-hang":  func(_ []byte, args []string) { leave(3, args[0]); hang() },
	"hide-and-crash": func(_ []byte, args []string) { leave(3, args[0]); unix.Kill(os.Getpid(), unix.SIGSEGV); hang() },
	// Internal: one generation of the above.
	"descend": func(_ []byte, args []string) {
		signal.Ignore(unix.SIGTERM, unix.SIGHUP, unix.SIGINT)
		if left, _ := strconv.Atoi(args[0]); left > 1 {
			leave(left-1, args[1])
			return
		}
		os.Stdout.Close()
		temp := args[1] + ".tmp"
		os.WriteFile(temp, []byte(strconv.Itoa(os.Getpid())), 0o600)
		os.Rename(temp, args[1])
		hang()
	},
	// Leaves a process whose first thread has ended, so that it looks like a zombie.
	"headless": func(good []byte, args []string) { spawn(args[0], "headless-child", args[0]); os.Stdout.Write(good) },
	"headless-child": func(_ []byte, args []string) {
		os.WriteFile(args[0], []byte(strconv.Itoa(os.Getpid())), 0o600)
		unix.RawSyscall(unix.SYS_EXIT, 0, 0, 0)
	},
	// A chain in which each process forks the next and ends, forever.
	"hop": func(good []byte, args []string) {
		// The shell limits recursion, hence the exec now and then.
		const script = `trap '' TERM; echo $$ > "$1"
			hop() { n=$((n+1)); [ -e "$1" ] || exit; [ $n -gt 500 ] && exec /bin/sh -c "$0" "$0" "$1"; hop "$1" & exit; }; hop "$1"`
		cmd := exec.Command("/bin/sh", "-c", script, script, args[0])
		cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
		if err := cmd.Start(); err != nil {
			os.Exit(7)
		}
		waitFile(args[0])
		os.Stdout.Write(good)
	},

	"ignore-term": func([]byte, []string) { signal.Ignore(unix.SIGTERM); hang() },
	"hang":        func([]byte, []string) { hang() },
	"flood":       func([]byte, []string) { flood(os.Stdout) },
	"flood-stderr": func(good []byte, _ []string) {
		os.Stdout.Write(good)
		flood(os.Stderr)
	},
	"crash":     func(good []byte, _ []string) { os.Stdout.Write(good); unix.Kill(os.Getpid(), unix.SIGSEGV); hang() },
	"kill-self": func(good []byte, _ []string) { os.Stdout.Write(good); unix.Kill(os.Getpid(), unix.SIGKILL); hang() },
	"kill-parent": func(_ []byte, args []string) {
		leave(3, args[0])
		unix.Kill(os.Getppid(), unix.SIGKILL)
		hang()
	},
	"kill-parent-headless": func(_ []byte, args []string) {
		spawn(args[0], "headless-child", args[0])
		unix.Kill(os.Getppid(), unix.SIGKILL)
		hang()
	},
	"exit-1":  func(good []byte, _ []string) { os.Stdout.Write(good); os.Exit(1) },
	"linger":  func(good []byte, _ []string) { os.Stdout.Write(good); os.Stdout.Close(); hang() },
	"silent":  func([]byte, []string) {},
	"twice":   func(good []byte, _ []string) { os.Stdout.Write(append(append(good, '\n'), good...)) },
	"garbage": func(good []byte, _ []string) { os.Stdout.WriteString("<answer>") },
	"trail":   func(good []byte, _ []string) { os.Stdout.Write(append(good, " and more"...)) },
	"half":    func(good []byte, _ []string) { os.Stdout.Write(good[:len(good)/2]) },
	// Locks folders so that a plain removal fails, for users other than root.
	"lock": func(good []byte, _ []string) {
		deep := filepath.Join(os.Getenv("TMPDIR"), "a", "b")
		os.MkdirAll(deep, 0o700)
		os.WriteFile(filepath.Join(deep, "c"), nil, 0o400)
		os.Symlink("/", filepath.Join(deep, "root"))
		os.Chmod(deep, 0)
		os.Chmod(filepath.Dir(deep), 0)
		os.Stdout.Write(good)
	},
	// Writes what it can see to stdout: variables, open files, privileges.
	"confess": func([]byte, []string) {
		status, _ := os.ReadFile("/proc/self/status")
		fds, _ := os.ReadDir("/proc/self/fd")
		for _, fd := range fds {
			if to, err := os.Readlink("/proc/self/fd/" + fd.Name()); err == nil {
				fmt.Println("fd", fd.Name(), to)
			}
		}
		for _, kv := range os.Environ() {
			fmt.Println("env", kv)
		}
		for line := range bytes.Lines(status) {
			if s := string(line); strings.HasPrefix(s, "NoNewPrivs") || strings.HasPrefix(s, "SigIgn") {
				fmt.Print("status ", s)
			}
		}
		dir, _ := os.Getwd()
		fmt.Println("dir", dir)
	},
	// Answers if the environment is the closed one that the canary promises, with its folders in one
	// private folder.
	"closed": func(good []byte, _ []string) {
		var names []string
		for _, kv := range os.Environ() {
			name, _, _ := strings.Cut(kv, "=")
			names = append(names, name)
		}
		slices.Sort(names)
		if got := strings.Join(names, " "); got != "HERMES_HOME HOME LANG PATH TMPDIR TZ" {
			fmt.Fprintln(os.Stderr, "variables:", got)
			os.Exit(5)
		}
		start := filepath.Dir(os.Getenv("HERMES_HOME"))
		for _, name := range []string{"HERMES_HOME", "HOME", "TMPDIR"} {
			if dir := os.Getenv(name); filepath.Dir(dir) != start {
				fmt.Fprintln(os.Stderr, "elsewhere:", name, dir)
				os.Exit(5)
			}
		}
		for _, dir := range []string{start, filepath.Dir(start), os.Getenv("HOME"), os.Getenv("TMPDIR")} {
			if info, err := os.Stat(dir); err != nil || info.Mode() != os.ModeDir|0o700 {
				fmt.Fprintln(os.Stderr, "not private:", dir, err)
				os.Exit(5)
			}
		}
		os.Stdout.Write(good)
	},
	// Writes into its own profile: a new file, or into the one named.
	"write": func(good []byte, args []string) {
		f, err := os.OpenFile(filepath.Join(os.Getenv("HERMES_HOME"), args[0]), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
		if err != nil {
			os.Exit(7)
		}
		f.WriteString("\n")
		f.Close()
		os.Stdout.Write(good)
	},
	// Plants a file for the next start, beside the folder of this one.
	"plant": func(good []byte, _ []string) {
		base := filepath.Dir(filepath.Dir(os.Getenv("HERMES_HOME")))
		if err := os.WriteFile(filepath.Join(base, "memory"), []byte("planted"), 0o600); err != nil {
			os.Exit(7)
		}
		os.Stdout.Write(good)
	},
	"remove-profile": func(good []byte, _ []string) {
		os.RemoveAll(os.Getenv("HERMES_HOME"))
		os.Stdout.Write(good)
	},
	// Moves the private folder away; the argument is where to.
	"move": func(good []byte, args []string) {
		base := filepath.Dir(filepath.Dir(os.Getenv("HERMES_HOME")))
		if err := os.Rename(base, args[0]); err != nil {
			os.Exit(7)
		}
		os.Stdout.Write(good)
	},
	"chmod": func(good []byte, args []string) {
		os.Chmod(filepath.Join(os.Getenv("HERMES_HOME"), args[0]), 0o600)
		os.Stdout.Write(good)
	},
	// Another answer at each start, by the time.
	"waver": func(good []byte, _ []string) {
		os.Stdout.Write(bytes.Replace(good, []byte(`"text":"`), []byte(`"text":"`+time.Now().Format("05.000000000 ")), 1))
	},
}

// leave starts a generation of processes, each in a session of its own with an empty
// environment, and waits for the last one's pid file.
func leave(generations int, pidFile string) {
	spawn(pidFile, "descend", strconv.Itoa(generations), pidFile)
}

func spawn(pidFile string, deed ...string) {
	cmd := exec.Command("/proc/self/exe", append([]string{Word}, deed...)...)
	cmd.Env = []string{}
	cmd.Dir = "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		os.Exit(7)
	}
	waitFile(pidFile)
}

func waitFile(name string) {
	for range 5000 {
		if data, err := os.ReadFile(name); err == nil && len(data) > 0 {
			return
		}
		time.Sleep(time.Millisecond)
	}
	os.Exit(6)
}

func hang() {
	for {
		time.Sleep(time.Hour)
	}
}

func flood(f *os.File) {
	block := bytes.Repeat([]byte("x"), 1<<16)
	for {
		if _, err := f.Write(block); err != nil {
			hang()
		}
	}
}

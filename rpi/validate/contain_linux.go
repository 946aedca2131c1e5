package validate

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"time"

	"selfsame.dev/selfsame/internal/canon"
	"selfsame.dev/selfsame/rpi/bounded"
)

// system are the folders of the machine that a check sees, read only, where they exist.
var system = []string{
	"/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/nix/store",
	"/etc/alternatives", "/etc/ld.so.cache", "/etc/ld.so.conf", "/etc/ld.so.conf.d",
}

// scratch is the size of /tmp inside, in bytes.
const scratch = "268435456"

type bubblewrap struct{ path string }

// Bubblewrap returns containment by bwrap(1): own namespaces for users, processes, network,
// mounts, IPC, host name and cgroups; all of it dies with the process that started it. Where
// that does not work the error is a [*NoContainment] with the reason.
func Bubblewrap(ctx context.Context) (Containment, error) {
	path, err := exec.LookPath("bwrap")
	if err != nil {
		return nil, noContainment("bwrap is not on the PATH")
	}
	b := bubblewrap{path}
	program, err := exec.LookPath("true")
	if err != nil {
		return nil, noContainment("no program to try it with: %v", err)
	}
	argv := append(b.walls(), "--ro-bind", "/", "/", "--", program)
	result, err := bounded.Run(ctx, bounded.Command{Argv: argv}, bounded.Limits{Time: 20 * time.Second, Output: 64 << 10})
	switch {
	case err != nil:
		return nil, noContainment("bwrap does not start: %v", err)
	case result.Exit != 0 || result.TimedOut || result.Overflow:
		return nil, noContainment("bwrap cannot make its namespaces: %s", bytes.TrimSpace(result.Stderr))
	}
	return b, nil
}

func (bubblewrap) Name() string { return "bubblewrap" }

func (b bubblewrap) walls() []string {
	return []string{b.path, "--unshare-all", "--die-with-parent", "--new-session", "--cap-drop", "ALL", "--hostname", "check", "--clearenv"}
}

// statusFD is where bwrap tells how the program ended; it says nothing of one that it could not start.
const statusFD = "3"

func (b bubblewrap) Run(ctx context.Context, copy string, check Check) (bounded.Result, error) {
	read, write, err := os.Pipe()
	if err != nil {
		return bounded.Result{}, err
	}
	defer read.Close()
	for i, dir := range check.Tools {
		if info, err := os.Stat(dir); err != nil || !info.IsDir() {
			return bounded.Result{}, &canon.InputError{File: "check", Key: fmt.Sprintf("/tools/%d", i), Problem: fmt.Sprintf("%s is no folder here", dir), Fix: "name folders of this machine"}
		}
	}
	status := make(chan []byte, 1)
	go func() {
		said, _ := io.ReadAll(read)
		status <- said
	}()
	result, err := bounded.Run(ctx, bounded.Command{Argv: b.argv(copy, check), Env: []string{}, Extra: write}, check.limits())
	write.Close()
	if said := <-status; err != nil || result.TimedOut || result.Overflow || bytes.Contains(said, []byte(`"exit-code"`)) {
		return result, err
	}
	if result.Signal != "" {
		return result, fmt.Errorf("the containment ended while the check ran: %s", result.Signal)
	}
	reason := string(bytes.TrimSpace(result.Stderr))
	if strings.HasPrefix(reason, "bwrap: execvp ") {
		return result, &canon.InputError{File: "check", Key: "/argv/0", Problem: "it cannot be started inside: " + reason,
			Fix: "name a program of the system, of the subject, or below a folder of /tools"}
	}
	return result, noContainment("the check was not started: %s", reason)
}

func (b bubblewrap) argv(copy string, check Check) []string {
	argv := append(b.walls(), "--json-status-fd", statusFD)
	for _, dir := range system {
		argv = append(argv, "--ro-bind-try", dir, dir)
	}
	argv = append(argv, "--proc", "/proc", "--dev", "/dev", "--size", scratch, "--tmpfs", "/tmp")
	for _, dir := range check.Tools { // last: one below /tmp would be hidden
		argv = append(argv, "--ro-bind", dir, dir)
	}
	bind := "--ro-bind"
	if check.Effect == DisposableMutation {
		bind = "--bind"
	}
	argv = append(argv, bind, copy, "/subject", "--remount-ro", "/", "--chdir", "/subject",
		"--setenv", "HOME", "/tmp", "--setenv", "TMPDIR", "/tmp", "--setenv", "LC_ALL", "C.UTF-8", "--setenv", "TZ", "UTC",
		"--setenv", "PATH", "/usr/local/bin:/usr/bin:/bin")
	for _, name := range sortedKeys(check.Env) {
		argv = append(argv, "--setenv", name, check.Env[name])
	}
	return append(append(argv, "--"), check.Argv...)
}

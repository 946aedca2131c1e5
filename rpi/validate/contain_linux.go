package validate

import (
	"bytes"
	"context"
	"os/exec"
	"time"

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

func (b bubblewrap) Wrap(copy string, writable bool, check Check) []string {
	argv := b.walls()
	for _, dir := range system {
		argv = append(argv, "--ro-bind-try", dir, dir)
	}
	for _, dir := range check.Tools {
		argv = append(argv, "--ro-bind", dir, dir)
	}
	argv = append(argv, "--proc", "/proc", "--dev", "/dev", "--size", scratch, "--tmpfs", "/tmp")
	bind := "--ro-bind"
	if writable {
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

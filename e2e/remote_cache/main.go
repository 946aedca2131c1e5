// Command remote_cache shows on one machine what identities do with a remote cache that two
// machines share: the same hashes from it, without it, when it is cut off, and when it lies.
//
//	./bazelw run //e2e/remote_cache -- [-seed DISK_CACHE]
//
// It runs as root in the Debian root that bazelw provisions. The machines are network namespaces;
// they, every process and every mount belong to a PID namespace that ends with this program, even
// by SIGKILL. The host's network is not touched.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
)

// Not below /tmp: Bazel's sandbox puts an empty folder there.
const scratch = "/var/tmp/selfsame-remote-cache"

// inside, in the environment, says that the namespaces are made.
const inside = "SELFSAME_REMOTE_CACHE_INSIDE"

const needsNamespaces = "this needs a kernel, and a container, that lets root make PID, mount and network namespaces, and virtual Ethernet"

// failure ends the program with a hint.
type failure struct {
	err  error
	hint string
}

func (f *failure) Error() string { return f.err.Error() }

func main() {
	seed := flag.String("seed", "", "Bazel disk cache that has the tool; nothing of an identity is taken from it (default: the tool is compiled)")
	flag.Parse()
	run := outside
	if os.Getenv(inside) != "" {
		run = scenario
	}
	if err := run(*seed); err != nil {
		fmt.Fprintf(os.Stderr, "remote_cache: error: %v\n", err)
		var f *failure
		if errors.As(err, &f) {
			fmt.Fprintf(os.Stderr, "remote_cache: hint: %s\n", f.hint)
			os.Exit(4)
		}
		os.Exit(1)
	}
}

// outside prepares the scratch folder and starts this program again in namespaces of its own.
func outside(seed string) error {
	const start = "start it as root: ./bazelw run //e2e/remote_cache"
	if os.Geteuid() != 0 {
		return &failure{errors.New("network namespaces need root"), start}
	}
	for _, name := range []string{"SELFSAME_BAZEL", "SELFSAME_BAZELRC", "SELFSAME_GOROOT", "BUILD_WORKSPACE_DIRECTORY"} {
		if os.Getenv(name) == "" {
			return &failure{fmt.Errorf("%s is not set", name), start + ", where bazelw provisions Bazel (no BAZEL, bazel or bazelisk on PATH)"}
		}
	}
	for _, tool := range []string{"nginx", "ip", "nsenter", "git"} {
		if _, err := exec.LookPath(tool); err != nil {
			return &failure{err, start}
		}
	}
	lock, err := net.Listen("unix", "@"+scratch) // an abstract name: it ends with this process
	if err != nil {
		return &failure{err, "another run is under way: wait for it"}
	}
	defer lock.Close()
	if err := remove(scratch); err != nil { // of a run that was killed
		return err
	}
	defer remove(scratch)
	if err := prepare(os.Getenv("BUILD_WORKSPACE_DIRECTORY")); err != nil {
		return err
	}

	stop := make(chan os.Signal, 1)
	signal.Notify(stop, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	cmd := exec.Command("/proc/self/exe", "-seed", seed)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	cmd.Env = append(os.Environ(), inside+"=1")
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:   syscall.CLONE_NEWPID | syscall.CLONE_NEWNET,
		Unshareflags: syscall.CLONE_NEWNS,
		Pdeathsig:    syscall.SIGKILL,
		Setpgid:      true,
	}
	runtime.LockOSThread() // Pdeathsig means the thread
	if err := cmd.Start(); err != nil {
		return &failure{fmt.Errorf("namespaces: %w", err), needsNamespaces}
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	select {
	case s := <-stop:
		cmd.Process.Kill()
		<-ended
		return fmt.Errorf("%v; everything is removed", s)
	case err := <-ended:
		var exit *exec.ExitError
		if errors.As(err, &exit) && exit.ExitCode() > 0 {
			remove(scratch)
			os.Exit(exit.ExitCode()) // it said why
		}
		return err
	}
}

// prepare makes both checkouts, and lets the go command bring while there is a network what Bazel's
// repository rules will ask it for.
func prepare(workspace string) error {
	list := exec.Command("git", "-c", "safe.directory=*", "-C", workspace, "ls-files", "-z", "--cached", "--others", "--exclude-standard")
	names, err := list.Output()
	if err != nil {
		return fmt.Errorf("git ls-files in %s: %w", workspace, err)
	}
	for _, h := range hosts {
		for _, name := range split(names, 0) {
			data, err := os.ReadFile(filepath.Join(workspace, name))
			if errors.Is(err, fs.ErrNotExist) {
				continue // deleted, not yet committed
			}
			if err != nil {
				return err
			}
			if err := write(filepath.Join(h.checkout, name), data); err != nil {
				return err
			}
		}
	}
	for _, name := range goFolders {
		out, err := exec.Command(goCommand(), "env", name).Output()
		if err != nil {
			return fmt.Errorf("go env %s: %w", name, err)
		}
		os.Setenv(name, strings.TrimSpace(string(out)))
	}
	// Copies: the go command notes checksums beside go.mod, and what bazelw provisioned is read-only.
	gazelle, rules := filepath.Join(scratch, "gazelle"), filepath.Join(scratch, "rules_go")
	for _, copied := range []string{gazelle, rules} {
		folder, err := moduleFolder(filepath.Base(copied))
		if err != nil {
			return err
		}
		if err := os.CopyFS(copied, os.DirFS(folder)); err != nil {
			return err
		}
	}
	for _, step := range []struct {
		folder string
		args   []string
	}{
		// Of what each of the three asks for, go_deps takes one version.
		{workspace, []string{"mod", "download"}},
		{gazelle, []string{"mod", "download"}},
		{rules, []string{"mod", "download"}},
		{gazelle, []string{"build", "-trimpath", "-buildvcs=false", "-ldflags=-s -w", "-o", filepath.Join(scratch, "bin") + "/",
			"github.com/bazel-contrib/bazel-gazelle/v2/cmd/gazelle",
			"github.com/bazelbuild/bazel-gazelle/cmd/fetch_repo",
			"github.com/bazelbuild/bazel-gazelle/cmd/generate_repo_config"}},
	} {
		cmd := exec.Command(goCommand(), step.args...)
		cmd.Dir = step.folder
		cmd.Env = append(os.Environ(), "GOTOOLCHAIN=local", "CGO_ENABLED=0", "GOFLAGS=")
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("go %s in %s: %w\n%s", step.args[0], step.folder, err, out)
		}
	}
	return nil
}

// goFolders are caches of the go command that both hosts share; they hold sources and tools of repository
// rules, no action's output.
var goFolders = []string{"GOMODCACHE", "GOCACHE", "GOPATH"}

func goCommand() string { return filepath.Join(os.Getenv("SELFSAME_GOROOT"), "bin", "go") }

// remove removes a folder whose parts Bazel made read-only.
func remove(dir string) error {
	filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() {
			return os.Chmod(path, 0o755)
		}
		return nil
	})
	return os.RemoveAll(dir)
}

func write(path string, data []byte) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return os.WriteFile(path, data, 0o644)
}

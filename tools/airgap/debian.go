package main

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sort"
	"strings"
	"syscall"
)

// The suite whose bazel-bootstrap package has the pinned release, and what is installed from it: git for
// the tests of clean checkouts, nginx and iproute2 for e2e/remote_cache.
const (
	suite    = "forky"
	packages = "bazel-bootstrap,bazel-rules-shell,bubblewrap,file,git,iproute2,nginx"
)

const neededBytes = 4 << 30

const installBazel = "or install Bazel or Bazelisk and put it on PATH, or name one in BAZEL"

func checkMachine(cache string) error {
	if os.Geteuid() != 0 {
		return &problem{errors.New("a Debian root can only be made as root"),
			"run once: sudo env SELFSAME_CACHE=/var/cache/selfsame ./bazelw info release, then set SELFSAME_CACHE to that folder; " + installBazel}
	}
	for tool, pkg := range map[string]string{"apt-get": "apt", "dpkg-deb": "dpkg", "perl": "perl"} {
		if _, err := exec.LookPath(tool); err != nil {
			return &problem{fmt.Errorf("%s is not on PATH", tool), "this needs a Debian machine with the package " + pkg + "; " + installBazel}
		}
	}
	var fs syscall.Statfs_t
	if err := syscall.Statfs(cache, &fs); err != nil {
		return err
	}
	if free := fs.Bavail * uint64(fs.Bsize); free < neededBytes {
		return fmt.Errorf("%s has %d MiB free, %d are needed: %w", cache, free>>20, neededBytes>>20, syscall.ENOSPC)
	}
	return nil
}

// goSDK returns the GOROOT of exactly the pinned release. The go command brings it
// from the module proxy, checked against the checksum database, where the host has another one.
func goSDK(version string) (string, error) {
	cmd := exec.Command("go", "env", "GOROOT")
	cmd.Env = append(os.Environ(), "GOTOOLCHAIN=go"+version)
	out, err := output(cmd)
	goroot := strings.TrimSpace(string(out))
	if err != nil {
		return "", &problem{err, "install Go " + version + " from go.dev/dl, or let the go command download it (GOPROXY)"}
	}
	stamp, err := os.ReadFile(filepath.Join(goroot, "VERSION"))
	if err != nil {
		return "", err
	}
	if have, _, _ := strings.Cut(string(stamp), "\n"); have != "go"+version {
		return "", &problem{fmt.Errorf("%s holds %s, want go%s", goroot, have, version), "install exactly Go " + version}
	}
	return goroot, nil
}

// debianRoot returns a folder with a Debian system that has Bazel in it, made with mmdebstrap.
// The mirror is the one of the host's own apt.
func debianRoot(cache, bazel string, lock *os.File) (string, error) {
	recipe := sha256.Sum256([]byte(suite + "\n" + packages + "\n" + bazel))
	root := filepath.Join(cache, fmt.Sprintf("debian-%x", recipe[:6]))
	return root, build(root, func(dir string) error {
		mirror, err := debianMirror()
		if err != nil {
			return err
		}
		tools := dir + "-tools" + unfinished
		if err := bootstrapTools(tools); err != nil {
			return err
		}
		cmd := exec.Command("perl", filepath.Join(tools, "usr/bin/mmdebstrap"), "--quiet",
			"--variant=apt", "--include="+packages,
			`--aptopt=APT::Install-Recommends "false"`,
			// The mirror may be a snapshot.
			`--aptopt=Acquire::Check-Valid-Until "false"`,
			// Through dpkg.cfg.d, as --dpkgopt would need Python for the first packages.
			// Without /usr/share/man the JDK's postinst fails, so it stays.
			`--setup-hook=mkdir -p "$1/etc/dpkg/dpkg.cfg.d" && printf 'path-exclude=/usr/share/%s/*\n' doc locale >"$1/etc/dpkg/dpkg.cfg.d/lean"`,
			suite, dir, mirror)
		cmd.Env = append(os.Environ(), "PATH="+filepath.Join(tools, "usr/bin")+":/usr/sbin:/usr/bin:/sbin:/bin:"+os.Getenv("PATH"))
		cmd.ExtraFiles = []*os.File{lock}
		cmd.SysProcAttr = dyingWithParent()
		if _, err := output(cmd); err != nil {
			return &problem{err, "check that apt's mirror (apt-get indextargets) is reachable and carries " + suite + "; " + installBazel}
		}
		if err := os.RemoveAll(tools); err != nil {
			return err
		}
		label, err := os.ReadFile(filepath.Join(dir, "usr/share/bazel/build-label.txt"))
		if err != nil {
			return err
		}
		if have := strings.TrimSpace(string(label)); !strings.HasPrefix(have, bazel) {
			return &problem{fmt.Errorf("Debian %s now has Bazel %s, want %s", suite, have, bazel), installBazel}
		}
		archives, err := filepath.Glob(filepath.Join(dir, "var/cache/apt/archives/*.deb"))
		for _, archive := range archives {
			err = errors.Join(err, os.Remove(archive))
		}
		return err
	})
}

// dyingWithParent makes a command the first process of a PID namespace: when this process dies,
// even by SIGKILL, the kernel ends the command and everything it started. What it mounts goes with it.
// The parent in question is the thread that starts it (prctl(2), PR_SET_PDEATHSIG).
func dyingWithParent() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{
		Cloneflags:   syscall.CLONE_NEWPID,
		Unshareflags: syscall.CLONE_NEWNS, // made private before exec
		Pdeathsig:    syscall.SIGKILL,
	}
}

// debianMirror returns the address from which the host's apt takes Debian itself (not its
// security archive).
func debianMirror() (string, error) {
	out, err := output(exec.Command("apt-get", "indextargets", "--format", "$(SUITE) $(REPO_URI)", "Created-By: Packages"))
	if err != nil {
		return "", err
	}
	var mirrors []string
	for _, line := range strings.Split(string(out), "\n") {
		name, uri, found := strings.Cut(line, " ")
		if found && !strings.Contains(name, "security") && !strings.Contains(uri, "security") {
			mirrors = append(mirrors, uri)
		}
	}
	if len(mirrors) == 0 {
		return "", &problem{errors.New("apt knows no Debian mirror"), "add one to /etc/apt/sources.list.d; " + installBazel}
	}
	sort.Strings(mirrors)
	return mirrors[0], nil
}

// bootstrapTools unpacks mmdebstrap without installing it; apt keeps its lists in dir too.
func bootstrapTools(dir string) error {
	for _, sub := range []string{"state/lists/partial", "cache/archives/partial"} {
		if err := os.MkdirAll(filepath.Join(dir, sub), 0o755); err != nil {
			return err
		}
	}
	options := []string{
		"-qq", "-o", "Dir::State=" + dir + "/state", "-o", "Dir::State::status=/var/lib/dpkg/status",
		"-o", "Dir::Cache=" + dir + "/cache", "-o", "APT::Sandbox::User=root",
		"-o", "Acquire::Languages=none", "-o", "Acquire::IndexTargets::deb::DEP-11::DefaultEnabled=false",
	}
	for _, args := range [][]string{{"update"}, {"download", "mmdebstrap"}} {
		cmd := exec.Command("apt-get", append(options[:len(options):len(options)], args...)...)
		cmd.Dir = dir
		if _, err := output(cmd); err != nil {
			return &problem{err, "check that apt reaches its mirror; " + installBazel}
		}
	}
	debs, err := filepath.Glob(filepath.Join(dir, "*.deb"))
	if err != nil || len(debs) != 1 {
		return fmt.Errorf("apt-get download mmdebstrap gave %d packages: %w", len(debs), err)
	}
	_, err = output(exec.Command("dpkg-deb", "-x", debs[0], dir))
	return err
}

// output runs cmd and returns its standard output; an error carries the end of what it
// wrote to standard error.
func output(cmd *exec.Cmd) ([]byte, error) {
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	out, err := cmd.Output()
	if err != nil {
		lines := strings.Split(strings.TrimSpace(stderr.String()), "\n")
		err = fmt.Errorf("%s: %w\n%s", filepath.Base(cmd.Path), err, strings.Join(lines[max(0, len(lines)-12):], "\n"))
	}
	return out, err
}

package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
)

// host is a machine: a network namespace with a link to the cache, a home, a user, a checkout.
type host struct {
	name, user     string
	net            int // third byte of its addresses; the cache is .1, the host .2
	home, checkout string
	pid            int // a process of its network namespace
}

var (
	hostA = &host{name: "A", user: "ada", net: 1, home: scratch + "/a/home", checkout: scratch + "/a/src"}
	hostB = &host{name: "B", user: "grace", net: 2, home: scratch + "/b/another-home-of-grace",
		checkout: scratch + "/b/a-longer-path/of-another-user/to-the-same-sources/checkout"}
	hosts = []*host{hostA, hostB}
)

func (h *host) cacheURL() string { return fmt.Sprintf("http://10.77.%d.1:%d/cache", h.net, port) }
func (h *host) link() string     { return "to-" + h.user }

// connect makes the namespaces and links of all hosts; this process is in that of the cache.
func connect() error {
	if err := syscall.Mount("proc", "/proc", "proc", syscall.MS_NOSUID|syscall.MS_NODEV|syscall.MS_NOEXEC, ""); err != nil {
		return fmt.Errorf("mount /proc: %w", err)
	}
	if err := ip("link", "set", "lo", "up"); err != nil {
		return err
	}
	for _, h := range hosts {
		holder := exec.Command("sleep", "infinity")
		holder.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET}
		if err := holder.Start(); err != nil {
			return err
		}
		h.pid = holder.Process.Pid
		peer := fmt.Sprint(h.pid)
		if err := ip("link", "add", h.link(), "type", "veth", "peer", "name", "eth0", "netns", peer); err != nil {
			return err
		}
		for _, args := range [][]string{
			{"addr", "add", fmt.Sprintf("10.77.%d.1/24", h.net), "dev", h.link()},
			{"link", "set", h.link(), "up"},
		} {
			if err := ip(args...); err != nil {
				return err
			}
		}
		for _, args := range [][]string{
			{"addr", "add", fmt.Sprintf("10.77.%d.2/24", h.net), "dev", "eth0"},
			{"link", "set", "eth0", "up"},
			{"link", "set", "lo", "up"}, // Bazel's client reaches its server there
		} {
			if out, err := h.command("ip", args...).CombinedOutput(); err != nil {
				return fmt.Errorf("%s: ip %v: %w: %s", h.name, args, err, out)
			}
		}
	}
	return nil
}

func ip(args ...string) error {
	if out, err := exec.Command("ip", args...).CombinedOutput(); err != nil {
		return &failure{fmt.Errorf("ip %s: %w: %s", strings.Join(args, " "), err, bytes.TrimSpace(out)), "this needs a kernel with virtual Ethernet pairs (veth)"}
	}
	return nil
}

// command is a command on the host.
func (h *host) command(name string, args ...string) *exec.Cmd {
	cmd := exec.Command("nsenter", append([]string{fmt.Sprintf("--net=/proc/%d/ns/net", h.pid), "--", name}, args...)...)
	cmd.Dir = h.checkout
	cmd.Env = []string{"PATH=/usr/sbin:/usr/bin:/sbin:/bin", "HOME=" + h.home, "USER=" + h.user, "LOGNAME=" + h.user}
	return cmd
}

// cut takes the cache's end of the host's link down; packets vanish from then on.
func (h *host) cut() error  { return ip("link", "set", h.link(), "down") }
func (h *host) mend() error { return ip("link", "set", h.link(), "up") }

// moduleFolder returns where the provisioned rc file lays a Bazel module.
func moduleFolder(name string) (string, error) {
	data, err := os.ReadFile(os.Getenv("SELFSAME_BAZELRC"))
	if err != nil {
		return "", err
	}
	for _, line := range strings.Split(string(data), "\n") {
		if path, found := strings.CutPrefix(line, "common --override_module="+name+"="); found {
			return filepath.Clean(path), nil
		}
	}
	return "", fmt.Errorf("%s names no module %s", os.Getenv("SELFSAME_BAZELRC"), name)
}

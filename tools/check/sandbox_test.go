//go:build bazel

package check

import (
	"net"
	"os"
	"os/user"
	"path/filepath"
	"testing"
	"time"
)

// TestSandbox shows from the inside that the strategy that runs is linux-sandbox with the settings
// of .bazelrc. Outside of it (run the test binary by hand) every part of it fails.
func TestSandbox(t *testing.T) {
	t.Run("own network namespace without a way out", func(t *testing.T) {
		interfaces, err := net.Interfaces()
		if err != nil {
			t.Fatal(err)
		}
		for _, i := range interfaces {
			if i.Flags&net.FlagLoopback == 0 && i.Flags&net.FlagUp != 0 {
				t.Errorf("interface %s is up", i.Name)
			}
		}
		// 192.0.2.1 is TEST-NET-1 (RFC 5737): nothing is sent where there is no route.
		conn, err := net.DialTimeout("udp", "192.0.2.1:9", time.Second)
		if err == nil {
			conn.Close()
			t.Error("there is a route to the outside")
		}
	})
	t.Run("no write outside", func(t *testing.T) {
		for _, dir := range []string{"/", "/usr", "/etc", "/var/tmp"} {
			path := filepath.Join(dir, "selfsame-sandbox-probe")
			if err := os.WriteFile(path, nil, 0o600); err == nil {
				os.Remove(path)
				t.Errorf("%s can be written", dir)
			}
		}
		source, err := filepath.EvalSymlinks(runfile(t, "SELFSAME_CHECKOUT"))
		if err != nil {
			t.Fatal(err)
		}
		if file, err := os.OpenFile(source, os.O_WRONLY, 0); err == nil {
			file.Close()
			t.Errorf("the checkout's %s can be written", source)
		}
		if err := os.WriteFile(filepath.Join(t.TempDir(), "probe"), nil, 0o600); err != nil {
			t.Errorf("control: the test's own folder cannot be written: %v", err)
		}
	})
	t.Run("fake host name and user", func(t *testing.T) {
		if name, err := os.Hostname(); err != nil || name != "localhost" {
			t.Errorf("host name %q, %v", name, err)
		}
		if u, err := user.Current(); err != nil || u.Username != "nobody" {
			t.Errorf("user %v, %v", u, err)
		}
	})
	t.Run("own process namespace", func(t *testing.T) {
		if name, err := os.ReadFile("/proc/1/comm"); err != nil || string(name) != "linux-sandbox\n" {
			t.Errorf("process 1 is %q, %v", name, err)
		}
	})
}

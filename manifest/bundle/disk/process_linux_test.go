package disk_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"selfsame.dev/selfsame/internal/tree"
	"selfsame.dev/selfsame/manifest/bundle"
	"selfsame.dev/selfsame/manifest/bundle/disk"
)

// envTarget makes the test binary extract standard input.
const envTarget = "SELFSAME_TEST_EXTRACT"

func TestMain(m *testing.M) {
	if target := os.Getenv(envTarget); target != "" {
		if _, err := disk.Extract(os.Stdin, bundle.DefaultLimits, target, nil); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(3)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// A killed extract shows nothing at the target, and the next one removes what it left; one that is alive is let alone.
func TestKilled(t *testing.T) {
	data, s := create(t, folder(t, sample), tree.Selection{})
	target := filepath.Join(t.TempDir(), "out")
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = append(os.Environ(), envTarget+"="+target)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	plain := plainOf(t, data)
	if _, err := in.Write(plain[:len(plain)-10]); err != nil {
		t.Fatal(err)
	}
	siblings := func() []string {
		list, err := filepath.Glob(filepath.Join(filepath.Dir(target), ".out.selfsame-extract-*", "a"))
		if err != nil {
			t.Fatal(err)
		}
		return list
	}
	for deadline := time.Now().Add(10 * time.Second); len(siblings()) == 0; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			cmd.Process.Kill()
			t.Fatal("the child extracts nothing")
		}
	}
	if _, err := extract(data, target); err != nil {
		t.Errorf("beside a living one: %v", err)
	}
	if len(siblings()) != 1 {
		t.Error("the folder of a living extract is gone")
	}
	if err := os.RemoveAll(target); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	cmd.Wait()
	if _, err := os.Lstat(target); err == nil || len(siblings()) != 1 {
		t.Errorf("target: %v, siblings %v", err, siblings())
	}
	if got, err := extract(data, target); err != nil || got != s {
		t.Errorf("%+v, %v", got, err)
	}
	if list := names(t, filepath.Dir(target)); len(list) != 1 {
		t.Errorf("left %v", list)
	}
}

func plainOf(t *testing.T, data []byte) []byte {
	t.Helper()
	target := filepath.Join(t.TempDir(), "plain")
	if _, err := extract(data, target); err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	if _, err := disk.Create(&out, target, tree.Selection{}); err != nil {
		t.Fatal(err)
	}
	return []byte(out.String())
}

// Root writes everywhere, so as root this test runs itself again in a process that has
// lost the capability for that.
func TestReadOnlyParent(t *testing.T) {
	const child = "SELFSAME_TEST_WITHOUT_CAPABILITIES"
	parent := t.TempDir()
	if err := os.Chmod(parent, 0o555); err != nil {
		t.Fatal(err)
	}
	defer os.Chmod(parent, 0o755)
	if err := os.Mkdir(filepath.Join(parent, "probe"), 0o755); err == nil {
		if os.Getenv(child) != "" {
			t.Fatal("the child still writes everywhere")
		}
		done := make(chan error)
		var out []byte
		go func() {
			runtime.LockOSThread() // and never unlocked: the thread ends with its bounding set
			err := unix.Prctl(unix.PR_CAPBSET_DROP, unix.CAP_DAC_OVERRIDE, 0, 0, 0)
			if err == nil {
				cmd := exec.Command("/proc/self/exe", "-test.run=^"+t.Name()+"$", "-test.v")
				cmd.Env = append(os.Environ(), child+"=1")
				out, err = cmd.CombinedOutput()
			}
			done <- err
		}()
		if err := <-done; err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		return
	}
	data, _ := create(t, folder(t, sample), tree.Selection{})
	if _, err := extract(data, filepath.Join(parent, "out")); !errors.Is(err, os.ErrPermission) {
		t.Errorf("%v", err)
	}
	if list := names(t, parent); len(list) > 0 {
		t.Errorf("left %v", list)
	}
	if err := os.Chmod(parent, 0o755); err != nil {
		t.Fatal(err)
	}
	if _, err := extract(data, filepath.Join(parent, "out")); err != nil {
		t.Errorf("control: %v", err)
	}
}

package disk

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"runtime"
	"testing"

	"golang.org/x/sys/unix"

	"selfsame.dev/selfsame/internal/tree"
)

// Root reads everything, so as root this test runs itself again in a process that has
// lost the capabilities for that.
func TestHashRefusesUnreadable(t *testing.T) {
	root := build(t, t.TempDir(), spec{"a": "1", "d/b": "2", "x/c": "3", "ok": "4"})
	for _, path := range []string{"a", "d"} {
		if err := os.Chmod(root+"/"+path, 0); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { os.Chmod(root+"/"+path, 0o700) })
	}
	const child = "SELFSAME_TEST_WITHOUT_CAPABILITIES"
	if _, err := os.ReadFile(root + "/a"); err == nil {
		if os.Getenv(child) != "" {
			t.Fatal("the child still reads everything")
		}
		done := make(chan error)
		var out []byte
		go func() {
			runtime.LockOSThread() // and never unlocked: the thread ends with its bounding set
			err := errors.Join(
				unix.Prctl(unix.PR_CAPBSET_DROP, unix.CAP_DAC_OVERRIDE, 0, 0, 0),
				unix.Prctl(unix.PR_CAPBSET_DROP, unix.CAP_DAC_READ_SEARCH, 0, 0, 0))
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
	_, err := hashAll(t, root, Options{})
	wantRefusals(t, err, "a: cannot be read: permission denied", "d: cannot be read: permission denied")
	if _, err := hashAll(t, root, Options{Selection: tree.Selection{Exclude: []string{"a", "d/**"}}}); err != nil {
		t.Errorf("control: without the two it is readable: %v", err)
	}
	if err := os.Chmod(root, 0); err != nil {
		t.Fatal(err)
	}
	defer os.Chmod(root, 0o700)
	_, err = hashAll(t, root, Options{})
	wantRefusals(t, err, ".: cannot be read: permission denied")
	if errors.Is(err, fs.ErrPermission) {
		t.Error("a refusal is no failure of the system")
	}
}

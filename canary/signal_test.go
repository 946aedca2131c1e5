//go:build linux

package canary

import (
	"bufio"
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// points are all the places in which a run can be hit.
var points = []string{
	"pinning/0", "manifest_pinned/0",
	"compiling/1", "profile_compiled/1", "verifying/1", "runtime_verified/1", "running/1", "stopped_cleanly/1",
	"compiling/2", "profile_compiled/2", "verifying/2", "runtime_verified/2", "running/2", "stopped_cleanly/2",
	"restart_reproduced/2", "drift_detected/1", "drift_detected/2",
}

// SIGINT, SIGTERM and SIGKILL at the parent, at every point: no process, no folder, no
// half receipt; and for the two that can be caught a receipt that says why.
func TestSignalsAtParent(t *testing.T) {
	for _, sig := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGKILL} {
		for _, point := range points {
			t.Run(sig.String()+" "+point, func(t *testing.T) {
				t.Parallel()
				hit(t, sig, point, "answer")
			})
		}
		// While a child runs that hid a process.
		t.Run(sig.String()+" hidden", func(t *testing.T) {
			t.Parallel()
			pid := filepath.Join(t.TempDir(), "pid")
			hit(t, sig, "running/1", "hide-and-hang", pid)
		})
	}
}

func hit(t *testing.T, sig syscall.Signal, point string, deed ...string) {
	temp, output := t.TempDir(), filepath.Join(t.TempDir(), "receipt.json")
	cmd := exec.Command("/proc/self/exe", append([]string{"parent", point, temp, output}, deed...)...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(out).ReadString('\n'); err != nil || line != "here\n" {
		cmd.Wait()
		t.Fatalf("%q, %v, %s", line, err, stderr.String())
	}
	hidden := 0
	if len(deed) > 1 {
		wait(func() []string {
			data, _ := os.ReadFile(deed[1])
			if hidden, _ = strconv.Atoi(string(data)); hidden == 0 {
				return []string{"not yet"}
			}
			return nil
		})
		if syscall.Kill(hidden, 0) != nil {
			t.Fatal("control: nothing is hidden")
		}
	}
	if point != "pinning/0" && len(named(temp)) == 0 {
		t.Error("control: no guardian is seen")
	}
	cmd.Process.Signal(sig)
	err = cmd.Wait()
	nothingLeft(t, temp)
	if hidden != 0 && syscall.Kill(hidden, 0) == nil {
		t.Errorf("process %d is left", hidden)
	}
	if entries, _ := os.ReadDir(filepath.Dir(output)); len(entries) > 1 {
		t.Errorf("beside the receipt: %v", entries)
	}

	data, readErr := os.ReadFile(output)
	if sig == syscall.SIGKILL {
		if readErr == nil {
			t.Error("a killed run wrote a receipt")
		}
		return
	}
	r, verifyErr := DecodeReceipt("receipt.json", data)
	if verifyErr != nil {
		t.Fatalf("%v (%v, %s)", verifyErr, err, stderr.String())
	}
	outcome, status := Interrupted, 4
	if strings.HasPrefix(point, "restart_reproduced") {
		outcome, status = Reproduced, 0
	}
	if strings.HasPrefix(point, "drift_detected") {
		outcome, status = Drifted, 1
	}
	if r.Outcome != outcome || cmd.ProcessState.ExitCode() != status {
		t.Errorf("%s (%s), status %d; want %s, %d", r.Outcome, r.Reason, cmd.ProcessState.ExitCode(), outcome, status)
	}
}

// SIGKILL at the guardian, at every point: the parent cleans up and says so.
func TestGuardianKilled(t *testing.T) {
	for _, point := range points {
		t.Run(point, func(t *testing.T) {
			t.Parallel()
			temp, output := t.TempDir(), filepath.Join(t.TempDir(), "receipt.json")
			cmd := exec.Command("/proc/self/exe", "parent", point, temp, output, "answer")
			out, err := cmd.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			bufio.NewReader(out).ReadString('\n')
			for _, proc := range wait4(func() []string { return named(filepath.Join(temp, "selfsame-canary-")) }) {
				if strings.HasSuffix(proc, "/cmdline") {
					pid, _ := strconv.Atoi(strings.Split(proc, "/")[2])
					syscall.Kill(pid, syscall.SIGKILL)
				}
			}
			cmd.Process.Signal(syscall.SIGTERM)
			cmd.Wait()
			nothingLeft(t, temp)
			data, err := os.ReadFile(output)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := DecodeReceipt("receipt.json", data); err != nil {
				t.Error(err)
			}
		})
	}
}

func wait4(find func() []string) (found []string) {
	for range 1000 {
		if found = find(); len(found) > 0 {
			return found
		}
		time.Sleep(time.Millisecond)
	}
	return nil
}

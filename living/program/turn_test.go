package program

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

const childEnv = "LIVING_PROGRAM_CHILD"

func TestMain(m *testing.M) {
	switch what := os.Getenv(childEnv); what {
	case "":
		os.Exit(m.Run())
	case "echo":
		io.Copy(os.Stdout, os.Stdin)
	case "fail":
		fmt.Print("half a rep")
		fmt.Fprintln(os.Stderr, "no model is reachable")
		os.Exit(7)
	case "flood":
		for {
			if _, err := os.Stdout.Write(bytes.Repeat([]byte("x"), 1<<16)); err != nil {
				return
			}
		}
	case "hang":
		time.Sleep(time.Hour)
	case "leave": // a grandchild that holds the pipe and lives on
		self, _ := os.Executable()
		cmd := exec.Command(self)
		cmd.Env = append(os.Environ(), childEnv+"=hang")
		cmd.Stdout = os.Stdout
		if err := cmd.Start(); err != nil {
			os.Exit(9)
		}
		fmt.Print(cmd.Process.Pid)
	}
}

func turn(t *testing.T, what string) *Turn {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv(childEnv, what)
	return &Turn{Args: []string{self}, Timeout: 20 * time.Second, Limit: 1 << 20, Stderr: io.Discard}
}

func TestRun(t *testing.T) {
	seed := bytes.Repeat([]byte(`{"seed":1}`), 50000)
	got, err := turn(t, "echo").Run(t.Context(), seed)
	if err != nil || !bytes.Equal(got, seed) {
		t.Fatalf("%d bytes, %v", len(got), err)
	}
}

func TestRunFails(t *testing.T) {
	failing := turn(t, "fail")
	var stderr strings.Builder
	failing.Stderr = &stderr
	var exit *exec.ExitError
	if got, err := failing.Run(t.Context(), nil); !errors.As(err, &exit) || exit.ExitCode() != 7 || got != nil {
		t.Errorf("%q, %v: half a report is no report", got, err)
	}
	if !strings.Contains(stderr.String(), "no model") {
		t.Errorf("standard error %q", stderr.String())
	}
	if _, err := (&Turn{Args: []string{"/nonexistent/program"}, Timeout: time.Second}).Run(t.Context(), nil); err == nil {
		t.Error("a program that is not there ran")
	}
}

func TestRunIsBounded(t *testing.T) {
	hang := turn(t, "hang")
	hang.Timeout = 200 * time.Millisecond
	if _, err := hang.Run(t.Context(), nil); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%v, want a deadline", err)
	}
	flood := turn(t, "flood")
	flood.Limit, flood.Timeout = 1000, 500*time.Millisecond
	if got, err := flood.Run(t.Context(), nil); err == nil || len(got) > 1001 {
		t.Errorf("%d bytes, %v", len(got), err)
	}
}

// What a turn leaves behind in its process group is gone when it ends.
func TestRunLeavesNothing(t *testing.T) {
	got, err := turn(t, "leave").Run(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(string(got))
	if err != nil {
		t.Fatal(err)
	}
	for range 100 {
		if err := unix.Kill(pid, 0); errors.Is(err, unix.ESRCH) {
			return
		}
		if zombie(pid) {
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
	t.Errorf("process %d is still there", pid)
}

// zombie reports whether a process has ended and only waits to be collected.
func zombie(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return false
	}
	_, rest, _ := strings.Cut(string(stat), ") ")
	return strings.HasPrefix(rest, "Z")
}

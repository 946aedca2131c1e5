package bounded_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"selfsame.dev/selfsame/rpi/bounded"
)

var roomy = bounded.Limits{Time: 20 * time.Second, Output: 1 << 20}

func shell(t *testing.T, script string, limits bounded.Limits) bounded.Result {
	t.Helper()
	result, err := bounded.Run(context.Background(), bounded.Command{Argv: []string{"/bin/sh", "-c", script}, Stdin: []byte("in")}, limits)
	if err != nil {
		t.Fatal(err)
	}
	return result
}

func TestRunReportsHowItEnded(t *testing.T) {
	r := shell(t, `cat; echo out; echo err >&2; exit 3`, roomy)
	if r.Exit != 3 || string(r.Stdout) != "inout\n" || string(r.Stderr) != "err\n" || r.TimedOut || r.Overflow || r.Signal != "" {
		t.Errorf("%+v", r)
	}
	if r := shell(t, `kill -9 $$`, roomy); r.Exit != -1 || r.Signal != "killed" {
		t.Errorf("%+v", r)
	}
	if r := shell(t, `exec <&-; exit 0`, roomy); r.Exit != 0 {
		t.Errorf("a program that does not read its input: %+v", r)
	}
}

func TestBounds(t *testing.T) {
	start := time.Now()
	r := shell(t, `echo first; sleep 60`, bounded.Limits{Time: 300 * time.Millisecond, Output: 100})
	if !r.TimedOut || string(r.Stdout) != "first\n" || r.Signal != "killed" {
		t.Errorf("%+v", r)
	}
	r = shell(t, `while :; do echo 0123456789; done`, bounded.Limits{Time: 20 * time.Second, Output: 1000})
	if !r.Overflow || r.TimedOut || len(r.Stdout) != 1000 {
		t.Errorf("overflow %v, timed out %v, %d bytes", r.Overflow, r.TimedOut, len(r.Stdout))
	}
	r = shell(t, `printf 0123456789`, bounded.Limits{Time: 20 * time.Second, Output: 10})
	if r.Overflow || len(r.Stdout) != 10 {
		t.Errorf("control: output of exactly the bound: %+v", r)
	}
	if took := time.Since(start); took > 15*time.Second {
		t.Errorf("took %v", took)
	}
	for _, bad := range []bounded.Limits{{}, {Time: time.Second}, {Output: 1}, {Time: -1, Output: 1}} {
		if _, err := bounded.Run(context.Background(), bounded.Command{Argv: []string{"/bin/true"}}, bad); err == nil {
			t.Errorf("%+v is accepted", bad)
		}
	}
}

// Whatever stays behind in the group is killed: after an ordinary end and after a timeout.
func TestGroupIsReaped(t *testing.T) {
	for name, end := range map[string]string{"end": "exit 0", "timeout": "sleep 60"} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "pid")
			shell(t, `(sleep 60 & echo $! >"`+file+`.part"; mv "`+file+`.part" "`+file+`"; wait) & while ! test -e "`+file+`"; do sleep 0.02; done; `+end,
				bounded.Limits{Time: 1500 * time.Millisecond, Output: 100})
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			pid, err := strconv.Atoi(strings.TrimSpace(string(data)))
			if err != nil {
				t.Fatal(err)
			}
			for range 100 {
				if !alive(pid) {
					return
				}
				time.Sleep(20 * time.Millisecond)
			}
			t.Errorf("process %d still runs", pid)
		})
	}
	if !alive(os.Getpid()) {
		t.Error("control: this process is not seen")
	}
}

// alive reports whether a process runs; one that only waits to be reaped does not.
func alive(pid int) bool {
	if syscall.Kill(pid, 0) != nil {
		return false
	}
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return !errors.Is(err, os.ErrNotExist)
	}
	_, after, _ := strings.Cut(string(stat), ") ")
	return !strings.HasPrefix(after, "Z")
}

func TestCancel(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	time.AfterFunc(200*time.Millisecond, cancel)
	start := time.Now()
	_, err := bounded.Run(ctx, bounded.Command{Argv: []string{"/bin/sleep", "60"}}, roomy)
	if !errors.Is(err, context.Canceled) || time.Since(start) > 10*time.Second {
		t.Errorf("%v after %v", err, time.Since(start))
	}
	if _, err := bounded.Run(ctx, bounded.Command{Argv: []string{"/bin/true"}}, roomy); !errors.Is(err, context.Canceled) {
		t.Errorf("a run under a finished context: %v", err)
	}
	if _, err := bounded.Run(context.Background(), bounded.Command{Argv: []string{"/no/such/program"}}, roomy); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a missing program: %v", err)
	}
}

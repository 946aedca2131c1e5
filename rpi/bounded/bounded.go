// Package bounded runs one program under bounds of time and output, in a process group of
// its own of which nothing is left.
package bounded

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"sync"
	"syscall"
	"time"
)

// Limits bound a run. Both must be positive.
type Limits struct {
	Time time.Duration
	// Output is the most bytes taken of standard output and standard error together.
	Output int64
}

// Command is what to run: an exact argv, without a shell.
type Command struct {
	Argv  []string
	Dir   string
	Env   []string
	Stdin []byte
	// Extra is file descriptor 3, where it is set.
	Extra *os.File
}

// Result is how a run ended. What was written before a bound was passed is kept.
type Result struct {
	// Exit is the exit status, -1 where a signal ended the program.
	Exit     int
	Signal   string
	TimedOut bool
	Overflow bool
	Stdout   []byte
	Stderr   []byte
}

// settle is how long descendants that left the group may hold the pipes after the end.
const settle = 200 * time.Millisecond

// Run runs the command and waits for its end. When the program ends, a bound is passed or ctx is
// done, the whole group is killed. The error is one of starting, or that of ctx.
func Run(ctx context.Context, c Command, limits Limits) (Result, error) {
	if limits.Time <= 0 || limits.Output <= 0 {
		return Result{}, errors.New("bounds of time and output must be positive")
	}
	if len(c.Argv) == 0 {
		return Result{}, errors.New("there is no program to run")
	}
	if err := ctx.Err(); err != nil {
		return Result{}, err
	}
	// The death signal of the child is bound to the thread that started it.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()

	cmd := exec.Command(c.Argv[0], c.Argv[1:]...)
	cmd.Dir, cmd.Env = c.Dir, c.Env
	cmd.Stdin = bytes.NewReader(c.Stdin)
	if c.Extra != nil {
		cmd.ExtraFiles = []*os.File{c.Extra}
	}
	cmd.WaitDelay = settle
	cmd.SysProcAttr = attributes()
	var result Result
	out, err := newCapture(limits.Output, cmd)
	if err != nil {
		return Result{}, err
	}
	if err := cmd.Start(); err != nil {
		out.abandon()
		return Result{}, err
	}
	group := cmd.Process.Pid
	ended := make(chan struct{})
	watcher := sync.WaitGroup{}
	watcher.Go(func() {
		timer := time.NewTimer(limits.Time)
		defer timer.Stop()
		select {
		case <-ended:
			return
		case <-timer.C:
			result.TimedOut = true
		case <-out.full:
			result.Overflow = true
		case <-ctx.Done():
		}
		_ = syscall.Kill(-group, syscall.SIGKILL)
	})
	out.start()
	err = reap(cmd, func() {
		_ = syscall.Kill(-group, syscall.SIGKILL)
		close(ended)
		watcher.Wait()
	})
	result.Stdout, result.Stderr = out.finish()
	result.Overflow = result.Overflow || out.overflowed()
	if ctx.Err() != nil {
		return result, ctx.Err()
	}
	var failed *exec.ExitError
	if err != nil && !errors.As(err, &failed) && !errors.Is(err, exec.ErrWaitDelay) && !errors.Is(err, syscall.EPIPE) {
		return result, err
	}
	status, ok := cmd.ProcessState.Sys().(syscall.WaitStatus)
	if !ok {
		return result, fmt.Errorf("no exit status of %s", c.Argv[0])
	}
	result.Exit = status.ExitStatus()
	if status.Signaled() {
		result.Signal = status.Signal().String()
	}
	return result, nil
}

// capture takes the output of both pipes up to one common bound.
type capture struct {
	full    chan struct{}
	readers sync.WaitGroup
	reads   [2]*os.File
	writes  [2]*os.File

	mu   sync.Mutex
	left int64
	over bool
	data [2][]byte
}

func newCapture(limit int64, cmd *exec.Cmd) (*capture, error) {
	c := &capture{full: make(chan struct{}), left: limit}
	for i := range c.reads {
		r, w, err := os.Pipe()
		if err != nil {
			c.abandon()
			return nil, err
		}
		c.reads[i], c.writes[i] = r, w
	}
	cmd.Stdout, cmd.Stderr = c.writes[0], c.writes[1]
	return c, nil
}

func (c *capture) abandon() {
	for i := range c.reads {
		c.reads[i].Close()
		c.writes[i].Close()
	}
}

func (c *capture) start() {
	for i := range c.reads {
		c.writes[i].Close()
		c.readers.Go(func() {
			buffer := make([]byte, 32<<10)
			for {
				n, err := c.reads[i].Read(buffer)
				if n > 0 && !c.take(i, buffer[:n]) || err != nil {
					return
				}
			}
		})
	}
}

// take keeps what the bound allows and reports whether there was room for all of it.
func (c *capture) take(i int, data []byte) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := min(int64(len(data)), c.left)
	c.data[i] = append(c.data[i], data[:n]...)
	c.left -= n
	if n == int64(len(data)) {
		return true
	}
	if !c.over {
		c.over = true
		close(c.full)
	}
	return false
}

// finish waits for the readers, for at most settle.
func (c *capture) finish() (stdout, stderr []byte) {
	deadline := time.Now().Add(settle)
	for i := range c.reads {
		_ = c.reads[i].SetReadDeadline(deadline)
	}
	c.readers.Wait()
	for i := range c.reads {
		c.reads[i].Close()
	}
	return c.data[0], c.data[1]
}

func (c *capture) overflowed() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.over
}

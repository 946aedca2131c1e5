// Package program runs a turn as a program: the seed on its standard input, its report
// on its standard output.
package program

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"time"

	"golang.org/x/sys/unix"
)

// Turn implements living.Turn with a child process. The child leads a process group of
// its own, which is killed when the turn ends, so that nothing of it is left running.
type Turn struct {
	Args    []string // program and arguments
	Timeout time.Duration
	Limit   int64     // bytes of report; one more is read, so that the kernel refuses it
	Stderr  io.Writer // where the child's standard error goes
}

// Run implements living.Turn.
func (t *Turn) Run(ctx context.Context, seed []byte) ([]byte, error) {
	if len(t.Args) == 0 {
		return nil, errors.New("no program is named")
	}
	ctx, stop := context.WithTimeout(ctx, t.Timeout)
	defer stop()
	cmd := exec.CommandContext(ctx, t.Args[0], t.Args[1:]...)
	cmd.Stdin = bytes.NewReader(seed)
	cmd.Stderr = t.Stderr
	cmd.SysProcAttr = &unix.SysProcAttr{Setpgid: true}
	group := func() error { return unix.Kill(-cmd.Process.Pid, unix.SIGKILL) }
	cmd.Cancel = group
	cmd.WaitDelay = time.Second // a grandchild may hold the pipe
	report := &limited{room: t.Limit + 1}
	cmd.Stdout = report
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	err := cmd.Wait()
	if errors.Is(err, exec.ErrWaitDelay) {
		err = nil // the program ended well; what it left running held the pipe
	}
	if killed := group(); killed != nil && !errors.Is(killed, unix.ESRCH) {
		err = errors.Join(err, killed)
	}
	switch {
	case ctx.Err() != nil:
		return nil, fmt.Errorf("%s: %w", t.Args[0], ctx.Err())
	case err != nil && report.room > 0:
		return nil, fmt.Errorf("%s: %w", t.Args[0], err)
	}
	return report.data, nil
}

// limited keeps the first bytes and drops the rest.
type limited struct {
	data []byte
	room int64
}

func (l *limited) Write(p []byte) (int, error) {
	keep := p[:min(int64(len(p)), l.room)]
	l.data = append(l.data, keep...)
	l.room -= int64(len(keep))
	return len(p), nil
}

package child

import (
	"fmt"
	"os"
	"strings"
	"syscall"
	"time"
	"unicode"

	"golang.org/x/sys/unix"

	"selfsame.dev/selfsame/internal/canon"
)

// run starts one child, waits for it, and returns when nothing of it lives.
func (g *guardian) run(spec Spec) Result {
	pipes, err := newStreams(spec.Limits)
	if err != nil {
		return Result{Problem: NotStarted, Detail: err.Error()}
	}
	defer pipes.close()
	proc, err := os.StartProcess(spec.Program, append([]string{spec.Program}, spec.Args...), &os.ProcAttr{
		Dir:   spec.Dir,
		Env:   spec.Env,
		Files: []*os.File{pipes.in.r, pipes.out.w, pipes.err.w},
		Sys:   &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGKILL},
	})
	pipes.closeChildEnds()
	if err != nil {
		return Result{Problem: NotStarted, Detail: err.Error()}
	}
	// Read before the wait: until then the number cannot be another's.
	begun, ok := readStat(proc.Pid)
	if !ok {
		begun.PID = proc.Pid
	}
	g.say(report{Started: &begun.Process})
	pipes.start(spec.Stdin)

	result := Result{Process: begun.Process}
	exited := make(chan *os.ProcessState, 1)
	go func() {
		state, _ := proc.Wait()
		exited <- state
	}()
	var state *os.ProcessState
	result.Problem, state = g.watch(spec.Limits, pipes, exited)
	if state == nil { // it runs on
		if polite(result.Problem) {
			_ = proc.Signal(unix.SIGTERM)
			select {
			case state = <-exited:
			case <-time.After(spec.Limits.Grace):
			}
		}
		if state == nil {
			_ = proc.Kill()
			state = <-exited
		}
	}
	result.Exit, result.Problem = outcome(state, result.Problem)

	if sweeping {
		grace := spec.Limits.Grace
		if result.Problem != "" {
			grace = 0
		}
		result.Sweep, err = sweep(searchAll, grace)
		switch {
		case err != nil:
			result.Problem, result.Detail = NotKilled, err.Error()
		case result.Sweep.Killed > 0 && result.Problem == "":
			result.Problem = LeftProcesses
			result.Detail = fmt.Sprintf("%d processes outlived the child", result.Sweep.Killed)
		}
	}
	out, flood := pipes.out.end()
	errOut, errFlood := pipes.err.end()
	if result.Problem == "" && flood {
		result.Problem = StdoutFlood
	}
	if result.Problem == "" && errFlood {
		result.Problem = StderrFlood
	}
	result.Stdout = out
	result.Stderr = StderrRecord{Bytes: len(errOut), SHA256: canon.Sum(errOut), Tail: tail(errOut)}
	return result
}

// abandoned is the problem of a child whose caller is gone; nobody reads it.
const abandoned Problem = "abandoned"

// polite reports whether there is time for SIGTERM before SIGKILL.
func polite(p Problem) bool { return p == TimedOut || p == Lingered || p == Stopped }

// watch returns the exit, or nil and the first problem.
func (g *guardian) watch(limits Limits, pipes *streams, exited <-chan *os.ProcessState) (Problem, *os.ProcessState) {
	timeout := time.After(limits.Timeout)
	outEnd, orders := pipes.out.done, g.orders
	var linger <-chan time.Time
	for {
		select {
		case state := <-exited:
			return "", state
		case <-outEnd:
			outEnd, linger = nil, time.After(limits.Grace)
		case <-pipes.out.full:
			return StdoutFlood, nil
		case <-pipes.err.full:
			return StderrFlood, nil
		case <-linger:
			return Lingered, nil
		case <-timeout:
			return TimedOut, nil
		case o, open := <-orders:
			if !open {
				return abandoned, nil
			}
			if o.Stop {
				return Stopped, nil
			}
		}
	}
}

func outcome(state *os.ProcessState, problem Problem) (Exit, Problem) {
	if state == nil {
		return Exit{Code: -1}, NotKilled
	}
	exit := Exit{Code: state.ExitCode()}
	if status, ok := state.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		exit = Exit{Code: 128 + int(status.Signal()), Signal: unix.SignalName(status.Signal())}
	}
	if exit.Code != 0 && problem == "" {
		problem = BadExit
	}
	return exit, problem
}

type pipe struct{ r, w *os.File }

// collector reads a stream up to its limit.
type collector struct {
	pipe
	limit int
	data  []byte
	done  chan struct{} // closed at the end of the stream
	full  chan struct{} // closed at the first byte too many
}

func (c *collector) collect() {
	defer close(c.done)
	buf := make([]byte, 32<<10)
	for {
		n, err := c.r.Read(buf)
		if room := c.limit - len(c.data); n > room {
			c.data = append(c.data, buf[:room]...)
			close(c.full)
			return
		}
		c.data = append(c.data, buf[:n]...)
		if err != nil {
			return
		}
	}
}

// end returns what was read. Every writer is dead by now, unless the write end was
// handed to a stranger, for whom nobody waits.
func (c *collector) end() (data []byte, flood bool) {
	_ = c.r.SetReadDeadline(time.Now().Add(time.Second))
	<-c.done
	select {
	case <-c.full:
		flood = true
	default:
	}
	return c.data, flood
}

type streams struct {
	in       pipe
	out, err *collector
}

func newStreams(limits Limits) (s *streams, err error) {
	s = &streams{}
	collect := func(limit int) *collector {
		c := &collector{limit: limit, done: make(chan struct{}), full: make(chan struct{})}
		if err == nil {
			c.r, c.w, err = os.Pipe()
		}
		return c
	}
	s.in.r, s.in.w, err = os.Pipe()
	s.out, s.err = collect(limits.Stdout), collect(limits.Stderr)
	if err != nil {
		s.close()
		return nil, err
	}
	return s, nil
}

func (s *streams) closeChildEnds() {
	s.in.r.Close()
	s.out.w.Close()
	s.err.w.Close()
}

// start feeds the query, and nothing after it, and collects the answer.
func (s *streams) start(stdin []byte) {
	go func() {
		_, _ = s.in.w.Write(stdin) // a child may answer without reading
		s.in.w.Close()
	}()
	go s.out.collect()
	go s.err.collect()
}

func (s *streams) close() {
	for _, f := range []*os.File{s.in.r, s.in.w, s.out.r, s.out.w, s.err.r, s.err.w} {
		if f != nil {
			f.Close()
		}
	}
}

// tail returns the last line or so, without control characters.
func tail(data []byte) string {
	const most = 300
	data = data[max(0, len(data)-most):]
	return strings.TrimSpace(strings.Map(func(r rune) rune {
		if r == '\n' || unicode.IsPrint(r) {
			return r
		}
		return '?'
	}, strings.ToValidUTF8(string(data), "?")))
}

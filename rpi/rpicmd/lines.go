// Package rpicmd runs the law over streams and programs for the command line: JSON lines in,
// JSON lines out, and phases that are programs.
package rpicmd

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"runtime"
	"strings"

	"selfsame.dev/selfsame/internal/canon"
	"selfsame.dev/selfsame/rpi"
)

// MaxLine bounds one JSON line, in bytes.
const MaxLine = 1 << 30

// Tally counts the results of a stream.
type Tally struct {
	Holds, Stops, Refused int
}

// Judge answers one decoded document: its result, and whether that is a success.
type Judge func(rpi.Value) (result rpi.Value, holds bool, err error)

// run is some whole lines in one piece; line i ends at ends[i].
type run struct {
	text []byte
	ends []int
}

// batch is a run whose results come out of done in one piece.
type batch struct {
	run
	done chan answer
}

type answer struct {
	out   []byte
	tally Tally
}

// Lines answers every line of in with one line, in the same order: {"ok": result}, or
// {"error": text} where the line is refused. Lines are judged on all processors.
// The error is one of reading or writing.
func Lines(in io.Reader, out io.Writer, judge Judge) (Tally, error) {
	workers := runtime.GOMAXPROCS(0)
	work := make(chan batch, workers)
	order := make(chan batch, 4*workers)
	for range workers {
		go func() {
			for b := range work {
				b.done <- b.judge(judge)
			}
		}()
	}
	stop := make(chan struct{})
	var readErr error
	go func() {
		defer close(order)
		defer close(work)
		readErr = batches(in, func(r run) bool {
			b := batch{r, make(chan answer, 1)}
			select {
			case order <- b:
				work <- b
				return true
			case <-stop:
				return false
			}
		})
	}()
	var tally Tally
	var writeErr error
	for b := range order {
		a := <-b.done
		if writeErr != nil {
			continue
		}
		tally.Holds += a.tally.Holds
		tally.Stops += a.tally.Stops
		tally.Refused += a.tally.Refused
		if _, writeErr = out.Write(a.out); writeErr != nil {
			close(stop)
		}
	}
	return tally, errors.Join(readErr, writeErr)
}

// batches cuts in into runs of lines of about 64 KiB until give says no more.
func batches(in io.Reader, give func(run) bool) error {
	const size = 64 << 10
	scanner := bufio.NewScanner(in)
	scanner.Buffer(make([]byte, size), MaxLine)
	var r run
	for scanner.Scan() {
		r.text = append(r.text, scanner.Bytes()...)
		r.ends = append(r.ends, len(r.text))
		if len(r.text) >= size || len(r.ends) >= size/64 {
			if !give(r) {
				return nil
			}
			r = run{text: make([]byte, 0, size+size/4)}
		}
	}
	if len(r.ends) > 0 && !give(r) {
		return nil
	}
	if errors.Is(scanner.Err(), bufio.ErrTooLong) {
		return &canon.InputError{Problem: fmt.Sprintf("a line is longer than %d bytes", MaxLine), Fix: "split the document"}
	}
	return scanner.Err()
}

func (r run) judge(judge Judge) (a answer) {
	a.out = make([]byte, 0, len(r.text))
	start := 0
	for _, end := range r.ends {
		value, err := rpi.Decode(r.text[start:end])
		start = end
		var result rpi.Value
		var holds bool
		if err == nil {
			result, holds, err = judge(value)
		}
		switch {
		case err != nil:
			a.tally.Refused++
			text := strings.ToValidUTF8(err.Error(), "\ufffd")
			a.out = rpi.ObjectOf(rpi.Member{Name: "error", Value: rpi.String(text)}).AppendJSON(a.out)
		default:
			if holds {
				a.tally.Holds++
			} else {
				a.tally.Stops++
			}
			a.out = rpi.ObjectOf(rpi.Member{Name: "ok", Value: result}).AppendJSON(a.out)
		}
		a.out = append(a.out, '\n')
	}
	return a
}

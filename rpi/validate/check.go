package validate

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"selfsame.dev/selfsame/internal/canon"
	"selfsame.dev/selfsame/rpi/bounded"
	"selfsame.dev/selfsame/schemas"
)

// The formats of a check and its receipt.
const (
	CheckFormat   = "check.v1"
	ReceiptFormat = "check-receipt.v1"
)

// Effect is what a check may do to the disposable copy it runs in.
type Effect string

// A read-only check sees the copy read only; a mutating one may change the copy, never the subject.
const (
	ReadOnly           Effect = "read-only"
	DisposableMutation Effect = "disposable-mutation"
)

// Check is a check.v1: one exact argv with its bounds.
type Check struct {
	Format string   `json:"format"`
	Name   string   `json:"name"`
	Argv   []string `json:"argv"`
	Effect Effect   `json:"effect"`
	// TimeMS bounds the run in milliseconds, OutputBytes what it writes to its two streams.
	TimeMS      int64 `json:"time_ms"`
	OutputBytes int64 `json:"output_bytes"`
	// Tools are absolute folders that it may read besides those of the system.
	Tools []string `json:"tools"`
	// Env is its environment besides HOME, TMPDIR, LC_ALL, TZ and PATH, which it may replace.
	Env map[string]string `json:"env"`
}

// ReadCheck decodes a check.v1.
func ReadCheck(file string, raw []byte) (Check, error) {
	var c Check
	if err := schemas.Decode(file, CheckFormat, raw, &c); err != nil {
		return Check{}, err
	}
	return c, canon.InFile(file, c.check())
}

func (c Check) check() error {
	for _, dir := range c.Tools {
		if !filepath.IsAbs(dir) || filepath.Clean(dir) != dir || dir == "/" {
			return &canon.InputError{Key: "/tools", Problem: fmt.Sprintf("%q is no clean absolute folder", dir), Fix: "name the folder of the tool"}
		}
	}
	for _, arg := range c.Argv {
		if strings.ContainsRune(arg, 0) {
			return &canon.InputError{Key: "/argv", Problem: "an argument has a NUL", Fix: "remove it"}
		}
	}
	return nil
}

// Receipt is a check-receipt.v1: what ran over which subject, and how it ended. It has no
// times, so that a deterministic check gives the same receipt again.
type Receipt struct {
	Format string `json:"format"`
	Check  Check  `json:"check"`
	// Subject is the digest of the subject manifest; Tree that of the whole folder, before and after
	// alike; Copy that of the disposable copy after the run.
	Subject     canon.Digest `json:"subject_sha256"`
	Tree        canon.Digest `json:"tree_sha256"`
	Copy        canon.Digest `json:"copy_after_sha256"`
	Containment string       `json:"containment"`
	// Exit is the exit status, -1 after a signal.
	Exit     int          `json:"exit"`
	Signal   string       `json:"signal"`
	TimedOut bool         `json:"timed_out"`
	Overflow bool         `json:"output_overflow"`
	Stdout   canon.Digest `json:"stdout_sha256"`
	Stderr   canon.Digest `json:"stderr_sha256"`
	Passed   bool         `json:"passed"`
}

// passed: the program ended by itself with 0 inside its bounds, and did to the copy no more than declared.
func (r Receipt) passed() bool {
	return r.Exit == 0 && r.Signal == "" && !r.TimedOut && !r.Overflow &&
		(r.Check.Effect == DisposableMutation || r.Copy == r.Tree)
}

// ReadReceipt decodes a check-receipt.v1 and refuses one that calls a failed run passed.
func ReadReceipt(file string, raw []byte) (Receipt, error) {
	var r Receipt
	if err := schemas.DecodeCanonical(file, ReceiptFormat, raw, &r); err != nil {
		return Receipt{}, err
	}
	if r.Passed != r.passed() {
		return Receipt{}, &canon.InputError{File: file, Key: "/passed", Problem: "it is not what the rest of the receipt says", Fix: "run the check again"}
	}
	return r, nil
}

// RunCheck runs a check over a folder that holds the subject: in a disposable copy, contained
// and bounded; all of its processes are gone afterwards. It refuses a folder that is not the
// subject, and one that changed while the check ran. Output is returned as far as the bound went.
func RunCheck(ctx context.Context, inside Containment, dir string, subject Subject, check Check) (Receipt, bounded.Result, error) {
	none := bounded.Result{}
	if err := check.check(); err != nil {
		return Receipt{}, none, err
	}
	before, err := List(dir)
	if err != nil {
		return Receipt{}, none, err
	}
	if err := subject.matches(dir, before); err != nil {
		return Receipt{}, none, err
	}
	r := Receipt{Format: ReceiptFormat, Check: check, Containment: inside.Name()}
	if r.Subject, err = subject.Digest(); err != nil {
		return Receipt{}, none, err
	}
	if r.Tree, err = TreeDigest(before); err != nil {
		return Receipt{}, none, err
	}
	scratch, err := os.MkdirTemp("", "selfsame-check-")
	if err != nil {
		return Receipt{}, none, err
	}
	result, err := func() (bounded.Result, error) {
		if err := copyTree(dir, scratch, before); err != nil {
			return none, err
		}
		if err := unchanged(scratch, r.Tree, "it changed while it was copied"); err != nil {
			return none, err
		}
		result, err := inside.Run(ctx, scratch, check)
		if err != nil {
			return result, err
		}
		after, err := List(scratch)
		if err != nil {
			return result, fmt.Errorf("the copy after the check: %w", err)
		}
		if r.Copy, err = TreeDigest(after); err != nil {
			return result, err
		}
		return result, unchanged(dir, r.Tree, "it changed while the check ran")
	}()
	if err = errors.Join(err, removeAll(scratch)); err != nil {
		return Receipt{}, none, err
	}
	r.Exit, r.Signal, r.TimedOut, r.Overflow = result.Exit, result.Signal, result.TimedOut, result.Overflow
	r.Stdout, r.Stderr = canon.Sum(result.Stdout), canon.Sum(result.Stderr)
	r.Passed = r.passed()
	return r, result, nil
}

func (c *Check) limits() bounded.Limits {
	return bounded.Limits{Time: time.Duration(c.TimeMS) * time.Millisecond, Output: c.OutputBytes}
}

func unchanged(dir string, want canon.Digest, problem string) error {
	entries, err := List(dir)
	if err != nil {
		return err
	}
	have, err := TreeDigest(entries)
	if err == nil && have != want {
		err = &canon.InputError{File: dir, Problem: problem, Fix: "let nothing write to the subject during a check"}
	}
	return err
}

// removeAll removes a tree in which a check may have taken permissions away.
func removeAll(dir string) error {
	err := os.RemoveAll(dir)
	if err == nil {
		return nil
	}
	_ = filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if d != nil && d.IsDir() {
			_ = os.Chmod(path, 0o700)
		}
		return nil
	})
	return os.RemoveAll(dir)
}

func sortedKeys(m map[string]string) []string { return slices.Sorted(maps.Keys(m)) }

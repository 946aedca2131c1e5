package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"selfsame.dev/selfsame/internal/atomicfile"
	"selfsame.dev/selfsame/internal/canon"
	"selfsame.dev/selfsame/manifest/ledger"
)

type ledgerCommands struct {
	Add   ledgerAdd   `cmd:"" help:"Add what this machine found to the end of a ledger."`
	Check ledgerCheck `cmd:"" help:"Follow the chain, and say which machines agree, since when, and the first that does not."`
	Show  ledgerShow  `cmd:"" help:"Show the records of a ledger."`
}

type ledgerAdd struct {
	livingClock
	Ledger   string `arg:"" help:"Ledger file; made when missing."`
	Manifest string `placeholder:"FILE" required:"" help:"Identity manifest that this machine made."`
	Label    string `placeholder:"NAME" required:"" help:"What should be the same on every machine: an agent with its release, say."`
	Host     string `placeholder:"ALIAS" required:"" help:"Alias of this machine. It is published: choose one that tells nothing."`
}

func (c *ledgerAdd) Run(std streams) error {
	at, err := c.instant()
	if err != nil {
		return err
	}
	m, err := readManifest(c.Manifest)
	if err != nil {
		return err
	}
	sum, err := m.SHA256()
	if err != nil {
		return err
	}
	entry := ledger.Entry{Label: c.Label, Host: c.Host, Identity: m.IdentitySHA256, Manifest: sum, At: string(at)}
	// What is wrong with the entry is found before the file is made.
	if _, err := new(ledger.Ledger).Next(entry); err != nil {
		return under("--label, --host", err)
	}
	f, err := openLocked(c.Ledger, os.O_RDWR|os.O_CREATE, unix.LOCK_EX)
	if err != nil {
		return err
	}
	defer f.Close()
	data, err := io.ReadAll(f)
	if err != nil {
		return err
	}
	l, err := ledger.Read(c.Ledger, data)
	if err != nil {
		return ledgerVerdict(err)
	}
	line, err := l.Next(entry)
	if err != nil {
		return err
	}
	if err := appendWhole(f, int64(len(data)), line); err != nil {
		return err
	}
	if err := atomicfile.SyncDir(filepath.Dir(c.Ledger)); err != nil {
		return err
	}
	_, err = fmt.Fprintf(std.out, "record %d\nhead_sha256 %s\n", len(l.Records), canon.Sum(line[:len(line)-1]))
	return err
}

// appendWhole puts line at the end of a file of the given size, whole or not at all.
func appendWhole(f interface {
	io.WriterAt
	Truncate(int64) error
	Sync() error
}, size int64, line []byte) error {
	_, err := f.WriteAt(line, size)
	if err == nil {
		err = f.Sync()
	}
	if err != nil {
		return errors.Join(err, f.Truncate(size), f.Sync())
	}
	return nil
}

// openLocked opens a regular file and waits for its lock. A file that was replaced meanwhile is opened anew, for
// the lock belongs to the file and not to the name. The kernel drops the lock when the process ends, however.
func openLocked(name string, flag, lock int) (*os.File, error) {
	for {
		f, err := os.OpenFile(name, flag|unix.O_NONBLOCK|unix.O_CLOEXEC, 0o644)
		if err != nil {
			return nil, err
		}
		current, err := lockCurrent(f, name, lock)
		if err == nil && current {
			return f, nil
		}
		f.Close()
		if err != nil {
			return nil, err
		}
	}
}

func lockCurrent(f *os.File, name string, lock int) (bool, error) {
	opened, err := f.Stat()
	if err != nil {
		return false, err
	}
	if !opened.Mode().IsRegular() {
		return false, &canon.InputError{File: name, Problem: "is no regular file", Fix: "name the ledger file"}
	}
	for {
		err = unix.Flock(int(f.Fd()), lock)
		if !errors.Is(err, unix.EINTR) {
			break
		}
	}
	if err != nil {
		return false, &os.PathError{Op: "flock", Path: name, Err: err}
	}
	there, err := os.Stat(name)
	if errors.Is(err, os.ErrNotExist) {
		return false, nil
	}
	return err == nil && os.SameFile(opened, there), err
}

// readLedger reads a ledger while nobody appends to it.
func readLedger(name string) (*ledger.Ledger, error) {
	f, err := openLocked(name, os.O_RDONLY, unix.LOCK_SH)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(f)
	if err != nil {
		return nil, err
	}
	l, err := ledger.Read(name, data)
	return l, ledgerVerdict(err)
}

// ledgerFailure is a [failure] that keeps its hint.
type ledgerFailure struct{ *ledger.BrokenError }

func (f *ledgerFailure) Unwrap() error { return &failure{reason: f.BrokenError.Error()} }

func ledgerVerdict(err error) error {
	var broken *ledger.BrokenError
	if errors.As(err, &broken) {
		return &ledgerFailure{broken}
	}
	return err
}

type ledgerCheck struct {
	Ledger   string `arg:"" help:"Ledger file."`
	Head     string `placeholder:"SHA256" help:"Head that was seen before: fail unless the ledger continues it."`
	Machines int    `default:"1" placeholder:"N" help:"Fail unless at least so many machines are under each label (default: 1)."`
	JSON     bool   `help:"Write the result as JSON (ledger-agreement.v1)."`
	Output   string `placeholder:"FILE" help:"Where to write the result (default: standard output)."`
}

func (c *ledgerCheck) Run(std streams) error {
	if c.Machines < 1 {
		return &refusal{"--machines is less than 1"}
	}
	var head canon.Digest
	if c.Head != "" {
		var err error
		if head, err = canon.ParseDigest(c.Head); err != nil {
			return &refusal{"--head: " + err.Error()}
		}
	}
	l, err := readLedger(c.Ledger)
	if err != nil {
		return err
	}
	if c.Head != "" {
		if err := l.Continues(c.Ledger, head); err != nil {
			return ledgerVerdict(err)
		}
	}
	result := l.Agreement(c.Machines)
	data := []byte(result.Text())
	data = data[:len(data)-1]
	if c.JSON {
		if data, err = canon.Marshal(result); err != nil {
			return err
		}
	}
	if err := writeResult(std, c.Output, data); err != nil {
		return err
	}
	if result.Holds {
		return nil
	}
	if len(result.Labels) == 0 {
		return &failure{reason: c.Ledger + " holds no record, so it shows nothing"}
	}
	for _, label := range result.Labels {
		switch {
		case !label.Agree:
			return &failure{reason: fmt.Sprintf("%s: the machines do not agree; the first that did not is %s, at %s in record %d", label.Label, label.Since.Host, label.Since.At, label.Since.Sequence)}
		case !label.Holds:
			return &failure{reason: fmt.Sprintf("%s: %d of at least %d machines", label.Label, label.Machines, c.Machines)}
		}
	}
	return nil
}

type ledgerShow struct {
	Ledger string `arg:"" help:"Ledger file."`
	Label  string `placeholder:"NAME" help:"Only records of this label."`
	Host   string `placeholder:"ALIAS" help:"Only records of this machine."`
	JSON   bool   `help:"Write the records as they are (identity-ledger.v1, one a line)."`
}

func (c *ledgerShow) Run(std streams) error {
	l, err := readLedger(c.Ledger)
	if err != nil {
		return err
	}
	for i, r := range l.Records {
		if c.Label != "" && c.Label != r.Label || c.Host != "" && c.Host != r.Host {
			continue
		}
		line := fmt.Appendf(nil, "%d  %s  %s  %s\n  identity %s\n  manifest %s\n  line     %s", r.Sequence, r.At, r.Label, r.Host, r.Identity, r.Manifest, l.Lines[i])
		if c.JSON {
			if line, err = canon.Marshal(r); err != nil {
				return err
			}
		}
		if _, err := fmt.Fprintf(std.out, "%s\n", line); err != nil {
			return err
		}
	}
	return nil
}

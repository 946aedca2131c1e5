// Package ledger keeps which identity each machine found: an append-only list of lines, each the RFC 8785
// form of an identity-ledger.v1 record followed by one newline, and each bound to the line before by its
// digest. It is pure: bytes in, bytes out; an edge reads, locks and appends.
//
// The chain shows every change but to the end: lines cut off, or a whole ledger written anew, only show
// against a head (the digest of a line) that was kept elsewhere; see [Ledger.Continues].
package ledger

import (
	"bytes"
	"fmt"
	"strconv"

	"selfsame.dev/selfsame/internal/canon"
	"selfsame.dev/selfsame/schemas"
)

// Format is the format of one line.
const Format = "identity-ledger.v1"

// Record is the format identity-ledger.v1. Prior is the digest of the line before without its newline, and
// zero in the first. At is what the machine's clock said, in UTC: 2006-01-02T15:04:05Z.
type Record struct {
	Format   string       `json:"format"`
	Sequence int64        `json:"sequence"`
	Prior    canon.Digest `json:"prior_sha256"`
	Entry
}

// Entry is what a machine says.
type Entry struct {
	Label    string       `json:"label"`
	Host     string       `json:"host"`
	Identity canon.Digest `json:"identity_sha256"`
	Manifest canon.Digest `json:"manifest_sha256"`
	At       string       `json:"at"`
}

// Ledger is a ledger whose chain holds.
type Ledger struct {
	Records []Record
	Lines   []canon.Digest // the digest of each line
}

// BrokenError says that a ledger is not the one that was appended to.
type BrokenError struct {
	File    string
	Line    int // from 1; 0 for the whole
	Problem string
}

func (e *BrokenError) Error() string {
	if e.Line == 0 {
		return e.File + ": " + e.Problem
	}
	return fmt.Sprintf("%s: line %d: %s", e.File, e.Line, e.Problem)
}

// Hint returns what to do.
func (e *BrokenError) Hint() string {
	return "trust no line from here on; take the ledger from a copy that continues the last known head"
}

// Read reads a ledger and follows its chain. Malformed lines, a torn last one included, are [*canon.InputError]; a
// chain that does not hold is a [*BrokenError].
func Read(file string, data []byte) (*Ledger, error) {
	l := &Ledger{}
	for at := 0; at < len(data); {
		number := len(l.Records) + 1
		length := bytes.IndexByte(data[at:], '\n')
		if length < 0 {
			return nil, &canon.InputError{File: file, Key: "line " + strconv.Itoa(number),
				Problem: fmt.Sprintf("is torn: %d bytes without a newline, of an append that never ended, or of a line that was cut", len(data)-at),
				Fix:     fmt.Sprintf("compare with another copy; if no machine saw this line's digest, drop it: truncate -s %d %s", at, file)}
		}
		line := data[at : at+length]
		at += length + 1
		var r Record
		if err := schemas.DecodeCanonical("", Format, line, &r); err != nil {
			return nil, inLine(file, number, err)
		}
		if err := r.check(); err != nil {
			return nil, inLine(file, number, err)
		}
		switch {
		case r.Sequence != int64(number-1):
			return nil, &BrokenError{file, number, fmt.Sprintf("says that it is record %d, it stands in place %d: a line was removed, repeated or moved", r.Sequence, number-1)}
		case r.Prior != l.Head():
			return nil, &BrokenError{file, number, fmt.Sprintf("follows the line %s, before it stands %s: one of the two was changed", r.Prior, l.Head())}
		}
		l.Records = append(l.Records, r)
		l.Lines = append(l.Lines, canon.Sum(line))
	}
	return l, nil
}

// inLine names the line in an error.
func inLine(file string, number int, err error) error {
	named, ok := canon.InFile(file, err).(*canon.InputError)
	if !ok {
		return err
	}
	copied := *named
	copied.Key = "line " + strconv.Itoa(number) + named.Key
	return &copied
}

// check refuses the 29 February of a common year, all that the schema's pattern lets through.
func (r Record) check() error {
	year, err := strconv.Atoi(r.At[:4])
	if leap := year%4 == 0 && year%100 != 0 || year%400 == 0; err != nil || !leap && r.At[5:10] == "02-29" {
		return &canon.InputError{Key: "/at", Problem: "is no day: " + r.At[:10], Fix: "write an instant in UTC, as 2006-01-02T15:04:05Z"}
	}
	return nil
}

// Head is the digest of the last line, zero without one.
func (l *Ledger) Head() canon.Digest {
	if len(l.Lines) == 0 {
		return canon.Digest{}
	}
	return l.Lines[len(l.Lines)-1]
}

// Next returns the line, newline included, that puts e at the end.
func (l *Ledger) Next(e Entry) ([]byte, error) {
	r := Record{Format, int64(len(l.Records)), l.Head(), e}
	line, err := canon.Marshal(r)
	if err != nil {
		return nil, err
	}
	if err := schemas.Validate("", Format, line); err != nil {
		return nil, err
	}
	return append(line, '\n'), r.check()
}

// Continues checks that the ledger holds the line whose digest was seen as its head before: that nothing up to it
// was changed, and nothing before it cut off.
func (l *Ledger) Continues(file string, head canon.Digest) error {
	for _, line := range l.Lines {
		if line == head {
			return nil
		}
	}
	return &BrokenError{File: file, Problem: fmt.Sprintf("holds no line %s, which was its head before: lines were cut off, or it was written anew", head)}
}

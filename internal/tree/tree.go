// Package tree describes folders of regular files by what they hold: paths, sizes
// and SHA-256 digests, and one digest over all of them. It reads no disk; package
// disk does.
//
// # Format selfsame-tree.v1
//
// The digest of a tree is SHA-256 over this text, UTF-8, each line ended by one
// newline (U+000A):
//
//	selfsame-tree.v1
//	<64 lowercase hex digits> <size in decimal> <path>
//	...
//
// with one line a file, in the byte order of whole paths, no path twice. Fields are
// parted by one space; the path is the rest of the line, unescaped, which is
// unambiguous because [CheckName] refuses control characters. Modes, times, owners and
// empty folders are not part of a tree.
package tree

import (
	"cmp"
	"crypto/sha256"
	"fmt"
	"hash"
	"slices"
	"strconv"

	"selfsame.dev/selfsame/internal/canon"
)

// Format names the tree digest format; it is the first line of the hashed text.
const Format = "selfsame-tree.v1"

// MaxTotalBytes is the largest sum of sizes: what JSON numbers carry exactly (RFC 7493).
const MaxTotalBytes = 1<<53 - 1

// Entry is one regular file: its slash path in the tree, its size in bytes and the
// digest of its content.
type Entry struct {
	Path   string       `json:"path"`
	Size   int64        `json:"size"`
	Digest canon.Digest `json:"sha256"`
}

// Summary is what is stated about a whole tree: the number of files, the sum of their
// sizes in bytes, and the digest in [Format].
type Summary struct {
	FileCount  int          `json:"file_count"`
	TotalBytes int64        `json:"total_bytes"`
	Digest     canon.Digest `json:"sha256"`
}

// Builder computes a [Summary] from entries that come in byte order of path. It keeps
// the names of the folders on the current path only, not the entries.
type Builder struct {
	text  hash.Hash
	line  []byte
	total Summary
	names Names
}

// NewBuilder returns a Builder of an empty tree.
func NewBuilder() *Builder {
	b := &Builder{text: sha256.New()}
	b.text.Write([]byte(Format + "\n"))
	return b
}

// Add puts in the next entry. A path that is badly named, out of order, there already, or
// in collision with an earlier one (see [CheckName] and [Check]), a size that is negative or too
// large, and a digest that was never set are refused with a [*canon.InputError], and leave b as it was.
func (b *Builder) Add(e Entry) error {
	switch {
	case e.Size < 0:
		return refuse(e.Path, "has the negative size "+strconv.FormatInt(e.Size, 10), "record the size in bytes")
	case e.Size > MaxTotalBytes-b.total.TotalBytes:
		return refuse(e.Path, fmt.Sprintf("takes the sum of sizes over %d bytes", int64(MaxTotalBytes)), "split the tree")
	case e.Digest.IsZero():
		return refuse(e.Path, "has no digest", "hash the file")
	}
	if err := b.names.admit(e.Path); err != nil {
		return err
	}
	b.line = append(b.line[:0], e.Digest.String()...)
	b.line = append(b.line, ' ')
	b.line = strconv.AppendInt(b.line, e.Size, 10)
	b.line = append(b.line, ' ')
	b.line = append(b.line, e.Path...)
	b.line = append(b.line, '\n')
	b.text.Write(b.line)
	b.total.FileCount++
	b.total.TotalBytes += e.Size
	return nil
}

// Summary returns the summary of what was added so far.
func (b *Builder) Summary() Summary {
	s := b.total
	b.text.Sum(s.Digest[:0])
	return s
}

// Summarize returns the summary of entries in any order, and refuses what
// [Builder.Add] refuses. No entries make a valid, empty tree.
func Summarize(entries []Entry) (Summary, error) {
	return build(sorted(entries))
}

// Verify recomputes the summary of entries and refuses, with a [*canon.InputError],
// entries that are not sorted and unique, and every field of stated that differs. It
// shows that a document agrees with itself; only [Diff] against what is on disk shows
// that it is true.
func Verify(entries []Entry, stated Summary) error {
	actual, err := build(entries)
	if err != nil {
		return err
	}
	for _, field := range []struct {
		key            string
		stated, actual any
	}{
		{"file_count", stated.FileCount, actual.FileCount},
		{"total_bytes", stated.TotalBytes, actual.TotalBytes},
		{"sha256", stated.Digest, actual.Digest},
	} {
		if field.stated != field.actual {
			return &canon.InputError{
				Key:     field.key,
				Problem: fmt.Sprintf("states %v, the files give %v", field.stated, field.actual),
				Fix:     "generate the document anew from its sources",
			}
		}
	}
	return nil
}

func build(entries []Entry) (Summary, error) {
	b := NewBuilder()
	for _, e := range entries {
		if err := b.Add(e); err != nil {
			return Summary{}, err
		}
	}
	return b.Summary(), nil
}

// sorted returns entries in byte order of path, and leaves its argument alone.
func sorted(entries []Entry) []Entry {
	byPath := func(a, b Entry) int { return cmp.Compare(a.Path, b.Path) }
	if slices.IsSortedFunc(entries, byPath) {
		return entries
	}
	entries = slices.Clone(entries)
	slices.SortStableFunc(entries, byPath)
	return entries
}

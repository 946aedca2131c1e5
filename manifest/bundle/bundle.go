// Package bundle writes and reads source bundles: a whole source tree as one stream of bytes with
// one digest, for a tree that no commit names.
//
// # Format source-bundle.v1
//
// The canonical bytes of a tree are a header and its files, UTF-8 but for the contents. Lines end
// with one newline (U+000A), fields are parted by one space, numbers are decimal without sign or leading zeros:
//
//	source-bundle.v1
//	files <number of files>
//	bytes <sum of their sizes>
//	path_bytes <sum of the lengths of their paths, in bytes>
//	tree <selfsame-tree.v1 digest, 64 lowercase hex digits>
//
// and then for each file, in the byte order of whole paths, its line of selfsame-tree.v1 (see package
// tree) and directly behind it exactly that many bytes of content, with nothing in between or after:
//
//	<SHA-256 of the content, 64 lowercase hex digits> <size> <path>
//	<content>
//
// So a tree has exactly one bundle and a bundle one tree. The identity of a bundle, bundle_sha256, is the SHA-256
// of these bytes. It says nothing of modes, owners, times and empty folders, which are not part of a
// tree, nor of the selection that chose the files.
//
// A bundle is stored as these bytes, or compressed with Zstandard (RFC 8878): any encoder, level, number
// of frames, and skippable frames, which are skipped. None of that is part of the identity.
//
// Nothing in a bundle is believed. The header declares bounds, which [Limits] bound in turn, and
// a reader stops at the first byte that breaks either; names obey [tree.CheckName] and the order and
// collision rules of [tree.Builder]; sizes, digests and sums are computed anew. There is no way
// to write a link, a device, a mode or a folder. Memory does not grow with sizes or the number
// of folders: a reader keeps one buffer, the Zstandard window, and the names in the folders on the current path.
package bundle

import (
	"fmt"
	"strconv"
	"strings"

	"selfsame.dev/selfsame/internal/canon"
	"selfsame.dev/selfsame/internal/tree"
)

// Format is the first line of the canonical bytes.
const Format = "source-bundle.v1"

// Summary is what is stated about a bundle: its identity, the number of canonical bytes, and its tree.
type Summary struct {
	SHA256 canon.Digest `json:"bundle_sha256"`
	Size   int64        `json:"size"`
	Tree   tree.Summary `json:"tree"`
}

// Header is what a bundle declares before its first file.
type Header struct {
	PathBytes int64
	Tree      tree.Summary
}

// Limits bound what a header may declare, in files, bytes of content, and bytes of paths, which
// bound the memory of a reader.
type Limits struct {
	Files, Bytes, PathBytes int64
}

// DefaultLimits fit a large source tree: a million files, 8 GiB, 64 MiB of paths.
var DefaultLimits = Limits{Files: 1 << 20, Bytes: 8 << 30, PathBytes: 64 << 20}

func (h Header) text() []byte {
	return fmt.Appendf(nil, "%s\nfiles %d\nbytes %d\npath_bytes %d\ntree %s\n", Format, h.Tree.FileCount, h.Tree.TotalBytes, h.PathBytes, h.Tree.Digest)
}

func line(e tree.Entry) []byte { return fmt.Appendf(nil, "%s %d %s\n", e.Digest, e.Size, e.Path) }

// maxLine is the length of the longest line, its newline included.
const maxLine = 64 + 1 + 16 + 1 + tree.MaxPath + 1

func parseLine(line string) (tree.Entry, error) {
	var e tree.Entry
	digest, rest, ok := strings.Cut(line, " ")
	size, path, ok2 := strings.Cut(rest, " ")
	if !ok || !ok2 {
		return e, refuse("", "the line of a file is not digest, size and path", damaged)
	}
	var err error
	if e.Digest, err = canon.ParseDigest(digest); err != nil {
		return e, refuse(tree.Display(path), err.Error(), damaged)
	}
	if e.Size, err = number(size); err != nil {
		return e, refuse(tree.Display(path), err.Error(), damaged)
	}
	e.Path = path
	return e, nil
}

// number reads the one way to write n, 0 <= n <= [tree.MaxTotalBytes].
func number(text string) (int64, error) {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 0 || n > tree.MaxTotalBytes || strconv.FormatInt(n, 10) != text {
		return 0, fmt.Errorf("%.40q is not a plain decimal number up to %d", text, int64(tree.MaxTotalBytes))
	}
	return n, nil
}

const damaged = "get the bundle again; it is damaged, or was not written by selfsame bundle create"

func refuse(key, problem, fix string) error {
	return &canon.InputError{Key: key, Problem: problem, Fix: fix}
}

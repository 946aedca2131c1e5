package validate

import (
	"crypto/sha256"
	"fmt"
	"io"
	"io/fs"
	"os"
	"unicode/utf8"

	"selfsame.dev/selfsame/internal/canon"
)

// Kind says what a path is.
type Kind string

// The kinds of an entry. Deleted says that the base has the path and the subject has not.
const (
	File       Kind = "file"
	Executable Kind = "executable"
	Link       Kind = "link"
	Deleted    Kind = "deleted"
)

// Entry is one path of a tree: a slash path relative to it, the kind, and the digest of the
// content, or of the target of a link. Empty folders do not exist, as in Git.
type Entry struct {
	Path   string       `json:"path"`
	Kind   Kind         `json:"kind"`
	Digest canon.Digest `json:"sha256"`
	Size   int64        `json:"size"`
}

// List returns what a folder holds, sorted by path. The folder .git at its top is the
// repository's, not the subject's, and left out. Whatever is neither file, folder nor link
// is refused by name, as are names that are not UTF-8.
func List(dir string) ([]Entry, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	var entries []Entry
	err = fs.WalkDir(root.FS(), ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case name == ".git":
			if d.IsDir() {
				return fs.SkipDir
			}
			return nil
		case !utf8.ValidString(name):
			return refusePath(dir, fmt.Sprintf("%q", name), "its name is not UTF-8")
		case d.IsDir():
			return nil
		}
		entry, err := entryOf(root, name, d)
		if err != nil {
			return err
		}
		if entry.Kind == "" {
			return refusePath(dir, name, "it is neither a file, a folder nor a link")
		}
		entries = append(entries, entry)
		return nil
	})
	if err != nil {
		return nil, err
	}
	sortEntries(entries)
	return entries, nil
}

func refusePath(dir, name, problem string) error {
	return &canon.InputError{File: dir, Key: name, Problem: problem, Fix: "remove it from the subject"}
}

func entryOf(root *os.Root, name string, d fs.DirEntry) (Entry, error) {
	switch d.Type() {
	case fs.ModeSymlink:
		target, err := root.Readlink(name)
		return Entry{name, Link, canon.Sum([]byte(target)), int64(len(target))}, err
	case 0:
		file, err := root.Open(name)
		if err != nil {
			return Entry{}, err
		}
		defer file.Close()
		info, err := file.Stat()
		if err != nil || !info.Mode().IsRegular() {
			return Entry{}, err
		}
		hash := sha256.New()
		size, err := io.Copy(hash, file)
		entry := Entry{Path: name, Kind: File, Digest: canon.Digest(hash.Sum(nil)), Size: size}
		if info.Mode()&0o111 != 0 {
			entry.Kind = Executable
		}
		return entry, err
	}
	return Entry{}, nil
}

// TreeDigest is the digest of a whole listing.
func TreeDigest(entries []Entry) (canon.Digest, error) { return canon.DigestOf(entries) }

package disk

import (
	"cmp"
	"crypto/sha256"
	"hash"
	"io"
	"io/fs"
	"os"
	"slices"

	"selfsame.dev/selfsame/internal/tree"
)

// hashTreePlain is the reference: one folder and one file at a time, by package os alone,
// each from the handle of its folder. A link put in the place of something between two calls is
// found by comparing what was opened with what is there.
func hashTreePlain(root string, selector *tree.Selector, opts Options, faults *faults) []tree.Entry {
	p := plain{selector: selector, opts: opts, faults: faults, hash: sha256.New(), buf: make([]byte, bufferSize)}
	p.folder("", func() (*os.Root, error) { return os.OpenRoot(root) }, func() (fs.FileInfo, error) { return os.Lstat(root) })
	slices.SortFunc(p.entries, func(a, b tree.Entry) int { return cmp.Compare(a.Path, b.Path) })
	return p.entries
}

// bufferSize is the size in bytes of each worker's buffer.
const bufferSize = 128 << 10

type plain struct {
	selector *tree.Selector
	opts     Options
	faults   *faults
	entries  []tree.Entry
	hash     hash.Hash
	buf      []byte
}

// folder reads the folder at path and all below it.
func (p *plain) folder(path string, open func() (*os.Root, error), look func() (fs.FileInfo, error)) {
	key := orRoot(path)
	if err := p.inFolder(path, key, open, look); err != nil {
		p.faults.add(path, failed(key, err))
	}
}

func (p *plain) inFolder(folder, key string, open func() (*os.Root, error), look func() (fs.FileInfo, error)) error {
	there, err := look()
	if err != nil {
		return err
	}
	if !there.IsDir() {
		return irregular(key, there.Mode())
	}
	handle, err := open()
	if err != nil {
		return err
	}
	defer handle.Close()
	list, err := p.list(handle, key, there)
	if err != nil {
		return err
	}
	for _, item := range list {
		name, path := item.Name(), below(folder, item.Name())
		read, enter, err := admit(p.selector, path, item.Type())
		switch {
		case err != nil:
			p.faults.add(path, err)
		case enter:
			p.folder(path, func() (*os.Root, error) { return handle.OpenRoot(name) }, func() (fs.FileInfo, error) { return handle.Lstat(name) })
		case read:
			entry := tree.Entry{Path: path}
			if err := hashFilePlain(&entry, name, handle.Lstat, handle.Open, p.opts, p.hash, p.buf); err != nil {
				p.faults.add(path, failed(path, err))
			}
			p.entries = append(p.entries, entry)
		}
	}
	after, err := look()
	if err == nil && !os.SameFile(there, after) {
		err = changed(key)
	}
	return err
}

// list returns what is in the folder open at handle, which must be the one that was there.
func (p *plain) list(handle *os.Root, key string, there fs.FileInfo) ([]fs.DirEntry, error) {
	f, err := handle.Open(".")
	if err != nil {
		return nil, err
	}
	defer f.Close()
	before, err := f.Stat()
	if err != nil {
		return nil, err
	}
	p.opts.atOpened(key)
	list, err := f.ReadDir(-1)
	if err != nil {
		return nil, err
	}
	slices.SortFunc(list, func(a, b fs.DirEntry) int { return cmp.Compare(a.Name(), b.Name()) })
	after, err := f.Stat()
	if err == nil && (!os.SameFile(there, before) || !after.ModTime().Equal(before.ModTime())) {
		err = changed(key)
	}
	return list, err
}

// hashFilePlain fills in the size and the digest of the file called name, which it looks
// at and opens with the given functions.
func hashFilePlain(entry *tree.Entry, name string, look func(string) (fs.FileInfo, error), open func(string) (*os.File, error),
	opts Options, h hash.Hash, buf []byte) error {
	there, err := look(name)
	if err != nil {
		return err
	}
	if !there.Mode().IsRegular() {
		return irregular(entry.Path, there.Mode()) // opening a FIFO waits, opening a device may do anything
	}
	f, err := open(name)
	if err != nil {
		return err
	}
	defer f.Close()
	before, err := f.Stat()
	if err != nil {
		return err
	}
	opts.atOpened(entry.Path)
	h.Reset()
	entry.Size, err = io.CopyBuffer(h, struct{ io.Reader }{f}, buf)
	if err != nil {
		return err
	}
	h.Sum(entry.Digest[:0])
	after, err := f.Stat()
	if err == nil && (!os.SameFile(there, before) || before.Size() != entry.Size || after.Size() != entry.Size ||
		!after.ModTime().Equal(before.ModTime())) {
		err = changed(entry.Path)
	}
	return err
}

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

// hashTreePlain is the reference: one folder and one file at a time, by package os alone. A
// link put in the place of a file or folder between two calls is found by comparing
// what was opened with what was there, not prevented.
func hashTreePlain(root string, selector *tree.Selector, opts Options, faults *faults) []tree.Entry {
	p := plain{root: root, selector: selector, opts: opts, faults: faults, hash: sha256.New(), buf: make([]byte, bufferSize)}
	p.folder("")
	slices.SortFunc(p.entries, func(a, b tree.Entry) int { return cmp.Compare(a.Path, b.Path) })
	return p.entries
}

// bufferSize is the size in bytes of each worker's buffer.
const bufferSize = 128 << 10

type plain struct {
	root     string
	selector *tree.Selector
	opts     Options
	faults   *faults
	entries  []tree.Entry
	hash     hash.Hash
	buf      []byte
}

func (p *plain) folder(folder string) {
	list, err := p.list(folder)
	if err != nil {
		p.faults.add(folder, failed(orRoot(folder), err))
		return
	}
	for _, item := range list {
		path := below(folder, item.Name())
		read, enter, err := admit(p.selector, path, item.Type())
		switch {
		case err != nil:
			p.faults.add(path, err)
		case enter:
			p.folder(path)
		case read:
			entry := tree.Entry{Path: path}
			if err := hashFilePlain(&entry, fromSlash(p.root, path), p.opts, p.hash, p.buf); err != nil {
				p.faults.add(path, failed(path, err))
				continue
			}
			p.entries = append(p.entries, entry)
		}
	}
}

func (p *plain) list(folder string) ([]fs.DirEntry, error) {
	name := p.root
	if folder != "" {
		name = fromSlash(p.root, folder)
	}
	key := orRoot(folder)
	f, before, err := open(key, name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	p.opts.atOpened(key)
	list, err := f.ReadDir(-1)
	if err != nil {
		return nil, err
	}
	slices.SortFunc(list, func(a, b fs.DirEntry) int { return cmp.Compare(a.Name(), b.Name()) })
	after, err := f.Stat()
	if err == nil && !after.ModTime().Equal(before.ModTime()) {
		err = changed(key)
	}
	return list, err
}

// hashFilePlain fills in the size and the digest of the file called name.
func hashFilePlain(entry *tree.Entry, name string, opts Options, h hash.Hash, buf []byte) error {
	f, before, err := open(entry.Path, name)
	if err != nil {
		return err
	}
	defer f.Close()
	if !before.Mode().IsRegular() {
		return irregular(entry.Path, before.Mode())
	}
	opts.atOpened(entry.Path)
	h.Reset()
	entry.Size, err = io.CopyBuffer(h, struct{ io.Reader }{f}, buf)
	if err != nil {
		return err
	}
	h.Sum(entry.Digest[:0])
	after, err := f.Stat()
	if err == nil && (before.Size() != entry.Size || after.Size() != entry.Size || !after.ModTime().Equal(before.ModTime())) {
		err = changed(entry.Path)
	}
	return err
}

// open opens the file or folder called name and makes sure that it is no link and the
// same before and after. Key names it in refusals.
func open(key, name string) (*os.File, fs.FileInfo, error) {
	before, err := os.Lstat(name)
	if err != nil {
		return nil, nil, err
	}
	if !before.Mode().IsRegular() && !before.IsDir() {
		return nil, nil, irregular(key, before.Mode()) // opening a FIFO waits, opening a device may do anything
	}
	f, err := os.Open(name)
	if err != nil {
		return nil, nil, err
	}
	info, err := f.Stat()
	if err == nil && !os.SameFile(before, info) {
		err = changed(key)
	}
	if err != nil {
		f.Close()
		return nil, nil, err
	}
	return f, info, nil
}

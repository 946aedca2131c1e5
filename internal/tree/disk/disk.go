// Package disk reads trees from disk: [Hash] a whole folder, [HashFiles] a list of files.
//
// What is in the tree is read exactly or refused by name, with [tree.Refusals]: symbolic
// links (dangling or not), devices, sockets, FIFOs, files and folders that may not be read, names that
// [tree.CheckName] refuses or that collide, and what changes while it is read. Links are
// never followed, and nothing outside the folder is opened. Other failures of the system are returned
// as they are, before any refusal.
//
// There are two readers with one behaviour: a plain one, the reference, and a fast one
// for Linux. Neither can see a file that is added to a folder after that folder was listed,
// nor a write that leaves size, mtime and ctime as they were: hash what stands still.
package disk

import (
	"cmp"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"

	"selfsame.dev/selfsame/internal/canon"
	"selfsame.dev/selfsame/internal/tree"
)

// Options say what to read and how. The zero value reads every file, with one worker a CPU.
type Options struct {
	// Selection says which files belong to the tree. What it leaves out is not looked
	// at: files are not opened, folders that cannot hold a selected file are not entered, and
	// links and other entries are refused only where [tree.Selector.Concerns] says so. A name that is to be left
	// out as a folder and as a link needs both patterns: ".git/**" and ".git".
	Selection tree.Selection
	// Workers is how many files are hashed at a time; 0 is one a CPU. The result does not depend on it.
	Workers int

	plain  bool             // use the reference reader
	old    bool             // do without openat2 and entry types, as old kernels and some file systems must
	opened func(key string) // called between the two looks at a file or folder
}

func (o Options) workers() int {
	if o.Workers > 0 {
		return o.Workers
	}
	return runtime.GOMAXPROCS(0)
}

func (o Options) atOpened(key string) {
	if o.opened != nil {
		o.opened(key)
	}
}

// Hash reads the tree under the folder root and returns its files in byte order of path.
// The folder itself must not be a link; the folders above it may be.
func Hash(root string, opts Options) ([]tree.Entry, error) {
	selector, err := opts.Selection.Compile()
	if err != nil {
		return nil, err
	}
	if root == "" {
		return nil, &canon.InputError{Problem: "no folder is named", Fix: "name the root of the tree"}
	}
	root = filepath.Clean(root) // "link/" and "link/." would follow the link
	info, err := os.Lstat(root)
	if err != nil {
		return nil, err
	}
	if !info.IsDir() {
		return nil, &canon.InputError{File: root, Problem: "is " + kind(info.Mode()) + ", not a folder", Fix: "name the folder itself"}
	}
	read := hashTree
	if opts.plain {
		read = hashTreePlain
	}
	var faults faults
	entries := read(root, selector, opts, &faults)
	return faults.settle(entries)
}

// buffer is what one worker reads with. It goes back to the others: to read a small tree takes more memory
// than to hold it.
type buffer struct{ buf *[bufferSize]byte }

var buffers = sync.Pool{New: func() any { return new([bufferSize]byte) }}

func newBuffer() buffer { return buffer{buffers.Get().(*[bufferSize]byte)} }

func (b buffer) release() { buffers.Put(b.buf) }

// fault is what is wrong at one path.
type fault struct {
	path string
	err  error
}

type faults []fault

func (f *faults) add(path string, err error) { *f = append(*f, fault{path, err}) }

// settle adds what is wrong with the names of entries, which are sorted, and returns them or
// what is wrong at all: an error of the system if there is one, else every refusal, once.
func (f faults) settle(entries []tree.Entry) ([]tree.Entry, error) {
	var names tree.Names
	for i := range entries {
		if err := names.Admit(entries[i].Path); err != nil {
			f.add(entries[i].Path, err)
		}
	}
	if len(f) == 0 {
		return entries, nil
	}
	slices.SortStableFunc(f, func(a, b fault) int { return cmp.Compare(a.path, b.path) })
	var refusals tree.Refusals
	for _, fault := range f {
		var input *canon.InputError
		if !errors.As(fault.err, &input) {
			return nil, fault.err
		}
		if n := len(refusals); n == 0 || *refusals[n-1] != *input {
			refusals = append(refusals, input)
		}
	}
	return nil, refusals
}

// failed says what an error at path means: a refusal, or a failure of the system.
func failed(path string, err error) error {
	var refused *canon.InputError
	if errors.As(err, &refused) {
		return err
	}
	var inner *fs.PathError
	if errors.As(err, &inner) {
		err = inner.Err // its path is a matter of the reader
	}
	switch {
	case errors.Is(err, fs.ErrPermission):
		return refuse(path, "cannot be read: "+err.Error(), "make it readable, or exclude it by a pattern")
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENOTDIR):
		return changed(path)
	case errors.Is(err, syscall.ELOOP):
		return irregular(path, fs.ModeSymlink)
	}
	return &fs.PathError{Op: "read", Path: path, Err: err}
}

func irregular(path string, mode fs.FileMode) error {
	return refuse(path, "is "+kind(mode)+", not a regular file", "put a regular file there, or exclude it by a pattern")
}

func changed(path string) error {
	return refuse(path, "changed while it was read", "read the tree when nothing writes to it")
}

func refuse(path, problem, fix string) error {
	return &canon.InputError{Key: tree.Display(path), Problem: problem, Fix: fix}
}

func kind(mode fs.FileMode) string {
	switch {
	case mode&fs.ModeSymlink != 0:
		return "a symbolic link"
	case mode.IsRegular():
		return "a file"
	case mode.IsDir():
		return "a folder"
	case mode&fs.ModeNamedPipe != 0:
		return "a FIFO"
	case mode&fs.ModeSocket != 0:
		return "a socket"
	case mode&fs.ModeDevice != 0:
		return "a device"
	}
	return "an irregular entry"
}

// below joins the slash path of a folder in the tree, "" for its root, and a name in it.
func below(folder, name string) string {
	if folder == "" {
		return name
	}
	return folder + "/" + name
}

// orRoot is how the slash path of a folder is shown and opened: "." for the root.
func orRoot(folder string) string {
	if folder == "" {
		return "."
	}
	return folder
}

// admit decides about the entry at path of the given type: read (a file), enter (a
// folder), neither when it is left out, or why it is refused. The names of files are checked by settle.
func admit(selector *tree.Selector, path string, mode fs.FileMode) (read, enter bool, err error) {
	switch {
	case mode.IsRegular():
		read = selector.Selects(path)
	case mode.IsDir():
		if selector.Enters(path) {
			err = tree.CheckName(path)
			enter = err == nil
		}
	case selector.Concerns(path):
		err = irregular(path, mode)
	}
	return read, enter, err
}

// fromSlash gives the path of a file in the tree under root for the system.
func fromSlash(root, path string) string {
	return root + string(filepath.Separator) + strings.ReplaceAll(path, "/", string(filepath.Separator))
}

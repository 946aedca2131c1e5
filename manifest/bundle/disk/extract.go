package disk

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"selfsame.dev/selfsame/internal/atomicfile"
	"selfsame.dev/selfsame/internal/canon"
	"selfsame.dev/selfsame/manifest/bundle"
)

// The modes of what is extracted; a bundle has none.
const (
	folderMode fs.FileMode = 0o755
	fileMode   fs.FileMode = 0o644
)

// Extract reads the bundle r, compressed or not, and puts its tree at target, which must not exist or be an
// empty folder. The tree is made in a sibling folder, ".NAME.selfsame-extract-*", that only this user can enter,
// every file from a handle of its folder, never through a link. When the bundle is known to be
// whole and true, and everything is on disk, the sibling is renamed, so that target never shows a
// part of it. On an error the sibling is removed; that of a process which was killed is removed by
// the next Extract to the same target.
//
// Accept, if not nil, is asked about the whole bundle before it appears.
func Extract(r io.Reader, limits bundle.Limits, target string, accept func(bundle.Summary) error) (s bundle.Summary, err error) {
	if target == "" {
		return s, &canon.InputError{Problem: "no folder is named", Fix: "name the folder to make"}
	}
	if target, err = filepath.Abs(target); err != nil {
		return s, err
	}
	if err := free(target); err != nil {
		return s, err
	}
	parent := filepath.Dir(target)
	pattern := "." + filepath.Base(target) + ".selfsame-extract-"
	if err := sweep(parent, pattern); err != nil {
		return s, err
	}
	plain, err := bundle.Decompress(r)
	if err != nil {
		return s, err
	}
	defer plain.Close()
	b, err := bundle.NewReader(plain, limits)
	if err != nil {
		return s, err
	}
	work, err := os.MkdirTemp(parent, pattern+"*")
	if err != nil {
		return s, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.RemoveAll(work))
		}
	}()
	lock, err := claim(work)
	if err != nil {
		return s, err
	}
	defer lock.Close()
	if err := fill(work, b); err != nil {
		return s, err
	}
	s = b.Summary()
	if accept != nil {
		if err := accept(s); err != nil {
			return s, err
		}
	}
	if err := flush(lock); err != nil {
		return s, err
	}
	// rename(2) replaces an empty folder in one step and refuses any other.
	if err := unix.Rename(work, target); err != nil {
		if errors.Is(err, unix.ENOTEMPTY) || errors.Is(err, unix.EEXIST) || errors.Is(err, unix.ENOTDIR) {
			return s, occupied(target)
		}
		return s, &os.LinkError{Op: "rename", Old: work, New: target, Err: err}
	}
	return s, atomicfile.SyncDir(parent)
}

// free refuses a target that is taken, before any work.
func free(target string) error {
	info, err := os.Lstat(target)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if !info.IsDir() {
		return occupied(target)
	}
	list, err := os.ReadDir(target)
	if err == nil && len(list) > 0 {
		err = occupied(target)
	}
	return err
}

func occupied(target string) error {
	return &canon.InputError{File: target, Problem: "is not an empty folder", Fix: "give a new path, or remove what is there"}
}

// claim locks the folder for as long as this process lives and the handle is open.
func claim(folder string) (*os.File, error) {
	f, err := os.Open(folder)
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		return nil, errors.Join(&fs.PathError{Op: "lock", Path: folder, Err: err}, f.Close())
	}
	return f, nil
}

// sweep removes folders that a killed process has left: nobody has a lock on them.
func sweep(parent, pattern string) error {
	list, err := os.ReadDir(parent)
	if err != nil {
		return err
	}
	for _, entry := range list {
		if !entry.IsDir() || !strings.HasPrefix(entry.Name(), pattern) {
			continue
		}
		name := filepath.Join(parent, entry.Name())
		lock, err := claim(name)
		if err != nil {
			continue // another process is at work there, or owns it
		}
		err = os.RemoveAll(name)
		lock.Close()
		if err != nil {
			return err
		}
	}
	return nil
}

// fill puts the files of b into the empty folder work. They come in the order of paths, so that a folder
// is left for good when a file outside of it comes.
func fill(work string, b *bundle.Reader) error {
	root, err := os.OpenRoot(work)
	if err != nil {
		return err
	}
	stack := []open{{".", root}}
	defer func() {
		for _, o := range stack {
			o.root.Close()
		}
	}()
	leave := func() error {
		last := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		return errors.Join(settle(last.root), last.root.Close())
	}
	buf := make([]byte, 128<<10)
	for {
		e, err := b.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			return err
		}
		dir := path.Dir(e.Path)
		for top := stack[len(stack)-1].path; top != "." && dir != top && !strings.HasPrefix(dir, top+"/"); top = stack[len(stack)-1].path {
			if err := leave(); err != nil {
				return err
			}
		}
		for stack[len(stack)-1].path != dir {
			top := stack[len(stack)-1]
			rest := dir
			if top.path != "." {
				rest = dir[len(top.path)+1:]
			}
			name, _, _ := strings.Cut(rest, "/")
			if err := top.root.Mkdir(name, 0o700); err != nil {
				return err
			}
			inner, err := top.root.OpenRoot(name)
			if err != nil {
				return err
			}
			stack = append(stack, open{path.Join(top.path, name), inner})
		}
		if err := put(stack[len(stack)-1].root, path.Base(e.Path), b, buf); err != nil {
			return err
		}
	}
	for len(stack) > 0 {
		if err := leave(); err != nil {
			return err
		}
	}
	return nil
}

// open is a folder that is being filled.
type open struct {
	path string
	root *os.Root
}

// put writes the content of the current file. The mode is set after creation: the umask has no say.
func put(folder *os.Root, name string, content io.Reader, buf []byte) (err error) {
	f, err := folder.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if _, err := io.CopyBuffer(struct{ io.Writer }{f}, struct{ io.Reader }{content}, buf); err != nil {
		return err
	}
	return f.Chmod(fileMode)
}

// settle gives a folder that is complete its mode.
func settle(folder *os.Root) error {
	f, err := folder.Open(".")
	if err != nil {
		return err
	}
	return errors.Join(f.Chmod(folderMode), f.Close())
}

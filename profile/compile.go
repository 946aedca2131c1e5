package profile

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"selfsame.dev/selfsame/internal/atomicfile"
	"selfsame.dev/selfsame/internal/canon"
	"selfsame.dev/selfsame/manifest"
)

// Options of [Compile].
type Options struct {
	// Durable syncs every file and folder before the profile appears. A profile that is
	// verified before each start and thrown away after it does not need that.
	Durable bool
}

// Compile writes the profile of m to target, which must not exist or be an empty folder. It is made
// in a sibling folder and renamed, so that target never shows a part of it; on an error the
// sibling is removed. Files come from template and are held against their digests while they are copied.
func Compile(m *manifest.Manifest, template manifest.Template, target string, o Options) error {
	files, err := Files(m)
	if err != nil {
		return err
	}
	return CompileFiles(files, template, target, o)
}

// CompileFiles is [Compile] with what [Files] gave.
func CompileFiles(files []File, template manifest.Template, target string, o Options) (err error) {
	if err := manifest.CheckTemplate(template); err != nil {
		return err
	}
	target = filepath.Clean(target)
	parent := filepath.Dir(target)
	work, err := os.MkdirTemp(parent, "."+filepath.Base(target)+".*")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.RemoveAll(work))
		}
	}()
	if err := write(work, files, template, o); err != nil {
		return err
	}
	// rename(2) replaces an empty folder in one step and refuses any other.
	if err := unix.Rename(work, target); err != nil {
		if errors.Is(err, unix.ENOTEMPTY) || errors.Is(err, unix.EEXIST) || errors.Is(err, unix.ENOTDIR) {
			return occupied(target)
		}
		return &os.LinkError{Op: "rename", Old: work, New: target, Err: err}
	}
	if o.Durable {
		return atomicfile.SyncDir(parent)
	}
	return nil
}

func occupied(target string) error {
	return &canon.InputError{File: target, Problem: "is not an empty folder", Fix: "give a new path, or remove what is there"}
}

// write fills the empty folder root. Modes are set after creation: the umask has no say.
func write(root string, files []File, template manifest.Template, o Options) error {
	dirs := folders(files)
	for _, dir := range dirs {
		if err := os.Mkdir(filepath.Join(root, filepath.FromSlash(dir)), 0o700); err != nil {
			return err
		}
	}
	buf := make([]byte, 64<<10)
	for _, f := range files {
		if err := put(filepath.Join(root, filepath.FromSlash(f.Path)), f, template, buf, o); err != nil {
			return err
		}
	}
	for i := len(dirs) - 1; i >= -1; i-- {
		dir := root
		if i >= 0 {
			dir = filepath.Join(root, filepath.FromSlash(dirs[i]))
		}
		if err := os.Chmod(dir, FolderMode); err != nil {
			return err
		}
		if o.Durable {
			if err := atomicfile.SyncDir(dir); err != nil {
				return err
			}
		}
	}
	return nil
}

func put(name string, f File, template manifest.Template, buf []byte, o Options) (err error) {
	out, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	if f.Data != nil {
		_, err = out.Write(f.Data)
	} else {
		err = copied(out, f, template, buf)
	}
	if err == nil {
		err = out.Chmod(f.Mode)
	}
	if err == nil && o.Durable {
		err = out.Sync()
	}
	return err
}

// copied copies a file of the template and refuses other bytes than the pinned ones.
func copied(out io.Writer, f File, template manifest.Template, buf []byte) error {
	root, ok := template.Root(f.Path)
	if !ok || root.Files == nil {
		return &canon.InputError{File: f.Path, Problem: "is missing in the profile template", Fix: "give the template of the manifest"}
	}
	in, err := root.Files.Open(f.Path)
	if errors.Is(err, fs.ErrNotExist) {
		return &canon.InputError{File: f.Path, Problem: "is missing in the profile template", Fix: "give the template of the manifest"}
	}
	if err != nil {
		return err
	}
	defer in.Close()
	sum := sha256.New()
	// One byte more than pinned is enough to see that there are more.
	size, err := io.CopyBuffer(struct{ io.Writer }{io.MultiWriter(out, sum)}, io.LimitReader(in, f.Size+1), buf)
	if err != nil {
		return err
	}
	if digest := canon.Digest(sum.Sum(nil)); size != f.Size || digest != f.Digest {
		return &canon.InputError{File: f.Path, Problem: fmt.Sprintf("has sha256 %s where the manifest pins %s", digest, f.Digest), Fix: "give the template of the manifest, or generate the manifest anew"}
	}
	return nil
}

package validate

import (
	"io"
	"os"
	"path"
)

// copyTree copies the listed entries into an empty folder. Files become 0644 or 0755.
func copyTree(from, to string, entries []Entry) error {
	src, err := os.OpenRoot(from)
	if err != nil {
		return err
	}
	defer src.Close()
	dst, err := os.OpenRoot(to)
	if err != nil {
		return err
	}
	defer dst.Close()
	for _, e := range entries {
		if dir := path.Dir(e.Path); dir != "." {
			if err := dst.MkdirAll(dir, 0o755); err != nil {
				return err
			}
		}
		if err := copyEntry(src, dst, e); err != nil {
			return err
		}
	}
	return nil
}

func copyEntry(src, dst *os.Root, e Entry) error {
	if e.Kind == Link {
		target, err := src.Readlink(e.Path)
		if err != nil {
			return err
		}
		return dst.Symlink(target, e.Path)
	}
	in, err := src.Open(e.Path)
	if err != nil {
		return err
	}
	defer in.Close()
	mode := os.FileMode(0o644)
	if e.Kind == Executable {
		mode = 0o755
	}
	out, err := dst.OpenFile(e.Path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return err
	}
	if _, err := io.Copy(out, in); err != nil {
		out.Close()
		return err
	}
	// The umask does not decide about the exec bit.
	if err := out.Chmod(mode); err != nil {
		out.Close()
		return err
	}
	return out.Close()
}

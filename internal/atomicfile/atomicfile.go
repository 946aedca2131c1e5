// Package atomicfile writes files that appear whole or not at all.
package atomicfile

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// Write puts data at path with the given mode, as [Create] does.
func Write(path string, data []byte, mode os.FileMode) error {
	return Create(path, mode, func(w io.Writer) error {
		_, err := w.Write(data)
		return err
	})
}

// Create puts what fill writes at path with the given mode: a temporary sibling is written, synced and
// renamed, then the folder is synced. On an error path keeps what it had and the sibling is gone.
// Only a regular file is replaced: a rename over a device, a FIFO or a link would destroy it.
func Create(path string, mode os.FileMode, fill func(io.Writer) error) error {
	temp, err := stage(path, mode, fill)
	if err != nil {
		return err
	}
	if err := os.Rename(temp, path); err != nil {
		return errors.Join(err, os.Remove(temp))
	}
	return SyncDir(filepath.Dir(path))
}

// File is one of several that belong together.
type File struct {
	Path string
	Data []byte
}

// WriteAll puts every file at its path with the given mode, in order, after all of them have been written
// beside their paths: what a full disk or a bad path stops changes none of them. (A rename that is then
// refused, as in another user's sticky folder, comes too late for that.)
func WriteAll(mode os.FileMode, files ...File) (err error) {
	var temps []string
	defer func() {
		for _, temp := range temps {
			err = errors.Join(err, os.Remove(temp))
		}
	}()
	for i, f := range files {
		for _, other := range files[:i] {
			if filepath.Clean(f.Path) == filepath.Clean(other.Path) {
				return fmt.Errorf("%s is named for two files: name another path", f.Path)
			}
		}
		temp, err := stage(f.Path, mode, func(w io.Writer) error {
			_, err := w.Write(f.Data)
			return err
		})
		if err != nil {
			return err
		}
		temps = append(temps, temp)
	}
	for _, f := range files {
		if err := os.Rename(temps[0], f.Path); err != nil {
			return err
		}
		temps = temps[1:]
		if err := SyncDir(filepath.Dir(f.Path)); err != nil {
			return err
		}
	}
	return nil
}

// Writable reports what [Create] would refuse, ahead of work whose result is to be put at path.
func Writable(path string) error {
	temp, err := stage(path, 0o600, func(io.Writer) error { return nil })
	if err != nil {
		return err
	}
	return os.Remove(temp)
}

// stage writes the temporary sibling; on an error it is gone again.
func stage(path string, mode os.FileMode, fill func(io.Writer) error) (string, error) {
	if info, err := os.Lstat(path); err == nil && !info.Mode().IsRegular() {
		return "", fmt.Errorf("%s is no regular file (%s), and would be replaced: name another path", path, info.Mode().Type())
	} else if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", err
	}
	file, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*")
	var failed *fs.PathError
	if errors.As(err, &failed) { // not the name of a file that nobody asked for
		return "", fmt.Errorf("%s cannot be written: %w", path, failed.Err)
	}
	if err != nil {
		return "", err
	}
	err = fill(file)
	if err == nil {
		err = errors.Join(file.Chmod(mode), file.Sync())
	}
	if err = errors.Join(err, file.Close()); err != nil {
		return "", errors.Join(err, os.Remove(file.Name()))
	}
	return file.Name(), nil
}

// SyncDir makes the entries of a folder durable.
func SyncDir(dir string) error {
	handle, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(handle.Sync(), handle.Close())
}

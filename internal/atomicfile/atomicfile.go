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
	if info, err := os.Lstat(path); err == nil && !info.Mode().IsRegular() {
		return fmt.Errorf("%s is no regular file (%s), and would be replaced: name another path", path, info.Mode().Type())
	} else if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	dir := filepath.Dir(path)
	file, err := os.CreateTemp(dir, "."+filepath.Base(path)+".*")
	var failed *fs.PathError
	if errors.As(err, &failed) { // not the name of a file that nobody asked for
		return fmt.Errorf("%s cannot be written: %w", path, failed.Err)
	}
	if err != nil {
		return err
	}
	err = fill(file)
	if err == nil {
		err = errors.Join(file.Chmod(mode), file.Sync())
	}
	err = errors.Join(err, file.Close())
	if err == nil {
		err = os.Rename(file.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(file.Name()))
	}
	return SyncDir(dir)
}

// SyncDir makes the entries of a folder durable.
func SyncDir(dir string) error {
	handle, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(handle.Sync(), handle.Close())
}

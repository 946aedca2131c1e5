// Package atomicfile writes files that appear whole or not at all.
package atomicfile

import (
	"errors"
	"os"
	"path/filepath"
)

// Write puts data at path with the given mode: a temporary sibling is written, synced and
// renamed, then the folder is synced. On an error path keeps what it had and the sibling is gone.
func Write(path string, data []byte, mode os.FileMode) error {
	dir := filepath.Dir(path)
	file, err := os.CreateTemp(dir, "."+filepath.Base(path)+".*")
	if err != nil {
		return err
	}
	_, err = file.Write(data)
	err = errors.Join(err, file.Chmod(mode), file.Sync(), file.Close())
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

package source

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"selfsame.dev/selfsame/internal/canon"
)

const keyBytes = 32

// Key reads the local key of the operational observation from a file that only its owner may
// read, and makes the file with 32 random bytes when there is none. The key is in no output.
func Key(file string) ([]byte, error) {
	info, err := os.Lstat(file)
	if errors.Is(err, fs.ErrNotExist) {
		return makeKey(file)
	}
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() || info.Mode().Perm()&0o077 != 0 {
		return nil, &canon.InputError{File: file, Problem: fmt.Sprintf("has mode %v; a key is a regular file for its owner alone", info.Mode()), Fix: "chmod 600 it, or remove it to get a new one"}
	}
	key, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	if len(key) != keyBytes {
		return nil, &canon.InputError{File: file, Problem: fmt.Sprintf("holds %d bytes, not the %d of a key", len(key), keyBytes), Fix: "remove it to get a new one"}
	}
	return key, nil
}

func makeKey(file string) ([]byte, error) {
	key := make([]byte, keyBytes)
	if _, err := rand.Read(key); err != nil {
		return nil, err
	}
	f, err := os.OpenFile(file, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, err
	}
	_, err = f.Write(key)
	if err := errors.Join(err, f.Sync(), f.Close()); err != nil {
		return nil, errors.Join(err, os.Remove(file))
	}
	return key, nil
}

package validate

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"selfsame.dev/selfsame/internal/atomicfile"
	"selfsame.dev/selfsame/internal/canon"
)

const intentSuffix = ".intent"

// SnapshotIntent stores the raw bytes of an intent as <sha256>.intent in the folder, which
// it makes if need be. The bytes are never parsed: two spellings of one value are two intents
// (law R2). Storing the same bytes again changes nothing; a stored file whose bytes are not
// those of its name is refused and left alone.
func SnapshotIntent(dir string, raw []byte) (path string, digest canon.Digest, err error) {
	digest = canon.Sum(raw)
	path = filepath.Join(dir, digest.String()+intentSuffix)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", digest, err
	}
	switch stored, err := os.ReadFile(path); {
	case err == nil && bytes.Equal(stored, raw):
		return path, digest, nil
	case err == nil:
		return "", digest, &canon.InputError{File: path, Problem: "the stored bytes are not those of its name", Fix: "remove the damaged file"}
	case !errors.Is(err, fs.ErrNotExist):
		return "", digest, err
	}
	return path, digest, atomicfile.Write(path, raw, 0o444)
}

// ReadIntent reads a stored intent and derives its digest again from the bytes; a file
// whose name says another one is refused.
func ReadIntent(path string) ([]byte, canon.Digest, error) {
	raw, err := os.ReadFile(path)
	if err != nil {
		return nil, canon.Digest{}, err
	}
	digest := canon.Sum(raw)
	if want := digest.String() + intentSuffix; filepath.Base(path) != want {
		return nil, digest, &canon.InputError{File: path, Problem: fmt.Sprintf("its bytes have the digest %s", digest), Fix: "store intents with selfsame rpi intent, and never edit them"}
	}
	return raw, digest, nil
}

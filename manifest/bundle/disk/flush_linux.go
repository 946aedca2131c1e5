package disk

import (
	"io/fs"
	"os"

	"golang.org/x/sys/unix"
)

// flush puts the file system that f is on, and with it all that was extracted, on disk: one call in place of one a file.
func flush(f *os.File) error {
	if err := unix.Syncfs(int(f.Fd())); err != nil {
		return &fs.PathError{Op: "syncfs", Path: f.Name(), Err: err}
	}
	return nil
}

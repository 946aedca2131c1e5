// Package disk makes source bundles of folders and folders of source bundles.
package disk

import (
	"io"
	"os"

	"golang.org/x/sys/unix"

	"selfsame.dev/selfsame/internal/canon"
	"selfsame.dev/selfsame/internal/tree"
	"selfsame.dev/selfsame/internal/tree/disk"
	"selfsame.dev/selfsame/manifest/bundle"
)

// Create writes the canonical bytes of the files that the selection selects in the folder root. The folder is read
// twice: for its digests, as [disk.Hash] does and with its refusals, and for its contents, which
// must then have these digests.
func Create(w io.Writer, root string, selection tree.Selection) (bundle.Summary, error) {
	entries, err := disk.Hash(root, disk.Options{Selection: selection})
	if err != nil {
		return bundle.Summary{}, err
	}
	folder, err := os.OpenRoot(root)
	if err != nil {
		return bundle.Summary{}, err
	}
	defer folder.Close()
	return bundle.Write(w, entries, func(path string) (io.ReadCloser, error) {
		// A FIFO that took the place of the file must not make this wait.
		f, err := folder.OpenFile(path, os.O_RDONLY|unix.O_NONBLOCK, 0)
		if err != nil {
			return nil, err
		}
		if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
			f.Close()
			return nil, &canon.InputError{Key: tree.Display(path), Problem: "changed while it was read", Fix: "bundle the tree when nothing writes to it"}
		}
		return f, nil
	})
}

//go:build !linux

package disk

import (
	"crypto/sha256"
	"hash"
	"os"

	"selfsame.dev/selfsame/internal/tree"
)

func hashTree(root string, selector *tree.Selector, opts Options, faults *faults) []tree.Entry {
	return hashTreePlain(root, selector, opts, faults)
}

type hasher struct {
	opts Options
	hash hash.Hash
	buffer
}

func newHasher(opts Options) hasher {
	return hasher{opts, sha256.New(), newBuffer()}
}

func (h *hasher) at(name string, entry *tree.Entry) error {
	return hashFilePlain(entry, name, os.Lstat, os.Open, h.opts, h.hash, h.buf[:])
}

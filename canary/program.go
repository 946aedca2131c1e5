package canary

import (
	"crypto/sha256"
	"io"
	"os"

	"selfsame.dev/selfsame/internal/canon"
)

// digestFile returns the digest of a program, through links.
func digestFile(name string) (d canon.Digest, err error) {
	f, err := os.Open(name)
	if err != nil {
		return d, err
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.CopyBuffer(struct{ io.Writer }{h}, struct{ io.Reader }{f}, make([]byte, 128<<10)); err != nil {
		return d, err
	}
	return canon.Digest(h.Sum(nil)), nil
}

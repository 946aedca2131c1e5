package bundle

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io"

	"selfsame.dev/selfsame/internal/canon"
	"selfsame.dev/selfsame/internal/tree"
)

// Write writes the canonical bytes of the files in entries, which are in byte order of path, and takes
// their contents from open. Names and order are held against the rules of trees, contents against size and
// digest; what differs is refused with a [*canon.InputError], and w has then got a part of a bundle.
func Write(w io.Writer, entries []tree.Entry, open func(path string) (io.ReadCloser, error)) (Summary, error) {
	var h Header
	b := tree.NewBuilder()
	for _, e := range entries {
		if err := b.Add(e); err != nil {
			return Summary{}, err
		}
		h.PathBytes += int64(len(e.Path))
	}
	h.Tree = b.Summary()
	sum := sha256.New()
	out := &counter{w: io.MultiWriter(w, sum)}
	if _, err := out.Write(h.text()); err != nil {
		return Summary{}, err
	}
	buf := make([]byte, bufferSize)
	for _, e := range entries {
		if _, err := out.Write(line(e)); err != nil {
			return Summary{}, err
		}
		if err := content(out, e, open, buf); err != nil {
			return Summary{}, err
		}
	}
	return Summary{canon.Digest(sum.Sum(nil)), out.n, h.Tree}, nil
}

// bufferSize is in bytes; it holds the longest line.
const bufferSize = 128 << 10

func content(w io.Writer, e tree.Entry, open func(string) (io.ReadCloser, error), buf []byte) (err error) {
	in, err := open(e.Path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, in.Close()) }()
	sum := sha256.New()
	n, err := io.CopyBuffer(struct{ io.Writer }{io.MultiWriter(w, sum)}, struct{ io.Reader }{io.LimitReader(in, e.Size)}, buf)
	if err != nil {
		return fmt.Errorf("%s: %w", tree.Display(e.Path), err)
	}
	more, err := io.ReadFull(in, buf[:1]) // one byte is enough to see that there are more
	if err != nil && err != io.EOF {
		return fmt.Errorf("%s: %w", tree.Display(e.Path), err)
	}
	if n != e.Size || more > 0 || canon.Digest(sum.Sum(nil)) != e.Digest {
		return refuse(tree.Display(e.Path), "changed while it was read", "bundle the tree when nothing writes to it")
	}
	return nil
}

type counter struct {
	w io.Writer
	n int64
}

func (c *counter) Write(p []byte) (int, error) {
	n, err := c.w.Write(p)
	c.n += int64(n)
	return n, err
}

package bundle

import (
	"bufio"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"io"
	"strings"

	"selfsame.dev/selfsame/internal/canon"
	"selfsame.dev/selfsame/internal/tree"
)

// Reader reads canonical bytes. What is malformed or breaks a bound is refused with a
// [*canon.InputError], as soon as it is seen; no error is recovered from. Only when [Reader.Next] has
// returned io.EOF is the bundle known to be whole and true.
type Reader struct {
	in     *bufio.Reader
	sum    hash.Hash // of all that in has read
	n      counter
	header Header

	tree                *tree.Builder
	files, bytes, paths int64 // of the files so far, as the header counts them

	entry   tree.Entry // the current file
	left    int64      // bytes of its content that were not read
	content hash.Hash
	err     error
}

// NewReader reads the header from r, which must be within limits.
func NewReader(r io.Reader, limits Limits) (*Reader, error) {
	b := &Reader{sum: sha256.New(), content: sha256.New(), tree: tree.NewBuilder()}
	b.n.w = b.sum
	b.in = bufio.NewReaderSize(io.TeeReader(r, &b.n), bufferSize)
	first, err := b.in.Peek(len(Format) + 1)
	if !strings.HasPrefix(Format+"\n", string(first)) {
		return nil, refuse("", fmt.Sprintf("begins with %q, not with %s", first, Format), "give a bundle of selfsame bundle create")
	}
	if _, err = b.line(); err != nil {
		return nil, err
	}
	var files int64
	for _, field := range []struct {
		key   string
		to    *int64
		limit int64
	}{{"files", &files, limits.Files}, {"bytes", &b.header.Tree.TotalBytes, limits.Bytes}, {"path_bytes", &b.header.PathBytes, limits.PathBytes}} {
		text, err := b.field(field.key)
		if err != nil {
			return nil, err
		}
		if *field.to, err = number(text); err != nil {
			return nil, refuse(field.key, err.Error(), damaged)
		}
		if *field.to > field.limit {
			return nil, refuse(field.key, fmt.Sprintf("declares %d, the limit is %d", *field.to, field.limit), "raise the limit, if the bundle is meant to be this large")
		}
	}
	b.header.Tree.FileCount = int(files)
	text, err := b.field("tree")
	if err != nil {
		return nil, err
	}
	if b.header.Tree.Digest, err = canon.ParseDigest(text); err != nil {
		return nil, refuse("tree", err.Error(), damaged)
	}
	return b, nil
}

// Header returns what the bundle declares.
func (b *Reader) Header() Header { return b.header }

// Next goes to the next file, past what was not read of the current one. After the last file it returns
// io.EOF, if nothing follows and all sums are as declared.
func (b *Reader) Next() (tree.Entry, error) {
	if b.err == nil {
		_, b.err = io.Copy(io.Discard, struct{ io.Reader }{b}) // which also checks it
	}
	if b.err == nil {
		b.err = b.next()
	}
	return b.entry, b.err
}

func (b *Reader) next() error {
	b.entry = tree.Entry{}
	if b.files == int64(b.header.Tree.FileCount) {
		return b.end()
	}
	text, err := b.line()
	if err != nil {
		return err
	}
	e, err := parseLine(text)
	if err != nil {
		return err
	}
	b.files++
	b.paths += int64(len(e.Path))
	switch {
	case e.Size > b.header.Tree.TotalBytes-b.bytes:
		return refuse(tree.Display(e.Path), fmt.Sprintf("takes the sum of sizes over the declared %d bytes", b.header.Tree.TotalBytes), damaged)
	case b.paths > b.header.PathBytes:
		return refuse(tree.Display(e.Path), fmt.Sprintf("takes the paths over the declared %d bytes", b.header.PathBytes), damaged)
	}
	if err := b.tree.Add(e); err != nil {
		return err
	}
	b.bytes += e.Size
	b.entry, b.left = e, e.Size
	b.content.Reset()
	if e.Size == 0 {
		return b.check()
	}
	return nil
}

// Read reads the content of the current file. The error after its last byte is io.EOF only if
// the content has its digest; what was read before that is not to be used.
func (b *Reader) Read(p []byte) (int, error) {
	if b.err != nil {
		return 0, b.err
	}
	if b.left == 0 {
		return 0, io.EOF
	}
	n, err := b.in.Read(p[:min(int64(len(p)), b.left)])
	b.content.Write(p[:n])
	b.left -= int64(n)
	switch {
	case n > 0 && b.left == 0:
		b.err = b.check()
	case err != nil:
		b.err = ended(err)
	}
	return n, b.err
}

func (b *Reader) check() error {
	if sum := canon.Digest(b.content.Sum(nil)); sum != b.entry.Digest {
		return refuse(tree.Display(b.entry.Path), fmt.Sprintf("has sha256 %s where the bundle says %s", sum, b.entry.Digest), damaged)
	}
	return nil
}

func (b *Reader) end() error {
	switch _, err := b.in.ReadByte(); {
	case err == nil:
		return refuse("", "data follows the last file", damaged)
	case err != io.EOF:
		return err
	}
	h := b.header
	for _, field := range []struct {
		key              string
		declared, actual any
	}{{"bytes", h.Tree.TotalBytes, b.bytes}, {"path_bytes", h.PathBytes, b.paths}, {"tree", h.Tree.Digest, b.tree.Summary().Digest}} {
		if field.declared != field.actual {
			return refuse(field.key, fmt.Sprintf("declares %v, the files give %v", field.declared, field.actual), damaged)
		}
	}
	return io.EOF
}

// Summary returns what the whole bundle is; before [Reader.Next] has returned io.EOF it has no meaning.
func (b *Reader) Summary() Summary {
	return Summary{canon.Digest(b.sum.Sum(nil)), b.n.n, b.header.Tree}
}

// field reads a line of the header.
func (b *Reader) field(key string) (string, error) {
	text, err := b.line()
	if err != nil {
		return "", err
	}
	if len(text) <= len(key) || text[:len(key)+1] != key+" " {
		return "", refuse(key, fmt.Sprintf("the header has the line %.40q in its place", text), damaged)
	}
	return text[len(key)+1:], nil
}

func (b *Reader) line() (string, error) {
	text, err := b.in.ReadSlice('\n')
	if err != nil && err != bufio.ErrBufferFull {
		return "", ended(err)
	}
	if len(text) > maxLine {
		return "", refuse("", fmt.Sprintf("a line is longer than %d bytes", maxLine), damaged)
	}
	return string(text[:len(text)-1]), nil
}

// ended makes a refusal of an end that is too early.
func ended(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return refuse("", "ends too early", damaged)
	}
	return err
}

// Verify reads the whole bundle, compressed or not, and returns its summary.
func Verify(r io.Reader, limits Limits) (Summary, error) {
	plain, err := Decompress(r)
	if err != nil {
		return Summary{}, err
	}
	defer plain.Close()
	b, err := NewReader(plain, limits)
	if err != nil {
		return Summary{}, err
	}
	for {
		if _, err := b.Next(); err == io.EOF {
			return b.Summary(), nil
		} else if err != nil {
			return Summary{}, err
		}
	}
}

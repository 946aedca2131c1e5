package bundle

import (
	"bufio"
	"encoding/binary"
	"errors"
	"io"

	"github.com/klauspost/compress/zstd"
)

// Levels are the names of the ways to compress, from the fastest; "none" leaves the bytes as they are.
var Levels = []string{"none", "fastest", "default", "better", "best"}

const (
	// writeWindow is in bytes: what every decoder should support (RFC 8878, 3.1.1.1.2).
	writeWindow = 8 << 20
	// readWindow is in bytes: as much as the reference decoder takes unasked.
	readWindow = 128 << 20
)

// Compress returns a writer of compressed bytes to w, which must be closed and does not close w.
func Compress(w io.Writer, level string) (io.WriteCloser, error) {
	if level == "none" {
		return nopCloser{w}, nil
	}
	ok, parsed := zstd.EncoderLevelFromString(level)
	if !ok {
		return nil, errors.New("unknown compression level " + level)
	}
	return zstd.NewWriter(w, zstd.WithEncoderLevel(parsed), zstd.WithWindowSize(writeWindow), zstd.WithEncoderCRC(true), zstd.WithEncoderConcurrency(1))
}

type nopCloser struct{ io.Writer }

func (nopCloser) Close() error { return nil }

// Decompress returns the bytes of r as they were before compression, or as they are if it is not compressed.
// Reading them refuses damaged data with a [*canon.InputError].
func Decompress(r io.Reader) (io.ReadCloser, error) {
	in := &source{r: r}
	buffered := bufio.NewReader(in)
	magic, err := buffered.Peek(4)
	if err != nil && err != io.EOF {
		return nil, err
	}
	if !compressed(magic) {
		return io.NopCloser(buffered), nil
	}
	// One decoder works in step with its reader: no more is read, or kept, than is asked for.
	d, err := zstd.NewReader(buffered, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxWindow(readWindow))
	if err != nil {
		return nil, err
	}
	return &decompressed{in, d}, nil
}

// compressed reports whether magic begins a Zstandard frame or a skippable one.
func compressed(magic []byte) bool {
	if len(magic) < 4 {
		return false
	}
	n := binary.LittleEndian.Uint32(magic)
	return n == 0xfd2fb528 || n&^0xf == 0x184d2a50
}

// source remembers why it could not be read, which is not the fault of the data.
type source struct {
	r   io.Reader
	err error
}

func (s *source) Read(p []byte) (int, error) {
	n, err := s.r.Read(p)
	if err != nil && err != io.EOF {
		s.err = err
	}
	return n, err
}

type decompressed struct {
	in      *source
	decoder *zstd.Decoder
}

func (d *decompressed) Read(p []byte) (int, error) {
	n, err := d.decoder.Read(p)
	switch {
	case err == nil || err == io.EOF:
		return n, err
	case d.in.err != nil:
		return n, d.in.err
	case errors.Is(err, zstd.ErrWindowSizeExceeded):
		return n, refuse("", "is compressed with a window of more than 128 MiB", "compress it anew, without zstd --long; that does not change its identity")
	}
	return n, refuse("", "the compressed data is damaged: "+err.Error(), damaged)
}

func (d *decompressed) Close() error {
	d.decoder.Close()
	return nil
}

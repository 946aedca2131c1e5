package execlog

import (
	"bufio"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"

	"github.com/klauspost/compress/zstd"

	"selfsame.dev/selfsame/internal/canon"
)

// Encodings of a log, by the flag of Bazel that writes it.
const (
	Compact = "compact" // --execution_log_compact_file
	Binary  = "binary"  // --execution_log_binary_file
	JSON    = "json"    // --execution_log_json_file
)

// Source is a log; it is read once, from its beginning to its end. Modes are those that the build saw, nil where they
// are not known.
type Source struct {
	Name   string
	Reader io.Reader
	Modes  Modes
}

// Limits bound what a log may cost, however small its file is.
type Limits struct {
	Bytes  int64 // of one log, uncompressed
	Entry  int   // bytes of one entry
	Kept   int64 // bytes of distinct text of both logs together
	Window int   // bytes that a decompressor may look back
}

// DefaultLimits hold for a [Limits] of zeros.
var DefaultLimits = Limits{Bytes: 64 << 30, Entry: 64 << 20, Kept: 2 << 30, Window: 32 << 20}

// spawn is one action that ran, or whose outputs came from a cache.
type spawn struct {
	label, mnemonic      ref
	args, env, platform  ref // lists: text, or names and values
	inputs, tools        ref // sets
	outputs              ref // set
	listed               ref // list of paths, sorted
	status, runner       ref
	exit                 int32
	timeout              int64 // milliseconds
	remotable, cacheable bool
	remoteCacheable      bool
	cacheHit             bool
}

// symlink is an action of Bazel itself that makes out a link to in.
type symlink struct{ in, out, label, mnemonic ref }

// log is what is kept of a log.
type log struct {
	name         string
	encoding     string
	compressed   bool
	sha256       canon.Digest
	hashFunction string
	workspace    string // name of the main repository's runfiles folder
	spawns       []spawn
	symlinks     []symlink
	modes        Modes
	unknown      map[int]int // kinds of entries that this reader does not know
}

// expanded reports that inputs are listed file by file.
func (l *log) expanded() bool { return l.encoding != Compact }

// reader decodes one log into a store.
type reader struct {
	*store
	log    *log
	limits Limits
	entry  int   // number of the entry that is read, from 1
	at     int64 // bytes read, uncompressed
	ids    map[uint32]ref
	// folders are the paths of those entries that are folders: what is kept of them are their files.
	folders map[uint32]ref
	refs    []ref
	nums    []uint32
	raw     []byte
}

// read decodes a log. Errors are [*canon.InputError] unless the source itself cannot be read.
func read(src Source, st *store, limits Limits) (*log, error) {
	in := &counted{r: src.Reader, hash: sha256.New()}
	r := &reader{store: st, limits: limits, log: &log{name: src.Name, modes: src.Modes, workspace: "_main", unknown: map[int]int{}}, ids: map[uint32]ref{}, folders: map[uint32]ref{}}
	err := r.read(in)
	if in.err != nil { // not the fault of the data
		return nil, fmt.Errorf("%s: %w", src.Name, in.err)
	}
	if err != nil {
		return nil, canon.InFile(src.Name, err)
	}
	if len(r.log.spawns) == 0 {
		return nil, &canon.InputError{File: src.Name, Problem: "holds no action that ran", Fix: "Bazel logs only what it runs: make the log after bazel clean, or with a new --output_base"}
	}
	in.hash.Sum(r.log.sha256[:0])
	return r.log, nil
}

func (r *reader) read(in *counted) error {
	buffered := bufio.NewReaderSize(in, 1<<16)
	magic, err := buffered.Peek(4)
	if len(magic) == 0 {
		return r.refuse("is empty", "Bazel completes the log when the build ends, and logs only what it runs: build after bazel clean, with one of --execution_log_compact_file, --execution_log_json_file")
	}
	var data io.Reader = buffered
	if err == nil && binary.LittleEndian.Uint32(magic) == 0xfd2fb528 {
		r.log.compressed = true
		d, err := zstd.NewReader(buffered, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxWindow(uint64(r.limits.Window)))
		if err != nil {
			return err
		}
		defer d.Close()
		data = d
	}
	bounded := bufio.NewReaderSize(&limited{r: data, left: r.limits.Bytes}, 1<<16)
	head, err := bounded.Peek(16)
	if len(head) == 0 {
		if err == io.EOF {
			return r.refuse("is empty", "Bazel completes the log when the build ends: build again, and copy the log afterwards")
		}
		r.entry = 1
		return r.damage(err)
	}
	switch r.log.encoding = recognise(head); r.log.encoding {
	case JSON:
		err = r.objects(bounded)
	case Binary:
		err = r.delimited(bounded, r.spawnExec)
	case Compact:
		err = r.delimited(bounded, r.compact)
	default:
		return r.refuse("is no execution log of Bazel", "give a file that --execution_log_compact_file or --execution_log_json_file wrote")
	}
	if err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, in) // the digest is that of the whole file
	return err
}

// recognise says how a log is encoded, by how it begins.
func recognise(head []byte) string {
	trimmed := head
	for len(trimmed) > 0 && (trimmed[0] == ' ' || trimmed[0] == '\n' || trimmed[0] == '\r' || trimmed[0] == '\t') {
		trimmed = trimmed[1:]
	}
	size, n := binary.Uvarint(head)
	switch {
	case len(trimmed) > 0 && trimmed[0] == '{' && !(head[0] == '\n' && head[1] == 0x12):
		return JSON
	case n <= 0 || size == 0 || n == len(head):
		return ""
	}
	// SpawnExec begins with its command, a string in field 1; ExecLogEntry has a number there, and its payload after.
	switch key := head[n]; {
	case key == 1<<3|wireBytes:
		return Binary
	case key == 1<<3|wireVarint, key&7 == wireBytes && key>>3 >= 2 && key>>3 <= 15:
		return Compact
	}
	return ""
}

// delimited reads messages, each after its length.
func (r *reader) delimited(in *bufio.Reader, decode func([]byte) error) error {
	var buf []byte
	for {
		r.entry++
		size, n, err := uvarint(in)
		if err == io.EOF && n == 0 {
			return nil
		}
		if err != nil {
			return r.damage(err)
		}
		begin := r.at
		r.at += int64(n)
		if size == 0 {
			return r.refuseAt(begin, "is empty", "make the log anew")
		}
		if size > uint64(r.limits.Entry) {
			return r.refuseAt(begin, fmt.Sprintf("claims %d bytes, over the limit of %d", size, r.limits.Entry), "give the file as Bazel wrote it")
		}
		if uint64(cap(buf)) < size {
			// Grown by what arrives: a claim alone costs nothing.
			buf = make([]byte, 0, min(size, 1<<16))
		}
		buf = buf[:0]
		for uint64(len(buf)) < size {
			step := int(min(size-uint64(len(buf)), uint64(max(len(buf), 1<<16))))
			have := len(buf)
			buf = append(buf, make([]byte, step)...)
			if _, err := io.ReadFull(in, buf[have:]); err != nil {
				return r.damage(err)
			}
		}
		r.at += int64(size)
		if err := decode(buf); err != nil {
			var input *canon.InputError
			if errors.As(err, &input) {
				return err
			}
			return r.refuseAt(begin, err.Error(), "give the file as Bazel wrote it; logs of Bazel 7.1 and later are read")
		}
		if r.full() {
			return r.tooMuch()
		}
	}
}

func uvarint(in *bufio.Reader) (v uint64, n int, err error) {
	for ; n < binary.MaxVarintLen64; n++ {
		b, err := in.ReadByte()
		if err != nil {
			return 0, n, err
		}
		v |= uint64(b&0x7f) << (7 * n)
		if b < 0x80 {
			return v, n + 1, nil
		}
	}
	return 0, n, errWire
}

func (r *reader) tooMuch() error {
	return r.refuse(fmt.Sprintf("both logs hold more than %d MiB of distinct text", r.limits.Kept>>20), "build fewer targets, and compare those")
}

func (r *reader) refuse(problem, fix string) error {
	return &canon.InputError{Problem: problem, Fix: fix}
}

func (r *reader) refuseAt(offset int64, problem, fix string) error {
	return &canon.InputError{Key: fmt.Sprintf("entry %d at byte %d", r.entry, offset), Problem: problem, Fix: fix}
}

var errTooLong = errors.New("too long")

// damage is what an error of reading means.
func (r *reader) damage(err error) error {
	const again = "copy the log after the build has ended, and whole"
	what := "of the log"
	if r.log.compressed {
		what = "of the uncompressed log"
	}
	key := fmt.Sprintf("entry %d at byte %d %s", r.entry, r.at, what)
	switch {
	case errors.Is(err, errTooLong):
		return r.refuse(fmt.Sprintf("holds more than %d MiB uncompressed", r.limits.Bytes>>20), "build fewer targets, or use --execution_log_compact_file")
	case errors.Is(err, zstd.ErrWindowSizeExceeded), errors.Is(err, zstd.ErrDecoderSizeExceeded):
		return r.refuse(fmt.Sprintf("is compressed with a window of more than %d MiB", r.limits.Window>>20), "give the file as Bazel wrote it")
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return &canon.InputError{Key: key, Problem: "the log ends in the middle of an entry", Fix: again}
	}
	return &canon.InputError{Key: key, Problem: "the data is damaged: " + err.Error(), Fix: again}
}

// counted is the file itself: its digest, and why it could not be read.
type counted struct {
	r    io.Reader
	hash hash.Hash
	err  error
}

func (c *counted) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	c.hash.Write(p[:n])
	if err != nil && err != io.EOF {
		c.err = err
	}
	return n, err
}

type limited struct {
	r    io.Reader
	left int64
}

func (l *limited) Read(p []byte) (int, error) {
	n, err := l.r.Read(p)
	if l.left -= int64(n); l.left < 0 {
		return 0, errTooLong
	}
	return n, err
}

var errDigest = errors.New("has a digest that is not hexadecimal")

// digest keeps a digest of hexadecimal digits, which is half as long raw.
func (r *reader) digest(text []byte) (ref, error) {
	r.raw = append(r.raw[:0], make([]byte, len(text)/2)...)
	if _, err := hex.Decode(r.raw, text); err != nil {
		return 0, errDigest
	}
	return r.keep(r.raw), nil
}

// seen holds every digest of a log to one function.
func (r *reader) seen(function string) error {
	if function == "" || function == r.log.hashFunction {
		return nil
	}
	if r.log.hashFunction != "" {
		return fmt.Errorf("has digests of %s, others of %s", function, r.log.hashFunction)
	}
	r.log.hashFunction = function
	return nil
}

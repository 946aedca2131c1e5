package bundle_test

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"runtime"
	"strings"
	"testing"

	"selfsame.dev/selfsame/internal/canon"
	"selfsame.dev/selfsame/internal/tree"
	"selfsame.dev/selfsame/manifest/bundle"
)

// zeros is n bytes of content that nobody stores.
type zeros struct{ n int64 }

func (z *zeros) Read(p []byte) (int, error) {
	if z.n == 0 {
		return 0, io.EOF
	}
	p = p[:min(int64(len(p)), z.n)]
	clear(p)
	z.n -= int64(len(p))
	return len(p), nil
}

// peak is the greatest heap, in bytes above that at the start, seen when its reader is read.
type peak struct {
	r           io.Reader
	start, most uint64
	reads       int
}

func watch(r io.Reader) *peak {
	runtime.GC()
	p := &peak{r: r}
	p.start = p.now()
	return p
}

func (p *peak) now() uint64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapInuse
}

func (p *peak) Read(b []byte) (int, error) {
	if p.reads++; p.reads%16 == 0 {
		p.look()
	}
	return p.r.Read(b)
}

func (p *peak) look() {
	if now := p.now(); now > p.start+p.most {
		p.most = now - p.start
	}
}

// A bundle is written and read in memory that depends neither on sizes nor on the number of folders.
func TestMemory(t *testing.T) {
	const limit = 96 << 20 // bytes: windows of 8 MiB on both sides and buffers, about 30 MB, doubled by garbage
	const size = 128 << 20 // of one file
	sum := sha256.New()
	if _, err := io.Copy(sum, &zeros{size}); err != nil {
		t.Fatal(err)
	}
	large := []tree.Entry{{Path: "large", Size: size, Digest: canon.Digest(sum.Sum(nil))}}
	var many []tree.Entry
	for i := range 60_000 {
		many = append(many, tree.Entry{Path: fmt.Sprintf("%s%03d/%03d/file", strings.Repeat("folder/", 20), i/250, i%250), Size: 0, Digest: canon.Sum(nil)})
	}
	for name, entries := range map[string][]tree.Entry{"one large file": large, "many folders": many} {
		t.Run(name, func(t *testing.T) {
			r, w := io.Pipe()
			p := watch(r)
			go func() {
				packed, err := bundle.Compress(w, "fastest")
				if err == nil {
					_, err = bundle.Write(packed, entries, func(path string) (io.ReadCloser, error) {
						return io.NopCloser(&zeros{entries[0].Size}), nil
					})
					err = errors.Join(err, packed.Close())
				}
				w.CloseWithError(err)
			}()
			s, err := bundle.Verify(p, bundle.DefaultLimits)
			p.look()
			if err != nil || s.Tree.FileCount != len(entries) {
				t.Fatalf("%+v, %v", s, err)
			}
			t.Logf("%d canonical bytes, peak %.1f MB", s.Size, float64(p.most)/1e6)
			if p.most > limit {
				t.Errorf("peak is %d bytes, the limit is %d", p.most, limit)
			}
		})
	}
	t.Run("control", func(t *testing.T) {
		p := watch(&zeros{size})
		data, err := io.ReadAll(p)
		if err != nil || len(data) != size || p.most <= limit {
			t.Errorf("%d bytes in memory show as %d, %v", len(data), p.most, err)
		}
	})
}

// A compressed bomb stops at the bounds it declares, and at those of the reader.
func TestBomb(t *testing.T) {
	const size = 64 << 20
	head := func(declared int64) string {
		return fmt.Sprintf("%s\nfiles 1\nbytes %d\npath_bytes 1\ntree %s\n%s %d x\n", bundle.Format, declared, canon.Sum(nil), canon.Sum(nil), declared)
	}
	for _, tc := range []struct {
		name, text, problem string
	}{
		{"content behind a small declaration", head(10), "where the bundle says"},
		{"declared over the limit", head(bundle.DefaultLimits.Bytes + 1), "the limit is"},
		{"a line without an end", bundle.Format + "\nfiles ", "longer than"},
	} {
		var packed bytes.Buffer
		w, err := bundle.Compress(&packed, "fastest")
		if err != nil {
			t.Fatal(err)
		}
		_, err = io.Copy(w, io.MultiReader(strings.NewReader(tc.text), &zeros{size}))
		if err := errors.Join(err, w.Close()); err != nil {
			t.Fatal(err)
		}
		if packed.Len() > size/1000 {
			t.Fatalf("control: %d bytes are no bomb", packed.Len())
		}
		plain, err := bundle.Decompress(&packed)
		if err != nil {
			t.Fatal(err)
		}
		read := &counted{r: plain}
		b, err := bundle.NewReader(read, bundle.DefaultLimits)
		for err == nil {
			_, err = b.Next()
		}
		plain.Close()
		refused(t, err, tc.problem)
		if read.n > 1<<20 {
			t.Errorf("%s: refused after %d bytes", tc.name, read.n)
		}
	}
}

type counted struct {
	r io.Reader
	n int
}

func (c *counted) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	c.n += n
	return n, err
}

package execlog

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"os"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/klauspost/compress/zstd"

	"selfsame.dev/selfsame/internal/canon"
)

func compareBytes(t *testing.T, a, b []byte) *Comparison {
	t.Helper()
	c, err := Compare(Source{Name: "a", Reader: bytes.NewReader(a)}, Source{Name: "b", Reader: bytes.NewReader(b)}, shown, Limits{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := canon.Marshal(c); err != nil {
		t.Fatal(err)
	}
	c.Text()
	return c
}

// one writes a log of two actions, in one of the layouts.
func one(old bool, edit func(*maker)) []byte {
	m := newMaker()
	m.old = old
	in := m.set([]uint64{m.file("in.txt", "in"), m.folder("dir", "x", "one", "sub/y", "two"), m.link("ln", "in.txt")})
	m.act(act{label: "//:a", args: []string{"cc"}, env: []string{"PATH", "/bin"}, platform: []string{"OS", "linux"}, inputs: in, out: bin("a"), made: "a"})
	if edit != nil {
		edit(m)
	}
	m.act(act{label: "@@//:b", inputs: m.set(nil, in), outputs: []uint64{m.folder(bin("tree"), "f", "f")}, out: bin("gone"), made: "-"})
	return m.out
}

// Both layouts of ids say the same, compressed or not; what is unknown is passed over and said.
func TestLayouts(t *testing.T) {
	now := one(false, nil)
	for name, other := range map[string][]byte{
		"before 7.4": one(true, nil), "compressed": squeeze(now),
		"unknown fields": one(false, func(m *maker) { m.entry(num(200, 7), msg(entryFile, str(1, "z"), str(90, "new"))) }),
	} {
		if c := compareBytes(t, now, other); !c.Equal || c.Counts.Equal != 2 || c.A.Encoding != Compact {
			t.Errorf("%s: %s", name, c.Text())
		}
	}
	strange := one(false, func(m *maker) { m.put(77, str(1, "what")) })
	c := compareBytes(t, now, strange)
	if !c.Equal || c.B.UnknownEntries["77"] != 1 || !strings.Contains(c.Text(), "b: 1 entries of kind 77 are unknown") {
		t.Errorf("%s", c.Text())
	}
}

// refused reads data and returns the refusal, which names file and fix.
func refused(t *testing.T, name string, data []byte, limits Limits) string {
	t.Helper()
	_, err := read(Source{Name: "log", Reader: bytes.NewReader(data)}, newStore(limits.Kept), limits)
	var input *canon.InputError
	if !errors.As(err, &input) || input.File != "log" || input.Fix == "" || input.Problem == "" {
		t.Errorf("%s: %v", name, err)
		return ""
	}
	return err.Error()
}

// Every log that ends before its end is refused, unless it ends between two entries: then it is a shorter log.
func TestCut(t *testing.T) {
	read := func(name string) []byte {
		data, err := os.ReadFile("testdata/logs/" + name)
		if err != nil {
			t.Fatal(err)
		}
		return data
	}
	compact := one(false, nil)
	object := read("base.json")
	between := func(data []byte) func(int) bool {
		whole := map[int]bool{}
		for at := 0; at < len(data); {
			size, n := binary.Uvarint(data[at:])
			at += n + int(size)
			whole[at] = true
		}
		return func(n int) bool { return whole[n] }
	}
	lengths := 0 // logs that end in the length of an entry
	for _, tc := range []struct {
		name  string
		data  []byte
		whole func(n int) bool
	}{
		{"compact", compact, between(compact)},
		{"zstd", squeeze(compact), func(int) bool { return false }},
		{"binary", read("base.binary"), between(read("base.binary"))},
		{"json", object, func(n int) bool { return bytes.HasSuffix(object[:n], []byte("\n}")) }},
	} {
		refusals, step := 0, 1+len(tc.data)/5000
		for n := 0; n < len(tc.data); n += step {
			_, err := readLog(tc.data[:n], newStore(1<<20))
			if err == nil {
				if !tc.whole(n) {
					t.Errorf("%s: %d of %d bytes are accepted", tc.name, n, len(tc.data))
				}
				continue
			}
			var input *canon.InputError
			if !errors.As(err, &input) || input.File != "log" || input.Fix == "" {
				t.Fatalf("%s: %d bytes: %v", tc.name, n, err)
			}
			refusals++
			if n > 0 && tc.whole(n-1) && strings.Contains(err.Error(), "ends in the middle of an entry") {
				lengths++
			}
		}
		if refusals < len(tc.data)/step*9/10 {
			t.Errorf("%s: only %d of %d are refused", tc.name, refusals, len(tc.data))
		}
	}
	if lengths < 5 {
		t.Errorf("only %d logs are said to end in a length", lengths)
	}
}

func readLog(data []byte, st *store) (*log, error) {
	return read(Source{Name: "log", Reader: bytes.NewReader(data)}, st, DefaultLimits)
}

func TestRefused(t *testing.T) {
	good := one(false, nil)
	if _, err := readLog(good, newStore(1<<30)); err != nil {
		t.Fatalf("control: %v", err)
	}
	damaged := squeeze(good)
	damaged[len(damaged)/2] ^= 0xff
	window := func(size int) []byte {
		var b bytes.Buffer
		w, err := zstd.NewWriter(&b, zstd.WithWindowSize(size))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.Copy(w, io.LimitReader(zeros{}, int64(size)+1)); err != nil {
			t.Fatal(err)
		}
		w.Close()
		return b.Bytes()
	}
	object := `{"commandArgs":["x"],"mnemonic":"M","targetLabel":"//:x","listedOutputs":["o"]`
	for _, tc := range []struct {
		name string
		data []byte
		want string
	}{
		{"empty", nil, "is empty"},
		{"empty zstd", squeeze([]byte{}), "is empty"},
		{"text", []byte("Build completed successfully\n"), "is no execution log"},
		{"other binary", []byte{0x7f, 'E', 'L', 'F', 2, 1, 1, 0, 0, 0}, "is no execution log"},
		{"no action", newMaker().out, "no action that ran"},
		{"damaged zstd", damaged, "damaged"},
		{"zeros", make([]byte, 100), "is no execution log"},
		{"empty entry", append(bytes.Clone(good), 0), "entry 11 at byte"},
		{"huge claim", append(bytes.Clone(good), 0xff, 0xff, 0xff, 0xff, 0x7f), "over the limit"},
		{"endless varint", append(bytes.Clone(good), bytes.Repeat([]byte{0xff}, 11)...), "damaged"},
		{"no such id", one(false, func(m *maker) { m.set([]uint64{99}) }), "names entry id 99"},
		{"set as output", one(false, func(m *maker) { m.act(act{label: "//:z", outputs: []uint64{m.set([]uint64{1, 2})}}) }), "a set as its output"},
		{"bad digest", one(false, func(m *maker) { m.put(entryFile, str(1, "p"), msg(2, str(1, "not hex!"), num(2, 3))) }), "not hexadecimal"},
		{"wrong wire type", one(false, func(m *maker) { m.entry([]byte{0x0f, 0x01}) }), "no valid Protocol Buffers"},
		{"two logs in one", append(bytes.Clone(good), good...), "two logs"},
		{"wide window", window(64 << 20), "window of more than 32 MiB"},
		{"json of something else", []byte(`{"id":{"started":{}},"children":[]}`), "no entry of an execution log"},
		{"json array", []byte(`[` + object + `}]`), "is no execution log"},
		{"json then text", []byte(object + `} text`), "entry 2 at byte"},
		{"json, number for text", []byte(`{"commandArgs":[1],"mnemonic":"M","targetLabel":"x"}`), "no entry of an execution log"},
		{"json, member twice", []byte(object + `,"mnemonic":"N"}`), "duplicate"},
		{"json, digest", []byte(object + `,"inputs":[{"path":"p","digest":{"hash":"xyz"}}]}`), "not hexadecimal"},
		{"json, two functions", []byte(object + `,"inputs":[{"path":"p","digest":{"hash":"aa","hashFunctionName":"SHA-256"}},{"path":"q","digest":{"hash":"aa","hashFunctionName":"BLAKE3"}}]}`), "BLAKE3"},
	} {
		if got := refused(t, tc.name, tc.data, DefaultLimits); !strings.Contains(got, tc.want) {
			t.Errorf("%s: %s", tc.name, got)
		}
	}
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }

// What a small file may cost is bounded: length, one entry, and distinct text.
func TestBombs(t *testing.T) {
	limits := Limits{Bytes: 4 << 20, Entry: 1 << 20, Kept: 1 << 20, Window: 32 << 20}
	m := newMaker()
	for range 300_000 {
		m.entry(msg(77, str(1, "unknown, unknown")))
	}
	long := squeeze(m.out)
	if len(long)*50 > len(m.out) {
		t.Fatalf("%d bytes from %d are no bomb", len(long), len(m.out))
	}
	big := newMaker()
	big.file("p", "x")
	big.entry(msg(entrySpawn, str(1, strings.Repeat("x", 2<<20))))
	many := newMaker()
	for i := range 20_000 {
		many.file(text(i, "a path that is distinct"), "x")
	}
	nested := []byte(`{"commandArgs":["x"],"mnemonic":"M","targetLabel":"x","metrics":` + strings.Repeat(`{"a":`, 1<<20))
	for _, tc := range []struct {
		name string
		data []byte
		want string
	}{
		{"long", long, "more than 4 MiB uncompressed"},
		{"one entry", squeeze(big.out), "over the limit of 1048576"},
		{"distinct text", squeeze(many.out), "more than 1 MiB of distinct text"},
		{"json entry", []byte(`{"commandArgs":["` + strings.Repeat("x", 2<<20) + `"],"mnemonic":"M","targetLabel":"x"}`), "longer than the limit"},
		{"deep json", nested, ""},
	} {
		if got := refused(t, tc.name, tc.data, limits); !strings.Contains(got, tc.want) {
			t.Errorf("%s: %s", tc.name, got)
		}
	}
	if _, err := read(Source{Name: "log", Reader: bytes.NewReader(one(false, nil))}, newStore(limits.Kept), limits); err != nil {
		t.Errorf("control: %v", err)
	}
}

// A disk that fails is no malformed log.
func TestReadError(t *testing.T) {
	failing := io.MultiReader(bytes.NewReader(one(false, nil)), iotest.ErrReader(os.ErrPermission))
	_, err := Compare(Source{Name: "a", Reader: failing}, Source{Name: "b", Reader: bytes.NewReader(nil)}, shown, Limits{})
	var input *canon.InputError
	if !errors.Is(err, os.ErrPermission) || errors.As(err, &input) || !strings.HasPrefix(err.Error(), "a: ") {
		t.Error(err)
	}
}

// Digests of two functions cannot be compared.
func TestDigestFunctions(t *testing.T) {
	other := bytes.Replace(one(false, nil), []byte("SHA-256"), []byte("BLAKE33"), 1)
	_, err := Compare(Source{Name: "a", Reader: bytes.NewReader(one(false, nil))}, Source{Name: "b", Reader: bytes.NewReader(other)}, shown, Limits{})
	var input *canon.InputError
	if !errors.As(err, &input) || !strings.Contains(input.Fix, "--digest_function") || input.File != "b" {
		t.Error(err)
	}
}

// Whatever the bytes are: an answer or a refusal, and the log compared with itself is equal.
func FuzzCompare(f *testing.F) {
	for _, name := range []string{"base.binary", "fewer.json", "stamp-a.compact.zst"} {
		data, err := os.ReadFile("testdata/logs/" + name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data, data)
	}
	f.Add(one(false, nil), one(true, nil))
	f.Add(large(5, -1), large(5, 2))
	limits := Limits{Bytes: 1 << 20, Entry: 1 << 18, Kept: 1 << 20, Window: 1 << 20}
	f.Fuzz(func(t *testing.T, a, b []byte) {
		for _, pair := range [][2][]byte{{a, b}, {a, a}} {
			c, err := Compare(Source{Name: "a", Reader: bytes.NewReader(pair[0])}, Source{Name: "b", Reader: bytes.NewReader(pair[1])}, shown, limits)
			var input *canon.InputError
			if err != nil {
				if !errors.As(err, &input) || input.File == "" || input.Fix == "" {
					t.Fatalf("%v", err)
				}
				continue
			}
			if bytes.Equal(pair[0], pair[1]) && !c.Equal {
				t.Fatalf("not itself: %s", c.Text())
			}
			if c.Equal != (len(c.Causes) == 0) || !c.Equal && len(c.Causes) == 0 {
				t.Fatalf("%+v", c)
			}
			if _, err := canon.Marshal(c); err != nil {
				t.Fatal(err)
			}
			c.Text()
		}
	})
}

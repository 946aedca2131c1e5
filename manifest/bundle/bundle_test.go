package bundle_test

import (
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"selfsame.dev/selfsame/internal/canon"
	"selfsame.dev/selfsame/internal/tree"
	"selfsame.dev/selfsame/manifest/bundle"
)

// vectors were made by another program, in another language, and the compressed forms by the reference encoder.
type vectors struct {
	Format string `json:"format"`
	Valid  []struct {
		Name   string       `json:"name"`
		Text   string       `json:"text"`
		SHA256 canon.Digest `json:"bundle_sha256"`
		Tree   tree.Summary `json:"tree"`
		Forms  []form       `json:"forms"`
	} `json:"valid"`
	Invalid []struct {
		Name    string `json:"name"`
		Hex     string `json:"hex"`
		Problem string `json:"problem"`
	} `json:"invalid"`
}

type form struct {
	Name string `json:"name"`
	Hex  string `json:"hex"`
}

func readVectors(t testing.TB) vectors {
	t.Helper()
	raw, err := os.ReadFile("../../fixtures/bundle/vectors.json")
	if err != nil {
		t.Fatal(err)
	}
	var v vectors
	if err := canon.Decode(raw, &v); err != nil {
		t.Fatal(err)
	}
	if v.Format != bundle.Format || len(v.Valid) < 4 || len(v.Invalid) < 60 {
		t.Fatalf("%s, %d valid and %d invalid vectors", v.Format, len(v.Valid), len(v.Invalid))
	}
	return v
}

func unhex(t testing.TB, text string) []byte {
	t.Helper()
	data, err := hex.DecodeString(text)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func verify(data []byte) (bundle.Summary, error) {
	return bundle.Verify(bytes.NewReader(data), bundle.DefaultLimits)
}

// refused checks that err is a refusal that speaks of problem and says what to do.
func refused(t testing.TB, err error, problem string) {
	t.Helper()
	var input *canon.InputError
	if !errors.As(err, &input) || !strings.Contains(input.Problem, problem) || input.Fix == "" {
		t.Errorf("%v, want a refusal that speaks of %q, with a fix", err, problem)
	}
}

// files returns what a bundle holds.
func files(t testing.TB, data []byte) map[string]string {
	t.Helper()
	b, err := bundle.NewReader(bytes.NewReader(data), bundle.DefaultLimits)
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]string{}
	for {
		e, err := b.Next()
		if err == io.EOF {
			return all
		}
		if err != nil {
			t.Fatal(err)
		}
		content, err := io.ReadAll(b)
		if err != nil {
			t.Fatal(err)
		}
		all[e.Path] = string(content)
	}
}

// pack writes the bundle of files.
func pack(files map[string]string) ([]byte, bundle.Summary, error) {
	var entries []tree.Entry
	for path, content := range files {
		entries = append(entries, tree.Entry{Path: path, Size: int64(len(content)), Digest: canon.Sum([]byte(content))})
	}
	slices.SortFunc(entries, func(a, b tree.Entry) int { return strings.Compare(a.Path, b.Path) })
	var out bytes.Buffer
	s, err := bundle.Write(&out, entries, func(path string) (io.ReadCloser, error) {
		return io.NopCloser(strings.NewReader(files[path])), nil
	})
	return out.Bytes(), s, err
}

func compress(t testing.TB, data []byte, level string) []byte {
	t.Helper()
	var out bytes.Buffer
	w, err := bundle.Compress(&out, level)
	if err != nil {
		t.Fatal(err)
	}
	_, err = w.Write(data)
	if err := errors.Join(err, w.Close()); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func TestVectors(t *testing.T) {
	v := readVectors(t)
	for _, tc := range v.Valid {
		t.Run(tc.Name, func(t *testing.T) {
			want := bundle.Summary{SHA256: tc.SHA256, Size: int64(len(tc.Text)), Tree: tc.Tree}
			held := files(t, []byte(tc.Text))
			if data, s, err := pack(held); err != nil || string(data) != tc.Text || s != want {
				t.Errorf("written: %+v, %v, want %+v:\n%s", s, err, want, data)
			}
			for path, content := range held {
				if content == "" && path == "" {
					t.Error("an empty path")
				}
			}
			forms := append(tc.Forms, form{"none", hex.EncodeToString([]byte(tc.Text))})
			for _, level := range bundle.Levels {
				forms = append(forms, form{"level " + level, hex.EncodeToString(compress(t, []byte(tc.Text), level))})
			}
			if len(forms) < 10 {
				t.Fatalf("%d forms", len(forms))
			}
			for _, f := range forms {
				if s, err := verify(unhex(t, f.Hex)); err != nil || s != want {
					t.Errorf("%s: %+v, %v, want %+v", f.Name, s, err, want)
				}
			}
		})
	}
	for _, tc := range v.Invalid {
		t.Run(tc.Name, func(t *testing.T) {
			data := unhex(t, tc.Hex)
			_, err := verify(data)
			refused(t, err, tc.Problem)
			if bytes.HasPrefix(data, []byte(bundle.Format)) {
				_, err := verify(compress(t, data, "default"))
				refused(t, err, tc.Problem)
			}
		})
	}
}

// The bundle of a tree is a function of the tree, and states its digest.
func TestRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := rapid.MapOfN(rapid.StringMatching(`[a-c]{1,2}(/[a-c.-]?[a-c]){0,3}`), rapid.StringN(-1, -1, 300), 0, 12).Draw(t, "files")
		data, s, err := pack(want)
		var entries []tree.Entry
		for path, content := range want {
			entries = append(entries, tree.Entry{Path: path, Size: int64(len(content)), Digest: canon.Sum([]byte(content))})
		}
		sum, treeErr := tree.Summarize(entries)
		if (err == nil) != (treeErr == nil) {
			t.Fatalf("bundle: %v, tree: %v", err, treeErr)
		}
		if err != nil {
			return // both a file and a folder
		}
		if s.Tree != sum || s.SHA256 != canon.Sum(data) || s.Size != int64(len(data)) {
			t.Fatalf("%+v, want %+v", s, sum)
		}
		if read, err := verify(data); err != nil || read != s {
			t.Fatalf("%+v, %v, want %+v", read, err, s)
		}
	})
}

var small = map[string]string{"README.md": "Synthetic.\n", "src/empty": "", "src/main.py": "print('leo')\n"}

// Every changed, missing or added byte is refused in the canonical bytes. In a compressed form a byte can be without
// meaning (unused bits of a frame header, the window); then the identity is the same.
func TestEveryByte(t *testing.T) {
	plain, want, err := pack(small)
	if err != nil {
		t.Fatal(err)
	}
	if s, err := verify(plain); err != nil || s != want {
		t.Fatalf("control: %+v, %v", s, err)
	}
	for _, level := range []string{"none", "default", "best"} {
		data := compress(t, plain, level)
		same, refusals := 0, 0
		try := func(what string, at int, changed []byte) {
			s, err := verify(changed)
			var input *canon.InputError
			switch {
			case err == nil && s == want && level != "none":
				same++
			case errors.As(err, &input):
				refusals++
			default:
				t.Errorf("%s: byte %d %s: %+v, %v", level, at, what, s, err)
			}
		}
		for i := range data {
			for _, mask := range []byte{1, 2, 4, 8, 16, 32, 64, 128, 255} {
				changed := bytes.Clone(data)
				changed[i] ^= mask
				try(fmt.Sprintf("xor %d", mask), i, changed)
			}
			try("removed", i, slices.Delete(bytes.Clone(data), i, i+1))
			if _, err := verify(data[:i]); err == nil {
				t.Errorf("%s: accepted after %d of %d bytes", level, i, len(data))
			}
			try("inserted", i, slices.Insert(bytes.Clone(data), i, 0))
		}
		for _, tail := range []string{"\x00", "\n", "x", "xx", "xxx", "xxxx", "source-bundle.v1\n"} {
			_, err := verify(append(bytes.Clone(data), tail...))
			refused(t, err, "")
		}
		if refusals < 9*len(data) || same > 20 {
			t.Errorf("%s: %d refusals, %d with the same identity, of %d bytes", level, refusals, same, len(data))
		}
	}
}

func TestLimits(t *testing.T) {
	data, s, err := pack(small)
	if err != nil {
		t.Fatal(err)
	}
	exact := bundle.Limits{Files: 3, Bytes: s.Tree.TotalBytes, PathBytes: 29}
	if _, err := bundle.Verify(bytes.NewReader(data), exact); err != nil {
		t.Errorf("control: %v", err)
	}
	for key, lower := range map[string]func(*bundle.Limits){
		"files": func(l *bundle.Limits) { l.Files-- }, "bytes": func(l *bundle.Limits) { l.Bytes-- }, "path_bytes": func(l *bundle.Limits) { l.PathBytes-- },
	} {
		l := exact
		lower(&l)
		_, err := bundle.Verify(bytes.NewReader(data), l)
		refused(t, err, "the limit is")
		if !strings.HasPrefix(fmt.Sprint(err), key+": ") {
			t.Errorf("%v does not name %s", err, key)
		}
	}
}

// A file that differs from what was said of it is refused while the bundle is written.
func TestWriteRefuses(t *testing.T) {
	entry := tree.Entry{Path: "x", Size: 3, Digest: canon.Sum([]byte("abc"))}
	for name, tc := range map[string]struct {
		entries          []tree.Entry
		content, problem string
	}{
		"control":   {[]tree.Entry{entry}, "abc", ""},
		"shorter":   {[]tree.Entry{entry}, "ab", "changed while"},
		"longer":    {[]tree.Entry{entry}, "abcd", "changed while"},
		"other":     {[]tree.Entry{entry}, "abd", "changed while"},
		"twice":     {[]tree.Entry{entry, entry}, "abc", "there twice"},
		"order":     {[]tree.Entry{entry, {Path: "a", Size: 3, Digest: entry.Digest}}, "abc", "not in byte order"},
		"bad name":  {[]tree.Entry{{Path: "../x", Size: 3, Digest: entry.Digest}}, "abc", "element .."},
		"collision": {[]tree.Entry{{Path: "X", Size: 3, Digest: entry.Digest}, entry}, "abc", "collides"},
	} {
		_, err := bundle.Write(io.Discard, tc.entries, func(string) (io.ReadCloser, error) { return io.NopCloser(strings.NewReader(tc.content)), nil })
		if tc.problem == "" && err == nil {
			continue
		}
		t.Run(name, func(t *testing.T) { refused(t, err, tc.problem) })
	}
}

// A failure of the reader is no fault of the bundle.
func TestReadFailure(t *testing.T) {
	plain, _, err := pack(small)
	if err != nil {
		t.Fatal(err)
	}
	broken := errors.New("broken disk")
	for _, level := range []string{"none", "default"} {
		data := compress(t, plain, level)
		for _, n := range []int{0, 3, 10, len(data) / 2, len(data)} {
			_, err := bundle.Verify(io.MultiReader(bytes.NewReader(data[:n]), failing{broken}), bundle.DefaultLimits)
			var input *canon.InputError
			if !errors.Is(err, broken) || errors.As(err, &input) {
				t.Errorf("%s, after %d bytes: %v", level, n, err)
			}
		}
	}
}

type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }

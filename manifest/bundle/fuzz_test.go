package bundle_test

import (
	"bytes"
	"errors"
	"io"
	"os"
	"testing"

	"selfsame.dev/selfsame/internal/canon"
	"selfsame.dev/selfsame/manifest/bundle"
)

var fuzzLimits = bundle.Limits{Files: 100, Bytes: 1 << 20, PathBytes: 1 << 14}

// FuzzRead reads any bytes: they are refused as input, or they are the one bundle of the files in them.
func FuzzRead(f *testing.F) {
	v := readVectors(f)
	for _, tc := range v.Valid {
		f.Add([]byte(tc.Text))
		for _, form := range tc.Forms {
			f.Add(unhex(f, form.Hex))
		}
	}
	for _, tc := range v.Invalid {
		f.Add(unhex(f, tc.Hex))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		s, err := bundle.Verify(bytes.NewReader(data), fuzzLimits)
		if err != nil {
			var input *canon.InputError
			if !errors.As(err, &input) || input.Fix == "" {
				t.Fatalf("%T %v", err, err)
			}
			return
		}
		plain, err := bundle.Decompress(bytes.NewReader(data))
		if err != nil {
			t.Fatal(err)
		}
		defer plain.Close()
		text, err := io.ReadAll(plain)
		if err != nil || canon.Sum(text) != s.SHA256 || int64(len(text)) != s.Size {
			t.Fatalf("%+v, %v", s, err)
		}
		again, same, err := pack(files(t, text))
		if err != nil || same != s || !bytes.Equal(again, text) {
			t.Fatalf("%+v, %v, want %+v", same, err, s)
		}
	})
}

// The corpus is there, and go test runs it.
func TestCorpus(t *testing.T) {
	list, err := os.ReadDir("testdata/fuzz/FuzzRead")
	if err != nil || len(list) < 10 {
		t.Errorf("%d files, %v", len(list), err)
	}
}

package tree

import (
	"encoding/hex"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"selfsame.dev/selfsame/internal/canon"
)

// vectors reads one file of the committed vectors, which were made without this package.
func vectors(t *testing.T, name string, dst any) {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join("..", "..", "fixtures", "tree", name))
	if err != nil {
		t.Fatal(err)
	}
	if err := canon.Decode(raw, dst); err != nil {
		t.Fatal(canon.InFile(name, err))
	}
}

// wantRefusal checks that err is an InputError at key that speaks of problem.
func wantRefusal(t *testing.T, err error, key, problem string) {
	t.Helper()
	var input *canon.InputError
	if !errors.As(err, &input) {
		t.Fatalf("got %v, want an InputError about %q", err, problem)
	}
	if input.Key != key || !strings.Contains(input.Problem, problem) || input.Fix == "" {
		t.Errorf("got key %q, problem %q, fix %q; want key %q, problem with %q, and a fix", input.Key, input.Problem, input.Fix, key, problem)
	}
}

func TestDigestVectors(t *testing.T) {
	var file struct {
		Format string `json:"format"`
		Cases  []struct {
			Name    string            `json:"name"`
			Files   map[string]string `json:"files"`
			Text    string            `json:"text"`
			Summary Summary           `json:"summary"`
		} `json:"cases"`
	}
	vectors(t, "digests.json", &file)
	if file.Format != Format || len(file.Cases) < 8 {
		t.Fatalf("format %q with %d cases", file.Format, len(file.Cases))
	}
	for _, tc := range file.Cases {
		if canon.Sum([]byte(tc.Text)) != tc.Summary.Digest {
			t.Errorf("%s: the vector's text does not have the vector's digest", tc.Name)
		}
		var entries []Entry
		for path, content := range tc.Files {
			entries = append(entries, Entry{path, int64(len(content)), canon.Sum([]byte(content))})
		}
		got, err := Summarize(entries)
		if err != nil || got != tc.Summary {
			t.Errorf("%s: got %+v, %v; want %+v", tc.Name, got, err, tc.Summary)
		}
	}
}

func TestNameVectors(t *testing.T) {
	var file struct {
		Valid   []string `json:"valid"`
		Invalid []struct {
			Path    string `json:"path"`
			Hex     string `json:"hex"`
			Problem string `json:"problem"`
		} `json:"invalid"`
		Collisions []struct {
			Paths   []string `json:"paths"`
			Refused string   `json:"refused"`
			Problem string   `json:"problem"`
		} `json:"collisions"`
		Together [][]string `json:"together"`
	}
	vectors(t, "names.json", &file)
	if len(file.Valid) < 15 || len(file.Invalid) < 25 || len(file.Collisions) < 10 || len(file.Together) < 4 {
		t.Fatal("vectors are missing")
	}
	for _, path := range append(file.Valid, strings.Repeat("a", MaxPath)) {
		if err := CheckName(path); err != nil {
			t.Errorf("%q: %v", path, err)
		}
	}
	for _, tc := range file.Invalid {
		path := tc.Path
		if tc.Hex != "" {
			raw, err := hex.DecodeString(tc.Hex)
			if err != nil {
				t.Fatal(err)
			}
			path = string(raw)
		}
		wantRefusal(t, CheckName(path), refuse(path, "", "").Key, tc.Problem)
		if _, err := Summarize([]Entry{entry(path)}); err == nil {
			t.Errorf("Summarize takes %q", path)
		}
	}
	long := strings.Repeat("a", MaxPath+1)
	wantRefusal(t, CheckName(long), long, "longer than 1024 bytes")

	for _, tc := range file.Collisions {
		var entries []Entry
		for _, path := range tc.Paths {
			entries = append(entries, entry(path))
		}
		_, err := Summarize(entries)
		wantRefusal(t, err, tc.Refused, tc.Problem)
		checked := Check(tc.Paths, nil)
		if len(checked.Invalid) != 1 || checked.Invalid[0].Path != tc.Refused || len(checked.Valid) != len(tc.Paths)-1 {
			t.Errorf("Check(%q) = %+v, want only %s invalid", tc.Paths, checked, tc.Refused)
		}
		// The control: without the refused one the others stand.
		if _, err := Summarize(slices.DeleteFunc(entries, func(e Entry) bool { return e.Path == tc.Refused })); err != nil {
			t.Errorf("control: %v", err)
		}
	}
	for _, paths := range file.Together {
		if checked := Check(paths, nil); len(checked.Valid) != len(paths) {
			t.Errorf("Check(%q) = %+v, want all valid", paths, checked)
		}
	}
}

func TestPatternVectors(t *testing.T) {
	var file struct {
		Matches []struct {
			Pattern string   `json:"pattern"`
			Yes     []string `json:"yes"`
			No      []string `json:"no"`
		} `json:"matches"`
		Malformed []struct {
			Pattern string `json:"pattern"`
			Problem string `json:"problem"`
		} `json:"malformed"`
		Folders []struct {
			Include []string `json:"include"`
			Exclude []string `json:"exclude"`
			Entered []string `json:"entered"`
			Closed  []string `json:"closed"`
		} `json:"folders"`
	}
	vectors(t, "patterns.json", &file)
	if len(file.Matches) < 15 || len(file.Malformed) < 15 || len(file.Folders) < 5 {
		t.Fatal("vectors are missing")
	}
	compile := func(s Selection) *Selector {
		selector, err := s.Compile()
		if err != nil {
			t.Fatal(err)
		}
		return selector
	}
	for _, tc := range file.Matches {
		including := compile(Selection{Include: []string{tc.Pattern}})
		excluding := compile(Selection{Exclude: []string{tc.Pattern}})
		for i, path := range append(slices.Clone(tc.Yes), tc.No...) {
			want := i < len(tc.Yes)
			if including.Selects(path) != want || excluding.Selects(path) == want {
				t.Errorf("%s on %s: want match %v", tc.Pattern, path, want)
			}
		}
	}
	for _, tc := range file.Malformed {
		_, err := Selection{Include: []string{"ok", tc.Pattern}}.Compile()
		wantRefusal(t, err, refuse(tc.Pattern, "", "").Key, tc.Problem)
		if _, err := (Selection{Exclude: []string{tc.Pattern}}).Compile(); err == nil {
			t.Errorf("%q is accepted as exclude", tc.Pattern)
		}
	}
	deep := strings.Repeat("a/", maxElements) + "a"
	if _, err := (Selection{Include: []string{deep}}).Compile(); err == nil {
		t.Error("a pattern of 64 elements is accepted")
	}
	if s := compile(Selection{Include: []string{deep[2:]}}); !s.Selects(deep[2:]) || s.Selects(deep) {
		t.Error("a pattern of 63 elements does not match itself alone")
	}
	for _, tc := range file.Folders {
		s := compile(Selection{Include: tc.Include, Exclude: tc.Exclude})
		for i, path := range append(slices.Clone(tc.Entered), tc.Closed...) {
			if want := i < len(tc.Entered); s.Enters(path) != want {
				t.Errorf("include %q exclude %q: folder %s entered is %v", tc.Include, tc.Exclude, path, !want)
			}
		}
	}
}

func entry(path string) Entry { return Entry{path, int64(len(path)), canon.Sum([]byte(path))} }

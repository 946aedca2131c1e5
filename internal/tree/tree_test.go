package tree

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"selfsame.dev/selfsame/internal/canon"
)

// A document whose own digest was made anew still cannot state another structure.
func TestVerifyRefusesForgedStructure(t *testing.T) {
	entries := []Entry{entry("a"), entry("b/c"), entry("d")}
	good, err := Summarize(entries)
	if err != nil {
		t.Fatal(err)
	}
	if err := Verify(entries, good); err != nil {
		t.Fatalf("control: %v", err)
	}
	change := func(f func(*Summary)) Summary { s := good; f(&s); return s }
	// What a forger gets who hashes the list as it stands, without this package's checks.
	rehashed := func(list []Entry) Summary {
		text := Format + "\n"
		var s Summary
		for _, e := range list {
			text += e.Digest.String() + " " + string(rune('0'+e.Size)) + " " + e.Path + "\n"
			s.FileCount++
			s.TotalBytes += e.Size
		}
		s.Digest = canon.Sum([]byte(text))
		return s
	}
	if rehashed(entries) != good {
		t.Fatal("control: the forger's hash differs on an honest list")
	}
	unsorted := []Entry{entries[1], entries[0], entries[2]}
	twice := []Entry{entries[0], entries[0], entries[1], entries[2]}
	clash := []Entry{entries[0], entry("a/x")}
	folded := []Entry{entry("A"), entry("a")}
	escape := []Entry{entry("../a")}
	for _, tc := range []struct {
		name, key, problem string
		entries            []Entry
		stated             Summary
	}{
		{"count", "file_count", "states 4, the files give 3", entries, change(func(s *Summary) { s.FileCount++ })},
		{"bytes", "total_bytes", "states 4, the files give 5", entries, change(func(s *Summary) { s.TotalBytes-- })},
		{"digest", "sha256", "states 00", entries, change(func(s *Summary) { s.Digest = canon.Digest{31: 1} })},
		{"a file less", "file_count", "the files give 2", entries[:2], good},
		{"unsorted, rehashed", "a", "byte order", unsorted, rehashed(unsorted)},
		{"duplicate, rehashed", "a", "twice", twice, rehashed(twice)},
		{"file and folder, rehashed", "a/x", "both a file and a folder", clash, rehashed(clash)},
		{"case, rehashed", "a", "collides", folded, rehashed(folded)},
		{"outside, rehashed", "../a", "element ..", escape, rehashed(escape)},
		{"negative size", "a", "negative", []Entry{{"a", -1, entries[0].Digest}}, Summary{FileCount: 1, TotalBytes: -1}},
		{"sum too large", "b", "sum of sizes", []Entry{{"a", MaxTotalBytes, entries[0].Digest}, entry("b")}, good},
		{"no digest", "a", "no digest", []Entry{{Path: "a"}}, Summary{FileCount: 1}},
	} {
		t.Run(tc.name, func(t *testing.T) { wantRefusal(t, Verify(tc.entries, tc.stated), tc.key, tc.problem) })
	}
}

func TestBuilderStaysAfterRefusal(t *testing.T) {
	b := NewBuilder()
	for _, path := range []string{"B/x", "B/y"} {
		if err := b.Add(entry(path)); err != nil {
			t.Fatal(err)
		}
	}
	before := b.Summary()
	for _, path := range []string{"B/y", "A", "B", "B/Y", "B/y/z", "b/z", "", "B/../c"} {
		if b.Add(entry(path)) == nil {
			t.Errorf("%q is added", path)
		}
	}
	if b.Summary() != before {
		t.Error("a refused entry changed the summary")
	}
	if err := b.Add(entry("B/z")); err != nil {
		t.Errorf("after refusals: %v", err)
	}
}

func TestCheckNamesEachPathOnce(t *testing.T) {
	s, err := Selection{Exclude: []string{"skip/**", "*.tmp"}}.Compile()
	if err != nil {
		t.Fatal(err)
	}
	got := Check([]string{"z", "skip/\xff", "a", "Z", "b//c", "x.tmp", "a", "skip/a", "ok"}, s)
	var invalid []string
	for _, refused := range got.Invalid {
		invalid = append(invalid, refused.Path)
	}
	want := [][]string{{"Z", "ok"}, {"skip/a", "skip/\xff", "x.tmp"}, {"a", "b//c", "z"}}
	if diff := cmp.Diff(want, [][]string{got.Valid, got.Omitted, invalid}); diff != "" {
		t.Error(diff)
	}
	wantRefusal(t, got.Err(), "a", "listed 2 times")
	if lines := got.Err().Error(); len(lines) == 0 || got.Invalid[2].Reason.Problem == "" {
		t.Error("refusals without words")
	}
	if err := Check([]string{"a"}, nil).Err(); err != nil {
		t.Errorf("control: %v", err)
	}
}

func TestSelectionNormalForm(t *testing.T) {
	for _, tc := range []struct{ in, want Selection }{
		{Selection{}, Selection{[]string{"**"}, []string{}}},
		{Selection{[]string{"b", "a", "b"}, []string{"y", "x"}}, Selection{[]string{"a", "b"}, []string{"x", "y"}}},
	} {
		s, err := tc.in.Compile()
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(tc.want, s.Selection()); diff != "" {
			t.Error(diff)
		}
	}
	var none *Selector
	if diff := cmp.Diff(Selection{[]string{"**"}, []string{}}, none.Selection()); diff != "" {
		t.Error(diff)
	}
}

func TestConcerns(t *testing.T) {
	s, err := Selection{Include: []string{"src/**", "main"}, Exclude: []string{"src/link", "src/.git/**"}}.Compile()
	if err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]bool{
		"main": true, "src": true, "src/a": true, "src/.git": true, // a link here could stand for what belongs to the tree
		"other": false, "main/x": false, "src/link": false, "src/.git/x": false,
	} {
		if s.Concerns(path) != want {
			t.Errorf("%s: concerns is %v", path, !want)
		}
	}
}

func TestDiff(t *testing.T) {
	a, b, c, d := entry("a"), entry("b"), entry("c"), entry("d")
	b2 := Entry{"b", 9, canon.Sum([]byte("other"))}
	got := Diff([]Entry{c, b, a}, []Entry{d, b2, c})
	want := []Difference{
		{"a", Missing, &Content{a.Size, a.Digest}, nil},
		{"b", Changed, &Content{b.Size, b.Digest}, &Content{9, b2.Digest}},
		{"d", Added, nil, &Content{d.Size, d.Digest}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if got := Diff([]Entry{a, b}, []Entry{b, a}); got != nil {
		t.Errorf("the same files differ: %v", got)
	}
	if !slices.ContainsFunc(Diff([]Entry{{"a", 1, a.Digest}}, []Entry{{"a", 2, a.Digest}}), func(d Difference) bool { return d.Kind == Changed }) {
		t.Error("another size alone is not seen")
	}
}

func TestDisplay(t *testing.T) {
	for path, want := range map[string]string{
		"a b/é.md": "a b/é.md", "a\nb": `"a\nb"`, "\x1b[2J": `"\x1b[2J"`, "\u202etxt": `"\u202etxt"`, "\xff": `"\xff"`, "e\u0301": `"e\u0301"`, `"`: `"\""`,
	} {
		if got := Display(path); got != want {
			t.Errorf("Display(%q) = %s, want %s", path, got, want)
		}
	}
}

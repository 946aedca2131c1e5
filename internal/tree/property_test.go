package tree

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"selfsame.dev/selfsame/internal/canon"
)

// names are short and of few letters, so that prefixes, folders and near misses are common.
var names = rapid.StringMatching(`[ab.é-]{1,3}(/[ab.é-]{1,3}){0,3}`)

// trees draws entries that can be in one tree.
var trees = rapid.Custom(func(t *rapid.T) []Entry {
	var entries []Entry
	for _, path := range Check(rapid.SliceOfNDistinct(names, 0, 12, rapid.ID).Draw(t, "paths"), nil).Valid {
		content := rapid.SliceOfN(rapid.Byte(), 0, 4).Draw(t, "content")
		entries = append(entries, Entry{path, int64(len(content)), canon.Sum(content)})
	}
	return entries
})

func TestOrderDoesNotMatter(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		entries := trees.Draw(t, "tree")
		want, err := Summarize(entries)
		if err != nil {
			t.Fatal(err)
		}
		shuffled := rapid.Permutation(entries).Draw(t, "order")
		before := slices.Clone(shuffled)
		got, err := Summarize(shuffled)
		if err != nil || got != want {
			t.Fatalf("%v, %v; want %v", got, err, want)
		}
		if !slices.Equal(before, shuffled) {
			t.Fatal("the argument was sorted in place")
		}
		if len(Diff(entries, shuffled)) != 0 {
			t.Fatal("order makes a difference")
		}
		if err := Verify(shuffled, want); (err == nil) != slices.Equal(entries, shuffled) {
			t.Fatalf("Verify of a permutation: %v", err)
		}
	})
}

// One changed bit of content, one size, one path, one file more or less: another digest,
// and exactly that path is named.
func TestAnyChangeMovesTheDigest(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		entries := trees.Filter(func(e []Entry) bool { return len(e) > 0 }).Draw(t, "tree")
		before, err := Summarize(entries)
		if err != nil {
			t.Fatal(err)
		}
		changed := slices.Clone(entries)
		i := rapid.IntRange(0, len(entries)-1).Draw(t, "entry")
		old := changed[i]
		want := []string{old.Path}
		switch rapid.SampledFrom([]string{"content", "size", "path", "remove", "add"}).Draw(t, "change") {
		case "content":
			changed[i].Digest[rapid.IntRange(0, 31).Draw(t, "byte")] ^= 1 << rapid.IntRange(0, 7).Draw(t, "bit")
		case "size":
			changed[i].Size++
		case "path":
			changed[i].Path += "~"
			want = append(want, changed[i].Path)
		case "remove":
			changed = slices.Delete(changed, i, i+1)
		case "add":
			changed = append(changed, Entry{old.Path + "~", old.Size, old.Digest})
			want = []string{old.Path + "~"}
		}
		after, err := Summarize(changed)
		if err != nil {
			t.Fatal(err)
		}
		if after.Digest == before.Digest {
			t.Fatalf("%v and %v have one digest", entries, changed)
		}
		var named []string
		for _, d := range Diff(entries, changed) {
			named = append(named, d.Path)
		}
		if !slices.Equal(named, want) {
			t.Fatalf("Diff names %q, want %q", named, want)
		}
	})
}

// Each name is in exactly one list, the valid ones make a tree, and input order is nothing.
func TestCheckPartitions(t *testing.T) {
	hostile := rapid.OneOf(names, rapid.String(), rapid.SampledFrom([]string{"A", "a", "A/b", "a/B", "..", "\xff", "é", "É", "e\u0301"}))
	patterns := rapid.SliceOfN(rapid.SampledFrom([]string{"**", "a/**", "**/b", "*", "?/*", "**/*.*", "é*"}), 0, 3)
	rapid.Check(t, func(t *rapid.T) {
		paths := rapid.SliceOfN(hostile, 0, 15).Draw(t, "paths")
		selector, err := Selection{patterns.Draw(t, "include"), patterns.Draw(t, "exclude")}.Compile()
		if err != nil {
			t.Fatal(err)
		}
		got := Check(paths, selector)
		var all []string
		all = append(all, got.Valid...)
		all = append(all, got.Omitted...)
		for _, refused := range got.Invalid {
			all = append(all, refused.Path)
		}
		slices.Sort(all)
		if want := slices.Compact(slices.Sorted(slices.Values(paths))); !slices.Equal(all, want) {
			t.Fatalf("lists hold %q, want %q", all, want)
		}
		for _, path := range got.Omitted {
			if selector.Selects(path) {
				t.Fatalf("%q is omitted but selected", path)
			}
		}
		var entries []Entry
		for _, path := range got.Valid {
			entries = append(entries, entry(path))
		}
		if _, err := Summarize(entries); err != nil {
			t.Fatalf("valid names make no tree: %v", err)
		}
		again := Check(rapid.Permutation(paths).Draw(t, "order"), selector)
		if !slices.Equal(again.Valid, got.Valid) || !slices.Equal(again.Omitted, got.Omitted) || len(again.Invalid) != len(got.Invalid) {
			t.Fatal("order of the input matters")
		}
	})
}

// The matcher against a second one made of a regular expression, and the folder rules
// against what they promise about files.
func TestPatternsAgreeWithPeer(t *testing.T) {
	element := rapid.OneOf(rapid.Just("**"), rapid.StringMatching(`[ab?*]{1,4}`).Filter(func(s string) bool { return !strings.Contains(s, "**") }))
	files := rapid.StringMatching(`[abé😀]{1,4}(/[abé😀]{1,4}){0,4}`)
	rapid.Check(t, func(t *rapid.T) {
		text := strings.Join(rapid.SliceOfN(element, 1, 4).Draw(t, "pattern"), "/")
		p, err := parsePattern(text)
		if err != nil {
			if !strings.Contains(text, "**/**") {
				t.Fatalf("%s: %v", text, err)
			}
			return
		}
		expr := "^"
		for i, e := range p {
			last := i == len(p)-1
			switch {
			case e == "**" && last:
				expr += `.+`
			case e == "**":
				expr += `(?:[^/]+/)*`
			default:
				expr += strings.NewReplacer("?", "[^/]", "*", "[^/]*").Replace(e)
				if !last {
					expr += "/"
				}
			}
		}
		peer := regexp.MustCompile(expr + "$")
		path := files.Draw(t, "path")
		if got, want := p.matches(path), peer.MatchString(path); got != want {
			t.Fatalf("%s on %s: %v, peer %v", text, path, got, want)
		}
		for i := range path {
			if path[i] != '/' {
				continue
			}
			if p.matches(path) && !p.reaches(path[:i]) {
				t.Fatalf("%s matches %s but does not reach %s", text, path, path[:i])
			}
			if !p.matches(path) && p.covers(path[:i]) {
				t.Fatalf("%s covers %s but does not match %s", text, path[:i], path)
			}
		}
	})
}

func FuzzCheckName(f *testing.F) {
	for _, seed := range []string{"a/b", "../a", "e\u0301", "a\\b", "\xff", "a//b", "\u202e"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, path string) {
		if CheckName(path) != nil {
			return
		}
		b := NewBuilder()
		if err := b.Add(entry(path)); err != nil {
			t.Fatalf("%q is a good name, alone not a tree: %v", path, err)
		}
		// A good name stands in one line, and the same name in another case does not join it.
		if strings.ContainsAny(path, "\n\x00\\") || strings.Contains("/"+path+"/", "/../") {
			t.Fatalf("%q passes", path)
		}
		for _, other := range []string{strings.ToLower(path), strings.ToUpper(path)} {
			if other != path && fold(other) == fold(path) && len(Check([]string{path, other}, nil).Valid) > 1 {
				t.Fatalf("%q and %q are in one tree", path, other)
			}
		}
	})
}

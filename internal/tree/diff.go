package tree

import "selfsame.dev/selfsame/internal/canon"

// Kind says how a path differs between two trees.
type Kind string

const (
	Missing Kind = "missing" // expected, not there
	Added   Kind = "added"   // there, not expected
	Changed Kind = "changed" // both, with other content
)

// Content is what an entry says about the bytes of a file.
type Content struct {
	Size   int64        `json:"size"`
	Digest canon.Digest `json:"sha256"`
}

// Difference is one path that differs. Expected is nil when it was added, Actual when it
// is missing.
type Difference struct {
	Path     string   `json:"path"`
	Kind     Kind     `json:"kind"`
	Expected *Content `json:"expected,omitempty"`
	Actual   *Content `json:"actual,omitempty"`
}

// Diff names every path that differs, in byte order. Both lists may be in any order;
// each holds a path once, as [Summarize] makes sure.
func Diff(expected, actual []Entry) []Difference {
	var list []Difference
	content := func(e Entry) *Content { return &Content{e.Size, e.Digest} }
	want, have := sorted(expected), sorted(actual)
	for len(want) > 0 || len(have) > 0 {
		switch {
		case len(have) == 0 || len(want) > 0 && want[0].Path < have[0].Path:
			list = append(list, Difference{Path: want[0].Path, Kind: Missing, Expected: content(want[0])})
			want = want[1:]
		case len(want) == 0 || have[0].Path < want[0].Path:
			list = append(list, Difference{Path: have[0].Path, Kind: Added, Actual: content(have[0])})
			have = have[1:]
		default:
			if want[0] != have[0] {
				list = append(list, Difference{want[0].Path, Changed, content(want[0]), content(have[0])})
			}
			want, have = want[1:], have[1:]
		}
	}
	return list
}

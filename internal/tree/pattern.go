package tree

import (
	"fmt"
	"math/bits"
	"slices"
	"strings"
	"unicode/utf8"
)

// Selection declares which files of a folder belong to a tree: those that an Include
// pattern matches and no Exclude pattern does. It is recorded wherever the tree is, so
// that both sides hash the same set. No Include pattern means "**".
//
// A pattern is a slash path that must match the whole path of a file, byte for byte, but for
//
//	?   one character (code point), not a slash
//	*   any number of characters, also none, not a slash; a leading dot is nothing special
//	**  alone between slashes: any number of folders, also none; at the end: every file
//	    below, at any depth ("skills/**" matches "skills/a" and "skills/a/b", not "skills")
//
// Nothing else has a meaning, and [ ] { } \ are refused because elsewhere they have one; a
// "?" matches them. There is no negation, and the order of patterns has no meaning.
type Selection struct {
	Include []string `json:"include"`
	Exclude []string `json:"exclude"`
}

// Selector is a [Selection] ready to match. Its nil value selects every file.
type Selector struct {
	selection        Selection
	include, exclude []pattern
}

// pattern holds the elements of a pattern. A set of positions in it is the bits of a
// uint64, bit i standing for "element i is to match next", bit len for "all matched".
type pattern []string

const maxElements = 63

// Compile checks the patterns and returns the selector. A malformed pattern is refused
// with a [*canon.InputError] that names it.
func (s Selection) Compile() (*Selector, error) {
	normal := func(patterns []string) []string {
		return slices.Compact(slices.Sorted(slices.Values(patterns)))
	}
	if s.Include = normal(s.Include); len(s.Include) == 0 {
		s.Include = []string{"**"}
	}
	if s.Exclude = normal(s.Exclude); s.Exclude == nil {
		s.Exclude = []string{}
	}
	selector := &Selector{selection: s}
	for _, list := range []struct {
		from []string
		to   *[]pattern
	}{{s.Include, &selector.include}, {s.Exclude, &selector.exclude}} {
		for _, text := range list.from {
			p, err := parsePattern(text)
			if err != nil {
				return nil, err
			}
			*list.to = append(*list.to, p)
		}
	}
	return selector, nil
}

// Selection returns the selection in normal form: sorted, each pattern once, "**" for no
// Include, and empty lists instead of nil.
func (s *Selector) Selection() Selection {
	if s == nil {
		return Selection{Include: []string{"**"}, Exclude: []string{}}
	}
	return Selection{Include: slices.Clone(s.selection.Include), Exclude: slices.Clone(s.selection.Exclude)}
}

// Selects reports whether the file at path belongs to the tree.
func (s *Selector) Selects(path string) bool {
	return s == nil || matchesAny(s.include, path) && !matchesAny(s.exclude, path)
}

// Enters reports whether the folder at path may hold a selected file: some Include
// pattern can match below it, and no Exclude pattern that ends in "**" covers it. A
// folder that is not entered may hold anything.
func (s *Selector) Enters(path string) bool {
	if s == nil {
		return true
	}
	for _, p := range s.exclude {
		if p.covers(path) {
			return false
		}
	}
	return slices.ContainsFunc(s.include, func(p pattern) bool { return p.reaches(path) })
}

// Concerns reports whether an entry at path that is neither a regular file nor a folder
// (a link, a socket) would be in the way: a file there would be selected, or a folder
// there entered, and no Exclude pattern matches path itself.
func (s *Selector) Concerns(path string) bool {
	return s == nil || !matchesAny(s.exclude, path) && (matchesAny(s.include, path) || s.Enters(path))
}

func matchesAny(patterns []pattern, path string) bool {
	return slices.ContainsFunc(patterns, func(p pattern) bool { return p.matches(path) })
}

func parsePattern(text string) (pattern, error) {
	bad := func(problem, fix string) (pattern, error) {
		return nil, refuse(text, "the pattern "+problem, fix)
	}
	// Before the name rules, whose words on backslashes would mislead here.
	if i := strings.IndexAny(text, `[]{}\`); i >= 0 {
		return bad("holds "+text[i:i+1]+", which has no meaning here", "match that character with ?, and write alternatives as patterns of their own")
	}
	if err := CheckName(text); err != nil {
		return nil, err
	}
	p := pattern(strings.Split(text, "/"))
	if len(p) > maxElements {
		return bad(fmt.Sprintf("has more than %d elements", maxElements), "use ** for any number of folders")
	}
	for i, element := range p {
		switch {
		case element == "**":
			if i > 0 && p[i-1] == "**" {
				return bad("has ** after **", "write ** once")
			}
		case strings.Contains(element, "**"):
			return bad("has ** beside other characters in "+Display(element), "put ** alone between slashes, or write one *")
		case element[0] == '!' && i == 0:
			return bad("begins with !", "put the pattern in the other list; there is no negation")
		}
	}
	return p, nil
}

func (p pattern) matches(path string) bool {
	return len(p) == 1 && p[0] == "**" || p.after(path)&(1<<len(p)) != 0
}

// covers reports whether p matches every file below the folder path.
func (p pattern) covers(path string) bool {
	last := len(p) - 1
	return p[last] == "**" && p.after(path)&(1<<last) != 0
}

// reaches reports whether p can match a file below the folder path.
func (p pattern) reaches(path string) bool {
	return p.after(path)&^(1<<len(p)) != 0
}

// after returns the positions that the elements of path lead to from the beginning.
func (p pattern) after(path string) uint64 {
	at := p.skip(1)
	for at != 0 {
		element, rest, more := strings.Cut(path, "/")
		var next uint64
		for set := at &^ (1 << len(p)); set != 0; set &= set - 1 {
			switch i := bits.TrailingZeros64(set); {
			case p[i] == "**" && i == len(p)-1:
				next |= 3 << i
			case p[i] == "**":
				next |= 1 << i
			case matchElement(p[i], element):
				next |= 2 << i
			}
		}
		at = p.skip(next)
		if !more {
			break
		}
		path = rest
	}
	return at
}

// skip adds the positions behind each "**" that stands for no folder.
func (p pattern) skip(set uint64) uint64 {
	for i := 0; i < len(p)-1; i++ {
		if set&(1<<i) != 0 && p[i] == "**" {
			set |= 2 << i
		}
	}
	return set
}

// matchElement matches * and ? in time proportional to the product of the lengths.
func matchElement(pattern, name string) bool {
	star, from := -1, 0 // the last * passed, and where its run in name ends
	i, j := 0, 0
	for j < len(name) {
		switch {
		case i < len(pattern) && pattern[i] == '*':
			star, from = i, j
			i++
			continue
		case i < len(pattern) && pattern[i] == '?':
			_, size := utf8.DecodeRuneInString(name[j:])
			i, j = i+1, j+size
			continue
		case i < len(pattern) && pattern[i] == name[j]:
			i, j = i+1, j+1
			continue
		}
		if star < 0 {
			return false
		}
		_, size := utf8.DecodeRuneInString(name[from:])
		from += size
		i, j = star+1, from
	}
	return strings.Trim(pattern[i:], "*") == ""
}

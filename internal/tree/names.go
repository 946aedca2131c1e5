package tree

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/cases"
	"golang.org/x/text/unicode/norm"

	"selfsame.dev/selfsame/internal/canon"
)

// MaxPath is the longest path in bytes: PATH_MAX of the narrowest system in use, macOS.
const MaxPath = 1024

// CheckName refuses, with a [*canon.InputError] that names it, a path that does not
// mean the same file everywhere. A good path is
//
//   - relative, with elements parted by single slashes, none of them empty, "." or "..";
//   - at most [MaxPath] bytes of valid UTF-8 in Unicode normalization form C (UAX 15);
//   - free of backslashes (a separator on Windows), control characters (Cc), line and
//     paragraph separators (Zl, Zp) and bidirectional controls, which make a report show another name.
func CheckName(path string) error {
	if err := checkName(path); err != nil {
		return err
	}
	return nil
}

func checkName(path string) *canon.InputError {
	switch {
	case path == "":
		return refuse(path, "the path is empty", "name the file relative to the root of the tree")
	case len(path) > MaxPath:
		return refuse(path, fmt.Sprintf("the path is longer than %d bytes", MaxPath), "shorten it")
	case path[0] == '/':
		return refuse(path, "the path is absolute", "name the file relative to the root of the tree")
	}
	ascii := true
	start := 0
	for i := 0; i <= len(path); i++ {
		if i < len(path) && path[i] != '/' {
			if c := path[i]; c >= utf8.RuneSelf {
				ascii = false
			} else if c < ' ' || c == 0x7f {
				return refuse(path, fmt.Sprintf("the name holds the control character U+%04X", c), "rename the file")
			} else if c == '\\' {
				return refuse(path, "the name holds a backslash", "rename the file; elements are parted by slashes")
			}
			continue
		}
		switch path[start:i] {
		case "":
			return refuse(path, "the path has an empty element", "write single slashes, none at the end")
		case ".", "..":
			return refuse(path, "the path has the element "+path[start:i], "write the path without . and ..")
		}
		start = i + 1
	}
	if ascii {
		return nil
	}
	if !utf8.ValidString(path) {
		return refuse(path, "the name is not valid UTF-8", "rename the file")
	}
	for _, r := range path {
		if unicode.In(r, unicode.Cc, unicode.Zl, unicode.Zp, unicode.Bidi_Control) {
			return refuse(path, fmt.Sprintf("the name holds the control character U+%04X", r), "rename the file")
		}
	}
	if !norm.NFC.IsNormalString(path) {
		return refuse(path, "the name is not in Unicode normalization form C", "rename it to "+Display(norm.NFC.String(path)))
	}
	return nil
}

// fold returns the key under which names collide: canonical caseless matching
// (Unicode, definition D145) with full case folding.
func fold(name string) string {
	for i := 0; i < len(name); i++ {
		if name[i] >= utf8.RuneSelf {
			return norm.NFC.String(cases.Fold().String(norm.NFD.String(name)))
		}
	}
	return strings.ToLower(name)
}

// Names takes paths in byte order and finds those that cannot be in one tree. In that
// order everything below a folder is adjacent, so only the folders on the last path need their
// names kept. The zero value is ready.
type Names struct {
	last string
	open []*folder // the root and the folders of last
}

type folder struct {
	name string
	seen map[string]seen // by folded name
}

type seen struct {
	name   string
	folder bool
}

// Admit takes the next path or refuses it, with a [*canon.InputError], and stays as it was.
func (l *Names) Admit(path string) error {
	if err := l.admit(path); err != nil {
		return err
	}
	return nil
}

// admit takes path or refuses it and stays as it was.
func (l *Names) admit(path string) *canon.InputError {
	if err := checkName(path); err != nil {
		return err
	}
	if path == l.last {
		return refuse(path, "the path is there twice", "list each file once")
	}
	if path < l.last {
		return refuse(path, "the path comes after "+Display(l.last)+", not in byte order", "sort the files by path")
	}
	if l.open == nil {
		l.open = []*folder{{seen: map[string]seen{}}}
	}
	// Go down as far as the folders of the last path reach.
	depth, start := 0, 0
	var end int
	for {
		end = strings.IndexByte(path[start:], '/')
		if end < 0 {
			end = len(path)
			break
		}
		end += start
		if depth+1 == len(l.open) || l.open[depth+1].name != path[start:end] {
			break
		}
		depth++
		start = end + 1
	}
	// The first new element may collide; what is below a new folder cannot.
	name := path[start:end]
	key := fold(name)
	if other, ok := l.open[depth].seen[key]; ok {
		if other.name == name {
			return refuse(path, "the path "+Display(path[:end])+" is both a file and a folder", "rename one of the two")
		}
		kind := "file"
		if other.folder {
			kind = "folder"
		}
		return refuse(path, fmt.Sprintf("the path %s collides with the %s %s when case is folded",
			Display(path[:end]), kind, Display(path[:start]+other.name)), "rename one of the two")
	}
	l.open = l.open[:depth+1]
	l.open[depth].seen[key] = seen{name, end < len(path)}
	for end < len(path) {
		child := &folder{name: path[start:end], seen: map[string]seen{}}
		l.open = append(l.open, child)
		start = end + 1
		if next := strings.IndexByte(path[start:], '/'); next >= 0 {
			end = start + next
		} else {
			end = len(path)
		}
		child.seen[fold(path[start:end])] = seen{path[start:end], end < len(path)}
	}
	l.last = path
	return nil
}

// Display returns path as it can be shown in one line and told from others: as it is, or
// quoted in ASCII.
func Display(path string) string {
	if !norm.NFC.IsNormalString(path) {
		return strconv.QuoteToASCII(path)
	}
	for _, r := range path {
		if r == utf8.RuneError || r == '"' || !unicode.IsPrint(r) {
			return strconv.QuoteToASCII(path)
		}
	}
	return path
}

func refuse(path, problem, fix string) *canon.InputError {
	key := Display(path)
	if key == "" {
		key = `""`
	}
	return &canon.InputError{Key: key, Problem: problem, Fix: fix}
}

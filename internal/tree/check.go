package tree

import (
	"fmt"
	"slices"
	"strings"

	"selfsame.dev/selfsame/internal/canon"
)

// Checked says of every name it was given one thing: that it belongs to the tree, that the
// selection leaves it out, or why it is refused. Names are in byte order in each list.
type Checked struct {
	Valid   []string
	Omitted []string
	Invalid []Refused
}

// Refused is a name, and why it is refused.
type Refused struct {
	Path   string
	Reason *canon.InputError
}

// Err returns nil, or [Refusals] when a name is invalid.
func (c Checked) Err() error {
	var list Refusals
	for _, refused := range c.Invalid {
		list = append(list, refused.Reason)
	}
	return list.Err()
}

// Check parts the paths of regular files, in any order: those that the selection does not
// select are omitted, whatever their names; of the others, those are invalid that
// [CheckName] refuses, that are listed twice, or that cannot be in one tree with a valid path that is
// before them in byte order, being both file and folder or equal in an element when
// case is folded. What is valid can be in one tree.
func Check(paths []string, selector *Selector) Checked {
	var c Checked
	var names Names
	paths = slices.Sorted(slices.Values(paths))
	for i := 0; i < len(paths); {
		path := paths[i]
		first := i
		for i < len(paths) && paths[i] == path {
			i++
		}
		if !selector.Selects(path) {
			c.Omitted = append(c.Omitted, path)
			continue
		}
		err := names.check(path, i-first)
		if err != nil {
			c.Invalid = append(c.Invalid, Refused{path, err})
			continue
		}
		c.Valid = append(c.Valid, path)
	}
	return c
}

func (l *Names) check(path string, times int) *canon.InputError {
	if times > 1 {
		return refuse(path, fmt.Sprintf("the path is listed %d times", times), "list each file once")
	}
	return l.admit(path)
}

// Refusals is an error that names everything refused in one tree, in byte order of path.
type Refusals []*canon.InputError

// shown is how many refusals are written out; the first ones say what to repair.
const shown = 20

// Error gives one line a refusal.
func (r Refusals) Error() string {
	var lines []string
	for i, reason := range r {
		if i == shown {
			lines = append(lines, fmt.Sprintf("and %d more", len(r)-shown))
			break
		}
		lines = append(lines, reason.Error())
	}
	return strings.Join(lines, "\n")
}

// Unwrap lets errors.As find the first [*canon.InputError].
func (r Refusals) Unwrap() []error {
	list := make([]error, len(r))
	for i, reason := range r {
		list[i] = reason
	}
	return list
}

// Err returns nil when nothing is refused.
func (r Refusals) Err() error {
	if len(r) == 0 {
		return nil
	}
	return r
}

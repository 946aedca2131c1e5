package execlog

import (
	"slices"
	"strings"
)

// argued is one difference of two command lines: the arguments, and the part of them that differs.
type argued struct {
	index        int
	fullA, fullB string
	option       string // what the part belongs to
	change       string
	a, b         string
	absolute     bool
	withheld     bool
}

// argued compares two command lines: place by place where they are equally long, else what only one has.
func (n *analysis) argued(a, b *spawn) []argued {
	left, right := slices.Collect(n.each(a.args)), slices.Collect(n.each(b.args))
	var out []argued
	if len(left) == len(right) {
		for i := range left {
			if left[i] != right[i] {
				before := ""
				if i > 0 {
					before = n.text(left[i-1])
				}
				out = append(out, n.part(i, before, n.text(left[i]), n.text(right[i])))
			}
		}
		return out
	}
	count := map[ref]int{}
	for _, r := range left {
		count[r]++
	}
	for _, r := range right {
		count[r]--
	}
	single := func(args []ref, sign int, change string) {
		for i, r := range args {
			if count[r]*sign <= 0 {
				continue
			}
			count[r] -= sign
			text, before := n.text(r), ""
			if i > 0 {
				before = n.text(args[i-1])
			}
			d := argued{index: i, option: n.option(before, text), change: change, withheld: n.secretArgument(before, text)}
			d.hide()
			if change == missing {
				d.fullA, d.a = text, text
			} else {
				d.fullB, d.b = text, text
			}
			out = append(out, d)
		}
	}
	single(left, 1, missing)
	single(right, -1, surplus)
	return out
}

// hide keeps an argument that must not be shown out of the name of the option, as in -pVALUE.
func (d *argued) hide() {
	if d.withheld && !strings.HasPrefix(d.option, "--") {
		d.option = positional
	}
}

func (n *analysis) secretArgument(before, text string) bool {
	if name, value, ok := strings.Cut(text, "="); ok && n.secret(name, value) {
		return true
	}
	if !strings.HasPrefix(before, "-") || strings.Contains(before, "=") {
		before = ""
	}
	return n.secret(before, text)
}

const positional = "argument"

// option names what an argument belongs to.
func (n *analysis) option(before, text string) string {
	if strings.HasPrefix(text, "-") {
		name, _, _ := strings.Cut(text, "=")
		if i := strings.IndexByte(name, '/'); i > 0 {
			name = name[:i]
		}
		return name
	}
	if strings.HasPrefix(before, "-") && !strings.Contains(before, "=") && !n.secret("", before) {
		return before
	}
	return positional
}

// part finds what differs between two arguments: the word, or in a path of the machine the folders.
func (n *analysis) part(i int, before, a, b string) argued {
	d := argued{index: i, fullA: a, fullB: b, change: changed, withheld: n.secretArgument(before, a) || n.secretArgument(before, b)}
	if d.option = n.option(before, a); d.option != n.option(before, b) {
		d.option = positional
	}
	d.hide()
	begin, end := commonEnds(a, b)
	for begin > 0 && !delimits(a[begin-1]) {
		begin--
	}
	for end > 0 && !delimits(a[len(a)-end]) {
		end--
	}
	d.a, d.b = a[begin:len(a)-end], b[begin:len(b)-end]
	x, pathA := machinePath(d.a)
	y, pathB := machinePath(d.b)
	if pathA || pathB {
		d.absolute = true
		d.a, d.b = x, y
		if pathA && pathB {
			d.a, d.b = cutCommonFolders(x, y)
		}
	}
	return d
}

func commonEnds(a, b string) (begin, end int) {
	for begin < len(a) && begin < len(b) && a[begin] == b[begin] {
		begin++
	}
	for end < len(a)-begin && end < len(b)-begin && a[len(a)-1-end] == b[len(b)-1-end] {
		end++
	}
	return begin, end
}

func delimits(c byte) bool { return strings.IndexByte(" \t\n=,:;\"'()|<>&@", c) >= 0 }

// machinePath takes an option of one letter off an absolute path.
func machinePath(word string) (string, bool) {
	if len(word) > 2 && word[0] == '-' && word[1] != '-' {
		if i := strings.IndexByte(word, '/'); i > 0 && !strings.ContainsAny(word[:i], ".") {
			return word[i:], true
		}
	}
	return word, len(word) > 1 && word[0] == '/'
}

// cutCommonFolders takes off the end of two paths what both have, folder by folder.
func cutCommonFolders(a, b string) (string, string) {
	for {
		i, j := strings.LastIndexByte(a, '/'), strings.LastIndexByte(b, '/')
		if i <= 0 || j <= 0 || a[i:] != b[j:] {
			return a, b
		}
		a, b = a[:i], b[:j]
	}
}

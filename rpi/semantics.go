package rpi

import "strings"

// This file holds what the reference takes from Python's own rules about values.

// blank reports whether Python's str.strip leaves nothing of s.
func blank(s string) bool { return (s == "" || s[0] <= ' ' || s[0] > '~') && allSpace(s) }

func allSpace(s string) bool {
	for _, r := range s {
		if !pythonSpace(r) {
			return false
		}
	}
	return true
}

// pythonSpace is str.isspace: bidirectional class WS, B or S, or category Zs. Unlike
// unicode.IsSpace it has the four separators U+001C to U+001F.
func pythonSpace(r rune) bool {
	switch {
	case r >= 0x09 && r <= 0x0d, r >= 0x1c && r <= 0x20, r == 0x85, r == 0xa0, r == 0x1680,
		r >= 0x2000 && r <= 0x200a, r == 0x2028, r == 0x2029, r == 0x202f, r == 0x205f, r == 0x3000:
		return true
	}
	return false
}

// truthy is Python's bool(v).
func (v *Value) truthy() bool {
	switch v.kind {
	case Bool:
		return v.flag
	case Number:
		return v.float() != 0
	case Text:
		return v.text != ""
	case List, Object:
		return len(v.kids) > 0
	}
	return false
}

// equal is Python's ==: members in any order, and true and 1 and 1.0 are the same.
func equal(a, b *Value) bool {
	if an, ok := a.numeric(); ok {
		bn, ok := b.numeric()
		return ok && an == bn
	}
	if a.kind != b.kind || a.text != b.text || len(a.kids) != len(b.kids) {
		return false
	}
	if a.kind == Object {
		at := newNames(len(b.kids))
		for i := range b.kids {
			at.add(b.kids[i].Name)
		}
		for i := range a.kids {
			j := at.find(a.kids[i].Name)
			if j < 0 || !equal(&a.kids[i].Value, &b.kids[j].Value) {
				return false
			}
		}
		return true
	}
	for i := range a.kids {
		if !equal(&a.kids[i].Value, &b.kids[i].Value) {
			return false
		}
	}
	return true
}

// numeric returns the number that Python compares v as, booleans included.
func (v *Value) numeric() (float64, bool) {
	switch v.kind {
	case Bool:
		if v.flag {
			return 1, true
		}
		return 0, true
	case Number:
		return v.float(), true
	}
	return 0, false
}

// digest returns the identity that v is: 64 lowercase hexadecimal digits. The pattern of
// the reference ends with $, so one line feed may follow.
func (v *Value) digest() (string, bool) {
	if v == nil || v.kind != Text {
		return "", false
	}
	hex := strings.TrimSuffix(v.text, "\n")
	if len(hex) != 64 {
		return "", false
	}
	for i := range len(hex) {
		if !hexDigit[hex[i]] {
			return "", false
		}
	}
	return v.text, true
}

var hexDigit = [256]bool{
	'0': true, '1': true, '2': true, '3': true, '4': true, '5': true, '6': true, '7': true, '8': true, '9': true,
	'a': true, 'b': true, 'c': true, 'd': true, 'e': true, 'f': true,
}

// nonemptyStrings reports whether v is a list of strings of which none is blank.
func (v *Value) nonemptyStrings() bool {
	if v == nil || v.kind != List {
		return false
	}
	for i := range v.kids {
		if item := &v.kids[i].Value; item.kind != Text || blank(item.text) {
			return false
		}
	}
	return true
}

// mapping is Python's dict(v): objects, and also lists of pairs, later pairs winning.
// Names that are not strings are dropped, since nothing can ask for them.
func (v Value) mapping() (Value, bool) {
	switch v.kind {
	case Object:
		return v, true
	case Text:
		return Value{kind: Object}, v.text == ""
	case List:
	default:
		return Value{}, false
	}
	var kids []Member
	var at names
	for i := range v.kids {
		pair, ok := v.kids[i].Value.sequence()
		if !ok || len(pair) != 2 || pair[0].kind == List || pair[0].kind == Object {
			return Value{}, false
		}
		if pair[0].kind != Text {
			continue
		}
		if place, fresh := at.add(pair[0].text); fresh {
			kids = append(kids, Member{pair[0].text, pair[1]})
		} else {
			kids[place].Value = pair[1]
		}
	}
	return Value{kind: Object, kids: kids}, true
}

// sequence is Python's list(v): the elements of a list, the characters of a string, the
// names of an object.
func (v *Value) sequence() ([]Value, bool) {
	var items []Value
	switch v.kind {
	case List:
		for i := range v.kids {
			items = append(items, v.kids[i].Value)
		}
	case Object:
		for i := range v.kids {
			items = append(items, String(v.kids[i].Name))
		}
	case Text:
		for _, r := range v.text {
			items = append(items, String(string(r)))
		}
	default:
		return nil, false
	}
	return items, true
}

package rpi

import "slices"

// AppendJSON appends the RFC 8785 form of v.
func (v Value) AppendJSON(dst []byte) []byte {
	switch v.kind {
	case Bool:
		if v.flag {
			return append(dst, "true"...)
		}
		return append(dst, "false"...)
	case Number:
		return append(dst, v.text...)
	case Text:
		return appendQuoted(dst, v.text)
	case List:
		dst = append(dst, '[')
		for i := range v.kids {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = v.kids[i].Value.AppendJSON(dst)
		}
		return append(dst, ']')
	case Object:
		kids := v.kids
		byName := func(a, b Member) int { return compareUTF16(a.Name, b.Name) }
		if !slices.IsSortedFunc(kids, byName) {
			kids = slices.Clone(kids)
			slices.SortFunc(kids, byName)
		}
		dst = append(dst, '{')
		for i := range kids {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = append(appendQuoted(dst, kids[i].Name), ':')
			dst = kids[i].Value.AppendJSON(dst)
		}
		return append(dst, '}')
	}
	return append(dst, "null"...)
}

// MarshalJSON lets a Value stand inside other JSON values.
func (v Value) MarshalJSON() ([]byte, error) { return v.AppendJSON(nil), nil }

// String returns the RFC 8785 form, for messages.
func (v Value) String() string { return string(v.AppendJSON(nil)) }

// compareUTF16 orders names as RFC 8785 section 3.2.3 does: by UTF-16 code units. That differs
// from byte order only between U+E000..U+FFFF and the supplementary planes.
func compareUTF16(a, b string) int {
	n := min(len(a), len(b))
	i := 0
	for i < n && a[i] == b[i] {
		i++
	}
	if i == n {
		return len(a) - len(b)
	}
	if a[i] >= 0xee && b[i] >= 0xee && (a[i] >= 0xf0) != (b[i] >= 0xf0) {
		return int(b[i]) - int(a[i])
	}
	return int(a[i]) - int(b[i])
}

// appendQuoted writes a string as RFC 8785 section 3.2.2.2 does.
func appendQuoted(dst []byte, s string) []byte {
	dst = append(dst, '"')
	start := 0
	for i := 0; i < len(s); i++ {
		c := s[i]
		if c >= ' ' && c != '"' && c != '\\' {
			continue
		}
		dst = append(dst, s[start:i]...)
		start = i + 1
		switch c {
		case '"', '\\':
			dst = append(dst, '\\', c)
		case '\b':
			dst = append(dst, `\b`...)
		case '\t':
			dst = append(dst, `\t`...)
		case '\n':
			dst = append(dst, `\n`...)
		case '\f':
			dst = append(dst, `\f`...)
		case '\r':
			dst = append(dst, `\r`...)
		default:
			const hex = "0123456789abcdef"
			dst = append(dst, `\u00`...)
			dst = append(dst, hex[c>>4], hex[c&15])
		}
	}
	return append(append(dst, s[start:]...), '"')
}

package living

import (
	"encoding/hex"
	"iter"
	"slices"
	"strings"
	"unicode"

	"github.com/go-json-experiment/json"
	"selfsame.dev/selfsame/internal/canon"
)

// fold keeps letters and digits, in lower case: quoting, layout and case are no news.
func fold(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsLetter(r) || unicode.IsDigit(r) {
			return unicode.ToLower(r)
		}
		return -1
	}, s)
}

// text returns the words of JSON without its escapes, or other data as it is.
func text(data []byte) string {
	var v any
	if canon.Check(data) != nil || json.Unmarshal(data, &v) != nil {
		return string(data)
	}
	var b strings.Builder
	var walk func(v any)
	walk = func(v any) {
		switch v := v.(type) {
		case string:
			b.WriteString(v)
		case []any:
			for _, item := range v {
				walk(item)
			}
		case map[string]any:
			for _, name := range sortedKeys(v) {
				b.WriteString(name + " ")
				walk(v[name])
			}
			return
		default:
			out, _ := canon.Marshal(v)
			b.Write(out)
		}
		b.WriteByte(' ')
	}
	walk(v)
	return b.String()
}

// words are texts, folded, and their lengths.
type words struct {
	known   map[string]bool
	lengths []int
}

func (w *words) add(word string) {
	if word == "" || w.known[word] {
		return
	}
	w.known[word] = true
	if !slices.Contains(w.lengths, len(word)) {
		w.lengths = append(w.lengths, len(word))
	}
}

// compose reports whether a text that is not empty is nothing but words, one after another.
func (w *words) compose(s string) bool {
	reached := make([]bool, len(s)+1)
	reached[0] = true
	for i := range len(s) {
		if !reached[i] {
			continue
		}
		for _, n := range w.lengths {
			if i+n <= len(s) && !reached[i+n] && w.known[s[i:i+n]] {
				reached[i+n] = true
			}
		}
	}
	return s != "" && reached[len(s)]
}

// hexDigests yields every SHA-256 digest written in hexadecimal within data, at any
// offset of a longer run, in either case.
func hexDigests(data []byte) iter.Seq[canon.Digest] {
	return func(yield func(canon.Digest) bool) {
		run := 0
		for i, c := range data {
			if !isHex(c) {
				run = 0
				continue
			}
			if run++; run < 2*len(canon.Digest{}) {
				continue
			}
			var d canon.Digest
			if _, err := hex.Decode(d[:], data[i+1-2*len(d):i+1]); err == nil && !yield(d) {
				return
			}
		}
	}
}

func isHex(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'a' && c <= 'f' || c >= 'A' && c <= 'F'
}

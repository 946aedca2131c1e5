package living

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
	"golang.org/x/text/unicode/norm"
	"selfsame.dev/selfsame/internal/canon"
)

// Limits bound what a profile takes in and keeps. Sizes are bytes of canonical JSON.
type Limits struct {
	DeltaFacts    int64 `json:"delta_facts"`    // claims in one report, facts in one delta
	DocumentBytes int64 `json:"document_bytes"` // the whole document
	FactBytes     int64 `json:"fact_bytes"`     // one fact with its evidence
	ReportBytes   int64 `json:"report_bytes"`   // one turn report, evidence included
	TurnGap       int64 `json:"turn_gap"`       // how far a report's turn may run ahead of the last one
	ViewBytes     int64 `json:"view_bytes"`     // the compact view
}

// Hard bounds, above any baseline's own limits.
const (
	maxCount    = 1<<53 - 1 // what a double counts exactly (RFC 7493)
	maxEvidence = 8         // pieces of evidence a fact
	maxSource   = 512       // bytes of a source
	maxOwner    = 256       // bytes of an owner's name
	maxAxes     = 256
	maxCap      = 1 << 17
	maxBytes    = 1 << 28
	minView     = 1024
)

func (l Limits) append(b []byte) []byte {
	b = append(b, '{')
	for i, limit := range l.all() {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(appendString(b, limit.name), ':')
		b = strconv.AppendInt(b, limit.value, 10)
	}
	return append(b, '}')
}

type limit struct {
	name             string
	value, low, high int64
}

func (l Limits) all() []limit {
	return []limit{
		{"delta_facts", l.DeltaFacts, 1, maxCap},
		{"document_bytes", l.DocumentBytes, 1, maxBytes},
		{"fact_bytes", l.FactBytes, 1, maxBytes},
		{"report_bytes", l.ReportBytes, 1, maxBytes},
		{"turn_gap", l.TurnGap, 1, maxCount},
		{"view_bytes", l.ViewBytes, minView, maxBytes},
	}
}

// checkShape refuses axes and limits under which a document could outgrow its limit.
func checkShape(owner string, axes map[string]Axis, l Limits) error {
	for _, limit := range l.all() {
		if limit.value < limit.low || limit.value > limit.high {
			return refuse("/limits/"+limit.name, fmt.Sprintf("%d is not from %d to %d", limit.value, limit.low, limit.high), "choose a limit in that range")
		}
	}
	if len(axes) == 0 || len(axes) > maxAxes {
		return refuse("/axes", fmt.Sprintf("a profile has 1 to %d axes, not %d", maxAxes, len(axes)), "declare the axes")
	}
	full := &Document{owner: owner, version: maxCount, floor: maxCount, limits: l}
	worst := int64(0)
	for _, name := range sortedKeys(axes) {
		a := axes[name]
		if !isAxisName(name) {
			return refuse("/axes/"+name, "an axis is named by [a-z][a-z0-9_-]{0,63}", "rename it")
		}
		switch a.Kind {
		case ScalarOverwrite:
			if a.Cap != 1 {
				return refuse("/axes/"+name+"/cap", fmt.Sprintf("a scalar holds one fact, not %d", a.Cap), "write 1")
			}
		case SetUnion, ListAppendDedupeCap:
			if a.Cap < 1 || a.Cap > maxCap {
				return refuse("/axes/"+name+"/cap", fmt.Sprintf("%d is not from 1 to %d", a.Cap, maxCap), "choose a cap in that range")
			}
		default:
			return refuse("/axes/"+name+"/kind", fmt.Sprintf("%q is no kind", a.Kind),
				fmt.Sprintf("write %s, %s or %s", ScalarOverwrite, SetUnion, ListAppendDedupeCap))
		}
		full.axes = append(full.axes, &axis{name: name, Axis: a})
		worst += a.Cap * (l.FactBytes + 1)
	}
	if worst += int64(len(full.Bytes())); worst > l.DocumentBytes {
		return refuse("/limits/document_bytes", fmt.Sprintf("full axes would take up to %d bytes, the limit is %d", worst, l.DocumentBytes),
			"lower the caps or fact_bytes, or raise document_bytes")
	}
	return nil
}

func isAxisName(name string) bool {
	for i := 0; i < len(name); i++ {
		c := name[i]
		if c >= 'a' && c <= 'z' || i > 0 && (c >= '0' && c <= '9' || c == '_' || c == '-') {
			continue
		}
		return false
	}
	return len(name) >= 1 && len(name) <= 64
}

// CheckOwner refuses what cannot name an owner: nothing, more than 256 bytes, control
// characters, white space around it, or text that is not NFC UTF-8.
func CheckOwner(owner string) error {
	if err := checkLine(owner, maxOwner); err != nil {
		return under("/owner", err)
	}
	return nil
}

func checkSource(source string) error { return checkLine(source, maxSource) }

func checkLine(s string, limit int) error {
	fix := fmt.Sprintf("write 1 to %d bytes of printable NFC text", limit)
	switch {
	case s == "":
		return refuse("", "the text is empty", fix)
	case len(s) > limit:
		return refuse("", fmt.Sprintf("the text has %d bytes", len(s)), fix)
	case !utf8.ValidString(s) || !norm.NFC.IsNormalString(s):
		return refuse("", fmt.Sprintf("%q is not NFC UTF-8", s), fix)
	case strings.TrimSpace(s) != s:
		return refuse("", fmt.Sprintf("%q has white space around it", s), fix)
	}
	for _, r := range s {
		if r >= ' ' && r <= '~' {
			continue
		}
		// Format characters (Cf) are invisible and reorder text: two lines would look alike.
		if unicode.IsControl(r) || unicode.In(r, unicode.Cf, unicode.Zl, unicode.Zp, unicode.Co) {
			return refuse("", fmt.Sprintf("%q holds the invisible character %U", s, r), fix)
		}
	}
	return nil
}

func checkFormat(have, want string) error {
	if have != want {
		return refuse("/format", fmt.Sprintf("the format is %q", have), "write "+want)
	}
	return nil
}

func refuse(key, problem, fix string) error {
	return &canon.InputError{Key: key, Problem: problem, Fix: fix}
}

// under puts key in front of the key of an InputError.
func under(key string, err error) error {
	if input, ok := err.(*canon.InputError); ok {
		moved := *input
		moved.Key = key + input.Key
		return &moved
	}
	return err
}

func appendString(b []byte, s string) []byte {
	b, _ = jsontext.AppendQuote(b, s) // callers pass checked UTF-8
	return b
}

// excerpt shortens text for a message, at a character boundary.
func excerpt(s string) string {
	const limit = 120
	s = strings.ToValidUTF8(s, "\ufffd")
	if len(s) <= limit {
		return s
	}
	cut := limit
	for cut > 0 && !utf8.RuneStart(s[cut]) {
		cut--
	}
	return s[:cut] + "…"
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

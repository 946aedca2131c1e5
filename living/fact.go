package living

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"golang.org/x/text/unicode/norm"
	"selfsame.dev/selfsame/internal/canon"
)

// Fact is one thing learned. It is immutable.
type Fact struct {
	id       canon.Digest
	turn     int64
	position int64
	value    string // canonical JSON of the normalised value
	evidence []Evidence
	raw      []byte // canonical JSON of the whole fact
}

// Evidence names bytes that a turn produced: their digest, their size in bytes, and
// where a reader can look again (a command, a file, an address).
type Evidence struct {
	Bytes  int64        `json:"bytes"`
	SHA256 canon.Digest `json:"sha256"`
	Source string       `json:"source"`
}

// ID is the stable identity: the digest of axis and normalised value.
func (f *Fact) ID() canon.Digest { return f.id }

// Turn is the turn that showed the fact last.
func (f *Fact) Turn() int64 { return f.turn }

// Position is the place of the claim in that turn, from 0.
func (f *Fact) Position() int64 { return f.position }

// Value is the canonical JSON of the normalised value.
func (f *Fact) Value() string { return f.value }

// Evidence returns what the turn produced to show the fact, by digest.
func (f *Fact) Evidence() []Evidence { return slices.Clone(f.evidence) }

// compareFacts is the total order of stamps. Two facts are equal only if their bytes are.
func compareFacts(a, b *Fact) int {
	if c := cmp.Compare(a.turn, b.turn); c != 0 {
		return c
	}
	if c := cmp.Compare(a.position, b.position); c != 0 {
		return c
	}
	return bytes.Compare(a.raw, b.raw)
}

func newFact(axis, value string, turn, position int64, evidence []Evidence) *Fact {
	evidence = slices.Clone(evidence)
	slices.SortFunc(evidence, compareEvidence)
	evidence = slices.Compact(evidence)
	f := &Fact{id: identity(axis, value), turn: turn, position: position, value: value, evidence: evidence}
	b := []byte(`{"evidence":[`)
	for i, e := range evidence {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, `{"bytes":`...)
		b = strconv.AppendInt(b, e.Bytes, 10)
		b = append(b, `,"sha256":"`...)
		b = append(b, e.SHA256.String()...)
		b = append(b, `","source":`...)
		b = appendString(b, e.Source)
		b = append(b, '}')
	}
	b = append(b, `],"id":"`...)
	b = append(b, f.id.String()...)
	b = append(b, `","position":`...)
	b = strconv.AppendInt(b, position, 10)
	b = append(b, `,"turn":`...)
	b = strconv.AppendInt(b, turn, 10)
	b = append(b, `,"value":`...)
	b = append(b, value...)
	f.raw = append(b, '}')
	return f
}

func compareEvidence(a, b Evidence) int {
	if c := bytes.Compare(a.SHA256[:], b.SHA256[:]); c != 0 {
		return c
	}
	if c := strings.Compare(a.Source, b.Source); c != 0 {
		return c
	}
	return cmp.Compare(a.Bytes, b.Bytes)
}

// identity hashes the canonical form of {"axis":axis,"value":value}.
func identity(axis, value string) canon.Digest {
	b := appendString([]byte(`{"axis":`), axis)
	b = append(b, `,"value":`...)
	b = append(b, value...)
	return canon.Sum(append(b, '}'))
}

// wireFact is a fact as stored; fact recomputes what it states.
type wireFact struct {
	Evidence []Evidence     `json:"evidence"`
	ID       canon.Digest   `json:"id"`
	Position int64          `json:"position"`
	Turn     int64          `json:"turn"`
	Value    jsontext.Value `json:"value"`
}

func (w *wireFact) fact(axis string, limits Limits) (*Fact, error) {
	value, err := NormalizeValue(w.Value)
	if err != nil {
		return nil, under("/value", err)
	}
	if value != string(w.Value) {
		return nil, refuse("/value", "the value is not normalised", "write it as "+excerpt(value))
	}
	if w.Turn < 1 || w.Turn > maxCount || w.Position < 0 || w.Position > maxCount {
		return nil, refuse("/turn", "turns count from 1, positions from 0", "correct the stamp")
	}
	if len(w.Evidence) == 0 || len(w.Evidence) > maxEvidence {
		return nil, refuse("/evidence", fmt.Sprintf("a fact has 1 to %d pieces of evidence, not %d", maxEvidence, len(w.Evidence)), "cite the evidence of its turn")
	}
	for i, e := range w.Evidence {
		if err := checkSource(e.Source); err != nil {
			return nil, under(fmt.Sprintf("/evidence/%d/source", i), err)
		}
		if e.Bytes < 1 || e.Bytes > maxCount {
			return nil, refuse(fmt.Sprintf("/evidence/%d/bytes", i), "evidence has at least one byte", "cite evidence that says something")
		}
	}
	f := newFact(axis, value, w.Turn, w.Position, w.Evidence)
	if f.id != w.ID {
		return nil, refuse("/id", fmt.Sprintf("the identity is %s, stated is %s", f.id, w.ID), "state the digest of axis and value")
	}
	if !slices.Equal(f.evidence, w.Evidence) {
		return nil, refuse("/evidence", "evidence is not sorted by digest, or is there twice", "sort it")
	}
	if int64(len(f.raw)) > limits.FactBytes {
		return nil, refuse("", fmt.Sprintf("the fact has %d bytes, the limit is %d", len(f.raw), limits.FactBytes), "state it more briefly")
	}
	return f, nil
}

// NormalizeValue returns the canonical JSON of a value after what must not make two
// facts of one: strings are NFC, with LF line ends and without white space around.
// null and a value that is empty are refused: they state nothing.
func NormalizeValue(raw []byte) (string, error) {
	if err := canon.Check(raw); err != nil {
		return "", err
	}
	var v any
	if err := json.Unmarshal(raw, &v); err != nil {
		return "", refuse("", err.Error(), "correct the JSON")
	}
	if s, ok := v.(string); ok { // most values; a document may hold many thousands
		if s = normalizeText(s); s != "" {
			return string(appendString(nil, s)), nil
		}
	}
	v, err := normalize(v)
	if err != nil {
		return "", err
	}
	switch v {
	case nil, "":
		return "", refuse("", "the value is empty", "state something, or nothing at all")
	}
	out, err := canon.Marshal(v)
	return string(out), err
}

func normalize(v any) (any, error) {
	switch v := v.(type) {
	case string:
		return normalizeText(v), nil
	case []any:
		for i := range v {
			item, err := normalize(v[i])
			if err != nil {
				return nil, err
			}
			v[i] = item
		}
	case map[string]any:
		out := make(map[string]any, len(v))
		for name, item := range v {
			item, err := normalize(item)
			if err != nil {
				return nil, err
			}
			name = normalizeText(name)
			if _, twice := out[name]; twice {
				return nil, refuse("", fmt.Sprintf("two names normalise to %q", name), "keep one of the two")
			}
			out[name] = item
		}
		return out, nil
	}
	return v, nil
}

// normalizeText trims again after NFC, so that a second pass changes nothing.
func normalizeText(s string) string {
	s = strings.ReplaceAll(s, "\r\n", "\n")
	return strings.TrimSpace(norm.NFC.String(strings.TrimSpace(s)))
}

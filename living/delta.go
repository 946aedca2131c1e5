package living

import (
	"bytes"
	"fmt"
	"slices"

	"github.com/go-json-experiment/json/jsontext"
	"selfsame.dev/selfsame/internal/canon"
)

// DeltaFormat names the form of an admitted delta, as the log keeps it.
const DeltaFormat = "living-delta.v1"

// Delta is a set of admitted facts. [Capture] makes it from a turn report, and
// [DecodeDelta] reads it back from a log; nothing else does.
type Delta struct {
	owner string
	axes  map[string][]*Fact // by identity, each once, never empty
}

// newDelta keeps the greatest fact of each identity.
func newDelta(owner string, facts map[string][]*Fact) *Delta {
	d := &Delta{owner: owner, axes: make(map[string][]*Fact, len(facts))}
	for name, list := range facts {
		if len(list) == 0 {
			continue
		}
		list = slices.Clone(list)
		slices.SortFunc(list, func(a, b *Fact) int {
			if c := bytes.Compare(a.id[:], b.id[:]); c != 0 {
				return c
			}
			return compareFacts(b, a)
		})
		d.axes[name] = slices.CompactFunc(list, func(a, b *Fact) bool { return a.id == b.id })
	}
	return d
}

// Owner returns whose profile the delta is for.
func (d *Delta) Owner() string { return d.owner }

// Facts returns the facts for an axis, by identity.
func (d *Delta) Facts(axis string) []*Fact { return slices.Clone(d.axes[axis]) }

// Len counts the facts.
func (d *Delta) Len() int64 {
	n := 0
	for _, facts := range d.axes {
		n += len(facts)
	}
	return int64(n)
}

// Evidence returns the digests of all evidence behind the delta, sorted, each once.
func (d *Delta) Evidence() []canon.Digest {
	digests := []canon.Digest{}
	for _, facts := range d.axes {
		for _, f := range facts {
			for _, e := range f.evidence {
				digests = append(digests, e.SHA256)
			}
		}
	}
	slices.SortFunc(digests, func(a, b canon.Digest) int { return bytes.Compare(a[:], b[:]) })
	return slices.Compact(digests)
}

// Bytes returns the canonical bytes of the delta.
func (d *Delta) Bytes() []byte {
	b := []byte(`{"axes":{`)
	for i, name := range sortedKeys(d.axes) {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(appendString(b, name), `:[`...)
		for j, f := range d.axes[name] {
			if j > 0 {
				b = append(b, ',')
			}
			b = append(b, f.raw...)
		}
		b = append(b, ']')
	}
	b = append(b, `},"format":"`+DeltaFormat+`","owner":`...)
	return append(appendString(b, d.owner), '}')
}

// Digest is the SHA-256 of [Delta.Bytes].
func (d *Delta) Digest() canon.Digest { return canon.Sum(d.Bytes()) }

// DecodeDelta reads the canonical bytes of a delta under the limits of the document it
// is for. A delta over a limit is refused whole, with an [*canon.InputError].
func DecodeDelta(raw []byte, limits Limits) (*Delta, error) {
	var wire struct {
		Axes   map[string]jsontext.Value `json:"axes"`
		Format string                    `json:"format"`
		Owner  string                    `json:"owner"`
	}
	if err := canon.Decode(raw, &wire); err != nil {
		return nil, err
	}
	if err := checkFormat(wire.Format, DeltaFormat); err != nil {
		return nil, err
	}
	if err := CheckOwner(wire.Owner); err != nil {
		return nil, err
	}
	all := make(map[string][]*Fact, len(wire.Axes))
	for _, name := range sortedKeys(wire.Axes) {
		key := "/axes/" + name
		var facts []wireFact
		if err := canon.Decode(wire.Axes[name], &facts); err != nil {
			return nil, under(key, err)
		}
		if !isAxisName(name) || len(facts) == 0 {
			return nil, refuse(key, "the axis has a name that cannot be one, or no facts", "leave it out")
		}
		for i := range facts {
			f, err := facts[i].fact(name, limits)
			if err != nil {
				return nil, under(fmt.Sprintf("%s/%d", key, i), err)
			}
			all[name] = append(all[name], f)
		}
	}
	delta := newDelta(wire.Owner, all)
	if err := delta.within(limits); err != nil {
		return nil, err
	}
	if !bytes.Equal(delta.Bytes(), raw) {
		return nil, refuse("", "the delta is not in canonical form, or states an identity twice", "write it as capture does")
	}
	return delta, nil
}

func (d *Delta) within(limits Limits) error {
	if n := d.Len(); n > limits.DeltaFacts {
		return refuse("/axes", fmt.Sprintf("the delta has %d facts, the limit is %d", n, limits.DeltaFacts), "report fewer facts a turn")
	}
	for _, name := range sortedKeys(d.axes) {
		for i, f := range d.axes[name] {
			if n := int64(len(f.raw)); n > limits.FactBytes {
				return refuse(fmt.Sprintf("/axes/%s/%d", name, i), fmt.Sprintf("the fact has %d bytes, the limit is %d", n, limits.FactBytes), "state it more briefly")
			}
		}
	}
	return nil
}

// Package living is the pure core of a memory that grows only from evidence produced
// in the same turn. It reads no clock, no randomness, no file and no network: the
// instant of a change, the stored bytes and the turn itself are passed in.
//
// # Why merge is a join
//
// An axis is a set of facts. A fact has an identity (the digest of axis and normalised
// value) and a stamp that the delta itself carries: its turn, its position in that
// turn, and, to break ties, its canonical bytes. Stamps are totally ordered. Merge
// unites two sets, keeps for each identity the fact with the greatest stamp, and then
// keeps the N facts with the greatest stamps, N being the cap. Write that as
// top(max(A ∪ B)).
//
// Union and max per identity are associative, commutative and idempotent. The cap does
// not disturb that: when top drops a fact x from A, N facts of A with other identities
// carry greater stamps. Uniting with B can only raise the stamp of each of the N
// identities, so x stays below N others for ever: dropping it early or late gives the
// same set, top(max(top(max(A)) ∪ B)) = top(max(A ∪ B)). Hence order, grouping and
// repetition of deltas do not matter, and an evicted fact that is applied again is
// evicted again. ("The last N applied" fails exactly here.)
//
// The kinds are that one join seen three ways:
//
//   - scalar_overwrite is N = 1: the greatest stamp overwrites;
//   - set_union shows its members by identity, so that order carries no meaning;
//   - list_append_dedupe_cap shows them by stamp, oldest first: a new fact appends, a
//     repeated one moves to where it was last shown.
//
// A restore starts a new epoch: it raises the document's floor to the latest turn seen,
// and merge ignores facts at or below the floor. Within an epoch that filter looks at
// the fact alone, so merge stays a join; across epochs it keeps a late second delivery
// from undoing the restore.
//
// No limit of a delta depends on the document, and no document can outgrow its limit:
// [NewDocument] refuses caps whose full axes would not fit.
package living

import (
	"bytes"
	"fmt"
	"slices"
	"sort"
	"strconv"

	"selfsame.dev/selfsame/internal/canon"
)

// DocumentFormat names the stored form of a document.
const DocumentFormat = "living-profile.v1"

// Kind says how an axis shows its facts and how many it may hold (seed record
// idempotent-merge, FieldKind).
type Kind string

// The three kinds; the package comment says why each is a join.
const (
	ScalarOverwrite     Kind = "scalar_overwrite"
	SetUnion            Kind = "set_union"
	ListAppendDedupeCap Kind = "list_append_dedupe_cap"
)

// Axis declares one axis: its kind and the greatest number of facts it may hold.
type Axis struct {
	Kind Kind  `json:"kind"`
	Cap  int64 `json:"cap"`
}

// Document is the durable profile of one owner. It is immutable: every change gives a
// new one, which shares unchanged axes with the old.
type Document struct {
	owner    string
	version  int64
	floor    int64
	baseline canon.Digest
	limits   Limits
	axes     []*axis // by name
}

type axis struct {
	name string
	Axis
	facts []*Fact // by identity
}

// NewDocument returns version 0 of the profile that a baseline declares: no facts.
func NewDocument(base *Baseline) *Document {
	doc := &Document{owner: base.owner, baseline: base.digest, limits: base.limits}
	for _, name := range sortedKeys(base.axes) {
		doc.axes = append(doc.axes, &axis{name: name, Axis: base.axes[name]})
	}
	return doc
}

// Owner returns whose profile it is.
func (d *Document) Owner() string { return d.owner }

// Version counts the real changes since creation.
func (d *Document) Version() int64 { return d.version }

// Floor is the turn at or below which nothing is merged any more; restores raise it.
func (d *Document) Floor() int64 { return d.floor }

// BaselineDigest is the digest of the frozen baseline that the document grew on.
func (d *Document) BaselineDigest() canon.Digest { return d.baseline }

// Limits returns the limits that the baseline declared.
func (d *Document) Limits() Limits { return d.limits }

// AxisNames returns the names of the axes, sorted.
func (d *Document) AxisNames() []string {
	names := make([]string, len(d.axes))
	for i, a := range d.axes {
		names[i] = a.name
	}
	return names
}

// Axes returns the declared axes by name.
func (d *Document) Axes() map[string]Axis {
	axes := make(map[string]Axis, len(d.axes))
	for _, a := range d.axes {
		axes[a.name] = a.Axis
	}
	return axes
}

// Facts returns the facts of an axis in the order in which its kind shows them:
// oldest first for a list, else by identity.
func (d *Document) Facts(name string) []*Fact {
	a := d.axis(name)
	if a == nil {
		return nil
	}
	facts := slices.Clone(a.facts)
	if a.Kind == ListAppendDedupeCap {
		slices.SortFunc(facts, compareFacts)
	}
	return facts
}

// LastTurn is the latest turn that left a trace in the document, 0 if none did.
func (d *Document) LastTurn() int64 {
	last := d.floor
	for _, a := range d.axes {
		for _, f := range a.facts {
			last = max(last, f.turn)
		}
	}
	return last
}

func (d *Document) axis(name string) *axis {
	i := sort.Search(len(d.axes), func(i int) bool { return d.axes[i].name >= name })
	if i == len(d.axes) || d.axes[i].name != name {
		return nil
	}
	return d.axes[i]
}

// Bytes returns the canonical (RFC 8785) bytes of the document, as stored.
func (d *Document) Bytes() []byte { return d.encode(true) }

// Digest is the SHA-256 of [Document.Bytes].
func (d *Document) Digest() canon.Digest { return canon.Sum(d.Bytes()) }

// ContentDigest is the digest of the document without its version: two histories that
// learned the same have the same one, however many steps each took.
func (d *Document) ContentDigest() canon.Digest { return canon.Sum(d.encode(false)) }

// encode writes the canonical form directly from the canonical bytes that each fact
// keeps; TestEncodeIsCanonical holds it equal to canon.Marshal.
func (d *Document) encode(version bool) []byte {
	size := 1024
	for _, a := range d.axes {
		size += 128 + len(a.name)
		for _, f := range a.facts {
			size += len(f.raw) + 1
		}
	}
	b := make([]byte, 0, size)
	b = append(b, `{"axes":{`...)
	for i, a := range d.axes {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendString(b, a.name)
		b = append(b, `:{"cap":`...)
		b = strconv.AppendInt(b, a.Cap, 10)
		b = append(b, `,"facts":[`...)
		for j, f := range a.facts {
			if j > 0 {
				b = append(b, ',')
			}
			b = append(b, f.raw...)
		}
		b = append(b, `],"kind":`...)
		b = appendString(b, string(a.Kind))
		b = append(b, '}')
	}
	b = append(b, `},"baseline_sha256":"`...)
	b = append(b, d.baseline.String()...)
	b = append(b, `","floor":`...)
	b = strconv.AppendInt(b, d.floor, 10)
	b = append(b, `,"format":"`+DocumentFormat+`","limits":`...)
	b = d.limits.append(b)
	b = append(b, `,"owner":`...)
	b = appendString(b, d.owner)
	if version {
		b = append(b, `,"version":`...)
		b = strconv.AppendInt(b, d.version, 10)
	}
	return append(b, '}')
}

// DecodeDocument reads the exact canonical bytes of a document and checks all that can
// be recomputed: identities, order, caps, sizes. Errors are [*canon.InputError].
func DecodeDocument(raw []byte) (*Document, error) {
	var wire struct {
		Axes map[string]struct {
			Axis
			Facts []wireFact `json:"facts"`
		} `json:"axes"`
		Baseline canon.Digest `json:"baseline_sha256"`
		Floor    int64        `json:"floor"`
		Format   string       `json:"format"`
		Limits   Limits       `json:"limits"`
		Owner    string       `json:"owner"`
		Version  int64        `json:"version"`
	}
	if err := canon.Decode(raw, &wire); err != nil {
		return nil, err
	}
	if err := checkFormat(wire.Format, DocumentFormat); err != nil {
		return nil, err
	}
	if err := CheckOwner(wire.Owner); err != nil {
		return nil, err
	}
	if wire.Version < 0 || wire.Floor < 0 || wire.Version > maxCount || wire.Floor > maxCount {
		return nil, refuse("/version", "a version and a floor are counts from 0 on", "restore the document from its log")
	}
	axes := make(map[string]Axis, len(wire.Axes))
	for name, a := range wire.Axes {
		axes[name] = a.Axis
	}
	if err := checkShape(wire.Owner, axes, wire.Limits); err != nil {
		return nil, err
	}
	doc := &Document{owner: wire.Owner, version: wire.Version, floor: wire.Floor, baseline: wire.Baseline, limits: wire.Limits}
	for _, name := range sortedKeys(axes) {
		a := &axis{name: name, Axis: axes[name]}
		key := "/axes/" + name + "/facts"
		if int64(len(wire.Axes[name].Facts)) > a.Cap {
			return nil, refuse(key, fmt.Sprintf("%d facts pass the cap of %d", len(wire.Axes[name].Facts), a.Cap), "restore the document from its log")
		}
		for i, w := range wire.Axes[name].Facts {
			f, err := w.fact(name, wire.Limits)
			if err != nil {
				return nil, under(fmt.Sprintf("%s/%d", key, i), err)
			}
			if i > 0 && bytes.Compare(a.facts[i-1].id[:], f.id[:]) >= 0 {
				return nil, refuse(fmt.Sprintf("%s/%d", key, i), "facts are not sorted by identity, or one is there twice", "restore the document from its log")
			}
			a.facts = append(a.facts, f)
		}
		doc.axes = append(doc.axes, a)
	}
	if !bytes.Equal(doc.Bytes(), raw) {
		return nil, refuse("", "the document is not in canonical form (RFC 8785)", "restore the document from its log")
	}
	return doc, nil
}

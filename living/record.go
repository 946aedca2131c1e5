package living

import (
	"bytes"
	"fmt"
	"slices"

	"github.com/go-json-experiment/json/jsontext"
	"selfsame.dev/selfsame/internal/canon"
)

// RecordFormat names one record of a profile's log.
const RecordFormat = "living-record.v1"

// Event says what a record is about.
type Event string

// The events. Only refused leaves the document as it was.
const (
	Created  Event = "created"
	Learned  Event = "learned"
	Refused  Event = "refused"
	Restored Event = "restored"
	Rebased  Event = "rebased"
)

// Record is one line of a profile's log. Together the records re-derive every version
// of the document; each holds the digest of the one before.
type Record struct {
	At              Instant        `json:"at"`
	Baseline        jsontext.Value `json:"baseline,omitzero"` // created, rebased
	BaselineSHA256  canon.Digest   `json:"baseline_sha256"`
	Delta           jsontext.Value `json:"delta,omitzero"` // learned
	DocumentSHA256  canon.Digest   `json:"document_sha256"`
	Event           Event          `json:"event"`
	Format          string         `json:"format"`
	Modification    *Modification  `json:"modification,omitzero"` // learned, restored, rebased
	Owner           string         `json:"owner"`
	PreviousSHA256  canon.Digest   `json:"previous_sha256"` // zero in the first
	Refused         []Refusal      `json:"refused"`
	ReportSHA256    canon.Digest   `json:"report_sha256,omitzero"`    // learned, refused
	RestoredVersion *int64         `json:"restored_version,omitzero"` // restored
	Sequence        int64          `json:"sequence"`                  // from 0
	Turn            int64          `json:"turn,omitzero"`             // learned, refused; absent if the report was malformed
	Version         int64          `json:"version"`
}

// Bytes returns the canonical bytes of the record: what the log hashes.
func (r *Record) Bytes() ([]byte, error) { return canon.Marshal(r) }

// Placed is a fact and its axis.
type Placed struct {
	Axis string
	Fact *Fact
}

// Facts returns the facts that the record admits, in the order of the report.
func (r *Record) Facts() ([]Placed, error) {
	if r.Delta == nil {
		return nil, nil
	}
	delta, err := DecodeDelta(r.Delta, Limits{DeltaFacts: maxCap, FactBytes: maxBytes})
	if err != nil {
		return nil, err
	}
	var facts []Placed
	for _, name := range sortedKeys(delta.axes) {
		for _, f := range delta.axes[name] {
			facts = append(facts, Placed{name, f})
		}
	}
	slices.SortStableFunc(facts, func(a, b Placed) int { return compareFacts(a.Fact, b.Fact) })
	return facts, nil
}

// Tail is the end of a log: how many records it has and the digest of the last.
type Tail struct {
	Size int64
	Last canon.Digest
}

func (t Tail) record(event Event, doc *Document, mod *Modification, at Instant) *Record {
	return &Record{
		At: at, BaselineSHA256: doc.baseline, DocumentSHA256: doc.Digest(), Event: event, Format: RecordFormat,
		Modification: mod, Owner: doc.owner, PreviousSHA256: t.Last, Sequence: t.Size, Version: doc.version,
	}
}

// Follows reports whether the record leads from a log's end and stored version (-1 for
// none) to doc. Stores call it within the transaction that commits both. A record that
// begins elsewhere is a [*ConflictError].
func (r *Record) Follows(doc *Document, tail Tail, version int64) error {
	if r.Sequence != tail.Size || r.PreviousSHA256 != tail.Last {
		return &ConflictError{Owner: r.Owner}
	}
	prior := doc.version
	if r.Event != Refused {
		prior--
	}
	switch {
	case prior != version:
		return &ConflictError{Owner: r.Owner}
	case r.Owner != doc.owner, r.Version != doc.version, r.DocumentSHA256 != doc.Digest():
		return &HistoryError{r.Sequence, "the record is not of this document"}
	}
	return nil
}

// HistoryError says that a log does not hold together, and at which record.
type HistoryError struct {
	Sequence int64
	Problem  string
}

func (e *HistoryError) Error() string { return fmt.Sprintf("log record %d: %s", e.Sequence, e.Problem) }

// Replay re-derives documents from records, checking each against what it states.
type Replay struct {
	Document *Document // nil before the first record
	Tail     Tail
	// Earlier finds an earlier version, for records that restore one.
	Earlier func(version int64) (*Document, error)
}

// Next applies one record, given as its stored bytes. Errors are [*HistoryError].
func (r *Replay) Next(raw []byte) (*Record, error) {
	rec, doc, err := r.next(raw)
	if err != nil {
		if _, ok := err.(*HistoryError); !ok {
			err = &HistoryError{r.Tail.Size, err.Error()}
		}
		return nil, err
	}
	r.Document = doc
	r.Tail = Tail{Size: r.Tail.Size + 1, Last: canon.Sum(raw)}
	return rec, nil
}

func (r *Replay) next(raw []byte) (*Record, *Document, error) {
	bad := func(format string, args ...any) (*Record, *Document, error) {
		return nil, nil, &HistoryError{r.Tail.Size, fmt.Sprintf(format, args...)}
	}
	rec, err := DecodeRecord(raw)
	if err != nil {
		return nil, nil, err
	}
	switch {
	case rec.Sequence != r.Tail.Size:
		return bad("states sequence %d", rec.Sequence)
	case rec.PreviousSHA256 != r.Tail.Last:
		return bad("follows %s, the record before it is %s", rec.PreviousSHA256, r.Tail.Last)
	case (rec.Event == Created) != (r.Document == nil):
		return bad("event %q at this place", rec.Event)
	}
	doc := r.Document
	var mod *Modification
	switch rec.Event {
	case Created:
		base, err := DecodeBaseline(rec.Baseline)
		if err != nil {
			return nil, nil, err
		}
		doc = NewDocument(base)
	case Learned:
		delta, err := DecodeDelta(rec.Delta, doc.limits)
		if err != nil {
			return nil, nil, err
		}
		for _, facts := range delta.axes {
			for _, f := range facts {
				if f.turn != rec.Turn {
					return bad("turn %d admits fact %s of turn %d", rec.Turn, f.id, f.turn)
				}
			}
		}
		if doc, mod, err = Merge(doc, delta, rec.At); err != nil {
			return nil, nil, err
		}
	case Restored:
		if rec.RestoredVersion == nil || *rec.RestoredVersion < 0 || *rec.RestoredVersion >= doc.version {
			return bad("restores no earlier version")
		}
		earlier, err := r.Earlier(*rec.RestoredVersion)
		if err != nil {
			return nil, nil, err
		}
		if doc, mod, err = Restore(doc, earlier, rec.At); err != nil {
			return nil, nil, err
		}
	case Rebased:
		base, err := DecodeBaseline(rec.Baseline)
		if err != nil {
			return nil, nil, err
		}
		if doc, mod, err = Rebase(doc, base, rec.At); err != nil {
			return nil, nil, err
		}
	case Refused:
		if len(rec.Refused) == 0 {
			return bad("refuses nothing")
		}
	default:
		return bad("event %q is unknown", rec.Event)
	}
	if (mod == nil) != (rec.Event == Created || rec.Event == Refused) {
		return bad("states a change where there is none")
	}
	// The record that the same step would write must be the record that is there.
	want := r.Tail.record(rec.Event, doc, mod, rec.At)
	want.Baseline, want.Delta, want.Refused = rec.Baseline, rec.Delta, rec.Refused
	want.ReportSHA256, want.RestoredVersion, want.Turn = rec.ReportSHA256, rec.RestoredVersion, rec.Turn
	again, err := want.Bytes()
	if err != nil {
		return nil, nil, err
	}
	if !bytes.Equal(again, raw) {
		return bad("the re-derived document is %s at version %d, stated is %s at version %d",
			want.DocumentSHA256, want.Version, rec.DocumentSHA256, rec.Version)
	}
	return rec, doc, nil
}

// DecodeRecord reads the canonical bytes of one record and checks which parts its
// event has. Errors are [*canon.InputError].
func DecodeRecord(raw []byte) (*Record, error) {
	rec := &Record{}
	if err := canon.Decode(raw, rec); err != nil {
		return nil, err
	}
	if err := checkFormat(rec.Format, RecordFormat); err != nil {
		return nil, err
	}
	reported := rec.Event == Learned || rec.Event == Refused
	for _, part := range []struct {
		name      string
		have, may bool
	}{
		{"baseline", rec.Baseline != nil, rec.Event == Created || rec.Event == Rebased},
		{"delta", rec.Delta != nil, rec.Event == Learned},
		{"report_sha256", !rec.ReportSHA256.IsZero(), reported},
		{"restored_version", rec.RestoredVersion != nil, rec.Event == Restored},
	} {
		if part.have != part.may {
			return nil, refuse("/"+part.name, fmt.Sprintf("is present: %t, but the event is %q", part.have, rec.Event), "restore the log from a copy")
		}
	}
	if !reported && (rec.Turn != 0 || len(rec.Refused) != 0) || rec.Turn < 0 {
		return nil, refuse("/turn", fmt.Sprintf("a turn or refusals with event %q", rec.Event), "restore the log from a copy")
	}
	return rec, nil
}

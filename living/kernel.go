package living

import (
	"context"
	"errors"
	"fmt"

	"selfsame.dev/selfsame/internal/canon"
)

// Turn is one reasoning turn: it gets the canonical bytes of a seed (living-seed.v1)
// and returns those of its report (living-turn.v1).
type Turn interface {
	Run(ctx context.Context, seed []byte) (report []byte, err error)
}

// State is what a store holds for an owner: the document and the end of its log.
type State struct {
	Document *Document
	Tail     Tail
}

// Store keeps documents and logs. Implementations live in living/store; all pass its
// conformance suite.
type Store interface {
	// Load returns the state of an owner, or a [*NotFoundError].
	Load(owner string) (*State, error)
	// Commit stores a document and the record that leads to it, both or neither. It is
	// a compare-and-swap: unless the stored log ends where the record begins, it returns
	// a [*ConflictError] and stores nothing.
	Commit(doc *Document, rec *Record) error
	// Ingested reports whether the owner's log has a record of this report.
	Ingested(owner string, report canon.Digest) (bool, error)
	// Version returns an earlier document, or a [*NotFoundError].
	Version(owner string, version int64) (*Document, error)
	// Records visits the stored bytes of an owner's records from a sequence number on.
	Records(owner string, from int64, visit func(raw []byte) error) error
}

// NotFoundError says that a store has no such owner, version or record.
type NotFoundError struct{ What string }

func (e *NotFoundError) Error() string { return e.What + " is not in the store" }

// ConflictError says that another writer came first.
type ConflictError struct{ Owner string }

func (e *ConflictError) Error() string {
	return fmt.Sprintf("the profile of %q changed meanwhile", e.Owner)
}

// Kernel runs the loop: compose, seed, turn, capture, merge, version, persist.
type Kernel struct {
	Store    Store
	Baseline *Baseline
	Now      func() Instant
}

// Result says what one step did.
type Result struct {
	Event    Event // Learned, Refused, or "" if nothing was to be written
	Document *Document
	Turn     int64
	Admitted int64 // facts admitted, new or not
	Refused  []Refusal
	Failure  error // why the turn gave no report
}

// Writers that lose a race merge again; each loss is another writer's success.
const maxAttempts = 1000

// Init creates the profile of the baseline's owner. An existing one is left alone.
func (k *Kernel) Init() (*State, error) {
	state, err := k.Store.Load(k.Baseline.owner)
	var missing *NotFoundError
	if !errors.As(err, &missing) {
		return state, err
	}
	doc := NewDocument(k.Baseline)
	rec := Tail{}.record(Created, doc, nil, k.Now())
	rec.Baseline = k.Baseline.raw
	var conflict *ConflictError
	if err := k.Store.Commit(doc, rec); err != nil && !errors.As(err, &conflict) {
		return nil, err
	}
	return k.Store.Load(k.Baseline.owner)
}

// Step runs one turn. A turn that fails, panics or reports what cannot be read leaves
// the document as it was, and says so in the result; errors are the store's, or a
// [*BaselineDriftError].
func (k *Kernel) Step(ctx context.Context, turn Turn) (*Result, error) {
	state, err := k.Init()
	if err != nil {
		return nil, err
	}
	number := state.Document.LastTurn() + 1
	seed, err := Seed(state.Document, k.Baseline, number)
	if err != nil {
		return nil, err
	}
	report, err := run(ctx, turn, seed)
	if err != nil {
		return &Result{Document: state.Document, Turn: number, Failure: err}, nil
	}
	return k.take(state, report, number)
}

// Apply takes in a report that a turn handed in elsewhere. A report that the log
// already has is a no-op.
func (k *Kernel) Apply(report []byte) (*Result, error) {
	state, err := k.Init()
	if err != nil {
		return nil, err
	}
	return k.take(state, report, 0)
}

func run(ctx context.Context, turn Turn, seed []byte) (report []byte, err error) {
	defer func() {
		if p := recover(); p != nil {
			report, err = nil, fmt.Errorf("the turn panicked: %v", p)
		}
	}()
	return turn.Run(ctx, seed)
}

// take captures a report against the memory its turn was given and persists what is
// new. number is the turn that the report must be of, 0 for any.
func (k *Kernel) take(state *State, raw []byte, number int64) (*Result, error) {
	digest := canon.Sum(raw)
	if canonical, err := canon.Canonicalize(raw); err == nil {
		digest = canon.Sum(canonical) // layout makes no second report of it
	}
	out, err := Capture(state.Document, k.Baseline, raw)
	var input *canon.InputError
	switch {
	case errors.As(err, &input):
		out = refusedWhole(state.Document, 0, Malformed, excerpt(input.Error()))
	case err != nil:
		return nil, err
	case number != 0 && out.Turn != 0 && out.Turn != number:
		claims, of := out.Delta.Len()+int64(len(out.Refused)), out.Turn
		out = refusedWhole(state.Document, claims, OtherTurn, fmt.Sprintf("the report is of turn %d, this is turn %d", of, number))
		out.Turn = of
	}
	result := &Result{Turn: out.Turn, Admitted: out.Delta.Len(), Refused: out.Refused}
	return result, k.persist(result, state, func(state *State) (*Document, *Record, error) {
		if err := pinned(state.Document, k.Baseline); err != nil {
			return nil, nil, err
		}
		known, err := k.Store.Ingested(state.Document.owner, digest)
		if known || err != nil {
			return state.Document, nil, err
		}
		at := k.Now()
		doc, mod, err := Merge(state.Document, out.Delta, at)
		if err != nil || mod == nil && len(out.Refused) == 0 {
			return doc, nil, err
		}
		event := Learned
		if mod == nil {
			event = Refused
		}
		rec := state.Tail.record(event, doc, mod, at)
		rec.ReportSHA256, rec.Turn, rec.Refused = digest, out.Turn, out.Refused
		if mod != nil {
			rec.Delta = out.Delta.Bytes()
		}
		return doc, rec, nil
	})
}

// Restore writes the content of an earlier version as a new one.
func (k *Kernel) Restore(version int64) (*Result, error) {
	result := &Result{}
	return result, k.persist(result, nil, func(state *State) (*Document, *Record, error) {
		earlier, err := k.Store.Version(state.Document.owner, version)
		if err != nil {
			return nil, nil, err
		}
		at := k.Now()
		doc, mod, err := Restore(state.Document, earlier, at)
		if err != nil || mod == nil {
			return doc, nil, err
		}
		rec := state.Tail.record(Restored, doc, mod, at)
		rec.RestoredVersion = &version
		return doc, rec, nil
	})
}

// Rebase pins the profile to the kernel's baseline.
func (k *Kernel) Rebase() (*Result, error) {
	result := &Result{}
	return result, k.persist(result, nil, func(state *State) (*Document, *Record, error) {
		at := k.Now()
		doc, mod, err := Rebase(state.Document, k.Baseline, at)
		if err != nil || mod == nil {
			return doc, nil, err
		}
		rec := state.Tail.record(Rebased, doc, mod, at)
		rec.Baseline = k.Baseline.raw
		return doc, rec, nil
	})
}

// persist makes a record on the newest state and commits it, again when another writer
// came first. Merge being a join, a second attempt cannot spoil the first.
// state is where to begin, nil for what is stored now.
func (k *Kernel) persist(result *Result, state *State, step func(*State) (*Document, *Record, error)) error {
	for attempt := 0; ; attempt++ {
		if state == nil || attempt > 0 {
			var err error
			if state, err = k.Store.Load(k.Baseline.owner); err != nil {
				return err
			}
		}
		doc, rec, err := step(state)
		if err != nil {
			return err
		}
		result.Document = doc
		if rec == nil {
			return nil
		}
		result.Event = rec.Event
		err = k.Store.Commit(doc, rec)
		var conflict *ConflictError
		if errors.As(err, &conflict) && attempt < maxAttempts {
			result.Event = ""
			continue
		}
		return err
	}
}

package living_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"selfsame.dev/selfsame/internal/canon"
	"selfsame.dev/selfsame/living"
	"selfsame.dev/selfsame/living/store/storetest"
)

type turnFunc func(seed []byte) ([]byte, error)

func (f turnFunc) Run(_ context.Context, seed []byte) ([]byte, error) { return f(seed) }

func newKernel(t testing.TB, store living.Store) *living.Kernel {
	second := 0
	return &living.Kernel{Store: store, Baseline: storetest.Baseline(t, storetest.Owner), Now: func() living.Instant {
		second++
		return living.Instant(fmt.Sprintf("2026-01-01T00:%02d:%02dZ", second/60, second%60))
	}}
}

// replay re-derives the document from a store's records.
func replay(t testing.TB, store living.Store) (*living.Document, []*living.Record) {
	t.Helper()
	r := living.Replay{Earlier: func(v int64) (*living.Document, error) { return store.Version(storetest.Owner, v) }}
	var records []*living.Record
	err := store.Records(storetest.Owner, 0, func(raw []byte) error {
		rec, err := r.Next(raw)
		records = append(records, rec)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return r.Document, records
}

// One bad turn never spoils the loop.
func TestKernelLoop(t *testing.T) {
	store := storetest.NewMemory()
	k := newKernel(t, store)
	seeds := []living.TurnSeed{}
	say := func(claims ...storetest.Claim) turnFunc {
		return func(raw []byte) ([]byte, error) {
			var seed living.TurnSeed
			if err := canon.Decode(raw, &seed); err != nil {
				return nil, err
			}
			seeds = append(seeds, seed)
			return storetest.Report(seed.Owner, seed.Turn, claims...), nil
		}
	}
	for i, step := range []struct {
		turn    turnFunc
		event   living.Event
		version int64
		reason  living.Reason
		fails   bool
	}{
		{turn: say(storetest.Saw("tools", "bazel")), event: living.Learned, version: 1},
		{turn: func([]byte) ([]byte, error) { return nil, errors.New("out of tokens") }, version: 1, fails: true},
		{turn: func([]byte) ([]byte, error) { panic("bug") }, version: 1, fails: true},
		{turn: func([]byte) ([]byte, error) { return []byte("I learned a lot"), nil }, version: 1, event: living.Refused, reason: living.Malformed},
		{turn: func([]byte) ([]byte, error) { return []byte("\xff\xfe"), nil }, version: 1, event: living.Refused, reason: living.Malformed},
		{turn: func([]byte) ([]byte, error) { return nil, nil }, version: 1, event: living.Refused, reason: living.Malformed},
		{turn: func([]byte) ([]byte, error) {
			return storetest.Report(storetest.Owner, 9, storetest.Saw("notes", "from elsewhere")), nil
		}, version: 1, event: living.Refused, reason: living.OtherTurn},
		{turn: func([]byte) ([]byte, error) { return storetest.Report("other", 2, storetest.Saw("notes", "x")), nil }, version: 1, event: living.Refused, reason: living.Malformed},
		{turn: say(), version: 1},
		{turn: say(storetest.Claim{Axis: "notes", Value: `"guess"`}), version: 1, event: living.Refused, reason: living.NoEvidence},
		{turn: say(storetest.Saw("region", "us")), version: 1, event: living.Refused, reason: living.BaselineContradiction},
		{turn: say(storetest.Saw("notes", "done"), storetest.Claim{Axis: "notes", Value: `"guess"`}), version: 2, event: living.Learned, reason: living.NoEvidence},
		{turn: say(storetest.Saw("notes", "more")), event: living.Learned, version: 3},
	} {
		res, err := k.Step(t.Context(), step.turn)
		if err != nil {
			t.Fatalf("step %d: %v", i, err)
		}
		if res.Event != step.event || res.Document.Version() != step.version || (res.Failure != nil) != step.fails {
			t.Fatalf("step %d: event %q, version %d, failure %v", i, res.Event, res.Document.Version(), res.Failure)
		}
		if step.reason != "" && (len(res.Refused) != 1 || res.Refused[0].Reason != step.reason) {
			t.Fatalf("step %d: refused %+v", i, res.Refused)
		}
	}
	last := seeds[len(seeds)-1]
	if len(last.Memory.Axes["tools"].Statements) != 1 || len(last.Memory.Axes["notes"].Statements) != 1 || last.Turn != 3 {
		t.Errorf("the last seed: %+v", last)
	}
	doc, records := replay(t, store)
	state, err := store.Load(storetest.Owner)
	if err != nil || doc.Digest() != state.Document.Digest() {
		t.Errorf("the log gives %s, stored is %s", doc.Digest(), state.Document.Digest())
	}
	if len(records) != 11 || records[0].Event != living.Created {
		t.Errorf("%d records", len(records))
	}
}

// Complaint: double ingest. The log and the document stay byte for byte.
func TestDoubleIngestIsNoOp(t *testing.T) {
	store := storetest.NewMemory()
	k := newKernel(t, store)
	reports := [][]byte{
		storetest.Report(storetest.Owner, 1, storetest.Saw("tools", "a"), storetest.Claim{Axis: "notes", Value: `"guess"`}),
		storetest.Report(storetest.Owner, 2, storetest.Saw("tools", "b")),
		storetest.Report(storetest.Owner, 3, storetest.Claim{Axis: "notes", Value: `"guess"`}),
		[]byte("noise"),
	}
	for _, r := range reports {
		if _, err := k.Apply(r); err != nil {
			t.Fatal(err)
		}
	}
	before, err := store.Load(storetest.Owner)
	if err != nil || before.Tail.Size != 5 {
		t.Fatalf("%+v, %v", before, err)
	}
	spaced := []byte(strings.Replace(string(reports[0]), `{"claims"`, "{\n \"claims\"", 1))
	for _, r := range append(reports, reports[1], spaced) {
		res, err := k.Apply(r)
		if err != nil || res.Event != "" {
			t.Fatalf("%+v, %v", res, err)
		}
	}
	after, err := store.Load(storetest.Owner)
	if err != nil || after.Tail != before.Tail || after.Document.Digest() != before.Document.Digest() {
		t.Fatalf("a second delivery left a trace: %+v", after.Tail)
	}
	// Control: another report of the same claims, with new evidence, is a change.
	if res, err := k.Apply(storetest.Report(storetest.Owner, 4, storetest.Saw("tools", "a"))); err != nil || res.Event != living.Learned {
		t.Fatalf("%+v, %v", res, err)
	}
}

// Complaint: recalled facts stored again as new. A turn that hands its own seed back
// as evidence, whole or in parts, learns nothing.
func TestRecalledFactsAreNotEvidence(t *testing.T) {
	store := storetest.NewMemory()
	k := newKernel(t, store)
	if _, err := k.Apply(storetest.Report(storetest.Owner, 1, storetest.Saw("tools", "bazel"), storetest.Saw("language", "go"))); err != nil {
		t.Fatal(err)
	}
	for name, echo := range map[string]func(seed living.TurnSeed, raw []byte) string{
		"the whole seed": func(_ living.TurnSeed, raw []byte) string { return string(raw) },
		"the view":       func(seed living.TurnSeed, _ []byte) string { b, _ := seed.Memory.Bytes(); return string(b) },
		"the statement": func(seed living.TurnSeed, _ []byte) string {
			b, _ := canon.Marshal(seed.Memory.Axes["tools"].Statements[0])
			return string(b)
		},
		"the value": func(seed living.TurnSeed, _ []byte) string {
			return string(seed.Memory.Axes["tools"].Statements[0].Value)
		},
		"the source": func(seed living.TurnSeed, _ []byte) string {
			return seed.Memory.Axes["tools"].Statements[0].Reverify[0].Source
		},
	} {
		res, err := k.Step(t.Context(), turnFunc(func(raw []byte) ([]byte, error) {
			var seed living.TurnSeed
			if err := canon.Decode(raw, &seed); err != nil {
				return nil, err
			}
			return storetest.Report(seed.Owner, seed.Turn, storetest.Claim{Axis: "tools", Value: `"bazel"`, Seen: echo(seed, raw)}), nil
		}))
		if err != nil || res.Admitted != 0 || len(res.Refused) != 1 || res.Refused[0].Reason != living.Recalled || res.Document.Version() != 1 {
			t.Errorf("%s: %+v, %v", name, res, err)
		}
	}
}

// Complaint: history edited without trace. Every edit of a record, and every record
// removed, moved or repeated, is found by replay.
func TestHistoryCannotBeEdited(t *testing.T) {
	store := storetest.NewMemory()
	k := newKernel(t, store)
	for turn := int64(1); turn <= 4; turn++ {
		if _, err := k.Apply(storetest.Report(storetest.Owner, turn, storetest.Saw("notes", fmt.Sprint("note ", turn)), storetest.Claim{Axis: "notes", Value: `"guess"`})); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := k.Restore(2); err != nil {
		t.Fatal(err)
	}
	var records [][]byte
	if err := store.Records(storetest.Owner, 0, func(raw []byte) error { records = append(records, raw); return nil }); err != nil {
		t.Fatal(err)
	}
	end, err := store.Load(storetest.Owner)
	if err != nil {
		t.Fatal(err)
	}
	check := func(records [][]byte) error {
		r := living.Replay{Earlier: func(v int64) (*living.Document, error) { return store.Version(storetest.Owner, v) }}
		for _, raw := range records {
			if _, err := r.Next(raw); err != nil {
				return err
			}
		}
		if r.Tail != end.Tail {
			return errors.New("the log ends elsewhere")
		}
		return nil
	}
	if err := check(records); err != nil {
		t.Fatalf("control: %v", err)
	}
	for i := range records {
		for at := i % 7; at < len(records[i]); at += 7 { // every byte kind, in a seventh of the time
			edited := append([][]byte(nil), records...)
			edited[i] = []byte(string(records[i]))
			edited[i][at] ^= 1
			if check(edited) == nil {
				t.Fatalf("record %d, byte %d: not found", i, at)
			}
		}
		if check(append(append([][]byte(nil), records[:i]...), records[i+1:]...)) == nil {
			t.Errorf("record %d removed: not found", i)
		}
		if check(append(append([][]byte(nil), records[:i+1]...), records[i:]...)) == nil {
			t.Errorf("record %d repeated: not found", i)
		}
		if i > 0 {
			swapped := append([][]byte(nil), records...)
			swapped[i-1], swapped[i] = swapped[i], swapped[i-1]
			if check(swapped) == nil {
				t.Errorf("records %d and %d swapped: not found", i-1, i)
			}
		}
	}
	// A record forged with care, its own statements consistent, breaks the chain after it.
	forged := append([][]byte(nil), records...)
	forged[2] = []byte(strings.Replace(string(records[2]), `"reason":"no_evidence"`, `"reason":"over_limit"`, 1))
	var history *living.HistoryError
	if err := check(forged); !errors.As(err, &history) || history.Sequence != 3 || !strings.Contains(err.Error(), "follows") {
		t.Errorf("a forged record: %v", err)
	}
}

// What a record states is re-derived, not believed: a last record, forged with care and
// with nothing after it to break, is refused for what does not follow from its delta.
func TestReplayRederivesWhatRecordsState(t *testing.T) {
	store := storetest.NewMemory()
	k := newKernel(t, store)
	for turn := int64(1); turn <= 3; turn++ {
		if _, err := k.Apply(storetest.Report(storetest.Owner, turn, storetest.Saw("notes", fmt.Sprint("note ", turn)))); err != nil {
			t.Fatal(err)
		}
	}
	var records [][]byte
	if err := store.Records(storetest.Owner, 0, func(raw []byte) error { records = append(records, raw); return nil }); err != nil {
		t.Fatal(err)
	}
	last := len(records) - 1
	replayWith := func(forge func(*living.Record)) error {
		rec, err := living.DecodeRecord(records[last])
		if err != nil {
			t.Fatal(err)
		}
		forge(rec)
		raw, err := rec.Bytes()
		if err != nil {
			t.Fatal(err)
		}
		r := living.Replay{}
		for _, before := range records[:last] {
			if _, err := r.Next(before); err != nil {
				t.Fatal(err)
			}
		}
		_, err = r.Next(raw)
		return err
	}
	if err := replayWith(func(*living.Record) {}); err != nil {
		t.Fatalf("control: %v", err)
	}
	other := canon.Sum([]byte("other"))
	for name, forge := range map[string]func(*living.Record){
		"document":      func(r *living.Record) { r.DocumentSHA256 = other },
		"baseline":      func(r *living.Record) { r.BaselineSHA256 = other },
		"version":       func(r *living.Record) { r.Version++ },
		"owner":         func(r *living.Record) { r.Owner = "other" },
		"sequence":      func(r *living.Record) { r.Sequence++ },
		"previous":      func(r *living.Record) { r.PreviousSHA256 = other },
		"prior version": func(r *living.Record) { r.Modification.PriorVersion-- },
		"changed axes":  func(r *living.Record) { r.Modification.ChangedAxes = []string{"tools"} },
		"delta digest":  func(r *living.Record) { r.Modification.DeltaSHA256 = other },
		"evidence":      func(r *living.Record) { r.Modification.Evidence = []canon.Digest{other} },
		"instant":       func(r *living.Record) { r.Modification.At = "2020-01-01T00:00:00Z" },
		"turn":          func(r *living.Record) { r.Turn++ },
		"event":         func(r *living.Record) { r.Event, r.Delta, r.Modification = living.Refused, nil, nil },
		"a second birth": func(r *living.Record) {
			first, _ := living.DecodeRecord(records[0])
			first.Sequence, first.PreviousSHA256 = r.Sequence, r.PreviousSHA256
			*r = *first
		},
		"a fact of its delta": func(r *living.Record) {
			r.Delta = []byte(strings.Replace(string(r.Delta), "note 3", "note 4", 1))
		},
	} {
		var history *living.HistoryError
		if err := replayWith(forge); !errors.As(err, &history) || history.Sequence != int64(last) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Any earlier version can be shown and restored, and the restore is a record.
func TestKernelRestore(t *testing.T) {
	store := storetest.NewMemory()
	k := newKernel(t, store)
	for turn := int64(1); turn <= 3; turn++ {
		if _, err := k.Apply(storetest.Report(storetest.Owner, turn, storetest.Saw("notes", fmt.Sprint("note ", turn)))); err != nil {
			t.Fatal(err)
		}
	}
	for _, v := range []int64{0, 1, 2, 3} {
		doc, err := store.Version(storetest.Owner, v)
		if err != nil || doc.Version() != v || int64(len(doc.Facts("notes"))) != v {
			t.Errorf("version %d: %v, %v", v, doc, err)
		}
	}
	res, err := k.Restore(1)
	if err != nil || res.Event != living.Restored || res.Document.Version() != 4 || len(res.Document.Facts("notes")) != 1 {
		t.Fatalf("%+v, %v", res, err)
	}
	if res, err := k.Restore(3); err != nil || res.Document.Version() != 5 || len(res.Document.Facts("notes")) != 3 {
		t.Fatalf("a restore undone: %+v, %v", res, err)
	}
	doc, records := replay(t, store)
	if len(records) != 6 || *records[4].RestoredVersion != 1 || records[4].Modification.PriorVersion != 3 || doc.Version() != 5 {
		t.Fatalf("%d records", len(records))
	}
	if res, err := k.Restore(3); err != nil || res.Event != "" {
		t.Fatalf("restoring equal content: %+v, %v", res, err)
	}
	var missing *living.NotFoundError
	if _, err := k.Restore(17); !errors.As(err, &missing) {
		t.Fatalf("version 17: %v", err)
	}
}

// A baseline other than the pinned one stops the loop before the turn, until the
// change is recorded.
func TestBaselineDriftStops(t *testing.T) {
	store := storetest.NewMemory()
	k := newKernel(t, store)
	if _, err := k.Init(); err != nil {
		t.Fatal(err)
	}
	raw, _ := replayBaseline(t, store)
	changed, err := living.DecodeBaseline([]byte(strings.Replace(raw, `"eu"`, `"us"`, 1)))
	if err != nil {
		t.Fatal(err)
	}
	other := *k
	other.Baseline = changed
	called := false
	var drift *living.BaselineDriftError
	_, err = other.Step(t.Context(), turnFunc(func([]byte) ([]byte, error) { called = true; return nil, nil }))
	if !errors.As(err, &drift) || called {
		t.Fatalf("%v, turn called: %t", err, called)
	}
	if _, err := other.Apply(storetest.Report(storetest.Owner, 1)); !errors.As(err, &drift) {
		t.Fatal(err)
	}
	if res, err := other.Rebase(); err != nil || res.Event != living.Rebased || res.Document.Version() != 1 {
		t.Fatalf("%+v, %v", res, err)
	}
	if res, err := other.Apply(storetest.Report(storetest.Owner, 1, storetest.Saw("region", "us"))); err != nil || res.Event != living.Learned {
		t.Fatalf("%+v, %v", res, err)
	}
	if _, err := k.Apply(storetest.Report(storetest.Owner, 2)); !errors.As(err, &drift) {
		t.Fatal("the old baseline still opens the profile")
	}
	replay(t, store)
}

func replayBaseline(t testing.TB, store living.Store) (string, []*living.Record) {
	_, records := replay(t, store)
	return string(records[0].Baseline), records
}

// Racing writers lose no fact: the loser merges again.
func TestKernelMergesAgainOnConflict(t *testing.T) {
	store := storetest.NewMemory()
	k := newKernel(t, store)
	if _, err := k.Init(); err != nil {
		t.Fatal(err)
	}
	rival := newKernel(t, store)
	res, err := k.Step(t.Context(), turnFunc(func([]byte) ([]byte, error) {
		if _, err := rival.Apply(storetest.Report(storetest.Owner, 1, storetest.Saw("notes", "theirs"))); err != nil {
			t.Fatal(err)
		}
		return storetest.Report(storetest.Owner, 1, storetest.Saw("notes", "ours")), nil
	}))
	if err != nil || res.Event != living.Learned || len(res.Document.Facts("notes")) != 2 || res.Document.Version() != 2 {
		t.Fatalf("%+v, %v", res, err)
	}
	k.Store = &conflicted{Store: store, times: 3}
	if res, err := k.Apply(storetest.Report(storetest.Owner, 2, storetest.Saw("notes", "third"))); err != nil || res.Event != living.Learned || res.Document.Version() != 3 {
		t.Fatalf("%+v, %v", res, err)
	}
	replay(t, store)
}

// conflicted lets a rival in before the first commits.
type conflicted struct {
	living.Store
	times int
}

func (c *conflicted) Commit(doc *living.Document, rec *living.Record) error {
	if c.times--; c.times >= 0 {
		return &living.ConflictError{Owner: doc.Owner()}
	}
	return c.Store.Commit(doc, rec)
}

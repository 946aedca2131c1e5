// Package storetest is the conformance suite of [living.Store]: every store passes it.
package storetest

import (
	"bytes"
	"errors"
	"fmt"
	"testing"

	"selfsame.dev/selfsame/internal/canon"
	"selfsame.dev/selfsame/living"
)

// Run holds a writable store to the contract. New returns an empty one.
func Run(t *testing.T, open func(t *testing.T) living.Store) {
	for name, check := range Checks {
		t.Run(name, func(t *testing.T) { check(t, open(t)) })
	}
}

// Checks are the parts of the contract of a writable store, by name. Each gets an empty
// store; they take [testing.TB] so that a control can watch them fail.
var Checks = map[string]func(t testing.TB, store living.Store){
	"an empty store has nothing":           checkEmpty,
	"what is committed is loaded":          checkRoundTrip,
	"a stale commit stores nothing":        checkCompareAndSwap,
	"a record of another document":         checkMismatch,
	"owners are apart":                     checkOwners,
	"every version can be shown":           checkVersions,
	"reports are remembered":               checkIngested,
	"the log re-derives the document":      checkReplay,
	"refusals leave the document as it is": checkRefusals,
}

// Now returns a clock that counts seconds.
func Now() func() living.Instant {
	n := 0
	return func() living.Instant {
		n++
		return living.Instant(fmt.Sprintf("2026-01-01T%02d:%02d:%02dZ", n/3600%24, n/60%60, n%60))
	}
}

// Kernel returns a kernel for an owner's profile in a store.
func Kernel(t testing.TB, store living.Store, owner string) *living.Kernel {
	t.Helper()
	return &living.Kernel{Store: store, Baseline: Baseline(t, owner), Now: Now()}
}

// Learn applies one report that must be taken in whole.
func Learn(t testing.TB, k *living.Kernel, turn int64, claims ...Claim) *living.Result {
	t.Helper()
	res, err := k.Apply(Report(k.Baseline.Owner(), turn, claims...))
	if err != nil {
		t.Fatal(err)
	}
	if len(res.Refused) > 0 {
		t.Fatalf("refused: %+v", res.Refused)
	}
	return res
}

func checkEmpty(t testing.TB, store living.Store) {
	var missing *living.NotFoundError
	if _, err := store.Load(Owner); !errors.As(err, &missing) {
		t.Errorf("Load: %v, want NotFoundError", err)
	}
	if _, err := store.Version(Owner, 0); !errors.As(err, &missing) {
		t.Errorf("Version: %v, want NotFoundError", err)
	}
	if err := store.Records(Owner, 0, func([]byte) error { return nil }); !errors.As(err, &missing) {
		t.Errorf("Records: %v, want NotFoundError", err)
	}
}

func checkRoundTrip(t testing.TB, store living.Store) {
	k := Kernel(t, store, Owner)
	for turn := int64(1); turn <= 3; turn++ {
		res := Learn(t, k, turn, Saw("notes", fmt.Sprint("note ", turn)))
		state, err := store.Load(Owner)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(state.Document.Bytes(), res.Document.Bytes()) || state.Document.Version() != turn || state.Tail.Size != turn+1 {
			t.Fatalf("turn %d: version %d, %d records", turn, state.Document.Version(), state.Tail.Size)
		}
	}
}

// taken collects what a kernel would commit, instead of committing it.
type taken struct {
	living.Store
	doc *living.Document
	rec *living.Record
}

func (s *taken) Commit(doc *living.Document, rec *living.Record) error {
	s.doc, s.rec = doc, rec
	return nil
}

func prepare(t testing.TB, store living.Store, turn int64, claims ...Claim) (*living.Document, *living.Record) {
	t.Helper()
	s := &taken{Store: store}
	if _, err := Kernel(t, s, Owner).Apply(Report(Owner, turn, claims...)); err != nil {
		t.Fatal(err)
	}
	return s.doc, s.rec
}

func checkCompareAndSwap(t testing.TB, store living.Store) {
	k := Kernel(t, store, Owner)
	if _, err := k.Init(); err != nil {
		t.Fatal(err)
	}
	doc, rec := prepare(t, store, 1, Saw("notes", "late"))
	if _, err := k.Apply(Report(Owner, 1, Claim{Axis: "notes", Value: `"guess"`})); err != nil {
		t.Fatal(err)
	}
	refuseStale(t, store, doc, rec, "a refusal was recorded meanwhile")
	doc, rec = prepare(t, store, 1, Saw("notes", "late"))
	Learn(t, k, 1, Saw("notes", "first"))
	refuseStale(t, store, doc, rec, "a fact was learned meanwhile")
	// Creating what exists is a conflict too.
	s := &taken{Store: NewMemory()}
	if _, err := Kernel(t, s, Owner).Init(); err == nil {
		t.Fatal("control: nothing was prepared")
	}
	refuseStale(t, store, s.doc, s.rec, "the profile exists")
	doc, rec = prepare(t, store, 2, Saw("notes", "in time"))
	if err := store.Commit(doc, rec); err != nil {
		t.Errorf("control: a commit in time: %v", err)
	}
	refuseStale(t, store, doc, rec, "the same commit again")
}

func refuseStale(t testing.TB, store living.Store, doc *living.Document, rec *living.Record, when string) {
	t.Helper()
	if rec == nil {
		t.Fatalf("%s: there was nothing to commit", when)
	}
	before, err := store.Load(Owner)
	if err != nil {
		t.Fatal(err)
	}
	var conflict *living.ConflictError
	if err := store.Commit(doc, rec); !errors.As(err, &conflict) {
		t.Errorf("%s: %v, want ConflictError", when, err)
	}
	after, err := store.Load(Owner)
	if err != nil || after.Tail != before.Tail || after.Document.Digest() != before.Document.Digest() {
		t.Errorf("%s: the store changed", when)
	}
}

func checkMismatch(t testing.TB, store living.Store) {
	k := Kernel(t, store, Owner)
	if _, err := k.Init(); err != nil {
		t.Fatal(err)
	}
	_, rec := prepare(t, store, 1, Saw("notes", "one"))
	doc, _ := prepare(t, store, 1, Saw("notes", "two"))
	if err := store.Commit(doc, rec); err == nil {
		t.Error("a record of another document is accepted")
	}
	if state, err := store.Load(Owner); err != nil || state.Tail.Size != 1 {
		t.Errorf("the store changed: %+v, %v", state, err)
	}
}

// Rivals are names that a careless key would confuse.
var Rivals = []string{
	"leo", "Leo", "LEO", "l\u00e9o", "l\u0435o", "\uff4c\uff45\uff4f", // Cyrillic e, full width
	"leo/..", "../leo", "leo/../leo", "/leo", "leo\\", "leo%2f", "leo.", "leo~1", "-leo", "--", ".", "..",
	"con", "nul.txt", "\ufb01le", "file", "stra\u00dfe", "strasse", "\u0131", "i", "I", "\u03c2", "\u03c3", "k", "K",
	string(bytes.Repeat([]byte("a"), 255)), string(bytes.Repeat([]byte("a"), 256)),
}

func checkOwners(t testing.TB, store living.Store) {
	opened := map[string]bool{}
	for _, owner := range Rivals {
		if opened[owner] || living.CheckOwner(owner) != nil {
			continue
		}
		var missing *living.NotFoundError
		if _, err := store.Load(owner); !errors.As(err, &missing) {
			t.Errorf("%q reaches another owner's data: %v", owner, err)
		}
		opened[owner] = true
		Learn(t, Kernel(t, store, owner), 1, Saw("notes", "I am "+fmt.Sprintf("%x", owner)))
	}
	for owner := range opened {
		state, err := store.Load(owner)
		if err != nil || state.Document.Owner() != owner || len(state.Document.Facts("notes")) != 1 ||
			state.Document.Facts("notes")[0].Value() != fmt.Sprintf(`"I am %x"`, owner) {
			t.Errorf("%q: %v", owner, err)
		}
	}
	if len(opened) < 20 {
		t.Errorf("only %d names were tried", len(opened))
	}
}

func checkVersions(t testing.TB, store living.Store) {
	k := Kernel(t, store, Owner)
	want := map[int64]canon.Digest{}
	state, err := k.Init()
	if err != nil {
		t.Fatal(err)
	}
	want[0] = state.Document.Digest()
	for turn := int64(1); turn <= 20; turn++ {
		res := Learn(t, k, turn, Saw("notes", fmt.Sprint("note ", turn)), Saw("language", fmt.Sprint(turn)))
		want[res.Document.Version()] = res.Document.Digest()
		if turn%6 == 0 {
			if res, err = k.Restore(turn / 2); err != nil {
				t.Fatal(err)
			}
			want[res.Document.Version()] = res.Document.Digest()
		}
	}
	for version, digest := range want {
		doc, err := store.Version(Owner, version)
		if err != nil || doc.Digest() != digest {
			t.Errorf("version %d: %v", version, err)
		}
	}
	var missing *living.NotFoundError
	for _, version := range []int64{-1, int64(len(want)), 1 << 40} {
		if _, err := store.Version(Owner, version); !errors.As(err, &missing) {
			t.Errorf("version %d: %v, want NotFoundError", version, err)
		}
	}
}

func checkIngested(t testing.TB, store living.Store) {
	k := Kernel(t, store, Owner)
	for i, raw := range [][]byte{Report(Owner, 1, Saw("notes", "a")), Report(Owner, 2, Claim{Axis: "notes", Value: `"guess"`})} {
		if _, err := k.Init(); err != nil {
			t.Fatal(err)
		}
		if known, err := store.Ingested(Owner, canon.Sum(raw)); known || err != nil {
			t.Errorf("report %d before: %t, %v", i, known, err)
		}
		if _, err := k.Apply(raw); err != nil {
			t.Fatal(err)
		}
		if known, err := store.Ingested(Owner, canon.Sum(raw)); !known || err != nil {
			t.Errorf("report %d after: %t, %v", i, known, err)
		}
	}
}

func checkReplay(t testing.TB, store living.Store) {
	k := Kernel(t, store, Owner)
	for turn := int64(1); turn <= 12; turn++ {
		Learn(t, k, turn, Saw("notes", fmt.Sprint("note ", turn%5)), Saw("tools", fmt.Sprint("tool ", turn)))
	}
	if _, err := k.Restore(4); err != nil {
		t.Fatal(err)
	}
	compareReplay(t, store)
}

func compareReplay(t testing.TB, store living.Store) {
	t.Helper()
	state, err := store.Load(Owner)
	if err != nil {
		t.Fatal(err)
	}
	r := living.Replay{Earlier: func(version int64) (*living.Document, error) { return store.Version(Owner, version) }}
	var all [][]byte
	err = store.Records(Owner, 0, func(raw []byte) error {
		all = append(all, bytes.Clone(raw))
		_, err := r.Next(raw)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if r.Tail != state.Tail || !bytes.Equal(r.Document.Bytes(), state.Document.Bytes()) {
		t.Errorf("the log leads to %+v, stored is %+v", r.Tail, state.Tail)
	}
	for from := range int64(len(all)) + 1 {
		n := from
		err := store.Records(Owner, from, func(raw []byte) error {
			if !bytes.Equal(raw, all[n]) {
				return fmt.Errorf("record %d is another one", n)
			}
			n++
			return nil
		})
		if err != nil || n != int64(len(all)) {
			t.Errorf("from record %d: ended at %d, %v", from, n, err)
		}
	}
	stop := errors.New("enough")
	if err := store.Records(Owner, 0, func([]byte) error { return stop }); !errors.Is(err, stop) {
		t.Errorf("a visitor's error comes back as %v", err)
	}
}

func checkRefusals(t testing.TB, store living.Store) {
	k := Kernel(t, store, Owner)
	Learn(t, k, 1, Saw("notes", "a"))
	before, err := store.Load(Owner)
	if err != nil {
		t.Fatal(err)
	}
	for i, raw := range [][]byte{Report(Owner, 2, Claim{Axis: "notes", Value: `"guess"`}), []byte("noise")} {
		res, err := k.Apply(raw)
		if err != nil || res.Event != living.Refused {
			t.Fatalf("%+v, %v", res, err)
		}
		after, err := store.Load(Owner)
		if err != nil || !bytes.Equal(after.Document.Bytes(), before.Document.Bytes()) || after.Tail.Size != before.Tail.Size+int64(i)+1 {
			t.Errorf("%+v, %v", after.Tail, err)
		}
	}
	compareReplay(t, store)
}

// RunReadOnly holds a mirror to the contract: it shows what its source showed when it
// was taken, and takes no writes. mirror takes one of the source, which has a history.
func RunReadOnly(t *testing.T, source living.Store, mirror func(t *testing.T) living.Store, refused func(error) bool) {
	k := Kernel(t, source, Owner)
	for turn := int64(1); turn <= 9; turn++ {
		Learn(t, k, turn, Saw("notes", fmt.Sprint("note ", turn)))
	}
	if _, err := k.Restore(3); err != nil {
		t.Fatal(err)
	}
	m := mirror(t)
	same := func(t *testing.T) {
		want, err := source.Load(Owner)
		if err != nil {
			t.Fatal(err)
		}
		got, err := m.Load(Owner)
		if err != nil || got.Tail != want.Tail || !bytes.Equal(got.Document.Bytes(), want.Document.Bytes()) {
			t.Fatalf("%+v, %v; want %+v", got, err, want)
		}
		compareReplay(t, m)
	}
	t.Run("it shows the source", same)
	t.Run("versions", func(t *testing.T) {
		for version := range int64(11) {
			want, err := source.Version(Owner, version)
			if err != nil {
				t.Fatal(err)
			}
			if got, err := m.Version(Owner, version); err != nil || got.Digest() != want.Digest() {
				t.Errorf("version %d: %v", version, err)
			}
		}
		var missing *living.NotFoundError
		if _, err := m.Version(Owner, 11); !errors.As(err, &missing) {
			t.Errorf("version 11: %v", err)
		}
		if _, err := m.Load("other"); !errors.As(err, &missing) {
			t.Errorf("another owner: %v", err)
		}
	})
	t.Run("reports", func(t *testing.T) {
		for turn, want := range map[int64]bool{3: true, 77: false} {
			raw := Report(Owner, turn, Saw("notes", fmt.Sprint("note ", turn)))
			if known, err := m.Ingested(Owner, canon.Sum(raw)); known != want || err != nil {
				t.Errorf("turn %d: %t, %v", turn, known, err)
			}
		}
	})
	t.Run("it takes no writes", func(t *testing.T) {
		onMirror := Kernel(t, m, Owner)
		for name, write := range map[string]func() (*living.Result, error){
			"a fact": func() (*living.Result, error) { return onMirror.Apply(Report(Owner, 30, Saw("notes", "new"))) },
			"a refusal": func() (*living.Result, error) {
				return onMirror.Apply(Report(Owner, 30, Claim{Axis: "notes", Value: `"guess"`}))
			},
			"a restore": func() (*living.Result, error) { return onMirror.Restore(1) },
		} {
			if res, err := write(); !refused(err) {
				t.Errorf("%s: %+v, %v", name, res, err)
			}
		}
		same(t)
	})
}

package storetest

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"selfsame.dev/selfsame/internal/canon"
	"selfsame.dev/selfsame/living"
)

func TestMemoryConforms(t *testing.T) {
	Run(t, func(*testing.T) living.Store { return NewMemory() })
}

// watcher records a failure instead of reporting it.
type watcher struct {
	testing.TB
	failed bool
}

func (w *watcher) Helper()               {}
func (w *watcher) Errorf(string, ...any) { w.failed = true }
func (w *watcher) Error(...any)          { w.failed = true }
func (w *watcher) Fatalf(string, ...any) { w.failed = true; runtime.Goexit() }
func (w *watcher) Fatal(...any)          { w.failed = true; runtime.Goexit() }

func fails(t *testing.T, check func(testing.TB, living.Store), store living.Store) bool {
	w := &watcher{TB: t}
	done := make(chan struct{})
	go func() {
		defer close(done)
		check(w, store)
	}()
	<-done
	return w.failed
}

// broken wraps a store and spoils one thing.
type broken struct {
	living.Store
	load     func(living.Store, string) (*living.State, error)
	commit   func(living.Store, *living.Document, *living.Record) error
	ingested func() (bool, error)
	version  func(living.Store, string, int64) (*living.Document, error)
	records  func(s living.Store, owner string, from int64, visit func([]byte) error) error
}

func (b *broken) Load(owner string) (*living.State, error) {
	if b.load != nil {
		return b.load(b.Store, owner)
	}
	return b.Store.Load(owner)
}

func (b *broken) Commit(doc *living.Document, rec *living.Record) error {
	if b.commit != nil {
		return b.commit(b.Store, doc, rec)
	}
	return b.Store.Commit(doc, rec)
}

func (b *broken) Ingested(owner string, report canon.Digest) (bool, error) {
	if b.ingested != nil {
		return b.ingested()
	}
	return b.Store.Ingested(owner, report)
}

func (b *broken) Version(owner string, version int64) (*living.Document, error) {
	if b.version != nil {
		return b.version(b.Store, owner, version)
	}
	return b.Store.Version(owner, version)
}

func (b *broken) Records(owner string, from int64, visit func([]byte) error) error {
	if b.records != nil {
		return b.records(b.Store, owner, from, visit)
	}
	return b.Store.Records(owner, from, visit)
}

// The suite finds what it is for: each broken store fails the check named for it.
func TestSuiteCatchesBrokenStores(t *testing.T) {
	for name, tc := range map[string]struct {
		check string
		store living.Store
	}{
		"invents an owner": {"an empty store has nothing", &broken{Store: NewMemory(), load: func(living.Store, string) (*living.State, error) { return &living.State{}, nil }}},
		"loses a commit": {"what is committed is loaded", &broken{Store: NewMemory(), commit: func(s living.Store, d *living.Document, r *living.Record) error {
			if r.Event == living.Learned {
				return nil
			}
			return s.Commit(d, r)
		}}},
		"overwrites what came first": {"a stale commit stores nothing", &broken{Store: NewMemory(), commit: func(s living.Store, d *living.Document, r *living.Record) error {
			if state, err := s.Load(Owner); err == nil {
				moved := *r
				moved.Sequence, moved.PreviousSHA256 = state.Tail.Size, state.Tail.Last
				r = &moved
			}
			return s.Commit(d, r)
		}}},
		"stores a record of another document": {"a record of another document", &broken{Store: NewMemory(), commit: func(s living.Store, d *living.Document, r *living.Record) error {
			moved := *r
			moved.DocumentSHA256 = d.Digest()
			return s.Commit(d, &moved)
		}}},
		"folds case": {"owners are apart", &broken{Store: NewMemory(), load: func(s living.Store, owner string) (*living.State, error) {
			if owner == "LEO" {
				owner = "leo"
			}
			return s.Load(owner)
		}}},
		"shows the newest version": {"every version can be shown", &broken{Store: NewMemory(), version: func(s living.Store, owner string, _ int64) (*living.Document, error) {
			state, err := s.Load(owner)
			if err != nil {
				return nil, err
			}
			return state.Document, nil
		}}},
		"forgets reports": {"reports are remembered", &broken{Store: NewMemory(), ingested: func() (bool, error) { return false, nil }}},
		"skips a record": {"the log re-derives the document", &broken{Store: NewMemory(), records: func(s living.Store, owner string, from int64, visit func([]byte) error) error {
			n := from
			return s.Records(owner, from, func(raw []byte) error {
				if n++; n == 4 {
					return nil
				}
				return visit(raw)
			})
		}}},
		"drops refusals": {"refusals leave the document as it is", &broken{Store: NewMemory(), commit: func(s living.Store, d *living.Document, r *living.Record) error {
			if r.Event == living.Refused {
				return nil
			}
			return s.Commit(d, r)
		}}},
	} {
		t.Run(name, func(t *testing.T) {
			if !fails(t, Checks[tc.check], tc.store) {
				t.Errorf("%q passes", tc.check)
			}
		})
		delete(covered, tc.check)
	}
	if len(covered) > 0 {
		t.Errorf("no broken store is tried on: %s", strings.Join(keys(covered), ", "))
	}
}

var covered = func() map[string]bool {
	m := map[string]bool{}
	for name := range Checks {
		m[name] = true
	}
	return m
}()

func keys(m map[string]bool) []string {
	var out []string
	for k := range m {
		out = append(out, fmt.Sprint(k))
	}
	return out
}

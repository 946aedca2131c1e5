package store

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	bolt "go.etcd.io/bbolt"
	"selfsame.dev/selfsame/internal/canon"
	"selfsame.dev/selfsame/living"
	"selfsame.dev/selfsame/living/store/storetest"
)

// -living.records=1000000 is the full size of the claim that opening a store does not
// read its log; by default the log is long enough to show it.
var longLog = flag.Int64("living.records", 3000, "records in the long log of the opening test and benchmark")

// lengthen gives a store a log of n records, in few transactions and without waiting
// for the disk: refusals, each a real record, signed and hashed as Commit does it.
func lengthen(t testing.TB, s *Authoritative, n int64) {
	t.Helper()
	grow(t, s, 3)
	state, err := s.Load(owner)
	if err != nil {
		t.Fatal(err)
	}
	key, _, err := s.folder(owner)
	if err != nil {
		t.Fatal(err)
	}
	tail := state.Tail
	doc := state.Document
	var signed []byte
	for tail.Size < n {
		s.edit(t, func(tx *bolt.Tx) error {
			for range 10000 {
				if tail.Size >= n {
					break
				}
				rec := &living.Record{
					At: "2026-01-01T00:00:00Z", BaselineSHA256: doc.BaselineDigest(), DocumentSHA256: doc.Digest(), Event: living.Refused,
					Format: living.RecordFormat, Owner: owner, PreviousSHA256: tail.Last, ReportSHA256: canon.Sum(number(tail.Size)),
					Refused:  []living.Refusal{{Axis: "notes", Claims: 1, Detail: "no evidence is cited", Reason: living.NoEvidence, Value: `"guess"`}},
					Sequence: tail.Size, Turn: 4, Version: doc.Version(),
				}
				raw, err := rec.Bytes()
				if err != nil {
					return err
				}
				if signed, err = s.put(tx, doc, rec, key); err != nil {
					return err
				}
				tail = living.Tail{Size: tail.Size + 1, Last: canon.Sum(raw)}
			}
			return nil
		})
	}
	if err := s.publish(s.path(t, headFile), signed); err != nil {
		t.Fatal(err)
	}
}

// Opening a store, loading its document and finding a report do not read the log: they
// allocate as much for a long log as for a short one. Fsck, which reads it, is the control.
func TestOpeningDoesNotReadTheLog(t *testing.T) {
	load := func(s *Authoritative) float64 {
		return testing.AllocsPerRun(5, func() {
			fresh := Open(s.dir, s.keys)
			if _, err := fresh.Load(owner); err != nil {
				t.Fatal(err)
			}
			if _, err := fresh.Ingested(owner, canon.Digest{}); err != nil {
				t.Fatal(err)
			}
		})
	}
	short, long := newStore(t), newStore(t)
	lengthen(t, short, 100)
	lengthen(t, long, *longLog)
	few, many := load(short), load(long)
	if many > few*1.5 {
		t.Errorf("%d records cost %.0f allocations, 100 cost %.0f", *longLog, many, few)
	}
	t.Logf("allocations: %.0f for 100 records, %.0f for %d", few, many, *longLog)
	if *longLog > 3000 {
		return // the control reads it all
	}
	read := testing.AllocsPerRun(1, func() {
		if _, err := long.Fsck(owner); err != nil {
			t.Fatal(err)
		}
	})
	if read < 10*many {
		t.Errorf("control: reading the log costs %.0f allocations", read)
	}
}

func BenchmarkOpenLoad(b *testing.B) {
	for _, n := range []int64{100, *longLog} {
		b.Run(fmt.Sprintf("records=%d", n), func(b *testing.B) {
			s := newStore(b)
			lengthen(b, s, n)
			b.ReportAllocs()
			for b.Loop() {
				if _, err := Open(s.dir, s.keys).Load(owner); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// Appends with the store's full durability, beside a bare loop of one write and one
// fsync on the same disk.
func BenchmarkAppend(b *testing.B) {
	b.Run("bare fsync", func(b *testing.B) {
		f, err := os.Create(filepath.Join(b.TempDir(), "f"))
		if err != nil {
			b.Fatal(err)
		}
		defer f.Close()
		record := make([]byte, 1024)
		for b.Loop() {
			if _, err := f.Write(record); err != nil {
				b.Fatal(err)
			}
			if err := f.Sync(); err != nil {
				b.Fatal(err)
			}
		}
		b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "appends/s")
	})
	b.Run("apply", func(b *testing.B) {
		dir := b.TempDir()
		k := storetest.Kernel(b, Open(dir, testKeys(b, dir)), owner)
		turn := int64(0)
		for b.Loop() {
			turn++
			storetest.Learn(b, k, turn, storetest.Saw("notes", fmt.Sprint("note ", turn)))
		}
		b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "appends/s")
	})
}

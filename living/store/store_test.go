package store

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	bolt "go.etcd.io/bbolt"
	"golang.org/x/mod/sumdb/note"
	"selfsame.dev/selfsame/internal/canon"
	"selfsame.dev/selfsame/living"
	"selfsame.dev/selfsame/living/store/storetest"
)

const owner = storetest.Owner

// testKeys makes the same keys in every run.
func testKeys(t testing.TB, dir string) Keys {
	t.Helper()
	keys, err := CreateKeys(dir, rand.NewChaCha8([32]byte{1}))
	if err != nil {
		t.Fatal(err)
	}
	return keys
}

func newStore(t testing.TB) *Authoritative {
	t.Helper()
	dir := t.TempDir()
	s := Open(dir, testKeys(t, dir))
	s.noSync = true
	s.publish = publishWithoutSync
	return s
}

func publishWithoutSync(path string, head []byte) error {
	return errors.Join(os.WriteFile(path+".new", head, 0o600), os.Rename(path+".new", path))
}

func putDocument(raw []byte) func(tx *bolt.Tx) error {
	return func(tx *bolt.Tx) error { return tx.Bucket(bucketMeta).Put(keyDocument, raw) }
}

func (s *Authoritative) path(t testing.TB, name string) string {
	t.Helper()
	_, folder, err := s.folder(owner)
	if err != nil {
		t.Fatal(err)
	}
	return filepath.Join(folder, name)
}

// grow gives the synthetic owner a history of n turns.
func grow(t testing.TB, s living.Store, n int64) *living.Kernel {
	t.Helper()
	k := storetest.Kernel(t, s, owner)
	state, err := k.Init()
	if err != nil {
		t.Fatal(err)
	}
	first := state.Document.LastTurn() + 1
	for turn := first; turn < first+n; turn++ {
		storetest.Learn(t, k, turn, storetest.Saw("notes", fmt.Sprint("note ", turn)))
	}
	return k
}

func TestAuthoritativeConforms(t *testing.T) {
	storetest.Run(t, func(t *testing.T) living.Store { return newStore(t) })
}

func TestMirrorConforms(t *testing.T) {
	s := newStore(t)
	storetest.RunReadOnly(t, s, func(t *testing.T) living.Store { return takeMirror(t, s) }, func(err error) bool {
		var readOnly *ReadOnlyError
		return errors.As(err, &readOnly)
	})
}

func takeMirror(t testing.TB, s *Authoritative) *Mirror {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "mirror")
	if _, err := s.Mirror(owner, dir, "2026-01-01T00:00:00Z"); err != nil {
		t.Fatal(err)
	}
	m, err := OpenMirror(dir, s.keys)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func TestFsckAccepts(t *testing.T) {
	s := newStore(t)
	k := grow(t, s, 2*snapshotEvery+3)
	if _, err := k.Apply([]byte("noise")); err != nil {
		t.Fatal(err)
	}
	res, err := k.Restore(7)
	if err != nil {
		t.Fatal(err)
	}
	got, err := s.Fsck(owner)
	if err != nil {
		t.Fatal(err)
	}
	if got.Records != 2*snapshotEvery+6 || got.DocumentSHA256 != res.Document.Digest() || got.Unpublished != 0 {
		t.Errorf("%+v", got)
	}
	for _, version := range []int64{0, 1, snapshotEvery - 1, snapshotEvery, snapshotEvery + 1, 2 * snapshotEvery, 2*snapshotEvery + 4} {
		if doc, err := s.Version(owner, version); err != nil || doc.Version() != version {
			t.Errorf("version %d: %v", version, err)
		}
	}
}

// edit changes an owner's database behind the store's back.
func (s *Authoritative) edit(t testing.TB, do func(tx *bolt.Tx) error) {
	t.Helper()
	db, err := bolt.Open(s.path(t, databaseFile), 0o600, &bolt.Options{NoSync: true})
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(db.Update(do), db.Close()); err != nil {
		t.Fatal(err)
	}
}

// Complaint: history edited without trace. Each edit is made in the database itself,
// with everything around it left as it was.
func TestFsckFindsEdits(t *testing.T) {
	for name, do := range map[string]func(tx *bolt.Tx) error{
		"a fact in the document": func(tx *bolt.Tx) error {
			b := tx.Bucket(bucketMeta)
			return b.Put(keyDocument, bytes.Replace(bytes.Clone(b.Get(keyDocument)), []byte("note 3"), []byte("note x"), 1))
		},
		"an old document put back": func(tx *bolt.Tx) error {
			return tx.Bucket(bucketMeta).Put(keyDocument, bytes.Clone(tx.Bucket(bucketSnapshots).Get(number(0))[8:]))
		},
		"a byte in a record": func(tx *bolt.Tx) error {
			b := tx.Bucket(bucketRecords)
			return b.Put(number(2), bytes.Replace(bytes.Clone(b.Get(number(2))), []byte("note 2"), []byte("note y"), 1))
		},
		"the last record removed": func(tx *bolt.Tx) error { return tx.Bucket(bucketRecords).Delete(number(5)) },
		"a record removed":        func(tx *bolt.Tx) error { return tx.Bucket(bucketRecords).Delete(number(3)) },
		"two records swapped": func(tx *bolt.Tx) error {
			b := tx.Bucket(bucketRecords)
			one, two := bytes.Clone(b.Get(number(2))), bytes.Clone(b.Get(number(3)))
			return errors.Join(b.Put(number(2), two), b.Put(number(3), one))
		},
		"a record added": func(tx *bolt.Tx) error {
			b := tx.Bucket(bucketRecords)
			return b.Put(number(6), bytes.Clone(b.Get(number(5))))
		},
		"a hash":       func(tx *bolt.Tx) error { return tx.Bucket(bucketHashes).Put(number(1), make([]byte, 32)) },
		"a hash added": func(tx *bolt.Tx) error { return tx.Bucket(bucketHashes).Put(number(100), make([]byte, 32)) },
		"a report forgotten": func(tx *bolt.Tx) error {
			k, _ := tx.Bucket(bucketReports).Cursor().First()
			return tx.Bucket(bucketReports).Delete(k)
		},
		"a report invented": func(tx *bolt.Tx) error { return tx.Bucket(bucketReports).Put(make([]byte, 32), number(1)) },
		"a stored version": func(tx *bolt.Tx) error {
			b := tx.Bucket(bucketSnapshots)
			return b.Put(number(0), bytes.Replace(bytes.Clone(b.Get(number(0))), []byte(`"version":0`), []byte(`"version":9`), 1))
		},
		"the head":       func(tx *bolt.Tx) error { return tx.Bucket(bucketMeta).Put(keyHead, []byte("head")) },
		"a bucket":       func(tx *bolt.Tx) error { return tx.DeleteBucket(bucketReports) },
		"a foreign head": func(tx *bolt.Tx) error { return tx.Bucket(bucketMeta).Put(keyHead, foreignHead) },
	} {
		t.Run(name, func(t *testing.T) {
			s := newStore(t)
			grow(t, s, 5)
			if _, err := s.Fsck(owner); err != nil {
				t.Fatalf("control: %v", err)
			}
			s.edit(t, do)
			if got, err := s.Fsck(owner); err == nil || !Failed(err) {
				t.Errorf("%+v, %v", got, err)
			}
		})
	}
}

// Loading does not wait for fsck: a document that is not the one that the last record
// names is refused at once.
func TestLoadRefusesAnotherDocument(t *testing.T) {
	s := newStore(t)
	k := grow(t, s, 3)
	old, err := s.Version(owner, 2)
	if err != nil {
		t.Fatal(err)
	}
	s.edit(t, putDocument(old.Bytes()))
	var corrupt *CorruptError
	if _, err := s.Load(owner); !errors.As(err, &corrupt) {
		t.Errorf("Load: %v", err)
	}
	if _, err := k.Apply(storetest.Report(owner, 9, storetest.Saw("notes", "x"))); !errors.As(err, &corrupt) {
		t.Errorf("Apply: %v", err)
	}
}

var foreignHead = func() []byte {
	secret, _, err := note.GenerateKey(rand.NewChaCha8([32]byte{9}), KeyName)
	if err != nil {
		panic(err)
	}
	signer, err := note.NewSigner(secret)
	if err != nil {
		panic(err)
	}
	key, err := OwnerKey(owner)
	if err != nil {
		panic(err)
	}
	signed, err := note.Sign(&note.Note{Text: fmt.Sprintf("selfsame living/%s\n6\n%s\n", key, strings.Repeat("A", 43)+"=")}, signer)
	if err != nil {
		panic(err)
	}
	return signed
}()

// A changed byte anywhere in the database file is either found, or lies where nothing
// is kept: then all that is kept still reads the same.
func TestFsckFindsChangedBytes(t *testing.T) {
	s := newStore(t)
	grow(t, s, 5)
	want, err := s.Fsck(owner)
	if err != nil {
		t.Fatal(err)
	}
	path := s.path(t, databaseFile)
	clean, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	random := rand.New(rand.NewPCG(1, 2))
	found := 0
	const tries = 400
	for range tries {
		damaged := bytes.Clone(clean)
		at := random.IntN(len(damaged))
		damaged[at] ^= byte(1 + random.IntN(255))
		if err := os.Remove(path); err != nil { // a reader that panicked may keep the old file locked
			t.Fatal(err)
		}
		if err := os.WriteFile(path, damaged, 0o600); err != nil {
			t.Fatal(err)
		}
		got, err := s.Fsck(owner)
		if err != nil {
			found++
			continue
		}
		got.Document, want.Document = nil, nil
		if *got != *want {
			t.Fatalf("byte %d: accepted, but reads %+v", at, got)
		}
	}
	if found < tries/20 {
		t.Errorf("only %d of %d changes were found: the files hold more than that", found, tries)
	}
	for _, size := range []int{0, 1, 100, 4096, len(clean) / 2, len(clean) - 4096} {
		if err := errors.Join(os.Remove(path), os.WriteFile(path, clean[:size], 0o600)); err != nil {
			t.Fatal(err)
		}
		got, err := s.Fsck(owner)
		if err != nil {
			continue
		}
		if got.Document = nil; *got != *want {
			t.Errorf("cut to %d bytes: %+v, %v", size, got, err)
		}
	}
}

// A rollback, whole and consistent in itself, does not reach the head that was signed
// later, whether that lies beside the database or elsewhere.
func TestRollbackIsFound(t *testing.T) {
	s := newStore(t)
	k := grow(t, s, 3)
	old, err := os.ReadFile(s.path(t, databaseFile))
	if err != nil {
		t.Fatal(err)
	}
	oldHead, err := s.Head(owner)
	if err != nil {
		t.Fatal(err)
	}
	grow(t, s, 2)
	newHead, err := s.Head(owner)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Reaches(owner, oldHead, "old head"); err != nil {
		t.Fatalf("control: %v", err)
	}
	put := func(name string, data []byte) {
		if err := errors.Join(os.Remove(s.path(t, name)), os.WriteFile(s.path(t, name), data, 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	var rollback *RollbackError
	put(databaseFile, old)
	if _, err := s.Load(owner); !errors.As(err, &rollback) {
		t.Errorf("the database put back: %v", err)
	}
	if _, err := k.Apply(storetest.Report(owner, 9, storetest.Saw("notes", "x"))); !errors.As(err, &rollback) {
		t.Errorf("writing to a database put back: %v", err)
	}
	put(headFile, oldHead) // both put back: the files agree, a head kept elsewhere does not
	if _, err := s.Load(owner); err != nil {
		t.Fatalf("control: %v", err)
	}
	if err := s.Reaches(owner, newHead, "a kept head"); !errors.As(err, &rollback) {
		t.Errorf("both put back: %v", err)
	}
	// A fork: as long as the old log, other records.
	storetest.Learn(t, k, 4, storetest.Saw("notes", "another past"))
	storetest.Learn(t, k, 5, storetest.Saw("notes", "another past still"))
	if err := s.Reaches(owner, newHead, "a kept head"); !errors.As(err, &rollback) {
		t.Errorf("a fork: %v", err)
	}
	for _, name := range []string{headFile, databaseFile} {
		if err := os.Rename(s.path(t, name), s.path(t, name)+".away"); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Load(owner); !errors.As(err, &rollback) {
			t.Errorf("%s taken away: %v", name, err)
		}
		if _, err := k.Init(); !errors.As(err, &rollback) {
			t.Errorf("%s taken away, created again: %v", name, err)
		}
		if err := os.Rename(s.path(t, name)+".away", s.path(t, name)); err != nil {
			t.Fatal(err)
		}
	}
}

// An exported log is verified from its files alone.
func TestVerifyLog(t *testing.T) {
	s := newStore(t)
	k := grow(t, s, 6)
	early, err := s.Head(owner)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := k.Restore(2); err != nil {
		t.Fatal(err)
	}
	m := takeMirror(t, s)
	log, head := m.log, m.signed
	if got, err := VerifyLog(s.keys, log, head); err != nil || got.Records != 8 {
		t.Fatalf("control: %+v, %v", got, err)
	}
	if err := VerifyContinues(s.keys, log, early); err != nil {
		t.Fatalf("control: %v", err)
	}
	all := bytes.SplitAfter(log, []byte("\n"))
	all = all[:len(all)-1]
	join := func(order ...int) []byte {
		var out []byte
		for _, i := range order {
			out = append(out, all[i]...)
		}
		return out
	}
	for name, bad := range map[string][]byte{
		"truncated by a record":  join(0, 1, 2, 3, 4, 5, 6),
		"truncated by a byte":    log[:len(log)-1],
		"without its first":      join(1, 2, 3, 4, 5, 6, 7),
		"without one":            join(0, 1, 2, 4, 5, 6, 7),
		"reordered":              join(0, 1, 3, 2, 4, 5, 6, 7),
		"one repeated":           join(0, 1, 2, 2, 3, 4, 5, 6, 7),
		"one added":              join(0, 1, 2, 3, 4, 5, 6, 7, 7),
		"a blank line":           append(bytes.Clone(log), '\n'),
		"empty":                  nil,
		"an older log, new head": join(0, 1, 2, 3, 4),
	} {
		if got, err := VerifyLog(s.keys, bad, head); err == nil {
			t.Errorf("%s: accepted as %+v", name, got)
		}
	}
	for at := 0; at < len(log); at += 3 {
		bad := bytes.Clone(log)
		bad[at] ^= 1
		if VerifyContinues(s.keys, bad, head) == nil {
			t.Fatalf("byte %d changed: accepted", at)
		}
	}
	for at := range head {
		bad := bytes.Clone(head)
		bad[at] ^= 1
		if _, err := VerifyLog(s.keys, log, bad); err == nil {
			t.Errorf("byte %d of the head changed: accepted", at)
		}
	}
	if err := VerifyContinues(s.keys, join(0, 1, 2), early); err == nil {
		t.Error("a rolled back log reaches a later head")
	}
	other, err := CreateKeys(t.TempDir(), rand.NewChaCha8([32]byte{2}))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := VerifyLog(other, log, head); err == nil {
		t.Error("another key's head is accepted")
	}
}

func TestProofs(t *testing.T) {
	s := newStore(t)
	grow(t, s, 4)
	older, err := s.Head(owner)
	if err != nil {
		t.Fatal(err)
	}
	grow(t, s, 5)
	for n := range int64(10) {
		for _, from := range [][]byte{nil, older} {
			p, err := s.Prove(owner, n, from)
			if err != nil {
				t.Fatal(err)
			}
			raw, err := canon.Marshal(p)
			if err != nil {
				t.Fatal(err)
			}
			if rec, err := CheckProof(s.keys, raw); err != nil || rec.Sequence != n {
				t.Errorf("record %d: %v", n, err)
			}
			if n != 3 || from == nil {
				continue
			}
			for at := range raw {
				bad := bytes.Clone(raw)
				bad[at] ^= 1
				if rec, err := CheckProof(s.keys, bad); err == nil {
					t.Fatalf("byte %d changed: accepted for record %d", at, rec.Sequence)
				}
			}
			forged := *p
			forged.OlderHead, forged.Consistency = p.Head, nil
			forged.Head = p.OlderHead // a log that shrank
			raw, _ = canon.Marshal(forged)
			if _, err := CheckProof(s.keys, raw); err == nil {
				t.Error("a shrunken log is accepted")
			}
		}
	}
	var missing *living.NotFoundError
	if _, err := s.Prove(owner, 10, nil); !errors.As(err, &missing) {
		t.Errorf("record 10: %v", err)
	}
}

// Law L7, the mirror: altered and stale ones say so.
func TestMirrorSaysWhenItIsAlteredOrStale(t *testing.T) {
	s := newStore(t)
	grow(t, s, 5)
	m := takeMirror(t, s)
	head, err := s.Head(owner)
	if err != nil {
		t.Fatal(err)
	}
	if err := m.Fresh(head); err != nil {
		t.Fatalf("control: %v", err)
	}
	if err := m.Young("2026-01-01T00:10:00Z", 10*time.Minute); err != nil {
		t.Fatalf("control: %v", err)
	}
	var stale *StaleError
	if err := m.Young("2026-01-01T00:10:01Z", 10*time.Minute); !errors.As(err, &stale) {
		t.Errorf("an old mirror: %v", err)
	}
	if err := m.Young("2025-12-31T23:59:59Z", 10*time.Minute); !errors.As(err, &stale) {
		t.Errorf("a mirror from the future: %v", err)
	}
	grow(t, s, 1)
	if head, err = s.Head(owner); err != nil {
		t.Fatal(err)
	}
	if err := m.Fresh(head); !errors.As(err, &stale) {
		t.Errorf("a mirror that is behind: %v", err)
	}
	forked := newStore(t)
	k := storetest.Kernel(t, forked, owner)
	storetest.Learn(t, k, 1, storetest.Saw("notes", "other"))
	if head, err = forked.Head(owner); err != nil {
		t.Fatal(err)
	}
	var rollback *RollbackError
	if err := m.Fresh(head); !errors.As(err, &rollback) {
		t.Errorf("the head of a fork: %v", err)
	}

	for _, name := range []string{documentFile, logFile, headFile, MirrorFile} {
		path := filepath.Join(m.dir, name)
		clean, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		random := rand.New(rand.NewPCG(3, 4))
		for range 60 {
			bad := bytes.Clone(clean)
			bad[random.IntN(len(bad))] ^= byte(1 + random.IntN(255))
			write(t, path, bad)
			if name == MirrorFile {
				// taken_at alone is the mirror's own word; everything else is checked.
				if got, err := OpenMirror(m.dir, s.keys); err == nil && got.snapshot.DocumentSHA256 != m.snapshot.DocumentSHA256 {
					t.Fatalf("%s altered: accepted", name)
				}
				continue
			}
			var corrupt *CorruptError
			if _, err := OpenMirror(m.dir, s.keys); !errors.As(err, &corrupt) {
				t.Fatalf("%s altered: %v", name, err)
			}
		}
		write(t, path, clean)
	}
	// Altered with care, every digest of the description written anew.
	document, err := os.ReadFile(filepath.Join(m.dir, documentFile))
	if err != nil {
		t.Fatal(err)
	}
	old, err := s.Version(owner, 2)
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(m.dir, documentFile), old.Bytes())
	for _, version := range []int64{2, m.snapshot.Version} {
		described := m.snapshot
		described.DocumentSHA256, described.Version = old.Digest(), version
		raw, err := canon.Marshal(described)
		if err != nil {
			t.Fatal(err)
		}
		write(t, filepath.Join(m.dir, MirrorFile), raw)
		var corrupt *CorruptError
		if _, err := OpenMirror(m.dir, s.keys); !errors.As(err, &corrupt) {
			t.Errorf("an old document under new digests, as version %d: %v", version, err)
		}
	}
	write(t, filepath.Join(m.dir, documentFile), document)
	if _, err := s.Mirror(owner, m.dir, "2026-01-01T00:00:00Z"); err == nil {
		t.Error("a mirror is written over another")
	}
}

func write(t testing.TB, path string, data []byte) {
	t.Helper()
	if err := errors.Join(os.Chmod(path, 0o600), os.WriteFile(path, data, 0o600)); err != nil {
		t.Fatal(err)
	}
}

// Keys are injective on every file system and refuse what has no name.
func TestOwnerKey(t *testing.T) {
	seen := map[string]string{}
	for _, name := range storetest.Rivals {
		key, err := OwnerKey(name)
		if err != nil {
			t.Errorf("%q: %v", name, err)
			continue
		}
		folded := strings.ToLower(key)
		if other, twice := seen[folded]; twice && other != name {
			t.Errorf("%q and %q share the key %s", name, other, key)
		}
		seen[folded] = name
		if len(key) > 100 || filepath.Base(key) != key || !filepath.IsLocal(key) || strings.Trim(key, "abcdefghijklmnopqrstuvwxyz0123456789-") != "" {
			t.Errorf("%q has the key %q", name, key)
		}
	}
	for _, name := range []string{"", " leo", "leo\n", "l\x00eo", "le\u0301o", "\u212a", "leo\u200b", "\u202eoel", "\xff", strings.Repeat("a", 257)} {
		var input *canon.InputError
		if key, err := OwnerKey(name); !errors.As(err, &input) {
			t.Errorf("%q has the key %q", name, key)
		}
	}
}

// One owner's files, or signed head, in another's place are not taken for theirs.
func TestAnotherOwnersFiles(t *testing.T) {
	s := newStore(t)
	grow(t, s, 3)
	const rival = "synthetic-rival"
	storetest.Learn(t, storetest.Kernel(t, s, rival), 1, storetest.Saw("notes", "theirs"))
	head, err := s.Head(rival)
	if err != nil {
		t.Fatal(err)
	}
	var corrupt *CorruptError
	if err := s.Reaches(owner, head, "the rival's head"); !errors.As(err, &corrupt) {
		t.Errorf("Reaches: %v", err)
	}
	if err := takeMirror(t, s).Fresh(head); !errors.As(err, &corrupt) {
		t.Errorf("Fresh: %v", err)
	}
	_, theirs, err := s.folder(rival)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.RemoveAll(theirs), os.CopyFS(theirs, os.DirFS(filepath.Dir(s.path(t, databaseFile))))); err != nil {
		t.Fatal(err)
	}
	if state, err := s.Load(rival); !errors.As(err, &corrupt) {
		t.Errorf("Load: %+v, %v", state, err)
	}
	if _, err := s.Load(owner); err != nil {
		t.Errorf("control: %v", err)
	}
}

// A commit that is stored though its head could not be published says so, and is no
// loss: a second delivery is a no-op, the next commit publishes.
func TestStoredButNotPublished(t *testing.T) {
	s := newStore(t)
	k := grow(t, s, 2)
	publish := s.publish
	s.publish = func(string, []byte) error { return errors.New("no space left on device") }
	report := storetest.Report(owner, 3, storetest.Saw("notes", "kept"))
	var unpublished *UnpublishedError
	if _, err := k.Apply(report); !errors.As(err, &unpublished) {
		t.Fatalf("%v, want UnpublishedError", err)
	}
	s.publish = publish
	if got, err := s.Fsck(owner); err != nil || got.Unpublished != 1 || got.Version != 3 {
		t.Fatalf("%+v, %v", got, err)
	}
	if res, err := k.Apply(report); err != nil || res.Event != "" {
		t.Fatalf("%+v, %v", res, err)
	}
	grow(t, s, 1)
	if got, err := s.Fsck(owner); err != nil || got.Unpublished != 0 {
		t.Fatalf("%+v, %v", got, err)
	}
}

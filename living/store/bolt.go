// Package store keeps living profiles: an authoritative store for each owner, and
// mirrors that take no writes.
//
// The authoritative store has one folder an owner (named by [OwnerKey]) with two files.
// profile.db (bbolt) holds the document, every record, the hashes of the transparency
// log over the records, and the signed head; one transaction changes all or nothing.
// head.note is the head again, outside the database: a database that is put back to an
// older state no longer reaches it.
package store

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"sync"
	"time"

	bolt "go.etcd.io/bbolt"
	bolterrors "go.etcd.io/bbolt/errors"
	"golang.org/x/mod/sumdb/tlog"
	"selfsame.dev/selfsame/internal/atomicfile"
	"selfsame.dev/selfsame/internal/canon"
	"selfsame.dev/selfsame/living"
)

const (
	databaseFile = "profile.db"
	headFile     = "head.note"
	// lockWait is how long an operation waits for another process.
	lockWait = 30 * time.Second
	// snapshotEvery is how many versions lie between two stored documents: showing one
	// replays at most that many changes.
	snapshotEvery = 64
)

// What a database holds.
var (
	bucketMeta      = []byte("meta")      // document, head
	bucketRecords   = []byte("records")   // sequence -> record
	bucketHashes    = []byte("hashes")    // stored hash index -> hash
	bucketReports   = []byte("reports")   // report digest -> sequence
	bucketSnapshots = []byte("snapshots") // version -> sequence, document
	allBuckets      = [][]byte{bucketHashes, bucketMeta, bucketRecords, bucketReports, bucketSnapshots}
	keyDocument     = []byte("document")
	keyHead         = []byte("head")
)

// Authoritative is the trusted store below one folder. Each operation opens the owner's
// database, under its lock, and closes it: processes take turns.
type Authoritative struct {
	dir  string
	keys Keys
	// publish replaces the head beside the database, whole or not at all.
	publish func(path string, head []byte) error
	noSync  bool // for tests that never lose power

	mu     sync.Mutex
	cached *living.Document // decoding a large document costs more than reading it
	digest canon.Digest
}

// Open returns the store below dir, which [CreateKeys] has made.
func Open(dir string, keys Keys) *Authoritative {
	return &Authoritative{dir: dir, keys: keys, publish: func(path string, head []byte) error {
		return atomicfile.Write(path, head, 0o644)
	}}
}

func (s *Authoritative) folder(owner string) (key, path string, err error) {
	key, err = OwnerKey(owner)
	return key, filepath.Join(s.dir, key), err
}

// guarded turns what a damaged database does to its reader (panics, and faults on pages
// that are not there) into a [*CorruptError].
func guarded(path string, do func() error) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if p := recover(); p != nil {
			err = &CorruptError{path, fmt.Sprintf("the database is damaged: %v", p)}
		}
	}()
	return do()
}

func (s *Authoritative) open(path string, readOnly bool) (*bolt.DB, error) {
	db, err := bolt.Open(path, 0o600, &bolt.Options{
		Timeout:    lockWait,
		ReadOnly:   readOnly,
		NoSync:     s.noSync,
		NoGrowSync: s.noSync,
		OpenFile: func(name string, flag int, mode os.FileMode) (*os.File, error) {
			return os.OpenFile(name, flag&^os.O_CREATE, mode) // only create makes databases
		},
	})
	switch {
	case errors.Is(err, bolterrors.ErrTimeout):
		return nil, &BusyError{path}
	case errors.Is(err, bolterrors.ErrInvalid), errors.Is(err, bolterrors.ErrVersionMismatch), errors.Is(err, bolterrors.ErrChecksum):
		return nil, &CorruptError{path, err.Error()}
	}
	return db, err
}

// view runs do on an owner's database in a read transaction, after checking the head.
func (s *Authoritative) view(owner string, do func(*view) error) error {
	key, folder, err := s.folder(owner)
	if err != nil {
		return err
	}
	path := filepath.Join(folder, databaseFile)
	return guarded(path, func() error {
		db, err := s.open(path, true)
		if errors.Is(err, os.ErrNotExist) {
			return s.absent(owner, key, folder)
		}
		if err != nil {
			return err
		}
		defer db.Close()
		return db.View(func(tx *bolt.Tx) error {
			v, err := s.check(tx, owner, key, folder)
			if err != nil {
				return err
			}
			return do(v)
		})
	})
}

// absent tells an owner that never was from a log that was taken away. A head of one
// record may be left of a creation that was cut short.
func (s *Authoritative) absent(owner, key, folder string) error {
	path := filepath.Join(folder, headFile)
	signed, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return &living.NotFoundError{What: fmt.Sprintf("owner %q", owner)}
	}
	if err != nil {
		return err
	}
	tree, err := s.keys.headOf(key, signed)
	if err != nil {
		return &CorruptError{path, err.Error()}
	}
	if tree.N > 1 {
		return &RollbackError{folder, fmt.Sprintf("%s is gone, the head there has %d records", databaseFile, tree.N)}
	}
	return &living.NotFoundError{What: fmt.Sprintf("owner %q", owner)}
}

// view is an owner's database within a transaction, its head checked.
type view struct {
	tx       *bolt.Tx
	owner    string
	key      string
	path     string
	tree     tlog.Tree // of the signed head
	lag      int64     // records that the head beside the database lacks
	document []byte
	last     *living.Record
	tail     living.Tail
}

func (v *view) bucket(name []byte) *bolt.Bucket { return v.tx.Bucket(name) }

// check reads the ends of a log, without reading the log: the signed head, the tree
// hash, the last record, the document it leads to, and the head beside the database.
func (s *Authoritative) check(tx *bolt.Tx, owner, key, folder string) (*view, error) {
	v := &view{tx: tx, owner: owner, key: key, path: filepath.Join(folder, databaseFile)}
	corrupt := func(format string, args ...any) (*view, error) {
		return nil, &CorruptError{v.path, fmt.Sprintf(format, args...)}
	}
	for _, name := range allBuckets {
		if tx.Bucket(name) == nil {
			return corrupt("bucket %s is missing", name)
		}
	}
	meta := v.bucket(bucketMeta)
	tree, err := s.keys.headOf(key, meta.Get(keyHead))
	if err == nil && tree.N < 1 {
		err = errors.New("signed head: a log has at least one record")
	}
	if err != nil {
		return corrupt("%v", err)
	}
	v.tree = tree
	reader := hashes(v.bucket(bucketHashes))
	if root, err := tlog.TreeHash(tree.N, reader); err != nil || root != tree.Hash {
		return corrupt("the log does not have the signed root: %v", err)
	}
	raw := v.bucket(bucketRecords).Get(number(tree.N - 1))
	leaf, err := reader.ReadHashes([]int64{tlog.StoredHashIndex(0, tree.N-1)})
	if err != nil || raw == nil || leaf[0] != tlog.RecordHash(raw) {
		return corrupt("the last record is not in the log")
	}
	if v.last, err = living.DecodeRecord(raw); err != nil {
		return corrupt("the last record: %v", err)
	}
	v.tail = living.Tail{Size: tree.N, Last: canon.Sum(raw)}
	v.document = meta.Get(keyDocument)
	if canon.Sum(v.document) != v.last.DocumentSHA256 || v.last.Owner != owner || v.last.Sequence != tree.N-1 {
		return corrupt("the document is not the one that the log leads to")
	}
	beside := filepath.Join(folder, headFile)
	signed, err := os.ReadFile(beside)
	if errors.Is(err, os.ErrNotExist) {
		return nil, &RollbackError{folder, headFile + " is gone: nothing says how far the log had come"}
	}
	if err != nil {
		return nil, err
	}
	v.lag, err = v.since(s.keys, signed, beside)
	return v, err
}

// since returns how many records the log has after a head signed before, and refuses a
// log that is no continuation of it.
func (v *view) since(keys Keys, signed []byte, path string) (records int64, err error) {
	if bytes.Equal(signed, v.bucket(bucketMeta).Get(keyHead)) {
		return 0, nil // check verified it
	}
	old, err := keys.headOf(v.key, signed)
	if err != nil {
		return 0, &CorruptError{path, err.Error()}
	}
	if old.N > v.tree.N {
		return 0, &RollbackError{v.path, fmt.Sprintf("the log has %d records, %s was signed for %d", v.tree.N, path, old.N)}
	}
	root, err := tlog.TreeHash(old.N, hashes(v.bucket(bucketHashes)))
	if err != nil || root != old.Hash {
		return 0, &RollbackError{v.path, fmt.Sprintf("the first %d records are not those that %s was signed for", old.N, path)}
	}
	return v.tree.N - old.N, nil
}

// Load implements [living.Store].
func (s *Authoritative) Load(owner string) (*living.State, error) {
	state := &living.State{}
	return state, s.view(owner, func(v *view) (err error) {
		state.Tail = v.tail
		state.Document, err = s.decode(v)
		return err
	})
}

func (s *Authoritative) decode(v *view) (*living.Document, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.cached != nil && s.digest == v.last.DocumentSHA256 { // of v.document: check compared them
		return s.cached, nil
	}
	doc, err := living.DecodeDocument(bytes.Clone(v.document))
	if err != nil {
		return nil, &CorruptError{v.path, fmt.Sprintf("document: %v", err)}
	}
	s.cached, s.digest = doc, v.last.DocumentSHA256
	return doc, nil
}

// Commit implements [living.Store].
func (s *Authoritative) Commit(doc *living.Document, rec *living.Record) error {
	key, folder, err := s.folder(doc.Owner())
	if err != nil {
		return err
	}
	if rec.Event == living.Created {
		return s.create(doc, rec, key, folder)
	}
	path := filepath.Join(folder, databaseFile)
	return guarded(path, func() error {
		db, err := s.open(path, false)
		if errors.Is(err, os.ErrNotExist) {
			return s.absent(doc.Owner(), key, folder)
		}
		if err != nil {
			return err
		}
		defer db.Close() // last: the head is published under the lock
		var signed []byte
		err = db.Update(func(tx *bolt.Tx) error {
			v, err := s.check(tx, doc.Owner(), key, folder)
			if err != nil {
				return err
			}
			if err := rec.Follows(doc, v.tail, v.last.Version); err != nil {
				return err
			}
			signed, err = s.put(tx, doc, rec, key)
			return err
		})
		if err != nil {
			return err
		}
		if err := s.publish(filepath.Join(folder, headFile), signed); err != nil {
			return &UnpublishedError{err}
		}
		return nil
	})
}

// put stores document, record, hashes and head, and returns the signed head.
func (s *Authoritative) put(tx *bolt.Tx, doc *living.Document, rec *living.Record, key string) ([]byte, error) {
	raw, err := rec.Bytes()
	if err != nil {
		return nil, err
	}
	tree, err := appendRecord(tx.Bucket(bucketHashes), rec.Sequence, raw)
	if err != nil {
		return nil, err
	}
	signed, err := s.keys.signHead(key, tree)
	if err != nil {
		return nil, err
	}
	sequence := number(rec.Sequence)
	records := tx.Bucket(bucketRecords)
	records.FillPercent = 1 // keys only grow
	if err := records.Put(sequence, raw); err != nil {
		return nil, err
	}
	if err := tx.Bucket(bucketMeta).Put(keyHead, signed); err != nil {
		return nil, err
	}
	if !rec.ReportSHA256.IsZero() {
		if err := tx.Bucket(bucketReports).Put(rec.ReportSHA256[:], sequence); err != nil {
			return nil, err
		}
	}
	if rec.Event == living.Refused {
		return signed, nil
	}
	document := doc.Bytes()
	if doc.Version()%snapshotEvery == 0 {
		if err := tx.Bucket(bucketSnapshots).Put(number(doc.Version()), append(sequence, document...)); err != nil {
			return nil, err
		}
	}
	return signed, tx.Bucket(bucketMeta).Put(keyDocument, document)
}

// create makes an owner's database beside its place and moves it there complete, so
// that a creation cut short leaves an owner that is not there.
func (s *Authoritative) create(doc *living.Document, rec *living.Record, key, folder string) error {
	if err := rec.Follows(doc, living.Tail{}, -1); err != nil {
		return err
	}
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return err
	}
	return locked(filepath.Join(folder, "lock"), func() error {
		path := filepath.Join(folder, databaseFile)
		if _, err := os.Lstat(path); err == nil {
			return &living.ConflictError{Owner: doc.Owner()}
		}
		var missing *living.NotFoundError
		if err := s.absent(doc.Owner(), key, folder); !errors.As(err, &missing) {
			return err
		}
		fresh := path + ".new"
		if err := os.Remove(fresh); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
		db, err := bolt.Open(fresh, 0o600, &bolt.Options{Timeout: lockWait, NoSync: s.noSync, NoGrowSync: s.noSync})
		if err != nil {
			return err
		}
		var signed []byte
		err = db.Update(func(tx *bolt.Tx) error {
			for _, name := range allBuckets {
				if _, err := tx.CreateBucket(name); err != nil {
					return err
				}
			}
			signed, err = s.put(tx, doc, rec, key)
			return err
		})
		if err = errors.Join(err, db.Close()); err != nil {
			return errors.Join(err, os.Remove(fresh))
		}
		// The head first: a database without one counts as rolled back.
		if err := s.publish(filepath.Join(folder, headFile), signed); err != nil {
			return err
		}
		if err := os.Rename(fresh, path); err != nil {
			return err
		}
		if s.noSync {
			return nil
		}
		return errors.Join(atomicfile.SyncDir(folder), atomicfile.SyncDir(s.dir))
	})
}

// Ingested implements [living.Store].
func (s *Authoritative) Ingested(owner string, report canon.Digest) (found bool, err error) {
	err = s.view(owner, func(v *view) error {
		found = v.bucket(bucketReports).Get(report[:]) != nil
		return nil
	})
	return found, err
}

// Version implements [living.Store]. It reads the nearest stored document and replays
// the records after it.
func (s *Authoritative) Version(owner string, version int64) (doc *living.Document, err error) {
	err = s.view(owner, func(v *view) error {
		doc, err = v.version(version)
		return err
	})
	return doc, err
}

func (v *view) version(version int64) (*living.Document, error) {
	if version < 0 || version > v.last.Version {
		return nil, &living.NotFoundError{What: fmt.Sprintf("version %d of %q", version, v.owner)}
	}
	corrupt := func(format string, args ...any) (*living.Document, error) {
		return nil, &CorruptError{v.path, fmt.Sprintf(format, args...)}
	}
	stored := v.bucket(bucketSnapshots).Get(number(version - version%snapshotEvery))
	sequence, ok := parseNumber(stored)
	if !ok {
		return corrupt("the document of version %d is missing", version-version%snapshotEvery)
	}
	doc, err := living.DecodeDocument(bytes.Clone(stored[8:]))
	if err != nil {
		return corrupt("version %d: %v", version, err)
	}
	records := v.bucket(bucketRecords)
	at := records.Get(number(sequence))
	r := living.Replay{Document: doc, Tail: living.Tail{Size: sequence + 1, Last: canon.Sum(at)}, Earlier: v.version}
	if rec, err := living.DecodeRecord(at); err != nil || rec.DocumentSHA256 != doc.Digest() {
		return corrupt("the document of version %d is not the one in the log", doc.Version())
	}
	for r.Document.Version() < version {
		if _, err := r.Next(bytes.Clone(records.Get(number(r.Tail.Size)))); err != nil {
			return nil, err
		}
	}
	return r.Document, nil
}

// Records implements [living.Store].
func (s *Authoritative) Records(owner string, from int64, visit func(raw []byte) error) error {
	return s.view(owner, func(v *view) error { return v.records(from, visit) })
}

func (v *view) records(from int64, visit func(raw []byte) error) error {
	if from < 0 || from > v.tree.N {
		return &living.NotFoundError{What: fmt.Sprintf("record %d of %q", from, v.owner)}
	}
	cursor := v.bucket(bucketRecords).Cursor()
	want := from
	for k, raw := cursor.Seek(number(from)); k != nil; k, raw = cursor.Next() {
		if n, ok := parseNumber(k); !ok || n != want {
			return &CorruptError{v.path, fmt.Sprintf("record %d is missing", want)}
		}
		if err := visit(bytes.Clone(raw)); err != nil {
			return err
		}
		want++
	}
	if want != v.tree.N {
		return &CorruptError{v.path, fmt.Sprintf("the log ends at record %d, the head has %d", want, v.tree.N)}
	}
	return nil
}

// Head returns the signed head of an owner's log.
func (s *Authoritative) Head(owner string) (signed []byte, err error) {
	err = s.view(owner, func(v *view) error {
		signed = bytes.Clone(v.bucket(bucketMeta).Get(keyHead))
		return nil
	})
	return signed, err
}

// Reaches refuses, with a [*RollbackError], a log that is no continuation of a head that
// was signed before and kept elsewhere; name says where, for the message.
func (s *Authoritative) Reaches(owner string, signed []byte, name string) error {
	return s.view(owner, func(v *view) error {
		_, err := v.since(s.keys, signed, name)
		return err
	})
}

package store

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"selfsame.dev/selfsame/internal/atomicfile"
	"selfsame.dev/selfsame/internal/canon"
	"selfsame.dev/selfsame/living"
)

// MirrorFormat names the form of a mirror's description.
const MirrorFormat = "living-mirror.v1"

// MirrorFile describes a mirror; a folder that has one is a mirror.
const MirrorFile = "mirror.json"

// The other files of a mirror, beside headFile.
const (
	documentFile = "document.json"
	logFile      = "log.jsonl" // one record a line
)

// Snapshot describes a mirror: what it shows, and when it was taken.
type Snapshot struct {
	DocumentSHA256 canon.Digest   `json:"document_sha256"`
	Format         string         `json:"format"`
	HeadSHA256     canon.Digest   `json:"head_sha256"`
	LogSHA256      canon.Digest   `json:"log_sha256"`
	Owner          string         `json:"owner"`
	Records        int64          `json:"records"`
	TakenAt        living.Instant `json:"taken_at"`
	Version        int64          `json:"version"`
}

// Mirror writes a read-only snapshot of one owner's profile to dir, which must not
// exist: document, log, signed head, and a description with their digests.
func (s *Authoritative) Mirror(owner, dir string, at living.Instant) (*Snapshot, error) {
	var snapshot *Snapshot
	files := map[string][]byte{}
	err := s.view(owner, func(v *view) error {
		var log bytes.Buffer
		err := v.records(0, func(raw []byte) error {
			log.Write(raw)
			log.WriteByte('\n')
			return nil
		})
		if err != nil {
			return err
		}
		files[documentFile] = bytes.Clone(v.document)
		files[headFile] = bytes.Clone(v.bucket(bucketMeta).Get(keyHead))
		files[logFile] = log.Bytes()
		snapshot = &Snapshot{
			DocumentSHA256: canon.Sum(files[documentFile]), HeadSHA256: canon.Sum(files[headFile]), LogSHA256: canon.Sum(files[logFile]),
			Format: MirrorFormat, Owner: owner, Records: v.tree.N, TakenAt: at, Version: v.last.Version,
		}
		files[MirrorFile], err = canon.Marshal(snapshot)
		return err
	})
	if err != nil {
		return nil, err
	}
	if _, err := os.Lstat(dir); err == nil {
		return nil, &canon.InputError{File: dir, Problem: "exists already", Fix: "name a new folder"}
	}
	parent := filepath.Dir(filepath.Clean(dir))
	fresh, err := os.MkdirTemp(parent, ".mirror-*")
	if err != nil {
		return nil, err
	}
	for name, data := range files {
		if err = atomicfile.Write(filepath.Join(fresh, name), data, 0o444); err != nil {
			return nil, errors.Join(err, os.RemoveAll(fresh))
		}
	}
	if err = errors.Join(os.Chmod(fresh, 0o755), os.Rename(fresh, dir)); err != nil {
		return nil, errors.Join(err, os.RemoveAll(fresh))
	}
	return snapshot, atomicfile.SyncDir(parent)
}

// Mirror is a snapshot open for reading. It implements [living.Store] and takes no
// writes.
type Mirror struct {
	snapshot Snapshot
	dir      string
	keys     Keys
	log      []byte
	signed   []byte
	document *living.Document
	result   *Audit
}

// OpenMirror reads a mirror and verifies all of it: the digests, the signed head, every
// record, and that the records lead to the document. An altered mirror is a
// [*CorruptError].
func OpenMirror(dir string, keys Keys) (*Mirror, error) {
	m := &Mirror{dir: dir, keys: keys}
	altered := func(name, format string, args ...any) (*Mirror, error) {
		return nil, &CorruptError{filepath.Join(dir, name), fmt.Sprintf(format, args...)}
	}
	described, err := os.ReadFile(filepath.Join(dir, MirrorFile))
	if err != nil {
		return nil, err
	}
	if err := canon.Decode(described, &m.snapshot); err != nil {
		return altered(MirrorFile, "%v", err)
	}
	if m.snapshot.Format != MirrorFormat {
		return altered(MirrorFile, "the format is %q", m.snapshot.Format)
	}
	files := map[string][]byte{}
	for name, want := range map[string]canon.Digest{documentFile: m.snapshot.DocumentSHA256, headFile: m.snapshot.HeadSHA256, logFile: m.snapshot.LogSHA256} {
		if files[name], err = os.ReadFile(filepath.Join(dir, name)); err != nil {
			return nil, err
		}
		if actual := canon.Sum(files[name]); actual != want {
			return altered(name, "altered: expected %s, actual %s", want, actual)
		}
	}
	m.log, m.signed = files[logFile], files[headFile]
	// Digests can be written anew by whoever alters a file; the signed head cannot.
	if m.result, err = VerifyLog(keys, m.log, m.signed); err != nil {
		return altered(logFile, "%v", err)
	}
	if m.document, err = living.DecodeDocument(files[documentFile]); err != nil {
		return altered(documentFile, "%v", err)
	}
	if m.result.DocumentSHA256 != m.snapshot.DocumentSHA256 {
		return altered(documentFile, "the log leads to %s, the document is %s", m.result.DocumentSHA256, m.snapshot.DocumentSHA256)
	}
	if m.result.Owner != m.snapshot.Owner || m.result.Records != m.snapshot.Records || m.result.Version != m.snapshot.Version {
		return altered(MirrorFile, "it describes version %d of %q with %d records, the log has version %d of %q with %d",
			m.snapshot.Version, m.snapshot.Owner, m.snapshot.Records, m.result.Version, m.result.Owner, m.result.Records)
	}
	return m, nil
}

// Snapshot returns the mirror's description.
func (m *Mirror) Snapshot() Snapshot { return m.snapshot }

// Audit returns what verifying the mirror found out.
func (m *Mirror) Audit() *Audit { return m.result }

// Fresh refuses, with a [*StaleError], a mirror that is behind a signed head. A head
// that does not continue the mirror's log, or the reverse, is a [*RollbackError].
func (m *Mirror) Fresh(signed []byte) error {
	key, err := OwnerKey(m.snapshot.Owner)
	if err != nil {
		return err
	}
	tree, err := m.keys.headOf(key, signed)
	if err != nil {
		return &CorruptError{"the head to compare with", err.Error()}
	}
	if tree.N > m.snapshot.Records {
		return &StaleError{m.dir, fmt.Sprintf("it has %d records, the log had %d", m.snapshot.Records, tree.N)}
	}
	if err := VerifyContinues(m.keys, m.log, signed); err != nil {
		return &RollbackError{m.dir, err.Error()}
	}
	return nil
}

// Young refuses, with a [*StaleError], a mirror that was taken longer than limit before
// now, or after it.
func (m *Mirror) Young(now living.Instant, limit time.Duration) error {
	taken, err := time.Parse(time.RFC3339, string(m.snapshot.TakenAt))
	if err != nil {
		return err
	}
	at, err := time.Parse(time.RFC3339, string(now))
	if err != nil {
		return err
	}
	if age := at.Sub(taken); age > limit || age < 0 {
		return &StaleError{m.dir, fmt.Sprintf("it was taken at %s, now is %s, the limit is %s", m.snapshot.TakenAt, now, limit)}
	}
	return nil
}

func (m *Mirror) holds(owner string) error {
	if owner != m.snapshot.Owner {
		return &living.NotFoundError{What: fmt.Sprintf("owner %q", owner)}
	}
	return nil
}

// Load implements [living.Store].
func (m *Mirror) Load(owner string) (*living.State, error) {
	if err := m.holds(owner); err != nil {
		return nil, err
	}
	last := m.log[bytes.LastIndexByte(m.log[:len(m.log)-1], '\n')+1 : len(m.log)-1]
	return &living.State{Document: m.document, Tail: living.Tail{Size: m.snapshot.Records, Last: canon.Sum(last)}}, nil
}

// Commit implements [living.Store] by refusing.
func (m *Mirror) Commit(*living.Document, *living.Record) error { return &ReadOnlyError{m.dir} }

// Ingested implements [living.Store].
func (m *Mirror) Ingested(owner string, report canon.Digest) (bool, error) {
	found := false
	return found, m.each(owner, func(rec *living.Record, _ *living.Document) error {
		found = found || rec.ReportSHA256 == report
		return nil
	})
}

// Version implements [living.Store].
func (m *Mirror) Version(owner string, version int64) (*living.Document, error) {
	var found *living.Document
	err := m.each(owner, func(_ *living.Record, doc *living.Document) error {
		if doc.Version() == version {
			found = doc
		}
		return nil
	})
	if err == nil && found == nil {
		err = &living.NotFoundError{What: fmt.Sprintf("version %d of %q", version, owner)}
	}
	return found, err
}

func (m *Mirror) each(owner string, visit func(*living.Record, *living.Document) error) error {
	if err := m.holds(owner); err != nil {
		return err
	}
	_, err := audit(func(visit func([]byte) error) error { return lines(m.log, visit) }, visit)
	return err
}

// Records implements [living.Store].
func (m *Mirror) Records(owner string, from int64, visit func(raw []byte) error) error {
	if err := m.holds(owner); err != nil {
		return err
	}
	if from < 0 || from > m.snapshot.Records {
		return &living.NotFoundError{What: fmt.Sprintf("record %d of %q", from, owner)}
	}
	n := int64(0)
	return lines(m.log, func(raw []byte) error {
		if n++; n <= from {
			return nil
		}
		return visit(raw)
	})
}

package store

import (
	"bytes"
	"fmt"

	"golang.org/x/mod/sumdb/tlog"
	"selfsame.dev/selfsame/internal/canon"
	"selfsame.dev/selfsame/living"
)

// AuditFormat names the form of an audit's result.
const AuditFormat = "living-audit.v1"

// Audit is what reading a whole log found out.
type Audit struct {
	Format         string       `json:"format"` // living-audit.v1
	Owner          string       `json:"owner"`
	Records        int64        `json:"records"`
	Version        int64        `json:"version"`
	DocumentSHA256 canon.Digest `json:"document_sha256"`
	ContentSHA256  canon.Digest `json:"content_sha256"`
	Root           canon.Digest `json:"root"`        // of the transparency log
	Unpublished    int64        `json:"unpublished"` // records that the head beside the log lacks

	Document *living.Document `json:"-"` // re-derived from the records alone
}

// auditor re-derives everything from records, read in order from the first on.
type auditor struct {
	tree    grown
	replay  living.Replay
	reports map[canon.Digest]int64
	wanted  map[int64]bool // versions that a later record restores
	kept    map[int64]*living.Document
	visited func(rec *living.Record, doc *living.Document) error
}

// audit reads records twice: first to learn which versions are restored later.
func audit(records func(visit func(raw []byte) error) error, visited func(*living.Record, *living.Document) error) (*auditor, error) {
	a := &auditor{reports: map[canon.Digest]int64{}, wanted: map[int64]bool{}, kept: map[int64]*living.Document{}, visited: visited}
	a.replay.Earlier = func(version int64) (*living.Document, error) {
		if doc := a.kept[version]; doc != nil {
			return doc, nil
		}
		return nil, unproven("version %d never was", version)
	}
	err := records(func(raw []byte) error {
		if rec, err := living.DecodeRecord(raw); err == nil && rec.RestoredVersion != nil {
			a.wanted[*rec.RestoredVersion] = true
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	if err := records(a.next); err != nil {
		return nil, err
	}
	if a.replay.Document == nil {
		return nil, unproven("the log is empty")
	}
	return a, nil
}

func (a *auditor) next(raw []byte) error {
	rec, err := a.replay.Next(raw)
	if err != nil {
		return err
	}
	if err := a.tree.add(raw); err != nil {
		return err
	}
	if a.wanted[rec.Version] {
		a.kept[rec.Version] = a.replay.Document
	}
	if !rec.ReportSHA256.IsZero() {
		if _, twice := a.reports[rec.ReportSHA256]; twice {
			return &living.HistoryError{Sequence: rec.Sequence, Problem: "takes in a report for the second time"}
		}
		a.reports[rec.ReportSHA256] = rec.Sequence
	}
	if a.visited != nil {
		return a.visited(rec, a.replay.Document)
	}
	return nil
}

func (a *auditor) result(head tlog.Tree) (*Audit, error) {
	root, err := a.tree.root(a.tree.n)
	if err != nil {
		return nil, err
	}
	if head.N != a.tree.n {
		return nil, unproven("the log has %d records, its signed head %d", a.tree.n, head.N)
	}
	if head.Hash != root {
		return nil, unproven("the records give the root %s, signed is %s", root, head.Hash)
	}
	doc := a.replay.Document
	return &Audit{
		Format: AuditFormat, Owner: doc.Owner(), Records: a.tree.n, Version: doc.Version(), DocumentSHA256: doc.Digest(),
		ContentSHA256: doc.ContentDigest(), Root: canon.Digest(root), Document: doc,
	}, nil
}

// Fsck re-derives an owner's document from the log and compares all that is stored with
// it: document, tree, head, report index, stored versions. It changes nothing.
func (s *Authoritative) Fsck(owner string) (result *Audit, err error) {
	err = s.view(owner, func(v *view) error {
		corrupt := func(format string, args ...any) error {
			return &CorruptError{v.path, fmt.Sprintf(format, args...)}
		}
		// bbolt's own Check is no help on damaged files: it faults in a goroutine of its
		// own, and believes page headers. All that is kept is compared below instead.
		snapshots := v.bucket(bucketSnapshots)
		stored := int64(0)
		a, err := audit(func(visit func([]byte) error) error { return v.records(0, visit) },
			func(rec *living.Record, doc *living.Document) error {
				if rec.Event == living.Refused || doc.Version()%snapshotEvery != 0 {
					return nil
				}
				stored++
				if !bytes.Equal(snapshots.Get(number(doc.Version())), append(number(rec.Sequence), doc.Bytes()...)) {
					return corrupt("the stored version %d is not the one in the log", doc.Version())
				}
				return nil
			})
		if err != nil {
			return err
		}
		if result, err = a.result(v.tree); err != nil {
			return corrupt("%v", err)
		}
		result.Unpublished = v.lag
		// The document is the one of the last record, which was derived again just now.
		if a.replay.Document.Owner() != owner {
			return corrupt("the log is of %q", a.replay.Document.Owner())
		}
		for i, h := range a.tree.hashes {
			if !bytes.Equal(v.bucket(bucketHashes).Get(number(int64(i))), h[:]) {
				return corrupt("hash %d of the log is not that of its records", i)
			}
		}
		for digest, sequence := range a.reports {
			if !bytes.Equal(v.bucket(bucketReports).Get(digest[:]), number(sequence)) {
				return corrupt("report %s is not found under its record", digest)
			}
		}
		for _, kept := range []struct {
			name []byte
			want int
		}{
			{bucketHashes, len(a.tree.hashes)}, {bucketReports, len(a.reports)}, {bucketSnapshots, int(stored)}, {bucketMeta, 2},
		} {
			if have := v.bucket(kept.name).Stats().KeyN; have != kept.want {
				return corrupt("%s has %d entries, the log gives %d", kept.name, have, kept.want)
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return result, nil
}

// VerifyLog checks an exported log (one record a line) against its signed head, from
// the bytes alone, and re-derives the document.
func VerifyLog(keys Keys, log, signed []byte) (*Audit, error) {
	key, head, err := keys.OpenHead(signed)
	if err != nil {
		return nil, err
	}
	a, err := audit(func(visit func([]byte) error) error { return lines(log, visit) }, nil)
	if err != nil {
		return nil, err
	}
	result, err := a.result(head)
	if err != nil {
		return nil, err
	}
	if want, err := OwnerKey(result.Owner); err != nil || want != key {
		return nil, unproven("the log is of %q, the head is of %s", result.Owner, key)
	}
	return result, nil
}

// VerifyContinues checks that an exported log continues the one that an older head was
// signed for.
func VerifyContinues(keys Keys, log, older []byte) error {
	_, old, err := keys.OpenHead(older)
	if err != nil {
		return err
	}
	var tree grown
	if err := lines(log, tree.add); err != nil {
		return err
	}
	if tree.n < old.N {
		return unproven("the log has %d records, the older head was signed for %d", tree.n, old.N)
	}
	if root, err := tree.root(old.N); err != nil || root != old.Hash {
		return unproven("the first %d records are not those that the older head was signed for", old.N)
	}
	return nil
}

// lines visits the lines of a log, each of which ends with a newline.
func lines(log []byte, visit func([]byte) error) error {
	for len(log) > 0 {
		line, rest, found := bytes.Cut(log, []byte("\n"))
		if !found {
			return unproven("the log's last line is cut short")
		}
		if err := visit(line); err != nil {
			return err
		}
		log = rest
	}
	return nil
}

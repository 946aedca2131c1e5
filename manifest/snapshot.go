package manifest

import (
	"cmp"
	"fmt"
	"slices"

	"selfsame.dev/selfsame/internal/canon"
	"selfsame.dev/selfsame/internal/tree"
	"selfsame.dev/selfsame/schemas"
)

const fingerprintFormat = "database-fingerprint.v1"

// SnapshotInputs binds a version of the database: everything the fingerprint says but
// the position of its write-ahead log.
type SnapshotInputs struct {
	Path     string       `json:"path"`
	SHA256   canon.Digest `json:"sha256"` // of the RFC 8785 form of Document
	Document Fingerprint  `json:"document"`
}

// Fingerprint is the format database-fingerprint.v1. Every digest in it is that of the RFC 8785
// form of what stands beside it.
type Fingerprint struct {
	Format       string       `json:"format"`
	Label        string       `json:"label"`
	Database     Database     `json:"database"`
	Structure    []TableShape `json:"structure"`
	StructureSum canon.Digest `json:"structure_sha256"`
	Rows         []RowDigest  `json:"rows"`
	RowsSum      canon.Digest `json:"rows_sha256"`
	Content      []TableSum   `json:"content"`
	ContentSum   canon.Digest `json:"content_sha256"`
	Capture      Capture      `json:"capture"`
	CaptureSum   canon.Digest `json:"capture_sha256"`
	WAL          *WAL         `json:"wal,omitempty"` // never part of an identity
}

// Database says which database was read, as whom.
type Database struct {
	Name             string `json:"name"`
	User             string `json:"user"`
	SystemIdentifier string `json:"system_identifier"`
}

// TableShape is the structure of one table.
type TableShape struct {
	Table   string   `json:"table"`
	Columns []Column `json:"columns"`
}

// Column is a column of a table.
type Column struct {
	Name string `json:"name"`
	Type string `json:"type"`
}

// RowDigest names one row and the digest of its content.
type RowDigest struct {
	Table  string       `json:"table"`
	Row    string       `json:"row"`
	Digest canon.Digest `json:"sha256"`
}

// TableSum is the number of rows of a table, and the digest of their list.
type TableSum struct {
	Table    string       `json:"table"`
	RowCount int          `json:"row_count"`
	Digest   canon.Digest `json:"sha256"`
}

// Capture says how the snapshot was taken.
type Capture struct {
	Exporter        string `json:"exporter"`
	ExporterVersion string `json:"exporter_version"`
	Isolation       string `json:"isolation"`
	ReadOnly        bool   `json:"read_only"`
	SourceMode      string `json:"source_mode"`
}

// WAL is a position in the write-ahead log.
type WAL struct {
	LSN      string `json:"lsn"`
	Timeline int    `json:"timeline"`
}

func readSnapshot(d Document) (SnapshotInputs, error) {
	s := SnapshotInputs{Path: d.Path}
	if err := d.check(); err != nil {
		return s, err
	}
	if err := schemas.DecodeCanonical(d.Path, fingerprintFormat, d.Data, &s.Document); err != nil {
		return s, err
	}
	s.Document.WAL = nil
	var err error
	if s.SHA256, err = canon.DigestOf(s.Document); err != nil {
		return s, canon.InFile(d.Path, err)
	}
	return s, s.check()
}

// check recomputes every digest and count of the fingerprint.
func (s SnapshotInputs) check() error {
	f := s.Document
	if err := tree.CheckName(s.Path); err != nil {
		return canon.InFile(string(DatabaseSnapshot), err)
	}
	if f.WAL != nil {
		return &canon.InputError{File: s.Path, Key: "/wal", Problem: "the position of the write-ahead log is no part of an identity", Fix: "generate the manifest anew"}
	}
	if !slices.IsSortedFunc(f.Structure, func(a, b TableShape) int { return strictly(cmp.Compare(a.Table, b.Table)) }) {
		return &canon.InputError{File: s.Path, Key: "/structure", Problem: "tables are not sorted and unique", Fix: "take the document from its exporter again"}
	}
	if !slices.IsSortedFunc(f.Rows, func(a, b RowDigest) int {
		return strictly(cmp.Or(cmp.Compare(a.Table, b.Table), cmp.Compare(a.Row, b.Row)))
	}) {
		return &canon.InputError{File: s.Path, Key: "/rows", Problem: "rows are not sorted by table and row, and unique", Fix: "take the document from its exporter again"}
	}
	content, err := contentOf(f)
	if err != nil {
		return canon.InFile(s.Path, err)
	}
	if !slices.Equal(content, f.Content) {
		return &canon.InputError{File: s.Path, Key: "/content", Problem: "the counts and digests of the tables are not those of their rows", Fix: "take the document from its exporter again"}
	}
	for _, part := range []struct {
		key    string
		stated canon.Digest
		value  any
	}{
		{"/structure_sha256", f.StructureSum, f.Structure},
		{"/rows_sha256", f.RowsSum, f.Rows},
		{"/content_sha256", f.ContentSum, f.Content},
		{"/capture_sha256", f.CaptureSum, f.Capture},
		{"sha256", s.SHA256, f},
	} {
		if err := restated(s.Path, part.key, part.stated, part.value); err != nil {
			return err
		}
	}
	return nil
}

// contentOf counts and digests the rows of every table of the structure.
func contentOf(f Fingerprint) ([]TableSum, error) {
	byTable := map[string][]RowDigest{}
	for _, r := range f.Rows {
		byTable[r.Table] = append(byTable[r.Table], r)
	}
	var out []TableSum
	for _, t := range f.Structure {
		rows := byTable[t.Table]
		delete(byTable, t.Table)
		sum, err := canon.DigestOf(rows)
		if err != nil {
			return nil, err
		}
		out = append(out, TableSum{t.Table, len(rows), sum})
	}
	for table := range byTable {
		return nil, &canon.InputError{Key: "/rows", Problem: fmt.Sprintf("a row is of the table %q, which the structure does not have", table), Fix: "take the document from its exporter again"}
	}
	return out, nil
}

// strictly makes equal neighbours count as unsorted: [slices.IsSortedFunc] calls it with the
// later one first.
func strictly(order int) int {
	if order == 0 {
		return -1
	}
	return order
}

// Seal recomputes every digest and count of a fingerprint. It is for exporters: it makes
// a document consistent, not true.
func (f *Fingerprint) Seal() error {
	slices.SortFunc(f.Structure, func(a, b TableShape) int { return cmp.Compare(a.Table, b.Table) })
	slices.SortFunc(f.Rows, func(a, b RowDigest) int {
		return cmp.Or(cmp.Compare(a.Table, b.Table), cmp.Compare(a.Row, b.Row))
	})
	var err error
	if f.Content, err = contentOf(*f); err != nil {
		return err
	}
	for _, part := range []struct {
		sum   *canon.Digest
		value any
	}{{&f.StructureSum, f.Structure}, {&f.RowsSum, f.Rows}, {&f.ContentSum, f.Content}, {&f.CaptureSum, f.Capture}} {
		if *part.sum, err = canon.DigestOf(part.value); err != nil {
			return err
		}
	}
	return nil
}

package manifest

import (
	"cmp"
	"fmt"
	"slices"

	"selfsame.dev/selfsame/internal/canon"
	"selfsame.dev/selfsame/internal/tree"
	"selfsame.dev/selfsame/schemas"
)

const databaseFormat = "database-identity.v1"

// RowInputs binds the identity rows of the database, and the files they cite.
type RowInputs struct {
	Path     string           `json:"path"`
	SHA256   canon.Digest     `json:"sha256"` // of the bytes, which are the RFC 8785 form of Document
	Document DatabaseIdentity `json:"document"`
	Evidence Tree             `json:"evidence"`
}

// DatabaseIdentity is the format database-identity.v1.
type DatabaseIdentity struct {
	Format   string       `json:"format"`
	Agent    string       `json:"agent"`
	Label    string       `json:"label"`
	Database Database     `json:"database"`
	Snapshot canon.Digest `json:"snapshot_sha256"` // SnapshotInputs.SHA256
	RowCount int          `json:"row_count"`
	RowsSum  canon.Digest `json:"rows_sha256"`
	Rows     []Row        `json:"rows"`
}

// Row is one typed identity row. Digest is that of the RFC 8785 form of the row without it.
type Row struct {
	Table      string       `json:"table"`
	Row        string       `json:"row"`
	Kind       string       `json:"kind"`
	Rank       int          `json:"rank"`
	Statement  string       `json:"statement"`
	SourceMode string       `json:"source_mode"`
	Evidence   []Evidence   `json:"evidence"`
	Digest     canon.Digest `json:"sha256,omitzero"`
}

// Evidence is a file that a row cites, by path relative to the source root.
type Evidence struct {
	Path   string       `json:"path"`
	Digest canon.Digest `json:"sha256"`
}

// EvidencePaths returns the files that a database identity document cites, sorted, each once.
func EvidencePaths(d Document) ([]string, error) {
	doc, err := decodeRows(d)
	if err != nil {
		return nil, err
	}
	return doc.evidencePaths(), nil
}

func (d DatabaseIdentity) evidencePaths() []string {
	paths := []string{}
	for _, r := range d.Rows {
		for _, e := range r.Evidence {
			paths = append(paths, e.Path)
		}
	}
	slices.Sort(paths)
	return slices.Compact(paths)
}

func decodeRows(d Document) (DatabaseIdentity, error) {
	var doc DatabaseIdentity
	if err := d.check(); err != nil {
		return doc, err
	}
	err := schemas.DecodeCanonical(d.Path, databaseFormat, d.Data, &doc)
	return doc, err
}

func readRows(d Document, evidence Root) (RowInputs, error) {
	in := RowInputs{Path: d.Path, SHA256: canon.Sum(d.Data)}
	var err error
	if in.Document, err = decodeRows(d); err != nil {
		return in, err
	}
	if in.Evidence, err = pinTree(IdentityRows, evidence); err != nil {
		return in, err
	}
	return in, in.check()
}

// check recomputes digests, counts and order, and holds the citations against the files.
func (in RowInputs) check() error {
	refuse := func(key, problem string) error {
		return &canon.InputError{File: in.Path, Key: key, Problem: problem, Fix: "take the document from its exporter again"}
	}
	if err := tree.CheckName(in.Path); err != nil {
		return canon.InFile(string(IdentityRows), err)
	}
	if err := in.Evidence.check(IdentityRows); err != nil {
		return err
	}
	d := in.Document
	if !slices.IsSortedFunc(d.Rows, func(a, b Row) int {
		return strictly(cmp.Or(cmp.Compare(a.Table, b.Table), cmp.Compare(a.Row, b.Row)))
	}) {
		return refuse("/rows", "rows are not sorted by table and row, and unique")
	}
	if d.RowCount != len(d.Rows) {
		return refuse("/row_count", fmt.Sprintf("states %d rows, there are %d", d.RowCount, len(d.Rows)))
	}
	files := index(in.Evidence.Files)
	ranks := map[int]bool{}
	for i, r := range d.Rows {
		key := fmt.Sprintf("/rows/%d", i)
		if ranks[r.Rank] {
			return refuse(key+"/rank", "another row has the same rank")
		}
		ranks[r.Rank] = true
		if r.SourceMode != Label {
			return refuse(key+"/source_mode", "only "+Label+" is admitted: a document cannot grant itself canonical authority")
		}
		if err := restated(in.Path, key+"/sha256", r.Digest, r.bare()); err != nil {
			return err
		}
		for j, e := range r.Evidence {
			at := fmt.Sprintf("%s/evidence/%d", key, j)
			file, found := files[e.Path]
			switch {
			case j > 0 && r.Evidence[j-1].Path >= e.Path:
				return refuse(at, "evidence is not sorted by path, and unique")
			case !found:
				return refuse(at, "the cited file "+e.Path+" is missing")
			case file.Digest != e.Digest:
				return refuse(at, fmt.Sprintf("cites %s with digest %s, the file has %s", e.Path, e.Digest, file.Digest))
			}
		}
	}
	for i, path := range d.evidencePaths() {
		if i >= len(in.Evidence.Files) || in.Evidence.Files[i].Path != path {
			return &canon.InputError{File: in.Path, Key: path, Problem: "the files at hand are not exactly the cited ones", Fix: "give each cited file, and no other"}
		}
	}
	if n := len(d.evidencePaths()); n < len(in.Evidence.Files) {
		return &canon.InputError{File: in.Path, Key: in.Evidence.Files[n].Path, Problem: "the file is cited by no row", Fix: "remove it from the inputs"}
	}
	if err := restated(in.Path, "/rows_sha256", d.RowsSum, d.Rows); err != nil {
		return err
	}
	return restated(in.Path, "sha256", in.SHA256, d)
}

func (r Row) bare() Row {
	r.Digest = canon.Digest{}
	return r
}

// bound checks that rows and snapshot are of one database, and that the snapshot has every row.
func (in RowInputs) bound(s SnapshotInputs) error {
	refuse := func(key, problem string) error {
		return &canon.InputError{File: in.Path, Key: key, Problem: problem, Fix: "export rows and fingerprint in one transaction"}
	}
	if in.Document.Database != s.Document.Database {
		return refuse("/database", "is not the database of the fingerprint")
	}
	if in.Document.Snapshot != s.SHA256 {
		return refuse("/snapshot_sha256", fmt.Sprintf("names the snapshot %s, the fingerprint is %s", in.Document.Snapshot, s.SHA256))
	}
	type row struct{ table, row string }
	have := map[row]canon.Digest{}
	for _, r := range s.Document.Rows {
		have[row{r.Table, r.Row}] = r.Digest
	}
	for i, r := range in.Document.Rows {
		if have[row{r.Table, r.Row}] != r.Digest {
			return refuse(fmt.Sprintf("/rows/%d", i), "is not in the fingerprint with this digest")
		}
	}
	return nil
}

// Seal recomputes every digest and count for rows of the given snapshot; see [Fingerprint.Seal].
func (d *DatabaseIdentity) Seal(snapshot canon.Digest) error {
	slices.SortFunc(d.Rows, func(a, b Row) int {
		return cmp.Or(cmp.Compare(a.Table, b.Table), cmp.Compare(a.Row, b.Row))
	})
	d.Snapshot, d.RowCount = snapshot, len(d.Rows)
	var err error
	for i, r := range d.Rows {
		if d.Rows[i].Digest, err = canon.DigestOf(r.bare()); err != nil {
			return err
		}
	}
	d.RowsSum, err = canon.DigestOf(d.Rows)
	return err
}

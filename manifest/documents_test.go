package manifest

import (
	"errors"
	"os"
	"slices"
	"strings"
	"testing"

	"selfsame.dev/selfsame/internal/canon"
	"selfsame.dev/selfsame/internal/tree"
)

func fingerprint(t *testing.T) Fingerprint {
	t.Helper()
	data, err := os.ReadFile("../fixtures/working-leo/leo-identity-v1/leo-database-fingerprint-v1.json")
	if err != nil {
		t.Fatal(err)
	}
	var f Fingerprint
	if err := canon.Decode(data, &f); err != nil {
		t.Fatal(err)
	}
	return f
}

// readBack puts a fingerprint through its bytes, with the digests beside f's parts made to agree.
func readBack(t *testing.T, f Fingerprint) (SnapshotInputs, error) {
	t.Helper()
	for _, part := range []struct {
		sum   *canon.Digest
		value any
	}{{&f.StructureSum, f.Structure}, {&f.RowsSum, f.Rows}, {&f.ContentSum, f.Content}, {&f.CaptureSum, f.Capture}} {
		var err error
		if *part.sum, err = canon.DigestOf(part.value); err != nil {
			t.Fatal(err)
		}
	}
	data, err := canon.Marshal(f)
	if err != nil {
		t.Fatal(err)
	}
	return readSnapshot(Document{Path: "f.json", Data: data})
}

// Law I8: a fingerprint whose counts, order or tables were forged and rehashed is refused.
func TestForgedFingerprint(t *testing.T) {
	for _, tc := range []struct {
		name    string
		forge   func(f *Fingerprint)
		problem string
	}{
		{"count of a table", func(f *Fingerprint) { f.Content[1].RowCount++ }, "/content"},
		{"digest of a table", func(f *Fingerprint) { f.Content[1].Digest[0]++ }, "/content"},
		{"table left out", func(f *Fingerprint) { f.Content = f.Content[1:] }, "/content"},
		{"row of no table", func(f *Fingerprint) { f.Rows[0].Table = "identity.a" }, "/rows"},
		{"row twice", func(f *Fingerprint) { f.Rows = slices.Insert(f.Rows, 0, f.Rows[0]) }, "/rows"},
		{"order of rows", func(f *Fingerprint) { f.Rows[0], f.Rows[1] = f.Rows[1], f.Rows[0] }, "/rows"},
		{"order of tables", func(f *Fingerprint) { f.Structure[0], f.Structure[1] = f.Structure[1], f.Structure[0] }, "/structure"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			f := fingerprint(t)
			tc.forge(&f)
			_, err := readBack(t, f)
			var input *canon.InputError
			if !errors.As(err, &input) || !strings.HasPrefix(input.Key, tc.problem) || input.File != "f.json" {
				t.Errorf("%v, want a refusal at %s", err, tc.problem)
			}
		})
	}
	f := fingerprint(t)
	want, err := readBack(t, f)
	if err != nil {
		t.Fatalf("control: %v", err)
	}
	f.WAL = &WAL{LSN: "F/0", Timeline: 9}
	if moved, err := readBack(t, f); err != nil || moved.SHA256 != want.SHA256 {
		t.Errorf("the position of the log moved the snapshot: %v", err)
	}
	f.Database.User = "postgres"
	if moved, err := readBack(t, f); err != nil || moved.SHA256 == want.SHA256 {
		t.Errorf("control: another user is the same snapshot: %v", err)
	}
	sealed := fingerprint(t)
	sealed.Content, sealed.RowsSum = nil, canon.Digest{}
	if err := sealed.Seal(); err != nil {
		t.Fatal(err)
	}
	if again, err := readBack(t, sealed); err != nil || again.SHA256 != want.SHA256 {
		t.Errorf("a sealed fingerprint differs: %v", err)
	}
}

// The same for identity rows: a row named twice is refused, whatever its rank.
func TestForgedRows(t *testing.T) {
	data, err := os.ReadFile("../fixtures/working-leo/leo-identity-v1/leo-database-identity-v1.json")
	if err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		name    string
		forge   func(d *DatabaseIdentity)
		problem string
	}{
		{"control", func(*DatabaseIdentity) {}, ""},
		{"row twice", func(d *DatabaseIdentity) {
			again := d.Rows[0]
			again.Rank = 9
			d.Rows = slices.Insert(d.Rows, 1, again)
		}, "/rows"},
		{"evidence twice", func(d *DatabaseIdentity) { d.Rows[0].Evidence = append(d.Rows[0].Evidence, d.Rows[0].Evidence[0]) }, "/rows/0/evidence/1"},
		{"evidence of another digest", func(d *DatabaseIdentity) { d.Rows[0].Evidence[0].Digest[0]++ }, "/rows/0/evidence/0"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var d DatabaseIdentity
			if err := canon.Decode(data, &d); err != nil {
				t.Fatal(err)
			}
			evidence := Root{}
			files := map[string]canon.Digest{}
			for _, r := range d.Rows {
				for _, e := range r.Evidence {
					files[e.Path] = e.Digest
				}
			}
			for path, digest := range files {
				evidence.Entries = append(evidence.Entries, tree.Entry{Path: path, Digest: digest})
			}
			tc.forge(&d)
			if err := d.Seal(d.Snapshot); err != nil {
				t.Fatal(err)
			}
			sealed, err := canon.Marshal(d)
			if err != nil {
				t.Fatal(err)
			}
			_, err = readRows(Document{Path: "d.json", Data: sealed}, evidence)
			var input *canon.InputError
			if tc.problem == "" && err != nil || tc.problem != "" && (!errors.As(err, &input) || input.Key != tc.problem) {
				t.Errorf("%v, want a refusal at %q", err, tc.problem)
			}
		})
	}
}

// Rows and snapshot are bound to each other, row by row; and no row made in memory, past any schema, is canonical.
func TestBound(t *testing.T) {
	snapshot, err := readBack(t, fingerprint(t))
	if err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile("../fixtures/working-leo/golden/leo-identity-manifest-v1.json")
	if err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		name    string
		change  func(d *DatabaseIdentity)
		problem string
	}{
		{"control", func(*DatabaseIdentity) {}, ""},
		{"other snapshot", func(d *DatabaseIdentity) { d.Snapshot[0]++ }, "names the snapshot"},
		{"other user", func(d *DatabaseIdentity) { d.Database.User = "postgres" }, "not the database of the fingerprint"},
		{"statement that the snapshot does not have", func(d *DatabaseIdentity) { d.Rows[1].Statement = "I decide." }, "/rows/1: is not in the fingerprint"},
		{"row that the snapshot does not have", func(d *DatabaseIdentity) { d.Rows[4].Row = "row-999" }, "/rows/4: is not in the fingerprint"},
		{"canonical row", func(d *DatabaseIdentity) { d.Rows[0].SourceMode = "canonical" }, "cannot grant itself canonical authority"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			m, err := Decode("m.json", data)
			if err != nil {
				t.Fatal(err)
			}
			in := m.Identity.Inputs.Rows
			tc.change(&in.Document)
			if err := in.Document.Seal(in.Document.Snapshot); err != nil {
				t.Fatal(err)
			}
			if in.SHA256, err = canon.DigestOf(in.Document); err != nil {
				t.Fatal(err)
			}
			if err = in.check(); err == nil {
				err = in.bound(snapshot)
			}
			if (tc.problem == "") != (err == nil) || err != nil && !strings.Contains(err.Error(), tc.problem) {
				t.Errorf("%v, want %q", err, tc.problem)
			}
		})
	}
}

// The inventory is that of the source document: every surface once, with the authority it grants.
func TestInventory(t *testing.T) {
	authority := map[Surface]Authority{}
	for _, d := range Inventory() {
		if _, twice := authority[d.Surface]; twice {
			t.Errorf("%s is there twice", d.Surface)
		}
		authority[d.Surface] = d.Authority
		identity := d.Authority == RuntimeInput || d.Authority == StaticAuthority || d.Authority == Noncanonical || d.Authority == GeneratedView
		if d.Pinned != identity || d.Binding == "" || d.Note == "" {
			t.Errorf("%+v", d)
		}
	}
	for surface, want := range map[Surface]Authority{
		RuntimeConfig: RuntimeInput, "hosted-weights": NeverClaimed, HermesCode: RuntimeInput, DeploymentCode: RuntimeInput, RuntimeABI: RuntimeInput,
		Skills: RuntimeInput, Plugins: RuntimeInput, DatabaseTools: RuntimeInput, Permissions: RuntimeInput, Constitution: StaticAuthority,
		DatabaseSnapshot: Noncanonical, IdentityRows: Noncanonical, CompiledViews: GeneratedView,
		"sessions": ContinuityOnly, "state": ContinuityOnly, "memory": ContinuityOnly, "credentials": Capability,
	} {
		if authority[surface] != want {
			t.Errorf("%s has authority %q, want %q", surface, authority[surface], want)
		}
	}
}

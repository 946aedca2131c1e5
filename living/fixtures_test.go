package living

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"selfsame.dev/selfsame/internal/canon"
	"selfsame.dev/selfsame/schemas"
)

const fixtures = "../fixtures/living"

// files returns the committed files that match a pattern below the fixtures, by name.
func files(t testing.TB, pattern string, atLeast int) map[string][]byte {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(fixtures, pattern))
	if err != nil || len(paths) < atLeast {
		t.Fatalf("%s: %d files, %v", pattern, len(paths), err)
	}
	out := map[string][]byte{}
	for _, path := range paths {
		raw, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		name, err := filepath.Rel(fixtures, path)
		if err != nil {
			t.Fatal(err)
		}
		out[filepath.ToSlash(name)] = raw
	}
	return out
}

func fixtureHistory(t testing.TB) (*Baseline, [][]byte) {
	t.Helper()
	base, err := DecodeBaseline(files(t, "baseline.json", 1)["baseline.json"])
	if err != nil {
		t.Fatal(err)
	}
	history := files(t, "history/*.json", 9)
	var reports [][]byte
	for _, name := range sortedKeys(history) {
		reports = append(reports, history[name])
	}
	return base, reports
}

// The expected digest was computed by another implementation (in another language) of
// capture, identity, merge and canonical form.
func TestFixtureHistory(t *testing.T) {
	base, reports := fixtureHistory(t)
	r, err := Rehearse(base, reports)
	if err != nil {
		t.Fatal(err)
	}
	want := strings.TrimSpace(string(files(t, "history.content.sha256", 1)["history.content.sha256"]))
	if got := r.Document.ContentDigest().String(); got != want {
		t.Errorf("content %s, want %s", got, want)
	}
	if want := files(t, "valid/living-profile.v1.json", 1)["valid/living-profile.v1.json"]; !bytes.Equal(r.Document.Bytes(), want) {
		t.Errorf("document\n%s\nwant\n%s", r.Document.Bytes(), want)
	}
	if orders, err := r.Converges(base); err != nil || orders != 100 {
		t.Errorf("%d orders, %v", orders, err)
	}
}

// Every refused report names its failure class by its folder, and there is one at least
// for every reason.
func TestFixtureRefusals(t *testing.T) {
	base, history := fixtureHistory(t)
	seen := map[Reason]bool{}
	for name, raw := range files(t, "refused/*/*.json", 25) {
		want := Reason(strings.Split(name, "/")[1])
		seen[want] = true
		r, err := Rehearse(base, append(slices.Clone(history), raw))
		if err != nil {
			t.Fatal(err)
		}
		last := r.Steps[len(r.Steps)-1]
		if last.Admitted != 0 || len(last.Refused) != 1 || last.Refused[0].Reason != want || last.Changed != nil {
			t.Errorf("%s: %+v", name, last)
		}
	}
	for _, reason := range []Reason{Malformed, UnknownAxis, NoEvidence, OtherTurn, DigestMismatch, Recalled, BaselineContradiction, OverLimit} {
		if !seen[reason] {
			t.Errorf("no vector for %s", reason)
		}
	}
}

// decoders reads each format with the code that uses it.
var decoders = map[string]func(raw []byte) error{
	BaselineFormat: func(raw []byte) error { _, err := DecodeBaseline(raw); return err },
	DocumentFormat: func(raw []byte) error { _, err := DecodeDocument(raw); return err },
	DeltaFormat: func(raw []byte) error {
		_, err := DecodeDelta(raw, Limits{DeltaFacts: 8, FactBytes: 1024})
		return err
	},
	RecordFormat: func(raw []byte) error { _, err := DecodeRecord(raw); return err },
	ReportFormat: func(raw []byte) error { _, err := decodeReport(raw); return err },
	ViewFormat:   func(raw []byte) error { return canon.Decode(raw, &View{}) },
	SeedFormat:   func(raw []byte) error { return canon.Decode(raw, &TurnSeed{}) },
}

// Valid vectors pass schema and decoder, are canonical, and there is one a format.
// Invalid ones fail one of the two.
func TestFixtureFormats(t *testing.T) {
	valid := files(t, "valid/*.json", 12)
	for name, raw := range valid {
		format := strings.TrimSuffix(filepath.Base(name), ".json")
		if err := schemas.DecodeCanonical(name, format, raw, new(any)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if decode := decoders[format]; decode != nil {
			if err := decode(raw); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
	tried := map[string]int{}
	for name, raw := range files(t, "invalid/*/*.json", 40) {
		format := filepath.Base(filepath.Dir(name))
		tried[format]++
		err := schemas.Validate(name, format, raw)
		if decode := decoders[format]; err == nil && decode != nil {
			err = decode(raw)
		}
		if err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
	for _, format := range schemas.Names() {
		if !strings.HasPrefix(format, "living-") || format == "living-catalog.v1" { // living/catalog has its own
			continue
		}
		if valid[fmt.Sprintf("valid/%s.json", format)] == nil || tried[format] == 0 {
			t.Errorf("%s: no valid vector, or no invalid one", format)
		}
	}
}

// Everything the core writes fits the schema that is published for it.
func TestCoreWritesWhatSchemasSay(t *testing.T) {
	base, reports := fixtureHistory(t)
	r, err := Rehearse(base, reports)
	if err != nil {
		t.Fatal(err)
	}
	seed, err := Seed(r.Document, base, 8)
	if err != nil {
		t.Fatal(err)
	}
	for format, raw := range map[string][]byte{
		DocumentFormat: r.Document.Bytes(), ViewFormat: viewBytes(t, r.Document), SeedFormat: seed, DeltaFormat: r.deltas[0].Bytes(), BaselineFormat: base.raw,
	} {
		if err := schemas.DecodeCanonical("", format, raw, new(any)); err != nil {
			t.Errorf("%s: %v", format, err)
		}
	}
}

package store

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"selfsame.dev/selfsame/living"
	"selfsame.dev/selfsame/schemas"
)

const fixtures = "../../fixtures/living"

// A mirror, proof and older head that were written once are verified with nothing but
// the public key.
func TestFixtureMirror(t *testing.T) {
	keys, err := ReadVerifier(filepath.Join(fixtures, "mirror.pub"))
	if err != nil {
		t.Fatal(err)
	}
	m, err := OpenMirror(filepath.Join(fixtures, "mirror"), keys)
	if err != nil {
		t.Fatal(err)
	}
	older, err := os.ReadFile(filepath.Join(fixtures, "mirror.older.note"))
	if err != nil {
		t.Fatal(err)
	}
	if err := m.Fresh(older); err != nil {
		t.Error(err)
	}
	proof, err := os.ReadFile(filepath.Join(fixtures, "valid", "living-proof.v1.json"))
	if err != nil {
		t.Fatal(err)
	}
	if rec, err := CheckProof(keys, proof); err != nil || rec.Sequence != 2 {
		t.Errorf("%+v, %v", rec, err)
	}
	forged := strings.Replace(string(proof), "commits are small", "commits are large", 1)
	var unproven *ProofError
	if _, err := CheckProof(keys, []byte(forged)); !errors.As(err, &unproven) {
		t.Errorf("control: a forged proof: %v", err)
	}
	owner := m.Snapshot().Owner
	events := map[living.Event]bool{}
	err = m.Records(owner, 0, func(raw []byte) error {
		rec, err := living.DecodeRecord(raw)
		if err == nil {
			events[rec.Event] = true
			err = schemas.DecodeCanonical("", living.RecordFormat, raw, new(any))
		}
		return err
	})
	if err != nil || len(events) != 4 {
		t.Errorf("events %v, %v", events, err)
	}
}

package validate_test

import (
	"bytes"
	"path/filepath"
	"strings"
	"testing"

	"selfsame.dev/selfsame/internal/canon"
	"selfsame.dev/selfsame/rpi"
	"selfsame.dev/selfsame/rpi/validate"
)

// composed are phases that share no digest: plan stores the intent bytes, the judge reads them
// back from the store and derives their digest alone.
type composed struct {
	t     *testing.T
	store string
	raw   []byte
	// digest is what plan declares over the bytes.
	digest func([]byte) canon.Digest
}

func member(name, value string) rpi.Member {
	return rpi.Member{Name: name, Value: rpi.String(value)}
}

func (c composed) Guard(intent rpi.Value) (rpi.Value, error) {
	none := rpi.ListOf()
	return rpi.ObjectOf(member("decision", "CONTINUE"), member("reason", "It needs proof."), member("frozen_outcome", "synthetic"),
		rpi.Member{Name: "parked_process_work", Value: none}, rpi.Member{Name: "remaining_proof", Value: none}, member("stop_condition", "One judgment.")), nil
}

func (c composed) Plan(rpi.Value) (rpi.Value, error) {
	path, _, err := validate.SnapshotIntent(c.store, c.raw)
	return rpi.ObjectOf(member("intent_ref", path), member("acceptance_digest", c.digest(c.raw).String())), err
}

func (c composed) Implement(rpi.Value) (rpi.Value, error) {
	return rpi.ObjectOf(member("subject_manifest_digest", digestOf(c.t, subjectOf("good")).String())), nil
}

func (c composed) Validate(plan, _ rpi.Value) (rpi.Value, error) {
	ref, _ := plan.Get("intent_ref")
	path, _ := ref.Text()
	raw, _, err := validate.ReadIntent(path)
	if err != nil {
		return rpi.Value{}, err
	}
	facts, draft := passing(c.t, "good")
	facts.Intent = raw
	v, _, err := validate.Judge(facts, draft)
	if err != nil {
		return rpi.Value{}, err
	}
	stored, err := canon.Marshal(v)
	if err != nil {
		return rpi.Value{}, err
	}
	return rpi.Decode(stored)
}

// A verdict of Judge is what InvokeOnce takes as a validation, and the digest crosses from
// plan to judge by way of the bytes. A digest of the value instead of the bytes is refused.
func TestComposedIdentity(t *testing.T) {
	raw := []byte("{\n  \"acceptance\": [\"works\"],\n  \"ref\": \"synthetic\"\n}\n")
	c := composed{t, filepath.Join(t.TempDir(), "intents"), raw, canon.Sum}
	report, err := rpi.InvokeOnce(rpi.String("synthetic"), c)
	if err != nil || report.Status != rpi.Pass || report.AcceptanceDigest.String() != `"`+canon.Sum(raw).String()+`"` {
		t.Fatalf("%s, %v", report.Value(), err)
	}
	c.digest = func(raw []byte) canon.Digest {
		value, err := canon.Canonicalize(raw)
		if err != nil {
			t.Fatal(err)
		}
		return canon.Sum(value)
	}
	_, err = rpi.InvokeOnce(rpi.String("synthetic"), c)
	refused(t, "a digest of the value", err, "intent-mismatch")
}

func TestKey(t *testing.T) {
	file, public, err := validate.NewKey(bytes.NewReader(bytes.Repeat([]byte{7}, 32)))
	if err != nil || len(public) != 64 {
		t.Fatal(public, err)
	}
	key, err := validate.ParseKey(file)
	if err != nil || validate.PublicKey(key) != public {
		t.Error(err)
	}
	if _, _, err := validate.NewKey(strings.NewReader("short")); err == nil {
		t.Error("a key of too little randomness")
	}
	for _, bad := range []string{"", "07", strings.Repeat("g", 64), string(file) + "\n"} {
		_, err := validate.ParseKey([]byte(bad))
		refused(t, "a bad key", err, "no signing key")
		if bad != "" && strings.Contains(err.Error(), bad) {
			t.Error("the error repeats the key")
		}
	}
}

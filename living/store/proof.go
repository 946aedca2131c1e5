package store

import (
	"bytes"
	"fmt"

	"github.com/go-json-experiment/json/jsontext"
	"golang.org/x/mod/sumdb/tlog"
	"selfsame.dev/selfsame/internal/canon"
	"selfsame.dev/selfsame/living"
)

// ProofFormat names the form of a proof.
const ProofFormat = "living-proof.v1"

// Proof shows, with nothing but a public key, that a record is in an owner's log and,
// if it has an older head, that the log only grew since then (RFC 6962, sections 2.1.1
// and 2.1.2).
type Proof struct {
	Consistency []canon.Digest `json:"consistency"`
	Format      string         `json:"format"`
	Head        string         `json:"head"` // signed note
	Inclusion   []canon.Digest `json:"inclusion"`
	OlderHead   string         `json:"older_head,omitzero"` // signed note
	Owner       string         `json:"owner"`
	Record      jsontext.Value `json:"record"`
}

// Prove proves record n of an owner's log; older is a head signed before, or nil.
func (s *Authoritative) Prove(owner string, n int64, older []byte) (proof *Proof, err error) {
	err = s.view(owner, func(v *view) error {
		if n < 0 || n >= v.tree.N {
			return &living.NotFoundError{What: fmt.Sprintf("record %d of %q", n, owner)}
		}
		reader := hashes(v.bucket(bucketHashes))
		inclusion, err := tlog.ProveRecord(v.tree.N, n, reader)
		if err != nil {
			return &CorruptError{v.path, err.Error()}
		}
		proof = &Proof{
			Format: ProofFormat, Owner: owner, Head: string(v.bucket(bucketMeta).Get(keyHead)),
			Record: bytes.Clone(v.bucket(bucketRecords).Get(number(n))), Inclusion: digests(inclusion),
		}
		if older == nil {
			return nil
		}
		added, err := v.since(s.keys, older, "the older head")
		if err != nil {
			return err
		}
		consistency, err := tlog.ProveTree(v.tree.N, v.tree.N-added, reader)
		if err != nil {
			return &CorruptError{v.path, err.Error()}
		}
		proof.OlderHead, proof.Consistency = string(older), digests(consistency)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return proof, nil
}

// CheckProof verifies a proof and returns the record that it shows.
func CheckProof(keys Keys, raw []byte) (*living.Record, error) {
	var p Proof
	if err := canon.Decode(raw, &p); err != nil {
		return nil, err
	}
	if p.Format != ProofFormat {
		return nil, &canon.InputError{Key: "/format", Problem: fmt.Sprintf("the format is %q", p.Format), Fix: "write " + ProofFormat}
	}
	key, err := OwnerKey(p.Owner)
	if err != nil {
		return nil, err
	}
	tree, err := keys.headOf(key, []byte(p.Head))
	if err != nil {
		return nil, err
	}
	rec, err := living.DecodeRecord(p.Record)
	if err != nil {
		return nil, err
	}
	if rec.Owner != p.Owner {
		return nil, unproven("the record is of %q", rec.Owner)
	}
	if rec.Sequence < 0 || rec.Sequence >= tree.N {
		return nil, unproven("the log has %d records, and no record %d", tree.N, rec.Sequence)
	}
	if err := tlog.CheckRecord(treeHashes(p.Inclusion), tree.N, tree.Hash, rec.Sequence, tlog.RecordHash(p.Record)); err != nil {
		return nil, unproven("inclusion of record %d: %v", rec.Sequence, err)
	}
	if p.OlderHead == "" {
		return rec, nil
	}
	old, err := keys.headOf(key, []byte(p.OlderHead))
	if err != nil {
		return nil, err
	}
	if old.N < 1 || old.N > tree.N {
		return nil, unproven("the older head has %d records, the log %d", old.N, tree.N)
	}
	if err := tlog.CheckTree(treeHashes(p.Consistency), tree.N, tree.Hash, old.N, old.Hash); err != nil {
		return nil, unproven("consistency with the older head: %v", err)
	}
	return rec, nil
}

func digests(hashes []tlog.Hash) []canon.Digest {
	out := make([]canon.Digest, len(hashes))
	for i, h := range hashes {
		out[i] = canon.Digest(h)
	}
	return out
}

func treeHashes(digests []canon.Digest) []tlog.Hash {
	out := make([]tlog.Hash, len(digests))
	for i, d := range digests {
		out[i] = tlog.Hash(d)
	}
	return out
}

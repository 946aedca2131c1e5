package validate

import (
	"crypto/ed25519"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"selfsame.dev/selfsame/internal/atomicfile"
	"selfsame.dev/selfsame/internal/canon"
	"selfsame.dev/selfsame/rpi"
	"selfsame.dev/selfsame/schemas"
)

// The formats of a chain: its head says what was declared, each round what was judged.
const (
	ChainFormat = "rpi-chain.v1"
	RoundFormat = "rpi-chain-round.v1"
)

// Head is the body of an rpi-chain.v1: what the caller declared before the first round. A
// chain is a folder of chain.json, round-000000.json and on, and objects/ with the verdicts
// and bindings by digest. Every file is canonical; chain.json and rounds are signed.
type Head struct {
	Format       string       `json:"format"`
	Acceptance   canon.Digest `json:"acceptance_digest"`
	IntentRef    string       `json:"intent_ref"`
	RepairRounds int          `json:"repair_rounds"`
	CrossModel   bool         `json:"cross_model"`
	// Signer is the Ed25519 public key of every signature of the chain, in hexadecimal.
	Signer string `json:"signer"`
}

// RoundEntry is the body of an rpi-chain-round.v1.
type RoundEntry struct {
	Format string `json:"format"`
	Index  int    `json:"index"`
	// Previous is the digest of the file before this one, chain.json for round 0.
	Previous canon.Digest `json:"previous_sha256"`
	Legs     []LegRef     `json:"legs"`
	// After is where the law stood after this round; replay derives it again.
	After Standing `json:"after"`
}

// LegRef names the verdict of one judge and its bindings in objects/.
type LegRef struct {
	Verdict  canon.Digest `json:"verdict_sha256"`
	Bindings canon.Digest `json:"bindings_sha256"`
}

// Standing is where a phase stands after a round.
type Standing struct {
	Status     string `json:"status"`
	StopReason string `json:"stop_reason"`
	RoundsUsed int    `json:"rounds_used"`
	Open       int    `json:"open_findings"`
}

func standing(o rpi.Outcome) Standing {
	return Standing{o.Report.Status.String(), string(o.StopReason), o.RoundsUsed, len(o.Open)}
}

// signed is a body and the Ed25519 signature over its format, a line feed and its canonical form.
type signed[T any] struct {
	Body      T      `json:"body"`
	Signature string `json:"signature"`
}

func seal[T any](key ed25519.PrivateKey, format string, body T) ([]byte, error) {
	message, err := signedMessage(format, body)
	if err != nil {
		return nil, err
	}
	return canon.Marshal(signed[T]{body, hex.EncodeToString(ed25519.Sign(key, message))})
}

func signedMessage(format string, body any) ([]byte, error) {
	raw, err := canon.Marshal(body)
	if err != nil {
		return nil, err
	}
	return append([]byte(format+"\n"), raw...), nil
}

// unseal decodes a signed file. The key of a head is its own signer's; rounds pass it in.
func unseal[T any](file, format string, raw []byte, key func(T) ed25519.PublicKey) (T, error) {
	var s signed[T]
	if err := schemas.DecodeCanonical(file, format, raw, &s); err != nil {
		return s.Body, err
	}
	message, err := signedMessage(format, s.Body)
	if err != nil {
		return s.Body, err
	}
	signature, err := hex.DecodeString(s.Signature)
	if err != nil || !ed25519.Verify(key(s.Body), message, signature) {
		return s.Body, &canon.InputError{File: file, Key: "/signature", Problem: "the signature does not hold", Fix: "take the chain from where it was made"}
	}
	return s.Body, nil
}

const (
	headFile   = "chain.json"
	objectsDir = "objects"
)

func roundFile(index int) string { return fmt.Sprintf("round-%06d.json", index) }

func objectFile(digest canon.Digest) string {
	return filepath.Join(objectsDir, digest.String()+".json")
}

// Begin starts a chain in a folder that does not exist yet.
func Begin(dir string, key ed25519.PrivateKey, intentRef string, acceptance canon.Digest, options rpi.Options) error {
	public, ok := key.Public().(ed25519.PublicKey)
	if !ok || options.RepairRounds < 0 {
		return &canon.InputError{File: dir, Problem: "a chain needs an Ed25519 key and a bound of zero or more rounds", Fix: "make a key with selfsame rpi key"}
	}
	raw, err := seal(key, ChainFormat, Head{ChainFormat, acceptance, intentRef, options.RepairRounds, options.CrossModel, hex.EncodeToString(public)})
	if err != nil {
		return err
	}
	if err := os.Mkdir(dir, 0o755); err != nil {
		return err
	}
	if err := os.Mkdir(filepath.Join(dir, objectsDir), 0o755); err != nil {
		return err
	}
	return atomicfile.Write(filepath.Join(dir, headFile), raw, 0o444)
}

// Judgment is the verdict of one judge with its bindings.
type Judgment struct {
	Verdict  Verdict
	Bindings Bindings
}

// ReadJudgment reads the two files of a judgment.
func ReadJudgment(verdictFile, bindingsFile string) (j Judgment, err error) {
	raw, err := os.ReadFile(verdictFile)
	if err != nil {
		return j, err
	}
	if err := schemas.DecodeCanonical(verdictFile, VerdictFormat, raw, &j.Verdict); err != nil {
		return j, err
	}
	if raw, err = os.ReadFile(bindingsFile); err != nil {
		return j, err
	}
	return j, schemas.DecodeCanonical(bindingsFile, BindingsFormat, raw, &j.Bindings)
}

// Append adds one round, the judgments of all its legs. The chain is replayed first: a broken
// one, or one that has stopped, takes no round, and neither does a round that the law refuses.
// It returns where the repair stands.
func Append(dir string, key ed25519.PrivateKey, legs []Judgment) (Standing, error) {
	r, err := replay(dir)
	if err != nil {
		return Standing{}, err
	}
	public, _ := key.Public().(ed25519.PublicKey)
	if hex.EncodeToString(public) != r.Signer {
		return Standing{}, &canon.InputError{File: dir, Problem: "another key signs this chain", Fix: "append with the key of " + r.Signer}
	}
	if r.rounds > 0 && !r.more {
		return Standing{}, &canon.InputError{File: dir, Problem: "the repair has stopped: " + string(r.Outcome.StopReason), Fix: "begin a new chain with new authority"}
	}
	entry := RoundEntry{Format: RoundFormat, Index: r.rounds, Previous: r.Last}
	objects := map[canon.Digest][]byte{}
	for i, leg := range legs {
		ref, err := r.admit(leg, objects)
		if err != nil {
			return Standing{}, canon.InFile(fmt.Sprintf("leg %d", i), err)
		}
		entry.Legs = append(entry.Legs, ref)
	}
	if err := r.offer(legs); err != nil {
		return Standing{}, err
	}
	entry.After = standing(r.Outcome)
	raw, err := seal(key, RoundFormat, entry)
	if err != nil {
		return Standing{}, err
	}
	for digest, object := range objects {
		if err := atomicfile.Write(filepath.Join(dir, objectFile(digest)), object, 0o444); err != nil {
			return Standing{}, err
		}
	}
	return entry.After, writeRound(dir, roundFile(entry.Index), raw)
}

// writeRound writes the file of a round, which must not exist: of two that append at once, one
// fails. It is prepared among the objects under its own digest, where what a killed append
// leaves is no part of the chain, and no other append prepares the same.
func writeRound(dir, name string, raw []byte) error {
	part := filepath.Join(dir, objectsDir, canon.Sum(raw).String()+".part")
	defer os.Remove(part)
	if err := atomicfile.Write(part, raw, 0o444); err != nil {
		return err
	}
	path := filepath.Join(dir, name)
	if err := os.Link(part, path); err != nil {
		if errors.Is(err, fs.ErrExist) {
			return &canon.InputError{File: path, Problem: "another round was appended meanwhile", Fix: "look at the chain, then append again"}
		}
		return err
	}
	return atomicfile.SyncDir(dir)
}

package validate

import (
	"crypto/ed25519"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"selfsame.dev/selfsame/internal/canon"
	"selfsame.dev/selfsame/rpi"
	"selfsame.dev/selfsame/schemas"
)

// Replayed is a chain whose every byte, order and signature held, and whose every standing
// was derived again from the verdicts alone.
type Replayed struct {
	Head   Head
	Signer string
	// Last is the digest of the last file. Who remembers it sees rounds cut off at the end.
	Last canon.Digest
	// Outcome is where the repair stands; only its stop reason counts before the first round.
	Outcome rpi.Outcome
	// Rounds are what the law read, for [rpi.Explain].
	Rounds []rpi.Value

	phase  *rpi.Phase
	rounds int
	more   bool
	// What every round must agree on: the criteria, and the one subject that each bound receipt is over.
	criteria []string
	subjects map[canon.Digest]canon.Digest
}

// Replay reads a chain from its files alone. Pins that are not empty must hold: the signer's
// public key and the digest of the last file, both in hexadecimal.
func Replay(dir, signer, last string) (*Replayed, error) {
	r, err := replay(dir)
	switch {
	case err != nil:
		return nil, err
	case signer != "" && signer != r.Signer:
		return nil, &canon.InputError{File: dir, Problem: "the chain is signed by " + r.Signer, Fix: "take the chain of the signer you trust"}
	case last != "" && last != r.Last.String():
		return nil, &canon.InputError{File: dir, Problem: fmt.Sprintf("the chain ends with %s, not with %s", r.Last, last), Fix: "take the whole chain"}
	case r.rounds == 0:
		return nil, &canon.InputError{File: dir, Problem: "the chain has no round", Fix: "append the first validation"}
	}
	return r, nil
}

func (r *Replayed) options() rpi.Options {
	return rpi.Options{
		RepairRounds: r.Head.RepairRounds, CrossModel: r.Head.CrossModel,
		IntentRef: rpi.String(r.Head.IntentRef), AcceptanceDigest: rpi.String(r.Head.Acceptance.String()),
	}
}

// Explain tells each step of the chain.
func (r *Replayed) Explain() ([]rpi.Step, rpi.Outcome, error) {
	return rpi.Explain(r.Rounds, r.options())
}

func replay(dir string) (*Replayed, error) {
	head, err := os.ReadFile(filepath.Join(dir, headFile))
	if err != nil {
		return nil, err
	}
	r := &Replayed{Last: canon.Sum(head)}
	var public ed25519.PublicKey
	r.Head, err = unseal(headFile, ChainFormat, head, func(h Head) ed25519.PublicKey {
		public, _ = hex.DecodeString(h.Signer) // the schema has 64 digits
		return public
	})
	if err != nil {
		return nil, err
	}
	r.Signer = r.Head.Signer
	if r.phase, err = rpi.NewPhase(r.options()); err != nil {
		return nil, err
	}
	expected := map[string]bool{headFile: true}
	for {
		name := roundFile(r.rounds)
		raw, err := os.ReadFile(filepath.Join(dir, name))
		if errors.Is(err, fs.ErrNotExist) {
			break
		}
		if err != nil {
			return nil, err
		}
		if err := r.replayRound(dir, name, raw, public); err != nil {
			return nil, canon.InFile(name, err)
		}
		expected[name] = true
	}
	return r, onlyFiles(dir, expected)
}

func (r *Replayed) replayRound(dir, name string, raw []byte, public ed25519.PublicKey) error {
	entry, err := unseal(name, RoundFormat, raw, func(RoundEntry) ed25519.PublicKey { return public })
	if err != nil {
		return err
	}
	refuse := func(key, problem string) error {
		return &canon.InputError{Key: key, Problem: problem, Fix: "take the chain from where it was made"}
	}
	if entry.Index != r.rounds || entry.Previous != r.Last {
		return refuse("/body/previous_sha256", "the round does not follow the file before it")
	}
	if r.rounds > 0 && !r.more {
		return refuse("", "the repair stopped before this round")
	}
	legs := make([]Judgment, len(entry.Legs))
	for i, ref := range entry.Legs {
		if err := readObject(dir, VerdictFormat, ref.Verdict, &legs[i].Verdict); err != nil {
			return err
		}
		if err := readObject(dir, BindingsFormat, ref.Bindings, &legs[i].Bindings); err != nil {
			return err
		}
		if _, err := r.admit(legs[i], map[canon.Digest][]byte{}); err != nil {
			return errors.Join(refuse(fmt.Sprintf("/body/legs/%d", i), "the judgment does not belong here"), err)
		}
	}
	if err := r.offer(legs); err != nil {
		return err
	}
	if derived := standing(r.Outcome); derived != entry.After {
		return refuse("/body/after", fmt.Sprintf("the round says %+v, the law says %+v", entry.After, derived))
	}
	r.Last = canon.Sum(raw)
	return nil
}

// admit refuses a judgment that does not belong to this chain, and adds its objects.
func (r *Replayed) admit(leg Judgment, objects map[canon.Digest][]byte) (LegRef, error) {
	if leg.Verdict.Acceptance != r.Head.Acceptance {
		return LegRef{}, &canon.InputError{Key: "/acceptance_digest", Problem: "the verdict judges another intent than the chain's", Fix: "judge the accepted intent"}
	}
	if err := leg.Verdict.check(); err != nil {
		return LegRef{}, err
	}
	if err := leg.Bindings.check(leg.Verdict); err != nil {
		return LegRef{}, err
	}
	if err := r.agrees(leg); err != nil {
		return LegRef{}, err
	}
	verdict, err := canon.Marshal(leg.Verdict)
	if err != nil {
		return LegRef{}, err
	}
	bindings, err := canon.Marshal(leg.Bindings)
	if err != nil {
		return LegRef{}, err
	}
	if err := schemas.Validate("verdict", VerdictFormat, verdict); err != nil {
		return LegRef{}, err
	}
	if err := schemas.Validate("bindings", BindingsFormat, bindings); err != nil {
		return LegRef{}, err
	}
	ref := LegRef{canon.Sum(verdict), canon.Sum(bindings)}
	objects[ref.Verdict], objects[ref.Bindings] = verdict, bindings
	return ref, nil
}

// agrees refuses a judgment that contradicts the rounds before it. A chain holds no receipts: that they exist and
// passed is what [Judge] saw, and what the signer vouches for.
func (r *Replayed) agrees(leg Judgment) error {
	var criteria []string
	for _, c := range leg.Verdict.Criteria {
		criteria = append(criteria, c.ID)
	}
	slices.Sort(criteria)
	if r.criteria == nil {
		r.criteria, r.subjects = criteria, map[canon.Digest]canon.Digest{}
	}
	if !slices.Equal(criteria, r.criteria) {
		return &canon.InputError{Key: "/criteria", Problem: fmt.Sprintf("judged %q, before %q", criteria, r.criteria), Fix: "judge the same criteria in every round"}
	}
	for i, bound := range leg.Bindings.Bound {
		at := slices.IndexFunc(leg.Verdict.Evidence, func(e Evidence) bool { return e.Ref == bound.Ref })
		receipt := leg.Verdict.Evidence[at].Digest
		if subject, known := r.subjects[receipt]; known && subject != bound.Subject {
			return &canon.InputError{Key: fmt.Sprintf("/bound/%d", i), Problem: fmt.Sprintf("the receipt %q is bound to another subject than before, and a receipt is over one", bound.Ref),
				Fix: "run the check again over this subject"}
		}
		r.subjects[receipt] = bound.Subject
	}
	return nil
}

// offer shows the law the next round.
func (r *Replayed) offer(legs []Judgment) error {
	values := make([]rpi.Value, len(legs))
	for i, leg := range legs {
		values[i] = Leg(leg.Verdict, leg.Bindings)
	}
	round := rpi.ListOf(values...)
	more, err := r.phase.Offer(round)
	if err != nil {
		return err
	}
	if r.Outcome, err = r.phase.Outcome(); err != nil {
		return err
	}
	r.more = more && r.Outcome.StopReason == rpi.NotConverged && r.Outcome.RoundsUsed < r.Head.RepairRounds
	r.Rounds = append(r.Rounds, round)
	r.rounds++
	return nil
}

func readObject(dir, format string, digest canon.Digest, dst any) error {
	name := objectFile(digest)
	raw, err := os.ReadFile(filepath.Join(dir, name))
	if errors.Is(err, fs.ErrNotExist) {
		return &canon.InputError{File: name, Problem: "the file is missing", Fix: "take the whole chain"}
	}
	if err != nil {
		return err
	}
	if canon.Sum(raw) != digest {
		return &canon.InputError{File: name, Problem: "its bytes are not those of its name", Fix: "take the chain from where it was made"}
	}
	return schemas.DecodeCanonical(name, format, raw, dst)
}

// onlyFiles refuses files that no round names. Objects alone may be left from an append that
// was cut off before its round was written; they are not part of the chain.
func onlyFiles(dir string, expected map[string]bool) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	var extra []string
	for _, e := range entries {
		if e.Name() != objectsDir && !expected[e.Name()] {
			extra = append(extra, e.Name())
		}
	}
	slices.Sort(extra)
	if len(extra) > 0 {
		return &canon.InputError{File: dir, Key: extra[0], Problem: "the file is no part of the chain", Fix: "remove it, or take the missing rounds before it"}
	}
	return nil
}

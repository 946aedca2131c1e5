package validate_test

import (
	"bytes"
	"crypto/ed25519"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"selfsame.dev/selfsame/internal/canon"
	"selfsame.dev/selfsame/rpi"
	"selfsame.dev/selfsame/rpi/validate"
)

func keyOf(seed byte) ed25519.PrivateKey {
	return ed25519.NewKeyFromSeed(bytes.Repeat([]byte{seed}, ed25519.SeedSize))
}

// failing is a judgment that leaves findings open, each with its class.
func failing(t *testing.T, content string, open map[string]string, bound ...validate.Binding) validate.Judgment {
	t.Helper()
	facts, draft := passing(t, content)
	draft.Verdict, draft.Classes = "FAIL", map[string]string{}
	for _, id := range []string{"slow", "leak", "stall"} {
		if class, ok := open[id]; ok {
			draft.Findings = append(draft.Findings, finding(id))
			if class != "" {
				draft.Classes[id] = class
			}
		}
	}
	return judge(t, facts, draft, bound)
}

func judge(t *testing.T, facts validate.Facts, draft validate.Draft, bound []validate.Binding) validate.Judgment {
	t.Helper()
	for _, b := range bound {
		facts.Receipts[b.Ref] = receiptOver(b.Subject)
	}
	draft.Bound = bound
	v, b, err := validate.Judge(facts, draft)
	if err != nil {
		t.Fatal(err)
	}
	return validate.Judgment{Verdict: v, Bindings: b}
}

func resolves(t *testing.T, ref, content string, ids ...string) validate.Binding {
	return validate.Binding{Ref: ref, Subject: digestOf(t, subjectOf(content)), Resolves: ids}
}

// begin starts a chain of at most n repair rounds.
func begin(t *testing.T, n int) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "chain")
	if err := validate.Begin(dir, keyOf(1), "synthetic:intent", canon.Sum(intent), rpi.Options{RepairRounds: n}); err != nil {
		t.Fatal(err)
	}
	return dir
}

// converged is a chain of three rounds that converges.
func converged(t *testing.T) string {
	t.Helper()
	dir := begin(t, 3)
	facts, draft := passing(t, "three")
	for i, round := range [][]validate.Judgment{
		{failing(t, "one", map[string]string{"slow": "timeout", "leak": ""}), failing(t, "one", map[string]string{"leak": ""})},
		{failing(t, "two", map[string]string{"leak": ""}, resolves(t, "fix-slow", "two", "slow"))},
		{judge(t, facts, draft, []validate.Binding{resolves(t, "fix-leak", "three", "leak")})},
	} {
		s, err := validate.Append(dir, keyOf(1), round)
		if err != nil {
			t.Fatal(err)
		}
		if want := []string{"not_converged", "not_converged", "converged"}[i]; s.StopReason != want || s.RoundsUsed != i {
			t.Fatalf("round %d: %+v", i, s)
		}
	}
	return dir
}

func TestChainReplays(t *testing.T) {
	dir := converged(t)
	signer := hex.EncodeToString(keyOf(1).Public().(ed25519.PublicKey))
	r, err := validate.Replay(dir, signer, "")
	if err != nil {
		t.Fatal(err)
	}
	report := r.Outcome.Report
	if r.Outcome.StopReason != rpi.Converged || report.Status != rpi.Pass || report.AcceptanceDigest.String() != `"`+canon.Sum(intent).String()+`"` {
		t.Errorf("%s", r.Outcome.Value())
	}
	// The law over the same rounds alone says the same.
	alone, err := rpi.RunRepairPhase(r.Rounds, rpi.Options{RepairRounds: 3, IntentRef: report.IntentRef, AcceptanceDigest: report.AcceptanceDigest})
	if err != nil || alone.Value().String() != r.Outcome.Value().String() {
		t.Errorf("%s, %v", alone.Value(), err)
	}
	if steps, outcome, err := r.Explain(); err != nil || len(steps) != 3 || outcome.StopReason != rpi.Converged {
		t.Errorf("%+v %v", steps, err)
	}
	if again, err := validate.Replay(dir, signer, r.Last.String()); err != nil || again.Last != r.Last {
		t.Error(err)
	}
	_, err = validate.Replay(dir, strings.Repeat("0", 64), "")
	refused(t, "another signer", err, "signed by "+signer)
	_, err = validate.Append(dir, keyOf(1), []validate.Judgment{failing(t, "four", map[string]string{"slow": ""})})
	refused(t, "a round after the end", err, "has stopped: converged")
}

func TestChainStopsByLaw(t *testing.T) {
	for name, tc := range map[string]struct {
		rounds [][]validate.Judgment
		reason rpi.StopReason
	}{
		"recurring class": {[][]validate.Judgment{
			{failing(t, "one", map[string]string{"slow": "timeout", "leak": ""})},
			{failing(t, "two", map[string]string{"leak": ""}, resolves(t, "fix", "two", "slow"))},
			{failing(t, "three", map[string]string{"stall": "timeout"})},
		}, rpi.RecurringClass},
		"introduced": {[][]validate.Judgment{
			{failing(t, "one", map[string]string{"slow": ""})},
			{failing(t, "two", map[string]string{"leak": ""}, validate.Binding{Ref: "cmp", Subject: digestOf(t, subjectOf("two")), Introduced: []string{"leak"}})},
		}, rpi.IntroducedRegression},
		"seen before": {[][]validate.Judgment{
			{failing(t, "one", map[string]string{"slow": ""})},
			{failing(t, "two", map[string]string{"leak": ""}, resolves(t, "fix", "two", "slow"), validate.Binding{Ref: "old", Subject: digestOf(t, subjectOf("one")), Preexisting: []string{"leak"}})},
		}, rpi.NotConverged},
		"unproven": {[][]validate.Judgment{
			{failing(t, "one", map[string]string{"slow": "", "leak": ""})},
			{failing(t, "two", map[string]string{"leak": ""})},
		}, rpi.NoProgress},
	} {
		dir := begin(t, 5)
		for _, round := range tc.rounds {
			if _, err := validate.Append(dir, keyOf(1), round); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
		}
		if r, err := validate.Replay(dir, "", ""); err != nil || r.Outcome.StopReason != tc.reason {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestAppendRefuses(t *testing.T) {
	one := failing(t, "one", map[string]string{"slow": ""})
	dir := begin(t, 1)
	_, err := validate.Replay(dir, "", "")
	refused(t, "a chain without a round", err, "no round")
	_, err = validate.Append(dir, keyOf(2), []validate.Judgment{one})
	refused(t, "another key", err, "another key")
	_, err = validate.Append(dir, keyOf(1), nil)
	refused(t, "no leg", err, "round-empty")
	_, err = validate.Append(dir, keyOf(1), []validate.Judgment{one, failing(t, "two", map[string]string{"slow": ""})})
	refused(t, "legs over two subjects", err, "leg-disagreement")
	other := one
	other.Verdict.Acceptance = canon.Sum([]byte("other"))
	_, err = validate.Append(dir, keyOf(1), []validate.Judgment{other})
	refused(t, "another intent", err, "another intent")
	other = one
	other.Verdict.Checked = []string{"edited after it was bound"}
	_, err = validate.Append(dir, keyOf(1), []validate.Judgment{other})
	refused(t, "bindings of another verdict", err, "another verdict")
	for i, content := range []string{"one", "two"} {
		open := map[string]string{"slow": "", "leak": "", "stall": ""}
		var bound []validate.Binding
		if i == 1 {
			delete(open, "leak")
			bound = append(bound, resolves(t, "fix", "two", "leak"))
		}
		if _, err := validate.Append(dir, keyOf(1), []validate.Judgment{failing(t, content, open, bound...)}); err != nil {
			t.Fatal(err)
		}
	}
	_, err = validate.Append(dir, keyOf(1), []validate.Judgment{failing(t, "three", map[string]string{"slow": ""})})
	refused(t, "a round past the bound", err, "repair_budget_exhausted")
	if err := validate.Begin(dir, keyOf(1), "x", canon.Sum(intent), rpi.DefaultOptions()); !errors.Is(err, os.ErrExist) {
		t.Errorf("a chain is begun twice: %v", err)
	}
	if r, err := validate.Replay(dir, "", ""); err != nil || r.Outcome.StopReason != rpi.BudgetExhausted {
		t.Errorf("what was refused left a mark: %v", err)
	}
}

// One changed byte anywhere, one file too many or too few, one order: refused. Untouched, the
// same chain replays: that is the control, tried before every change.
func TestReplayRefusesEveryChange(t *testing.T) {
	dir := converged(t)
	whole, err := validate.Replay(dir, "", "")
	if err != nil {
		t.Fatal(err)
	}
	broken := func(what string) {
		t.Helper()
		if _, err := validate.Replay(dir, "", ""); err == nil {
			t.Errorf("%s: the chain replays", what)
		}
	}
	files := chainFiles(t, dir)
	if len(files) != 4+8 {
		t.Fatalf("files: %v", files)
	}
	restore := func(file string, data []byte) {
		t.Helper()
		_ = os.Remove(file)
		if err := os.WriteFile(file, data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	changes := 0
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for at := 0; at < len(data); at += 1 + len(data)/12 {
			for _, with := range []byte{data[at] ^ 1, ' '} {
				if with == data[at] {
					continue
				}
				changed := bytes.Clone(data)
				changed[at] = with
				restore(file, changed)
				broken(file)
				changes++
			}
		}
		restore(file, append(bytes.Clone(data), '\n'))
		broken(file + " with a line feed")
		restore(file, data[:len(data)-1])
		broken(file + " cut")
		if filepath.Base(file) != "round-000002.json" {
			if err := os.Remove(file); err != nil {
				t.Fatal(err)
			}
			broken(file + " gone")
		}
		restore(file, data)
	}
	if changes < 200 {
		t.Errorf("only %d changes were tried", changes)
	}
	if _, err := validate.Replay(dir, "", whole.Last.String()); err != nil {
		t.Fatal("control: the restored chain does not replay:", err)
	}

	object := files[len(files)-1]
	data, _ := os.ReadFile(object)
	restore(object, bytes.Replace(data, []byte("1"), []byte("2"), 1))
	_, err = validate.Replay(dir, "", "")
	refused(t, "a changed object", err, "not those of its name")
	restore(object, data)

	swap(t, dir, "round-000000.json", "round-000001.json")
	broken("two rounds swapped")
	swap(t, dir, "round-000000.json", "round-000001.json")
	last := filepath.Join(dir, "round-000002.json")
	data, _ = os.ReadFile(last)
	restore(filepath.Join(dir, "round-000003.json"), data)
	broken("a round twice")
	_ = os.Remove(filepath.Join(dir, "round-000003.json"))
	restore(filepath.Join(dir, "note.txt"), nil)
	broken("a stray file")
	_ = os.Remove(filepath.Join(dir, "note.txt"))

	// Rounds cut off at the end show to who remembers the last digest.
	_ = os.Remove(last)
	if _, err := validate.Replay(dir, "", ""); err != nil {
		t.Fatal(err)
	}
	_, err = validate.Replay(dir, "", whole.Last.String())
	refused(t, "a chain cut short", err, "ends with")
}

// Whoever holds another key cannot pass off a chain of their own under a pinned signer, nor put
// a round of it into this one.
func TestForeignRounds(t *testing.T) {
	dir := converged(t)
	foreign := filepath.Join(t.TempDir(), "foreign")
	if err := validate.Begin(foreign, keyOf(2), "synthetic:intent", canon.Sum(intent), rpi.Options{RepairRounds: 3}); err != nil {
		t.Fatal(err)
	}
	facts, draft := passing(t, "three")
	if _, err := validate.Append(foreign, keyOf(2), []validate.Judgment{judge(t, facts, draft, nil)}); err != nil {
		t.Fatal(err)
	}
	signer := hex.EncodeToString(keyOf(1).Public().(ed25519.PublicKey))
	_, err := validate.Replay(foreign, signer, "")
	refused(t, "a foreign chain", err, "signed by")
	if _, err := validate.Replay(foreign, "", ""); err != nil {
		t.Errorf("control: the foreign chain stands for itself: %v", err)
	}
	data, err := os.ReadFile(filepath.Join(foreign, "round-000000.json"))
	if err != nil {
		t.Fatal(err)
	}
	_ = os.Remove(filepath.Join(dir, "round-000002.json"))
	if err := os.WriteFile(filepath.Join(dir, "round-000002.json"), data, 0o644); err != nil {
		t.Fatal(err)
	}
	_, err = validate.Replay(dir, "", "")
	refused(t, "a foreign round", err, "signature")
}

// The signer cannot sign another end than the one the law derives.
func TestSignedLie(t *testing.T) {
	dir := begin(t, 3)
	if _, err := validate.Append(dir, keyOf(1), []validate.Judgment{failing(t, "one", map[string]string{"slow": ""})}); err != nil {
		t.Fatal(err)
	}
	resign := func(from, to string) { t.Helper(); resigned(t, dir, 0, 0, from, to) }
	resign("x", "x")
	if _, err := validate.Replay(dir, "", ""); err != nil {
		t.Fatal("control: the same body signed again:", err)
	}
	resign(`"stop_reason":"not_converged"`, `"stop_reason":"converged"`)
	_, err := validate.Replay(dir, "", "")
	refused(t, "a signed lie", err, "the law says")
	resign(`"stop_reason":"converged"`, `"stop_reason":"not_converged"`)
	resign(`"index":0`, `"index":1`)
	_, err = validate.Replay(dir, "", "")
	refused(t, "a signed wrong number", err, "does not follow")
}

// A receipt is over one subject, and every round judges the same criteria: what contradicts the rounds before it
// is refused, whoever signs it.
func TestRoundsAgree(t *testing.T) {
	dir := begin(t, 3)
	first := failing(t, "one", map[string]string{"slow": "", "leak": ""}, resolves(t, "seen", "one"))
	if _, err := validate.Append(dir, keyOf(1), []validate.Judgment{first}); err != nil {
		t.Fatal(err)
	}
	second := failing(t, "two", map[string]string{"leak": ""}, resolves(t, "fix", "two", "slow"))
	reused, other := second, second
	at := func(j validate.Judgment, ref string) int {
		return slices.IndexFunc(j.Verdict.Evidence, func(e validate.Evidence) bool { return e.Ref == ref })
	}
	reused.Verdict.Evidence = slices.Clone(second.Verdict.Evidence)
	reused.Verdict.Evidence[at(second, "fix")].Digest = first.Verdict.Evidence[at(first, "seen")].Digest
	other.Verdict.Criteria = []validate.Criterion{{ID: "another", Evidence: second.Verdict.Criteria[0].Evidence}}
	for want, j := range map[string]validate.Judgment{"over one": reused, "same criteria": other} {
		raw, err := canon.Marshal(j.Verdict)
		if err != nil {
			t.Fatal(err)
		}
		j.Bindings.Verdict = canon.Sum(raw)
		_, err = validate.Append(dir, keyOf(1), []validate.Judgment{j})
		var input *canon.InputError
		if !errors.As(err, &input) || !strings.Contains(input.Problem+input.Fix, want) {
			t.Errorf("%s: %v", want, err)
		}
	}
	if _, err := validate.Append(dir, keyOf(1), []validate.Judgment{second}); err != nil {
		t.Errorf("control: %v", err)
	}
}

// Nor can the signer add a round to a repair that has stopped.
func TestSignedAfterTheStop(t *testing.T) {
	dir := converged(t)
	sum := func(index int) string {
		raw, err := os.ReadFile(filepath.Join(dir, fmt.Sprintf("round-%06d.json", index)))
		if err != nil {
			t.Fatal(err)
		}
		return canon.Sum(raw).String()
	}
	resigned(t, dir, 2, 3, `"index":2`, `"index":3`)
	resigned(t, dir, 3, 3, sum(1), sum(2))
	_, err := validate.Replay(dir, "", "")
	refused(t, "a round after the stop", err, "the repair stopped")
}

// resigned writes round as made of round from, its body changed and signed again.
func resigned(t *testing.T, dir string, from, round int, old, changed string) {
	t.Helper()
	file := func(index int) string { return fmt.Sprintf("round-%06d.json", index) }
	raw, err := os.ReadFile(filepath.Join(dir, file(from)))
	if err != nil {
		t.Fatal(err)
	}
	var entry map[string]any
	if err := canon.Decode(raw, &entry); err != nil {
		t.Fatal(err)
	}
	body, err := canon.Marshal(entry["body"])
	if err != nil {
		t.Fatal(err)
	}
	text := strings.Replace(string(body), old, changed, 1)
	signature := hex.EncodeToString(ed25519.Sign(keyOf(1), append([]byte(validate.RoundFormat+"\n"), text...)))
	_ = os.Remove(filepath.Join(dir, file(round)))
	write(t, dir, file(round), `{"body":`+text+`,"signature":"`+signature+`"}`)
}

// A round of one chain does not fit another of the same signer and the same beginning, even
// where the law would say the same.
func TestSplicedRounds(t *testing.T) {
	make := func(legs int) string {
		dir := begin(t, 3)
		first := failing(t, "one", map[string]string{"slow": "", "leak": ""})
		round := []validate.Judgment{first, first}[:legs]
		for _, legs := range [][]validate.Judgment{round, {failing(t, "two", map[string]string{"leak": ""}, resolves(t, "fix", "two", "slow"))}} {
			if _, err := validate.Append(dir, keyOf(1), legs); err != nil {
				t.Fatal(err)
			}
		}
		return dir
	}
	one, two := make(1), make(2)
	for _, dir := range []string{one, two} {
		if _, err := validate.Replay(dir, "", ""); err != nil {
			t.Fatal("control:", err)
		}
	}
	data, err := os.ReadFile(filepath.Join(one, "round-000001.json"))
	if err != nil {
		t.Fatal(err)
	}
	_ = os.Remove(filepath.Join(two, "round-000001.json"))
	write(t, two, "round-000001.json", string(data))
	_, err = validate.Replay(two, "", "")
	refused(t, "a round of another chain", err, "does not follow")
}

func chainFiles(t *testing.T, dir string) []string {
	t.Helper()
	top, err := filepath.Glob(filepath.Join(dir, "*.json"))
	if err != nil {
		t.Fatal(err)
	}
	objects, err := filepath.Glob(filepath.Join(dir, "objects", "*.json"))
	if err != nil {
		t.Fatal(err)
	}
	return append(top, objects...)
}

func swap(t *testing.T, dir, a, b string) {
	t.Helper()
	a, b, c := filepath.Join(dir, a), filepath.Join(dir, b), filepath.Join(dir, "swap")
	for _, step := range [][2]string{{a, c}, {b, a}, {c, b}} {
		if err := os.Rename(step[0], step[1]); err != nil {
			t.Fatal(err)
		}
	}
}

// Of appends at once, those that say so are in the chain and no other. What one that was killed
// half-way leaves is no part of it.
func TestAppendsAtOnce(t *testing.T) {
	for range 20 {
		dir := begin(t, 5)
		contents := []string{"one", "two", "three", "four", "five", "six"}
		rounds := make([][]validate.Judgment, len(contents))
		for i, content := range contents {
			rounds[i] = []validate.Judgment{failing(t, content, map[string]string{"slow": ""})}
		}
		errs := make([]error, len(rounds))
		var all sync.WaitGroup
		for i := range rounds {
			all.Go(func() { _, errs[i] = validate.Append(dir, keyOf(1), rounds[i]) })
		}
		all.Wait()
		r, err := validate.Replay(dir, "", "")
		if err != nil {
			t.Fatal(err)
		}
		var won, have []string // by subject; an append that came late may follow as a round of its own
		for i, err := range errs {
			var input *canon.InputError
			switch {
			case err == nil:
				won = append(won, rounds[i][0].Verdict.Subject.String())
			case !errors.As(err, &input):
				t.Errorf("append of %q: %v", contents[i], err)
			}
		}
		for _, round := range r.Rounds {
			for _, leg := range round.Items() {
				subject, _ := leg.Get("subject_manifest_digest")
				digest, _ := subject.Text()
				have = append(have, digest)
			}
		}
		slices.Sort(won)
		slices.Sort(have)
		if len(won) == 0 || !slices.Equal(won, have) {
			t.Errorf("appended %q, the chain has %q: %v", won, have, errs)
		}
	}
	dir := converged(t)
	for _, name := range []string{"half.part", ".half.part.123"} {
		if err := os.WriteFile(filepath.Join(dir, "objects", name), []byte("{"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := validate.Replay(dir, "", ""); err != nil {
		t.Errorf("what a killed append left: %v", err)
	}
}

package canary

import (
	"fmt"
	"reflect"
	"slices"
	"time"

	"selfsame.dev/selfsame/canary/child"
	"selfsame.dev/selfsame/canary/wire"
	"selfsame.dev/selfsame/internal/canon"
	"selfsame.dev/selfsame/manifest"
	"selfsame.dev/selfsame/schemas"
)

// DecodeReceipt reads a receipt and checks it with [VerifyReceipt].
func DecodeReceipt(file string, data []byte) (*Receipt, error) {
	var r Receipt
	if err := schemas.DecodeCanonical(file, Format, data, &r); err != nil {
		return nil, err
	}
	return &r, VerifyReceipt(&r)
}

// Inconsistent says that a receipt does not bear out what it claims.
type Inconsistent struct {
	Key     string // JSON pointer
	Problem string
}

func (e *Inconsistent) Error() string { return e.Key + ": " + e.Problem }

// VerifyReceipt recomputes everything in a receipt that follows from the rest, and refuses
// a claim without its evidence, as an [*Inconsistent]. A receipt is no authority: this
// says that it is coherent, not that the run took place (law I7).
func VerifyReceipt(r *Receipt) error {
	var first error
	check := func(ok bool, key, format string, args ...any) {
		if !ok && first == nil {
			first = &Inconsistent{key, fmt.Sprintf(format, args...)}
		}
	}
	p := &r.Reproducible
	check(r.Format == Format, "/format", "%q is not %q", r.Format, Format)
	check(slices.Contains([]string{Reproduced, Drifted, Refused, Interrupted, Failed}, r.Outcome), "/outcome", "%q is unknown", r.Outcome)
	check((r.Reason == "") == (r.Outcome == Reproduced), "/reason", "%q does not go with %s", r.Reason, r.Outcome)

	began, beganErr := time.Parse(time.RFC3339Nano, r.Observed.StartedAt)
	ended, endedErr := time.Parse(time.RFC3339Nano, r.Observed.FinishedAt)
	check(beganErr == nil && endedErr == nil && !ended.Before(began), "/observed/finished_at", "%q is no time at or after %q", r.Observed.FinishedAt, r.Observed.StartedAt)
	tier, basis, ceiling := standing(r.Outcome)
	check(r.RequiredTier == T2, "/required_tier", "%q is not %s", r.RequiredTier, T2)
	check(r.Tier == tier, "/tier", "%s is worth %s, not %q", r.Outcome, tier, r.Tier)
	check(r.GoalTierSatisfied == (r.Tier == r.RequiredTier), "/goal_tier_satisfied", "does not follow from the tiers")
	check(p.TierBasis == basis, "/reproducible/tier_basis", "%q is not %q", p.TierBasis, basis)
	check(reflect.DeepEqual(p.ClaimCeiling, ceiling), "/reproducible/claim_ceiling", "%s proves %v and excludes %v", r.Outcome, ceiling.Proves, ceiling.Excludes)
	check(p.RuntimeVariant == LocalResponder || p.RuntimeVariant == LocalProgram, "/reproducible/runtime_variant", "%q is unknown", p.RuntimeVariant)

	sum, err := canon.DigestOf(p)
	check(err == nil && sum == r.ReproducibleSHA256, "/reproducible_sha256", "the part has the digest %s", sum)
	check((p.Identity == nil) == (p.Query == nil), "/reproducible/query", "identity and query go together")
	if p.Query != nil {
		query, err := p.Query.Document.SHA256()
		check(err == nil && query == p.Query.SHA256, "/reproducible/query/sha256", "the query has the digest %s", query)
	}

	m, err := replay(p.Transitions)
	check(err == nil, "/reproducible/transitions", "%v", err)
	if first != nil {
		return first
	}
	verifyIdentity(check, r, m)
	verifyStarts(check, r, m)
	verifyProcesses(check, r, m)
	if first != nil {
		return first
	}
	switch r.Outcome {
	case Reproduced:
		verifyReproduced(check, r, m)
	case Drifted:
		check(m.at() == DriftDetected, "/reproducible/transitions", "end at %s, not at drift", m.at())
	default:
		check(p.Answer == nil, "/reproducible/answer", "%s leaves no answer", r.Outcome)
	}
	verifyDrift(check, r, m)
	check(r.Outcome == Failed || r.Observed.Cleanup.complete(), "/observed/cleanup", "something is left, or was not looked for")
	return first
}

type checker func(ok bool, key, format string, args ...any)

func (m *machine) reached(s State) bool {
	return slices.ContainsFunc(m.steps, func(t Transition) bool { return t.To == s })
}

// evidence returns what was shown for the nth entry of a state, counted from 1.
func (m *machine) evidence(s State, n int) Evidence {
	for _, t := range m.steps {
		if t.To == s {
			if n--; n == 0 {
				return t.Evidence
			}
		}
	}
	return nil
}

func verifyIdentity(check checker, r *Receipt, m *machine) {
	id, query := r.Reproducible.Identity, r.Reproducible.Query
	check(!m.reached(ManifestPinned) || id != nil, "/reproducible/identity", "a manifest was pinned, none is recorded")
	if id == nil || query == nil {
		return
	}
	check(id.Label == wire.Label, "/reproducible/identity/label", "%q: nothing here gains authority", id.Label)
	check(id.Agent == query.Document.Agent, "/reproducible/identity/agent", "%q is not who was asked", id.Agent)
	for _, t := range m.steps {
		for name, want := range map[string]canon.Digest{
			evManifest: id.ManifestSHA256, evIdentity: id.IdentitySHA256, evProfile: id.ProfileSHA256,
			evRuntime: id.RuntimeSHA256, evQuery: query.SHA256,
		} {
			got, shown := t.Evidence[name]
			check(!shown || got == want, "/reproducible/transitions", "%s at %s is %s, pinned was %s", name, t.To, got, want)
		}
	}
}

func verifyStarts(check checker, r *Receipt, m *machine) {
	p := &r.Reproducible
	stopped := 0
	for _, t := range m.steps {
		if t.To == StoppedCleanly {
			stopped++
		}
	}
	check(len(p.Starts) == stopped, "/reproducible/starts", "%d are recorded, %d stopped cleanly", len(p.Starts), stopped)
	for i, s := range p.Starts {
		at := fmt.Sprintf("/reproducible/starts/%d", i)
		check(s.Number == i+1, at, "has number %d", s.Number)
		if id := p.Identity; id != nil && p.Query != nil {
			want := Start{s.Number, id.ManifestSHA256, id.IdentitySHA256, id.ProfileSHA256, id.RuntimeSHA256, p.Query.SHA256, s.AnswerSHA256, s.ProvenanceSHA256}
			check(s == want, at, "differs from what was pinned")
		}
		shown := m.evidence(StoppedCleanly, i+1)
		check(shown[evAnswer] == s.AnswerSHA256 && shown[evProvenance] == s.ProvenanceSHA256, at, "differs from the evidence of its transition")
	}
	check((p.Equal != nil) == (len(p.Starts) == 2), "/reproducible/equal", "there are %d starts to compare", len(p.Starts))
	if p.Equal != nil && len(p.Starts) == 2 {
		check(*p.Equal == compare(p.Starts[0], p.Starts[1]), "/reproducible/equal", "does not follow from the starts")
	}
}

// verifyProcesses holds the records to the machine: no process before its runtime was
// verified, each with a session of its own, no two the same, those that stopped cleanly gone by themselves.
func verifyProcesses(check checker, r *Receipt, m *machine) {
	verified := 0
	for _, t := range m.steps {
		if t.To == RuntimeVerified {
			verified++
		}
	}
	all := r.Observed.Processes
	check(len(all) <= verified, "/observed/processes", "%d processes for %d verified starts", len(all), verified)
	check(len(all) >= len(r.Reproducible.Starts), "/observed/processes", "%d processes for %d answers", len(all), len(r.Reproducible.Starts))
	for i, p := range all {
		at := fmt.Sprintf("/observed/processes/%d", i)
		check(p.Start == i+1, at, "belongs to start %d", p.Start)
		check(p.Process.PID > 0 && p.Process.StartTicks > 0 && p.Process.Session == p.Process.PID, at, "is not a process in its own session: %+v", p.Process)
		g := r.Observed.Guardian
		check(g.PID != p.Process.PID || g.StartTicks != p.Process.StartTicks, at, "is the guardian")
		check(g.PID > 0 && g.StartTicks > 0 && g.StartTicks <= p.Process.StartTicks, "/observed/guardian", "did not begin before the processes it keeps")
		for _, q := range all[:i] {
			check(p.Process != q.Process && p.Process.StartTicks >= q.Process.StartTicks, at, "is not later than, and distinct from, the one before")
		}
		if i < len(r.Reproducible.Starts) {
			check(p.Exit == (child.Exit{}) && p.Problem == "" && p.Sweep.Scans > 0 && p.Sweep.Left+p.Sweep.Killed == 0, at, "did not stop cleanly")
			check(p.StdoutBytes > 0, at, "wrote no answer")
			exit, err := exitEvidence(p)
			check(err == nil && m.evidence(StoppedCleanly, i+1)[evExit] == exit, at, "differs from the evidence of its transition")
		}
	}
}

func verifyReproduced(check checker, r *Receipt, m *machine) {
	p := &r.Reproducible
	check(m.at() == RestartReproduced, "/reproducible/transitions", "end at %s, not at a restart", m.at())
	check(p.Injected == nil, "/reproducible/injected", "drift that was injected is detected, or the run proves nothing")
	check(len(p.Starts) == 2 && len(r.Observed.Processes) == 2, "/observed/processes", "%s needs two processes that answered", T2)
	check(p.Equal != nil && p.Equal.all(), "/reproducible/equal", "the starts are not equal")
	check(p.Answer != nil, "/reproducible/answer", "missing")
	check(r.Observed.Cleanup.ProfilesRemoved == 2, "/observed/cleanup/profiles_removed", "%d", r.Observed.Cleanup.ProfilesRemoved)
	if p.Answer == nil || p.Query == nil || len(p.Starts) == 0 {
		return
	}
	answer, err := canon.DigestOf(p.Answer)
	check(err == nil && answer == p.Starts[0].AnswerSHA256, "/reproducible/answer", "has the digest %s", answer)
	prov, err := canon.DigestOf(provenance(p.Answer))
	check(err == nil && prov == p.Starts[0].ProvenanceSHA256, "/reproducible/answer", "its provenance has the digest %s", prov)
	key, problem := incoherent(p.Answer)
	check(problem == "", "/reproducible/answer"+key, "%s", problem)
	check(p.Answer.Agent == p.Identity.Agent, "/reproducible/answer/agent", "%q answers for %q", p.Answer.Agent, p.Identity.Agent)
	check(p.Answer.Label == wire.Label, "/reproducible/answer/label", "%q: nothing here gains authority", p.Answer.Label)
	check(p.Answer.QuerySHA256 == p.Query.SHA256 && p.Answer.QueryID == p.Query.Document.QueryID, "/reproducible/answer/query_sha256", "answers another query")
}

// knows reports whether a surface can drift: one that was pinned, the names at the top of its
// template, or one of the canary itself.
func (p *Reproducible) knows(surface string) bool {
	switch surface {
	case SurfaceProgram, SurfaceAnswer, SurfaceProfile, string(manifest.ProfileTemplate):
		return true
	}
	if p.Identity == nil {
		return false
	}
	_, pinned := p.Identity.Inputs[surface]
	return pinned
}

func verifyDrift(check checker, r *Receipt, m *machine) {
	p := &r.Reproducible
	drifted := m.at() == DriftDetected
	check(drifted == (p.DriftTotal > 0) && drifted == (len(p.Drift) > 0), "/reproducible/drift", "%d differences, at %s", p.DriftTotal, m.at())
	check(!drifted || p.Answer == nil, "/reproducible/answer", "drift leaves no answer")
	for i, d := range p.Drift {
		check(p.knows(d.Surface), fmt.Sprintf("/reproducible/drift/%d/surface", i), "%q is no surface of what was pinned", d.Surface)
		check(d.Expected != d.Actual || d.Expected == "", fmt.Sprintf("/reproducible/drift/%d", i), "expected and actual are the same")
		check(d.Surface != SurfaceAnswer || p.Equal != nil && !p.Equal.all(), fmt.Sprintf("/reproducible/drift/%d", i), "the answers are equal")
	}
	check(r.Observed.Cleanup.ProfilesRemoved >= len(p.Starts), "/observed/cleanup/profiles_removed", "%d, of %d that stopped cleanly", r.Observed.Cleanup.ProfilesRemoved, len(p.Starts))
	check(len(p.Drift) == min(p.DriftTotal, MaxDrift), "/reproducible/drift_total", "%d of %d are spelled out", len(p.Drift), p.DriftTotal)
	if drifted && p.DriftTotal <= MaxDrift {
		sum, err := canon.DigestOf(p.Drift)
		check(err == nil && m.evidence(DriftDetected, 1)[evDrift] == sum, "/reproducible/drift", "has the digest %s", sum)
	}
	if drifted && r.Outcome == Drifted && len(p.Drift) > 0 {
		check(r.Reason == p.Drift[0].Surface, "/reason", "the first difference is in %s", p.Drift[0].Surface)
	}
}

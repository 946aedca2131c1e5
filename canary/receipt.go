package canary

import (
	"slices"

	"selfsame.dev/selfsame/canary/child"
	"selfsame.dev/selfsame/canary/wire"
	"selfsame.dev/selfsame/internal/canon"
	"selfsame.dev/selfsame/manifest"
)

// Format is the receipt's format.
const Format = "canary-receipt.v1"

// Tiers (seed, "Capability Tier Proof").
const (
	T1 = "T1_model"
	T2 = "T2_runtime"
)

// Outcomes.
const (
	Reproduced  = "restart_reproduced" // two processes, one identity
	Drifted     = "drift_detected"     // some input, view or answer differs
	Refused     = "refused"            // the runtime, its answer or an input is not acceptable
	Interrupted = "interrupted"        // by a signal
	Failed      = "failed"             // the environment
)

// InputsRefused is the reason when it was not the runtime that was refused.
const InputsRefused = "inputs_refused"

// Runtime variants.
const (
	LocalResponder = "local_responder" // the responder of this project
	LocalProgram   = "local_program"   // a program that the caller named
)

// Receipt is what one canary run leaves (canary-receipt.v1). Two runs of the same agent
// with the same runtime have the same Reproducible part; Observed is of this run alone.
type Receipt struct {
	Format             string       `json:"format"`
	Outcome            string       `json:"outcome"`
	Reason             string       `json:"reason"` // a short code; "" when reproduced
	RequiredTier       string       `json:"required_tier"`
	Tier               string       `json:"tier"`
	GoalTierSatisfied  bool         `json:"goal_tier_satisfied"`
	Reproducible       Reproducible `json:"reproducible"`
	ReproducibleSHA256 canon.Digest `json:"reproducible_sha256"`
	Observed           Observed     `json:"observed"`
}

// Reproducible holds no time, no number of a process and no path of this machine.
type Reproducible struct {
	Identity         *Identity    `json:"identity"` // null when it was never pinned
	Query            *Asked       `json:"query"`    // likewise
	RuntimeInterface string       `json:"runtime_interface"`
	RuntimeVariant   string       `json:"runtime_variant"`
	TierBasis        string       `json:"tier_basis"`
	ClaimCeiling     Ceiling      `json:"claim_ceiling"`
	Injected         *Injection   `json:"injected"` // the drift that was made on purpose
	ExpectedChanges  []string     `json:"expected_changes"`
	Starts           []Start      `json:"starts"` // those that ended with an accepted answer
	Equal            *Equality    `json:"equal"`  // null unless there were two
	Answer           *wire.Answer `json:"answer"` // null unless reproduced
	Drift            []Drift      `json:"drift"`  // the first MaxDrift
	DriftTotal       int          `json:"drift_total"`
	Transitions      []Transition `json:"transitions"`
}

// Asked is the query, and the digest of its canonical form.
type Asked struct {
	Document wire.Query   `json:"document"`
	SHA256   canon.Digest `json:"sha256"`
}

// Identity is what was pinned.
type Identity struct {
	Agent          string                  `json:"agent"`
	ManifestSHA256 canon.Digest            `json:"manifest_sha256"`
	IdentitySHA256 canon.Digest            `json:"identity_sha256"`
	Inputs         map[string]canon.Digest `json:"inputs"` // by surface
	ProfileSHA256  canon.Digest            `json:"profile_sha256"`
	RuntimeSHA256  canon.Digest            `json:"runtime_sha256"`
	Label          string                  `json:"label"`
}

// Start is one start whose answer was accepted.
type Start struct {
	Number           int          `json:"number"`
	ManifestSHA256   canon.Digest `json:"manifest_sha256"`
	IdentitySHA256   canon.Digest `json:"identity_sha256"`
	ProfileSHA256    canon.Digest `json:"profile_sha256"`
	RuntimeSHA256    canon.Digest `json:"runtime_sha256"`
	QuerySHA256      canon.Digest `json:"query_sha256"`
	AnswerSHA256     canon.Digest `json:"answer_sha256"`
	ProvenanceSHA256 canon.Digest `json:"provenance_sha256"`
}

// Equality says which digests of the two starts are the same.
type Equality struct {
	Manifest   bool `json:"manifest"`
	Identity   bool `json:"identity"`
	Profile    bool `json:"profile"`
	Runtime    bool `json:"runtime"`
	Query      bool `json:"query"`
	Answer     bool `json:"answer"`
	Provenance bool `json:"provenance"`
}

func compare(a, b Start) Equality {
	return Equality{
		Manifest:   a.ManifestSHA256 == b.ManifestSHA256,
		Identity:   a.IdentitySHA256 == b.IdentitySHA256,
		Profile:    a.ProfileSHA256 == b.ProfileSHA256,
		Runtime:    a.RuntimeSHA256 == b.RuntimeSHA256,
		Query:      a.QuerySHA256 == b.QuerySHA256,
		Answer:     a.AnswerSHA256 == b.AnswerSHA256,
		Provenance: a.ProvenanceSHA256 == b.ProvenanceSHA256,
	}
}

func (e Equality) all() bool {
	return e == Equality{true, true, true, true, true, true, true}
}

// MaxDrift is how many differences a receipt spells out.
const MaxDrift = 100

// Drift is one difference from what was pinned.
type Drift struct {
	Surface  string `json:"surface"`
	Class    string `json:"class"` // changed, missing, unexpected, refused
	Path     string `json:"path"`
	Expected string `json:"expected"`
	Actual   string `json:"actual"`
}

// Injection is a drift made on purpose, after the profile of a start was compiled and before it is
// verified.
type Injection struct {
	Surface string `json:"surface"`
	Start   int    `json:"start"` // 1 or 2
}

// Ceiling bounds what a receipt may be used to claim.
type Ceiling struct {
	Proves   []string `json:"proves"`
	Excludes []string `json:"excludes"`
}

// excludes names what no receipt of this version reaches (seed, "State inventory and transitions").
var excludes = []string{
	"canonical_database_authority",
	"hermes_gateway_runner",
	"hosted_model_behavior",
	"live_vps_restart",
	"production_database_state",
	"t3_restart_recovery",
	"telegram_delivery",
}

// standing is what an outcome is worth: the only place where a tier is given.
func standing(outcome string) (tier, basis string, ceiling Ceiling) {
	ceiling = Ceiling{Proves: []string{}, Excludes: slices.Clone(excludes)}
	switch outcome {
	case Reproduced:
		ceiling.Proves = []string{"local_runtime_restart_from_newly_compiled_profile", "nothing_left_running_or_on_disk", "same_answer_and_provenance_from_same_identity_inputs"}
		return T2, "local_runtime_behavior_with_restart", ceiling
	case Drifted:
		ceiling.Proves = []string{"drift_was_named_and_stopped_the_canary"}
		return T1, "negative_component_without_restart", ceiling
	}
	return T1, "no_behavior_proven", ceiling
}

// Observed is what this run saw.
type Observed struct {
	StartedAt  string             `json:"started_at"` // RFC 3339, UTC
	FinishedAt string             `json:"finished_at"`
	Origins    []manifest.Origin  `json:"origins"` // of the sources; provenance, not identity
	Guardian   child.Process      `json:"guardian"`
	Processes  []ProcessRecord    `json:"processes"` // every one that was started
	Cleanup    Cleanup            `json:"cleanup"`
	Millis     map[string]float64 `json:"millis"` // the parts of the run
}

// ProcessRecord is one child.
type ProcessRecord struct {
	Start        int           `json:"start"`
	Process      child.Process `json:"process"`
	Exit         child.Exit    `json:"exit"`
	Problem      child.Problem `json:"problem"`
	StdoutBytes  int           `json:"stdout_bytes"`
	StdoutSHA256 canon.Digest  `json:"stdout_sha256"`
	StderrBytes  int           `json:"stderr_bytes"`
	StderrSHA256 canon.Digest  `json:"stderr_sha256"`
	Sweep        child.Sweep   `json:"sweep"` // the search for what it left
}

// Cleanup is the proof that nothing is left, taken after the guardian was closed.
type Cleanup struct {
	ProfilesRemoved int           `json:"profiles_removed"`
	FolderRemoved   bool          `json:"folder_removed"`
	Absence         child.Absence `json:"absence"`
}

func (c Cleanup) complete() bool { return c.FolderRemoved && c.Absence.Clean() }

// seal fills in everything that follows from the rest.
func (r *Receipt) seal() error {
	r.Format, r.RequiredTier = Format, T2
	r.Tier, r.Reproducible.TierBasis, r.Reproducible.ClaimCeiling = standing(r.Outcome)
	r.GoalTierSatisfied = r.Tier == r.RequiredTier
	var err error
	r.ReproducibleSHA256, err = canon.DigestOf(r.Reproducible)
	return err
}

// Encode returns the canonical bytes of the receipt.
func (r *Receipt) Encode() ([]byte, error) { return canon.Marshal(r) }

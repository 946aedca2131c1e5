package canary

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"selfsame.dev/selfsame/internal/canon"
)

// State is a state of the canary (seed, "State inventory and transitions").
type State string

// The states.
const (
	InputsUnverified  State = "inputs_unverified"
	ManifestPinned    State = "manifest_pinned"
	ProfileCompiled   State = "profile_compiled"
	RuntimeVerified   State = "runtime_verified"
	StoppedCleanly    State = "stopped_cleanly"
	RestartReproduced State = "restart_reproduced"
	DriftDetected     State = "drift_detected"
)

// Names of evidence.
const (
	evManifest   = "manifest_sha256"
	evIdentity   = "identity_sha256"
	evProfile    = "profile_sha256"
	evRuntime    = "runtime_sha256"
	evQuery      = "query_sha256"
	evAnswer     = "answer_sha256"
	evProvenance = "provenance_sha256"
	evExit       = "exit_sha256"
	evDrift      = "drift_sha256"
)

// evidenceFor lists exactly what must be shown to enter a state.
var evidenceFor = map[State][]string{
	ManifestPinned:    {evIdentity, evManifest, evRuntime},
	ProfileCompiled:   {evManifest},
	RuntimeVerified:   {evManifest, evProfile, evRuntime},
	StoppedCleanly:    {evAnswer, evExit, evProvenance},
	RestartReproduced: {evAnswer, evIdentity, evManifest, evProvenance, evQuery, evRuntime},
	DriftDetected:     {evDrift},
}

// Evidence maps the names of what was shown to digests.
type Evidence map[string]canon.Digest

// Transition is one step, with what was shown for it.
type Transition struct {
	From     State    `json:"from"`
	To       State    `json:"to"`
	Start    int      `json:"start"` // the start it belongs to: 1, 2, or 0 for none
	Evidence Evidence `json:"evidence"`
}

// machine holds the state; move is the only way to change it. Its zero value is at
// inputs_unverified.
type machine struct {
	steps []Transition
	start int // profiles compiled so far
}

func (m *machine) at() State {
	if len(m.steps) == 0 {
		return InputsUnverified
	}
	return m.steps[len(m.steps)-1].To
}

// legal reports whether the next state may be to.
func (m *machine) legal(to State) bool {
	switch m.at() {
	case InputsUnverified:
		return to == ManifestPinned
	case ManifestPinned:
		return to == ProfileCompiled || to == DriftDetected
	case ProfileCompiled:
		return to == RuntimeVerified || to == DriftDetected
	case RuntimeVerified:
		return to == StoppedCleanly || to == DriftDetected
	case StoppedCleanly:
		switch to {
		case ProfileCompiled:
			return m.start == 1
		case RestartReproduced:
			return m.start == 2
		}
		return to == DriftDetected
	}
	return false // restart_reproduced and drift_detected are final
}

// move enters a state, or refuses and leaves everything as it was.
func (m *machine) move(to State, shown Evidence) error {
	if !m.legal(to) {
		return fmt.Errorf("illegal transition from %s (start %d) to %s", m.at(), m.start, to)
	}
	if names := slices.Sorted(maps.Keys(shown)); !slices.Equal(names, evidenceFor[to]) {
		return fmt.Errorf("%s needs the evidence %s, not %s", to, strings.Join(evidenceFor[to], ", "), strings.Join(names, ", "))
	}
	for name, digest := range shown {
		if digest.IsZero() {
			return fmt.Errorf("%s: the evidence %s is empty", to, name)
		}
	}
	start := m.start
	if to == ProfileCompiled {
		start++
	}
	m.steps = append(m.steps, Transition{From: m.at(), To: to, Start: start, Evidence: shown})
	m.start = start
	return nil
}

// replay runs transitions through a new machine.
func replay(steps []Transition) (*machine, error) {
	m := &machine{}
	for i, step := range steps {
		if step.From != m.at() {
			return nil, fmt.Errorf("transition %d starts at %s, the state is %s", i, step.From, m.at())
		}
		if err := m.move(step.To, step.Evidence); err != nil {
			return nil, fmt.Errorf("transition %d: %w", i, err)
		}
		if m.start != step.Start {
			return nil, fmt.Errorf("transition %d belongs to start %d, not %d", i, m.start, step.Start)
		}
	}
	return m, nil
}

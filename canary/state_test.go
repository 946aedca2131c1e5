package canary

import (
	"testing"

	"pgregory.net/rapid"

	"selfsame.dev/selfsame/internal/canon"
)

var allStates = []State{InputsUnverified, ManifestPinned, ProfileCompiled, RuntimeVerified, StoppedCleanly, RestartReproduced, DriftDetected}

func shown(s State) Evidence {
	e := Evidence{}
	for _, name := range evidenceFor[s] {
		e[name] = canon.Sum([]byte(name))
	}
	return e
}

// The seed's table, written out: which states may follow, by state and number of starts.
func TestTransitions(t *testing.T) {
	type place struct {
		at    State
		start int
	}
	next := map[place][]State{
		{InputsUnverified, 0}:  {ManifestPinned},
		{ManifestPinned, 0}:    {ProfileCompiled, DriftDetected},
		{ProfileCompiled, 1}:   {RuntimeVerified, DriftDetected},
		{RuntimeVerified, 1}:   {StoppedCleanly, DriftDetected},
		{StoppedCleanly, 1}:    {ProfileCompiled, DriftDetected},
		{ProfileCompiled, 2}:   {RuntimeVerified, DriftDetected},
		{RuntimeVerified, 2}:   {StoppedCleanly, DriftDetected},
		{StoppedCleanly, 2}:    {RestartReproduced, DriftDetected},
		{RestartReproduced, 2}: {}, {DriftDetected, 0}: {}, {DriftDetected, 1}: {}, {DriftDetected, 2}: {},
	}
	seen := map[place]bool{}
	rapid.Check(t, func(t *rapid.T) {
		m := &machine{}
		for range 12 {
			here := place{m.at(), m.start}
			seen[here] = true
			may, known := next[here]
			if !known {
				t.Fatalf("unknown place %v", here)
			}
			to := rapid.SampledFrom(allStates).Draw(t, "to")
			if len(may) > 0 && rapid.Bool().Draw(t, "legal") {
				to = may[0]
			}
			legal := false
			for _, s := range may {
				legal = legal || s == to
			}
			steps := len(m.steps)
			if err := m.move(to, shown(to)); (err == nil) != legal {
				t.Fatalf("%v to %s: %v", here, to, err)
			}
			if !legal && (m.at() != here.at || m.start != here.start || len(m.steps) != steps) {
				t.Fatalf("a refused move to %s changed the state", to)
			}
		}
		if again, err := replay(m.steps); err != nil || again.at() != m.at() || again.start != m.start {
			t.Fatalf("replay: %v", err)
		}
	})
	for here := range next {
		if !seen[here] {
			t.Errorf("control: %v was never reached", here)
		}
	}
}

func TestEvidenceIsRequired(t *testing.T) {
	for name, spoil := range map[string]func(Evidence){
		"missing": func(e Evidence) { delete(e, evIdentity) },
		"empty":   func(e Evidence) { e[evIdentity] = canon.Digest{} },
		"more":    func(e Evidence) { e["charm"] = canon.Sum(nil) },
	} {
		m, e := &machine{}, shown(ManifestPinned)
		spoil(e)
		if err := m.move(ManifestPinned, e); err == nil || m.at() != InputsUnverified {
			t.Errorf("%s evidence: %v, at %s", name, err, m.at())
		}
	}
}

func TestReplayRefuses(t *testing.T) {
	m := &machine{}
	for _, s := range []State{ManifestPinned, ProfileCompiled, RuntimeVerified} {
		if err := m.move(s, shown(s)); err != nil {
			t.Fatal(err)
		}
	}
	for name, spoil := range map[string]func([]Transition){
		"from":  func(s []Transition) { s[1].From = RuntimeVerified },
		"start": func(s []Transition) { s[2].Start = 2 },
		"order": func(s []Transition) { s[0], s[1] = s[1], s[0] },
	} {
		steps := append([]Transition{}, m.steps...)
		spoil(steps)
		if _, err := replay(steps); err == nil {
			t.Errorf("%s: replayed", name)
		}
	}
}

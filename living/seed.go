package living

import (
	"github.com/go-json-experiment/json/jsontext"
	"selfsame.dev/selfsame/internal/canon"
)

// SeedFormat names what a turn starts from.
const SeedFormat = "living-seed.v1"

// TurnSeed is the frozen baseline with memory laid beside it. The baseline stands
// there byte for byte; memory adds context and touches nothing.
type TurnSeed struct {
	Baseline       jsontext.Value  `json:"baseline"`
	BaselineSHA256 canon.Digest    `json:"baseline_sha256"`
	Contradictions []Contradiction `json:"contradictions"`
	Format         string          `json:"format"`
	Memory         *View           `json:"memory"`
	Owner          string          `json:"owner"`
	Turn           int64           `json:"turn"`
}

// Contradiction is a remembered statement that the scope speaks against. It is shown
// beside the line that stands, and is no part of memory.
type Contradiction struct {
	Axis      string    `json:"axis"`
	Scope     Scope     `json:"scope"`
	Statement Statement `json:"statement"`
}

// Seed overlays the view of doc on the baseline for one turn and returns the canonical
// bytes. The baseline's digest is checked before, and again on the copy in the seed;
// another baseline is a [*BaselineDriftError].
func Seed(doc *Document, base *Baseline, turn int64) ([]byte, error) {
	if err := pinned(doc, base); err != nil {
		return nil, err
	}
	view, err := Compose(doc)
	if err != nil {
		return nil, err
	}
	seed := TurnSeed{Baseline: base.raw, BaselineSHA256: base.digest, Format: SeedFormat, Memory: view, Owner: doc.owner, Turn: turn}
	for _, name := range sortedKeys(view.Axes) {
		va := view.Axes[name]
		kept := []Statement{}
		for _, s := range va.Statements {
			if scope := base.contradicts(name, string(s.Value)); scope != nil {
				seed.Contradictions = append(seed.Contradictions, Contradiction{Axis: name, Scope: *scope, Statement: s})
			} else {
				kept = append(kept, s)
			}
		}
		va.Statements = kept
		view.Axes[name] = va
	}
	raw, err := canon.Marshal(seed)
	if err != nil {
		return nil, err
	}
	var back TurnSeed
	if err := canon.Decode(raw, &back); err != nil {
		return nil, err
	}
	if actual := canon.Sum(back.Baseline); actual != doc.baseline {
		return nil, &BaselineDriftError{Expected: doc.baseline, Actual: actual}
	}
	return raw, nil
}

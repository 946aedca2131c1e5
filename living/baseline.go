package living

import (
	"fmt"

	"github.com/go-json-experiment/json/jsontext"
	"selfsame.dev/selfsame/internal/canon"
)

// BaselineFormat names the form of a baseline.
const BaselineFormat = "living-baseline.v1"

// Rule says what a baseline fixes about a value on an axis.
type Rule string

// The two rules. On a scalar axis, holds excludes every other value; on a set or a
// list it states a member and excludes none.
const (
	Holds    Rule = "holds"
	Excludes Rule = "excludes"
)

// Scope is one line of frozen scope.
type Scope struct {
	Axis  string         `json:"axis"`
	Rule  Rule           `json:"rule"`
	Value jsontext.Value `json:"value"`
}

// Baseline is the frozen scope that memory may add to and never rewrite: whose it is,
// which axes and limits the profile has, and what is fixed.
type Baseline struct {
	raw    []byte // canonical
	digest canon.Digest
	owner  string
	axes   map[string]Axis
	limits Limits
	scope  []Scope // values normalised
}

// DecodeBaseline reads a baseline. Its digest is that of its canonical form, so layout
// is not identity. Errors are [*canon.InputError].
func DecodeBaseline(raw []byte) (*Baseline, error) {
	var wire struct {
		Axes   map[string]Axis `json:"axes"`
		Format string          `json:"format"`
		Limits Limits          `json:"limits"`
		Owner  string          `json:"owner"`
		Scope  []Scope         `json:"scope"`
	}
	if err := canon.Decode(raw, &wire); err != nil {
		return nil, err
	}
	if err := checkFormat(wire.Format, BaselineFormat); err != nil {
		return nil, err
	}
	if err := CheckOwner(wire.Owner); err != nil {
		return nil, err
	}
	if err := checkShape(wire.Owner, wire.Axes, wire.Limits); err != nil {
		return nil, err
	}
	held := map[string]string{}
	stated := map[canon.Digest]Rule{}
	for i, s := range wire.Scope {
		key := fmt.Sprintf("/scope/%d", i)
		a, known := wire.Axes[s.Axis]
		if !known {
			return nil, refuse(key+"/axis", fmt.Sprintf("axis %q is not declared", s.Axis), "declare it under axes")
		}
		if s.Rule != Holds && s.Rule != Excludes {
			return nil, refuse(key+"/rule", fmt.Sprintf("%q is no rule", s.Rule), "write holds or excludes")
		}
		value, err := NormalizeValue(s.Value)
		if err != nil {
			return nil, under(key+"/value", err)
		}
		wire.Scope[i].Value = jsontext.Value(value)
		id := identity(s.Axis, value)
		if _, twice := stated[id]; twice {
			return nil, refuse(key, "the scope states this value twice", "keep one rule for it")
		}
		stated[id] = s.Rule
		if s.Rule == Holds && a.Kind == ScalarOverwrite {
			if other, twice := held[s.Axis]; twice {
				return nil, refuse(key+"/value", fmt.Sprintf("the scalar %s already holds %s", s.Axis, excerpt(other)), "keep one of the two")
			}
			held[s.Axis] = value
		}
	}
	canonical, err := canon.Canonicalize(raw)
	if err != nil {
		return nil, err
	}
	return &Baseline{raw: canonical, digest: canon.Sum(canonical), owner: wire.Owner, axes: wire.Axes, limits: wire.Limits, scope: wire.Scope}, nil
}

// Owner returns whose baseline it is.
func (b *Baseline) Owner() string { return b.owner }

// Digest is the SHA-256 of the canonical form.
func (b *Baseline) Digest() canon.Digest { return b.digest }

// contradicts returns the line of scope that a value would rewrite, or nil.
func (b *Baseline) contradicts(axis, value string) *Scope {
	for i := range b.scope {
		s := &b.scope[i]
		if s.Axis != axis {
			continue
		}
		same := string(s.Value) == value
		if s.Rule == Excludes && same || s.Rule == Holds && !same && b.axes[axis].Kind == ScalarOverwrite {
			return s
		}
	}
	return nil
}

// BaselineDriftError says that a baseline is not the one the profile is pinned to.
type BaselineDriftError struct {
	Expected, Actual canon.Digest
}

func (e *BaselineDriftError) Error() string {
	return fmt.Sprintf("baseline: expected %s, actual %s", e.Expected, e.Actual)
}

// Hint says what to do.
func (e *BaselineDriftError) Hint() string {
	return "use the pinned baseline, or record the change with: selfsame living rebase"
}

package manifest

import (
	"fmt"

	"selfsame.dev/selfsame/internal/canon"
	"selfsame.dev/selfsame/internal/tree"
	"selfsame.dev/selfsame/schemas"
)

// Label is what every identity of this schema carries: its rows are synthetic and cannot
// become canonical by what a caller says about them (law I7).
const Label = "synthetic_noncanonical_fixture"

const constitutionFormat = "identity-constitution.v1"

// ConstitutionInputs binds the static rules: the committed path, the digest of the bytes, and
// the digest of the meaning (the RFC 8785 form of the document).
type ConstitutionInputs struct {
	Path     string               `json:"path"`
	Size     int64                `json:"size"`
	SHA256   canon.Digest         `json:"sha256"`
	Semantic canon.Digest         `json:"semantic_sha256"`
	Document ConstitutionDocument `json:"document"`
}

// ConstitutionDocument is the format identity-constitution.v1.
type ConstitutionDocument struct {
	Format string `json:"format"`
	Agent  string `json:"agent"`
	Label  string `json:"label"`
	Title  string `json:"title"`
	Rules  []Rule `json:"rules"`
}

// Rule is one constitutional rule; rank 1 goes before rank 2.
type Rule struct {
	ID   string `json:"id"`
	Rank int    `json:"rank"`
	Text string `json:"text"`
}

func readConstitution(d Document) (ConstitutionInputs, error) {
	c := ConstitutionInputs{Path: d.Path, Size: int64(len(d.Data)), SHA256: canon.Sum(d.Data)}
	if err := d.check(); err != nil {
		return c, err
	}
	if err := schemas.Decode(d.Path, constitutionFormat, d.Data, &c.Document); err != nil {
		return c, err
	}
	var err error
	if c.Semantic, err = canon.DigestOf(c.Document); err != nil {
		return c, canon.InFile(d.Path, err)
	}
	return c, c.check()
}

// check recomputes the semantic digest and the order of the rules.
func (c ConstitutionInputs) check() error {
	if err := tree.CheckName(c.Path); err != nil {
		return canon.InFile(string(Constitution), err)
	}
	ids := map[string]bool{}
	for i, r := range c.Document.Rules {
		if r.Rank != i+1 || ids[r.ID] {
			return &canon.InputError{File: c.Path, Key: fmt.Sprintf("/rules/%d", i), Problem: "rules are not listed once each, by rank 1, 2, 3 and so on", Fix: "order the rules by rank and give each an id of its own"}
		}
		ids[r.ID] = true
	}
	return restated(c.Path, "semantic_sha256", c.Semantic, c.Document)
}

func (d Document) check() error {
	if d.Problem != nil {
		return d.Problem
	}
	return canon.InFile(d.Path, tree.CheckName(d.Path))
}

// restated refuses a stated digest that is not that of the RFC 8785 form of v.
func restated(file, key string, stated canon.Digest, v any) error {
	actual, err := canon.DigestOf(v)
	if err != nil {
		return canon.InFile(file, err)
	}
	if actual != stated {
		return &canon.InputError{File: file, Key: key, Problem: fmt.Sprintf("states %s, the content gives %s", stated, actual), Fix: "take the document from its exporter again"}
	}
	return nil
}

package manifest

import (
	"bytes"
	"slices"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"selfsame.dev/selfsame/internal/canon"
	"selfsame.dev/selfsame/internal/tree"
	"selfsame.dev/selfsame/schemas"
)

// accept returns the manifest in data if it is without fault, else nil: then [decode] says what is wrong. The
// outcome is the same, in a third of the time for a manifest of many files:
//
//   - The bytes are those that the decoded manifest is encoded to. So they are canonical, no name is unknown,
//     missing or twice, and the canonical forms of its parts, whose digests it states, are in them.
//   - The schema sees one file of each tree. What it says of a file, package tree checks more strictly, of every one.
func accept(data []byte) *Manifest {
	m := new(Manifest)
	if canon.Decode(data, m) != nil {
		return nil
	}
	if again, err := m.Encode(); err != nil || !bytes.Equal(again, data) {
		return nil
	}
	short, err := m.short().Encode()
	if err != nil || schemas.Validate("", Format, short) != nil || m.Identity.Inputs.check() != nil {
		return nil
	}
	var outer struct {
		Identity jsontext.Value `json:"identity"`
	}
	var inner struct {
		Inputs jsontext.Value `json:"inputs"`
	}
	if json.Unmarshal(data, &outer) != nil || json.Unmarshal(outer.Identity, &inner) != nil {
		return nil
	}
	generated, err := views(m.Identity)
	if err != nil || m.Identity.InputsSHA256 != canon.Sum(inner.Inputs) || m.IdentitySHA256 != canon.Sum(outer.Identity) ||
		!slices.Equal(m.Identity.Views, generated) || !slices.Equal(m.Surfaces, Inventory()) {
		return nil
	}
	return m
}

// short is m with one file of each tree.
func (m *Manifest) short() *Manifest {
	out := *m
	in := &out.Identity.Inputs
	for _, files := range []*[]tree.Entry{
		&in.Behavior.HermesCode.Tree.Files, &in.Behavior.DeploymentCode.Tree.Files, &in.Behavior.Skills.Files,
		&in.Behavior.Plugins.Files, &in.Behavior.DatabaseTools.Files, &in.Rows.Evidence.Files,
	} {
		*files = (*files)[:min(1, len(*files))]
	}
	return &out
}

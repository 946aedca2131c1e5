package manifest

import (
	"bytes"
	"encoding/hex"
	"slices"
	"strconv"

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
	if !bytes.Equal(m.encodeTrees(len(data)), data) {
		return nil
	}
	short, err := m.short(1).Encode()
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

// short is m with at most n files of each tree.
func (m *Manifest) short(n int) *Manifest {
	out := *m
	for _, files := range out.Identity.Inputs.trees() {
		*files = (*files)[:min(n, len(*files))]
	}
	return &out
}

// trees are the files of every tree, in the order of their canonical form.
func (in *Inputs) trees() []*[]tree.Entry {
	b := &in.Behavior
	return []*[]tree.Entry{
		&b.DatabaseTools.Files, &b.DeploymentCode.Tree.Files, &b.HermesCode.Tree.Files, &b.Plugins.Files, &b.Skills.Files, &in.Rows.Evidence.Files,
	}
}

// encodeTrees is [Manifest.Encode] with the files of the trees, most of the bytes, written in their order at
// once. It is nil where it cannot tell their places from others.
func (m *Manifest) encodeTrees(size int) []byte {
	empty, err := m.short(0).Encode()
	if err != nil {
		return nil
	}
	// Quotes in a string are escaped, so this is a name and no text.
	parts := bytes.Split(empty, []byte(`"files":[]`))
	trees := m.Identity.Inputs.trees()
	if len(parts) != len(trees)+1 {
		return nil
	}
	out := append(make([]byte, 0, size), parts[0]...)
	for i, files := range trees {
		out = append(out, `"files":[`...)
		for j, e := range *files {
			if j > 0 {
				out = append(out, ',')
			}
			out = append(out, `{"path":`...)
			if out, err = jsontext.AppendQuote(out, e.Path); err != nil {
				return nil
			}
			out = append(out, `,"sha256":"`...)
			out = hex.AppendEncode(out, e.Digest[:])
			out = append(out, `","size":`...)
			out = strconv.AppendInt(out, e.Size, 10)
			out = append(out, '}')
		}
		out = append(append(out, ']'), parts[i+1]...)
	}
	return out
}

package compare

import (
	"cmp"
	"slices"
	"testing"

	"selfsame.dev/selfsame/internal/canon"
	"selfsame.dev/selfsame/internal/tree"
	"selfsame.dev/selfsame/manifest"
)

// reseal makes a manifest that was edited consistent again, and returns its bytes.
func reseal(tb testing.TB, m *manifest.Manifest) []byte {
	tb.Helper()
	in := &m.Identity.Inputs
	b := &in.Behavior
	var err error
	for _, t := range []*manifest.Tree{&b.HermesCode.Tree, &b.DeploymentCode.Tree, &b.Skills, &b.Plugins, &b.DatabaseTools, &in.Rows.Evidence} {
		slices.SortFunc(t.Files, func(a, b tree.Entry) int { return cmp.Compare(a.Path, b.Path) })
		if t.Summary, err = tree.Summarize(t.Files); err != nil {
			tb.Fatal(err)
		}
	}
	sum := func(to *canon.Digest, v any) {
		if *to, err = canon.DigestOf(v); err != nil {
			tb.Fatal(err)
		}
	}
	sum(&b.RuntimeConfig.SHA256, b.RuntimeConfig.Values)
	sum(&b.Permissions.SHA256, b.Permissions.Values)
	sum(&in.Constitution.Semantic, in.Constitution.Document)
	sum(&m.Identity.InputsSHA256, *in)
	for i := range m.Identity.Views {
		v := &m.Identity.Views[i]
		view := m.Identity.IdentityView
		if v.Path == manifest.SoulFile {
			view = m.Identity.Soul
		}
		data, err := view()
		if err != nil {
			tb.Fatal(err)
		}
		v.Size, v.SHA256 = int64(len(data)), canon.Sum(data)
	}
	sum(&m.IdentitySHA256, m.Identity)
	data, err := m.Encode()
	if err != nil {
		tb.Fatal(err)
	}
	return data
}

package manifest

import (
	"fmt"
	"strings"
)

// Explain gives a readable account of every surface: its authority, its binding, and
// what is pinned.
func Explain(m *Manifest) string {
	in := m.Identity.Inputs
	var b strings.Builder
	fmt.Fprintf(&b, "agent %s, %s\nidentity_sha256 %s\n", in.Agent, in.Label, m.IdentitySHA256)
	if sum, err := m.SHA256(); err == nil {
		fmt.Fprintf(&b, "manifest_sha256 %s\n", sum)
	}
	pinned := map[Surface][]string{
		RuntimeConfig:  {fmt.Sprintf("%d settings, sha256 %s", len(in.Behavior.RuntimeConfig.Values), in.Behavior.RuntimeConfig.SHA256)},
		HermesCode:     {summary(in.Behavior.HermesCode.Tree), selection(in.Behavior.HermesCode)},
		DeploymentCode: {summary(in.Behavior.DeploymentCode.Tree), selection(in.Behavior.DeploymentCode)},
		RuntimeABI:     in.Behavior.RuntimeABI.lines(),
		Skills:         {summary(in.Behavior.Skills)},
		Plugins:        {summary(in.Behavior.Plugins)},
		DatabaseTools:  {summary(in.Behavior.DatabaseTools)},
		Permissions: {fmt.Sprintf("policy %s, sha256 %s", in.Behavior.Permissions.Policy, in.Behavior.Permissions.SHA256),
			"commands: " + strings.Join(in.Behavior.Permissions.DatabaseCommands, ", ")},
		Constitution: {fmt.Sprintf("%s, %d rules, sha256 %s, semantic %s", in.Constitution.Path, len(in.Constitution.Document.Rules),
			in.Constitution.SHA256, in.Constitution.Semantic)},
		DatabaseSnapshot: {fmt.Sprintf("%s as %s, system %s", in.Snapshot.Document.Database.Name, in.Snapshot.Document.Database.User, in.Snapshot.Document.Database.SystemIdentifier),
			fmt.Sprintf("%s, %d rows, sha256 %s", in.Snapshot.Path, len(in.Snapshot.Document.Rows), in.Snapshot.SHA256)},
		IdentityRows: in.Rows.lines(),
	}
	for _, v := range m.Identity.Views {
		pinned[CompiledViews] = append(pinned[CompiledViews], fmt.Sprintf("%s: %s", v.Path, content(v.Size, v.SHA256)))
	}
	for _, d := range m.Surfaces {
		state := "not identity"
		if d.Pinned {
			state = "pinned"
		}
		fmt.Fprintf(&b, "\n%s: %s, %s, %s\n  %s\n", d.Surface, state, d.Authority, d.Binding, d.Note)
		for _, line := range pinned[d.Surface] {
			fmt.Fprintf(&b, "  %s\n", line)
		}
	}
	return b.String()
}

func summary(t Tree) string {
	return fmt.Sprintf("%d files, %d bytes, sha256 %s", t.FileCount, t.TotalBytes, t.Digest)
}

func selection(c CodeTree) string {
	return fmt.Sprintf("include %s; exclude %s", strings.Join(c.Selection.Include, " "), strings.Join(c.Selection.Exclude, " "))
}

func (a ABI) lines() []string {
	var out []string
	for _, i := range a.Interpreters {
		out = append(out, fmt.Sprintf("%s: %s %s (%s)", i.Root, i.Implementation, i.Version, i.ABITag))
		for _, p := range i.Packages {
			out = append(out, fmt.Sprintf("  %s %s", p.Name, p.Version))
		}
	}
	for _, p := range a.Programs {
		out = append(out, fmt.Sprintf("%s: %s, %s, %d modules", p.Root, p.Path, p.GoVersion, len(p.Modules)))
	}
	return out
}

func (in RowInputs) lines() []string {
	out := []string{fmt.Sprintf("%s, %d rows, sha256 %s", in.Path, len(in.Document.Rows), in.SHA256)}
	for _, r := range in.Document.Rows {
		out = append(out, fmt.Sprintf("  rank %d, %s: %s/%s, %d evidence files, %s", r.Rank, r.Kind, r.Table, r.Row, len(r.Evidence), r.SourceMode))
	}
	return out
}

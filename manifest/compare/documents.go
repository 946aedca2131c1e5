package compare

import (
	"maps"
	"slices"

	"selfsame.dev/selfsame/internal/canon"
	"selfsame.dev/selfsame/internal/tree"
	"selfsame.dev/selfsame/manifest"
)

// documents adds what differs between two documents of one format, whose bytes differ as files says. file is
// where they are in their folders.
func (c *collector) documents(file string, a, b decoded, files tree.Difference) (err error) {
	before := c.total
	switch {
	case a.manifest != nil:
		c.manifests(file, a.manifest, b.manifest)
	case a.behavior != nil:
		c.behaviors(file, a.behavior, b.behavior)
		err = c.origins(file, a.behavior.Operational.Origins, b.behavior.Operational.Origins)
	default:
		c.value(file, Binding, "identity_sha256", a.provenance.IdentitySHA256.String(), b.provenance.IdentitySHA256.String())
		c.value(file, Binding, "manifest_sha256", a.provenance.ManifestSHA256.String(), b.provenance.ManifestSHA256.String())
		err = c.origins(file, a.provenance.Origins, b.provenance.Origins)
	}
	if c.total == before { // other bytes are never called equal
		c.add(file, manifest.FileDifference(Output, files))
	}
	return err
}

func (c *collector) manifests(file string, a, b *manifest.Manifest) {
	var views bool
	for _, d := range manifest.Compare(a, b) {
		views = views || d.Surface == manifest.CompiledViews
		c.add(file, d)
	}
	if views {
		return
	}
	for _, d := range tree.Diff(viewFiles(a), viewFiles(b)) { // they follow the inputs, and Compare leaves them out
		c.add(file, manifest.FileDifference(manifest.CompiledViews, d))
	}
}

func viewFiles(m *manifest.Manifest) []tree.Entry {
	var out []tree.Entry
	for _, v := range m.Identity.Views {
		out = append(out, tree.Entry{Path: v.Path, Size: v.Size, Digest: v.SHA256})
	}
	return out
}

func (c *collector) behaviors(file string, a, b *manifest.Behavior) {
	of := func(b *manifest.Behavior) *manifest.Manifest {
		return &manifest.Manifest{Identity: manifest.Identity{Inputs: manifest.Inputs{Behavior: b.Inputs}}}
	}
	for _, d := range manifest.Compare(of(a), of(b)) {
		c.add(file, d)
	}
	left, right := a.Operational, b.Operational
	at := func(keys []string) []string {
		out := make([]string, len(keys))
		for i, key := range keys {
			out[i] = manifest.ConfigFile + "#" + key
		}
		return out
	}
	c.presence(Credentials, file, at(left.Config.OmittedCredentials), at(right.Config.OmittedCredentials))
	c.presence(manifest.ProfileTemplate, file, at(left.Config.UnknownKeys), at(right.Config.UnknownKeys))
	bySurface := [2]map[manifest.Surface][]string{{}, {}}
	for i, names := range [][]manifest.ExcludedName{left.Excluded, right.Excluded} {
		for _, n := range names {
			surface := ofName(n.Name)
			if surface == "" { // a view of the template, which is generated again
				surface = manifest.ProfileTemplate
			}
			bySurface[i][surface] = append(bySurface[i][surface], n.Name)
		}
	}
	all := maps.Clone(bySurface[0])
	maps.Copy(all, bySurface[1])
	for _, surface := range slices.Sorted(maps.Keys(all)) {
		c.presence(surface, file, bySurface[0][surface], bySurface[1][surface])
	}
	var none manifest.Observation
	o, p := left.Observation, right.Observation
	if o == nil {
		o = &none
	}
	if p == nil {
		p = &none
	}
	c.value(file, Observation, "key_id", o.KeyID, p.KeyID)
	if o.KeyID == p.KeyID {
		c.value(file, Observation, "value", o.Value.String(), p.Value.String())
	}
}

// presence adds names that only one side has; what they hold is not looked at.
func (c *collector) presence(surface manifest.Surface, file string, a, b []string) {
	const present = "present"
	have := map[string][2]string{}
	for _, name := range a {
		have[name] = [2]string{present, have[name][1]}
	}
	for _, name := range b {
		have[name] = [2]string{have[name][0], present}
	}
	for _, name := range slices.Sorted(maps.Keys(have)) {
		c.value(file, surface, name, have[name][0], have[name][1])
	}
}

// value adds a value that differs; "" is none.
func (c *collector) value(file string, surface manifest.Surface, path, a, b string) {
	d := manifest.Difference{Surface: surface, Class: manifest.Changed, Path: path, Expected: a, Actual: b}
	switch {
	case a == b:
		return
	case b == "":
		d.Class = manifest.Missing
	case a == "":
		d.Class = manifest.Unexpected
	}
	c.add(file, d)
}

// origins compares where roots came from, one line a root.
func (c *collector) origins(file string, a, b []manifest.Origin) error {
	byRoot := [2]map[string]string{{}, {}}
	for i, list := range [][]manifest.Origin{a, b} {
		for _, o := range list {
			text, err := canon.Marshal(o)
			if err != nil {
				return err
			}
			if byRoot[i][o.Root] != "" {
				byRoot[i][o.Root] += ","
			}
			byRoot[i][o.Root] += string(text)
		}
	}
	roots := maps.Clone(byRoot[0])
	maps.Copy(roots, byRoot[1])
	for _, root := range slices.Sorted(maps.Keys(roots)) {
		c.value(file, GitProvenance, root, byRoot[0][root], byRoot[1][root])
	}
	return nil
}

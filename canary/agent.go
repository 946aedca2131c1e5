package canary

import (
	"context"
	"errors"
	"fmt"

	"selfsame.dev/selfsame/internal/canon"
	"selfsame.dev/selfsame/manifest"
	"selfsame.dev/selfsame/profile"
)

// Sourced is an [Agent] whose manifest is built from its sources, or given.
type Sourced struct {
	load     func() (manifest.Sources, error)
	given    *manifest.Manifest
	tampered []manifest.Surface

	manifest *manifest.Manifest
	files    []profile.File // of its profile
	template manifest.Template
	verified *manifest.Sources // read before, and no different from the manifest
}

// NewSourced returns the agent of the sources that load reads, anew at every call.
func NewSourced(load func() (manifest.Sources, error)) *Sourced { return &Sourced{load: load} }

// NewPinned returns the agent of the sources that load reads, held against a manifest that was
// pinned before: what differs from it is drift.
func NewPinned(m *manifest.Manifest, load func() (manifest.Sources, error)) *Sourced {
	return &Sourced{load: load, given: m}
}

func (a *Sourced) sources() (manifest.Sources, error) {
	s, err := a.load()
	for _, surface := range a.tampered {
		if err == nil {
			s, err = tamper(s, surface)
		}
	}
	return s, err
}

// Pin implements [Agent].
func (a *Sourced) Pin(context.Context) (*Pinned, error) {
	s, err := a.sources()
	if err != nil {
		return nil, err
	}
	m := a.given
	if m == nil {
		if m, err = manifest.Build(s); err != nil {
			return nil, err
		}
		a.verified = &s
	}
	a.manifest, a.template = m, s.Template

	p := &Pinned{}
	p.Agent, p.Label, p.IdentitySHA256 = m.Identity.Inputs.Agent, m.Identity.Inputs.Label, m.IdentitySHA256
	if err := errors.Join(together(
		func() (err error) { a.files, err = profile.Files(m); return err },
		func() (err error) { p.ManifestSHA256, err = m.SHA256(); return err },
		func() (err error) { p.Inputs, err = inputs(m); return err },
	)...); err != nil {
		return nil, err
	}
	p.Files = make(map[string]canon.Digest, len(a.files))
	for _, f := range a.files {
		p.Files[f.Path] = f.Digest
		if f.Path == manifest.IdentityFile {
			p.View = f.Data
		}
	}
	// It lists every other file of the profile with its mode, and is a function of that list.
	p.ProfileSHA256 = p.Files[profile.ManifestFile]
	return p, nil
}

// inputs is the digest of every pinned surface.
func inputs(m *manifest.Manifest) (map[string]canon.Digest, error) {
	in := m.Identity.Inputs
	out := map[string]canon.Digest{}
	for surface, value := range map[manifest.Surface]any{
		manifest.RuntimeConfig: in.Behavior.RuntimeConfig, manifest.Permissions: in.Behavior.Permissions,
		manifest.HermesCode: in.Behavior.HermesCode, manifest.DeploymentCode: in.Behavior.DeploymentCode,
		manifest.RuntimeABI: in.Behavior.RuntimeABI, manifest.Skills: in.Behavior.Skills,
		manifest.Plugins: in.Behavior.Plugins, manifest.DatabaseTools: in.Behavior.DatabaseTools,
		manifest.Constitution: in.Constitution, manifest.DatabaseSnapshot: in.Snapshot,
		manifest.IdentityRows: in.Rows, manifest.CompiledViews: m.Identity.Views,
	} {
		var err error
		if out[string(surface)], err = canon.DigestOf(value); err != nil {
			return nil, fmt.Errorf("%s: %w", surface, err)
		}
	}
	return out, nil
}

// Compile implements [Agent].
func (a *Sourced) Compile(_ context.Context, dir string) error {
	return profile.CompileFiles(a.files, a.template, dir, profile.Options{})
}

// VerifySources implements [Agent]. All bytes are read each time; what follows from them is only worked out
// where they are others than those that were found to be as the manifest pins them.
func (a *Sourced) VerifySources(context.Context) ([]Drift, error) {
	s, err := a.sources()
	if err != nil {
		return nil, err
	}
	if a.verified != nil && a.verified.Same(s) {
		return nil, nil
	}
	found, err := drifts(manifest.Verify(a.manifest, s))
	if len(found) == 0 && err == nil {
		a.verified = &s
	}
	return found, err
}

// VerifyProfile implements [Agent].
func (a *Sourced) VerifyProfile(_ context.Context, dir string) ([]Drift, error) {
	return drifts(profile.VerifyFiles(dir, a.files))
}

// Tamper implements [Agent].
func (a *Sourced) Tamper(surface string) error {
	if _, ok := tampering[manifest.Surface(surface)]; !ok {
		return UnknownSurface(surface)
	}
	a.tampered = append(a.tampered, manifest.Surface(surface))
	return nil
}

func drifts(differences []manifest.Difference, err error) ([]Drift, error) {
	var out []Drift
	for _, d := range differences {
		out = append(out, Drift{string(d.Surface), d.Class, d.Path, d.Expected, d.Actual})
	}
	return out, err
}

// Package manifest says what an agent is: it observes every surface that can change an answer,
// pins those that are identity, and names every difference. It is pure: package source brings the input.
//
// Formats: behavior-manifest.v1, identity-manifest.v1 and identity-provenance.v1, with the documents they
// are made from. identity_sha256 is SHA-256 of the RFC 8785 form of the identity part; manifest_sha256 is
// SHA-256 of the bytes of the file, and so not in it.
package manifest

import (
	"fmt"
	"slices"

	"selfsame.dev/selfsame/internal/canon"
	"selfsame.dev/selfsame/schemas"
)

// Format is the format of an identity manifest.
const Format = "identity-manifest.v1"

// Manifest is the format identity-manifest.v1.
type Manifest struct {
	Format         string        `json:"format"`
	Identity       Identity      `json:"identity"`
	IdentitySHA256 canon.Digest  `json:"identity_sha256"`
	Surfaces       []Declaration `json:"surfaces"`
}

// Identity is the pinned part: the inputs, and the views that are generated from them.
type Identity struct {
	Inputs       Inputs       `json:"inputs"`
	InputsSHA256 canon.Digest `json:"inputs_sha256"`
	Views        []View       `json:"views"`
}

// Inputs is every pinned input.
type Inputs struct {
	Agent        string             `json:"agent"`
	Label        string             `json:"label"`
	Behavior     BehaviorInputs     `json:"behavior"`
	Constitution ConstitutionInputs `json:"constitution"`
	Snapshot     SnapshotInputs     `json:"database_snapshot"`
	Rows         RowInputs          `json:"identity_rows"`
}

// View is a generated file of a compiled profile.
type View struct {
	Path   string       `json:"path"`
	Size   int64        `json:"size"`
	SHA256 canon.Digest `json:"sha256"`
}

// Generate makes the identity manifest from a behavior manifest and the documents of s. The behavior
// manifest is checked against itself, not against its folders: [Verify] does that.
func Generate(b *Behavior, s Sources) (*Manifest, error) {
	if err := b.check(); err != nil {
		return nil, err
	}
	return generate(b.Inputs, s)
}

func generate(b BehaviorInputs, s Sources) (*Manifest, error) {
	in := Inputs{Label: Label, Behavior: b}
	var problems []problem
	in.documents(s, &problems)
	for _, p := range problems {
		return nil, canon.InFile(string(p.surface), p.err)
	}
	return pin(in)
}

// Build is [Observe] and [Generate], without the document between them.
func Build(s Sources) (*Manifest, error) {
	o := observe(s)
	if err := o.first(); err != nil {
		return nil, err
	}
	return generate(o.inputs, s)
}

func pin(in Inputs) (*Manifest, error) {
	m := &Manifest{Format: Format, Identity: Identity{Inputs: in}, Surfaces: Inventory()}
	var err error
	if m.Identity.InputsSHA256, err = canon.DigestOf(in); err != nil {
		return nil, err
	}
	if m.Identity.Views, err = views(m.Identity); err != nil {
		return nil, err
	}
	m.IdentitySHA256, err = canon.DigestOf(m.Identity)
	return m, err
}

// documents reads the documents, and notes what is refused by surface.
func (in *Inputs) documents(s Sources, problems *[]problem) {
	refuse := func(surface Surface, err error) bool {
		if err != nil {
			*problems = append(*problems, problem{surface, err})
		}
		return err != nil
	}
	var err error
	in.Constitution, err = readConstitution(s.Constitution)
	noRules := refuse(Constitution, err)
	in.Snapshot, err = readSnapshot(s.Fingerprint)
	noSnapshot := refuse(DatabaseSnapshot, err)
	in.Rows, err = readRows(s.Database, s.Evidence)
	if refuse(IdentityRows, err) {
		return
	}
	in.Agent = in.Rows.Document.Agent
	if !noSnapshot {
		refuse(IdentityRows, in.Rows.bound(in.Snapshot))
	}
	if !noRules {
		refuse(Constitution, in.sameAgent())
	}
}

func (in *Inputs) sameAgent() error {
	if c := in.Constitution; c.Document.Agent != in.Agent || in.Rows.Document.Agent != in.Agent {
		return &canon.InputError{File: c.Path, Key: "/agent", Problem: fmt.Sprintf("is the constitution of %q, the rows are of %q", c.Document.Agent, in.Agent), Fix: "give documents of one agent"}
	}
	return nil
}

// Decode reads an identity manifest and recomputes everything it states about itself: structure,
// digests, policy, views (law I8). That shows it is consistent; only [Verify] shows it is true.
func Decode(file string, data []byte) (*Manifest, error) {
	if m := accept(data); m != nil {
		return m, nil
	}
	return decode(file, data)
}

// decode is [Decode] by the schema alone; it says what is wrong.
func decode(file string, data []byte) (*Manifest, error) {
	var m Manifest
	if err := schemas.DecodeCanonical(file, Format, data, &m); err != nil {
		return nil, err
	}
	if err := m.check(); err != nil {
		return nil, canon.InFile(file, err)
	}
	return &m, nil
}

func (m *Manifest) check() error {
	in := m.Identity.Inputs
	if err := in.check(); err != nil {
		return err
	}
	again, err := pin(in)
	if err != nil {
		return err
	}
	forged := func(key string) error {
		return &canon.InputError{Key: key, Problem: "is not what the rest of the manifest gives", Fix: "generate the manifest anew"}
	}
	switch {
	case again.Identity.InputsSHA256 != m.Identity.InputsSHA256:
		return forged("/identity/inputs_sha256")
	case !slices.Equal(again.Identity.Views, m.Identity.Views):
		return forged("/identity/views")
	case again.IdentitySHA256 != m.IdentitySHA256:
		return forged("/identity_sha256")
	case !slices.Equal(again.Surfaces, m.Surfaces):
		return forged("/surfaces")
	}
	return nil
}

func (in Inputs) check() error {
	if in.Label != Label {
		return &canon.InputError{Key: "/identity/inputs/label", Problem: "only " + Label + " is admitted", Fix: "generate the manifest anew"}
	}
	for _, check := range []func() error{
		in.Behavior.check, in.Constitution.check, in.Snapshot.check, in.Rows.check, in.sameAgent,
		func() error { return in.Rows.bound(in.Snapshot) },
	} {
		if err := check(); err != nil {
			return err
		}
	}
	return nil
}

// Encode returns the bytes of the file: RFC 8785, no trailing newline.
func (m *Manifest) Encode() ([]byte, error) { return canon.Marshal(m) }

// SHA256 returns manifest_sha256.
func (m *Manifest) SHA256() (canon.Digest, error) { return canon.DigestOf(m) }

package manifest

import (
	"bytes"
	"io/fs"
	"slices"

	"selfsame.dev/selfsame/internal/tree"
)

// Sources is everything a manifest is built from, as an edge (package source) found it. The
// Problem fields carry refusals ([*canon.InputError]) of one surface, so that a verification
// can name that surface and go on with the others.
type Sources struct {
	Template   Template
	Hermes     Root
	Deployment Root

	// Documents, named by their slash path relative to the source root.
	Fingerprint  Document
	Constitution Document
	Database     Document
	// Evidence holds the files that identity rows cite, by path relative to the source root.
	Evidence Root

	// Origins say where the roots of the template and of the code came from; never identity.
	Origins []Origin
	// ObservationKey is the local key of the operational observation; without it there is none.
	ObservationKey []byte
}

// Same reports whether the same bytes were read from both, under the same names and with nothing refused: whatever
// is a function of the one is that of the other. Origins, credentials and the key are no identity, and not compared.
func (s Sources) Same(t Sources) bool {
	return s.Template.same(t.Template) && s.Hermes.same(t.Hermes) && s.Deployment.same(t.Deployment) &&
		s.Fingerprint.same(t.Fingerprint) && s.Constitution.same(t.Constitution) && s.Database.same(t.Database) &&
		s.Evidence.same(t.Evidence)
}

func (t Template) same(u Template) bool {
	return t.Problem == nil && u.Problem == nil && slices.Equal(t.Names, u.Names) && bytes.Equal(t.Config, u.Config) &&
		t.Skills.same(u.Skills) && t.Plugins.same(u.Plugins) && t.DatabaseTools.same(u.DatabaseTools)
}

func (r Root) same(q Root) bool {
	return r.Problem == nil && q.Problem == nil && slices.Equal(r.Selection.Include, q.Selection.Include) &&
		slices.Equal(r.Selection.Exclude, q.Selection.Exclude) && slices.Equal(r.Entries, q.Entries)
}

func (d Document) same(e Document) bool {
	return d.Problem == nil && e.Problem == nil && d.Path == e.Path && bytes.Equal(d.Data, e.Data)
}

// Root is one folder: the files that belong to it, sorted by path, and a way to read the few
// whose content is interpreted.
type Root struct {
	Selection tree.Selection // in normal form; what Entries was selected by
	Entries   []tree.Entry
	Files     fs.FS
	Problem   error
}

// Template is a profile template. Its pinned folders are roots of their own, with paths relative to
// the template ("skills/...").
type Template struct {
	Names         []Name // every name at the top level
	Config        []byte // config.yaml; may hold credentials
	Skills        Root
	Plugins       Root
	DatabaseTools Root
	// Credentials holds the bytes of the declared credential files, by name; only read
	// when there is an ObservationKey.
	Credentials map[string][]byte
	Problem     error
}

// Name is a top level name of a template, and what it names.
type Name struct {
	Name string
	Type fs.FileMode // type bits only
}

// Document is one JSON input file.
type Document struct {
	Path    string
	Data    []byte
	Problem error
}

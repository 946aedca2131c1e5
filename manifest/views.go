package manifest

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"selfsame.dev/selfsame/internal/canon"
)

// The generated files of a profile.
const (
	SoulFile     = "SOUL.md"
	IdentityFile = "identity.json"
)

// IdentityDocument is the format identity-view.v1: what the agent may say about itself, with the source
// of every statement. It is a view and no authority.
type IdentityDocument struct {
	Format       string             `json:"format"`
	Agent        string             `json:"agent"`
	Authority    Authority          `json:"authority"`
	Label        string             `json:"label"`
	InputsSHA256 canon.Digest       `json:"inputs_sha256"`
	Constitution ViewedConstitution `json:"constitution"`
	Database     ViewedDatabase     `json:"database"`
	Rules        []ViewedRule       `json:"rules"`
	Rows         []Row              `json:"rows"` // by rank
}

// ViewedConstitution names the constitution.
type ViewedConstitution struct {
	Path     string       `json:"path"`
	SHA256   canon.Digest `json:"sha256"`
	Semantic canon.Digest `json:"semantic_sha256"`
}

// ViewedDatabase names the snapshot of the database.
type ViewedDatabase struct {
	Database
	Snapshot canon.Digest `json:"snapshot_sha256"`
}

// ViewedRule is a rule with the digest of its RFC 8785 form.
type ViewedRule struct {
	Rule
	Digest canon.Digest `json:"sha256"`
}

// ViewFormat is the format of identity.json.
const ViewFormat = "identity-view.v1"

// IdentityView returns identity.json: RFC 8785, a function of the inputs alone.
func (id Identity) IdentityView() ([]byte, error) {
	doc, err := id.document()
	if err != nil {
		return nil, err
	}
	return canon.Marshal(doc)
}

func (id Identity) document() (IdentityDocument, error) {
	in := id.Inputs
	doc := IdentityDocument{
		Format: ViewFormat, Agent: in.Agent, Authority: GeneratedView, Label: in.Label, InputsSHA256: id.InputsSHA256,
		Constitution: ViewedConstitution{in.Constitution.Path, in.Constitution.SHA256, in.Constitution.Semantic},
		Database:     ViewedDatabase{in.Snapshot.Document.Database, in.Snapshot.SHA256},
		Rows:         slices.Clone(in.Rows.Document.Rows),
	}
	for _, r := range in.Constitution.Document.Rules {
		sum, err := canon.DigestOf(r)
		if err != nil {
			return doc, err
		}
		doc.Rules = append(doc.Rules, ViewedRule{r, sum})
	}
	slices.SortFunc(doc.Rows, func(a, b Row) int { return cmp.Compare(a.Rank, b.Rank) })
	return doc, nil
}

// Soul returns SOUL.md, the same statements for the eye of a model.
func (id Identity) Soul() ([]byte, error) {
	doc, err := id.document()
	if err != nil {
		return nil, err
	}
	var b strings.Builder
	fmt.Fprintf(&b, "# %s\n\n", doc.Agent)
	fmt.Fprintf(&b, "This file is a generated view and no authority. Edit its sources; an edit here is drift.\n\n")
	fmt.Fprintf(&b, "- label: %s\n- inputs: sha256 %s\n", doc.Label, doc.InputsSHA256)
	fmt.Fprintf(&b, "- constitution: %s, sha256 %s\n", doc.Constitution.Path, doc.Constitution.SHA256)
	fmt.Fprintf(&b, "- database: %s, snapshot sha256 %s\n", doc.Database.Name, doc.Database.Snapshot)
	fmt.Fprintf(&b, "\n## %s\n\n", id.Inputs.Constitution.Document.Title)
	for _, r := range doc.Rules {
		fmt.Fprintf(&b, "%d. %s (%s)\n", r.Rank, r.Text, r.ID)
	}
	fmt.Fprintf(&b, "\n## Identity rows\n\n")
	for _, r := range doc.Rows {
		fmt.Fprintf(&b, "%d. %s: %s (%s/%s, %s)\n", r.Rank, r.Kind, r.Statement, r.Table, r.Row, r.SourceMode)
		for _, e := range r.Evidence {
			fmt.Fprintf(&b, "   - evidence: %s, sha256 %s\n", e.Path, e.Digest)
		}
	}
	return []byte(b.String()), nil
}

func views(id Identity) ([]View, error) {
	var out []View
	for _, v := range []struct {
		path string
		make func() ([]byte, error)
	}{{SoulFile, id.Soul}, {IdentityFile, id.IdentityView}} {
		data, err := v.make()
		if err != nil {
			return nil, err
		}
		out = append(out, View{v.path, int64(len(data)), canon.Sum(data)})
	}
	return out, nil
}

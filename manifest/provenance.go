package manifest

import "selfsame.dev/selfsame/internal/canon"

// ProvenanceFormat is the format of the file beside a manifest that says where its inputs came from.
const ProvenanceFormat = "identity-provenance.v1"

// Provenance is the format identity-provenance.v1. It is bound to the manifest by digests and is no part
// of it, so that equal inputs of two commits have equal manifests.
type Provenance struct {
	Format         string       `json:"format"`
	IdentitySHA256 canon.Digest `json:"identity_sha256"`
	ManifestSHA256 canon.Digest `json:"manifest_sha256"`
	Origins        []Origin     `json:"origins"`
}

// The kinds of [Origin].
const (
	OriginGit              = "git_clean"         // every file is that of the commit
	OriginBundle           = "source_bundle"     // every file is that of the source bundle
	OriginContentAddressed = "content_addressed" // an explicit list of inputs, as under Bazel
)

// Origin says where one root's files came from.
type Origin struct {
	Root   string `json:"root"`
	Kind   string `json:"kind"`
	Commit string `json:"commit,omitempty"` // of Git, in full
	Path   string `json:"path,omitempty"`   // of the root in the work tree, "." for the top

	Bundle *canon.Digest `json:"bundle_sha256,omitempty"` // the identity of a source bundle
}

// ProvenanceOf binds origins to a manifest.
func ProvenanceOf(m *Manifest, origins []Origin) (Provenance, error) {
	sum, err := m.SHA256()
	return Provenance{ProvenanceFormat, m.IdentitySHA256, sum, origins}, err
}

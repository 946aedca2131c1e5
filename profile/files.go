// Package profile compiles the disposable profile of an identity manifest into an empty folder, and
// verifies one against its manifest. What a compiled profile holds is a function of the
// manifest alone: exact paths, sizes, modes and digests, and nothing else.
package profile

import (
	"cmp"
	"fmt"
	"io/fs"
	"path"
	"slices"

	"selfsame.dev/selfsame/internal/canon"
	"selfsame.dev/selfsame/internal/tree"
	"selfsame.dev/selfsame/manifest"
)

// ManifestFile describes the other files of a compiled profile, in the format profile-manifest.v1.
const ManifestFile = "profile-manifest.json"

const manifestFormat = "profile-manifest.v1"

// The declared modes. Permission bits of the sources are not identity (law I9).
const (
	FolderMode  fs.FileMode = 0o755
	FileMode    fs.FileMode = 0o644
	CommandMode fs.FileMode = 0o755 // the database commands that the permissions name
)

// File is one file of a compiled profile. Data is its content when it is generated, and nil
// when it is copied from the same path of the template.
type File struct {
	Path   string
	Mode   fs.FileMode
	Size   int64
	Digest canon.Digest
	Data   []byte
}

// Document is the format profile-manifest.v1.
type Document struct {
	Format         string       `json:"format"`
	IdentitySHA256 canon.Digest `json:"identity_sha256"`
	Label          string       `json:"label"`
	Files          []Listed     `json:"files"`
}

// Listed is a file of a profile with its mode, in octal.
type Listed struct {
	Path   string       `json:"path"`
	Mode   string       `json:"mode"`
	Size   int64        `json:"size"`
	Digest canon.Digest `json:"sha256"`
}

// Files returns every file of the profile of m, sorted by path.
func Files(m *manifest.Manifest) ([]File, error) {
	in := m.Identity.Inputs.Behavior
	config, err := manifest.ConfigYAML(in.RuntimeConfig, in.Permissions.Settings())
	if err != nil {
		return nil, err
	}
	soul, err := m.Identity.Soul()
	if err != nil {
		return nil, err
	}
	view, err := m.Identity.IdentityView()
	if err != nil {
		return nil, err
	}
	files := []File{
		generated(manifest.ConfigFile, config),
		generated(manifest.SoulFile, soul),
		generated(manifest.IdentityFile, view),
	}
	for _, part := range []manifest.Tree{in.Skills, in.Plugins, in.DatabaseTools} {
		for _, e := range part.Files {
			mode := FileMode
			if slices.Contains(in.Permissions.DatabaseCommands, e.Path) {
				mode = CommandMode
			}
			files = append(files, File{Path: e.Path, Mode: mode, Size: e.Size, Digest: e.Digest})
		}
	}
	byPath(files)
	doc := Document{Format: manifestFormat, IdentitySHA256: m.IdentitySHA256, Label: m.Identity.Inputs.Label}
	for _, f := range files {
		doc.Files = append(doc.Files, Listed{f.Path, fmt.Sprintf("%04o", f.Mode.Perm()), f.Size, f.Digest})
	}
	data, err := canon.Marshal(doc)
	if err != nil {
		return nil, err
	}
	files = append(files, generated(ManifestFile, data))
	byPath(files)
	return files, nil
}

func generated(name string, data []byte) File {
	return File{Path: name, Mode: FileMode, Size: int64(len(data)), Digest: canon.Sum(data), Data: data}
}

func byPath(files []File) {
	slices.SortFunc(files, func(a, b File) int { return cmp.Compare(a.Path, b.Path) })
}

// folders returns every folder that holds one of the files, parents first.
func folders(files []File) []string {
	seen := map[string]bool{}
	for _, f := range files {
		for dir := path.Dir(f.Path); dir != "." && !seen[dir]; dir = path.Dir(dir) {
			seen[dir] = true
		}
	}
	var out []string
	for dir := range seen {
		out = append(out, dir)
	}
	slices.Sort(out)
	return out
}

func entries(files []File) []tree.Entry {
	out := make([]tree.Entry, len(files))
	for i, f := range files {
		out[i] = tree.Entry{Path: f.Path, Size: f.Size, Digest: f.Digest}
	}
	return out
}

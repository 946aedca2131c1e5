package scaffold

import (
	"errors"
	"os"
	"path/filepath"

	"selfsame.dev/selfsame/manifest"
	"selfsame.dev/selfsame/manifest/source"
)

// pinnedFile is the committed manifest that the package's own is held against. It must not be named like the
// output of its target manifest.
const pinnedFile = "pinned.json"

// pinned returns the manifest of the identity that files make.
func pinned(files []File) (pin File, err error) {
	dir, err := os.MkdirTemp("", "selfsame-init-")
	if err != nil {
		return pin, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	for _, f := range files {
		if err := write(filepath.Join(dir, filepath.FromSlash(f.Path)), f); err != nil {
			return pin, err
		}
	}
	in := func(name string) string { return filepath.Join(dir, name) }
	s, err := source.Folders(source.Paths{
		ProfileTemplate: in("template"), HermesRoot: in("runtime"), DeploymentRoot: in("deployment"), SourceRoot: dir,
		DatabaseFingerprint: in("database-fingerprint.json"), Constitution: in("constitution.json"), DatabaseIdentity: in("database-identity.json"),
	})
	if err != nil {
		return pin, err
	}
	m, err := manifest.Build(s)
	if err != nil {
		return pin, err
	}
	data, err := m.Encode()
	return File{pinnedFile, data, 0o644}, err
}

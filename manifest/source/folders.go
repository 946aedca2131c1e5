// Package source brings the inputs of a manifest from disk: from folders, or from an explicit
// list of files as a build system gives it. Both give the same [manifest.Sources].
package source

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"selfsame.dev/selfsame/internal/canon"
	"selfsame.dev/selfsame/internal/tree"
	"selfsame.dev/selfsame/internal/tree/disk"
	"selfsame.dev/selfsame/manifest"
)

// Paths say where the inputs are. The three documents must be in SourceRoot, and evidence
// files are relative to it. Empty: not given.
type Paths struct {
	ProfileTemplate     string
	HermesRoot          string
	DeploymentRoot      string
	SourceRoot          string
	DatabaseFingerprint string
	Constitution        string
	DatabaseIdentity    string
	// ObservationKey is the file of the key for the operational observation; see [Key].
	ObservationKey string
}

// maxDocument is the largest document read, in bytes.
const maxDocument = 64 << 20

// Folders reads the inputs from their folders. Refused input is noted in the Problem of its
// surface; the error is for what the system could not do.
func Folders(p Paths) (manifest.Sources, error) {
	s, err := Behavior(p)
	if err != nil {
		return s, err
	}
	d, err := Documents(p)
	s.Fingerprint, s.Constitution, s.Database, s.Evidence = d.Fingerprint, d.Constitution, d.Database, d.Evidence
	return s, err
}

// Behavior reads only the template and the code roots, which is what [manifest.Observe] needs.
func Behavior(p Paths) (manifest.Sources, error) {
	var s manifest.Sources
	var err error
	if s.Template, err = Template(p.ProfileTemplate); err != nil {
		return s, err
	}
	if s.Hermes, err = codeRoot(p.HermesRoot); err != nil {
		return s, err
	}
	if s.Deployment, err = codeRoot(p.DeploymentRoot); err != nil {
		return s, err
	}
	if p.ObservationKey == "" {
		return s, nil
	}
	if s.ObservationKey, err = Key(p.ObservationKey); err != nil {
		return s, err
	}
	s.Template.Credentials = map[string][]byte{}
	for _, n := range s.Template.Names {
		if n.Type.IsRegular() && manifest.ClassOf(n.Name) == manifest.ClassCredential {
			if s.Template.Credentials[n.Name], err = os.ReadFile(filepath.Join(p.ProfileTemplate, n.Name)); err != nil {
				return s, err
			}
		}
	}
	return s, nil
}

// Documents reads only the three documents and the evidence files, which is what
// [manifest.Generate] needs.
func Documents(p Paths) (manifest.Sources, error) {
	var s manifest.Sources
	for _, d := range []struct {
		file string
		to   *manifest.Document
	}{{p.DatabaseFingerprint, &s.Fingerprint}, {p.Constitution, &s.Constitution}, {p.DatabaseIdentity, &s.Database}} {
		if err := document(p.SourceRoot, d.file, d.to); err != nil {
			return s, err
		}
	}
	var err error
	s.Evidence, err = evidence(p.SourceRoot, s.Database)
	return s, err
}

// ForManifest completes p with the documents that m names, relative to the source root.
func ForManifest(m *manifest.Manifest, p Paths) Paths {
	in := m.Identity.Inputs
	for _, d := range []struct {
		file *string
		path string
	}{{&p.DatabaseFingerprint, in.Snapshot.Path}, {&p.Constitution, in.Constitution.Path}, {&p.DatabaseIdentity, in.Rows.Path}} {
		if *d.file == "" {
			*d.file = filepath.Join(p.SourceRoot, filepath.FromSlash(d.path))
		}
	}
	return p
}

// Template reads a profile template: the names at its top, config.yaml, and the digests of its pinned folders.
func Template(root string) (manifest.Template, error) {
	t := manifest.Template{}
	list, err := os.ReadDir(root)
	if err != nil {
		return t, err
	}
	folders := map[string]*manifest.Root{
		manifest.SkillsFolder: &t.Skills, manifest.PluginsFolder: &t.Plugins, manifest.DatabaseToolsDir: &t.DatabaseTools,
	}
	for _, entry := range list {
		t.Names = append(t.Names, manifest.Name{Name: entry.Name(), Type: entry.Type()})
		into := folders[entry.Name()]
		switch {
		case entry.Name() == manifest.ConfigFile && entry.Type().IsRegular():
			if t.Config, err = os.ReadFile(filepath.Join(root, manifest.ConfigFile)); errors.Is(err, fs.ErrPermission) {
				t.Problem = &canon.InputError{File: manifest.ConfigFile, Problem: "cannot be read", Fix: "make it readable"}
			} else if err != nil {
				return t, err
			}
		case into != nil && entry.IsDir():
			if err := hash(filepath.Join(root, entry.Name()), tree.Selection{}, into); err != nil {
				return t, err
			}
			for i := range into.Entries {
				into.Entries[i].Path = entry.Name() + "/" + into.Entries[i].Path
			}
			into.Files = os.DirFS(root)
		}
	}
	return t, nil
}

// codeRoot reads a code root as the declaration at its top says.
func codeRoot(root string) (manifest.Root, error) {
	var r manifest.Root
	info, err := os.Lstat(filepath.Join(root, manifest.CodeRootFile))
	var declared manifest.CodeRoot
	if err == nil && info.Mode().IsRegular() { // anything else is refused by name below
		declared, err = declaredRoot(root)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return r, refused(err, &r.Problem)
	}
	return r, hash(root, declared.Selection(), &r)
}

func hash(root string, selection tree.Selection, r *manifest.Root) error {
	selector, err := selection.Compile()
	if err == nil {
		r.Selection = selector.Selection()
		r.Files = os.DirFS(root)
		r.Entries, err = disk.Hash(root, disk.Options{Selection: selection})
	}
	return refused(err, &r.Problem)
}

// refused keeps refusals apart from failures of the system.
func refused(err error, problem *error) error {
	var input *canon.InputError
	if errors.As(err, &input) {
		*problem = err
		return nil
	}
	return err
}

// document reads a file that must be in the source root, and names it relative to it.
func document(root, file string, d *manifest.Document) error {
	relative, err := within(root, file)
	if err != nil {
		return err
	}
	d.Path = relative
	data, problem := regular(root, relative)
	d.Data = data
	return refused(problem, &d.Problem)
}

func within(root, file string) (string, error) {
	absRoot, err := filepath.Abs(root)
	if err != nil {
		return "", err
	}
	absFile, err := filepath.Abs(file)
	if err != nil {
		return "", err
	}
	relative, err := filepath.Rel(absRoot, absFile)
	if err != nil || !filepath.IsLocal(relative) {
		return "", &canon.InputError{File: file, Problem: "is not in the source root " + root, Fix: "give a --source-root above it"}
	}
	return filepath.ToSlash(relative), nil
}

// regular reads a file below root without following a link inside root.
func regular(root, relative string) ([]byte, error) {
	if root == "" {
		root = "."
	}
	at := root
	for _, element := range strings.Split(relative, "/") {
		at = filepath.Join(at, element)
		info, err := os.Lstat(at)
		if errors.Is(err, fs.ErrNotExist) {
			return nil, &canon.InputError{File: relative, Problem: "is missing", Fix: "give the file"}
		}
		if errors.Is(err, fs.ErrPermission) {
			return nil, &canon.InputError{File: relative, Problem: "cannot be read", Fix: "make it readable"}
		}
		if err != nil {
			return nil, err
		}
		if info.Mode()&fs.ModeSymlink != 0 {
			return nil, &canon.InputError{File: relative, Problem: "is, or is below, a symbolic link", Fix: "give the file itself"}
		}
		if !info.IsDir() && (!info.Mode().IsRegular() || info.Size() > maxDocument) {
			return nil, &canon.InputError{File: relative, Problem: "is no regular file, or too long", Fix: "give the file itself"}
		}
	}
	data, err := os.ReadFile(at)
	if errors.Is(err, fs.ErrPermission) {
		return nil, &canon.InputError{File: relative, Problem: "cannot be read", Fix: "make it readable"}
	}
	return data, err
}

// evidence reads the files that the rows cite. What is wrong with the document itself is
// for the manifest to say.
func evidence(root string, d manifest.Document) (manifest.Root, error) {
	r := manifest.Root{Files: os.DirFS(root)}
	paths, err := manifest.EvidencePaths(d)
	if err != nil {
		return r, nil
	}
	for _, path := range paths {
		if err := tree.CheckName(path); err != nil {
			r.Problem = err
			return r, nil
		}
		data, err := regular(root, path)
		if err := refused(err, &r.Problem); err != nil || r.Problem != nil {
			return r, err
		}
		r.Entries = append(r.Entries, tree.Entry{Path: path, Size: int64(len(data)), Digest: canon.Sum(data)})
	}
	return r, nil
}

package source

import (
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"

	"selfsame.dev/selfsame/internal/canon"
	"selfsame.dev/selfsame/internal/tree"
	"selfsame.dev/selfsame/internal/tree/disk"
	"selfsame.dev/selfsame/manifest"
)

// The names of the parts of a list; those of the folders are the flags of the command line.
const (
	partTemplate     = "profile-template"
	partHermes       = "hermes-root"
	partDeployment   = "deployment-root"
	partSource       = "source-root"
	partFingerprint  = "database-fingerprint"
	partConstitution = "constitution"
	partDatabase     = "database-identity"
)

var parts = []string{partTemplate, partHermes, partDeployment, partSource, partFingerprint, partConstitution, partDatabase}

// List reads the inputs from an explicit list: lines of
//
//	part TAB logical path TAB file
//
// where part is a folder flag (profile-template, hermes-root, deployment-root, source-root) or a document
// (database-fingerprint, constitution, database-identity); the logical path is relative to that folder, and for
// documents and evidence files (source-root) to the source root; the file is relative to the current
// folder, which under Bazel is the exec root. Listed files are read as [disk.HashFiles] reads them. The
// result is that of [Folders] for folders that hold exactly these files.
func List(file string) (manifest.Sources, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return manifest.Sources{}, err
	}
	l, err := parseList(file, string(data))
	if err != nil {
		return manifest.Sources{}, err
	}
	var s manifest.Sources
	for _, d := range []struct {
		part string
		to   *manifest.Document
	}{{partFingerprint, &s.Fingerprint}, {partConstitution, &s.Constitution}, {partDatabase, &s.Database}} {
		if err := l.document(d.part, d.to); err != nil {
			return s, err
		}
	}
	if err := hashListed(l[partSource], tree.Selection{}, &s.Evidence); err != nil {
		return s, err
	}
	if s.Template, err = l.template(); err != nil {
		return s, err
	}
	if s.Hermes, err = l.codeRoot(partHermes); err != nil {
		return s, err
	}
	s.Deployment, err = l.codeRoot(partDeployment)
	for _, part := range []string{partTemplate, partHermes, partDeployment} {
		s.Origins = append(s.Origins, contentAddressed(part))
	}
	return s, err
}

// list holds the files of each part.
type list map[string][]disk.File

func parseList(name, data string) (list, error) {
	l := list{}
	seen := map[[2]string]bool{}
	for i, line := range strings.Split(strings.TrimSuffix(data, "\n"), "\n") {
		fields := strings.Split(line, "\t")
		refuse := func(problem, fix string) error {
			return &canon.InputError{File: name, Key: fmt.Sprintf("line %d", i+1), Problem: problem, Fix: fix}
		}
		switch {
		case len(fields) != 3:
			return nil, refuse(fmt.Sprintf("has %d fields, not part, logical path and file", len(fields)), "part the three fields by single tabs")
		case !slices.Contains(parts, fields[0]):
			return nil, refuse(fmt.Sprintf("names the unknown part %q", fields[0]), "write one of: "+strings.Join(parts, ", "))
		case seen[[2]string{fields[0], fields[1]}]:
			return nil, refuse(fmt.Sprintf("lists %s of %s again", fields[1], fields[0]), "list each file once")
		}
		seen[[2]string{fields[0], fields[1]}] = true
		l[fields[0]] = append(l[fields[0]], disk.File{Logical: fields[1], Path: fields[2]})
	}
	return l, nil
}

// hashListed fills in a root from files.
func hashListed(files []disk.File, selection tree.Selection, r *manifest.Root) error {
	selector, err := selection.Compile()
	if err == nil {
		r.Selection = selector.Selection()
		byPath := make(listed, len(files))
		for _, f := range files {
			byPath[f.Logical] = f.Path
		}
		r.Files = byPath
		r.Entries, err = disk.HashFiles(files, "", disk.Options{Selection: selection})
	}
	return refused(err, &r.Problem)
}

// readListed returns the content of one listed file, having made sure that it is no link of the tree.
func readListed(f disk.File) ([]byte, error) {
	if _, err := disk.HashFiles([]disk.File{f}, "", disk.Options{Workers: 1}); err != nil {
		return nil, err
	}
	return os.ReadFile(f.Path)
}

func (l list) document(part string, d *manifest.Document) error {
	if len(l[part]) != 1 {
		d.Problem = &canon.InputError{Key: part, Problem: fmt.Sprintf("is listed %d times", len(l[part])), Fix: "list the document once"}
		return nil
	}
	d.Path = l[part][0].Logical
	data, err := readListed(l[part][0])
	d.Data = data
	return refused(err, &d.Problem)
}

func (l list) template() (manifest.Template, error) {
	var t manifest.Template
	types := map[string]fs.FileMode{}
	below := map[string][]disk.File{}
	for _, f := range l[partTemplate] {
		name, _, isFolder := strings.Cut(f.Logical, "/")
		mode := fs.FileMode(0)
		if isFolder {
			mode = fs.ModeDir
		}
		if have, found := types[name]; found && have != mode {
			t.Problem = &canon.InputError{Key: name, Problem: "is both a file and a folder", Fix: "list one of the two"}
			return t, nil
		}
		types[name] = mode
		below[name] = append(below[name], f)
	}
	for name, mode := range types {
		t.Names = append(t.Names, manifest.Name{Name: name, Type: mode})
	}
	slices.SortFunc(t.Names, func(a, b manifest.Name) int { return strings.Compare(a.Name, b.Name) })
	if files := below[manifest.ConfigFile]; len(files) == 1 && types[manifest.ConfigFile] == 0 {
		var err error
		if t.Config, err = readListed(files[0]); refused(err, &t.Problem) != nil {
			return t, err
		}
	}
	for _, folder := range []struct {
		name string
		to   *manifest.Root
	}{{manifest.SkillsFolder, &t.Skills}, {manifest.PluginsFolder, &t.Plugins}, {manifest.DatabaseToolsDir, &t.DatabaseTools}} {
		if types[folder.name] == fs.ModeDir {
			if err := hashListed(below[folder.name], tree.Selection{}, folder.to); err != nil {
				return t, err
			}
		}
	}
	return t, nil
}

func (l list) codeRoot(part string) (manifest.Root, error) {
	var r manifest.Root
	declared := manifest.CodeRoot{}
	for _, f := range l[part] {
		if f.Logical != manifest.CodeRootFile {
			continue
		}
		data, err := readListed(f)
		if err == nil {
			declared, err = manifest.DecodeCodeRoot(manifest.CodeRootFile, data)
		}
		if err != nil {
			return r, refused(err, &r.Problem)
		}
	}
	return r, hashListed(l[part], declared.Selection(), &r)
}

// listed opens listed files by logical path.
type listed map[string]string

func (l listed) Open(name string) (fs.File, error) {
	file, found := l[name]
	if !found {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
	}
	return os.Open(file)
}

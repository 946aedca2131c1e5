package canary

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"selfsame.dev/selfsame/internal/canon"
	"selfsame.dev/selfsame/internal/tree"
	"selfsame.dev/selfsame/manifest"
)

// tampering makes one surface of the sources drift, in memory: what is on disk is the operator's.
var tampering = map[manifest.Surface]func(*manifest.Sources) error{
	manifest.RuntimeConfig:    func(s *manifest.Sources) error { return reconfigure(&s.Template, "max_concurrent_sessions", "1", "2") },
	manifest.Permissions:      func(s *manifest.Sources) error { return reconfigure(&s.Template, "require_mention", "true", "false") },
	manifest.HermesCode:       func(s *manifest.Sources) error { return alter(&s.Hermes, code) },
	manifest.DeploymentCode:   func(s *manifest.Sources) error { return alter(&s.Deployment, code) },
	manifest.RuntimeABI:       rebuild,
	manifest.Skills:           func(s *manifest.Sources) error { return alter(&s.Template.Skills, anyFile) },
	manifest.Plugins:          func(s *manifest.Sources) error { return alter(&s.Template.Plugins, anyFile) },
	manifest.DatabaseTools:    func(s *manifest.Sources) error { return alter(&s.Template.DatabaseTools, anyFile) },
	manifest.Constitution:     func(s *manifest.Sources) error { return reword(&s.Constitution, "title") },
	manifest.DatabaseSnapshot: func(s *manifest.Sources) error { return reword(&s.Fingerprint, "database", "name") },
	manifest.IdentityRows:     func(s *manifest.Sources) error { return reword(&s.Database, "database", "name") },
	manifest.ProfileTemplate: func(s *manifest.Sources) error {
		s.Template.Names = append(slices.Clone(s.Template.Names), manifest.Name{Name: "injected-drift"})
		return nil
	},
}

func tamper(s manifest.Sources, surface manifest.Surface) (manifest.Sources, error) {
	if err := tampering[surface](&s); err != nil {
		return s, fmt.Errorf("inject drift into %s: %w", surface, err)
	}
	return s, nil
}

var errNothing = errors.New("there is nothing that could drift")

// reconfigure sets a key of config.yaml to a, or to b when it is a.
func reconfigure(t *manifest.Template, key, a, b string) error {
	var doc yaml.Node
	if err := yaml.Unmarshal(t.Config, &doc); err != nil {
		return err
	}
	if len(doc.Content) != 1 || doc.Content[0].Kind != yaml.MappingNode {
		return errNothing
	}
	root := doc.Content[0]
	for i := 0; i+1 < len(root.Content); i += 2 {
		if root.Content[i].Value == key {
			if root.Content[i+1].Value == a {
				a = b
			}
			root.Content = slices.Delete(root.Content, i, i+2)
			break
		}
	}
	root.Content = append(root.Content, &yaml.Node{Kind: yaml.ScalarNode, Value: key}, &yaml.Node{Kind: yaml.ScalarNode, Value: a})
	var err error
	t.Config, err = yaml.Marshal(&doc)
	return err
}

func anyFile(string) bool { return true }

// code is any file but the declaration and what the runtime's ABI is read from.
func code(name string) bool {
	return name != manifest.CodeRootFile && !strings.Contains(name, ".dist-info/") && path.Base(name) != "pyvenv.cfg"
}

// alter appends a byte to the first file that suits.
func alter(r *manifest.Root, suits func(string) bool) error {
	for i, e := range r.Entries {
		if !suits(e.Path) {
			continue
		}
		data, err := fs.ReadFile(r.Files, e.Path)
		if err != nil {
			return err
		}
		replace(r, i, append(data, injectedByte...))
		return nil
	}
	return errNothing
}

func replace(r *manifest.Root, i int, data []byte) {
	r.Entries = slices.Clone(r.Entries)
	name := r.Entries[i].Path
	r.Entries[i] = tree.Entry{Path: name, Size: int64(len(data)), Digest: canon.Sum(data)}
	r.Files = &overlay{FS: r.Files, name: name, data: data}
}

// rebuild changes the metadata of a Python package, or spoils a Go program.
func rebuild(s *manifest.Sources) error {
	for _, r := range []*manifest.Root{&s.Hermes, &s.Deployment} {
		if err := alter(r, func(name string) bool { return strings.HasSuffix(name, ".dist-info/METADATA") }); !errors.Is(err, errNothing) {
			return err
		}
	}
	for _, r := range []*manifest.Root{&s.Hermes, &s.Deployment} {
		data, err := fs.ReadFile(r.Files, manifest.CodeRootFile)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return err
		}
		declared, err := manifest.DecodeCodeRoot(manifest.CodeRootFile, data)
		if err != nil {
			return err
		}
		for i, e := range r.Entries {
			if slices.Contains(declared.GoPrograms, e.Path) {
				replace(r, i, []byte(injectedByte))
				return nil
			}
		}
	}
	return errNothing
}

// reword appends to a text in a JSON document.
func reword(d *manifest.Document, keys ...string) error {
	var doc map[string]any
	if err := json.Unmarshal(d.Data, &doc); err != nil {
		return err
	}
	at := doc
	for _, key := range keys[:len(keys)-1] {
		next, ok := at[key].(map[string]any)
		if !ok {
			return errNothing
		}
		at = next
	}
	last := keys[len(keys)-1]
	text, ok := at[last].(string)
	if !ok {
		return errNothing
	}
	at[last] = text + "x"
	var err error
	d.Data, err = canon.Marshal(doc)
	return err
}

// overlay is a folder in which one file has other content.
type overlay struct {
	fs.FS
	name string
	data []byte
}

func (o *overlay) Open(name string) (fs.File, error) {
	f, err := o.FS.Open(name)
	if err != nil || name != o.name {
		return f, err
	}
	return &overlaid{File: f, Reader: bytes.NewReader(o.data)}, nil
}

type overlaid struct {
	fs.File
	*bytes.Reader
}

func (f *overlaid) Read(p []byte) (int, error) { return f.Reader.Read(p) }

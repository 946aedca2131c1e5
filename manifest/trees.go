package manifest

import (
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"selfsame.dev/selfsame/internal/canon"
	"selfsame.dev/selfsame/internal/tree"
	"selfsame.dev/selfsame/schemas"
)

// Tree is a pinned set of files: what is stated about it, and every file.
type Tree struct {
	tree.Summary
	Files []tree.Entry `json:"files"`
}

// CodeTree is a tree of code, with the selection that says which files belong to it.
type CodeTree struct {
	Selection tree.Selection `json:"selection"`
	Tree      Tree           `json:"tree"`
}

// CodeRootFile is the file at the top of a code root that declares, in the format code-root.v1,
// what belongs to it. It is part of the tree itself.
const CodeRootFile = "selfsame-root.json"

const codeRootFormat = "code-root.v1"

// CodeRoot declares a code root. Without it every regular file belongs to the tree.
type CodeRoot struct {
	Format     string   `json:"format"`
	Include    []string `json:"include"`
	Exclude    []string `json:"exclude"`
	Python     *Python  `json:"python,omitempty"`
	GoPrograms []string `json:"go_programs"`
}

// Python declares the interpreter of a code root and the packages that are pinned by
// name and version. Paths are relative to the root.
type Python struct {
	Implementation string   `json:"implementation"`
	Version        string   `json:"version"`
	ABITag         string   `json:"abi_tag"`
	Config         string   `json:"pyvenv_cfg"`
	SitePackages   string   `json:"site_packages"`
	Packages       []string `json:"packages"`
}

// DecodeCodeRoot reads the declaration of a code root.
func DecodeCodeRoot(file string, data []byte) (CodeRoot, error) {
	var c CodeRoot
	err := schemas.Decode(file, codeRootFormat, data, &c)
	return c, err
}

// Selection returns which files belong to the tree. The declaration always does; the
// metadata of Git never.
func (c CodeRoot) Selection() tree.Selection {
	s := tree.Selection{Include: c.Include, Exclude: append([]string{"**/.git", "**/.git/**"}, c.Exclude...)}
	if len(s.Include) > 0 {
		s.Include = append([]string{CodeRootFile}, s.Include...)
	}
	return s
}

func codeTree(surface Surface, r Root) (CodeTree, error) {
	t, err := pinTree(surface, r)
	return CodeTree{r.Selection, t}, err
}

// pinTree recomputes the summary of a root and refuses a file that by its name holds credentials.
func pinTree(surface Surface, r Root) (Tree, error) {
	if r.Problem != nil {
		return Tree{}, r.Problem
	}
	// A clone: the order in which an edge finds files is no matter, and the edge keeps its own.
	t := Tree{Files: append(make([]tree.Entry, 0, len(r.Entries)), r.Entries...)}
	slices.SortFunc(t.Files, func(a, b tree.Entry) int { return strings.Compare(a.Path, b.Path) })
	var err error
	if t.Summary, err = tree.Summarize(r.Entries); err != nil {
		return Tree{}, canon.InFile(string(surface), err)
	}
	return t, t.check(surface)
}

// check recomputes everything a tree states about itself (law I8).
func (t Tree) check(surface Surface) error {
	// An agent may be without skills or plugins; nothing else may be empty.
	if len(t.Files) == 0 && surface != Skills && surface != Plugins {
		return &canon.InputError{File: string(surface), Problem: "holds no files", Fix: "give the folder that holds them"}
	}
	for _, e := range t.Files {
		if CredentialFile(e.Path) {
			return &canon.InputError{File: string(surface), Key: e.Path, Problem: "is a file for credentials; its digest would be a digest of them",
				Fix: "move it out of the tree, or exclude it in " + CodeRootFile}
		}
	}
	return canon.InFile(string(surface), tree.Verify(t.Files, t.Summary))
}

// find returns the entry at path.
func (t Tree) find(path string) (tree.Entry, bool) {
	for _, e := range t.Files {
		if e.Path == path {
			return e, true
		}
	}
	return tree.Entry{}, false
}

// below checks that a tree with paths relative to the template stays in its folder.
func (t Tree) below(surface Surface, folder string) error {
	for _, e := range t.Files {
		if !strings.HasPrefix(e.Path, folder+"/") {
			return &canon.InputError{File: string(surface), Key: e.Path, Problem: "is not in the folder " + folder, Fix: "generate the manifest anew"}
		}
	}
	return nil
}

// read returns the content of a file of a tree, and refuses content other than what was hashed.
func read(files fs.FS, e tree.Entry, limit int64) ([]byte, error) {
	if e.Size > limit {
		return nil, &canon.InputError{Key: e.Path, Problem: fmt.Sprintf("is longer than %d bytes", limit), Fix: "shorten it"}
	}
	data, err := fs.ReadFile(files, e.Path)
	if err != nil {
		return nil, err
	}
	if canon.Sum(data) != e.Digest {
		return nil, changed(e.Path)
	}
	return data, nil
}

func changed(path string) error {
	return &canon.InputError{Key: path, Problem: "changed while it was being read", Fix: "run again when nothing writes to the tree"}
}

// scan refuses a file whose content holds a token of a known shape: it would be copied into profiles.
func scan(surface Surface, r Root) error {
	for _, e := range r.Entries {
		data, err := read(r.Files, e, 64<<20)
		if err != nil {
			return canon.InFile(string(surface), err)
		}
		if HoldsSecret(data) {
			return &canon.InputError{File: string(surface), Key: e.Path, Problem: "holds what looks like a credential", Fix: "remove the credential from the file"}
		}
	}
	return nil
}

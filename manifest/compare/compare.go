// Package compare says whether two identities are the same and, where they are not, what differs, of which
// class that is, who owns the authority and what to do next. It takes two documents or two folders of
// outputs, and is pure: bytes and readers are passed in.
//
// The result is the format comparison.v1. Every difference is in it, by the names of package manifest.
package compare

import (
	"cmp"
	"errors"
	"slices"
	"strings"
	"sync"

	"github.com/go-json-experiment/json"

	"selfsame.dev/selfsame/internal/canon"
	"selfsame.dev/selfsame/internal/tree"
	"selfsame.dev/selfsame/manifest"
	"selfsame.dev/selfsame/schemas"
)

// Format is the format of a [Comparison].
const Format = "comparison.v1"

// Comparison is the format comparison.v1. Equal means that no byte differs; SameIdentity that whatever
// differs is of a class outside identity.
type Comparison struct {
	Format       string        `json:"format"`
	A            Side          `json:"a"`
	B            Side          `json:"b"`
	Equal        bool          `json:"equal"`
	SameIdentity bool          `json:"same_identity"`
	Counts       map[Class]int `json:"counts"` // every class, also with 0
	Groups       []Group       `json:"groups"` // by class, surface and file
}

// Side is one of the two that are compared. SHA256 is that of the document's bytes, or the digest of the
// folder's tree (selfsame-tree.v1) without the files that hold credentials.
type Side struct {
	Name     string        `json:"name"`
	Kind     string        `json:"kind"` // the format of the document, or "folder"
	SHA256   canon.Digest  `json:"sha256"`
	Identity *canon.Digest `json:"identity_sha256,omitempty"`
	Withheld []string      `json:"withheld,omitempty"` // files of the folder that by name hold credentials: seen, never read
}

// Group is what differs in one surface, seen in one file of the folders ("" where the difference is that of
// whole files or of the documents themselves).
type Group struct {
	Class       Class              `json:"class"`
	Surface     manifest.Surface   `json:"surface"`
	Authority   manifest.Authority `json:"authority"`
	Owner       string             `json:"owner"`
	Action      string             `json:"action"`
	File        string             `json:"file"`
	Differences []Difference       `json:"differences"`
}

// Difference is one path. A and B are settings, or digests with size, and empty where there is nothing.
type Difference struct {
	Change string `json:"change"` // changed, missing (in B), unexpected (only in B)
	Path   string `json:"path"`
	A      string `json:"a"`
	B      string `json:"b"`
}

// Document is an identity-manifest.v1, behavior-manifest.v1 or identity-provenance.v1.
type Document struct {
	Name string
	Data []byte
}

// Documents compares two documents of one format. Each is checked as its own format wants it: one that does
// not agree with itself is refused.
func Documents(a, b Document) (*Comparison, error) {
	left, right, err := both(a, b)
	if err != nil {
		return nil, err
	}
	c := &collector{}
	x, y := left.side(a), right.side(b)
	if x.SHA256 != y.SHA256 {
		if err := c.documents("", left, right, content(a, b)); err != nil {
			return nil, err
		}
	}
	return c.result(x, y), nil
}

// Folder is a folder of outputs, as an edge found it.
type Folder struct {
	Name     string
	Files    []tree.Entry                      // sorted; without Withheld
	Withheld []string                          // files that by name hold credentials: never read
	Read     func(path string) ([]byte, error) // of one of Files
}

// Folders compares two folders of outputs file by file, and what differs between two documents of a known
// format by its meaning.
func Folders(a, b Folder) (*Comparison, error) {
	var sides [2]Side
	for i, f := range []Folder{a, b} {
		sum, err := tree.Summarize(f.Files)
		if err != nil {
			return nil, canon.InFile(f.Name, err)
		}
		sides[i] = Side{Name: f.Name, Kind: "folder", SHA256: sum.Digest, Withheld: f.Withheld}
	}
	c := &collector{}
	where := profiles(a.Files, b.Files)
	for _, d := range tree.Diff(a.Files, b.Files) {
		if d.Kind == tree.Changed {
			left, right, err := sniff(a, b, d)
			if err != nil {
				return nil, err
			}
			if left != nil {
				if err := c.documents(d.Path, *left, *right, d); err != nil {
					return nil, err
				}
				continue
			}
		}
		c.add("", manifest.FileDifference(where.surface(d.Path), d))
	}
	c.presence(Credentials, "", a.Withheld, b.Withheld)
	return c.result(sides[0], sides[1]), nil
}

// sniff returns both documents of a file that differs, or nil where it is none of a known format. Two formats
// under one name are a difference of files.
func sniff(a, b Folder, d tree.Difference) (left, right *decoded, err error) {
	if !isJSON(d.Path) {
		return nil, nil, nil
	}
	var docs [2]Document
	for i, side := range []struct {
		folder Folder
		want   *tree.Content
	}{{a, d.Expected}, {b, d.Actual}} {
		name := side.folder.Name + "/" + d.Path
		data, err := side.folder.Read(d.Path)
		if err != nil {
			return nil, nil, err
		}
		if canon.Sum(data) != side.want.Digest {
			return nil, nil, &canon.InputError{File: name, Problem: "changed while it was read", Fix: "compare when nothing writes to the folder"}
		}
		docs[i] = Document{name, data}
	}
	if kind := formatOf(docs[0].Data); !known(kind) || kind != formatOf(docs[1].Data) {
		return nil, nil, nil
	}
	l, r, err := both(docs[0], docs[1])
	return &l, &r, err
}

// content is the difference of two documents as files.
func content(a, b Document) tree.Difference {
	of := func(d Document) *tree.Content {
		return &tree.Content{Size: int64(len(d.Data)), Digest: canon.Sum(d.Data)}
	}
	return tree.Difference{Path: "document", Kind: tree.Changed, Expected: of(a), Actual: of(b)}
}

// decoded is a document of one of the known formats.
type decoded struct {
	format     string
	manifest   *manifest.Manifest
	behavior   *manifest.Behavior
	provenance *manifest.Provenance
}

// both decodes two documents at the same time.
func both(a, b Document) (left, right decoded, err error) {
	var errB error
	var wait sync.WaitGroup
	wait.Go(func() { right, errB = decode(b) })
	left, err = decode(a)
	wait.Wait()
	if err == nil {
		err = errB
	}
	if err == nil && left.format != right.format {
		err = &canon.InputError{File: b.Name, Key: "/format", Problem: "is " + right.format + ", while " + a.Name + " is " + left.format, Fix: "compare two documents of one format"}
	}
	return left, right, err
}

func decode(d Document) (out decoded, err error) {
	switch out.format = formatOf(d.Data); out.format {
	case manifest.BehaviorFormat:
		out.behavior, err = manifest.DecodeBehavior(d.Name, d.Data)
	case manifest.ProvenanceFormat:
		out.provenance = &manifest.Provenance{}
		err = schemas.DecodeCanonical(d.Name, manifest.ProvenanceFormat, d.Data, out.provenance)
	default: // also what is no document: the error says what an identity manifest must be
		out.manifest, err = manifest.Decode(d.Name, d.Data)
	}
	return out, inDocument(d.Name, err)
}

// inDocument says in which document the surface is that an error names.
func inDocument(name string, err error) error {
	var input *canon.InputError
	if !errors.As(err, &input) || input.File == name {
		return err
	}
	named := *input
	named.File, named.Key = name, strings.TrimSuffix(input.File+": "+input.Key, ": ")
	return &named
}

func (d decoded) side(doc Document) Side {
	s := Side{Name: doc.Name, Kind: d.format, SHA256: canon.Sum(doc.Data)}
	switch {
	case d.manifest != nil:
		s.Identity = &d.manifest.IdentitySHA256
	case d.provenance != nil:
		s.Identity = &d.provenance.IdentitySHA256
	}
	return s
}

func known(format string) bool {
	return format == manifest.Format || format == manifest.BehaviorFormat || format == manifest.ProvenanceFormat
}

// formatOf returns the format that a document states, "" where it states none.
func formatOf(data []byte) string {
	var stated struct {
		Format string `json:"format"`
	}
	if json.Unmarshal(data, &stated) != nil {
		return ""
	}
	return stated.Format
}

// collector gathers differences into groups.
type collector struct {
	groups []Group
	at     map[groupKey]int
	total  int
}

type groupKey struct {
	surface manifest.Surface
	file    string
}

// add puts in a difference.
func (c *collector) add(file string, d manifest.Difference) {
	key := groupKey{d.Surface, file}
	i, found := c.at[key]
	if !found {
		if c.at == nil {
			c.at = map[groupKey]int{}
		}
		i = len(c.groups)
		c.at[key] = i
		o := ownerOf(d.Surface)
		c.groups = append(c.groups, Group{o.class, d.Surface, o.authority, o.owner, o.action, file, nil})
	}
	c.total++
	c.groups[i].Differences = append(c.groups[i].Differences, Difference{d.Class, d.Path, d.Expected, d.Actual})
}

func (c *collector) result(a, b Side) *Comparison {
	out := &Comparison{Format: Format, A: a, B: b, Equal: c.total == 0, SameIdentity: true, Counts: map[Class]int{}, Groups: c.groups}
	for _, class := range Classes {
		out.Counts[class] = 0
	}
	for _, g := range c.groups {
		out.Counts[g.Class] += len(g.Differences)
		if g.Class.Identity() {
			out.SameIdentity = false
		}
	}
	slices.SortStableFunc(out.Groups, func(a, b Group) int {
		return cmp.Or(slices.Index(Classes, a.Class)-slices.Index(Classes, b.Class), rank(a.Surface)-rank(b.Surface),
			cmp.Compare(a.Surface, b.Surface), cmp.Compare(a.File, b.File))
	})
	return out
}

// Total is the number of differences.
func (c *Comparison) Total() int {
	n := 0
	for _, count := range c.Counts {
		n += count
	}
	return n
}

package main

import (
	"fmt"
	"os"
	"strings"

	"selfsame.dev/selfsame/internal/atomicfile"
	"selfsame.dev/selfsame/internal/canon"
	"selfsame.dev/selfsame/internal/tree/disk"
	"selfsame.dev/selfsame/manifest"
	"selfsame.dev/selfsame/profile"
)

type profileCommands struct {
	Compile profileCompile `cmd:"" help:"Verify the sources, and compile a profile into an empty folder."`
	Verify  profileVerify  `cmd:"" help:"Hold a compiled profile against its manifest."`
}

type profileCompile struct {
	roots
	documents
	inputList
	Manifest string `placeholder:"FILE" required:"" help:"Identity manifest."`
	Profile  string `placeholder:"DIR" required:"" help:"Where to put the profile: a new path, or an empty folder."`
	Digest   string `placeholder:"FILE" help:"Where to write the profile's tree digest (selfsame-tree.v1)."`
	JSON     bool   `help:"Write the result as JSON."`
}

func (c *profileCompile) Run(std streams) error {
	m, err := readManifest(c.Manifest)
	if err != nil {
		return err
	}
	s, err := sourcesOf(m, c.roots, c.documents, c.inputList)
	if err != nil {
		return err
	}
	differences, err := manifest.Verify(m, s)
	if err != nil {
		return err
	}
	if len(differences) == 0 {
		if err := profile.Compile(m, s.Template, c.Profile, profile.Options{Durable: true}); err != nil {
			return err
		}
		if c.Digest != "" {
			digest, err := treeDigest(m, c.Digest)
			if err != nil {
				return err
			}
			if err := atomicfile.Write(digest.Path, digest.Data, 0o644); err != nil {
				return err
			}
		}
	}
	return verdict(std, m, differences, c.JSON, "")
}

// treeDigest is what belongs into the file beside the profile of m.
func treeDigest(m *manifest.Manifest, file string) (atomicfile.File, error) {
	summary, err := profile.Summary(m)
	return atomicfile.File{Path: file, Data: []byte(summary.Digest.String() + "\n")}, err
}

type profileVerify struct {
	Manifest    string `placeholder:"FILE" required:"" help:"Identity manifest."`
	Profile     string `placeholder:"DIR" xor:"profile" required:"" help:"Compiled profile."`
	ProfileList string `placeholder:"FILE" xor:"profile" required:"" help:"Instead of a folder: lines of path TAB file; modes are not looked at."`
	Digest      string `placeholder:"FILE" help:"The profile's tree digest beside it, to verify too."`
	JSON        bool   `help:"Write the differences as JSON."`
	Output      string `placeholder:"FILE" help:"Where to write the result (default: standard output)."`
}

func (c *profileVerify) Run(std streams) error {
	m, err := readManifest(c.Manifest)
	if err != nil {
		return err
	}
	differences, err := c.differences(m)
	if err != nil {
		return err
	}
	if c.Digest != "" {
		digest, err := treeDigest(m, c.Digest)
		if err != nil {
			return err
		}
		beside, err := besidesOf(digest)
		if err != nil {
			return err
		}
		differences = append(differences, beside...)
	}
	return verdict(std, m, differences, c.JSON, c.Output)
}

func (c *profileVerify) differences(m *manifest.Manifest) ([]manifest.Difference, error) {
	if c.ProfileList == "" {
		return profile.Verify(c.Profile, m)
	}
	data, err := os.ReadFile(c.ProfileList)
	if err != nil {
		return nil, err
	}
	var files []disk.File
	for i, line := range strings.Split(strings.TrimSuffix(string(data), "\n"), "\n") {
		path, file, found := strings.Cut(line, "\t")
		if !found {
			return nil, &canon.InputError{File: c.ProfileList, Key: fmt.Sprintf("line %d", i+1), Problem: "has no tab", Fix: "write path TAB file"}
		}
		files = append(files, disk.File{Logical: path, Path: file})
	}
	return profile.VerifyListed(files, m)
}

package main

import (
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"selfsame.dev/selfsame/internal/canon"
	"selfsame.dev/selfsame/internal/tree"
	"selfsame.dev/selfsame/internal/tree/disk"
	"selfsame.dev/selfsame/manifest"
	"selfsame.dev/selfsame/manifest/compare"
)

type compareCommand struct {
	A       string  `arg:"" help:"Identity manifest (also a behavior manifest or provenance), folder of outputs, with --execlog execution log of Bazel; or - for standard input."`
	B       string  `arg:"" help:"The same of the other side."`
	Execlog bool    `help:"Compare two execution logs, made with --execution_log_compact_file or --execution_log_json_file, and say where the builds of two machines part."`
	ModesA  *string `and:"modes" placeholder:"FILE" help:"Modes of the source files that A saw, which no log records: made at the top of its workspace with find . -type f -printf '%m %P\\n' (GNU find)."`
	ModesB  *string `and:"modes" placeholder:"FILE" help:"The same of B."`
	JSON    bool    `help:"Write the result as JSON (comparison.v1, execlog-comparison.v1), with every difference; with --output, the table goes to standard error."`
	Output  string  `placeholder:"FILE" help:"Where to write the result (default: standard output)."`
}

func (c *compareCommand) Run(std streams) error {
	if c.Execlog {
		return c.execlog(std)
	}
	if c.ModesA != nil || c.ModesB != nil {
		return &refusal{"--modes-a and --modes-b belong to --execlog"}
	}
	result, err := c.compare(std)
	if err != nil {
		return err
	}
	if err := c.write(std, result); err != nil || result.Equal {
		return err
	}
	first := result.Groups[0]
	return &failure{reason: fmt.Sprintf("they differ: %d differences, the first in %s (%s): %s", result.Total(), first.Surface, first.Class, first.Differences[0].Path)}
}

// write puts a result where it is wanted, for the eye or as JSON.
func (c *compareCommand) write(std streams, result interface{ Text() string }) error {
	data := []byte(strings.TrimSuffix(result.Text(), "\n"))
	if !c.JSON {
		return writeResult(std, c.Output, data)
	}
	document, err := canon.Marshal(result)
	if err != nil {
		return err
	}
	if err := writeResult(std, c.Output, document); err != nil || c.Output == "" {
		return err
	}
	_, err = std.err.Write(append(data, '\n')) // the file is for programs
	return err
}

func (c *compareCommand) compare(std streams) (*compare.Comparison, error) {
	if err := c.oneInput(); err != nil {
		return nil, err
	}
	folderA, err := isFolder(c.A)
	if err != nil {
		return nil, err
	}
	folderB, err := isFolder(c.B)
	if err != nil {
		return nil, err
	}
	switch {
	case folderA != folderB:
		return nil, &refusal{"a file and a folder cannot be compared: name two files, or two folders"}
	case folderA:
		a, err := outputs(c.A)
		if err != nil {
			return nil, err
		}
		b, err := outputs(c.B)
		if err != nil {
			return nil, err
		}
		return compare.Folders(a, b)
	}
	a, err := document(std, c.A)
	if err != nil {
		return nil, err
	}
	b, err := document(std, c.B)
	if err != nil {
		return nil, err
	}
	return compare.Documents(a, b)
}

func (c *compareCommand) oneInput() error {
	if c.A == "-" && c.B == "-" {
		return &refusal{"standard input can be one side only"}
	}
	return nil
}

func isFolder(name string) (bool, error) {
	if name == "-" {
		return false, nil
	}
	info, err := os.Stat(name)
	return err == nil && info.IsDir(), err
}

func document(std streams, name string) (compare.Document, error) {
	if name == "-" {
		data, err := io.ReadAll(std.in)
		return compare.Document{Name: name, Data: data}, err
	}
	data, err := os.ReadFile(name)
	return compare.Document{Name: name, Data: data}, err
}

// outputs reads a folder of outputs. The folder may be a link, as those of Bazel are; nothing in it may. Files
// that by their name hold credentials are not opened.
func outputs(name string) (compare.Folder, error) {
	folder := compare.Folder{Name: name}
	root, err := filepath.EvalSymlinks(name)
	if err != nil {
		return folder, err
	}
	var list []disk.File
	err = filepath.WalkDir(root, func(at string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		relative, err := filepath.Rel(root, at)
		if err != nil {
			return err
		}
		relative = filepath.ToSlash(relative)
		switch {
		case d.Type()&fs.ModeSymlink != 0:
			return &canon.InputError{File: name, Key: tree.Display(relative), Problem: "is a symbolic link, not a regular file", Fix: "compare folders that hold the files themselves"}
		case manifest.CredentialFile(relative):
			if err := tree.CheckName(relative); err != nil {
				return canon.InFile(name, err)
			}
			folder.Withheld = append(folder.Withheld, relative)
		default:
			list = append(list, disk.File{Logical: relative, Path: relative})
		}
		return nil
	})
	if err != nil {
		return folder, err
	}
	if folder.Files, err = disk.HashFiles(list, root, disk.Options{}); err != nil {
		return folder, canon.InFile(name, err)
	}
	folder.Read = func(path string) ([]byte, error) { return os.ReadFile(filepath.Join(root, filepath.FromSlash(path))) }
	return folder, nil
}

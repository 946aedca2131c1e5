package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"selfsame.dev/selfsame/internal/canon"
	"selfsame.dev/selfsame/tools/selfsame/scaffold"
)

type initCommand struct {
	Agent     string `arg:"" placeholder:"AGENT" help:"Name of the agent: ${agent_name}."`
	Dir       string `placeholder:"DIR" help:"Folder to make, which must not exist (default: one named like the agent)."`
	Workspace bool   `help:"Make DIR a Bazel workspace of its own, with the package in it."`
	Selfsame  string `placeholder:"DIR" help:"With --workspace: checkout of Selfsame that MODULE.bazel names (default: none; a registry must have it)."`
}

func (c *initCommand) Run(std streams) error {
	if c.Selfsame != "" && !c.Workspace {
		return &refusal{"--selfsame needs --workspace"}
	}
	if err := scaffold.CheckName(c.Agent); err != nil {
		return err
	}
	if c.Dir == "" {
		c.Dir = c.Agent
	}
	dir, err := fromCaller(c.Dir)
	if err != nil {
		return err
	}
	if c.Workspace {
		return c.workspace(std, dir)
	}
	root := scaffold.WorkspaceOf(dir)
	if root == "" {
		return &canon.InputError{File: dir, Problem: "lies in no Bazel workspace: no folder above it has a MODULE.bazel", Fix: "name a folder in one with --dir, or make one with --workspace"}
	}
	if scaffold.Ignored(root, dir) {
		return &canon.InputError{File: dir, Problem: "is ignored by the .bazelignore of " + root, Fix: "name another folder with --dir, or make a workspace of its own with --workspace"}
	}
	names, missing, err := scaffold.ModulesOf(root)
	if err != nil {
		return err
	}
	files, err := scaffold.Package(c.Agent, names)
	if err != nil {
		return err
	}
	label, err := scaffold.PackagePath(root, dir)
	if err != nil {
		return err
	}
	if err := scaffold.Place(dir, files); err != nil {
		return err
	}
	if len(missing) > 0 {
		fmt.Fprintf(std.err, "selfsame: note: %s lacks what the package loads; add:\n  %s\n", filepath.Join(root, "MODULE.bazel"), strings.Join(missing, "\n  "))
	}
	fmt.Fprintf(std.out, "%s: %d files, all data in them synthetic\nnext:\n  bazel test //%s/...\n  bazel build //%s:manifest //%s:profile\n", c.Dir, len(files), label, label, label)
	return nil
}

func (c *initCommand) workspace(std streams, dir string) error {
	checkout, err := c.checkout(dir)
	if err != nil {
		return err
	}
	files, err := scaffold.Workspace(c.Agent, checkout)
	if err != nil {
		return err
	}
	if err := scaffold.Place(dir, files); err != nil {
		return err
	}
	if outer := scaffold.WorkspaceOf(filepath.Dir(dir)); outer != "" && !scaffold.Ignored(outer, dir) {
		fmt.Fprintf(std.err, "selfsame: note: %s lies in the workspace %s; name it in the .bazelignore there\n", dir, outer)
	}
	if checkout == "" {
		fmt.Fprintf(std.err, "selfsame: note: MODULE.bazel asks a registry for selfsame; where none has it, add:\n  local_path_override(module_name = \"selfsame\", path = \"CHECKOUT\")\n")
	}
	fmt.Fprintf(std.out, "%s: %d files, all data in them synthetic\nnext:\n  cd %s\n  bazel test //...\n  bazel build //%s:manifest //%s:profile\n", c.Dir, len(files), shellWord(c.Dir), c.Agent, c.Agent)
	return nil
}

// checkout is the way from the workspace dir to the checkout of Selfsame: relative where it was named so.
func (c *initCommand) checkout(dir string) (string, error) {
	if c.Selfsame == "" {
		return "", nil
	}
	at, err := fromCaller(c.Selfsame)
	if err != nil {
		return "", err
	}
	if !scaffold.IsSelfsame(at) {
		return "", &canon.InputError{File: at, Key: "--selfsame", Problem: "is no checkout of Selfsame: its MODULE.bazel does not say so", Fix: "name the folder that holds it"}
	}
	if filepath.IsAbs(c.Selfsame) {
		return at, nil
	}
	below, err := filepath.Rel(dir, at)
	return filepath.ToSlash(below), err
}

// fromCaller returns path as an absolute one. Bazel runs a program in its own folder, and says in
// BUILD_WORKING_DIRECTORY where its caller is.
func fromCaller(path string) (string, error) {
	if filepath.IsAbs(path) {
		return filepath.Clean(path), nil
	}
	base := os.Getenv("BUILD_WORKING_DIRECTORY")
	if base == "" {
		var err error
		if base, err = os.Getwd(); err != nil {
			return "", err
		}
	}
	base, err := filepath.EvalSymlinks(base)
	return filepath.Join(base, path), err
}

func shellWord(text string) string {
	if strings.Trim(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789/._-") == "" {
		return text
	}
	return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
}

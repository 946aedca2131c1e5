// Command ruledocs writes docs/rules.md, the reference of the public rules, from their docstrings. It is run in
// the repository's root, or by bazel run.
package main

import (
	"fmt"
	"os"
	"path/filepath"

	"selfsame.dev/selfsame/internal/atomicfile"
)

const (
	public = "rules/defs.bzl"
	output = "docs/rules.md"
)

func main() {
	root := os.Getenv("BUILD_WORKSPACE_DIRECTORY")
	page, err := render(public, under(root))
	if err == nil {
		err = atomicfile.Write(filepath.Join(root, output), page, 0o644)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "ruledocs:", err)
		os.Exit(1)
	}
}

// under reads files by slash path below root.
func under(root string) func(string) ([]byte, error) {
	return func(name string) ([]byte, error) { return os.ReadFile(filepath.Join(root, filepath.FromSlash(name))) }
}

package source

import (
	"fmt"
	"io"
	"os"
	"strings"

	"selfsame.dev/selfsame/internal/canon"
	"selfsame.dev/selfsame/internal/tree"
	"selfsame.dev/selfsame/internal/tree/disk"
	"selfsame.dev/selfsame/manifest"
	"selfsame.dev/selfsame/manifest/bundle"
)

// bundled returns the source bundle as the origin of a root, and refuses, naming the paths, inputs that are not
// exactly those in it. What is no input may differ, in the folder and in the bundle.
func bundled(part, file, folder string, inputs *tree.Selector) (manifest.Origin, error) {
	out := manifest.Origin{Root: part, Kind: manifest.OriginBundle}
	held, s, err := listBundle(file, inputs)
	if err != nil {
		return out, canon.InFile(file, err)
	}
	out.Bundle = &s.SHA256
	there, err := disk.Hash(folder, disk.Options{Selection: inputs.Selection()})
	if err != nil {
		return out, err
	}
	var names []string
	for _, d := range tree.Diff(held, there) {
		names = append(names, fmt.Sprintf("%s (%s)", tree.Display(d.Path), d.Kind))
	}
	if len(names) == 0 {
		return out, nil
	}
	shown := strings.Join(names[:min(len(names), 10)], ", ")
	if more := len(names) - 10; more > 0 {
		shown += fmt.Sprintf(" and %d more", more)
	}
	return out, &canon.InputError{File: part, Problem: fmt.Sprintf("inputs are not those of bundle %.12s: %s", s.SHA256, shown),
		Fix: "bundle the folder anew with selfsame bundle create, or extract the bundle and use that"}
}

// listBundle checks a whole bundle and returns the inputs in it.
func listBundle(file string, inputs *tree.Selector) ([]tree.Entry, bundle.Summary, error) {
	var list []tree.Entry
	f, err := os.Open(file)
	if err != nil {
		return nil, bundle.Summary{}, err
	}
	defer f.Close()
	plain, err := bundle.Decompress(f)
	if err != nil {
		return nil, bundle.Summary{}, err
	}
	defer plain.Close()
	b, err := bundle.NewReader(plain, bundle.DefaultLimits)
	if err != nil {
		return nil, bundle.Summary{}, err
	}
	for {
		e, err := b.Next()
		if err == io.EOF {
			return list, b.Summary(), nil
		}
		if err != nil {
			return nil, bundle.Summary{}, err
		}
		if inputs.Selects(e.Path) {
			list = append(list, e)
		}
	}
}

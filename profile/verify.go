package profile

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"selfsame.dev/selfsame/internal/canon"
	"selfsame.dev/selfsame/internal/tree"
	"selfsame.dev/selfsame/internal/tree/disk"
	"selfsame.dev/selfsame/manifest"
)

// Verify holds the folder dir against the profile that m gives: the exact set of files and folders,
// types, modes, sizes and digests. Whatever else is there (memory, sessions, state, a pairing store, environment
// files, links, empty folders) is a difference. The profile manifest in the folder is not believed; it is
// compared as any other file. The error is for what could not be read.
func Verify(dir string, m *manifest.Manifest) ([]manifest.Difference, error) {
	files, err := Files(m)
	if err != nil {
		return nil, err
	}
	return VerifyFiles(dir, files)
}

// VerifyFiles is [Verify] with what [Files] gave.
func VerifyFiles(dir string, files []File) ([]manifest.Difference, error) {
	out, err := modes(dir, files)
	if err != nil {
		return nil, err
	}
	have, err := disk.Hash(dir, disk.Options{})
	content, err := compare(files, have, err)
	return sorted(append(out, content...)), err
}

// compare turns what a reader found, or refused, into differences.
func compare(files []File, have []tree.Entry, err error) ([]manifest.Difference, error) {
	var many tree.Refusals
	var one *canon.InputError
	switch {
	case errors.As(err, &many):
	case errors.As(err, &one):
		many = tree.Refusals{one}
	case err != nil:
		return nil, err
	}
	var out []manifest.Difference
	for _, r := range many {
		key := cmp.Or(r.Key, ".")
		out = append(out, manifest.Difference{Surface: surfaceOf(key), Class: manifest.Refused, Path: key, Expected: "a regular file", Actual: r.Problem})
	}
	if len(out) == 0 {
		for _, d := range tree.Diff(entries(files), have) {
			out = append(out, manifest.FileDifference(surfaceOf(d.Path), d))
		}
	}
	return out, nil
}

// modes walks the folder once for what hashing does not see: folders, types and modes.
func modes(dir string, files []File) ([]manifest.Difference, error) {
	want := map[string]fs.FileMode{".": fs.ModeDir | FolderMode}
	for _, f := range files {
		want[f.Path] = f.Mode
	}
	for _, name := range folders(files) {
		want[name] = fs.ModeDir | FolderMode
	}
	var out []manifest.Difference
	err := filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		relative, relErr := filepath.Rel(dir, name)
		path := filepath.ToSlash(relative)
		if err != nil {
			if errors.Is(err, fs.ErrPermission) {
				out = append(out, manifest.Difference{Surface: surfaceOf(path), Class: manifest.Refused, Path: path, Expected: "a readable folder", Actual: "cannot be read"})
				return nil
			}
			return err
		}
		if relErr != nil {
			return relErr
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		expected, known := want[path]
		switch {
		case !known && d.IsDir():
			out = append(out, manifest.Difference{Surface: surfaceOf(path), Class: manifest.Unexpected, Path: path, Actual: "a folder"})
		case known && info.Mode() != expected:
			out = append(out, manifest.Difference{Surface: surfaceOf(path), Class: manifest.Changed, Path: path,
				Expected: fmt.Sprintf("mode %v", expected), Actual: fmt.Sprintf("mode %v", info.Mode())})
		}
		return nil
	})
	if errors.Is(err, fs.ErrNotExist) {
		if _, statErr := os.Lstat(dir); statErr == nil {
			return nil, &canon.InputError{File: dir, Problem: "changed while it was read", Fix: "verify when nothing writes to it"}
		}
	}
	return out, err
}

// surfaceOf says to which surface a path of a compiled profile belongs.
func surfaceOf(path string) manifest.Surface {
	switch path {
	case manifest.ConfigFile:
		return manifest.RuntimeConfig
	case manifest.SoulFile, manifest.IdentityFile:
		return manifest.CompiledViews
	}
	if surface, ok := manifest.FolderSurface(path); ok {
		return surface
	}
	return manifest.CompiledProfile
}

func sorted(list []manifest.Difference) []manifest.Difference {
	slices.SortStableFunc(list, func(a, b manifest.Difference) int {
		return cmp.Or(cmp.Compare(a.Path, b.Path), cmp.Compare(a.Class, b.Class))
	})
	return list
}

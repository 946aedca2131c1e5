package canary

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"selfsame.dev/selfsame/internal/canon"
	"selfsame.dev/selfsame/manifest"
)

// Surfaces of drift that the canary itself knows, beside those of the manifest.
const (
	SurfaceProgram = "runtime-program"  // the program that is started
	SurfaceAnswer  = "answer"           // the answers of the two starts
	SurfaceProfile = "compiled-profile" // the compiled folder; an injection puts memory there
)

// The compiled folder can be made to drift in one of its parts ("compiled-profile/SOUL.md",
// "compiled-profile/skills"), or in its shape.
const (
	profilePart  = SurfaceProfile + "/"
	profileGone  = SurfaceProfile + ":missing" // a file is removed
	profileMode  = SurfaceProfile + ":mode"    // a file's permissions change
	profileLink  = SurfaceProfile + ":link"    // a file becomes a link to a copy of itself
	memoryFile   = "memories/MEMORY.md"
	injectedByte = "\n"
)

// inject makes the drift that was asked for.
func (r *run) inject(base, profile string) error {
	surface := r.Inject.Surface
	soul := filepath.Join(profile, "SOUL.md")
	switch {
	case surface == SurfaceProgram:
		copied := filepath.Join(base, "program")
		data, err := os.ReadFile(r.program)
		if err != nil {
			return err
		}
		r.program = copied
		return os.WriteFile(copied, append(data, injectedByte...), 0o700)
	case surface == SurfaceProfile:
		name := filepath.Join(profile, memoryFile)
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			return err
		}
		return os.WriteFile(name, []byte("planted\n"), 0o644)
	case surface == profileGone:
		return os.Remove(soul)
	case surface == profileMode:
		return os.Chmod(soul, 0o600)
	case surface == profileLink:
		elsewhere := filepath.Join(base, "elsewhere")
		if err := os.Rename(soul, elsewhere); err != nil {
			return err
		}
		return os.Symlink(elsewhere, soul)
	case strings.HasPrefix(surface, profilePart):
		return spoil(filepath.Join(profile, strings.TrimPrefix(surface, profilePart)), surface)
	}
	if surface == string(manifest.CompiledViews) { // generated, so only the compiled file can drift
		return spoil(soul, surface)
	}
	return r.Agent.Tamper(surface)
}

// spoil appends to a file, or to the first file of a folder.
func spoil(name, surface string) error {
	target := ""
	err := filepath.WalkDir(name, func(at string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() {
			return err
		}
		target = at
		return fs.SkipAll
	})
	if err != nil || target == "" {
		return UnknownSurface(surface)
	}
	f, err := os.OpenFile(target, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = f.WriteString(injectedByte)
	return err
}

// Surfaces lists what can be made to drift; below the compiled profile, any file or folder can, by its path.
func Surfaces() []string {
	all := []string{string(manifest.CompiledViews), SurfaceProgram, SurfaceProfile, profileGone, profileMode, profileLink, profilePart + "PATH"}
	for surface := range tampering {
		all = append(all, string(surface))
	}
	slices.Sort(all)
	return all
}

// UnknownSurface is the error for a surface that cannot be made to drift.
func UnknownSurface(surface string) error {
	return &canon.InputError{File: "--inject-drift", Key: surface, Problem: "there is no such surface", Fix: "name one of " + strings.Join(Surfaces(), ", ")}
}

// ParseInjection reads SURFACE, SURFACE@first or SURFACE@second, a surface being one of [Surfaces]; without a
// start it is the second.
func ParseInjection(text string) (*Injection, error) {
	surface, when, found := strings.Cut(text, "@")
	start, known := map[string]int{"first": 1, "second": 2}[when]
	if !found {
		start, known = 2, true
	}
	if surface == "" || !known {
		return nil, &canon.InputError{File: "--inject-drift", Key: text, Problem: "not SURFACE[@first|second]", Fix: "write, for instance, skills@first"}
	}
	part, below := strings.CutPrefix(surface, profilePart)
	if below && !filepath.IsLocal(part) || !below && !slices.Contains(Surfaces(), surface) {
		return nil, UnknownSurface(surface)
	}
	return &Injection{Surface: surface, Start: start}, nil
}

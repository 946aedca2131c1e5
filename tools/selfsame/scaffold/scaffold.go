// Package scaffold makes the files of a new agent's Bazel package, and of a workspace around it. They are a function
// of the agent's name (and of what the workspace calls its modules): the same bytes on every machine.
package scaffold

import (
	"bytes"
	"embed"
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strings"

	"selfsame.dev/selfsame/internal/canon"
	"selfsame.dev/selfsame/manifest"
)

// File is one file of a scaffold: slash path, content, permission bits.
type File struct {
	Path string
	Data []byte
	Mode fs.FileMode
}

// The static files; AGENT stands for the agent's name and PACKAGE for the Python distribution made of it.
//
//go:embed all:files
var static embed.FS

// NameRule says which names an agent may have: the pattern of every format that names one.
const NameRule = "1 to 64 of a-z, 0-9, _ and -, beginning with a letter or digit"

var nameRule = regexp.MustCompile(`^[a-z0-9][a-z0-9_-]{0,63}$`)

// CheckName refuses what breaks [NameRule].
func CheckName(agent string) error {
	if !nameRule.MatchString(agent) {
		return &canon.InputError{Key: fmt.Sprintf("%q", agent), Problem: "is no name of an agent", Fix: "take " + NameRule}
	}
	return nil
}

// Package returns the files of the package of an agent, sorted by path. A name that breaks [NameRule] or
// looks like a credential is refused with a [*canon.InputError].
func Package(agent string, names Modules) ([]File, error) {
	if err := CheckName(agent); err != nil {
		return nil, err
	}
	files, err := staticFiles(agent)
	if err != nil {
		return nil, err
	}
	for _, make := range []func(string) ([]File, error){database, question, repair, memory} {
		some, err := make(agent)
		if err != nil {
			return nil, err
		}
		files = append(files, some...)
	}
	pin, err := pinned(files)
	if err != nil {
		return nil, err
	}
	files = append(files, File{"BUILD.bazel", buildFile(agent, names), 0o644}, pin)
	slices.SortFunc(files, func(a, b File) int { return strings.Compare(a.Path, b.Path) })
	for _, f := range files {
		// Nothing that is pinned may hold a credential: say so of the name, not of a file made from it.
		if manifest.HoldsSecret(f.Data) {
			return nil, &canon.InputError{Key: fmt.Sprintf("%q", agent), Problem: "looks like a credential", Fix: "take another name"}
		}
	}
	return files, nil
}

func staticFiles(agent string) ([]File, error) {
	fill := strings.NewReplacer("AGENT", agent, "PACKAGE", strings.ReplaceAll(agent, "-", "_")+"_agent")
	var files []File
	err := fs.WalkDir(static, "files", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := static.ReadFile(name)
		mode := fs.FileMode(0o644)
		if bytes.HasPrefix(data, []byte("#!")) {
			mode = 0o755
		}
		files = append(files, File{fill.Replace(strings.TrimPrefix(name, "files/")), []byte(fill.Replace(string(data))), mode})
		return err
	})
	return files, err
}

// evidence is the static file that the agent's row and its memory rest on.
func evidence(agent string) (name string, data []byte, err error) {
	files, err := staticFiles(agent)
	if err != nil {
		return "", nil, err
	}
	i := slices.IndexFunc(files, func(f File) bool { return path.Dir(f.Path) == "evidence" })
	return files[i].Path, files[i].Data, nil
}

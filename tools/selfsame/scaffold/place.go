package scaffold

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"

	"github.com/bazelbuild/buildtools/build"

	"selfsame.dev/selfsame/internal/atomicfile"
	"selfsame.dev/selfsame/internal/canon"
)

// Place makes the folder dir with files in it, and the folders above it that are missing, with one rename: it
// appears whole or not at all. What exists is never touched: a [*canon.InputError] names it.
func Place(dir string, files []File) (err error) {
	if err := absent(dir, files); err != nil {
		return err
	}
	// All that is missing comes into being at once, so it is made beside the uppermost of it.
	top := dir
	for {
		parent := filepath.Dir(top)
		if info, err := os.Stat(parent); err == nil && info.IsDir() {
			break
		} else if err == nil {
			return &canon.InputError{File: parent, Problem: "is no folder", Fix: "name another --dir"}
		} else if !missing(err) {
			return err
		}
		top = parent
	}
	staged, err := os.MkdirTemp(filepath.Dir(top), ".selfsame-init-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(staged)) }()
	below, err := filepath.Rel(filepath.Dir(top), dir)
	if err != nil {
		return err
	}
	for _, f := range files {
		if err := write(filepath.Join(staged, below, filepath.FromSlash(f.Path)), f); err != nil {
			return err
		}
	}
	// A rename of a folder replaces no file and no folder that holds anything.
	if err := os.Rename(filepath.Join(staged, filepath.Base(top)), top); err != nil {
		return err
	}
	return atomicfile.SyncDir(filepath.Dir(top))
}

func absent(dir string, files []File) error {
	if _, err := os.Lstat(dir); missing(err) {
		return nil
	} else if err != nil {
		return err
	}
	for _, f := range files {
		at := filepath.Join(dir, filepath.FromSlash(f.Path))
		if _, err := os.Lstat(at); err == nil {
			return &canon.InputError{File: at, Problem: "exists, and nothing is overwritten", Fix: "name a folder that does not exist with --dir"}
		}
	}
	return &canon.InputError{File: dir, Problem: "exists, and only a new folder is made", Fix: "name a folder that does not exist with --dir"}
}

// missing also holds for what would be below a file.
func missing(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR)
}

func write(at string, f File) error {
	if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
		return err
	}
	file, err := os.OpenFile(at, os.O_WRONLY|os.O_CREATE|os.O_EXCL, f.Mode)
	if err != nil {
		return err
	}
	_, err = file.Write(f.Data)
	return errors.Join(err, file.Sync(), file.Close())
}

// WorkspaceOf returns the Bazel workspace that the folder dir is or lies in, or "".
func WorkspaceOf(dir string) string {
	for at := dir; ; at = filepath.Dir(at) {
		for _, boundary := range []string{"MODULE.bazel", "REPO.bazel", "WORKSPACE.bazel", "WORKSPACE"} {
			if info, err := os.Stat(filepath.Join(at, boundary)); err == nil && !info.IsDir() {
				return at
			}
		}
		if at == filepath.Dir(at) {
			return ""
		}
	}
}

// Ignored reports whether the .bazelignore of the workspace root names the folder dir or one above it.
func Ignored(root, dir string) bool {
	data, _ := os.ReadFile(filepath.Join(root, ".bazelignore")) // none ignores nothing
	below, err := filepath.Rel(root, dir)
	if err != nil {
		return false
	}
	for line := range strings.Lines(string(data)) {
		if name := strings.TrimSuffix(strings.TrimSpace(line), "/"); name != "" && strings.HasPrefix(filepath.ToSlash(below)+"/", name+"/") {
			return true
		}
	}
	return false
}

var segment = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9._-]*$`)

// PackagePath returns the label path of the folder dir below root.
func PackagePath(root, dir string) (string, error) {
	below, err := filepath.Rel(root, dir)
	if err != nil {
		return "", err
	}
	below = filepath.ToSlash(below)
	if below == "." { // the root's own package
		return "", nil
	}
	for _, s := range strings.Split(below, "/") {
		if !segment.MatchString(s) {
			return "", &canon.InputError{File: dir, Problem: fmt.Sprintf("%q is no good name for a package", s), Fix: "use letters, digits, _, . and -, and begin with a letter, digit or _"}
		}
	}
	return below, nil
}

// ModulesOf says by which names the workspace's MODULE.bazel knows the modules that a package loads from, and
// which lines it lacks. (It may include them from another file.)
func ModulesOf(root string) (names Modules, lacks []string, err error) {
	names = DefaultModules
	name := filepath.Join(root, "MODULE.bazel")
	data, err := os.ReadFile(name)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return names, nil, err
	}
	f, err := build.ParseModule(name, data)
	if err != nil {
		return names, nil, &canon.InputError{File: name, Problem: err.Error(), Fix: "repair it"}
	}
	for _, m := range []struct {
		name, version string
		repository    *string
	}{{"rules_shell", rulesShellVersion, &names.RulesShell}, {"selfsame", version, &names.Selfsame}} {
		found := false
		for _, kind := range []string{"bazel_dep", "module"} {
			for _, r := range f.Rules(kind) {
				if r.Name() != m.name {
					continue
				}
				found = true
				if as := r.AttrString("repo_name"); as != "" {
					*m.repository = as
				}
			}
		}
		if !found {
			lacks = append(lacks, fmt.Sprintf("bazel_dep(name = %q, version = %q)", m.name, m.version))
		}
	}
	return names, lacks, nil
}

// IsSelfsame reports whether the folder dir is a checkout of Selfsame.
func IsSelfsame(dir string) bool {
	name := filepath.Join(dir, "MODULE.bazel")
	data, err := os.ReadFile(name)
	if err != nil {
		return false
	}
	f, err := build.ParseModule(name, data)
	return err == nil && len(f.Rules("module")) == 1 && f.Rules("module")[0].Name() == "selfsame"
}

package disk

import (
	"cmp"
	"crypto/sha256"
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"selfsame.dev/selfsame/internal/tree"
)

// File is one file of a listed tree: its path in the tree, and where it is, as a relative
// slash path (an exec path).
type File struct {
	Logical string
	Path    string
}

// HashFiles reads the listed files as [Hash] reads those of a folder, and returns them in
// byte order of logical path. Paths begin at the folder base, "" being the current one.
//
// In a Bazel action files may be links, made by Bazel and not part of the tree. If base is
// an exec root, that is a folder in one called "execroot", two kinds are followed:
//
//   - A sandbox stages a file as a link to the same path below the real exec root. Its
//     target must be absolute, an exec root followed by Path; only the configuration in
//     "bazel-out/CONFIGURATION/..." may differ, which path mapping rewrites.
//   - The exec root itself stages the top of each repository by links. The first element of
//     Path, or the first three of "external/REPOSITORY/FIRST/...", may be such a link,
//     absolute and to a real file or folder of the same name; Bazel may chain further links for the folder of a
//     repository.
//
// Every other link, as the file or as a folder on the way, is one in the tree, and refused by logical path.
func HashFiles(list []File, base string, opts Options) ([]tree.Entry, error) {
	selector, err := opts.Selection.Compile()
	if err != nil {
		return nil, err
	}
	if base, err = filepath.Abs(base); err != nil {
		return nil, err
	}
	// The name of the current folder may itself be a link, such as /proc/self/cwd.
	if base, err = filepath.EvalSymlinks(base); err != nil {
		return nil, err
	}
	list = slices.DeleteFunc(slices.Clone(list), func(f File) bool { return !selector.Selects(f.Logical) })
	slices.SortStableFunc(list, func(a, b File) int { return cmp.Compare(a.Logical, b.Logical) })

	var faults faults
	entries := make([]tree.Entry, len(list))
	names := make([]string, len(list))
	links := staging{folders: map[string]step{}}
	for i, file := range list {
		entries[i].Path = file.Logical
		if !filepath.IsLocal(filepath.FromSlash(file.Path)) || path.Clean(file.Path) != file.Path {
			faults.add(file.Logical, refuse(file.Logical, "is listed at "+tree.Display(file.Path)+", not a clean relative path", "list the file below the exec root"))
			continue
		}
		name, err := links.resolve(base, file.Path, false)
		if err != nil {
			faults.add(file.Logical, named(file, err))
			continue
		}
		names[i] = name
	}

	var next atomic.Int64
	var mu sync.Mutex
	var workers sync.WaitGroup
	for range min(opts.workers(), len(list)) {
		workers.Go(func() {
			h := newHasher(opts)
			defer h.release()
			read := h.at
			if opts.plain {
				read = func(name string, entry *tree.Entry) error {
					return hashFilePlain(entry, name, os.Lstat, os.Open, opts, sha256.New(), h.buf[:])
				}
			}
			for i := next.Add(1) - 1; i < int64(len(list)); i = next.Add(1) - 1 {
				if names[i] == "" {
					continue
				}
				if err := read(names[i], &entries[i]); err != nil {
					mu.Lock()
					faults.add(entries[i].Path, failed(entries[i].Path, err))
					mu.Unlock()
				}
			}
		})
	}
	workers.Wait()
	return faults.settle(entries)
}

// named makes an error of resolve one about the listed file.
func named(file File, err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return refuse(file.Logical, "is listed at "+tree.Display(file.Path)+", where no file is", "list files that exist")
	}
	var link *linkError
	if !errors.As(err, &link) {
		return failed(file.Logical, err)
	}
	problem := "is a symbolic link, not a regular file"
	if link.path != file.Path {
		problem = "is listed below " + tree.Display(link.path) + ", a symbolic link"
	}
	return refuse(file.Logical, problem, "put the file itself there, or exclude it by a pattern")
}

// linkError says that path, an exec path or the beginning of one, is a link of the tree.
type linkError struct{ path string }

func (e *linkError) Error() string { return e.path + " is a symbolic link" }

// staging finds where Bazel's links lead. It remembers the folders it has looked at.
type staging struct{ folders map[string]step }

// step is what is known of one folder: that it is staged by a link, or why it is refused.
type step struct {
	link bool
	err  error
}

// resolve returns the name of the file that exec stands for below base, a real absolute
// folder. Hopped says that a link of the sandbox led to base.
func (s *staging) resolve(base, exec string, hopped bool) (string, error) {
	free := 0 // how many leading elements the exec root may stage by links
	if isExecRoot(base) {
		if free = 1; strings.HasPrefix(exec, "external/") {
			free = 3
		}
	}
	elements := strings.Split(exec, "/")
	sandbox := !hopped
	for i := 1; i < len(elements); i++ {
		way := s.folder(base, strings.Join(elements[:i], "/"), i <= free)
		if way.err != nil {
			return "", way.err
		}
		sandbox = sandbox && !way.link // a sandbox links files only
	}
	name := fromSlash(base, exec)
	info, err := os.Lstat(name)
	if err != nil {
		return "", err
	}
	if info.Mode()&fs.ModeSymlink == 0 {
		return name, nil
	}
	target, err := os.Readlink(name)
	if err != nil {
		return "", err
	}
	link := &linkError{exec}
	if !isExecRoot(base) {
		return "", link
	}
	if to, rest, ok := splitTarget(filepath.ToSlash(target), exec); ok && sandbox && isExecRoot(to) {
		name, err := s.resolve(to, rest, true)
		var inner *linkError
		if errors.Is(err, fs.ErrNotExist) || errors.As(err, &inner) && inner.path == rest {
			err = link
		}
		return name, err
	}
	if len(elements) > free || !staged(target, exec) {
		return "", link
	}
	return target, nil // read as any other, so not if it is a link
}

// folder makes sure that the folder at the beginning of an exec path is no link, or if it
// may be staged, one that the exec root has.
func (s *staging) folder(base, exec string, free bool) step {
	name := fromSlash(base, exec)
	known, ok := s.folders[name]
	if !ok {
		known.link, known.err = look(name, exec, free)
		s.folders[name] = known
	}
	return known
}

func look(name, exec string, free bool) (link bool, err error) {
	info, err := os.Lstat(name)
	switch {
	case err != nil || info.IsDir():
		return false, err
	case info.Mode()&fs.ModeSymlink == 0:
		return false, fs.ErrNotExist
	case !free:
		return false, &linkError{exec}
	}
	target, err := os.Readlink(name)
	if err != nil {
		return false, err
	}
	ok := staged(target, exec)
	if exec == "external" || path.Dir(exec) == "external" {
		ok = true // Bazel's own links, to any name
		info, err = os.Stat(name)
	} else {
		info, err = os.Lstat(target)
	}
	if !ok || err != nil || !info.IsDir() {
		return false, &linkError{exec}
	}
	return true, nil
}

// staged reports whether target can be that of a link in the exec root: absolute, and of
// the same name as what it stands for.
func staged(target, exec string) bool {
	return filepath.IsAbs(target) && filepath.Base(target) == path.Base(exec)
}

// isExecRoot reports whether folder is named like Bazel's "execroot/WORKSPACE".
func isExecRoot(folder string) bool {
	return filepath.Base(filepath.Dir(folder)) == "execroot"
}

// splitTarget parts the absolute target of a link into an exec root and an exec path, which
// is exec or, with path mapping, exec in another configuration.
func splitTarget(target, exec string) (base, rest string, ok bool) {
	if !path.IsAbs(target) || path.Clean(target) != target {
		return "", "", false
	}
	if base, ok = strings.CutSuffix(target, "/"+exec); ok {
		return base, exec, base != ""
	}
	elements := strings.SplitN(exec, "/", 3)
	if len(elements) < 3 || elements[0] != "bazel-out" {
		return "", "", false
	}
	if base, ok = strings.CutSuffix(target, "/"+elements[2]); !ok {
		return "", "", false
	}
	base, configuration := path.Split(base)
	base, ok = strings.CutSuffix(base, "/bazel-out/")
	return base, "bazel-out/" + configuration + "/" + elements[2], ok
}

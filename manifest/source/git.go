package source

import (
	"bytes"
	"crypto/sha1"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"selfsame.dev/selfsame/internal/canon"
	"selfsame.dev/selfsame/internal/tree"
	"selfsame.dev/selfsame/manifest"
)

// ContentAddressed is the origin of the documents of a list.
func ContentAddressed() []manifest.Origin { return []manifest.Origin{contentAddressed(partSource)} }

// contentAddressed says that inputs came by content, as under Bazel.
func contentAddressed(part string) manifest.Origin {
	return manifest.Origin{Root: part, Kind: manifest.OriginContentAddressed}
}

// CleanGit returns the Git commit of every root that p names, and refuses, naming the paths, inputs that are
// not exactly, to the byte, those of the commit: modified, staged, untracked, ignored by Git, hidden from it, or converted
// at checkout. What is no
// input (a credential file, a session, what a code root excludes) may be dirty.
func CleanGit(p Paths) ([]manifest.Origin, error) { return Origins(p, nil) }

// Origins is [CleanGit] but for the roots that bundles names a source bundle of ("hermes-root": file): these are
// bound to it in place of a commit, and refused when their inputs are not exactly those in it.
func Origins(p Paths, bundles map[string]string) ([]manifest.Origin, error) {
	var out []manifest.Origin
	bound := 0
	for _, root := range []struct {
		part, folder string
		input        func() (*tree.Selector, error)
	}{
		{partTemplate, p.ProfileTemplate, func() (*tree.Selector, error) {
			return tree.Selection{Include: []string{manifest.ConfigFile, manifest.SkillsFolder + "/**", manifest.PluginsFolder + "/**", manifest.DatabaseToolsDir + "/**"}}.Compile()
		}},
		{partHermes, p.HermesRoot, codeInputs(p.HermesRoot)},
		{partDeployment, p.DeploymentRoot, codeInputs(p.DeploymentRoot)},
		{partSource, p.SourceRoot, func() (*tree.Selector, error) { return p.documents() }},
	} {
		if root.folder == "" {
			continue
		}
		selector, err := root.input()
		if err != nil {
			return nil, err
		}
		bind := cleanGit
		if file, ok := bundles[root.part]; ok {
			bound++
			bind = func(part, folder string, inputs *tree.Selector) (manifest.Origin, error) {
				return bundled(part, file, folder, inputs)
			}
		}
		origin, err := bind(root.part, root.folder, selector)
		if err != nil {
			return nil, err
		}
		out = append(out, origin)
	}
	if bound < len(bundles) {
		return nil, &canon.InputError{Key: "--bundle", Problem: "names a root that is not read here", Fix: "give ROOT=FILE with one of the roots of this command"}
	}
	return out, nil
}

func codeInputs(root string) func() (*tree.Selector, error) {
	return func() (*tree.Selector, error) {
		r, err := declaredRoot(root)
		if err != nil {
			return nil, err
		}
		return r.Selection().Compile()
	}
}

// CodeSelection returns which files of a code root are inputs, as the declaration at its top says.
func CodeSelection(root string) (tree.Selection, error) {
	r, err := declaredRoot(root)
	return r.Selection(), err
}

func declaredRoot(root string) (manifest.CodeRoot, error) {
	data, err := os.ReadFile(filepath.Join(root, manifest.CodeRootFile))
	if errors.Is(err, os.ErrNotExist) {
		return manifest.CodeRoot{}, nil
	}
	if err != nil {
		return manifest.CodeRoot{}, err
	}
	return manifest.DecodeCodeRoot(manifest.CodeRootFile, data)
}

// documents selects the documents and evidence files of a source root.
func (p Paths) documents() (*tree.Selector, error) {
	s, err := Documents(p)
	if err != nil {
		return nil, err
	}
	paths := []string{s.Fingerprint.Path, s.Constitution.Path, s.Database.Path}
	for _, e := range s.Evidence.Entries {
		paths = append(paths, e.Path)
	}
	for i, path := range paths {
		paths[i] = literal.Replace(path)
	}
	return tree.Selection{Include: paths}.Compile()
}

// literal makes a pattern of a path; what has no meaning in patterns is matched by "?".
var literal = strings.NewReplacer("*", "?", "[", "?", "]", "?", "{", "?", "}", "?")

func cleanGit(part, folder string, inputs *tree.Selector) (manifest.Origin, error) {
	out := manifest.Origin{Root: part, Kind: manifest.OriginGit}
	if _, err := os.Stat(folder); err != nil {
		return out, err
	}
	top, err := git(folder, "rev-parse", "--show-toplevel", "--show-prefix")
	if err == nil {
		var commit []byte
		commit, err = git(folder, "rev-parse", "--verify", "HEAD^{commit}")
		out.Commit = strings.TrimSpace(string(commit))
	}
	var failed *exec.ExitError
	if errors.As(err, &failed) {
		if out.Commit == "" && !strings.Contains(err.Error(), "not a git repository") && !strings.Contains(err.Error(), "a single revision") {
			return out, &canon.InputError{File: folder, Problem: "Git does not say which commit it is of: " + err.Error(), Fix: "do what Git says"} // an owner it does not trust, say
		}
		return out, &canon.InputError{File: folder, Problem: "is in no Git work tree with a commit, so nothing says where its files came from",
			Fix: "commit the inputs, or build with Bazel, where inputs are content-addressed"}
	}
	if err != nil {
		return out, err
	}
	// Two lines: the top of the work tree, and folder below it.
	lines := strings.SplitN(string(top), "\n", 2)
	prefix := strings.TrimSuffix(lines[len(lines)-1], "\n")
	if same, err := sameFolder(folder, filepath.Join(lines[0], prefix)); err != nil {
		return out, err
	} else if !same {
		return out, &canon.InputError{File: folder, Problem: "the work tree of its Git repository is elsewhere: " + tree.Display(lines[0]),
			Fix: "remove core.worktree from the configuration of that repository"}
	}
	out.Path = strings.TrimSuffix(prefix, "/")
	if out.Path == "" {
		out.Path = "."
	}

	var dirty []string
	note := func(path string) {
		relative, inside := strings.CutPrefix(path, prefix)
		folder, isFolder := strings.CutSuffix(relative, "/")
		if inside && (!isFolder && inputs.Selects(relative) || isFolder && inputs.Enters(folder)) {
			dirty = append(dirty, path)
		}
	}
	status, err := git(folder, "status", "--porcelain=v2", "-z", "--untracked-files=all", "--ignored=traditional", "--no-renames", "--ignore-submodules=none", "--", ".")
	if err != nil {
		return out, err
	}
	for _, record := range records(status) {
		// "1 XY sub mH mI mW hH hI path", "u XY sub m1 m2 m3 mW h1 h2 h3 path", "? path", "! path"
		skip := map[byte]int{'1': 8, 'u': 10, '?': 1, '!': 1}[record[0]]
		if fields := strings.SplitN(record, " ", skip+1); skip > 0 && len(fields) == skip+1 {
			note(fields[skip])
		}
	}
	// Status believes times, flags and filters; what is read are bytes.
	if err := differing(folder, out.Commit, prefix, "", inputs, func(path string) { dirty = append(dirty, path) }); err != nil {
		return out, err
	}
	if len(dirty) == 0 {
		return out, nil
	}
	slices.Sort(dirty)
	dirty = slices.Compact(dirty)
	for i, path := range dirty {
		dirty[i] = tree.Display(path)
	}
	shown := dirty[:min(len(dirty), 10)]
	names := strings.Join(shown, ", ")
	if more := len(dirty) - len(shown); more > 0 {
		names += fmt.Sprintf(" and %d more", more)
	}
	return out, &canon.InputError{File: part, Problem: fmt.Sprintf("inputs are not those of commit %.12s: %s", out.Commit, names),
		Fix: "commit or remove them; a commit with an unretained dirty tree is not reproducible"}
}

func sameFolder(a, b string) (bool, error) {
	one, err := os.Stat(a)
	if err != nil {
		return false, err
	}
	other, err := os.Stat(b)
	return err == nil && os.SameFile(one, other), nil
}

// differing notes every input of the commit whose bytes in folder are not those of its blob; below is where
// folder is in the root of the inputs (a submodule is a folder with a commit of its own), prefix where it is in the
// repository.
func differing(folder, commit, prefix, below string, inputs *tree.Selector, note func(path string)) error {
	entries, err := git(folder, "ls-tree", "-r", "-z", commit, ".") // of folder alone, relative to it
	if err != nil {
		return err
	}
	for _, record := range records(entries) { // "mode type object TAB path"
		head, path, _ := strings.Cut(record, "\t")
		fields := strings.Fields(head)
		at := below + path
		if len(fields) != 3 {
			return fmt.Errorf("git ls-tree: %q", record)
		}
		switch object := fields[2]; {
		case fields[1] == "commit" && inputs.Enters(at):
			if _, err := os.Stat(filepath.Join(folder, path, ".git")); err != nil {
				note(prefix + path) // not checked out
			} else if err := differing(filepath.Join(folder, path), object, prefix+path+"/", at+"/", inputs, note); err != nil {
				return err
			}
		case fields[1] == "blob" && fields[0] != "120000" && inputs.Selects(at): // links are refused by who reads the tree
			same, err := isBlob(filepath.Join(folder, path), object)
			if err != nil {
				return err
			}
			if !same {
				note(prefix + path)
			}
		}
	}
	return nil
}

// isBlob reports whether a file is the Git object: the digest of "blob SIZE NUL" and its bytes, by SHA-1 or, in
// repositories of that format, SHA-256.
func isBlob(file, object string) (bool, error) {
	info, err := os.Lstat(file)
	if err != nil || !info.Mode().IsRegular() {
		return false, nil // missing, or something else is there
	}
	f, err := os.Open(file)
	if errors.Is(err, os.ErrPermission) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	defer f.Close()
	sum := sha1.New()
	if len(object) == 2*sha256.Size {
		sum = sha256.New()
	}
	fmt.Fprintf(sum, "blob %d\x00", info.Size())
	if _, err := io.Copy(sum, f); err != nil {
		return false, err
	}
	return hex.EncodeToString(sum.Sum(nil)) == object, nil
}

func records(out []byte) []string {
	var list []string
	for _, record := range strings.Split(string(out), "\x00") {
		if record != "" {
			list = append(list, record)
		}
	}
	return list
}

// git runs Git on the repository that folder is in, whatever the environment says.
func git(folder string, args ...string) ([]byte, error) {
	cmd := exec.Command("git", append([]string{"-c", "core.fsmonitor=false", "-c", "core.untrackedCache=false", "-C", folder}, args...)...)
	for _, pair := range os.Environ() {
		if !strings.HasPrefix(pair, "GIT_") {
			cmd.Env = append(cmd.Env, pair)
		}
	}
	cmd.Env = append(cmd.Env, "GIT_OPTIONAL_LOCKS=0", "GIT_NO_REPLACE_OBJECTS=1", "GIT_TERMINAL_PROMPT=0", "LC_ALL=C")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("git %s: %w: %s", args[0], err, strings.TrimSpace(stderr.String()))
	}
	return out, nil
}

package manifest

import (
	"bytes"
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/base64"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"regexp"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"

	"selfsame.dev/selfsame/internal/canon"
	"selfsame.dev/selfsame/internal/tree"
)

// ABI is what the code runs on, read statically from the code roots: nothing is executed.
type ABI struct {
	Interpreters []Interpreter `json:"interpreters"`
	Programs     []Program     `json:"programs"`
}

// Interpreter is a Python of a code root and its curated packages, sorted by name.
type Interpreter struct {
	Root           Surface   `json:"root"`
	Implementation string    `json:"implementation"`
	Version        string    `json:"version"`
	ABITag         string    `json:"abi_tag"`
	Packages       []Package `json:"packages"`
}

// Package is one distribution: normalized name (PEP 503), exact version, and digest of its METADATA.
type Package struct {
	Name     string       `json:"name"`
	Version  string       `json:"version"`
	Path     string       `json:"path"`
	Metadata canon.Digest `json:"metadata_sha256"`
}

// Program is a Go program of a code root, by the build information in it.
type Program struct {
	Root      Surface           `json:"root"`
	Path      string            `json:"path"`
	GoVersion string            `json:"go_version"`
	Main      string            `json:"main"`
	Modules   []Module          `json:"modules"`
	Settings  map[string]string `json:"settings"`
}

// Module is a module of a Go program. Sum is its go.sum line, or "" for the main module.
type Module struct {
	Path    string `json:"path"`
	Version string `json:"version"`
	Sum     string `json:"sum"`
}

const maxInterpreted = 8 << 20 // bytes of a file whose content is read here

// readABI adds what one code root declares.
func (a *ABI) readABI(surface Surface, r Root) error {
	files := Tree{Files: r.Entries}
	entry, found := files.find(CodeRootFile)
	if !found {
		return nil
	}
	data, err := read(r.Files, entry, maxInterpreted)
	if err != nil {
		return err
	}
	declared, err := DecodeCodeRoot(CodeRootFile, data)
	if err != nil {
		return err
	}
	if p := declared.Python; p != nil {
		interpreter, err := readPython(surface, r, *p)
		if err != nil {
			return err
		}
		a.Interpreters = append(a.Interpreters, interpreter)
	}
	for _, name := range slices.Compact(slices.Sorted(slices.Values(declared.GoPrograms))) {
		program, err := readProgram(surface, r, name)
		if err != nil {
			return err
		}
		a.Programs = append(a.Programs, program)
	}
	return nil
}

func (a ABI) check() error {
	if len(a.Interpreters)+len(a.Programs) == 0 {
		return &canon.InputError{File: string(RuntimeABI), Key: CodeRootFile, Problem: "no code root declares a Python or a Go program",
			Fix: "declare python or go_programs in " + CodeRootFile + " of the hermes root"}
	}
	return nil
}

func readPython(surface Surface, r Root, p Python) (Interpreter, error) {
	out := Interpreter{Root: surface, Implementation: p.Implementation, Version: p.Version, ABITag: p.ABITag, Packages: []Package{}}
	files := index(r.Entries)
	config, err := readAt(r, files, p.Config)
	if err != nil {
		return out, err
	}
	if err := checkVenv(p, config); err != nil {
		return out, err
	}
	// The dist-info folders of site-packages, by normalized name.
	found := map[string][]string{}
	for _, e := range r.Entries {
		rest, ok := strings.CutPrefix(e.Path, p.SitePackages+"/")
		folder, file, _ := strings.Cut(rest, "/")
		if name, isInfo := strings.CutSuffix(folder, ".dist-info"); ok && isInfo && file == "METADATA" {
			name, _, _ = strings.Cut(name, "-")
			found[normalized(name)] = append(found[normalized(name)], path.Join(p.SitePackages, folder))
		}
	}
	for _, declared := range slices.Compact(slices.Sorted(slices.Values(p.Packages))) {
		folders := found[normalized(declared)]
		if len(folders) != 1 {
			return out, &canon.InputError{Key: path.Join(p.SitePackages, declared), Problem: fmt.Sprintf("the curated package has %d dist-info folders", len(folders)), Fix: "install exactly one version, or remove it from packages in " + CodeRootFile}
		}
		pkg, err := readPackage(r, files, p.SitePackages, folders[0], declared)
		if err != nil {
			return out, err
		}
		out.Packages = append(out.Packages, pkg)
	}
	slices.SortFunc(out.Packages, func(a, b Package) int { return strings.Compare(a.Name, b.Name) })
	return out, nil
}

// checkVenv compares the declaration with pyvenv.cfg (PEP 405): "key = value" lines.
func checkVenv(p Python, data []byte) error {
	values := map[string]string{}
	for _, line := range strings.Split(string(data), "\n") {
		if key, value, ok := strings.Cut(line, "="); ok {
			values[strings.ToLower(strings.TrimSpace(key))] = strings.TrimSpace(value)
		}
	}
	refuse := func(key, problem, fix string) error {
		return &canon.InputError{File: p.Config, Key: key, Problem: problem, Fix: fix}
	}
	if values["include-system-site-packages"] != "false" {
		return refuse("include-system-site-packages", "is not false, so packages from outside the tree are imported", "make the environment without system packages")
	}
	version := values["version_info"]
	if version == "" {
		version = values["version"]
	}
	if version != p.Version && !strings.HasPrefix(version, p.Version+".final") {
		return refuse("version", "is not the declared version "+p.Version, "correct "+CodeRootFile+" or the environment")
	}
	if have := values["implementation"]; have != "" && have != p.Implementation {
		return refuse("implementation", "is not the declared implementation "+p.Implementation, "correct "+CodeRootFile+" or the environment")
	}
	return nil
}

var separators = regexp.MustCompile(`[-_.]+`)

// normalized is the comparison form of a distribution name (PEP 503).
func normalized(name string) string {
	return strings.ToLower(separators.ReplaceAllString(name, "-"))
}

// readPackage reads METADATA (core metadata) and checks RECORD: every file it lists with a digest must be in the tree with that digest.
func readPackage(r Root, files map[string]tree.Entry, site, folder, declared string) (Package, error) {
	at := path.Join(folder, "METADATA")
	data, err := readAt(r, files, at)
	if err != nil {
		return Package{}, err
	}
	fields := map[string]string{}
	for _, line := range strings.Split(string(data), "\n") {
		line = strings.TrimSuffix(line, "\r")
		if line == "" {
			break // the header ends
		}
		if key, value, ok := strings.Cut(line, ": "); ok {
			if _, twice := fields[key]; !twice || key != "Name" && key != "Version" {
				fields[key] = strings.TrimSpace(value)
			} else {
				return Package{}, &canon.InputError{File: at, Key: key, Problem: "appears twice", Fix: "install the package anew"}
			}
		}
	}
	pkg := Package{Name: normalized(fields["Name"]), Version: fields["Version"], Path: folder, Metadata: files[at].Digest}
	if pkg.Name != normalized(declared) || pkg.Version == "" {
		return Package{}, &canon.InputError{File: at, Key: "Name", Problem: "METADATA does not name the package " + declared + " and a version", Fix: "install the package anew"}
	}
	base := strings.TrimSuffix(path.Base(folder), ".dist-info")
	if name, version, _ := strings.Cut(base, "-"); normalized(name) != pkg.Name || version != pkg.Version {
		return Package{}, &canon.InputError{File: at, Key: "Version", Problem: "METADATA and the name of its folder disagree", Fix: "install the package anew"}
	}
	return pkg, checkRecord(r, files, site, path.Join(folder, "RECORD"))
}

func checkRecord(r Root, files map[string]tree.Entry, site, at string) error {
	data, err := readAt(r, files, at)
	if err != nil {
		return err
	}
	rows, err := csv.NewReader(bytes.NewReader(data)).ReadAll()
	if err != nil {
		return &canon.InputError{File: at, Problem: "is not CSV", Fix: "install the package anew"}
	}
	for _, row := range rows {
		if len(row) != 3 {
			return &canon.InputError{File: at, Problem: "has a row that is not path, hash, size", Fix: "install the package anew"}
		}
		if row[1] == "" {
			continue // RECORD itself, and compiled files
		}
		name := path.Join(site, row[0])
		e, found := files[name]
		sum, ok := strings.CutPrefix(row[1], "sha256=")
		if !ok || !found || sum != base64.RawURLEncoding.EncodeToString(e.Digest[:]) || row[2] != "" && row[2] != strconv.FormatInt(e.Size, 10) {
			return &canon.InputError{File: at, Key: name, Problem: "the file is not as the package records it", Fix: "install the package anew"}
		}
	}
	return nil
}

func readProgram(surface Surface, r Root, name string) (Program, error) {
	e, found := Tree{Files: r.Entries}.find(name)
	if !found {
		return Program{}, absent(name)
	}
	f, err := r.Files.Open(name)
	if err != nil {
		return Program{}, err
	}
	defer f.Close()
	at, ok := f.(io.ReaderAt)
	if !ok {
		data, err := read(r.Files, e, 1<<30)
		if err != nil {
			return Program{}, err
		}
		at = bytes.NewReader(data)
	}
	sum := sha256.New()
	if _, err := io.Copy(sum, io.NewSectionReader(at, 0, e.Size)); err != nil {
		return Program{}, err
	}
	if canon.Digest(sum.Sum(nil)) != e.Digest {
		return Program{}, changed(name)
	}
	info, err := buildinfo.Read(at)
	if err != nil {
		return Program{}, &canon.InputError{Key: name, Problem: "holds no Go build information", Fix: "name a program built by Go, without -buildinfo=false"}
	}
	return describe(surface, name, info), nil
}

func describe(surface Surface, name string, info *debug.BuildInfo) Program {
	p := Program{Root: surface, Path: name, GoVersion: info.GoVersion, Main: info.Path, Modules: []Module{}, Settings: map[string]string{}}
	add := func(m *debug.Module) {
		switch {
		case m.Replace == nil:
			p.Modules = append(p.Modules, Module{m.Path, m.Version, m.Sum})
		case m.Replace.Version == "": // by a folder of the building machine, whose path says nothing
			p.Modules = append(p.Modules, Module{m.Path, m.Version + " (replaced by a folder)", ""})
		default:
			p.Modules = append(p.Modules, Module{m.Replace.Path, m.Replace.Version, m.Replace.Sum})
		}
	}
	if info.Main.Path != "" {
		add(&info.Main)
	}
	for _, m := range info.Deps {
		add(m)
	}
	for _, s := range info.Settings {
		// Paths of the building machine and stamps of its checkout are no ABI.
		switch {
		case strings.HasPrefix(s.Key, "vcs"), s.Key == "-ldflags", strings.HasSuffix(s.Key, "FLAGS"), s.Key == "-overlay", s.Key == "-pgo":
		default:
			p.Settings[s.Key] = s.Value
		}
	}
	return p
}

func index(entries []tree.Entry) map[string]tree.Entry {
	m := make(map[string]tree.Entry, len(entries))
	for _, e := range entries {
		m[e.Path] = e
	}
	return m
}

func readAt(r Root, files map[string]tree.Entry, name string) ([]byte, error) {
	e, found := files[name]
	if !found {
		return nil, absent(name)
	}
	data, err := read(r.Files, e, maxInterpreted)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, changed(name)
	}
	return data, err
}

func absent(name string) error {
	return &canon.InputError{Key: name, Problem: "is declared, and not in the tree", Fix: "add the file, or correct " + CodeRootFile}
}

package main

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
)

// Stand-ins for modules that neither Debian nor a Go proxy has. They carry what module
// resolution asks for and no more. The suffix keeps Bazel from reading them as packages here.
//
//go:embed standins
var standins embed.FS

// patch replaces old, which must occur exactly once, in one file of a copied module.
type patch struct {
	module, file, old, new string
}

// recipe is part of the modules' key: raise it when this file changes what it makes.
const recipe = "3"

var patches = []patch{
	// Links a GOROOT of exactly the pinned release instead of downloading it.
	{"rules_go", "go/private/sdk.bzl", "def _go_download_sdk_impl(ctx):\n", `def _go_download_sdk_impl(ctx):
    goroot = ctx.os.environ.get("SELFSAME_GOROOT")
    if not goroot:
        fail("SELFSAME_GOROOT is not set: start Bazel through bazelw")
    platform = _detect_sdk_platform(ctx, goroot)
    if ctx.attr.goos and platform != ctx.attr.goos + "_" + ctx.attr.goarch:
        fail("no Go SDK for {}_{}: {} is for {}".format(ctx.attr.goos, ctx.attr.goarch, goroot, platform))
    version = _detect_sdk_version(ctx, goroot)  # fails on any but the pinned version
    _sdk_build_file(ctx, platform, version, ctx.attr.experiments)
    _local_sdk(ctx, goroot)
    return None

def _go_download_sdk_from_internet_impl(ctx):
`},
	{"bazel_features", "features.bzl", "    permits_treeartifact_uplevel_symlinks = ", `    instrumented_files_info_has_baseline_coverage_files = False,
    permits_treeartifact_uplevel_symlinks = `},
}

// bazelModules returns a folder with a local copy of every module that MODULE.bazel reaches and
// the rc file that points Bazel at them.
func bazelModules(cache, root string, v versions) (string, error) {
	key := sha256.New()
	fmt.Fprintln(key, recipe, root, v, patches)
	if err := fs.WalkDir(standins, ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := standins.ReadFile(path)
		fmt.Fprintf(key, "%s %x\n", path, sha256.Sum256(data))
		return err
	}); err != nil {
		return "", err
	}
	modules := filepath.Join(cache, fmt.Sprintf("modules-%x", key.Sum(nil)[:6]))
	return modules, build(modules, func(dir string) error {
		if err := os.Mkdir(filepath.Join(dir, "registry"), 0o755); err != nil {
			return err
		}
		if err := copyTree(os.DirFS(filepath.Join(root, "usr/share/bazel/tools/features")), filepath.Join(dir, "bazel_features"), ""); err != nil {
			return err
		}
		stand, err := fs.Sub(standins, "standins")
		if err != nil {
			return err
		}
		if err := copyTree(stand, dir, ".standin"); err != nil {
			return err
		}
		if err := goModule("github.com/bazelbuild/rules_go", "v"+v.rulesGo, filepath.Join(dir, "rules_go")); err != nil {
			return err
		}
		if err := gazelle(v.gazelle, filepath.Join(dir, "gazelle")); err != nil {
			return err
		}
		for _, p := range patches {
			if err := p.apply(dir); err != nil {
				return err
			}
		}
		return writeRC(dir, modules)
	})
}

func gazelle(version, dir string) error {
	if err := goModule("github.com/bazelbuild/bazel-gazelle", "v"+version, dir); err != nil {
		return err
	}
	// The zip leaves out the nested module, which is one of its own.
	gomod, err := os.ReadFile(filepath.Join(dir, "go.mod"))
	if err != nil {
		return err
	}
	nested := regexp.MustCompile(`github\.com/bazel-contrib/bazel-gazelle/v2 (v\S+)`).FindSubmatch(gomod)
	if nested == nil {
		return fmt.Errorf("gazelle %s: go.mod does not name its nested module", version)
	}
	if err := goModule("github.com/bazel-contrib/bazel-gazelle/v2", string(nested[1]), filepath.Join(dir, "v2")); err != nil {
		return err
	}
	// The list of sources still names files that module zips leave out.
	cmd := exec.Command("go", "run", "internal/list_repository_tools_srcs.go", "-generate", "internal/go_repository_tools_srcs.bzl")
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOWORK=off", "GOFLAGS=")
	_, err = output(cmd)
	return err
}

// goModule copies a Go module, checked by the go command against the checksum database, to dir.
func goModule(path, version, dir string) error {
	scratch, err := os.MkdirTemp("", "selfsame-mod-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(scratch)
	cmd := exec.Command("go", "mod", "download", "-json", path+"@"+version)
	cmd.Dir = scratch
	cmd.Env = append(os.Environ(), "GOWORK=off", "GOFLAGS=")
	out, err := output(cmd)
	if err != nil {
		return &problem{fmt.Errorf("%w\n%s", err, bytes.TrimSpace(out)), "check that the Go module proxy (go env GOPROXY) is reachable"}
	}
	var module struct{ Dir string }
	if err := json.Unmarshal(out, &module); err != nil {
		return err
	}
	return copyTree(os.DirFS(module.Dir), dir, "")
}

// copyTree copies the files of tree below dir, without suffix in their names. Scripts get
// the run bit that module zips do not keep.
func copyTree(tree fs.FS, dir, suffix string) error {
	return fs.WalkDir(tree, ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		target := filepath.Join(dir, filepath.FromSlash(strings.TrimSuffix(path, suffix)))
		if d.IsDir() {
			return os.MkdirAll(target, 0o755)
		}
		data, err := fs.ReadFile(tree, path)
		if err != nil {
			return err
		}
		mode := os.FileMode(0o644)
		if strings.HasSuffix(path, ".sh") {
			mode = 0o755
		}
		return os.WriteFile(target, data, mode)
	})
}

func (p patch) apply(dir string) error {
	path := filepath.Join(dir, p.module, p.file)
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	if n := strings.Count(string(data), p.old); n != 1 {
		return fmt.Errorf("patch of %s/%s: its place occurs %d times, want 1", p.module, p.file, n)
	}
	return os.WriteFile(path, []byte(strings.Replace(string(data), p.old, p.new, 1)), 0o644)
}

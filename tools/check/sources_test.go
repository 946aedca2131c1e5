package check

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// checkout returns the text of every source file by slash path. Bazel hands the files over in
// a runfiles folder, with `.source` behind each name; go test reads the module around it.
func checkout(t *testing.T) map[string][]byte {
	t.Helper()
	root, suffix := "../..", ""
	if marker := os.Getenv("SELFSAME_CHECKOUT"); marker != "" {
		root, suffix = strings.TrimSuffix(filepath.Join(os.Getenv("TEST_SRCDIR"), marker), "/MODULE.bazel.source"), ".source"
	}
	files := map[string][]byte{}
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := d.Name()
		if path != root && (strings.HasPrefix(name, "bazel-") || name == ".git" || name == ".bazelrc.user") {
			if d.IsDir() {
				return filepath.SkipDir
			}
			return nil
		}
		if d.IsDir() {
			return nil
		}
		if info, err := os.Stat(path); err != nil || info.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, path)
		files[strings.TrimSuffix(filepath.ToSlash(rel), suffix)] = data
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(files) < 20 || files["go.mod"] == nil {
		t.Fatalf("%s holds %d files: not the checkout", root, len(files))
	}
	return files
}

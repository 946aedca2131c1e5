package living

import (
	"go/parser"
	"go/token"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// The core takes its clock, readers and randomness from outside: law L1.
func TestCoreImportsNoEffects(t *testing.T) {
	entries, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	seen := 0
	for _, e := range entries {
		if name := e.Name(); !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") {
			continue
		}
		seen++
		for _, path := range importsOf(t, e.Name(), nil) {
			if isEffect(path) {
				t.Errorf("%s imports %s", e.Name(), path)
			}
		}
	}
	if seen < 10 {
		t.Errorf("only %d source files were looked at", seen)
	}
	control := importsOf(t, "control.go", "package p\nimport (\"net/http\"; \"time\")\n")
	if !slices.ContainsFunc(control, isEffect) {
		t.Error("control: effects are not recognised")
	}
}

func isEffect(path string) bool {
	root, _, _ := strings.Cut(path, "/")
	return slices.Contains([]string{"os", "time", "net", "syscall", "unsafe", "plugin", "log", "runtime"}, root) ||
		slices.Contains([]string{"math/rand", "math/rand/v2", "crypto/rand", "io/ioutil", "path/filepath"}, path) || strings.Contains(path, "golang.org/x/sys")
}

func importsOf(t *testing.T, name string, src any) []string {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), name, src, parser.ImportsOnly)
	if err != nil {
		t.Fatal(err)
	}
	var paths []string
	for _, spec := range file.Imports {
		path, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			t.Fatal(err)
		}
		paths = append(paths, path)
	}
	return paths
}

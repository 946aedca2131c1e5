package check

import (
	"fmt"
	"go/parser"
	"go/token"
	"path"
	"sort"
	"strings"
	"testing"
)

const module = "selfsame.dev/selfsame/"

// rooms is the table of DESIGN.md section 1: what a room may import of the project, its own
// packages aside. A name ending in / stands for all below it. internal/atomicfile serves every edge.
var rooms = map[string][]string{
	"internal/canon":      {},
	"internal/atomicfile": {},
	"internal/tree":       {"internal/canon"},
	"schemas":             {"internal/canon"},
	"manifest":            {"internal/", "schemas"},
	"execlog":             {"internal/canon"},
	"profile":             {"internal/", "schemas", "manifest"},
	"canary":              {"internal/", "schemas", "manifest", "profile"},
	"rpi":                 {"internal/canon", "internal/atomicfile", "schemas"},
	"living":              {"internal/canon", "internal/atomicfile", "schemas"},
	"rules":               {},
	"tools":               {""},
	"e2e":                 {},
}

// pure packages get readers, clocks and digests passed in.
var pure = []string{"internal/canon", "internal/tree", "manifest", "manifest/bundle", "execlog", "rpi", "living"}

var effects = []string{"os", "time", "math/rand", "net", "os/exec", "syscall", "golang.org/x/sys/unix"}

type imports map[string][]string // package folder -> import paths, tests left out

func TestImports(t *testing.T) {
	found := imports{}
	for name, data := range checkout(t) {
		if !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") || strings.Contains(name, "testdata/") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, data, parser.ImportsOnly)
		if err != nil {
			t.Fatal(err)
		}
		dir := path.Dir(name)
		for _, spec := range file.Imports {
			found[dir] = append(found[dir], strings.Trim(spec.Path.Value, `"`))
		}
	}
	for _, problem := range violations(found) {
		t.Error(problem)
	}
	for _, control := range []struct{ dir, imported string }{
		{"rpi", module + "manifest"},
		{"profile", module + "canary"},
		{"manifest", "os"},
		{"internal/tree", "math/rand/v2"},
		{"newroom", "fmt"},
	} {
		if len(violations(imports{control.dir: {control.imported}})) != 1 {
			t.Errorf("control: %s may import %s", control.dir, control.imported)
		}
	}
}

func violations(found imports) []string {
	var problems []string
	for dir, paths := range found {
		room := roomOf(dir)
		if room == "" {
			problems = append(problems, dir+": no room of DESIGN.md section 1; put the package into one")
			continue
		}
		for _, imported := range paths {
			if inside, ok := strings.CutPrefix(imported, module); ok && !allowed(room, inside) {
				problems = append(problems, fmt.Sprintf("%s imports %s: room %s may import only %q", dir, inside, room, rooms[room]))
			}
			if isPure(dir) && isEffect(imported) {
				problems = append(problems, fmt.Sprintf("%s imports %s: effects are passed in", dir, imported))
			}
		}
	}
	sort.Strings(problems)
	return problems
}

func roomOf(dir string) string {
	for room := range rooms {
		if dir == room || strings.HasPrefix(dir, room+"/") {
			return room
		}
	}
	return ""
}

func allowed(room, inside string) bool {
	if roomOf(inside) == room {
		return true
	}
	for _, may := range rooms[room] {
		if inside == may || strings.HasPrefix(inside, may+"/") || (strings.HasSuffix(may, "/") && strings.HasPrefix(inside, may)) || may == "" {
			return true
		}
	}
	return false
}

func isPure(dir string) bool {
	for _, p := range pure {
		if dir == p {
			return true
		}
	}
	return false
}

func isEffect(imported string) bool {
	for _, effect := range effects {
		if imported == effect || strings.HasPrefix(imported, effect+"/") {
			return true
		}
	}
	return false
}

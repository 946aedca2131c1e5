package check

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path"
	"strings"
	"testing"

	"selfsame.dev/selfsame/living/catalog"
)

// Every test that the catalog of the living profile names is in the checkout.
func TestCatalogNamesTestsThatExist(t *testing.T) {
	found := map[string]bool{}
	for name, data := range checkout(t) {
		if !strings.HasPrefix(name, "living/") || !strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, data, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, decl := range file.Decls {
			if f, ok := decl.(*ast.FuncDecl); ok && f.Recv == nil {
				found[path.Dir(name)+"."+f.Name.Name] = true
			}
		}
	}
	c, err := catalog.Load()
	if err != nil {
		t.Fatal(err)
	}
	exists := func(test string) bool { return found[test] }
	for _, problem := range c.Problems(exists) {
		t.Error(problem)
	}
	c.Records[0].ShownBy = append(c.Records[0].ShownBy, "living.TestThatNobodyWrote")
	if len(c.Problems(exists)) != 1 {
		t.Error("control: a test that does not exist is accepted")
	}
}

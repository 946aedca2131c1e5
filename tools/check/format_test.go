// Package check holds the tests that look at the project's own text: formats, BUILD files, and who
// may import whom.
package check

import (
	"bytes"
	"fmt"
	"go/format"
	"path"
	"strings"
	"testing"

	"github.com/bazelbuild/buildtools/build"
)

func TestGofmt(t *testing.T) {
	for name, data := range checkout(t) {
		if strings.HasSuffix(name, ".go") {
			if err := gofmt(data); err != nil {
				t.Errorf("%s: %v; run: gofmt -w %s", name, err, name)
			}
		}
	}
	if gofmt([]byte("package a\nfunc  f( ) {}\n")) == nil {
		t.Error("control: an unformatted file passes")
	}
}

func gofmt(data []byte) error {
	formatted, err := format.Source(data)
	if err == nil && !bytes.Equal(formatted, data) {
		err = fmt.Errorf("not formatted")
	}
	return err
}

func TestBuildifier(t *testing.T) {
	checked := 0
	for name, data := range checkout(t) {
		if !isStarlark(name) {
			continue
		}
		checked++
		if err := buildifier(name, data); err != nil {
			t.Errorf("%s: %v; run: go run github.com/bazelbuild/buildtools/buildifier@latest %s", name, err, name)
		}
	}
	if checked < 5 {
		t.Errorf("only %d Starlark files were seen", checked)
	}
	if buildifier("BUILD.bazel", []byte("go_library(srcs=['a.go'],name='x')\n")) == nil {
		t.Error("control: an unformatted file passes")
	}
}

func isStarlark(name string) bool {
	base := path.Base(strings.TrimSuffix(name, ".standin"))
	return base == "BUILD.bazel" || base == "MODULE.bazel" || strings.HasSuffix(base, ".bzl")
}

// buildifier formats and sorts as the command of that name does.
func buildifier(name string, data []byte) error {
	file, err := build.Parse(strings.TrimSuffix(name, ".standin"), data)
	if err == nil && !bytes.Equal(build.Format(file), data) {
		err = fmt.Errorf("not formatted")
	}
	return err
}

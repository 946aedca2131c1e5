package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// versions are what the checkout pins; its own files are the only source of them.
type versions struct {
	bazel, goSDK, rulesGo, gazelle string
}

func pinned(workspace string) (versions, error) {
	var v versions
	for _, pin := range []struct {
		file    string
		pattern string
		into    *string
	}{
		{".bazelversion", `(?m)^(\d+\.\d+\.\d+)\s*$`, &v.bazel},
		{"go.mod", `(?m)^go (\d+\.\d+\.\d+)$`, &v.goSDK},
		{"MODULE.bazel", `bazel_dep\(name = "rules_go", version = "([^"]+)"`, &v.rulesGo},
		{"MODULE.bazel", `bazel_dep\(name = "gazelle", version = "([^"]+)"`, &v.gazelle},
	} {
		data, err := os.ReadFile(filepath.Join(workspace, pin.file))
		if err != nil {
			return v, err
		}
		found := regexp.MustCompile(pin.pattern).FindSubmatch(data)
		if found == nil {
			return v, fmt.Errorf("%s: no match for %s", pin.file, pin.pattern)
		}
		*pin.into = strings.TrimSpace(string(found[1]))
	}
	return v, nil
}

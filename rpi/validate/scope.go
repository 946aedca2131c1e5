package validate

import (
	"path"
	"strings"

	"selfsame.dev/selfsame/internal/canon"
)

// Scope is a class of paths: those that an include pattern takes and no exclude pattern does.
// Patterns are relative slash paths; * and ? stay in one segment, ** spans any number of segments.
type Scope struct {
	Include []string `json:"include"`
	Exclude []string `json:"exclude"`
}

// Check refuses patterns that cannot match a relative path, and a scope that includes nothing.
func (s Scope) Check() error {
	if len(s.Include) == 0 {
		return &canon.InputError{Key: "scope", Problem: "the scope includes nothing", Fix: "give at least one include pattern, such as **"}
	}
	for _, pattern := range append(append([]string(nil), s.Include...), s.Exclude...) {
		for _, segment := range strings.Split(pattern, "/") {
			if _, err := path.Match(segment, ""); err != nil || segment == "" || segment == "." || segment == ".." {
				return &canon.InputError{Key: pattern, Problem: "it is no pattern of a relative path", Fix: "write segments joined by /, such as src/**/*.go"}
			}
		}
	}
	return nil
}

// Holds reports whether the path is in scope.
func (s Scope) Holds(name string) bool {
	return matchesAny(s.Include, name) && !matchesAny(s.Exclude, name)
}

func matchesAny(patterns []string, name string) bool {
	for _, pattern := range patterns {
		if matches(strings.Split(pattern, "/"), strings.Split(name, "/")) {
			return true
		}
	}
	return false
}

// matches walks both lists once: on a mismatch behind a ** that one takes another segment.
func matches(pattern, name []string) bool {
	p, n, star, taken := 0, 0, -1, 0
	for n < len(name) {
		if p < len(pattern) && pattern[p] == "**" {
			star, taken = p, n
			p++
			continue
		}
		if p < len(pattern) {
			if ok, _ := path.Match(pattern[p], name[n]); ok {
				p, n = p+1, n+1
				continue
			}
		}
		if star < 0 {
			return false
		}
		taken++
		p, n = star+1, taken
	}
	for p < len(pattern) && pattern[p] == "**" {
		p++
	}
	return p == len(pattern)
}

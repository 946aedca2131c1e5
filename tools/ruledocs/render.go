package main

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"github.com/bazelbuild/buildtools/build"
)

// kinds are the types of attributes: what a reader calls them, and the default where none is given.
var kinds = map[string]struct{ name, fallback string }{
	"attr.bool": {"bool", "False"}, "attr.int": {"int", "0"}, "attr.string": {"string", `""`}, "attr.string_list": {"list of strings", "[]"},
	"attr.string_dict": {"dict of strings", "{}"}, "attr.label": {"label", "None"}, "attr.label_list": {"list of labels", "[]"},
}

// render returns the page about every public symbol of the file defs: rules with their attributes, providers with
// their fields. A symbol, attribute or field without a docstring is an error, and so is what is neither rule nor provider.
func render(defs string, read func(string) ([]byte, error)) ([]byte, error) {
	s := &scope{read, map[string]*build.File{}}
	f, err := s.file(defs)
	if err != nil {
		return nil, err
	}
	intro, ok := f.Stmt[0].(*build.StringExpr)
	if !ok {
		return nil, fmt.Errorf("%s has no docstring", defs)
	}
	var rules, providers bytes.Buffer
	for _, statement := range f.Stmt[1:] {
		if _, ok := statement.(*build.LoadStmt); ok {
			continue
		}
		assign, ok := statement.(*build.AssignExpr)
		if !ok {
			return nil, fmt.Errorf("%s: only assignments of rules and providers are understood", defs)
		}
		name := assign.LHS.(*build.Ident).Name
		if strings.HasPrefix(name, "_") {
			continue
		}
		function, args, err := s.call(place{defs, assign.RHS})
		if err != nil {
			return nil, err
		}
		switch function {
		case "rule":
			err = s.rule(&rules, name, args)
		case "provider":
			err = s.provider(&providers, name, args)
		default:
			err = fmt.Errorf("is made by %s, and only rule and provider are understood", function)
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
	}
	return fmt.Appendf(nil, `<!-- Generated from the docstrings of %s: change those, then run `+"`go run ./tools/ruledocs`"+`. -->

# Public rules

%s

Every rule also has the attributes that Bazel gives to all: `+"`name`, `tags`, `visibility`"+` and so on.
%s%s`, defs, strings.TrimSpace(intro.Value), rules.Bytes(), providers.Bytes()), nil
}

func (s *scope) rule(w *bytes.Buffer, name string, args map[string]place) error {
	if err := s.head(w, name, args); err != nil {
		return err
	}
	keys, attrs, err := s.dict(args["attrs"])
	if err != nil {
		return err
	}
	slices.Sort(keys)
	fmt.Fprintf(w, "\n| attribute | type | default | meaning |\n|---|---|---|---|\n")
	for _, key := range keys {
		if strings.HasPrefix(key, "_") {
			continue
		}
		function, args, err := s.call(attrs[key])
		if err != nil {
			return err
		}
		kind, known := kinds[function]
		if !known {
			return fmt.Errorf("%s: the type %s is not understood", key, function)
		}
		doc, err := s.doc(args)
		if err != nil {
			return fmt.Errorf("%s: %w", key, err)
		}
		fallback := "`" + kind.fallback + "`"
		if given, ok := args["default"]; ok {
			if given, err = s.resolve(given); err != nil {
				return err
			}
			text := build.FormatString(given.expr)
			if label, ok := given.expr.(*build.StringExpr); ok && strings.HasPrefix(label.Value, "//") {
				text = `"@selfsame` + label.Value + `"` // as the reader's workspace names it
			}
			fallback = "`" + text + "`"
		}
		if m, ok := args["mandatory"]; ok && build.FormatString(m.expr) == "True" {
			fallback = "required"
		}
		fmt.Fprintf(w, "| `%s` | %s | %s | %s |\n", key, kind.name, cell(fallback), cell(doc))
	}
	return nil
}

func (s *scope) provider(w *bytes.Buffer, name string, args map[string]place) error {
	if err := s.head(w, name, args); err != nil {
		return err
	}
	keys, fields, err := s.dict(args["fields"])
	if err != nil {
		return err
	}
	fmt.Fprintf(w, "\n| field | meaning |\n|---|---|\n")
	for _, key := range keys {
		doc, err := s.text(fields[key])
		if err == nil && strings.TrimSpace(doc) == "" {
			err = fmt.Errorf("has no doc")
		}
		if err != nil {
			return fmt.Errorf("%s: %w", key, err)
		}
		fmt.Fprintf(w, "| `%s` | %s |\n", key, cell(doc))
	}
	return nil
}

func (s *scope) head(w *bytes.Buffer, name string, args map[string]place) error {
	doc, err := s.doc(args)
	fmt.Fprintf(w, "\n## %s\n\n%s\n", name, doc)
	return err
}

func (s *scope) doc(args map[string]place) (string, error) {
	p, ok := args["doc"]
	if !ok {
		return "", fmt.Errorf("has no doc")
	}
	doc, err := s.text(p)
	if err == nil && strings.TrimSpace(doc) == "" {
		err = fmt.Errorf("has an empty doc")
	}
	return strings.TrimSpace(doc), err
}

// cell is text within a row of a table.
func cell(text string) string {
	return strings.ReplaceAll(strings.Join(strings.Fields(text), " "), "|", `\|`)
}

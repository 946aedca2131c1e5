package main

import (
	"fmt"
	"path"
	"strings"

	"github.com/bazelbuild/buildtools/build"
)

// scope looks up what files define at their top level: just as much Starlark as says what a rule's attributes are.
type scope struct {
	read  func(string) ([]byte, error)
	files map[string]*build.File
}

// place is an expression in a file.
type place struct {
	file string
	expr build.Expr
}

func (s *scope) file(name string) (*build.File, error) {
	if f := s.files[name]; f != nil {
		return f, nil
	}
	data, err := s.read(name)
	if err != nil {
		return nil, err
	}
	f, err := build.ParseBzl(name, data)
	s.files[name] = f
	return f, err
}

// resolve follows names, over load statements too, to the expression that they stand for.
func (s *scope) resolve(p place) (place, error) {
	ident, ok := p.expr.(*build.Ident)
	if !ok || ident.Name == "True" || ident.Name == "False" || ident.Name == "None" {
		return p, nil
	}
	f, err := s.file(p.file)
	if err != nil {
		return p, err
	}
	for _, statement := range f.Stmt {
		switch st := statement.(type) {
		case *build.AssignExpr:
			if left, ok := st.LHS.(*build.Ident); ok && left.Name == ident.Name {
				return s.resolve(place{p.file, st.RHS})
			}
		case *build.LoadStmt:
			for i := range st.To {
				if st.To[i].Name == ident.Name {
					return s.resolve(place{loaded(p.file, st.Module.Value), &build.Ident{Name: st.From[i].Name}})
				}
			}
		}
	}
	return p, fmt.Errorf("%s: %s is no assignment at the top level, and not loaded", p.file, ident.Name)
}

// loaded is the path of a file of this repository that another one loads.
func loaded(from, label string) string {
	folder, name, _ := strings.Cut(label, ":")
	if folder == "" {
		folder = path.Dir(from)
	}
	return path.Join(strings.TrimPrefix(folder, "//"), name)
}

// dict is a dictionary, or several joined with |, by key and in order.
func (s *scope) dict(p place) (keys []string, values map[string]place, err error) {
	values = map[string]place{}
	if p, err = s.resolve(p); err != nil {
		return nil, nil, err
	}
	switch e := p.expr.(type) {
	case *build.DictExpr:
		for _, kv := range e.List {
			key, err := s.text(place{p.file, kv.Key})
			if err != nil {
				return nil, nil, err
			}
			keys, values[key] = append(keys, key), place{p.file, kv.Value}
		}
		return keys, values, nil
	case *build.BinaryExpr:
		if e.Op != "|" {
			break
		}
		for _, side := range []build.Expr{e.X, e.Y} {
			some, more, err := s.dict(place{p.file, side})
			if err != nil {
				return nil, nil, err
			}
			for _, k := range some {
				if _, twice := values[k]; !twice {
					keys = append(keys, k)
				}
				values[k] = more[k]
			}
		}
		return keys, values, nil
	}
	return nil, nil, fmt.Errorf("%s: %s is no dictionary", p.file, build.FormatString(p.expr))
}

func (s *scope) text(p place) (string, error) {
	p, err := s.resolve(p)
	if err != nil {
		return "", err
	}
	if e, ok := p.expr.(*build.StringExpr); ok {
		return e.Value, nil
	}
	return "", fmt.Errorf("%s: %s is no string", p.file, build.FormatString(p.expr))
}

// call returns the function's name and the named arguments of a call.
func (s *scope) call(p place) (function string, args map[string]place, err error) {
	if p, err = s.resolve(p); err != nil {
		return "", nil, err
	}
	c, ok := p.expr.(*build.CallExpr)
	if !ok {
		return "", nil, fmt.Errorf("%s: %s is no call", p.file, build.FormatString(p.expr))
	}
	args = map[string]place{}
	for _, a := range c.List {
		if named, ok := a.(*build.AssignExpr); ok {
			args[named.LHS.(*build.Ident).Name] = place{p.file, named.RHS}
		}
	}
	return build.FormatString(c.X), args, nil
}

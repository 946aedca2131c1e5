package canary

import (
	"fmt"
	"path"
	"reflect"
	"slices"

	"selfsame.dev/selfsame/canary/wire"
	"selfsame.dev/selfsame/internal/canon"
)

// checkAnswer reads exactly one answer and refuses it unless it is to this query and every
// statement and input in it is found in the pinned identity. The wording of a
// statement is the runtime's own; what it rests on is not.
func checkAnswer(raw []byte, asked *Asked, view *wire.View, files map[string]canon.Digest) (*wire.Answer, error) {
	var a wire.Answer
	if err := canon.Decode(raw, &a); err != nil {
		return nil, err
	}
	refuse := func(key, problem string) (*wire.Answer, error) {
		return nil, &canon.InputError{Key: key, Problem: problem, Fix: "see " + wire.Format}
	}
	switch {
	case a.Format != wire.Format:
		return refuse("/format", fmt.Sprintf("%q is not %q", a.Format, wire.Format))
	case a.Agent != view.Agent:
		return refuse("/agent", fmt.Sprintf("%q answers for %q", a.Agent, view.Agent))
	case a.Label != view.Label:
		return refuse("/label", fmt.Sprintf("%q: the identity is labelled %q", a.Label, view.Label))
	case a.QueryID != asked.Document.QueryID || a.QuerySHA256 != asked.SHA256:
		return refuse("/query_sha256", "the answer is to another query")
	case len(a.Statements) == 0:
		return refuse("/statements", "nothing is answered")
	}
	known := view.Sources(&asked.Document)
	for i, s := range a.Statements {
		at := fmt.Sprintf("/statements/%d", i)
		if s.Text == "" {
			return refuse(at+"/text", "empty")
		}
		if !slices.ContainsFunc(known, func(k wire.Statement) bool { return reflect.DeepEqual(k.Provenance, s.Provenance) }) {
			return refuse(at, fmt.Sprintf("%s %q, rank %d, with this digest and evidence is not in the identity that was asked about", s.Kind, s.Ref, s.Rank))
		}
	}
	// A runtime may state less than it knows, but not pass over what it was asked in silence.
	for _, k := range known {
		if !slices.ContainsFunc(a.Statements, func(s wire.Statement) bool { return s.Kind == k.Kind }) {
			return refuse("/statements", fmt.Sprintf("no %s is stated, though the query asks for them", k.Kind))
		}
	}
	if key, problem := incoherent(&a); problem != "" {
		return refuse(key, problem)
	}
	for i, in := range a.Inputs {
		if want, ok := files[in.Path]; !ok || want != in.SHA256 {
			return refuse(fmt.Sprintf("/inputs/%d", i), fmt.Sprintf("%q with this digest is not in the compiled profile", in.Path))
		}
	}
	return &a, nil
}

// incoherent says what is wrong with an answer by itself, "" when nothing is.
func incoherent(a *wire.Answer) (key, problem string) {
	for i, s := range a.Statements {
		if j := slices.IndexFunc(a.Statements[:i], func(b wire.Statement) bool { return b.Kind == s.Kind && b.Ref == s.Ref }); j >= 0 {
			return fmt.Sprintf("/statements/%d", i), fmt.Sprintf("%s %q was stated before, in /statements/%d", s.Kind, s.Ref, j)
		}
	}
	identity := false
	for i, in := range a.Inputs {
		if i > 0 && a.Inputs[i-1].Path >= in.Path {
			return fmt.Sprintf("/inputs/%d", i), "the paths are not sorted, or one appears twice"
		}
		identity = identity || in.Path == "identity.json"
	}
	if !identity {
		return "/inputs", "identity.json was not read"
	}
	return "", ""
}

func provenance(a *wire.Answer) []wire.Provenance {
	all := make([]wire.Provenance, len(a.Statements))
	for i, s := range a.Statements {
		all[i] = s.Provenance
	}
	return all
}

// expected reports whether a start may make this change: an added or changed file that a
// pattern names. A removed file, another mode or another kind of file is never expected.
func expected(patterns []string, d Drift) bool {
	return (d.Class == "changed" || d.Class == "unexpected") && slices.ContainsFunc(patterns, func(p string) bool {
		ok, err := path.Match(p, d.Path)
		return ok && err == nil
	})
}

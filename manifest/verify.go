package manifest

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"selfsame.dev/selfsame/internal/canon"
	"selfsame.dev/selfsame/internal/tree"
)

// What a [Difference] can be.
const (
	Changed    = "changed"
	Missing    = "missing"    // expected, not there
	Unexpected = "unexpected" // there, not expected
	Refused    = "refused"    // there, and no valid input
)

// Difference is one thing that is not as pinned: where (a surface, and in it a file, a dotted key or a JSON
// pointer), how, and both values: a digest with size, a setting, or why the input was refused. No value of
// a key outside the allowlist appears in it.
type Difference struct {
	Surface  Surface `json:"surface"`
	Class    string  `json:"class"`
	Path     string  `json:"path"`
	Expected string  `json:"expected"`
	Actual   string  `json:"actual"`
}

// String gives one line.
func (d Difference) String() string {
	return fmt.Sprintf("%s: %s: %s: expected %s, actual %s", d.Surface, d.Path, d.Class, orNone(d.Expected), orNone(d.Actual))
}

func orNone(s string) string {
	if s == "" {
		return "nothing"
	}
	return s
}

// Verify rebuilds the identity from its sources and names every difference from m, which [Decode] or
// [Generate] gave, in the order of the inventory. Refused input is a difference too; the error is for what could not be read. No
// difference means that the sources are what m pins. The position of the write-ahead log, credentials,
// state and the layout of config.yaml are not compared, for they are not identity.
func Verify(m *Manifest, s Sources) ([]Difference, error) {
	o := observe(s)
	actual := Inputs{Label: Label, Behavior: o.inputs}
	actual.documents(s, &o.problems)

	refused := map[Surface]bool{}
	if s.Template.Problem != nil {
		refused[RuntimeConfig], refused[Permissions] = true, true
	}
	var out []Difference
	for _, p := range o.problems {
		refused[p.surface] = true
		if p.surface == RuntimeConfig || p.surface == Permissions {
			refused[RuntimeConfig], refused[Permissions] = true, true // one file
		}
		list, err := refusals(p)
		if err != nil {
			return nil, err
		}
		out = append(out, list...)
	}
	for _, d := range compare(m.Identity.Inputs, actual) {
		if !refused[d.Surface] {
			out = append(out, d)
		}
	}
	return ordered(out), nil
}

// Compare names every difference between two manifests, as [Verify] does.
func Compare(expected, actual *Manifest) []Difference {
	out := compare(expected.Identity.Inputs, actual.Identity.Inputs)
	if len(out) == 0 { // views follow the inputs; alone they differ only by generator
		out = values(CompiledViews, "", viewMap(expected), viewMap(actual))
	}
	return ordered(out)
}

func viewMap(m *Manifest) map[string]any {
	out := map[string]any{}
	for _, v := range m.Identity.Views {
		out[v.Path] = content(v.Size, v.SHA256)
	}
	return out
}

func ordered(list []Difference) []Difference {
	rank := map[Surface]int{ProfileTemplate: -1}
	for i, d := range Inventory() {
		rank[d.Surface] = i
	}
	slices.SortStableFunc(list, func(a, b Difference) int { return rank[a.Surface] - rank[b.Surface] })
	return list
}

// refusals turns refused input into differences, one a name.
func refusals(p problem) ([]Difference, error) {
	var many tree.Refusals
	var one *canon.InputError
	switch {
	case errors.As(p.err, &many):
	case errors.As(p.err, &one):
		many = tree.Refusals{one}
	default:
		return nil, p.err
	}
	var out []Difference
	for _, e := range many {
		path := e.Key
		if e.File != "" && e.File != string(p.surface) {
			path = e.File
			if e.Key != "" {
				path += "#" + e.Key
			}
		}
		out = append(out, Difference{p.surface, Refused, path, "valid input", e.Problem})
	}
	return out, nil
}

func compare(want, have Inputs) []Difference {
	var out []Difference
	w, h := want.Behavior, have.Behavior
	out = append(out, values(RuntimeConfig, "", w.RuntimeConfig.Values, h.RuntimeConfig.Values)...)
	out = append(out, values(Permissions, "", w.Permissions.Values, h.Permissions.Values)...)
	for _, t := range []struct {
		surface    Surface
		want, have CodeTree
	}{{HermesCode, w.HermesCode, h.HermesCode}, {DeploymentCode, w.DeploymentCode, h.DeploymentCode}} {
		out = append(out, values(t.surface, "selection", t.want.Selection, t.have.Selection)...)
		out = append(out, files(t.surface, t.want.Tree, t.have.Tree)...)
	}
	out = append(out, values(RuntimeABI, "", w.RuntimeABI, h.RuntimeABI)...)
	out = append(out, files(Skills, w.Skills, h.Skills)...)
	out = append(out, files(Plugins, w.Plugins, h.Plugins)...)
	out = append(out, files(DatabaseTools, w.DatabaseTools, h.DatabaseTools)...)

	out = append(out, document(Constitution, want.Constitution.Path, have.Constitution.Path, want.Constitution.Document, have.Constitution.Document)...)
	if want.Constitution.SHA256 != have.Constitution.SHA256 {
		out = append(out, Difference{Constitution, Changed, want.Constitution.Path,
			content(want.Constitution.Size, want.Constitution.SHA256), content(have.Constitution.Size, have.Constitution.SHA256)})
	}
	out = append(out, document(DatabaseSnapshot, want.Snapshot.Path, have.Snapshot.Path, want.Snapshot.Document, have.Snapshot.Document)...)
	out = append(out, document(IdentityRows, want.Rows.Path, have.Rows.Path, want.Rows.Document, have.Rows.Document)...)
	return append(out, files(IdentityRows, want.Rows.Evidence, have.Rows.Evidence)...)
}

func files(surface Surface, want, have Tree) []Difference {
	var out []Difference
	for _, d := range tree.Diff(want.Files, have.Files) {
		out = append(out, FileDifference(surface, d))
	}
	return out
}

// FileDifference is the difference of one file.
func FileDifference(surface Surface, d tree.Difference) Difference {
	out := Difference{Surface: surface, Path: d.Path, Class: Changed}
	if d.Expected != nil {
		out.Expected = content(d.Expected.Size, d.Expected.Digest)
	} else {
		out.Class = Unexpected
	}
	if d.Actual != nil {
		out.Actual = content(d.Actual.Size, d.Actual.Digest)
	} else {
		out.Class = Missing
	}
	return out
}

func content(size int64, digest canon.Digest) string {
	return fmt.Sprintf("sha256 %s, %d bytes", digest, size)
}

func document(surface Surface, wantPath, havePath string, want, have any) []Difference {
	if wantPath != havePath {
		return []Difference{{surface, Changed, wantPath, wantPath, havePath}}
	}
	return values(surface, wantPath+"#", want, have)
}

// values compares the JSON forms of two values leaf by leaf, under dotted keys, or JSON pointers
// when the prefix is a file.
func values(surface Surface, prefix string, want, have any) []Difference {
	if reflect.DeepEqual(want, have) {
		return nil
	}
	var out []Difference
	step := func(at, name string) string {
		if strings.Contains(prefix, "#") {
			return at + "/" + name
		}
		return strings.TrimPrefix(at+"."+name, ".")
	}
	var walk func(at string, want, have any)
	walk = func(at string, want, have any) {
		switch w := want.(type) {
		case map[string]any:
			if h, ok := have.(map[string]any); ok {
				names := maps.Clone(w)
				maps.Copy(names, h)
				for _, name := range slices.Sorted(maps.Keys(names)) {
					wv, inW := w[name]
					hv, inH := h[name]
					next := step(at, name)
					switch {
					case !inH:
						out = append(out, Difference{surface, Missing, next, show(wv), ""})
					case !inW:
						out = append(out, Difference{surface, Unexpected, next, "", show(hv)})
					default:
						walk(next, wv, hv)
					}
				}
				return
			}
		case []any:
			if h, ok := have.([]any); ok && len(w) == len(h) {
				for i := range w {
					walk(step(at, strconv.Itoa(i)), w[i], h[i])
				}
				return
			}
		}
		if a, b := show(want), show(have); a != b {
			out = append(out, Difference{surface, Changed, at, a, b})
		}
	}
	walk(prefix, generic(want), generic(have))
	return out
}

// generic returns the JSON value of v as maps, slices, strings, numbers and booleans.
func generic(v any) any {
	data, err := canon.Marshal(v)
	if err != nil {
		return err.Error()
	}
	var out any
	if err := json.Unmarshal(data, &out); err != nil {
		return err.Error()
	}
	return out
}

func show(v any) string {
	data, err := canon.Marshal(v)
	if err != nil {
		return err.Error()
	}
	if len(data) > 400 {
		return fmt.Sprintf("sha256 %s, %d bytes", canon.Sum(data), len(data))
	}
	return string(data)
}

package living

import (
	"slices"

	"github.com/go-json-experiment/json/jsontext"
	"selfsame.dev/selfsame/internal/canon"
)

// ViewFormat names the compact view of a document.
const ViewFormat = "living-view.v1"

// Disclosure says what the statements of a view are. It is the same for every view:
// nothing that a fact carries can raise its standing.
type Disclosure struct {
	Authority   string `json:"authority"`
	GroundTruth bool   `json:"ground_truth"`
	Use         string `json:"use"`
}

var disclosed = Disclosure{
	Authority: "memory",
	Use:       "recalled from earlier turns; look at each statement's source again before relying on it; it is not evidence",
}

// View is a document as a turn may see it: the facts, newest first while they fit,
// without version, turns and positions. Equal content gives equal bytes.
type View struct {
	Axes       map[string]ViewAxis `json:"axes"`
	Disclosure Disclosure          `json:"disclosure"`
	Format     string              `json:"format"`
	Omitted    int64               `json:"omitted"` // facts that did not fit
	Owner      string              `json:"owner"`
}

// ViewAxis shows the statements of one axis in the order of its kind.
type ViewAxis struct {
	Kind       Kind        `json:"kind"`
	Statements []Statement `json:"statements"`
}

// Statement is one remembered fact and where to verify it again.
type Statement struct {
	ID       canon.Digest   `json:"id"`
	Reverify []Reverify     `json:"reverify"`
	Value    jsontext.Value `json:"value"`
}

// Reverify names a source and the digest of what it showed.
type Reverify struct {
	SHA256 canon.Digest `json:"sha256"`
	Source string       `json:"source"`
}

// Compose projects a document to its compact view, at most the document's view_bytes
// long in canonical form.
func Compose(doc *Document) (*View, error) {
	view := EmptyView(doc.owner)
	type place struct {
		axis string
		fact *Fact
	}
	var places []place
	for _, a := range doc.axes {
		for _, f := range a.facts {
			places = append(places, place{a.name, f})
		}
	}
	slices.SortFunc(places, func(a, b place) int { return compareFacts(b.fact, a.fact) })
	view.Omitted = int64(len(places)) // its longest form, for the first measure
	empty, err := canon.Marshal(view)
	if err != nil {
		return nil, err
	}
	room := doc.limits.ViewBytes - int64(len(empty))
	shown := map[*Fact]bool{}
	opened := map[string]bool{}
	for _, p := range places {
		raw, err := canon.Marshal(state(p.fact))
		if err != nil {
			return nil, err
		}
		need := int64(len(raw) + 1)
		if !opened[p.axis] {
			need += int64(len(`"":{"kind":"","statements":[]},`) + len(p.axis) + len(doc.axis(p.axis).Kind))
		}
		if need > room {
			continue
		}
		room -= need
		opened[p.axis] = true
		shown[p.fact] = true
	}
	view.Omitted = int64(len(places) - len(shown))
	for name := range opened {
		va := ViewAxis{Kind: doc.axis(name).Kind}
		for _, f := range doc.Facts(name) {
			if shown[f] {
				va.Statements = append(va.Statements, state(f))
			}
		}
		view.Axes[name] = va
	}
	return view, nil
}

// EmptyView is the view of an owner of whom nothing is remembered yet.
func EmptyView(owner string) *View {
	return &View{Axes: map[string]ViewAxis{}, Disclosure: disclosed, Format: ViewFormat, Owner: owner}
}

func state(f *Fact) Statement {
	s := Statement{ID: f.id, Value: jsontext.Value(f.value)}
	for _, e := range f.evidence {
		s.Reverify = append(s.Reverify, Reverify{SHA256: e.SHA256, Source: e.Source})
	}
	return s
}

// Bytes returns the canonical bytes of the view.
func (v *View) Bytes() ([]byte, error) { return canon.Marshal(v) }

package living

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"selfsame.dev/selfsame/internal/canon"
)

func viewBytes(t testing.TB, doc *Document) []byte {
	t.Helper()
	view, err := Compose(doc)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := view.Bytes()
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// Equal content gives equal bytes, whatever versions and turns led to it.
func TestComposeStripsVolatileMetadata(t *testing.T) {
	fact := func(axis, value string, turn, position int64) *Fact {
		return newFact(axis, value, turn, position, []Evidence{{Bytes: 1, SHA256: canon.Sum([]byte(value)), Source: "cmd: look"}})
	}
	grow := func(deltas ...map[string][]*Fact) *Document {
		doc := NewDocument(testBaseline(t))
		for _, d := range deltas {
			doc, _, _ = Merge(doc, newDelta(doc.owner, d), at)
		}
		return doc
	}
	one := grow(map[string][]*Fact{"notes": {fact("notes", `"a"`, 1, 0), fact("notes", `"b"`, 1, 1)}, "tools": {fact("tools", `"x"`, 1, 2)}})
	two := grow(
		map[string][]*Fact{"tools": {fact("tools", `"x"`, 5, 0)}},
		map[string][]*Fact{"notes": {fact("notes", `"a"`, 7, 0)}},
		map[string][]*Fact{"notes": {fact("notes", `"b"`, 9, 3)}})
	if one.Digest() == two.Digest() {
		t.Fatal("control: the documents are the same")
	}
	if a, b := viewBytes(t, one), viewBytes(t, two); !bytes.Equal(a, b) {
		t.Errorf("equal content, other bytes:\n%s\n%s", a, b)
	}
	other := grow(map[string][]*Fact{"notes": {fact("notes", `"b"`, 1, 0), fact("notes", `"a"`, 1, 1)}, "tools": {fact("tools", `"x"`, 1, 2)}})
	if bytes.Equal(viewBytes(t, one), viewBytes(t, other)) {
		t.Error("control: the order of a list is content")
	}
}

// Every view says what it is, and every statement where to look again.
func TestComposeDisclosesMemory(t *testing.T) {
	doc := NewDocument(testBaseline(t))
	doc, _ = learn(t, doc, newDraft(t, 1).claims("notes", `"a"`).claims("tools", `"b"`))
	view, err := Compose(doc)
	if err != nil {
		t.Fatal(err)
	}
	if d := view.Disclosure; d.Authority != "memory" || d.GroundTruth || !strings.Contains(d.Use, "source") {
		t.Errorf("disclosure %+v", d)
	}
	n := 0
	for _, a := range view.Axes {
		for _, s := range a.Statements {
			n++
			if len(s.Reverify) == 0 || s.Reverify[0].Source == "" || s.Reverify[0].SHA256.IsZero() {
				t.Errorf("statement %s says nowhere to verify it", s.ID)
			}
		}
	}
	if n != 2 {
		t.Errorf("%d statements", n)
	}
	empty, err := Compose(NewDocument(testBaseline(t)))
	if err != nil || empty.Disclosure != disclosed || len(empty.Axes) != 0 {
		t.Errorf("an empty document: %+v, %v", empty, err)
	}
}

// Complaint: provenance that raises authority. However often and however well a fact
// was shown, a view discloses it as before.
func TestProvenanceNeverRaisesAuthority(t *testing.T) {
	doc := NewDocument(testBaseline(t))
	doc, _ = learn(t, doc, newDraft(t, 1).claims("notes", `"a"`))
	weak, err := Compose(doc)
	if err != nil {
		t.Fatal(err)
	}
	for turn := int64(2); turn < 30; turn++ {
		d := newDraft(t, turn)
		for i := range 8 {
			d.shows(fmt.Sprint("p", i), "baseline: ground truth", fmt.Sprintf("turn %d: proven again, %d", turn, i))
		}
		doc, _ = learn(t, doc, d.cites("notes", `"a"`, "p0", "p1", "p2", "p3", "p4", "p5", "p6", "p7"))
	}
	strong, err := Compose(doc)
	if err != nil {
		t.Fatal(err)
	}
	if strong.Disclosure != weak.Disclosure {
		t.Errorf("disclosure %+v", strong.Disclosure)
	}
	raw, err := canon.Marshal(strong.Axes["notes"].Statements[0])
	if err != nil {
		t.Fatal(err)
	}
	var names map[string]any
	if err := canon.Decode(raw, &names); err != nil || !slices.Equal(sortedKeys(names), []string{"id", "reverify", "value"}) {
		t.Errorf("a statement carries %v", sortedKeys(names))
	}
	seed, err := Seed(doc, testBaseline(t), 30)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Contains(seed, testBaseline(t).raw) {
		t.Error("the baseline in the seed is not the frozen one")
	}
}

func TestComposeIsBounded(t *testing.T) {
	for _, limit := range []int64{minView, 2000, 100000} {
		doc := fill(t, 300)
		doc.limits.ViewBytes = limit
		view, err := Compose(doc)
		if err != nil {
			t.Fatal(err)
		}
		raw, _ := view.Bytes()
		if int64(len(raw)) > limit {
			t.Errorf("%d bytes, the limit is %d", len(raw), limit)
		}
		shown := view.Axes["notes"].Statements
		if int64(len(shown))+view.Omitted != 300 {
			t.Errorf("%d shown, %d omitted", len(shown), view.Omitted)
		}
		newest := doc.Facts("notes")[299]
		if shown[len(shown)-1].ID != newest.ID() {
			t.Error("the newest fact gave way to older ones")
		}
		if limit == 100000 && view.Omitted != 0 || limit < 100000 && view.Omitted == 0 {
			t.Errorf("limit %d: %d omitted", limit, view.Omitted)
		}
	}
}

// Law L6.
func TestSeedIsAnOverlay(t *testing.T) {
	base := testBaseline(t)
	doc, _ := learn(t, NewDocument(base), newDraft(t, 1).claims("tools", `"bazel"`).claims("region", `"eu"`))
	frozen := base.Digest()
	raw, err := Seed(doc, base, 2)
	if err != nil {
		t.Fatal(err)
	}
	var seed TurnSeed
	if err := canon.Decode(raw, &seed); err != nil {
		t.Fatal(err)
	}
	if canon.Sum(seed.Baseline) != frozen || seed.BaselineSHA256 != frozen || canon.Sum(base.raw) != frozen {
		t.Error("the baseline moved")
	}
	if len(seed.Contradictions) != 0 || len(seed.Memory.Axes["tools"].Statements) != 1 || seed.Turn != 2 {
		t.Errorf("seed %s", raw)
	}

	tampered := *base
	tampered.raw = bytes.Replace(base.raw, []byte(`"eu"`), []byte(`"us"`), 1)
	var drift *BaselineDriftError
	if _, err := Seed(doc, &tampered, 2); !errors.As(err, &drift) || drift.Expected != frozen || drift.Actual == frozen {
		t.Errorf("a changed baseline: %v", err)
	}
	if _, err := Capture(doc, &tampered, newDraft(t, 2).bytes()); !errors.As(err, &drift) {
		t.Errorf("capture under a changed baseline: %v", err)
	}
}

// What the scope comes to speak against is kept apart and shown, not dropped or obeyed.
func TestSeedShowsContradictions(t *testing.T) {
	doc, _ := learn(t, NewDocument(testBaseline(t)), newDraft(t, 1).claims("tools", `"bazel"`).claims("tools", `"curl"`))
	stricter, err := DecodeBaseline([]byte(strings.Replace(synthetic, `"value": "telnet"`, `"value": "curl"`, 1)))
	if err != nil {
		t.Fatal(err)
	}
	doc, mod, err := Rebase(doc, stricter, at)
	if err != nil || mod == nil || doc.Version() != 2 {
		t.Fatalf("%+v, %v", mod, err)
	}
	raw, err := Seed(doc, stricter, 2)
	if err != nil {
		t.Fatal(err)
	}
	var seed TurnSeed
	if err := canon.Decode(raw, &seed); err != nil {
		t.Fatal(err)
	}
	if kept := seed.Memory.Axes["tools"].Statements; len(kept) != 1 || string(kept[0].Value) != `"bazel"` {
		t.Errorf("memory keeps %v", kept)
	}
	if c := seed.Contradictions; len(c) != 1 || string(c[0].Statement.Value) != `"curl"` || c[0].Scope.Rule != Excludes || len(c[0].Statement.Reverify) == 0 {
		t.Errorf("contradictions %+v", c)
	}
	if len(doc.Facts("tools")) != 2 {
		t.Error("the document lost a fact")
	}
	wider, err := DecodeBaseline([]byte(strings.Replace(synthetic, `"cap": 3`, `"cap": 4`, 1)))
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := Rebase(doc, wider, at); err == nil {
		t.Error("a rebase may change axes")
	}
}

func TestDecodeBaselineRefuses(t *testing.T) {
	for name, edit := range map[string][2]string{
		"unknown axis in scope":   {`{"axis": "region"`, `{"axis": "place"`},
		"unknown rule":            {`"rule": "holds", "value": "eu"`, `"rule": "likes", "value": "eu"`},
		"a scalar holding two":    {`{"axis": "tools", "rule": "holds", "value": "git"}`, `{"axis": "region", "rule": "holds", "value": "us"}`},
		"holds and excludes":      {`"rule": "excludes", "value": "telnet"`, `"rule": "excludes", "value": "git "`},
		"unknown kind":            {`"set_union"`, `"bag"`},
		"no cap":                  {`{"kind": "set_union", "cap": 3}`, `{"kind": "set_union"}`},
		"an axis with a path":     {`"notes": {`, `"../notes": {`},
		"no limit":                {`"turn_gap": 100, `, ``},
		"an owner with a newline": {`synthetic-owner`, `synthetic\nowner`},
		"unknown name":            {`"scope"`, `"strict": false, "scope"`},
	} {
		raw := strings.Replace(synthetic, edit[0], edit[1], 1)
		if raw == synthetic {
			t.Errorf("%s: the vector changes nothing", name)
		}
		var input *canon.InputError
		if _, err := DecodeBaseline([]byte(raw)); !errors.As(err, &input) {
			t.Errorf("%s: %v, want an InputError", name, err)
		}
	}
	compact, err := canon.Canonicalize([]byte(synthetic))
	if err != nil {
		t.Fatal(err)
	}
	base, err := DecodeBaseline(compact)
	if err != nil || base.Digest() != testBaseline(t).Digest() {
		t.Errorf("layout is identity: %v", err)
	}
}

package living

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"selfsame.dev/selfsame/internal/canon"
)

// Law L1: the same inputs give the same bytes, and the instant is only written down.
func TestMergeIsPure(t *testing.T) {
	doc := NewDocument(testBaseline(t))
	out := capture(t, doc, newDraft(t, 1).claims("tools", `"a"`).claims("notes", `"b"`))
	before := doc.Bytes()
	one, mod, err := Merge(doc, out.Delta, at)
	if err != nil {
		t.Fatal(err)
	}
	for range 20 {
		again, modAgain, _ := Merge(doc, out.Delta, at)
		if again.Digest() != one.Digest() || fmt.Sprint(modAgain) != fmt.Sprint(mod) {
			t.Fatal("the same inputs gave other outputs")
		}
	}
	later, modLater, _ := Merge(doc, out.Delta, "2027-01-01T00:00:00Z")
	if later.Digest() != one.Digest() || modLater.At != "2027-01-01T00:00:00Z" || mod.At != at {
		t.Fatal("the clock reached the document")
	}
	if string(before) != string(doc.Bytes()) {
		t.Fatal("merge changed its input")
	}
}

// Law L4: a no-op is the same document; a real change is one version and one record.
func TestVersionFollowsRealChange(t *testing.T) {
	doc := NewDocument(testBaseline(t))
	d := newDraft(t, 1).claims("tools", `"a"`)
	one, mod := learn(t, doc, d)
	if one.Version() != 1 || mod.PriorVersion != 0 || !slices.Equal(mod.ChangedAxes, []string{"tools"}) || len(mod.Evidence) != 1 || mod.DeltaSHA256.IsZero() {
		t.Fatalf("version %d, %+v", one.Version(), mod)
	}
	same, none := learn(t, one, d)
	if same != one || none != nil {
		t.Fatalf("double ingest: version %d, %+v", same.Version(), none)
	}
	empty := capture(t, one, newDraft(t, 2))
	if same, none, err := Merge(one, empty.Delta, at); same != one || none != nil || err != nil {
		t.Fatalf("an empty delta: %v, %v", none, err)
	}
	again, mod := learn(t, one, newDraft(t, 2).claims("tools", `"a"`))
	if again.Version() != 2 || mod == nil || len(again.Facts("tools")) != 1 || again.Facts("tools")[0].Turn() != 2 {
		t.Fatal("new evidence for a known fact is a change, and no second fact")
	}
}

// Complaint: adding the same fact twice deletes or duplicates it.
func TestSameFactTwice(t *testing.T) {
	doc := NewDocument(testBaseline(t))
	doc, _ = learn(t, doc, newDraft(t, 1).claims("notes", `"x"`).claims("notes", `" x\n"`))
	doc, _ = learn(t, doc, newDraft(t, 2).claims("notes", `"x"`))
	if got := values(doc, "notes"); !slices.Equal(got, []string{`"x"`}) {
		t.Fatalf("notes %v", got)
	}
}

func TestKinds(t *testing.T) {
	doc := NewDocument(testBaseline(t))
	for turn, value := range []string{"a", "b", "c", "a", "d"} {
		d := newDraft(t, int64(turn+1))
		for _, axis := range []string{"language", "tools", "notes"} {
			d.claims(axis, `"`+value+`"`)
		}
		doc, _ = learn(t, doc, d)
	}
	if got := values(doc, "language"); !slices.Equal(got, []string{`"d"`}) {
		t.Errorf("a scalar holds %v", got)
	}
	if got := values(doc, "notes"); !slices.Equal(got, []string{`"c"`, `"a"`, `"d"`}) {
		t.Errorf("a list holds %v", got)
	}
	got := values(doc, "tools")
	slices.Sort(got)
	if !slices.Equal(got, []string{`"a"`, `"c"`, `"d"`}) {
		t.Errorf("a set holds %v", got)
	}
	// The evicted fact, delivered once more, does not come back and changes nothing.
	late := capture(t, doc, newDraft(t, 2).claims("notes", `"b"`))
	if same, mod, err := Merge(doc, late.Delta, at); same != doc || mod != nil || err != nil {
		t.Errorf("an evicted fact came back: %v, %v", mod, err)
	}
}

// Complaint: unbounded growth. Law L3.
func TestNothingGrowsWithoutLimit(t *testing.T) {
	doc := NewDocument(testBaseline(t))
	long := strings.Repeat("y", 1500)
	for turn := int64(1); turn <= 200; turn++ {
		doc, _ = learn(t, doc, newDraft(t, turn).claims("notes", fmt.Sprintf(`"%s %d"`, long, turn)).claims("tools", fmt.Sprintf(`"%s %d"`, long, turn)).claims("language", fmt.Sprint(turn)))
		if n := int64(len(doc.Bytes())); n > doc.Limits().DocumentBytes {
			t.Fatalf("turn %d: %d bytes", turn, n)
		}
	}
	for name, a := range doc.Axes() {
		if n := len(doc.Facts(name)); int64(n) > a.Cap {
			t.Errorf("axis %s holds %d, cap %d", name, n, a.Cap)
		}
	}
	if doc.Version() != 200 {
		t.Errorf("version %d", doc.Version())
	}
	// The bound is checked where caps are declared, so that merge never has to refuse for it.
	over := strings.Replace(synthetic, `"document_bytes": 65536`, `"document_bytes": 16384`, 1)
	if _, err := DecodeBaseline([]byte(over)); err == nil || !strings.Contains(err.Error(), "document_bytes") {
		t.Errorf("caps that cannot fit are accepted: %v", err)
	}
}

func TestMergeRefusesWhole(t *testing.T) {
	doc := NewDocument(testBaseline(t))
	fact := func(axis, value string, turn int64) *Fact {
		return newFact(axis, value, turn, 0, []Evidence{{Bytes: 1, SHA256: canon.Sum(nil), Source: "s"}})
	}
	many := map[string][]*Fact{}
	for i := range 17 {
		many["notes"] = append(many["notes"], fact("notes", fmt.Sprint(i), 1))
	}
	for name, delta := range map[string]*Delta{
		"too many facts":   newDelta("synthetic-owner", many),
		"a fact too large": newDelta("synthetic-owner", map[string][]*Fact{"notes": {fact("notes", `"a"`, 1), fact("notes", `"`+strings.Repeat("x", 2048)+`"`, 1)}}),
		"unknown axis":     newDelta("synthetic-owner", map[string][]*Fact{"notes": {fact("notes", `"a"`, 1)}, "zz": {fact("zz", `"a"`, 1)}}),
		"another owner":    newDelta("other", map[string][]*Fact{"notes": {fact("notes", `"a"`, 1)}}),
	} {
		var input *canon.InputError
		if next, mod, err := Merge(doc, delta, at); !errors.As(err, &input) || next != nil || mod != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A restore is a change of its own, and late deliveries do not undo it.
func TestRestore(t *testing.T) {
	base := NewDocument(testBaseline(t))
	first := newDraft(t, 1).claims("notes", `"good"`)
	one, _ := learn(t, base, first)
	second := newDraft(t, 2).claims("notes", `"mistake"`).claims("language", `"x"`)
	two, _ := learn(t, one, second)
	three, mod, err := Restore(two, one, at)
	if err != nil {
		t.Fatal(err)
	}
	if three.Version() != 3 || mod.PriorVersion != 2 || !slices.Equal(mod.ChangedAxes, []string{"language", "notes"}) {
		t.Fatalf("version %d, %+v", three.Version(), mod)
	}
	if !slices.Equal(values(three, "notes"), values(one, "notes")) || len(three.Facts("language")) != 0 {
		t.Fatal("the content is not that of version 1")
	}
	for _, d := range []*draft{first, second} {
		out, err := Capture(three, testBaseline(t), d.bytes())
		if err != nil || out.Delta.Len() != 0 || out.Refused[0].Reason != OtherTurn {
			t.Fatalf("a report from before the restore: %+v, %v", out, err)
		}
	}
	old := capture(t, two, second).Delta
	if same, mod, _ := Merge(three, old, at); same != three || mod != nil {
		t.Fatal("a late delivery undid the restore")
	}
	four, _ := learn(t, three, newDraft(t, 3).claims("notes", `"mistake"`))
	if len(four.Facts("notes")) != 2 {
		t.Fatal("what is shown again does not come back")
	}
	if same, mod, err := Restore(three, one, at); same != three || mod != nil || err != nil {
		t.Fatalf("restoring equal content: %v, %v", mod, err)
	}
	for name, earlier := range map[string]*Document{"itself": three, "a later one": four} {
		if _, _, err := Restore(three, earlier, at); err == nil {
			t.Errorf("restoring %s is accepted", name)
		}
	}
}

func TestEncodeIsCanonical(t *testing.T) {
	raw := strings.Replace(synthetic, "synthetic-owner", `owner \"é\" \\ 😀`, 1)
	base, err := DecodeBaseline([]byte(raw))
	if err != nil {
		t.Fatal(err)
	}
	doc := NewDocument(base)
	d := newDraft(t, 1).shows("e", `cmd: "q" \ ü`, "saw it")
	d.Owner = doc.Owner()
	d.cites("notes", `{"z":[1,1e21,"\u0001é"],"a":null}`, "e").cites("tools", `-0.5`, "e")
	out, err := Capture(doc, base, d.bytes())
	if err != nil || len(out.Refused) > 0 {
		t.Fatalf("%+v, %v", out, err)
	}
	doc, _, err = Merge(doc, out.Delta, at)
	if err != nil {
		t.Fatal(err)
	}
	for name, raw := range map[string][]byte{"document": doc.Bytes(), "content": doc.encode(false), "delta": out.Delta.Bytes()} {
		if got, err := canon.Canonicalize(raw); err != nil || string(got) != string(raw) {
			t.Errorf("%s is not canonical: %v\n%s\n%s", name, err, raw, got)
		}
	}
	if back, err := DecodeDelta(out.Delta.Bytes(), doc.Limits()); err != nil || back.Digest() != out.Delta.Digest() {
		t.Errorf("delta: %v", err)
	}
}

func TestDecodeDocumentRefuses(t *testing.T) {
	doc, _ := learn(t, NewDocument(testBaseline(t)), newDraft(t, 1).claims("notes", `"a"`).claims("notes", `"b"`))
	raw := string(doc.Bytes())
	if _, err := DecodeDocument([]byte(raw)); err != nil {
		t.Fatalf("control: %v", err)
	}
	facts := doc.axis("notes").facts
	for name, bad := range map[string]string{
		"another value":      strings.Replace(raw, `"value":"a"`, `"value":"c"`, 1),
		"not normalised":     strings.Replace(raw, `"value":"a"`, `"value":"a "`, 1),
		"order":              strings.Replace(raw, string(facts[0].raw)+","+string(facts[1].raw), string(facts[1].raw)+","+string(facts[0].raw), 1),
		"a fact twice":       strings.Replace(raw, string(facts[0].raw), string(facts[0].raw)+","+string(facts[0].raw), 1),
		"cap":                strings.Replace(raw, `"notes":{"cap":3`, `"notes":{"cap":1`, 1),
		"white space":        strings.Replace(raw, `{"axes"`, `{ "axes"`, 1),
		"unknown name":       strings.Replace(raw, `{"axes"`, `{"authority":"truth","axes"`, 1),
		"a scalar of two":    strings.Replace(raw, `"language":{"cap":1`, `"language":{"cap":2`, 1),
		"kind":               strings.Replace(raw, `"kind":"set_union"`, `"kind":"bag"`, 1),
		"version":            strings.Replace(raw, `"version":1`, `"version":-1`, 1),
		"no evidence":        strings.Replace(raw, `"evidence":[{`, `"evidence":[],"x":[{`, 1),
		"truncated":          raw[:len(raw)-1],
		"trailing data":      raw + "{}",
		"limits that burst":  strings.Replace(raw, `"fact_bytes":2048`, `"fact_bytes":20480`, 1),
		"an invisible owner": strings.Replace(raw, `"owner":"synthetic-owner"`, `"owner":"synthetic\u200bowner"`, 1),
	} {
		var input *canon.InputError
		if bad == raw {
			t.Errorf("%s: the vector changes nothing", name)
		}
		if _, err := DecodeDocument([]byte(bad)); !errors.As(err, &input) {
			t.Errorf("%s: %v, want an InputError", name, err)
		}
	}
}

func TestParseInstant(t *testing.T) {
	for s, ok := range map[string]bool{
		"2026-01-02T03:04:05Z": true, "2024-02-29T00:00:00Z": true,
		"2026-02-29T00:00:00Z": false, "2026-01-02T03:04:05+00:00": false, "2026-01-02 03:04:05Z": false,
		"2026-01-02T24:00:00Z": false, "2026-01-02T03:04:05.1Z": false, "2026-1-02T03:04:05Z": false, "": false, "+026-01-02T03:04:05Z": false, "-026-01-02T03:04:05Z": false,
	} {
		if _, err := ParseInstant(s); (err == nil) != ok {
			t.Errorf("%q: %v", s, err)
		}
	}
}

// fill returns a document whose notes axis holds n facts, and the limits for it.
func fill(b testing.TB, n int) *Document {
	doc := &Document{owner: "synthetic-owner", limits: Limits{DeltaFacts: 64, DocumentBytes: maxBytes, FactBytes: 1024, ReportBytes: 1 << 20, TurnGap: 100, ViewBytes: 65536}}
	facts := make([]*Fact, n)
	for i := range facts {
		facts[i] = newFact("notes", fmt.Sprintf(`"fact number %d"`, i), int64(i/20+1), int64(i%20), []Evidence{{Bytes: 1, SHA256: canon.Sum([]byte{byte(i)}), Source: "cmd: look"}})
	}
	doc.axes = []*axis{{name: "notes", Axis: Axis{ListAppendDedupeCap, int64(n)}, facts: newDelta("", map[string][]*Fact{"notes": facts}).axes["notes"]}}
	return doc
}

// A 20-fact delta into a full document of 10,000 facts. The target is below 1 ms.
// history is how many deltas the document has taken before: it must not matter.
func BenchmarkMerge20Into10000(b *testing.B) {
	for _, history := range []int{0, 100, 2000} {
		b.Run(fmt.Sprintf("history=%d", history), func(b *testing.B) {
			doc := fill(b, 10000)
			turn := doc.LastTurn()
			delta := func() *Delta {
				turn++
				var facts []*Fact
				for p := range 20 {
					facts = append(facts, newFact("notes", fmt.Sprintf(`"new %d %d"`, turn, p), turn, int64(p), []Evidence{{Bytes: 1, SHA256: canon.Sum(nil), Source: "cmd"}}))
				}
				return newDelta(doc.owner, map[string][]*Fact{"notes": facts})
			}
			for range history {
				doc, _, _ = Merge(doc, delta(), at)
			}
			d := delta()
			b.ReportAllocs()
			for b.Loop() {
				if next, mod, err := Merge(doc, d, at); err != nil || mod == nil || len(next.axes[0].facts) != 10000 {
					b.Fatal(err)
				}
			}
		})
	}
}

// The cost of a merge depends on the document, not on how it came to be.
func TestMergeCostIsIndependentOfHistory(t *testing.T) {
	cost := func(history int64) float64 {
		doc := fill(t, 500)
		fact := func(turn int64) *Delta {
			return newDelta(doc.owner, map[string][]*Fact{"notes": {newFact("notes", fmt.Sprint(turn), turn, 0, []Evidence{{Bytes: 1, SHA256: canon.Sum(nil), Source: "cmd"}})}})
		}
		for turn := range history {
			doc, _, _ = Merge(doc, fact(1000+turn), at)
		}
		next := fact(1000 + history)
		return testing.AllocsPerRun(20, func() {
			if _, mod, err := Merge(doc, next, at); err != nil || mod == nil {
				t.Fatal(err)
			}
		})
	}
	if young, old := cost(0), cost(3000); old > young+1 {
		t.Errorf("%.0f allocations after 3,000 merges, %.0f at first", old, young)
	}
}

func BenchmarkEncode10000(b *testing.B) {
	doc := fill(b, 10000)
	for b.Loop() {
		doc.Digest()
	}
}

func BenchmarkDecode10000(b *testing.B) {
	raw := fill(b, 10000).Bytes()
	for b.Loop() {
		if _, err := DecodeDocument(raw); err != nil {
			b.Fatal(err)
		}
	}
}

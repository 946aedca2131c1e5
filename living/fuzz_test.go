package living

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"selfsame.dev/selfsame/internal/canon"
)

// seedCorpus adds the committed vectors; testdata/fuzz holds what fuzzing found worth
// keeping.
func seedCorpus(f *testing.F, patterns ...string) {
	f.Helper()
	for _, pattern := range patterns {
		for _, raw := range files(f, pattern, 1) {
			f.Add(raw)
		}
	}
}

// FuzzDecode: decoders refuse with an InputError or accept, and what they accept is
// written back byte for byte.
func FuzzDecode(f *testing.F) {
	seedCorpus(f, "valid/*.json", "invalid/*/*.json", "baseline.json")
	f.Fuzz(func(t *testing.T, raw []byte) {
		var input *canon.InputError
		check := func(what string, back []byte, err error) {
			if err != nil && !errors.As(err, &input) {
				t.Fatalf("%s: %v is no InputError", what, err)
			}
			if err == nil && !bytes.Equal(back, raw) {
				t.Fatalf("%s: %s comes back as %s", what, raw, back)
			}
		}
		doc, err := DecodeDocument(raw)
		if err == nil {
			check("document", doc.Bytes(), nil)
			if n := int64(len(raw)); n > doc.limits.DocumentBytes {
				t.Fatalf("a document of %d bytes passes its limit", n)
			}
			if raw := viewBytes(t, doc); int64(len(raw)) > doc.limits.ViewBytes {
				t.Fatalf("a view of %d bytes", len(raw))
			}
		}
		check("document", raw, err)
		delta, err := DecodeDelta(raw, Limits{DeltaFacts: 8, FactBytes: 1024})
		if err == nil {
			check("delta", delta.Bytes(), nil)
		}
		check("delta", raw, err)
		_, err = DecodeRecord(raw)
		check("record", raw, err)
		_, err = decodeReport(raw)
		check("report", raw, err)
		base, err := DecodeBaseline(raw)
		check("baseline", raw, err)
		if err == nil {
			if _, err := DecodeDocument(NewDocument(base).Bytes()); err != nil {
				t.Fatalf("the empty document of a baseline: %v", err)
			}
		}
	})
}

// FuzzCapture: whatever a turn reports, an admitted fact cites evidence of that turn
// whose bytes have the cited digest; every claim is either admitted or refused; and
// merging what was admitted twice is merging it once.
func FuzzCapture(f *testing.F) {
	seedCorpus(f, "history/*.json", "refused/*/*.json")
	base, history := fixtureHistory(f)
	learned, err := Rehearse(base, history)
	if err != nil {
		f.Fatal(err)
	}
	doc := learned.Document
	f.Fuzz(func(t *testing.T, raw []byte) {
		out, err := Capture(doc, base, raw)
		if err != nil {
			var input *canon.InputError
			if !errors.As(err, &input) {
				t.Fatal(err)
			}
			return
		}
		for _, r := range out.Refused {
			if r.Reason == "" || r.Detail == "" {
				t.Fatalf("refused without a reason: %+v", r)
			}
			if _, err := canon.Marshal(r); err != nil {
				t.Fatalf("a refusal that cannot be recorded: %v", err)
			}
		}
		produced := map[canon.Digest]bool{}
		if r, err := decodeReport(raw); err == nil {
			for _, e := range r.Evidence {
				produced[canon.Sum(e.data)] = true
			}
			if whole := len(out.Refused) == 1 && out.Refused[0].Value == "" && out.Refused[0].Axis == ""; !whole {
				// Two claims of one fact are one fact of the delta.
				if n := int(out.Delta.Len()) + len(out.Refused); n > len(r.Claims) || len(out.Refused) == 0 && len(r.Claims) > 0 && out.Delta.Len() == 0 {
					t.Fatalf("%d claims, %d admitted, %d refused", len(r.Claims), out.Delta.Len(), len(out.Refused))
				}
			}
		}
		for name, facts := range out.Delta.axes {
			for _, fact := range facts {
				if fact.turn != out.Turn || len(fact.evidence) == 0 {
					t.Fatalf("fact of turn %d in turn %d", fact.turn, out.Turn)
				}
				for _, e := range fact.evidence {
					if !produced[e.SHA256] {
						t.Fatalf("evidence %s was not produced", e.SHA256)
					}
				}
				if base.contradicts(name, fact.value) != nil {
					t.Fatalf("%s contradicts the baseline", fact.raw)
				}
			}
		}
		once, _, err := Merge(doc, out.Delta, at)
		if err != nil {
			t.Fatalf("merge refuses what capture admits: %v", err)
		}
		if twice, mod, err := Merge(once, out.Delta, at); err != nil || mod != nil || twice != once {
			t.Fatalf("the second time: %+v, %v", mod, err)
		}
		if _, err := DecodeDocument(once.Bytes()); err != nil {
			t.Fatal(err)
		}
	})
}

// FuzzMerge: the join properties on histories read from bytes: a cap, then deltas of
// facts of three bytes each, then a permutation by swaps.
func FuzzMerge(f *testing.F) {
	f.Add([]byte{1, 0x10, 0x21, 0x32, 0xff, 0x11, 0x20})
	f.Add([]byte{0, 1, 2, 3, 0xff, 3, 2, 1, 0xff, 1, 2, 3})
	f.Add([]byte("synthetic history with a longer tail of facts"))
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) == 0 || len(data) > 64 {
			return
		}
		h := history{limit: int64(data[0]%5) + 1}
		var facts []*Fact
		closeDelta := func() {
			if len(facts) > 0 {
				h.order = append(h.order, len(h.deltas))
				h.deltas = append(h.deltas, newDelta("o", map[string][]*Fact{"a": facts}).axes["a"])
			}
			facts = nil
		}
		for i, b := range data[1:] {
			if b == 0xff {
				closeDelta()
				continue
			}
			source := fmt.Sprint("s", b>>7)
			facts = append(facts, newFact("a", fmt.Sprint(b%6), int64(b/6%7)+1, int64(i%4), []Evidence{{Bytes: 1, SHA256: canon.Sum([]byte(source)), Source: source}}))
		}
		closeDelta()
		for i := range h.order {
			j := int(data[i%len(data)]) % len(h.order)
			h.order[i], h.order[j] = h.order[j], h.order[i]
		}
		for _, b := range data {
			if n := len(h.deltas); n > 0 {
				h.again = append(h.again, int(b)%n)
			}
		}
		if why := broken(h, realJoin); why != "" {
			t.Fatal(why)
		}
	})
}

// A corpus that is silently empty proves nothing.
func TestFuzzCorpusIsThere(t *testing.T) {
	for _, target := range []string{"FuzzDecode", "FuzzCapture", "FuzzMerge"} {
		dir := filepath.Join("testdata", "fuzz", target)
		entries, err := os.ReadDir(dir)
		if err != nil || len(entries) < 10 {
			t.Errorf("%s: %d entries, %v", dir, len(entries), err)
		}
		for _, e := range entries {
			raw, err := os.ReadFile(filepath.Join(dir, e.Name()))
			if err != nil || !strings.HasPrefix(string(raw), "go test fuzz v1\n[]byte(") {
				t.Errorf("%s/%s is no corpus entry: %v", dir, e.Name(), err)
			}
		}
	}
}

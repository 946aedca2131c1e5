package living

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"selfsame.dev/selfsame/internal/canon"
)

func TestCaptureRefusesByReason(t *testing.T) {
	doc, _ := learn(t, NewDocument(testBaseline(t)), newDraft(t, 1).claims("tools", `"bazel"`))
	old := doc.Facts("tools")[0].Evidence()[0]
	id := doc.Facts("tools")[0].ID()
	good := func() *draft { return newDraft(t, 2).shows("log", "cmd: tool list", "bazel, gofmt, telnet, 3 found") }
	cite := func(name string, digest canon.Digest, turn int64) claim {
		return claim{Axis: "tools", Value: jsontext.Value(`"gofmt"`), Evidence: []citation{{name, digest, turn}}}
	}
	sum := canon.Sum([]byte("bazel, gofmt, telnet, 3 found"))
	for _, tc := range []struct {
		name   string
		report *draft
		reason Reason // of the only claim; "" admits it
	}{
		{"control: cited, produced, matching", good().states(cite("log", sum, 2)), ""},
		{"no citation", good().states(claim{Axis: "tools", Value: jsontext.Value(`"gofmt"`)}), NoEvidence},
		{"evidence that nobody produced", good().states(cite("other", sum, 2)), NoEvidence},
		{"empty evidence", newDraft(t, 2).shows("log", "cmd", "").states(cite("log", canon.Sum(nil), 2)), NoEvidence},
		{"evidence of an earlier turn", good().states(cite("log", sum, 1)), OtherTurn},
		{"evidence of a later turn", good().states(cite("log", sum, 3)), OtherTurn},
		{"an old fact's evidence, not produced again", good().states(cite("log", old.SHA256, 2)), DigestMismatch},
		{"other bytes than cited", good().states(cite("log", canon.Sum([]byte("x")), 2)), DigestMismatch},
		{"one good citation and one bad", good().states(claim{Axis: "tools", Value: jsontext.Value(`"gofmt"`),
			Evidence: []citation{{"log", sum, 2}, {"other", sum, 2}}}), NoEvidence},
		{"a flag instead of evidence", withRaw(good(), `{"axis":"tools","value":"gofmt","evidence":[],"verified":true}`), Malformed},
		{"a flag beside evidence", withRaw(good(), fmt.Sprintf(`{"axis":"tools","value":"gofmt","authority":"ground_truth","evidence":[{"name":"log","sha256":"%s","turn":2}]}`, sum)), Malformed},
		{"no claim at all", withRaw(good(), `"gofmt"`), Malformed},
		{"null", good().cites("tools", `null`, "log"), Malformed},
		{"blank", good().cites("tools", `" \n"`, "log"), Malformed},
		{"an axis that is not declared", good().cites("secrets", `"gofmt"`, "log"), UnknownAxis},
		{"the recalled fact itself", newDraft(t, 2).shows("m", "note", "bazel").cites("tools", `"bazel"`, "m"), Recalled},
		{"the recalled fact, in other clothes", newDraft(t, 2).shows("m", "note", " {\"Tools\": [\"BAZE\\u004c\"]}\n").cites("tools", `"bazel"`, "m"), Recalled},
		{"the recalled statement with its source", newDraft(t, 2).shows("m", "note", "bazel (cmd: inspect tools)").cites("tools", `"bazel"`, "m"), Recalled},
		{"memory by its identity", newDraft(t, 2).shows("m", "note", "I know "+strings.ToUpper(id.String())).cites("tools", `"bazel"`, "m"), Recalled},
		{"memory by its identity, for a new fact", newDraft(t, 2).shows("m", "note", "see ff"+id.String()).cites("notes", `"new"`, "m"), Recalled},
		{"memory by its source", newDraft(t, 2).shows("m", "memory: earlier turns", "gofmt was there").cites("tools", `"gofmt"`, "m"), Recalled},
		{"the recalled fact, said twice", newDraft(t, 2).shows("m", "note", "bazel, bazel").cites("tools", `"bazel"`, "m"), Recalled},
		{"recalled statements, one after another", newDraft(t, 2).shows("m", "note", "tools: bazel; tools (cmd: inspect tools)").cites("tools", `"bazel"`, "m"), Recalled},
		{"the recalled fact, for another axis", newDraft(t, 2).shows("m", "note", "bazel").cites("notes", `"bazel"`, "m"), Recalled},
		{"the recalled fact, for a new spelling of it", newDraft(t, 2).shows("m", "note", "bazel").cites("tools", `"Bazel"`, "m"), Recalled},
		{"memory by its identity, in pieces", newDraft(t, 2).shows("m", "note", "see "+id.String()[:30]+" "+id.String()[30:]).cites("notes", `"new"`, "m"), Recalled},
		{"memory by its identity, escaped", newDraft(t, 2).shows("m", "note", fmt.Sprintf(`{"see":"\u%04x%s"}`, id.String()[0], id.String()[1:])).cites("notes", `"new"`, "m"), Recalled},
		{"memory by its identity, in a report that calls itself early", newDraft(t, 1).shows("m", "note", id.String()).cites("notes", `"new"`, "m"), Recalled},
		{"control: a new fact whose evidence has a word that memory has not", newDraft(t, 2).shows("m", "cmd: tool list", "bazel and more").cites("notes", `"bazel"`, "m"), ""},
		{"control: the same fact, looked at again", newDraft(t, 2).shows("m", "cmd: tool list", "bazel 7.7.1").cites("tools", `"bazel"`, "m"), ""},
		{"excluded by the baseline", good().cites("tools", `"telnet"`, "log"), BaselineContradiction},
		{"other than the baseline holds", good().cites("region", `"us"`, "log"), BaselineContradiction},
		{"control: what the baseline holds", good().cites("region", `"eu"`, "log"), ""},
		{"over the size of a fact", good().cites("notes", `"`+strings.Repeat("x", 2048)+`"`, "log"), OverLimit},
		{"over the count of citations", good().cites("notes", `"x"`, "log", "log", "log", "log", "log", "log", "log", "log", "log"), OverLimit},
	} {
		t.Run(tc.name, func(t *testing.T) {
			out := capture(t, doc, tc.report)
			if tc.reason == "" {
				if len(out.Refused) != 0 || out.Delta.Len() != 1 {
					t.Fatalf("refused %+v", out.Refused)
				}
				return
			}
			if len(out.Refused) != 1 || out.Delta.Len() != 0 {
				t.Fatalf("admitted %s, refused %+v", out.Delta.Bytes(), out.Refused)
			}
			if r := out.Refused[0]; r.Reason != tc.reason || r.Detail == "" {
				t.Fatalf("reason %q (%s), want %q", r.Reason, r.Detail, tc.reason)
			}
			if next, mod, err := Merge(doc, out.Delta, at); err != nil || mod != nil || next != doc {
				t.Fatalf("a refused claim changed the document: %v, %v", mod, err)
			}
		})
	}
}

func withRaw(d *draft, raw string) *draft {
	d.Claims = append(d.Claims, jsontext.Value(raw))
	return d
}

// One bad claim spoils no other, and each comes back with its place and reason.
func TestCaptureKeepsTheGoodClaims(t *testing.T) {
	doc := NewDocument(testBaseline(t))
	d := newDraft(t, 1).claims("tools", `"bazel"`)
	d.states(claim{Axis: "tools", Value: jsontext.Value(`"guess"`)})
	withRaw(d, `7`).claims("notes", `"kept"`)
	out := capture(t, doc, d)
	if out.Delta.Len() != 2 || out.Delta.Facts("notes")[0].Position() != 3 {
		t.Fatalf("admitted %s", out.Delta.Bytes())
	}
	if len(out.Refused) != 2 || out.Refused[0].Reason != NoEvidence || out.Refused[0].Position != 1 ||
		out.Refused[1].Reason != Malformed || out.Refused[1].Position != 2 {
		t.Fatalf("refused %+v", out.Refused)
	}
}

// Law L3: a delta over the limits is refused whole.
func TestCaptureRefusesWhole(t *testing.T) {
	doc := NewDocument(testBaseline(t))
	many := newDraft(t, 1)
	for i := range 17 {
		many.claims("notes", fmt.Sprint(i))
	}
	big := newDraft(t, 1).claims("notes", `"x"`).shows("big", "cmd", strings.Repeat("x", 65536))
	for name, tc := range map[string]struct {
		report *draft
		reason Reason
	}{
		"too many claims":             {many, OverLimit},
		"too large":                   {big, OverLimit},
		"a turn from the far future":  {newDraft(t, 101).claims("notes", `"x"`), OverLimit},
		"control: at the limit":       {newDraft(t, 100).claims("notes", `"x"`), ""},
		"control: as many as allowed": {func() *draft { d := *many; d.Claims = d.Claims[:16]; return &d }(), ""},
	} {
		t.Run(name, func(t *testing.T) {
			out := capture(t, doc, tc.report)
			if tc.reason == "" {
				if len(out.Refused) > 0 {
					t.Fatalf("refused %+v", out.Refused)
				}
				return
			}
			if out.Delta.Len() != 0 || len(out.Refused) != 1 || out.Refused[0].Reason != tc.reason {
				t.Fatalf("admitted %d, refused %+v", out.Delta.Len(), out.Refused)
			}
		})
	}
}

func TestCaptureRefusesMalformedReports(t *testing.T) {
	doc := NewDocument(testBaseline(t))
	for name, raw := range map[string]string{
		"no JSON":           `learned: bazel`,
		"another owner":     `{"format":"living-turn.v1","owner":"other","turn":1,"evidence":[],"claims":[]}`,
		"another format":    `{"format":"living-turn.v2","owner":"synthetic-owner","turn":1,"evidence":[],"claims":[]}`,
		"no turn":           `{"format":"living-turn.v1","owner":"synthetic-owner","evidence":[],"claims":[]}`,
		"unknown field":     `{"format":"living-turn.v1","owner":"synthetic-owner","turn":1,"evidence":[],"claims":[],"verified":true}`,
		"one name twice":    `{"format":"living-turn.v1","owner":"synthetic-owner","turn":1,"evidence":[{"name":"a","source":"s","text":"1"},{"name":"a","source":"s","text":"2"}],"claims":[]}`,
		"text and base64":   `{"format":"living-turn.v1","owner":"synthetic-owner","turn":1,"evidence":[{"name":"a","source":"s","text":"1","base64":"MQ=="}],"claims":[]}`,
		"sloppy base64":     `{"format":"living-turn.v1","owner":"synthetic-owner","turn":1,"evidence":[{"name":"a","source":"s","base64":"MR=="}],"claims":[]}`,
		"nowhere to verify": `{"format":"living-turn.v1","owner":"synthetic-owner","turn":1,"evidence":[{"name":"a","source":"","text":"1"}],"claims":[]}`,
		"a hidden source":   `{"format":"living-turn.v1","owner":"synthetic-owner","turn":1,"evidence":[{"name":"a","source":"go\u202e.mod","text":"1"}],"claims":[]}`,
	} {
		t.Run(name, func(t *testing.T) {
			var input *canon.InputError
			if out, err := Capture(doc, testBaseline(t), []byte(raw)); !errors.As(err, &input) {
				t.Fatalf("%+v, %v; want an InputError", out, err)
			}
		})
	}
}

// A fact is one fact however it is spelled.
func TestNormalizeValue(t *testing.T) {
	for in, want := range map[string]string{
		`" bazel\n"`:             `"bazel"`,
		`"e\u0301"`:              `"é"`,
		`"a\r\nb"`:               `"a\nb"`,
		`1.0`:                    `1`,
		`{"b":" x","a":[true ]}`: `{"a":[true],"b":"x"}`,
		`false`:                  `false`,
		`0`:                      `0`,
	} {
		got, err := NormalizeValue([]byte(in))
		if err != nil || got != want {
			t.Errorf("NormalizeValue(%s) = %s, %v; want %s", in, got, err, want)
		}
		if again, err := NormalizeValue([]byte(got)); err != nil || again != got {
			t.Errorf("not stable: %s, %v", again, err)
		}
	}
	for _, in := range []string{`null`, `""`, `"  "`, `{"a":1,"a ":2}`, `1e400`, `nope`} {
		if got, err := NormalizeValue([]byte(in)); err == nil {
			t.Errorf("NormalizeValue(%s) = %s, want a refusal", in, got)
		}
	}
	if identity("a", `"x"`) == identity("b", `"x"`) {
		t.Error("two axes share an identity")
	}
}

package living

import (
	"encoding/base64"
	"fmt"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"selfsame.dev/selfsame/internal/canon"
)

const synthetic = `{
	"format": "living-baseline.v1",
	"owner": "synthetic-owner",
	"axes": {
		"language": {"kind": "scalar_overwrite", "cap": 1},
		"tools": {"kind": "set_union", "cap": 3},
		"notes": {"kind": "list_append_dedupe_cap", "cap": 3},
		"region": {"kind": "scalar_overwrite", "cap": 1}
	},
	"limits": {"delta_facts": 16, "document_bytes": 65536, "fact_bytes": 2048, "report_bytes": 65536, "turn_gap": 100, "view_bytes": 4096},
	"scope": [
		{"axis": "region", "rule": "holds", "value": "eu"},
		{"axis": "tools", "rule": "excludes", "value": "telnet"},
		{"axis": "tools", "rule": "holds", "value": "git"}
	]
}`

func testBaseline(t testing.TB) *Baseline {
	t.Helper()
	base, err := DecodeBaseline([]byte(synthetic))
	if err != nil {
		t.Fatal(err)
	}
	return base
}

const at = Instant("2026-01-02T03:04:05Z")

// draft writes turn reports for tests.
type draft struct {
	report
	t testing.TB
}

func newDraft(t testing.TB, turn int64) *draft {
	return &draft{t: t, report: report{Format: ReportFormat, Owner: "synthetic-owner", Turn: turn}}
}

func (d *draft) shows(name, source, data string) *draft {
	encoded := base64.StdEncoding.EncodeToString([]byte(data))
	d.Evidence = append(d.Evidence, produced{Name: name, Source: source, Base64: &encoded, data: []byte(data)})
	return d
}

// claims states a fact with evidence of its own, as an honest turn does.
func (d *draft) claims(axis, value string) *draft {
	name := fmt.Sprintf("e%d", len(d.Evidence))
	d.shows(name, "cmd: inspect "+axis, fmt.Sprintf("turn %d looked at %s and saw %s", d.Turn, axis, value))
	return d.cites(axis, value, name)
}

// cites states a fact and cites evidence shown before, correctly.
func (d *draft) cites(axis, value string, names ...string) *draft {
	c := claim{Axis: axis, Value: jsontext.Value(value)}
	for _, name := range names {
		for _, e := range d.Evidence {
			if e.Name == name {
				c.Evidence = append(c.Evidence, citation{Name: name, SHA256: canon.Sum(e.data), Turn: d.Turn})
			}
		}
	}
	return d.states(c)
}

func (d *draft) states(c claim) *draft {
	raw, err := canon.Marshal(c)
	if err != nil {
		d.t.Fatal(err)
	}
	d.Claims = append(d.Claims, raw)
	return d
}

func (d *draft) bytes() []byte {
	type wire struct { // base64 only, as the optional fields are absent, not null
		Base64 string `json:"base64"`
		Name   string `json:"name"`
		Source string `json:"source"`
	}
	out := map[string]any{"claims": d.Claims, "format": d.Format, "owner": d.Owner, "turn": d.Turn}
	evidence := []wire{}
	for _, e := range d.Evidence {
		evidence = append(evidence, wire{*e.Base64, e.Name, e.Source})
	}
	out["evidence"] = evidence
	raw, err := canon.Marshal(out)
	if err != nil {
		d.t.Fatal(err)
	}
	return raw
}

func capture(t testing.TB, doc *Document, d *draft) *Outcome {
	t.Helper()
	out, err := Capture(doc, testBaseline(t), d.bytes())
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// learn captures and merges, and wants nothing refused.
func learn(t testing.TB, doc *Document, d *draft) (*Document, *Modification) {
	t.Helper()
	out := capture(t, doc, d)
	if len(out.Refused) > 0 {
		t.Fatalf("refused: %+v", out.Refused)
	}
	next, mod, err := Merge(doc, out.Delta, at)
	if err != nil {
		t.Fatal(err)
	}
	return next, mod
}

func values(doc *Document, axis string) []string {
	out := []string{}
	for _, f := range doc.Facts(axis) {
		out = append(out, f.value)
	}
	return out
}

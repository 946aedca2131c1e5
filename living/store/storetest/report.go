package storetest

import (
	"fmt"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"selfsame.dev/selfsame/internal/canon"
	"selfsame.dev/selfsame/living"
)

// Owner is the owner of [Baseline]. All data here is synthetic.
const Owner = "synthetic-owner"

// Baseline returns a small baseline for an owner: a scalar, a set and a list with caps
// of 1, 8 and 8, and a frozen region.
func Baseline(t testing.TB, owner string) *living.Baseline {
	t.Helper()
	type axes map[string]living.Axis
	raw, err := canon.Marshal(map[string]any{
		"format": living.BaselineFormat, "owner": owner,
		"axes": axes{
			"language": {Kind: living.ScalarOverwrite, Cap: 1},
			"notes":    {Kind: living.ListAppendDedupeCap, Cap: 8},
			"region":   {Kind: living.ScalarOverwrite, Cap: 1},
			"tools":    {Kind: living.SetUnion, Cap: 8},
		},
		"limits": living.Limits{DeltaFacts: 16, DocumentBytes: 1 << 16, FactBytes: 1024, ReportBytes: 1 << 16, TurnGap: 1 << 20, ViewBytes: 4096},
		"scope":  []living.Scope{{Axis: "region", Rule: living.Holds, Value: jsontext.Value(`"eu"`)}},
	})
	if err != nil {
		t.Fatal(err)
	}
	base, err := living.DecodeBaseline(raw)
	if err != nil {
		t.Fatal(err)
	}
	return base
}

// Claim is a fact to be reported. Without Seen it cites nothing.
type Claim struct{ Axis, Value, Seen string }

// Saw claims a text value on an axis, with evidence that says where it came from.
func Saw(axis, value string) Claim {
	return Claim{axis, fmt.Sprintf("%q", value), "looked, and found that " + axis + " shows " + value}
}

// Report writes the report of one turn: each claim with evidence of its own.
func Report(owner string, turn int64, claims ...Claim) []byte {
	type object = map[string]any
	evidence, stated := []object{}, []object{}
	for i, c := range claims {
		name := fmt.Sprint("e", i)
		cited := []object{}
		if c.Seen != "" {
			evidence = append(evidence, object{"name": name, "source": "cmd: look " + c.Axis, "text": c.Seen})
			cited = append(cited, object{"name": name, "sha256": canon.Sum([]byte(c.Seen)), "turn": turn})
		}
		stated = append(stated, object{"axis": c.Axis, "evidence": cited, "value": jsontext.Value(c.Value)})
	}
	raw, err := canon.Marshal(object{"claims": stated, "evidence": evidence, "format": living.ReportFormat, "owner": owner, "turn": turn})
	if err != nil {
		panic(err)
	}
	return raw
}

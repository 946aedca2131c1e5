package rpi_test

import (
	"strings"
	"testing"

	"selfsame.dev/selfsame/internal/canon"
	"selfsame.dev/selfsame/rpi"
	"selfsame.dev/selfsame/rpi/rpitest"
)

// agrees says how decoding raw differs from what canon says of it, or "".
func agrees(raw []byte) string {
	value, err := rpi.Decode(raw)
	want, wantErr := canon.Canonicalize(raw)
	switch {
	case (err == nil) != (wantErr == nil):
		return "decode: " + errorText(err) + "; canon: " + errorText(wantErr)
	case err == nil && string(value.AppendJSON(nil)) != string(want):
		return "got " + value.String() + ", canon " + string(want)
	}
	return ""
}

func errorText(err error) string {
	if err == nil {
		return "accepted"
	}
	return err.Error()
}

var documents = []string{
	`null`, ` true `, `[]`, `{}`, `[ ]`, `{ }`, `"a\u00e9\ud83d\ude00\n\"\\\/\b\f\t\u0001"`, "\"\x7f\u2028\"",
	`-0`, `-0.0`, `0.10`, `1E400`, `1e21`, `100000000000000000000`, `9007199254740993`, `9007199254740991`, `123456789012345`,
	`1234567890123456`, `5e-324`, `[1,2.5,[{"a":[]}],"x" , null]`, `{"b":{"z":1,"a":2},"a":[true,false]}`,
	"{\"\ue000\":1,\"\U0001f600\":2,\"\uffff\":3,\"a\":4,\"ab\":5,\"\":6,\"é\":7}", `{"a":1,"a":2}`, `[1,]`, `{"a"}`, `"\ud800"`, `1 2`, ``,
	strings.Repeat("[", 600) + strings.Repeat("]", 600),
}

func TestDecodeAgreesWithCanon(t *testing.T) {
	for _, doc := range documents {
		if differs := agrees([]byte(doc)); differs != "" {
			t.Errorf("%.80s: %s", doc, differs)
		}
	}
}

func TestValue(t *testing.T) {
	list := rpi.ListOf(rpi.String("a"), rpi.Integer(-3), rpi.Boolean(true), rpi.Value{})
	under := rpitest.Object("a", "1", "b", "2")
	merged := under.With(rpitest.Object("b", list, "c", rpi.Strings([]string{"x"})))
	if got := merged.String(); got != `{"a":"1","b":["a",-3,true,null],"c":["x"]}` {
		t.Error(got)
	}
	if got := under.String(); got != `{"a":"1","b":"2"}` {
		t.Errorf("With changed its receiver: %s", got)
	}
	if _, ok := list.Get("a"); ok {
		t.Error("a list has members")
	}
	if s, ok := list.Text(); ok || s != "" {
		t.Error("a list is text")
	}
	var names []string
	for name := range merged.Members() {
		names = append(names, name)
	}
	if strings.Join(names, "") != "abc" {
		t.Errorf("members in the order %v", names)
	}
}

// White space is what CPython 3.11 says of str.isspace; three neighbours are not.
func TestBlankIsPythonsStrip(t *testing.T) {
	space := "\t\n\v\f\r\x1c\x1d\x1e\x1f \u0085\u00a0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u2028\u2029\u202f\u205f\u3000"
	run := func(id string) error {
		_, err := rpi.NormalizeRound(rpitest.Leg("FAIL", []string{id}, nil, digestA, "north"))
		return err
	}
	for _, r := range space {
		if run(string(r)) == nil {
			t.Errorf("an id of %U is accepted", r)
		}
		if err := run(string(r) + "x"); err != nil {
			t.Errorf("%U before a letter: %v", r, err)
		}
	}
	if run(space) == nil {
		t.Error("an id of all white space is accepted")
	}
	for _, r := range "\u200b\u180e\ufeff\x1b\u2060" {
		if err := run(string(r)); err != nil {
			t.Errorf("%U: %v", r, err)
		}
	}
}

// One object twice: With and equal must not slow down with the number of members.
func TestLargeObjects(t *testing.T) {
	var members []rpi.Member
	for i := range 20000 {
		members = append(members, rpi.Member{Name: "m" + rpi.Integer(i).String(), Value: rpi.Integer(i)})
	}
	finding := rpi.ObjectOf(members...).With(rpitest.Object("id", "slow"))
	entry := rpi.ObjectOf(members...).With(rpitest.Object("ref", "r"))
	one := func(family string) rpi.Value {
		return rpitest.Object("status", "FAIL", "findings", rpi.ListOf(finding), "evidence_refs", rpi.ListOf(entry),
			"subject_digest", digestA, "validator_family", family)
	}
	round, err := rpi.NormalizeRound(rpi.ListOf(one("north"), one("south")))
	if err != nil || len(round.Open()) != 1 || round.Open()[0].Fields().Len() != 20001 {
		t.Fatal(err)
	}
}

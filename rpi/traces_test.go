package rpi_test

import (
	"fmt"
	"math/rand/v2"
	"strings"

	"selfsame.dev/selfsame/rpi"
)

// traces makes random repairs that mostly obey the law, and breaks some of them.
type traces struct{ *rand.Rand }

func newTraces(seed uint64) traces { return traces{rand.New(rand.NewPCG(seed, 7))} }

func (g traces) chance(percent int) bool { return g.IntN(100) < percent }

func object(members ...any) rpi.Value {
	var list []rpi.Member
	for i := 0; i < len(members); i += 2 {
		value, ok := members[i+1].(rpi.Value)
		if s, isText := members[i+1].(string); isText {
			value, ok = rpi.String(s), true
		}
		if !ok {
			panic("a member is a value or a string")
		}
		list = append(list, rpi.Member{Name: members[i].(string), Value: value})
	}
	return rpi.ObjectOf(list...)
}

func subject(n int) string { return strings.Repeat(fmt.Sprintf("%08x", n+1), 8) }

func leg(status string, ids []string, classes map[string]string, digest, family string, evidence ...rpi.Value) rpi.Value {
	var findings []rpi.Value
	for _, id := range ids {
		finding := object("id", id, "summary", "synthetic")
		if class := classes[id]; class != "" {
			finding = finding.With(object("class", class))
		}
		findings = append(findings, finding)
	}
	return object("status", status, "findings", rpi.ListOf(findings...), "evidence_refs", rpi.ListOf(evidence...),
		"subject_digest", digest, "validator_family", family, "checked", rpi.Strings([]string{"acceptance"}))
}

func binding(ref, digest, list string, ids ...string) rpi.Value {
	return object("ref", ref, "subject_digest", digest, list, rpi.Strings(ids))
}

// rounds makes up to six rounds.
func (g traces) rounds() []rpi.Value {
	classes := map[string]string{}
	var open, pool []string
	for i := range 9 {
		id := fmt.Sprintf("f%d", i)
		if g.chance(60) {
			classes[id] = fmt.Sprintf("c%d", g.IntN(6))
		}
		if i < 4 {
			open = append(open, id)
		} else {
			pool = append(pool, id)
		}
	}
	open = open[:g.IntN(5)]
	digest := subject(0)
	var rounds []rpi.Value
	for i := range 1 + g.IntN(6) {
		evidence := []rpi.Value{rpi.String("suite")}
		prior := digest
		if i > 0 {
			if g.chance(90) {
				digest = subject(i)
			}
			n := min(len(open), 1+g.IntN(2))
			if n > 0 && g.chance(90) {
				evidence = append(evidence, binding(fmt.Sprintf("fix-%d", i), digest, "resolves", open[:n]...))
			}
			closed := open[:n]
			open = append([]string(nil), open[n:]...)
			if g.chance(25) && len(pool) > 0 {
				if g.chance(80) {
					evidence = append(evidence, binding(fmt.Sprintf("seen-%d", i), prior, "preexisting", pool[0]))
				}
				open, pool = append(open, pool[0]), pool[1:]
			}
			if g.chance(5) && len(open) > 0 {
				evidence = append(evidence, binding(fmt.Sprintf("blame-%d", i), digest, "introduced", open[0]))
			}
			if g.chance(10) {
				pool = append(append([]string(nil), closed...), pool...)
			}
		}
		var legs []rpi.Value
		for l := range 1 + g.IntN(3) {
			mine, status := open, "FAIL"
			if l > 0 {
				mine = open[:g.IntN(len(open)+1)]
			}
			switch {
			case len(mine) == 0:
				status = "PASS"
			case g.chance(30):
				status = "NOT_PROVEN"
			}
			if g.chance(5) {
				legs = append(legs, leg(status, mine, classes, digest, "north"))
				continue
			}
			legs = append(legs, leg(status, mine, classes, digest, []string{"north", "south", ""}[l], evidence...))
		}
		if len(legs) == 1 {
			rounds = append(rounds, legs[0])
		} else {
			rounds = append(rounds, rpi.ListOf(legs...))
		}
	}
	return rounds
}

// junk is what a mutation puts in the place of a value.
var junk = []rpi.Value{
	{}, rpi.Boolean(true), rpi.Boolean(false), rpi.Integer(0), rpi.Integer(1), rpi.String(""), rpi.String(" \u3000"),
	rpi.String("FAIL"), rpi.String("PASS"), rpi.String("f1"), rpi.String(digestA), rpi.String(digestA + "\n"),
	rpi.ListOf(), rpi.Strings([]string{"f1", "f2"}), rpi.ListOf(rpi.Integer(1)), rpi.ObjectOf(), object("id", "f1"),
}

// mutate replaces, drops or doubles one value somewhere in v.
func (g traces) mutate(v rpi.Value) rpi.Value {
	if v.Len() == 0 || g.chance(10) {
		return junk[g.IntN(len(junk))]
	}
	at, i := g.IntN(v.Len()), 0
	if v.Kind() == rpi.List {
		var items []rpi.Value
		for _, item := range v.Items() {
			if i++; i-1 == at {
				switch {
				case g.chance(10):
					continue
				case g.chance(10):
					items = append(items, item)
				default:
					item = g.mutate(item)
				}
			}
			items = append(items, item)
		}
		return rpi.ListOf(items...)
	}
	var members []rpi.Member
	for name, value := range v.Members() {
		if i++; i-1 == at {
			if g.chance(15) {
				continue
			}
			value = g.mutate(value)
		}
		members = append(members, rpi.Member{Name: name, Value: value})
	}
	return rpi.ObjectOf(members...)
}

func (g traces) options() rpi.Options {
	o := rpi.DefaultOptions()
	o.RepairRounds = g.IntN(7)
	o.CrossModel = g.chance(20)
	return o
}

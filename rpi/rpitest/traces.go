// Package rpitest makes random repairs for tests: rounds that mostly obey the law, and mutations
// of them.
package rpitest

import (
	"fmt"
	"math/rand/v2"
	"strings"

	"selfsame.dev/selfsame/rpi"
)

// Traces makes random repairs that mostly obey the law, and breaks some of them.
type Traces struct{ *rand.Rand }

// New returns the generator of one seed.
func New(seed uint64) Traces { return Traces{rand.New(rand.NewPCG(seed, 7))} }

// Chance is true so many times in a hundred.
func (g Traces) Chance(percent int) bool { return g.IntN(100) < percent }

// Object returns an object of names and values, which are a Value or a string each.
func Object(members ...any) rpi.Value {
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

// Subject returns the digest of the n-th synthetic subject.
func Subject(n int) string { return strings.Repeat(fmt.Sprintf("%08x", n+1), 8) }

// Leg returns one validate result with synthetic findings.
func Leg(status string, ids []string, classes map[string]string, digest, family string, evidence ...rpi.Value) rpi.Value {
	var findings []rpi.Value
	for _, id := range ids {
		finding := Object("id", id, "summary", "synthetic")
		if class := classes[id]; class != "" {
			finding = finding.With(Object("class", class))
		}
		findings = append(findings, finding)
	}
	return Object("status", status, "findings", rpi.ListOf(findings...), "evidence_refs", rpi.ListOf(evidence...),
		"subject_digest", digest, "validator_family", family, "checked", rpi.Strings([]string{"acceptance"}))
}

// Binding returns a receipt bound to a subject; list is resolves, preexisting or introduced.
func Binding(ref, digest, list string, ids ...string) rpi.Value {
	return Object("ref", ref, "subject_digest", digest, list, rpi.Strings(ids))
}

// Rounds makes up to six rounds.
func (g Traces) Rounds() []rpi.Value {
	classes := map[string]string{}
	var open, pool []string
	for i := range 9 {
		id := fmt.Sprintf("f%d", i)
		if g.Chance(60) {
			classes[id] = fmt.Sprintf("c%d", g.IntN(6))
		}
		if i < 4 {
			open = append(open, id)
		} else {
			pool = append(pool, id)
		}
	}
	open = open[:g.IntN(5)]
	digest := Subject(0)
	var rounds []rpi.Value
	for i := range 1 + g.IntN(6) {
		evidence := []rpi.Value{rpi.String("suite")}
		prior := digest
		if i > 0 {
			if g.Chance(90) {
				digest = Subject(i)
			}
			n := min(len(open), 1+g.IntN(2))
			if n > 0 && g.Chance(90) {
				evidence = append(evidence, Binding(fmt.Sprintf("fix-%d", i), digest, "resolves", open[:n]...))
			}
			closed := open[:n]
			open = append([]string(nil), open[n:]...)
			if g.Chance(25) && len(pool) > 0 {
				if g.Chance(80) {
					evidence = append(evidence, Binding(fmt.Sprintf("seen-%d", i), prior, "preexisting", pool[0]))
				}
				open, pool = append(open, pool[0]), pool[1:]
			}
			if g.Chance(5) && len(open) > 0 {
				evidence = append(evidence, Binding(fmt.Sprintf("blame-%d", i), digest, "introduced", open[0]))
			}
			if g.Chance(10) {
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
			case g.Chance(30):
				status = "NOT_PROVEN"
			}
			if g.Chance(5) {
				legs = append(legs, Leg(status, mine, classes, digest, "north"))
				continue
			}
			legs = append(legs, Leg(status, mine, classes, digest, []string{"north", "south", ""}[l], evidence...))
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
	rpi.String("FAIL"), rpi.String("PASS"), rpi.String("f1"), rpi.String(Subject(1)), rpi.String(Subject(1) + "\n"),
	rpi.ListOf(), rpi.Strings([]string{"f1", "f2"}), rpi.ListOf(rpi.Integer(1)), rpi.ObjectOf(), Object("id", "f1"),
}

// Mutate replaces, drops or doubles one value somewhere in v.
func (g Traces) Mutate(v rpi.Value) rpi.Value {
	if v.Len() == 0 || g.Chance(10) {
		return junk[g.IntN(len(junk))]
	}
	at, i := g.IntN(v.Len()), 0
	if v.Kind() == rpi.List {
		var items []rpi.Value
		for _, item := range v.Items() {
			if i++; i-1 == at {
				switch {
				case g.Chance(10):
					continue
				case g.Chance(10):
					items = append(items, item)
				default:
					item = g.Mutate(item)
				}
			}
			items = append(items, item)
		}
		return rpi.ListOf(items...)
	}
	var members []rpi.Member
	for name, value := range v.Members() {
		if i++; i-1 == at {
			if g.Chance(15) {
				continue
			}
			value = g.Mutate(value)
		}
		members = append(members, rpi.Member{Name: name, Value: value})
	}
	return rpi.ObjectOf(members...)
}

// Options declares a random bound, and sometimes a second family.
func (g Traces) Options() rpi.Options {
	o := rpi.DefaultOptions()
	o.RepairRounds = g.IntN(7)
	o.CrossModel = g.Chance(20)
	return o
}

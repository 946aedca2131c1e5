// Package catalog states the nine records of the living profile in machine-readable
// form, checks that statement, and lays test results beside it.
package catalog

import (
	"bufio"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"selfsame.dev/selfsame/internal/canon"
	"selfsame.dev/selfsame/schemas"
)

// Format names the form of the catalog.
const Format = "living-catalog.v1"

//go:embed catalog.json
var raw []byte

// Record is one record: what must hold, which records it builds on, and the tests that
// show it, as package folder, dot, name.
type Record struct {
	ID        string            `json:"id"`
	Stage     string            `json:"stage,omitzero"`
	MathType  string            `json:"math_type,omitzero"`
	Yields    string            `json:"yields,omitzero"`
	Composes  []string          `json:"composes"`
	Stages    map[string]string `json:"stages,omitzero"` // stage -> record, of a kernel
	Invariant string            `json:"invariant"`
	ShownBy   []string          `json:"shown_by"`
}

// External is a principle that records specialise and that lies outside the catalog.
type External struct {
	ID      string `json:"id"`
	Meaning string `json:"meaning"`
}

// Attribute is one attribute of the catalog's check: what holds and what shows it.
type Attribute struct {
	Holds   string   `json:"holds"`
	ShownBy []string `json:"shown_by"`
}

// Catalog is the whole statement.
type Catalog struct {
	Format   string               `json:"format"`
	External []External           `json:"external"`
	Records  []Record             `json:"records"`
	Check    map[string]Attribute `json:"check"`
}

// Attributes are those of the check, in the order of the source.
var Attributes = []string{"population", "freshness", "refusal", "observation", "authority"}

// Stages are those of the derivation loop, in order.
var Stages = []string{"orient", "verify", "act", "commit"}

// Load returns the catalog that is compiled in.
func Load() (*Catalog, error) { return decode(raw) }

func decode(raw []byte) (*Catalog, error) {
	c := &Catalog{}
	return c, schemas.Decode("living/catalog/catalog.json", Format, raw, c)
}

// Problems names everything about the statement that does not hold: references that
// lead nowhere or in a circle, stages that the kernel does not cover, tests that
// exists does not know.
func (c *Catalog) Problems(exists func(test string) bool) []string {
	var problems []string
	bad := func(format string, args ...any) { problems = append(problems, fmt.Sprintf(format, args...)) }
	records := map[string]*Record{}
	known := map[string]bool{}
	used := map[string]bool{}
	for i := range c.Records {
		r := &c.Records[i]
		if known[r.ID] {
			bad("%s: is there twice", r.ID)
		}
		known[r.ID], records[r.ID] = true, r
	}
	for _, e := range c.External {
		if known[e.ID] {
			bad("%s: is there twice", e.ID)
		}
		known[e.ID] = true
	}
	kernels := 0
	for _, r := range c.Records {
		for _, id := range r.Composes {
			used[id] = true
			if !known[id] {
				bad("%s: composes %s, which is nowhere", r.ID, id)
			}
		}
		if reaches(records, r.Composes, r.ID, map[string]bool{}) {
			bad("%s: composes itself in a circle", r.ID)
		}
		if r.Stages == nil {
			continue
		}
		kernels++
		for _, stage := range Stages {
			id := r.Stages[stage]
			switch part := records[id]; {
			case part == nil:
				bad("%s: no record for stage %s", r.ID, stage)
			case part.Stage != stage:
				bad("%s: %s is of stage %q, not %s", r.ID, id, part.Stage, stage)
			case !slices.Contains(r.Composes, id):
				bad("%s: does not compose %s, its stage %s", r.ID, id, stage)
			}
		}
	}
	if kernels != 1 {
		bad("%d records cover the stages, want one kernel", kernels)
	}
	for _, e := range c.External {
		if !used[e.ID] {
			bad("%s: nothing composes it", e.ID)
		}
	}
	for _, name := range Attributes {
		if len(c.Check[name].ShownBy) == 0 {
			bad("check: nothing shows %s", name)
		}
	}
	for _, test := range c.Tests() {
		if !exists(test) {
			bad("%s: no such test", test)
		}
	}
	return problems
}

func reaches(records map[string]*Record, from []string, to string, seen map[string]bool) bool {
	for _, id := range from {
		if id == to {
			return true
		}
		if r := records[id]; r != nil && !seen[id] {
			seen[id] = true
			if reaches(records, r.Composes, to, seen) {
				return true
			}
		}
	}
	return false
}

// Tests returns every test that the catalog names, sorted.
func (c *Catalog) Tests() []string {
	named := map[string]bool{}
	for _, r := range c.Records {
		for _, test := range r.ShownBy {
			named[test] = true
		}
	}
	for _, a := range c.Check {
		for _, test := range a.ShownBy {
			named[test] = true
		}
	}
	return slices.Sorted(maps.Keys(named))
}

// Results reads the output of "go test -json" for packages of this module and returns
// each test's last outcome: "pass", "fail" or "skip". Subtests count with their parent.
func Results(r io.Reader) (map[string]string, error) {
	const module = "selfsame.dev/selfsame/"
	results := map[string]string{}
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, 1<<24)
	for n := 1; lines.Scan(); n++ {
		if !strings.HasPrefix(lines.Text(), "{") {
			continue // compilers write between the lines
		}
		var event struct{ Action, Package, Test string }
		if err := json.Unmarshal(lines.Bytes(), &event); err != nil {
			return nil, &canon.InputError{Key: fmt.Sprintf("line %d", n), Problem: err.Error(), Fix: "give the output of go test -json"}
		}
		name, inside := strings.CutPrefix(event.Package, module)
		if inside && event.Test != "" && !strings.Contains(event.Test, "/") && slices.Contains([]string{"pass", "fail", "skip"}, event.Action) {
			results[name+"."+event.Test] = event.Action
		}
	}
	return results, lines.Err()
}

// Shown is an attribute of the check with the evidence that the source leaves open: the
// outcome of each test that shows it, in one run.
type Shown struct {
	Attribute string
	Holds     string
	Outcomes  map[string]string // test -> outcome; "not run" if the run lacks it
}

// Evidence lays the results of a run beside the check. The error names every test of
// the catalog that did not run and pass.
func (c *Catalog) Evidence(results map[string]string) ([]Shown, error) {
	outcome := func(test string) string {
		if got := results[test]; got != "" {
			return got
		}
		return "not run"
	}
	var shown []Shown
	for _, name := range Attributes {
		s := Shown{Attribute: name, Holds: c.Check[name].Holds, Outcomes: map[string]string{}}
		for _, test := range c.Check[name].ShownBy {
			s.Outcomes[test] = outcome(test)
		}
		shown = append(shown, s)
	}
	var failed []string
	for _, test := range c.Tests() {
		if got := outcome(test); got != "pass" {
			failed = append(failed, test+": "+got)
		}
	}
	if failed != nil {
		return shown, errors.New(strings.Join(failed, "; "))
	}
	return shown, nil
}

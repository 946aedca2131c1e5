package catalog

import (
	"slices"
	"strings"
	"testing"
)

func load(t *testing.T) *Catalog {
	t.Helper()
	c, err := Load()
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// anyTest stands for a checkout that has every test; tools/check looks into the real one.
func anyTest(string) bool { return true }

func TestCatalogHolds(t *testing.T) {
	c := load(t)
	for _, problem := range c.Problems(anyTest) {
		t.Error(problem)
	}
	var ids []string
	for _, r := range c.Records {
		ids = append(ids, r.ID)
	}
	want := []string{"profile-compose", "delta-capture", "idempotent-merge", "version-provenance", "deterministic-merge-core",
		"persistence-fork", "seed-composition", "living-profile-kernel", "living-accumulation-concern"}
	if !slices.Equal(ids, want) {
		t.Errorf("records %v", ids)
	}
}

// Every kind of problem is found.
func TestProblemsAreFound(t *testing.T) {
	for want, spoil := range map[string]func(c *Catalog){
		"no such test":                    func(c *Catalog) { c.Records[0].ShownBy = append(c.Records[0].ShownBy, "living.TestNothing") },
		"which is nowhere":                func(c *Catalog) { c.Records[1].Composes = []string{"nothing"} },
		"in a circle":                     func(c *Catalog) { c.Records[0].Composes = append(c.Records[0].Composes, "living-profile-kernel") },
		"is there twice":                  func(c *Catalog) { c.Records = append(c.Records, c.Records[0]) },
		"no record for stage act":         func(c *Catalog) { delete(c.Records[7].Stages, "act") },
		"is of stage \"verify\", not act": func(c *Catalog) { c.Records[7].Stages["act"] = "delta-capture" },
		"does not compose seed":           func(c *Catalog) { c.Records[7].Composes = c.Records[7].Composes[1:] },
		"want one kernel":                 func(c *Catalog) { c.Records[7].Stages = nil },
		"nothing composes it":             func(c *Catalog) { c.External = append(c.External, External{ID: "unused"}) },
		"nothing shows authority":         func(c *Catalog) { delete(c.Check, "authority") },
	} {
		c := load(t)
		spoil(c)
		problems := c.Problems(func(test string) bool { return test != "living.TestNothing" })
		if !slices.ContainsFunc(problems, func(p string) bool { return strings.Contains(p, want) }) {
			t.Errorf("%q is not among %q", want, problems)
		}
	}
}

func TestEvidence(t *testing.T) {
	c := load(t)
	var out strings.Builder
	for _, test := range c.Tests() {
		pkg, name, _ := strings.Cut(test, ".")
		out.WriteString(`{"Action":"run","Package":"selfsame.dev/selfsame/` + pkg + `","Test":"` + name + `"}` + "\n")
		out.WriteString(`{"Action":"pass","Package":"selfsame.dev/selfsame/` + pkg + `","Test":"` + name + `/sub","Elapsed":0.1}` + "\n")
		out.WriteString(`{"Action":"pass","Package":"selfsame.dev/selfsame/` + pkg + `","Test":"` + name + `","Elapsed":0.1}` + "\n")
	}
	all, err := Results(strings.NewReader(out.String() + "# a compiler's line\n"))
	if err != nil {
		t.Fatal(err)
	}
	shown, err := c.Evidence(all)
	if err != nil || len(shown) != len(Attributes) {
		t.Fatalf("%+v, %v", shown, err)
	}
	for _, outcome := range []string{"fail", "skip", ""} {
		results, _ := Results(strings.NewReader(out.String()))
		results["living.TestKernelLoop"] = outcome
		if _, err := c.Evidence(results); err == nil || !strings.Contains(err.Error(), "living.TestKernelLoop") {
			t.Errorf("outcome %q: %v", outcome, err)
		}
	}
	if _, err := c.Evidence(nil); err == nil {
		t.Error("no run is evidence")
	}
	if _, err := Results(strings.NewReader("{nonsense")); err == nil {
		t.Error("nonsense is a result")
	}
	if _, err := decode([]byte(strings.Replace(string(raw), `"population"`, `"popularity"`, 1))); err == nil {
		t.Error("a check without its population fits the schema")
	}
}

package skill_test

import (
	"io/fs"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"selfsame.dev/selfsame/rpi"
	"selfsame.dev/selfsame/rpi/skill"
)

func read(t *testing.T, name string) string {
	t.Helper()
	data, err := skill.Files.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// promises are what the source's contract check asks of SKILL.md.
var promises = []string{
	"name: rpi\n", "dependencies: [plan, implement, validate]", "Own the authorized outcome through finish.",
	"ordinary known", "Acceptance changes need caller authority.", "at most one bounded", "reviewers remain required.",
	"author-distinct", "no fixed ten-minute cap", "empty", "When no machine",
}

// retired are what no text may say any more.
var retired = regexp.MustCompile(`Plan is closed for that intent|dependencies:.*anti-ceremony|plan_packet_digest`)

// problems says what a SKILL.md lacks.
func problems(text string) (found []string) {
	for _, promise := range promises {
		if !strings.Contains(text, promise) {
			found = append(found, "missing: "+promise)
		}
	}
	if phrase := retired.FindString(text); phrase != "" {
		found = append(found, "retired: "+phrase)
	}
	return found
}

func TestPromises(t *testing.T) {
	text := read(t, "SKILL.md")
	for _, problem := range problems(text) {
		t.Error(problem)
	}
	for _, promise := range promises {
		if len(problems(strings.ReplaceAll(text, promise, ""))) == 0 {
			t.Errorf("control: nobody misses %q", promise)
		}
	}
	for _, phrase := range []string{"Plan is closed for that intent", "dependencies: [anti-ceremony]", "plan_packet_digest"} {
		if len(problems(text+phrase)) != 1 {
			t.Errorf("control: nobody sees %q", phrase)
		}
	}
	err := fs.WalkDir(skill.Files, ".", func(name string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() && retired.MatchString(read(t, name)) {
			t.Errorf("%s says what is retired", name)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestFrontMatter(t *testing.T) {
	parts := strings.SplitN(read(t, "SKILL.md"), "---\n", 3)
	if len(parts) != 3 || parts[0] != "" {
		t.Fatal("SKILL.md does not begin with front matter")
	}
	var front struct {
		Name, Description string
		Dependencies      []string
		Policy            map[string]bool
	}
	decoder := yaml.NewDecoder(strings.NewReader(parts[1]))
	decoder.KnownFields(true)
	if err := decoder.Decode(&front); err != nil {
		t.Fatal(err)
	}
	implicit, said := front.Policy["allow_implicit_invocation"]
	if front.Name != "rpi" || front.Description == "" || !slices.Equal(front.Dependencies, []string{"plan", "implement", "validate"}) || !said || implicit {
		t.Errorf("%+v", front)
	}
}

var link = regexp.MustCompile(`\]\(([^)]+)\)`)

// The three references are there, are linked, and every link of every text leads somewhere.
func TestReferences(t *testing.T) {
	main := read(t, "SKILL.md")
	for _, name := range []string{"boundaries", "bounded-adapter", "outer-goal"} {
		file := "references/" + name + ".md"
		if len(read(t, file)) < 1000 || !strings.Contains(main, "]("+file+")") {
			t.Errorf("%s is thin or not linked", file)
		}
		for _, found := range link.FindAllStringSubmatch(read(t, file), -1) {
			read(t, strings.TrimPrefix(found[1], "../"))
		}
	}
	for _, found := range link.FindAllStringSubmatch(main, -1) {
		read(t, found[1])
	}
}

var row = regexp.MustCompile("(?m)^\\| `([a-z_]+)` \\|")

// table returns the code of the first column of the table under a heading.
func table(t *testing.T, text, heading string) []string {
	t.Helper()
	_, section, ok := strings.Cut(text, "\n## "+heading+"\n")
	if !ok {
		t.Fatalf("no heading %q", heading)
	}
	section, _, _ = strings.Cut(section, "\n## ")
	var names []string
	for _, found := range row.FindAllStringSubmatch(section, -1) {
		names = append(names, found[1])
	}
	return names
}

// Stop reasons, report members and the default bound are those of the program.
func TestTextsNameWhatTheProgramHas(t *testing.T) {
	text := read(t, "references/bounded-adapter.md")
	var reasons []string
	for _, reason := range rpi.StopReasons() {
		reasons = append(reasons, string(reason))
	}
	if got := table(t, text, "How a phase ends"); !slices.Equal(got, reasons) {
		t.Errorf("stop reasons %q, the program has %q", got, reasons)
	}
	var members []string
	for name := range (rpi.Report{}).Value().Members() {
		members = append(members, name)
	}
	got := table(t, text, "The report")
	slices.Sort(got)
	if !slices.Equal(got, members) {
		t.Errorf("report members %q, the program has %q", got, members)
	}
	for status := rpi.Pass; status <= rpi.NotBuilt; status++ {
		if !strings.Contains(text, status.String()) {
			t.Errorf("status %s is not named", status)
		}
	}
	defaults := regexp.MustCompile("`repair_rounds` \\(default ([0-9]+)\\)").FindAllStringSubmatch(text, -1)
	if len(defaults) != 1 || defaults[0][1] != rpi.Integer(rpi.DefaultOptions().RepairRounds).String() {
		t.Errorf("default bound %q", defaults)
	}
	if !strings.Contains(text, "`"+rpi.ReportSchema+"`") {
		t.Errorf("%s is not named", rpi.ReportSchema)
	}
	if got := table(t, strings.Replace(text, "| `not_converged` |", "| `gave_up` |", 1), "How a phase ends"); slices.Equal(got, reasons) {
		t.Error("control: a wrong stop reason goes unnoticed")
	}
}

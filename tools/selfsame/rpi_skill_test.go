package main

import (
	"io/fs"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/alecthomas/kong"

	"selfsame.dev/selfsame/rpi/skill"
)

var (
	skillCommand = regexp.MustCompile(`selfsame rpi ([a-z]+)([^\n` + "`" + `]*)`)
	skillFlag    = regexp.MustCompile(`--([a-z-]+)`)
)

// wrongCommands says which commands and flags of a text the program does not have; seen
// collects the commands.
func wrongCommands(text string, flags map[string][]string, seen map[string]bool) (wrong []string) {
	for _, found := range skillCommand.FindAllStringSubmatch(text, -1) {
		known, ok := flags[found[1]]
		if !ok {
			wrong = append(wrong, found[1])
		}
		seen[found[1]] = true
		for _, f := range skillFlag.FindAllStringSubmatch(found[2], -1) {
			if !slices.Contains(known, f[1]) {
				wrong = append(wrong, found[1]+" --"+f[1])
			}
		}
	}
	return wrong
}

// The skill names every rpi command of the program, and no command or flag that it lacks.
func TestRpiSkillNamesCommands(t *testing.T) {
	parser := kong.Must(&cli{}, helpVars)
	flags := map[string][]string{}
	for _, wing := range parser.Model.Children {
		if wing.Name != "rpi" {
			continue
		}
		for _, c := range wing.Children {
			flags[c.Name] = []string{"help"}
			for _, f := range c.Flags {
				flags[c.Name] = append(flags[c.Name], f.Name)
			}
		}
	}
	seen := map[string]bool{}
	err := fs.WalkDir(skill.Files, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := fs.ReadFile(skill.Files, name)
		for _, wrong := range wrongCommands(string(text), flags, seen) {
			t.Errorf("%s: the program has no %s", name, wrong)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for name := range flags {
		if !seen[name] {
			t.Errorf("the skill does not name selfsame rpi %s", name)
		}
	}
	if wrong := wrongCommands("run `selfsame rpi retry` or selfsame rpi repair --force", flags, seen); !slices.Equal(wrong, []string{"retry", "repair --force"}) {
		t.Errorf("control: %s", strings.Join(wrong, ", "))
	}
}

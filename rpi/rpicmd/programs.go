package rpicmd

import (
	"context"
	"fmt"
	"strings"

	"selfsame.dev/selfsame/internal/canon"
	"selfsame.dev/selfsame/rpi"
	"selfsame.dev/selfsame/rpi/bounded"
)

// Programs are phases that are programs: each reads one JSON object on standard input
// ({"intent"}, {"intent"}, {"plan"}, {"plan", "subject"}) and answers with one JSON document
// on standard output.
type Programs struct {
	GuardPath, PlanPath, ImplementPath, ValidatePath string

	Limits  bounded.Limits
	Context context.Context
}

func (p Programs) Guard(intent rpi.Value) (rpi.Value, error) {
	return p.run(p.GuardPath, rpi.Member{Name: "intent", Value: intent})
}

func (p Programs) Plan(intent rpi.Value) (rpi.Value, error) {
	return p.run(p.PlanPath, rpi.Member{Name: "intent", Value: intent})
}

func (p Programs) Implement(plan rpi.Value) (rpi.Value, error) {
	return p.run(p.ImplementPath, rpi.Member{Name: "plan", Value: plan})
}

func (p Programs) Validate(plan, subject rpi.Value) (rpi.Value, error) {
	return p.run(p.ValidatePath, rpi.Member{Name: "plan", Value: plan}, rpi.Member{Name: "subject", Value: subject})
}

func (p Programs) run(path string, input ...rpi.Member) (rpi.Value, error) {
	result, err := bounded.Run(p.Context, bounded.Command{
		Argv:  []string{path},
		Stdin: rpi.ObjectOf(input...).AppendJSON(nil),
	}, p.Limits)
	switch {
	case err != nil:
		return rpi.Value{}, err
	case result.TimedOut:
		return rpi.Value{}, fmt.Errorf("%s did not answer within %v", path, p.Limits.Time)
	case result.Overflow:
		return rpi.Value{}, fmt.Errorf("%s wrote more than %d bytes", path, p.Limits.Output)
	case result.Signal != "":
		return rpi.Value{}, fmt.Errorf("%s was ended by a signal: %s", path, result.Signal)
	case result.Exit != 0:
		return rpi.Value{}, fmt.Errorf("%s ended with exit status %d: %s", path, result.Exit, lastLine(result.Stderr))
	}
	value, err := rpi.Decode(result.Stdout)
	return value, canon.InFile("answer of "+path, err)
}

func lastLine(text []byte) string {
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	return lines[len(lines)-1]
}

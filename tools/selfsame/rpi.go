package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"time"

	"selfsame.dev/selfsame/internal/canon"
	"selfsame.dev/selfsame/rpi"
	"selfsame.dev/selfsame/rpi/bounded"
	"selfsame.dev/selfsame/rpi/rpicmd"
)

type rpiCommands struct {
	Repair  rpiRepair  `cmd:"" help:"Walk recorded validation rounds under the convergence law."`
	Once    rpiOnce    `cmd:"" help:"Run guard, plan, implement and validate once each."`
	Guard   rpiGuard   `cmd:"" help:"Check the answer of a guard; a decision to stop ends with exit status 1."`
	Explain rpiExplain `cmd:"" help:"Tell, finding by finding, why a repair stopped where it did."`
	Intent  rpiIntent  `cmd:"" help:"Store an intent under the digest of its raw bytes."`
	Subject rpiSubject `cmd:"" help:"List the declared and the changed paths of a folder, or hold a folder against such a list."`
	Check   rpiCheck   `cmd:"" help:"Run one exact argv over a disposable copy of the subject, contained and bounded."`
	Verdict rpiVerdict `cmd:"" help:"Bind a judge's words to intent, subject and contexts."`
	Key     rpiKey     `cmd:"" help:"Make a key that signs round chains."`
	Begin   rpiBegin   `cmd:"" help:"Begin a signed chain of rounds."`
	Append  rpiAppend  `cmd:"" help:"Append one round to a chain; exit status 1 until it converges."`
	Replay  rpiReplay  `cmd:"" help:"Derive every stop reason of a chain again; a chain with a change in it is refused."`
}

// declared are the options that a caller may set over those of the document.
type declared struct {
	RepairRounds *int `placeholder:"N" help:"Bound of repair rounds; wins over the document's."`
	CrossModel   bool `help:"Ask for a second validator family."`
}

func (d declared) overrides() (rpicmd.Overrides, error) {
	if d.RepairRounds != nil && *d.RepairRounds < 0 {
		return rpicmd.Overrides{}, &refusal{"--repair-rounds must be zero or more"}
	}
	return rpicmd.Overrides{RepairRounds: d.RepairRounds, CrossModel: d.CrossModel}, nil
}

// lines is how a command reads one document a line.
type lines struct {
	JSONL bool `name:"jsonl" help:"One document a line in, one {\"ok\": ...} or {\"error\": ...} a line out, in the same order. Exit status: 0 all hold, 1 some do not, 3 some are refused."`
}

func (lines) run(std streams, file string, judge rpicmd.Judge) error {
	in, err := open(std, file)
	if err != nil {
		return err
	}
	defer in.Close()
	if os.Getenv("GOGC") == "" {
		// A stream of small documents is nearly all garbage: collect it less often.
		defer debug.SetGCPercent(debug.SetGCPercent(400))
	}
	out := bufio.NewWriterSize(std.out, 64<<10)
	tally, err := rpicmd.Lines(in, out, judge)
	if err = errors.Join(err, out.Flush()); err != nil {
		return canon.InFile(file, err)
	}
	switch {
	case tally.Refused > 0:
		return &canon.InputError{File: file, Problem: fmt.Sprintf("%d lines are refused", tally.Refused), Fix: "see their error in the output"}
	case tally.Stops > 0:
		return &failure{reason: fmt.Sprintf("%d of %d documents do not hold", tally.Stops, tally.Stops+tally.Holds)}
	}
	return nil
}

// open opens a file to read, - being standard input.
func open(std streams, file string) (io.ReadCloser, error) {
	if file == "-" {
		return io.NopCloser(std.in), nil
	}
	return os.Open(file)
}

// readValue decodes the one document of a file.
func readValue(std streams, file string) (rpi.Value, error) {
	in, err := open(std, file)
	if err != nil {
		return rpi.Value{}, err
	}
	defer in.Close()
	raw, err := io.ReadAll(io.LimitReader(in, rpicmd.MaxLine+1))
	switch {
	case err != nil:
		return rpi.Value{}, err
	case len(raw) > rpicmd.MaxLine:
		return rpi.Value{}, &canon.InputError{File: file, Problem: fmt.Sprintf("the document is longer than %d bytes", rpicmd.MaxLine), Fix: "split it"}
	}
	value, err := rpi.Decode(raw)
	return value, canon.InFile(file, err)
}

// answer judges the one document of a file and writes the result.
func answer(std streams, file, output string, judge rpicmd.Judge) (result rpi.Value, holds bool, err error) {
	value, err := readValue(std, file)
	if err != nil {
		return rpi.Value{}, false, err
	}
	if result, holds, err = judge(value); err != nil {
		return rpi.Value{}, false, canon.InFile(file, err)
	}
	return result, holds, writeResult(std, output, result.AppendJSON(nil))
}

func text(value rpi.Value, name string) string {
	member, _ := value.Get(name)
	s, _ := member.Text()
	return s
}

type rpiRepair struct {
	Rounds string `placeholder:"FILE|-" default:"-" help:"rpi-rounds.v1: a list of rounds, or an object with validations and options."`
	declared
	lines
	ExpectStopReason string `placeholder:"REASON" help:"Hold exactly if the repair stops for this reason."`
	ExpectStatus     string `placeholder:"STATUS" help:"Hold exactly if the report has this status."`
	Output           string `placeholder:"FILE" help:"Where to write the rpi-outcome.v1 (default: standard output)."`
}

func (c *rpiRepair) Run(std streams) error {
	overrides, err := c.overrides()
	if err != nil {
		return err
	}
	judge := rpicmd.Repair(overrides)
	if c.JSONL {
		if c.ExpectStopReason != "" || c.ExpectStatus != "" || c.Output != "" {
			return &refusal{"--jsonl takes neither --expect-stop-reason, --expect-status nor --output"}
		}
		return c.lines.run(std, c.Rounds, judge)
	}
	if err := c.checkExpectations(); err != nil {
		return err
	}
	outcome, holds, err := answer(std, c.Rounds, c.Output, judge)
	if err != nil {
		return err
	}
	report, _ := outcome.Get("report")
	reason, status := text(outcome, "stop_reason"), text(report, "status")
	switch {
	case c.ExpectStopReason != "" && reason != c.ExpectStopReason:
		return &failure{reason: fmt.Sprintf("%s: the repair stopped with %s (%s), expected stop reason %s", c.Rounds, reason, status, c.ExpectStopReason)}
	case c.ExpectStatus != "" && status != c.ExpectStatus:
		return &failure{reason: fmt.Sprintf("%s: the repair ended %s (%s), expected status %s", c.Rounds, status, reason, c.ExpectStatus)}
	case c.ExpectStopReason == "" && c.ExpectStatus == "" && !holds:
		return &failure{reason: fmt.Sprintf("the repair stopped with %s, %s", reason, status)}
	}
	return nil
}

func (c *rpiRepair) checkExpectations() error {
	if c.ExpectStatus != "" {
		if _, ok := rpi.ParseJudgment(c.ExpectStatus); !ok {
			return &refusal{"--expect-status is PASS, NOT_PROVEN or FAIL"}
		}
	}
	if c.ExpectStopReason == "" {
		return nil
	}
	for _, reason := range rpi.StopReasons() {
		if string(reason) == c.ExpectStopReason {
			return nil
		}
	}
	return &refusal{fmt.Sprintf("--expect-stop-reason is one of %v", rpi.StopReasons())}
}

type rpiGuard struct {
	Input string `placeholder:"FILE|-" default:"-" help:"{\"guard\": answer}."`
	lines
	Output string `placeholder:"FILE" help:"Where to write the checked answer (default: standard output)."`
}

func (c *rpiGuard) Run(std streams) error {
	if c.JSONL {
		return c.lines.run(std, c.Input, rpicmd.Guard)
	}
	guard, holds, err := answer(std, c.Input, c.Output, rpicmd.Guard)
	if err == nil && !holds {
		err = &failure{reason: "the guard says STOP: " + text(guard, "reason")}
	}
	return err
}

type rpiOnce struct {
	Input string `placeholder:"FILE|-" help:"Recorded answers {\"intent\", \"guard\", \"plan\", \"subject\", \"validation\"} instead of programs; - with --jsonl by default."`
	lines
	Intent    string        `placeholder:"FILE" help:"JSON document that guard and plan are asked about."`
	Guard     string        `placeholder:"PROGRAM" help:"Reads {\"intent\"}, answers with a guard decision."`
	Plan      string        `placeholder:"PROGRAM" help:"Reads {\"intent\"}, answers with the resolved intent or null."`
	Implement string        `placeholder:"PROGRAM" help:"Reads {\"plan\"}, answers with the subject or null."`
	Validate  string        `placeholder:"PROGRAM" help:"Reads {\"plan\", \"subject\"}, answers with the judgment."`
	Timeout   time.Duration `default:"10m" help:"Bound of each program's time."`
	MaxOutput int64         `default:"16777216" placeholder:"BYTES" help:"Bound of each program's output."`
	Output    string        `placeholder:"FILE" help:"Where to write the rpi-report.v1 (default: standard output)."`
}

func (c *rpiOnce) Run(ctx context.Context, std streams) error {
	programs := c.Guard != "" || c.Plan != "" || c.Implement != "" || c.Validate != "" || c.Intent != ""
	if c.JSONL {
		if programs {
			return &refusal{"--jsonl reads recorded answers, not programs"}
		}
		if c.Input == "" {
			c.Input = "-"
		}
		return c.lines.run(std, c.Input, rpicmd.Once)
	}
	var report rpi.Value
	var holds bool
	var err error
	switch {
	case c.Input != "" && programs:
		return &refusal{"give recorded answers with --input, or programs, not both"}
	case c.Input != "":
		report, holds, err = answer(std, c.Input, c.Output, rpicmd.Once)
	default:
		report, holds, err = c.programs(ctx, std)
	}
	if err == nil && !holds {
		err = &failure{reason: "the traversal ended " + text(report, "status")}
	}
	return err
}

func (c *rpiOnce) programs(ctx context.Context, std streams) (rpi.Value, bool, error) {
	for _, flag := range []struct{ name, value string }{
		{"--intent", c.Intent}, {"--guard", c.Guard}, {"--plan", c.Plan}, {"--implement", c.Implement}, {"--validate", c.Validate},
	} {
		if flag.value == "" {
			return rpi.Value{}, false, &refusal{"missing flag " + flag.name}
		}
	}
	if c.Timeout <= 0 || c.MaxOutput <= 0 {
		return rpi.Value{}, false, &refusal{"--timeout and --max-output must be positive"}
	}
	intent, err := readValue(std, c.Intent)
	if err != nil {
		return rpi.Value{}, false, err
	}
	report, err := rpi.InvokeOnce(intent, rpicmd.Programs{
		GuardPath: c.Guard, PlanPath: c.Plan, ImplementPath: c.Implement, ValidatePath: c.Validate,
		Limits:  bounded.Limits{Time: c.Timeout, Output: c.MaxOutput},
		Context: ctx,
	})
	if err != nil {
		return rpi.Value{}, false, err
	}
	value := report.Value()
	return value, report.Status == rpi.Pass, writeResult(std, c.Output, value.AppendJSON(nil))
}

type rpiExplain struct {
	Rounds string `placeholder:"FILE|-" default:"-" help:"rpi-rounds.v1 to explain."`
	declared
	Chain string `placeholder:"DIR" help:"Explain a chain instead, under what it declared."`
	pins
}

func (c *rpiExplain) Run(std streams) error {
	overrides, err := c.overrides()
	if err != nil {
		return err
	}
	if c.Chain != "" {
		if c.RepairRounds != nil || c.CrossModel {
			return &refusal{"a chain has its own --repair-rounds and --cross-model"}
		}
		replayed, err := c.replay(c.Chain)
		if err != nil {
			return err
		}
		steps, outcome, err := replayed.Explain()
		if err != nil {
			return err
		}
		return explain(std, steps, outcome)
	}
	value, err := readValue(std, c.Rounds)
	if err != nil {
		return err
	}
	document, err := rpi.ReadDocument(value)
	if err != nil {
		return canon.InFile(c.Rounds, err)
	}
	document.Options = overrides.Apply(document.Options)
	steps, outcome, err := document.Explain()
	if err != nil {
		return canon.InFile(c.Rounds, err)
	}
	return explain(std, steps, outcome)
}

func explain(std streams, steps []rpi.Step, outcome rpi.Outcome) error {
	if err := rpicmd.Table(std.out, steps, outcome); err != nil {
		return err
	}
	return stopped(outcome)
}

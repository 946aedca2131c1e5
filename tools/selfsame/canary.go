package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"selfsame.dev/selfsame/canary"
	"selfsame.dev/selfsame/canary/child"
	"selfsame.dev/selfsame/canary/respond/embedded"
	"selfsame.dev/selfsame/canary/wire"
	"selfsame.dev/selfsame/internal/atomicfile"
	"selfsame.dev/selfsame/internal/canon"
	"selfsame.dev/selfsame/manifest"
	"selfsame.dev/selfsame/manifest/source"
)

type canaryCommands struct {
	Run           canaryRun           `cmd:"" help:"Start an agent twice from newly compiled profiles; drift stops it before an answer."`
	VerifyReceipt canaryVerifyReceipt `cmd:"" help:"Check that a receipt bears out what it claims."`
}

type canaryRun struct {
	roots
	documents
	inputList
	Manifest                 string        `placeholder:"FILE" help:"Identity manifest that the sources must still be (default: one is pinned from them)."`
	Query                    string        `placeholder:"FILE" help:"identity-query.v1 (default: the fixed query to the agent of the manifest)."`
	Runtime                  string        `placeholder:"PROGRAM" help:"Program that speaks identity-runtime.v1 (default: the responder in this program)."`
	RuntimeArg               []string      `placeholder:"ARG" sep:"none" help:"Argument of the runtime; may be repeated."`
	Timeout                  time.Duration `default:"30s" help:"How long one start may take (default: 30s)."`
	ExpectChange             []string      `placeholder:"PATTERN" sep:"none" help:"Profile file that a start may add or change, as a glob; may be repeated."`
	InjectDriftBeforeRestart bool          `help:"Change the compiled SOUL.md before the second start: the negative component."`
	InjectDrift              string        `placeholder:"SURFACE[@first|second]" help:"Make a surface drift before a start (default: the second): ${surfaces}."`
	ExpectDrift              bool          `help:"Hold (status 0) when drift is detected, and only then: for tests of the negative component."`
	Output                   string        `placeholder:"FILE" help:"Where to write the receipt (default: the undeclared outputs of a Bazel test, else standard output)."`
}

func (c *canaryRun) Run(ctx context.Context, std streams) error {
	cfg, err := c.config()
	if err != nil {
		return err
	}
	if c.Output != "" { // an agent is not started twice for a receipt that cannot be kept
		inputs := append(c.documents.files(), c.InputList, c.Manifest, c.Query, c.Runtime)
		if err := noInput(c.Output, inputs...); err != nil {
			return err
		}
		if err := atomicfile.Writable(c.Output); err != nil {
			return err
		}
	}
	receipt, err := canary.Run(ctx, cfg)
	if receipt == nil {
		return err
	}
	data, encodeErr := receipt.Encode()
	if encodeErr == nil {
		encodeErr = c.write(std, receipt, data)
	}
	if encodeErr != nil {
		return errors.Join(err, fmt.Errorf("write the receipt: %w", encodeErr))
	}
	return c.result(receipt, err)
}

func (c *canaryRun) config() (canary.Config, error) {
	cfg := canary.Config{Limits: child.DefaultLimits, Expected: c.ExpectChange, Now: time.Now}
	cfg.Limits.Timeout = c.Timeout
	if c.Timeout <= 0 {
		return cfg, &refusal{"--timeout must be positive"}
	}
	for _, pattern := range c.ExpectChange {
		if _, err := filepath.Match(pattern, ""); err != nil {
			return cfg, &refusal{fmt.Sprintf("--expect-change %s: %v", pattern, err)}
		}
	}
	for _, set := range []func(*canary.Config) error{c.agent, c.query, c.runtime, c.injection} {
		if err := set(&cfg); err != nil {
			return cfg, err
		}
	}
	return cfg, nil
}

func (c *canaryRun) agent(cfg *canary.Config) error {
	load := func() (manifest.Sources, error) { return source.List(c.InputList) }
	var err error
	if c.InputList != "" {
		cfg.Origins = source.ContentAddressed()
	} else {
		if err := errors.Join(c.roots.missing(), c.documents.missing()); err != nil {
			return err
		}
		p := paths(c.roots, c.documents)
		load = func() (manifest.Sources, error) { return source.Folders(p) }
		if cfg.Origins, err = source.CleanGit(p); err != nil {
			return err
		}
	}
	cfg.Agent = canary.NewSourced(load)
	if c.Manifest != "" {
		m, err := readManifest(c.Manifest)
		if err != nil {
			return err
		}
		cfg.Agent = canary.NewPinned(m, load)
	}
	return nil
}

func (c *canaryRun) query(cfg *canary.Config) error {
	if c.Query == "" {
		return nil
	}
	data, err := os.ReadFile(c.Query)
	if err != nil {
		return err
	}
	cfg.Query, err = wire.ParseQuery(data)
	return canon.InFile(c.Query, err)
}

// runtime is the program named, or this one again as the responder: nothing has to be
// built for it.
func (c *canaryRun) runtime(cfg *canary.Config) (err error) {
	if c.Runtime == "" {
		if len(c.RuntimeArg) > 0 {
			return &refusal{"--runtime-arg needs --runtime"}
		}
		cfg.Runtime = canary.Runtime{Args: []string{embedded.Arg}, Variant: canary.LocalResponder}
		cfg.Runtime.Program, err = os.Executable()
		return err
	}
	cfg.Runtime = canary.Runtime{Args: c.RuntimeArg, Variant: canary.LocalProgram}
	cfg.Runtime.Program, err = filepath.Abs(c.Runtime)
	return err
}

func (c *canaryRun) injection(cfg *canary.Config) (err error) {
	switch {
	case c.InjectDrift != "" && c.InjectDriftBeforeRestart:
		return &refusal{"--inject-drift and --inject-drift-before-restart exclude each other"}
	case c.InjectDriftBeforeRestart:
		cfg.Inject = &canary.Injection{Surface: canary.SurfaceProfile + "/" + manifest.SoulFile, Start: 2}
	case c.InjectDrift != "":
		cfg.Inject, err = canary.ParseInjection(c.InjectDrift)
	}
	var input *canon.InputError
	if errors.As(err, &input) {
		return &refusal{fmt.Sprintf("%v: %s", input, input.Fix)}
	}
	return err
}

// summary is the result on standard output when the receipt goes to a file.
type summary struct {
	Outcome            string       `json:"outcome"`
	Reason             string       `json:"reason"`
	Tier               string       `json:"tier"`
	GoalTierSatisfied  bool         `json:"goal_tier_satisfied"`
	ReproducibleSHA256 canon.Digest `json:"reproducible_sha256"`
	ReceiptSHA256      canon.Digest `json:"receipt_sha256"`
}

func summarize(r *canary.Receipt, data []byte) ([]byte, error) {
	return canon.Marshal(summary{r.Outcome, r.Reason, r.Tier, r.GoalTierSatisfied, r.ReproducibleSHA256, canon.Sum(data)})
}

func (c *canaryRun) write(std streams, r *canary.Receipt, data []byte) error {
	output := c.Output
	if dir := os.Getenv("TEST_UNDECLARED_OUTPUTS_DIR"); output == "" && dir != "" {
		output = filepath.Join(dir, "canary-receipt.json")
	}
	if output == "" {
		return writeResult(std, "", data)
	}
	if err := atomicfile.Write(output, data, 0o644); err != nil {
		return err
	}
	line, err := summarize(r, data)
	if err != nil {
		return err
	}
	return writeResult(std, "", line)
}

// result turns an outcome into an exit status: what the runtime did wrong fails, what was wrong
// with the inputs is refused.
func (c *canaryRun) result(r *canary.Receipt, err error) error {
	drift := func() string {
		d := r.Reproducible.Drift[0]
		return fmt.Sprintf("drift in %s: %s: expected %s, actual %s (differences: %d)", d.Surface, d.Path,
			cmp.Or(d.Expected, "nothing"), cmp.Or(d.Actual, "nothing"), r.Reproducible.DriftTotal)
	}
	switch {
	case r.Outcome == canary.Drifted && c.ExpectDrift:
		return nil
	case r.Outcome == canary.Drifted:
		return &failure{reason: drift()}
	case r.Outcome == canary.Reproduced && c.ExpectDrift:
		return &failure{reason: "no drift was detected, and some was expected"}
	case r.Outcome == canary.Refused && r.Reason != canary.InputsRefused:
		return &failure{err.Error(), err}
	}
	return err
}

type canaryVerifyReceipt struct {
	Receipt string   `arg:"" placeholder:"FILE" help:"canary-receipt.v1."`
	Same    []string `placeholder:"FILE" sep:"none" help:"Another receipt whose reproducible part must be the same; may be repeated."`
}

func (c *canaryVerifyReceipt) Run(std streams) error {
	var first *canary.Receipt
	for _, file := range slices.Concat([]string{c.Receipt}, c.Same) {
		data, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		r, err := canary.DecodeReceipt(file, data)
		var wrong *canary.Inconsistent
		if errors.As(err, &wrong) {
			return &failure{reason: fmt.Sprintf("%s: %v", file, err)}
		}
		if err != nil {
			return err
		}
		if first == nil {
			first = r
			line, err := summarize(r, data)
			if err != nil {
				return err
			}
			if err := writeResult(std, "", line); err != nil {
				return err
			}
		} else if r.ReproducibleSHA256 != first.ReproducibleSHA256 {
			return &failure{reason: fmt.Sprintf("%s: the reproducible part has sha256 %s, that of %s has %s", file, r.ReproducibleSHA256, c.Receipt, first.ReproducibleSHA256)}
		}
	}
	return nil
}

// Command selfsame proves, with evidence that anyone can replay, that an agent is the same after
// a restart, that a repair converged, and that its memory grew only from evidence.
//
// Results go to standard output, everything else to standard error. Exit status: 0 holds;
// 1 drift, law stop or failed verification; 2 usage; 3 malformed or refused input;
// 4 environment or I/O.
package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/alecthomas/kong"

	"selfsame.dev/selfsame/canary"
	"selfsame.dev/selfsame/internal/canon"
	"selfsame.dev/selfsame/tools/selfsame/scaffold"
)

const (
	exitHolds = iota
	exitFails
	exitUsage
	exitInput
	exitEnvironment
)

// cli is the command line: one field a wing, each in a file of its own.
type cli struct {
	Quiet    bool             `short:"q" help:"Write no result to standard output; errors still go to standard error."`
	Init     initCommand      `cmd:"" help:"Make the Bazel package of a new agent, or a workspace with one, out of synthetic data."`
	Manifest manifestCommands `cmd:"" help:"Say what an agent is."`
	Compare  compareCommand   `cmd:"" help:"Say whether two manifests, two folders of outputs, or two execution logs are the same, and what to do where not."`
	Ledger   ledgerCommands   `cmd:"" help:"Keep which identity each machine found, and see who agrees."`
	Bundle   bundleCommands   `cmd:"" help:"Keep a source tree as one file with one digest."`
	Profile  profileCommands  `cmd:"" help:"Compile what a manifest pins into an empty folder."`
	Canary   canaryCommands   `cmd:"" help:"Prove that an agent is the same after a restart."`
	Rpi      rpiCommands      `cmd:"" help:"Judge whether a repair converged."`
	Living   livingCommands   `cmd:"" help:"Keep memory that grows only from same-turn evidence."`
}

// helpVars are what the help texts name.
var helpVars = kong.Vars{"surfaces": strings.Join(canary.Surfaces(), ", "), "agent_name": scaffold.NameRule}.CloneWith(bundleVars)

// streams are what a command may write to and read from.
type streams struct {
	in       io.Reader
	out, err io.Writer
}

// failure is a result that does not hold: drift, a law stop, a failed verification. It ends with
// exit status 1. The result itself has been written already.
type failure struct {
	reason string
	cause  error // nil, or what it says and hints at
}

func (f *failure) Error() string { return f.reason }
func (f *failure) Unwrap() error { return f.cause }

// refusal is a usage error found after parsing.
type refusal struct{ reason string }

func (r *refusal) Error() string { return r.reason }

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	os.Exit(run(ctx, os.Args[1:], streams{os.Stdin, os.Stdout, os.Stderr}))
}

func run(ctx context.Context, args []string, std streams) int {
	var commands cli
	status := -1
	parser := kong.Must(&commands,
		kong.Name("selfsame"),
		kong.Description("Prove that an agent is the same, that a repair converged, that memory grew from evidence."),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true}),
		helpVars,
		kong.Writers(std.out, std.err),
		kong.Exit(func(code int) { status = code }),
		kong.BindTo(ctx, (*context.Context)(nil)),
	)
	parsed, err := parser.Parse(args)
	if status >= 0 {
		return status // help was asked for and printed
	}
	if err != nil {
		return report(std.err, &refusal{err.Error()})
	}
	if commands.Quiet {
		std.out = io.Discard
	}
	return report(std.err, parsed.Run(std))
}

// systemHint says what helps against what the operating system refused, "" where that is not plain.
func systemHint(err error) string {
	switch {
	case errors.Is(err, fs.ErrExist):
		return "name a new path: nothing is overwritten"
	case errors.Is(err, fs.ErrNotExist):
		return "check the path, and that the folder it is in exists"
	case errors.Is(err, fs.ErrPermission), errors.Is(err, syscall.EROFS):
		return "change the permissions, or name another path"
	case errors.Is(err, syscall.EISDIR):
		return "name a file, not a folder"
	case errors.Is(err, syscall.ENOTDIR):
		return "name a folder, or a path in one"
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		return "free space, then run the command again"
	}
	return ""
}

// report writes err for a person and returns the exit status that it means.
func report(w io.Writer, err error) int {
	if err == nil {
		return exitHolds
	}
	fmt.Fprintf(w, "selfsame: error: %v\n", err)
	var hinted interface{ Hint() string }
	hint := systemHint(err)
	if errors.As(err, &hinted) {
		hint = cmp.Or(hinted.Hint(), hint)
	}
	if hint != "" {
		fmt.Fprintf(w, "selfsame: hint: %s\n", hint)
	}
	var failed *failure
	var usage *refusal
	var input *canon.InputError
	switch {
	case errors.As(err, &failed):
		return exitFails
	case errors.As(err, &usage):
		fmt.Fprintln(w, "selfsame: hint: run selfsame --help")
		return exitUsage
	case errors.As(err, &input):
		return exitInput
	}
	return exitEnvironment
}

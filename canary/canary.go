// Package canary proves that an agent is the same after a restart: two processes, each
// from a newly compiled profile that was verified immediately before, must give the
// same answer with the same provenance; any drift stops it before an answer
// (laws I5, I6, I7).
package canary

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"time"

	"selfsame.dev/selfsame/canary/child"
	"selfsame.dev/selfsame/canary/wire"
	"selfsame.dev/selfsame/internal/canon"
	"selfsame.dev/selfsame/manifest"
)

// Agent is the identity under test: its sources, and the profile compiled from them.
type Agent interface {
	// Pin reads every source and fixes the manifest that all later calls mean.
	Pin(ctx context.Context) (*Pinned, error)
	// Compile writes the profile into dir, which does not exist yet.
	Compile(ctx context.Context, dir string) error
	// VerifySources reads every source again and compares with the manifest.
	VerifySources(ctx context.Context) ([]Drift, error)
	// VerifyProfile compares the folder, structurally, with the manifest.
	VerifyProfile(ctx context.Context, dir string) ([]Drift, error)
	// Tamper makes one source surface drift from now on, for this Agent only.
	Tamper(surface string) error
}

// Pinned is what [Agent.Pin] fixed.
type Pinned struct {
	Identity        // RuntimeSHA256 is filled in by Run
	View     []byte // identity.json as compiled
	// Files of the compiled profile, by slash path.
	Files map[string]canon.Digest
}

// Runtime is the program under test; it speaks identity-runtime.v1.
type Runtime struct {
	Program string // absolute path
	Args    []string
	Variant string // LocalResponder or LocalProgram
}

// Config is one canary run.
type Config struct {
	Agent   Agent
	Query   *wire.Query // nil: the fixed query, to the agent that was pinned
	Runtime Runtime
	TempDir string // where the private folder is made; "" is the system's
	Limits  child.Limits
	// Expected are path.Match patterns of profile files that a start may add or change.
	Expected []string
	Inject   *Injection
	Origins  []manifest.Origin // where the sources came from, for the receipt
	Now      func() time.Time
	// Watch, if not nil, is called at every point of the run, and the run waits for it.
	Watch func(context.Context, Event)
}

// Event is a point of a run: a [State] entered, or "pinning", "compiling", "verifying", "running".
type Event struct {
	At    string
	Start int
}

// stop ends a run short of a restart. It is also an error.
type stop struct {
	outcome string
	reason  string
	err     error
}

func (s *stop) Error() string { return s.reason + ": " + s.err.Error() }

// Hint says what to do, where the inputs are not to blame: those have hints of their own.
func (s *stop) Hint() string {
	var hinted interface{ Hint() string }
	switch {
	case errors.As(s.err, &hinted):
		return hinted.Hint()
	case s.reason == InputsRefused:
		return ""
	case s.reason == string(child.TimedOut):
		return "give it longer with --timeout, or find out what it waits for: it has no terminal, and its input ends with the query"
	case s.reason == string(child.NotStarted):
		return "name an executable of this machine with --runtime; the first line of a script names one, too"
	case s.reason == string(child.LeftProcesses) || s.reason == string(child.Lingered):
		return "let the runtime end all that it starts, and exit once it has answered"
	}
	return "run it by hand: compile a profile (selfsame profile compile), set HERMES_HOME to it and give it the query on standard input"
}

func (s *stop) Unwrap() error { return s.err }

func refused(reason string, err error) error { return &stop{Refused, reason, err} }

// errDrift ends a run at drift; the receipt says which.
var errDrift = errors.New("drift")

// Run is the whole canary. It returns a receipt whenever a guardian could be started; the
// error is nil when the restart was reproduced or drift was detected, and else says why not.
func Run(ctx context.Context, cfg Config) (*Receipt, error) {
	if cfg.Limits == (child.Limits{}) {
		cfg.Limits = child.DefaultLimits
	}
	if cfg.TempDir == "" {
		cfg.TempDir = os.TempDir()
	}
	if cfg.Expected == nil {
		cfg.Expected = []string{}
	}
	begun := cfg.Now()
	super, err := child.Open(cfg.TempDir)
	if err != nil {
		return nil, err
	}
	r := &run{Config: cfg, super: super, millis: map[string]float64{}, program: cfg.Runtime.Program}
	r.receipt.Reproducible = Reproducible{
		RuntimeInterface: wire.Format, RuntimeVariant: cfg.Runtime.Variant,
		Injected: cfg.Inject, ExpectedChanges: cfg.Expected, Starts: []Start{}, Drift: []Drift{},
	}
	r.receipt.Observed.Processes = []ProcessRecord{}
	r.receipt.Observed.Origins = append([]manifest.Origin{}, cfg.Origins...)
	err = r.all(ctx)
	err = r.end(ctx, err)
	elapsed := cfg.Now().Sub(begun) // by the clock that nobody sets
	r.millis["total"] = millis(elapsed)
	rec := &r.receipt
	rec.Reproducible.Transitions = append([]Transition{}, r.machine.steps...)
	rec.Observed.StartedAt = begun.UTC().Format(time.RFC3339Nano)
	rec.Observed.FinishedAt = begun.Add(elapsed).UTC().Format(time.RFC3339Nano)
	rec.Observed.Millis = r.millis
	if sealErr := rec.seal(); sealErr != nil {
		return nil, sealErr
	}
	return rec, err
}

type run struct {
	Config
	super   *child.Supervisor
	machine machine
	receipt Receipt
	pinned  *Pinned
	view    *wire.View
	asked   Asked
	request []byte
	program string // what is started: the runtime, or a copy that was made to drift
	first   *wire.Answer
	millis  map[string]float64
}

func (r *run) all(ctx context.Context) error {
	if err := r.pin(ctx); err != nil {
		return err
	}
	for n := 1; n <= 2; n++ {
		if err := r.start(ctx, n); err != nil {
			return err
		}
	}
	return r.conclude(ctx)
}

// pin goes to manifest_pinned.
func (r *run) pin(ctx context.Context) error {
	if err := r.at(ctx, "pinning", 0); err != nil {
		return err
	}
	defer r.clock("pin")()
	var program canon.Digest
	err := errors.Join(together(
		func() (err error) { r.pinned, err = r.Agent.Pin(ctx); return err },
		func() (err error) { program, err = digestFile(r.program); return err },
	)...)
	if err != nil {
		return refused(InputsRefused, err)
	}
	r.pinned.RuntimeSHA256 = program
	if r.view, err = wire.ParseView(r.pinned.View); err != nil {
		return refused(InputsRefused, canon.InFile("identity.json", err))
	}
	if err := r.ask(); err != nil {
		return err
	}
	r.receipt.Reproducible.Identity, r.receipt.Reproducible.Query = &r.pinned.Identity, &r.asked
	return r.enter(ctx, ManifestPinned, Evidence{evManifest: r.pinned.ManifestSHA256, evIdentity: r.pinned.IdentitySHA256, evRuntime: program})
}

// ask settles the query.
func (r *run) ask() (err error) {
	r.asked.Document = wire.FixedQuery(r.view.Agent)
	if r.Query != nil {
		r.asked.Document = *r.Query
	}
	if agent := r.asked.Document.Agent; agent != r.view.Agent {
		return refused(InputsRefused, &canon.InputError{File: "query", Key: "/agent",
			Problem: fmt.Sprintf("the query is for %q, the manifest is of %q", agent, r.view.Agent), Fix: "ask the agent whose manifest it is"})
	}
	if r.asked.SHA256, err = r.asked.Document.SHA256(); err != nil {
		return err
	}
	r.request, err = r.asked.Document.Encode()
	return err
}

// start takes one start from the manifest to stopped_cleanly: its folder is gone again then.
func (r *run) start(ctx context.Context, n int) error {
	base, name := r.super.Base(), strconv.Itoa(n)
	home := filepath.Join(base, name)
	for _, dir := range []string{home, filepath.Join(home, "home"), filepath.Join(home, "tmp")} {
		if err := os.Mkdir(dir, 0o700); err != nil {
			return err
		}
	}
	profile := filepath.Join(home, "profile")

	if err := r.compile(ctx, n, profile); err != nil {
		return err
	}
	if r.Inject != nil && r.Inject.Start == n {
		if err := r.inject(base, profile); err != nil {
			return err
		}
	}
	if err := r.verify(ctx, n, profile); err != nil {
		return err
	}
	answer, record, err := r.run(ctx, n, home, profile)
	if err != nil {
		return err
	}
	if err := r.after(ctx, profile); err != nil {
		return err
	}
	clock := r.clock("remove_" + name)
	if err := r.super.Remove(name); err != nil {
		return err
	}
	clock()
	r.receipt.Observed.Cleanup.ProfilesRemoved++
	// The next start begins from nothing: what this one put beside its own folder would be memory.
	if left, err := os.ReadDir(base); err != nil || len(left) > 0 {
		return refused("left_files", errors.Join(err, fmt.Errorf("start %d of the runtime left %d entries beside its folder", n, len(left))))
	}
	return r.stopped(ctx, n, answer, record)
}

func (r *run) compile(ctx context.Context, n int, profile string) error {
	if err := r.at(ctx, "compiling", n); err != nil {
		return err
	}
	clock := r.clock(fmt.Sprintf("compile_%d", n))
	if err := r.Agent.Compile(ctx, profile); err != nil {
		// Sources that moved since they were pinned are drift, whatever the compiler calls it.
		if drift, verifyErr := r.Agent.VerifySources(ctx); verifyErr == nil && len(drift) > 0 {
			return r.drift(ctx, drift)
		}
		return fmt.Errorf("compile: %w", err)
	}
	clock()
	return r.enter(ctx, ProfileCompiled, Evidence{evManifest: r.pinned.ManifestSHA256})
}

// verify goes to runtime_verified: sources, profile and program are what was pinned.
func (r *run) verify(ctx context.Context, n int, profile string) error {
	if err := r.at(ctx, "verifying", n); err != nil {
		return err
	}
	clock := r.clock(fmt.Sprintf("verify_%d", n))
	var sources, compiled, program []Drift
	err := errors.Join(together(
		func() (err error) { sources, err = r.Agent.VerifySources(ctx); return err },
		func() (err error) { compiled, err = r.Agent.VerifyProfile(ctx, profile); return err },
		func() (err error) { program, err = r.verifyProgram(); return err },
	)...)
	if err != nil {
		return fmt.Errorf("verify: %w", err)
	}
	clock()
	if drift := slices.Concat(sources, compiled, program); len(drift) > 0 {
		return r.drift(ctx, drift)
	}
	return r.enter(ctx, RuntimeVerified, Evidence{evManifest: r.pinned.ManifestSHA256, evProfile: r.pinned.ProfileSHA256, evRuntime: r.pinned.RuntimeSHA256})
}

func (r *run) verifyProgram() ([]Drift, error) {
	drift := Drift{Surface: SurfaceProgram, Class: "changed", Path: filepath.Base(r.Runtime.Program), Expected: r.pinned.RuntimeSHA256.String()}
	got, err := digestFile(r.program)
	switch {
	case errors.Is(err, os.ErrNotExist):
		drift.Class = "missing"
	case err != nil:
		return nil, err
	case got == r.pinned.RuntimeSHA256:
		return nil, nil
	default:
		drift.Actual = got.String()
	}
	return []Drift{drift}, nil
}

// run starts the child and returns its answer when it is acceptable and nothing of the child is left.
func (r *run) run(ctx context.Context, n int, home, profile string) (*wire.Answer, ProcessRecord, error) {
	clock := r.clock(fmt.Sprintf("child_%d", n))
	result, err := r.super.Run(ctx, child.Spec{
		Program: r.program,
		Args:    r.Runtime.Args,
		Env: []string{
			"HERMES_HOME=" + profile,
			"HOME=" + filepath.Join(home, "home"),
			"LANG=C.UTF-8",
			"PATH=/usr/local/bin:/usr/bin:/bin",
			"TMPDIR=" + filepath.Join(home, "tmp"),
			"TZ=UTC",
		},
		Dir:    filepath.Join(home, "home"),
		Stdin:  r.request,
		Limits: r.Limits,
	}, func(child.Process) { _ = r.at(ctx, "running", n) })
	if err != nil {
		return nil, ProcessRecord{}, err
	}
	clock()
	record := ProcessRecord{
		Start: n, Process: result.Process, Exit: result.Exit, Problem: result.Problem,
		StdoutBytes: len(result.Stdout), StdoutSHA256: canon.Sum(result.Stdout),
		StderrBytes: result.Stderr.Bytes, StderrSHA256: result.Stderr.SHA256, Sweep: result.Sweep,
	}
	if result.Problem != child.NotStarted {
		r.receipt.Observed.Processes = append(r.receipt.Observed.Processes, record)
	}
	if err := ctx.Err(); err != nil {
		return nil, record, err
	}
	if result.Problem != "" {
		details := []string{result.Detail, result.Exit.Signal, result.Stderr.Tail}
		switch {
		case result.Problem == child.BadExit && result.Exit.Signal == "":
			details[1] = fmt.Sprintf("exit status %d", result.Exit.Code)
		case result.Problem == child.TimedOut:
			details[0] = fmt.Sprintf("no end after %v", r.Limits.Timeout)
		}
		err := fmt.Errorf("start %d of the runtime", n)
		for _, detail := range details {
			if detail != "" {
				err = fmt.Errorf("%w: %s", err, detail)
			}
		}
		return nil, record, refused(string(result.Problem), err)
	}
	answer, err := checkAnswer(result.Stdout, &r.asked, r.view, r.pinned.Files)
	if err != nil {
		return nil, record, refused("answer_refused", canon.InFile(fmt.Sprintf("answer %d", n), err))
	}
	return answer, record, nil
}

// after finds what the start changed in its own profile.
func (r *run) after(ctx context.Context, profile string) error {
	changes, err := r.Agent.VerifyProfile(ctx, profile)
	if _, gone := os.Lstat(profile); errors.Is(gone, fs.ErrNotExist) {
		changes, err = []Drift{{Surface: SurfaceProfile, Class: "missing", Path: "."}}, nil
	}
	if err != nil {
		return fmt.Errorf("verify after the start: %w", err)
	}
	changes = slices.DeleteFunc(changes, func(d Drift) bool { return expected(r.Expected, d) })
	if len(changes) > 0 {
		return r.drift(ctx, changes)
	}
	return nil
}

func (r *run) stopped(ctx context.Context, n int, answer *wire.Answer, record ProcessRecord) error {
	start := Start{
		Number: n, ManifestSHA256: r.pinned.ManifestSHA256, IdentitySHA256: r.pinned.IdentitySHA256,
		ProfileSHA256: r.pinned.ProfileSHA256, RuntimeSHA256: r.pinned.RuntimeSHA256, QuerySHA256: r.asked.SHA256,
	}
	var err error
	if start.AnswerSHA256, err = canon.DigestOf(answer); err != nil {
		return err
	}
	if start.ProvenanceSHA256, err = canon.DigestOf(provenance(answer)); err != nil {
		return err
	}
	exit, err := exitEvidence(record)
	if err != nil {
		return err
	}
	rep := &r.receipt.Reproducible
	rep.Starts = append(rep.Starts, start)
	if n == 1 {
		r.first = answer
	} else {
		rep.Equal = new(compare(rep.Starts[0], start))
	}
	return r.enter(ctx, StoppedCleanly, Evidence{evAnswer: start.AnswerSHA256, evProvenance: start.ProvenanceSHA256, evExit: exit})
}

// exitEvidence is the part of a clean end that is the same each time.
func exitEvidence(p ProcessRecord) (canon.Digest, error) {
	return canon.DigestOf(struct {
		Exit    child.Exit    `json:"exit"`
		Problem child.Problem `json:"problem"`
		Killed  int           `json:"killed"`
		Left    int           `json:"left"`
	}{p.Exit, p.Problem, p.Sweep.Killed, p.Sweep.Left})
}

// conclude compares the two starts.
func (r *run) conclude(ctx context.Context) error {
	starts := r.receipt.Reproducible.Starts
	if !r.receipt.Reproducible.Equal.all() {
		return r.drift(ctx, []Drift{{Surface: SurfaceAnswer, Class: "changed", Path: "/",
			Expected: starts[0].AnswerSHA256.String(), Actual: starts[1].AnswerSHA256.String()}})
	}
	if r.Inject != nil {
		return refused("drift_not_detected", fmt.Errorf("drift was injected into %s before start %d and not detected", r.Inject.Surface, r.Inject.Start))
	}
	r.receipt.Reproducible.Answer = r.first
	return r.enter(ctx, RestartReproduced, Evidence{
		evManifest: starts[1].ManifestSHA256, evIdentity: starts[1].IdentitySHA256, evRuntime: starts[1].RuntimeSHA256,
		evQuery: starts[1].QuerySHA256, evAnswer: starts[1].AnswerSHA256, evProvenance: starts[1].ProvenanceSHA256,
	})
}

// drift goes to drift_detected; the run is over.
func (r *run) drift(ctx context.Context, all []Drift) error {
	digest, err := canon.DigestOf(all)
	if err != nil {
		return err
	}
	r.receipt.Reproducible.Drift, r.receipt.Reproducible.DriftTotal = all[:min(len(all), MaxDrift)], len(all)
	if err := r.machine.move(DriftDetected, Evidence{evDrift: digest}); err != nil {
		return err
	}
	_ = r.at(ctx, string(DriftDetected), r.machine.start)
	return errDrift
}

// end closes the supervisor, whatever happened, proves that nothing is left, and gives the
// outcome its name.
func (r *run) end(ctx context.Context, err error) error {
	clock := r.clock("close")
	closeErr := r.super.Close()
	r.receipt.Observed.Guardian = r.super.Guardian()
	cleanup := &r.receipt.Observed.Cleanup
	cleanup.FolderRemoved = closeErr == nil
	absence, lookErr := r.super.Look()
	cleanup.Absence = absence
	clock()

	rec := &r.receipt
	var why *stop
	var input *canon.InputError
	switch {
	case err == nil:
		rec.Outcome = Reproduced
	case errors.Is(err, errDrift):
		rec.Outcome, rec.Reason, err = Drifted, rec.Reproducible.Drift[0].Surface, nil
	case ctx.Err() != nil:
		rec.Outcome, rec.Reason, err = Interrupted, "interrupted", fmt.Errorf("interrupted: %w", context.Cause(ctx))
	case errors.As(err, &why):
		rec.Outcome, rec.Reason = why.outcome, why.reason
	case errors.As(err, &input):
		rec.Outcome, rec.Reason = Refused, InputsRefused
	case errors.Is(err, child.ErrGuardianLost):
		rec.Outcome, rec.Reason = Failed, "guardian_lost"
	default:
		rec.Outcome, rec.Reason = Failed, "environment"
	}
	if !cleanup.complete() {
		rec.Outcome, rec.Reason, rec.Reproducible.Answer = Failed, "not_clean", nil
		err = errors.Join(err, closeErr, lookErr, fmt.Errorf("something is left: %+v", absence))
	}
	return err
}

// enter moves the machine. A restart that was reproduced stays so: nothing is left to interrupt.
func (r *run) enter(ctx context.Context, to State, shown Evidence) error {
	if err := r.machine.move(to, shown); err != nil {
		return err
	}
	if err := r.at(ctx, string(to), r.machine.start); to != RestartReproduced {
		return err
	}
	return nil
}

// at marks a point of the run; at each one a run that is to end does.
func (r *run) at(ctx context.Context, point string, start int) error {
	if r.Watch != nil {
		r.Watch(ctx, Event{point, start})
	}
	return ctx.Err()
}

func (r *run) clock(part string) func() {
	begun := r.Now()
	return func() { r.millis[part] = millis(r.Now().Sub(begun)) }
}

func millis(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// together runs functions at the same time and returns their errors.
func together(fs ...func() error) []error {
	errs := make([]error, len(fs))
	var wg sync.WaitGroup
	for i, f := range fs {
		wg.Go(func() { errs[i] = f() })
	}
	wg.Wait()
	return errs
}

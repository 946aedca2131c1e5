package main

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"selfsame.dev/selfsame/internal/canon"
	"selfsame.dev/selfsame/living"
	"selfsame.dev/selfsame/living/program"
	"selfsame.dev/selfsame/living/store"
	"selfsame.dev/selfsame/schemas"
)

type livingCommands struct {
	Init    livingInit    `cmd:"" help:"Create the profile that a baseline declares, and the store's signing key."`
	Compose livingCompose `cmd:"" help:"Show the compact view: memory, disclosed as memory."`
	Seed    livingSeed    `cmd:"" help:"Lay memory beside the frozen baseline: what a turn starts from."`
	Apply   livingApply   `cmd:"" help:"Take in turn reports: admit what their own evidence shows."`
	Turn    livingTurn    `cmd:"" help:"Run turns: a program gets a seed on standard input and writes a report to standard output."`
	Log     livingLog     `cmd:"" help:"Show what was learned when and from what, and what was refused and why."`
	Show    livingShow    `cmd:"" help:"Show the document, or an earlier version of it."`
	Restore livingRestore `cmd:"" help:"Write the content of an earlier version as a new version."`
	Rebase  livingRebase  `cmd:"" help:"Pin the profile to a changed baseline, as a recorded change."`
	Fsck    livingFsck    `cmd:"" help:"Re-derive the document from the log and compare all that is stored."`
	Mirror  livingMirror  `cmd:"" help:"Write a read-only snapshot."`
	Prove   livingProve   `cmd:"" help:"Prove that a record is in the log, and that the log only grew since an older head."`
	Verify  livingVerify  `cmd:"" help:"Verify a store, a mirror, an exported log or a proof."`
	Catalog livingCatalog `cmd:"" help:"Lay a test run beside the records of the living profile: the evidence of their check."`
	Replay  livingReplay  `cmd:"" help:"Replay turn reports in order, in other orders and doubled, and compare the content."`
}

// livingClock is where instants come from.
type livingClock struct {
	Now string `placeholder:"INSTANT" help:"Instead of the clock: 2006-01-02T15:04:05Z, in UTC."`
}

func (c livingClock) instant() (living.Instant, error) {
	if c.Now == "" {
		return living.Instant(time.Now().UTC().Format("2006-01-02T15:04:05Z")), nil
	}
	at, err := living.ParseInstant(c.Now)
	return at, under("--now", err)
}

// under names the flag that an InputError is about.
func under(flag string, err error) error {
	var input *canon.InputError
	if errors.As(err, &input) && input.File == "" && input.Key == "" {
		named := *input
		named.Key = flag
		return &named
	}
	return err
}

// livingStore names a store: an authoritative one, or a mirror, which takes no writes.
type livingStore struct {
	Store string `placeholder:"DIR" required:"" help:"Authoritative store, or a mirror."`
	Key   string `placeholder:"FILE" help:"Public key to trust (default: the store's own; a mirror has none)."`
}

func (c livingStore) open() (living.Store, error) {
	if _, err := os.Stat(filepath.Join(c.Store, store.MirrorFile)); err == nil {
		if c.Key == "" {
			return nil, &refusal{"a mirror is read with --key, the public key of its store"}
		}
		keys, err := store.ReadVerifier(c.Key)
		if err != nil {
			return nil, err
		}
		m, err := store.OpenMirror(c.Store, keys)
		return m, livingVerdict(err)
	}
	return c.authoritative()
}

func (c livingStore) authoritative() (*store.Authoritative, error) {
	if _, err := os.Stat(filepath.Join(c.Store, store.MirrorFile)); err == nil {
		return nil, livingVerdict(&store.ReadOnlyError{Path: c.Store})
	}
	keys, err := store.ReadKeys(c.Store)
	if errors.Is(err, os.ErrNotExist) {
		return nil, &canon.InputError{File: c.Store, Problem: "is no store", Fix: "make one with: selfsame living init"}
	}
	if err == nil && c.Key != "" {
		var pinned store.Keys
		if pinned, err = store.ReadVerifier(c.Key); err == nil {
			keys.Verifier = pinned.Verifier
		}
	}
	return store.Open(c.Store, keys), err
}

type livingOwner struct {
	Owner string `placeholder:"NAME" required:"" help:"Whose profile."`
}

type livingBaseline struct {
	Baseline string `placeholder:"FILE" required:"" help:"Frozen baseline (living-baseline.v1)."`
}

func (c livingBaseline) read() (*living.Baseline, error) {
	raw, err := os.ReadFile(c.Baseline)
	if err != nil {
		return nil, err
	}
	if err := schemas.Validate(c.Baseline, living.BaselineFormat, raw); err != nil {
		return nil, err
	}
	base, err := living.DecodeBaseline(raw)
	return base, canon.InFile(c.Baseline, err)
}

// livingVerdict turns errors of the wing into those of the command line: failed
// verifications end with exit status 1, refused input with 3.
func livingVerdict(err error) error {
	if err == nil {
		return nil
	}
	var missing *living.NotFoundError
	var readOnly *store.ReadOnlyError
	switch {
	case store.Failed(err):
		return &livingFailure{err}
	case errors.As(err, &missing):
		return &canon.InputError{Problem: missing.Error(), Fix: "name one that is there (selfsame living log), or create the profile with selfsame living init"}
	case errors.As(err, &readOnly):
		return &canon.InputError{File: readOnly.Path, Problem: "a mirror takes no writes", Fix: readOnly.Hint()}
	}
	return err
}

// livingFailure is a [failure] that keeps what caused it, for its hint.
type livingFailure struct{ cause error }

func (f *livingFailure) Error() string   { return f.cause.Error() }
func (f *livingFailure) Unwrap() []error { return []error{f.cause, &failure{reason: f.cause.Error()}} }

type livingWriter struct {
	livingStore
	livingBaseline
	livingClock
	JSON bool `help:"Write results as JSON, one a line (living-step.v1)."`
}

func (c *livingWriter) kernel() (*living.Kernel, error) {
	at, err := c.instant()
	if err != nil {
		return nil, err
	}
	base, err := c.read()
	if err != nil {
		return nil, err
	}
	s, err := c.authoritative()
	if err != nil {
		return nil, err
	}
	return &living.Kernel{Store: s, Baseline: base, Now: func() living.Instant {
		if c.Now == "" { // a loop may take long
			at, _ = c.instant()
		}
		return at
	}}, nil
}

type livingInit struct{ livingWriter }

func (c *livingInit) Run(std streams) error {
	if _, err := c.read(); err != nil {
		return err // before anything is made
	}
	if _, err := c.instant(); err != nil {
		return err
	}
	if _, err := os.Stat(filepath.Join(c.Store, store.MirrorFile)); err != nil {
		if _, err := store.CreateKeys(c.Store, rand.Reader); err != nil {
			return err
		}
	}
	k, err := c.kernel()
	if err != nil {
		return err
	}
	_, err = k.Store.Load(k.Baseline.Owner())
	var missing *living.NotFoundError
	created := errors.As(err, &missing)
	state, err := k.Init()
	if err != nil {
		return livingVerdict(err)
	}
	if state.Document.BaselineDigest() != k.Baseline.Digest() {
		return livingVerdict(&living.BaselineDriftError{Expected: state.Document.BaselineDigest(), Actual: k.Baseline.Digest()})
	}
	result := &living.Result{Document: state.Document}
	if created {
		result.Event = living.Created
	}
	return writeStep(std, result, c.JSON)
}

type livingCompose struct {
	livingStore
	livingOwner
	Output string `placeholder:"FILE" help:"Where to write the view (default: standard output)."`
}

// Run shows an empty view of an owner of whom nothing is stored.
func (c *livingCompose) Run(std streams) error {
	s, err := c.open()
	if err != nil {
		return err
	}
	view := living.EmptyView(c.Owner)
	state, err := s.Load(c.Owner)
	var missing *living.NotFoundError
	if err == nil {
		view, err = living.Compose(state.Document)
	}
	if err != nil && !errors.As(err, &missing) {
		return livingVerdict(err)
	}
	raw, err := view.Bytes()
	if err != nil {
		return err
	}
	return writeResult(std, c.Output, raw)
}

func (c livingStore) document(owner string) (*living.Document, error) {
	s, err := c.open()
	if err != nil {
		return nil, err
	}
	state, err := s.Load(owner)
	if err != nil {
		return nil, livingVerdict(err)
	}
	return state.Document, nil
}

type livingSeed struct {
	livingStore
	livingBaseline
	Output string `placeholder:"FILE" help:"Where to write the seed (default: standard output)."`
}

// Run starts from an empty document where there is none yet.
func (c *livingSeed) Run(std streams) error {
	base, err := c.read()
	if err != nil {
		return err
	}
	s, err := c.open()
	if err != nil {
		return err
	}
	doc := living.NewDocument(base)
	state, err := s.Load(base.Owner())
	var missing *living.NotFoundError
	if err == nil {
		doc = state.Document
	} else if !errors.As(err, &missing) {
		return livingVerdict(err)
	}
	raw, err := living.Seed(doc, base, doc.LastTurn()+1)
	if err != nil {
		return livingVerdict(err)
	}
	return writeResult(std, c.Output, raw)
}

type livingApply struct {
	livingWriter
	Report []string `arg:"" name:"report" help:"Turn reports (living-turn.v1)."`
}

func (c *livingApply) Run(std streams) error {
	k, err := c.kernel()
	if err != nil {
		return err
	}
	refused := 0
	for _, path := range c.Report {
		raw, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		result, err := k.Apply(raw)
		if err != nil {
			return livingVerdict(err)
		}
		refused += len(result.Refused)
		if err := writeStep(std, result, c.JSON); err != nil {
			return err
		}
	}
	return refusedClaims(refused)
}

func refusedClaims(n int) error {
	if n == 0 {
		return nil
	}
	return &canon.InputError{Problem: fmt.Sprintf("refused: %d", n), Fix: "the reasons are in the result and in selfsame living log; what was admitted stands"}
}

type livingTurn struct {
	livingWriter
	Turns   int           `default:"1" help:"How many turns to run."`
	Timeout time.Duration `default:"10m" help:"How long one turn may take."`
	Program []string      `arg:"" name:"program" help:"Program and arguments, after --."`
}

// Run goes on after a turn that failed: one bad turn never spoils the loop.
func (c *livingTurn) Run(ctx context.Context, std streams) error {
	if c.Turns < 1 || c.Timeout <= 0 {
		return &refusal{"--turns and --timeout must be positive"}
	}
	k, err := c.kernel()
	if err != nil {
		return err
	}
	turn := &program.Turn{Args: c.Program, Timeout: c.Timeout, Stderr: std.err}
	refused := 0
	var failed error
	for range c.Turns {
		state, err := k.Init()
		if err != nil {
			return livingVerdict(err)
		}
		turn.Limit = state.Document.Limits().ReportBytes
		result, err := k.Step(ctx, turn)
		if err != nil {
			return livingVerdict(err)
		}
		if result.Failure != nil {
			failed = fmt.Errorf("turn %d gave no report: %w", result.Turn, result.Failure)
		}
		refused += len(result.Refused)
		if err := writeStep(std, result, c.JSON); err != nil {
			return err
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
	if failed != nil {
		return failed
	}
	return refusedClaims(refused)
}

type livingLog struct {
	livingStore
	livingOwner
	From int64 `help:"First record to show."`
	JSON bool  `help:"Write the stored records, one a line (living-record.v1)."`
}

func (c *livingLog) Run(std streams) error {
	s, err := c.open()
	if err != nil {
		return err
	}
	var out bytes.Buffer
	err = s.Records(c.Owner, c.From, func(raw []byte) error {
		if c.JSON {
			out.Write(raw)
			out.WriteByte('\n')
			return nil
		}
		return describe(&out, raw)
	})
	if err != nil {
		return livingVerdict(err)
	}
	_, err = std.out.Write(out.Bytes())
	return err
}

type livingShow struct {
	livingStore
	livingOwner
	Version int64  `default:"-1" help:"Which version (default: the newest)."`
	JSON    bool   `help:"Write the document's exact bytes (living-profile.v1)."`
	Output  string `placeholder:"FILE" help:"Where to write it (default: standard output)."`
}

func (c *livingShow) Run(std streams) error {
	if c.Version < -1 {
		return &refusal{"--version must be zero or more"}
	}
	s, err := c.open()
	if err != nil {
		return err
	}
	var doc *living.Document
	if c.Version >= 0 {
		doc, err = s.Version(c.Owner, c.Version)
	} else {
		doc, err = c.document(c.Owner)
	}
	if err != nil {
		return livingVerdict(err)
	}
	if c.JSON {
		return writeResult(std, c.Output, doc.Bytes())
	}
	var out bytes.Buffer
	describeDocument(&out, doc)
	return writeResult(std, c.Output, bytes.TrimSuffix(out.Bytes(), []byte("\n")))
}

type livingRestore struct {
	livingWriter
	Version int64 `required:"" help:"Version to restore."`
}

func (c *livingRestore) Run(std streams) error {
	k, err := c.kernel()
	if err != nil {
		return err
	}
	result, err := k.Restore(c.Version)
	if err != nil {
		return livingVerdict(err)
	}
	return writeStep(std, result, c.JSON)
}

type livingRebase struct{ livingWriter }

func (c *livingRebase) Run(std streams) error {
	k, err := c.kernel()
	if err != nil {
		return err
	}
	result, err := k.Rebase()
	if err != nil {
		return livingVerdict(err)
	}
	return writeStep(std, result, c.JSON)
}

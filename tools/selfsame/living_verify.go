package main

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"time"

	"selfsame.dev/selfsame/internal/atomicfile"
	"selfsame.dev/selfsame/internal/canon"
	"selfsame.dev/selfsame/living"
	"selfsame.dev/selfsame/living/store"
	"selfsame.dev/selfsame/schemas"
)

type livingFsck struct {
	livingStore
	livingOwner
	JSON   bool   `help:"Write the result as JSON (living-audit.v1)."`
	Output string `placeholder:"FILE" help:"Where to write the document that the log re-derives."`
}

func (c *livingFsck) Run(std streams) error {
	s, err := c.authoritative()
	if err != nil {
		return err
	}
	audit, err := s.Fsck(c.Owner)
	if err != nil {
		return livingVerdict(err)
	}
	if c.Output != "" {
		if err := atomicfile.Write(c.Output, audit.Document.Bytes(), 0o644); err != nil {
			return err
		}
	}
	return writeAudit(std, audit, c.JSON)
}

func writeAudit(std streams, a *store.Audit, asJSON bool) error {
	if asJSON {
		raw, err := canon.Marshal(a)
		if err != nil {
			return err
		}
		return writeResult(std, "", raw)
	}
	_, err := fmt.Fprintf(std.out, "%s: %d records lead to version %d\n  document %s\n  content  %s\n  root     %s\n",
		a.Owner, a.Records, a.Version, a.DocumentSHA256, a.ContentSHA256, a.Root)
	if err == nil && a.Unpublished > 0 {
		_, err = fmt.Fprintf(std.out, "  the head beside the log lacks %d records; the next change publishes it\n", a.Unpublished)
	}
	return err
}

type livingMirror struct {
	livingStore
	livingOwner
	livingClock
	Output string `placeholder:"DIR" required:"" help:"New folder for the mirror."`
	JSON   bool   `help:"Write the mirror's description as JSON (living-mirror.v1)."`
}

func (c *livingMirror) Run(std streams) error {
	at, err := c.instant()
	if err != nil {
		return err
	}
	s, err := c.authoritative()
	if err != nil {
		return err
	}
	snapshot, err := s.Mirror(c.Owner, c.Output, at)
	if err != nil {
		return livingVerdict(err)
	}
	if c.JSON {
		raw, err := canon.Marshal(snapshot)
		if err != nil {
			return err
		}
		return writeResult(std, "", raw)
	}
	_, err = fmt.Fprintf(std.out, "%s: version %d, %d records, taken at %s\n  document %s\n",
		snapshot.Owner, snapshot.Version, snapshot.Records, snapshot.TakenAt, snapshot.DocumentSHA256)
	return err
}

type livingProve struct {
	livingStore
	livingOwner
	Record    int64  `required:"" help:"Which record, from 0."`
	OlderHead string `placeholder:"FILE" help:"Head signed before: prove that the log only grew since."`
	Output    string `placeholder:"FILE" help:"Where to write the proof (default: standard output)."`
}

func (c *livingProve) Run(std streams) error {
	s, err := c.authoritative()
	if err != nil {
		return err
	}
	var older []byte
	if c.OlderHead != "" {
		if older, err = os.ReadFile(c.OlderHead); err != nil {
			return err
		}
	}
	proof, err := s.Prove(c.Owner, c.Record, older)
	if err != nil {
		return livingVerdict(err)
	}
	raw, err := canon.Marshal(proof)
	if err != nil {
		return err
	}
	return writeResult(std, c.Output, raw)
}

type livingVerify struct {
	Store  string `placeholder:"DIR" xor:"what" required:"" help:"Authoritative store: everything that fsck checks."`
	Mirror string `placeholder:"DIR" xor:"what" required:"" help:"Mirror: altered or stale ones are refused."`
	Log    string `placeholder:"FILE" xor:"what" required:"" help:"Exported log, one record a line, under the signed head given with --head."`
	Proof  string `placeholder:"FILE" xor:"what" required:"" help:"Proof (living-proof.v1)."`

	livingClock
	Key       string        `placeholder:"FILE" help:"Public key to trust; needed for all but a store."`
	Owner     string        `placeholder:"NAME" help:"Whose profile it must be; needed for a store."`
	Head      string        `placeholder:"FILE" help:"Signed head of the log; a mirror behind it is stale."`
	OlderHead string        `placeholder:"FILE" help:"Head signed and kept before: a log that does not continue it was rolled back."`
	SaveHead  string        `placeholder:"FILE" help:"Where to keep a verified store's head, for --older-head next time."`
	MaxAge    time.Duration `placeholder:"DURATION" help:"How old a mirror may be."`
	JSON      bool          `help:"Write the result as JSON (living-audit.v1, for a proof living-record.v1)."`
}

func (c *livingVerify) Run(std streams) error {
	at, err := c.instant()
	if err != nil {
		return err
	}
	if err := c.applicable(); err != nil {
		return err
	}
	if c.Store != "" {
		return c.store(std)
	}
	if c.Key == "" {
		return &refusal{"missing flag --key: whom to trust is not for the files to say"}
	}
	keys, err := store.ReadVerifier(c.Key)
	if err != nil {
		return err
	}
	files := map[string][]byte{}
	for _, path := range []string{c.Log, c.Proof, c.Head, c.OlderHead} {
		if path == "" {
			continue
		}
		if files[path], err = os.ReadFile(path); err != nil {
			return err
		}
	}
	switch {
	case c.Proof != "":
		return c.proof(std, keys, files[c.Proof])
	case c.Mirror != "":
		m, err := store.OpenMirror(c.Mirror, keys)
		for _, head := range []string{c.Head, c.OlderHead} {
			if err == nil && head != "" {
				err = m.Fresh(files[head])
			}
		}
		if err == nil && c.MaxAge > 0 {
			err = m.Young(at, c.MaxAge)
		}
		if err == nil {
			err = c.owned(m.Audit().Owner)
		}
		if err != nil {
			return livingVerdict(err)
		}
		return writeAudit(std, m.Audit(), c.JSON)
	}
	if c.Head == "" {
		return &refusal{"missing flag --head: the signed head of the log"}
	}
	audit, err := store.VerifyLog(keys, files[c.Log], files[c.Head])
	if err == nil && c.OlderHead != "" {
		err = store.VerifyContinues(keys, files[c.Log], files[c.OlderHead])
	}
	if err == nil {
		err = c.owned(audit.Owner)
	}
	if err != nil {
		return livingVerdict(err)
	}
	return writeAudit(std, audit, c.JSON)
}

// applicable refuses flags that what is verified has no use for: a check that was asked for
// and not made must not look like one that held.
func (c *livingVerify) applicable() error {
	for _, flag := range []struct {
		name        string
		given, used bool
	}{
		{"--head", c.Head != "", c.Proof == ""},
		{"--older-head", c.OlderHead != "", c.Proof == ""},
		{"--save-head", c.SaveHead != "", c.Store != ""},
		{"--max-age", c.MaxAge != 0, c.Mirror != ""},
	} {
		if flag.given && !flag.used {
			return &refusal{flag.name + " says nothing about what is verified here"}
		}
	}
	if c.MaxAge < 0 {
		return &refusal{"--max-age must be positive"}
	}
	return nil
}

// owned fails where another owner's profile was asked for.
func (c *livingVerify) owned(owner string) error {
	if c.Owner != "" && c.Owner != owner {
		return &failure{reason: fmt.Sprintf("it is the profile of %q, not of %q", owner, c.Owner)}
	}
	return nil
}

func (c *livingVerify) store(std streams) error {
	if c.Owner == "" {
		return &refusal{"missing flag --owner"}
	}
	s, err := livingStore{Store: c.Store, Key: c.Key}.authoritative()
	if err != nil {
		return err
	}
	audit, err := s.Fsck(c.Owner)
	for _, head := range []string{c.Head, c.OlderHead} {
		if err != nil || head == "" {
			continue
		}
		signed, readErr := os.ReadFile(head)
		if readErr != nil {
			return readErr
		}
		err = s.Reaches(c.Owner, signed, head)
	}
	if err != nil {
		return livingVerdict(err)
	}
	if c.SaveHead != "" {
		head, err := s.Head(c.Owner)
		if err != nil {
			return livingVerdict(err)
		}
		if err := atomicfile.Write(c.SaveHead, head, 0o644); err != nil {
			return err
		}
	}
	return writeAudit(std, audit, c.JSON)
}

func (c *livingVerify) proof(std streams, keys store.Keys, raw []byte) error {
	rec, err := store.CheckProof(keys, raw)
	if err != nil {
		return livingVerdict(canon.InFile(c.Proof, err))
	}
	if err := c.owned(rec.Owner); err != nil {
		return err
	}
	line, err := rec.Bytes()
	if err != nil {
		return err
	}
	if c.JSON {
		return writeResult(std, "", line)
	}
	return describe(std.out, line)
}

type livingReplay struct {
	livingBaseline
	Expect        string         `placeholder:"SHA256" help:"Content digest that the history must come to."`
	ExpectFile    string         `placeholder:"FILE" help:"File that holds that digest."`
	ExpectRefused map[string]int `placeholder:"REASON=N" help:"How many claims must be refused, by reason; all others must be admitted."`
	JSON          bool           `help:"Write the result as JSON (living-replay.v1)."`
	Output        string         `placeholder:"FILE" help:"Where to write the result (default: standard output)."`
	Report        []string       `arg:"" optional:"" name:"report" help:"Turn reports (living-turn.v1), in order."`
}

// livingReplayed is the result of a replay, as JSON.
type livingReplayed struct {
	ContentSHA256 canon.Digest         `json:"content_sha256"`
	Format        string               `json:"format"`
	Orders        int                  `json:"orders"` // how many orders came to the same content, each doubled
	Owner         string               `json:"owner"`
	Steps         []livingReplayedStep `json:"steps"`
	Version       int64                `json:"version"`
}

type livingReplayedStep struct {
	Admitted    int64            `json:"admitted"`
	ChangedAxes []string         `json:"changed_axes"`
	Refused     []living.Refusal `json:"refused"`
	Turn        int64            `json:"turn"`
}

func (c *livingReplay) Run(std streams) error {
	base, err := c.read()
	if err != nil {
		return err
	}
	expect := c.Expect
	if c.ExpectFile != "" {
		raw, err := os.ReadFile(c.ExpectFile)
		if err != nil {
			return err
		}
		expect = string(trimNewline(raw))
	}
	var want canon.Digest
	if expect != "" {
		if want, err = canon.ParseDigest(expect); err != nil {
			return &canon.InputError{File: c.ExpectFile, Problem: err.Error(), Fix: "write the content_sha256 of a replay"}
		}
	}
	var reports [][]byte
	for _, path := range c.Report {
		raw, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		reports = append(reports, raw)
	}
	r, err := living.Rehearse(base, reports)
	if err != nil {
		return err
	}
	orders, diverged := r.Converges(base)
	out := livingReplayed{ContentSHA256: r.Document.ContentDigest(), Format: "living-replay.v1", Orders: orders, Owner: base.Owner(), Version: r.Document.Version()}
	refused := map[string]int{}
	for _, step := range r.Steps {
		out.Steps = append(out.Steps, livingReplayedStep{step.Admitted, step.Changed, step.Refused, step.Turn})
		for _, why := range step.Refused {
			refused[string(why.Reason)]++
		}
	}
	if err := c.write(std, out); err != nil {
		return err
	}
	switch {
	case diverged != nil:
		return &failure{reason: diverged.Error()}
	case !want.IsZero() && out.ContentSHA256 != want:
		return &failure{reason: fmt.Sprintf("content: expected %s, actual %s", want, out.ContentSHA256)}
	case c.ExpectRefused != nil && !maps.Equal(c.ExpectRefused, refused):
		return &failure{reason: fmt.Sprintf("refused: expected %v, actual %v", c.ExpectRefused, refused)}
	}
	return nil
}

func (c *livingReplay) write(std streams, out livingReplayed) error {
	if c.JSON || c.Output != "" {
		raw, err := canon.Marshal(out)
		if err != nil {
			return err
		}
		return errors.Join(schemas.Validate("", out.Format, raw), writeResult(std, c.Output, raw))
	}
	fmt.Fprintf(std.out, "%s: version %d after %d reports; %d orders, each doubled, come to the same content\n  content  %s\n",
		out.Owner, out.Version, len(out.Steps), out.Orders, out.ContentSHA256)
	for i, step := range out.Steps {
		fmt.Fprintf(std.out, "report %d: turn %d, %d admitted, changed %v\n", i+1, step.Turn, step.Admitted, step.ChangedAxes)
		describeRefused(std.out, step.Refused)
	}
	return nil
}

func trimNewline(raw []byte) []byte {
	for len(raw) > 0 && (raw[len(raw)-1] == '\n' || raw[len(raw)-1] == '\r') {
		raw = raw[:len(raw)-1]
	}
	return raw
}

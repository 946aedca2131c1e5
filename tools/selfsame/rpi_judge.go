package main

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"selfsame.dev/selfsame/internal/atomicfile"
	"selfsame.dev/selfsame/internal/canon"
	"selfsame.dev/selfsame/rpi"
	"selfsame.dev/selfsame/rpi/validate"
)

type rpiIntent struct {
	File   string `placeholder:"FILE" xor:"what" required:"" help:"Intent to store, byte for byte."`
	Verify string `placeholder:"FILE" xor:"what" required:"" help:"Stored intent whose digest to derive again."`
	Store  string `placeholder:"DIR" help:"Where to store <sha256>.intent."`
	Output string `placeholder:"FILE" help:"Where to write {\"acceptance_digest\", \"intent_ref\"} (default: standard output)."`
}

func (c *rpiIntent) Run(std streams) error {
	var digest canon.Digest
	path := c.Verify
	var err error
	if c.Verify != "" {
		_, digest, err = validate.ReadIntent(c.Verify)
	} else {
		if c.Store == "" {
			return &refusal{"missing flag --store"}
		}
		var raw []byte
		if raw, err = os.ReadFile(c.File); err == nil {
			path, digest, err = validate.SnapshotIntent(c.Store, raw)
		}
	}
	if err != nil {
		return err
	}
	return writeJSON(std, c.Output, map[string]string{"acceptance_digest": digest.String(), "intent_ref": path})
}

func writeJSON(std streams, path string, value any) error {
	raw, err := canon.Marshal(value)
	if err != nil {
		return err
	}
	return writeResult(std, path, raw)
}

type rpiSubject struct {
	Root    string   `placeholder:"DIR" required:"" help:"Folder that holds the subject."`
	Base    string   `placeholder:"DIR" xor:"what" required:"" help:"Folder as it was before the change."`
	Verify  string   `placeholder:"FILE" xor:"what" required:"" help:"subject-manifest.v1 to hold the folder against."`
	Path    []string `sep:"none" placeholder:"PATH" help:"Declared path; without any, whatever changed is declared."`
	Include []string `sep:"none" placeholder:"PATTERN" default:"**" help:"Paths in scope; * stays in one segment, ** spans any number (default: **)."`
	Exclude []string `sep:"none" placeholder:"PATTERN" help:"Paths out of scope all the same."`
	Output  string   `placeholder:"FILE" help:"Where to write the subject-manifest.v1 (default: standard output)."`
}

func (c *rpiSubject) Run(std streams) error {
	if c.Verify != "" {
		subject, err := readSubject(c.Verify)
		if err != nil {
			return err
		}
		var differs *canon.InputError
		if err = subject.Matches(c.Root); errors.As(err, &differs) {
			return &failure{reason: differs.Error()}
		}
		return err
	}
	subject, err := validate.BuildSubject(c.Root, c.Base, c.Path, validate.Scope{Include: c.Include, Exclude: c.Exclude})
	if err != nil {
		return err
	}
	return writeJSON(std, c.Output, subject)
}

func readSubject(file string) (validate.Subject, error) {
	raw, err := os.ReadFile(file)
	if err != nil {
		return validate.Subject{}, err
	}
	return validate.ReadSubject(file, raw)
}

type rpiCheck struct {
	Check   string `placeholder:"FILE" required:"" help:"check.v1: exact argv, bounds, declared effect."`
	Root    string `placeholder:"DIR" required:"" help:"Folder that holds the subject; it is copied, never touched."`
	Subject string `placeholder:"FILE" required:"" help:"subject-manifest.v1 of the folder."`
	Output  string `placeholder:"FILE" help:"Where to write the check-receipt.v1 (default: standard output)."`
	Stdout  string `placeholder:"FILE" help:"Where to write what the check wrote to standard output."`
	Stderr  string `placeholder:"FILE" help:"Where to write what it wrote to standard error."`
}

func (c *rpiCheck) Run(ctx context.Context, std streams) error {
	raw, err := os.ReadFile(c.Check)
	if err != nil {
		return err
	}
	check, err := validate.ReadCheck(c.Check, raw)
	if err != nil {
		return err
	}
	subject, err := readSubject(c.Subject)
	if err != nil {
		return err
	}
	inside, err := validate.Bubblewrap(ctx)
	if err != nil {
		return err
	}
	receipt, result, err := validate.RunCheck(ctx, inside, c.Root, subject, check)
	if err != nil {
		return err
	}
	for file, data := range map[string][]byte{c.Stdout: result.Stdout, c.Stderr: result.Stderr} {
		if file != "" {
			if err := atomicfile.Write(file, data, 0o644); err != nil {
				return err
			}
		}
	}
	if err := writeJSON(std, c.Output, receipt); err != nil {
		return err
	}
	if !receipt.Passed {
		return &failure{reason: "the check " + check.Name + " did not pass"}
	}
	return nil
}

type rpiVerdict struct {
	Intent      string            `placeholder:"FILE" required:"" help:"Stored intent, <sha256>.intent."`
	Subject     string            `placeholder:"FILE" required:"" help:"subject-manifest.v1 of what was judged."`
	Draft       string            `placeholder:"FILE" required:"" help:"verdict-draft.v1: the judge's words."`
	Criterion   []string          `sep:"none" placeholder:"ID" help:"Accepted criterion; the judge must judge each."`
	Receipt     map[string]string `mapsep:"none" placeholder:"REF=FILE" help:"check-receipt.v1 under a short ref."`
	Author      string            `placeholder:"ID" required:"" help:"Context that made the subject, as observed."`
	Validator   string            `placeholder:"ID" required:"" help:"Context that judges, as observed."`
	Family      string            `placeholder:"NAME" required:"" help:"Family of the judge."`
	AttestedBy  string            `placeholder:"ID" required:"" help:"Who attests that the judge's context is fresh."`
	Attestation string            `enum:"runtime,caller" default:"caller" help:"Whether the runtime or the caller attests."`
	Output      string            `placeholder:"FILE" required:"" help:"Where to write the verdict.v2."`
	Bindings    string            `placeholder:"FILE" required:"" help:"Where to write the verdict-bindings.v1."`
}

func (c *rpiVerdict) Run(std streams) error {
	intent, _, err := validate.ReadIntent(c.Intent)
	if err != nil {
		return err
	}
	subject, err := readSubject(c.Subject)
	if err != nil {
		return err
	}
	raw, err := os.ReadFile(c.Draft)
	if err != nil {
		return err
	}
	draft, err := validate.ReadDraft(c.Draft, raw)
	if err != nil {
		return err
	}
	facts := validate.Facts{
		Intent: intent, Subject: subject, Criteria: c.Criterion,
		AuthorContext: c.Author, ValidatorContext: c.Validator, ValidatorFamily: c.Family,
		Freshness: validate.Freshness{Source: c.Attestation, Attester: c.AttestedBy},
		Receipts:  map[string]validate.Receipt{},
	}
	for ref, file := range c.Receipt {
		if raw, err = os.ReadFile(file); err != nil {
			return err
		}
		if facts.Receipts[ref], err = validate.ReadReceipt(file, raw); err != nil {
			return err
		}
	}
	verdict, bindings, err := validate.Judge(facts, draft)
	if err != nil {
		return canon.InFile(c.Draft, err)
	}
	// Bindings alone mean nothing, so they go first.
	if err := writeJSON(std, c.Bindings, bindings); err != nil {
		return err
	}
	if err := writeJSON(std, c.Output, verdict); err != nil {
		return err
	}
	if verdict.Verdict != "PASS" {
		return &failure{reason: "the verdict is " + verdict.Verdict}
	}
	return nil
}

type rpiKey struct {
	Output string `placeholder:"FILE" required:"" help:"Where to write the signing key; it must not exist."`
}

func (c *rpiKey) Run(std streams) error {
	file, public, err := validate.NewKey(rand.Reader)
	if err != nil {
		return err
	}
	out, err := os.OpenFile(c.Output, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = out.Write(file)
	if err = errors.Join(err, out.Sync(), out.Close()); err != nil {
		return errors.Join(err, os.Remove(c.Output))
	}
	return writeJSON(std, "", map[string]string{"public_key": public})
}

func readKey(file string) (ed25519.PrivateKey, error) {
	raw, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	key, err := validate.ParseKey(raw)
	return key, canon.InFile(file, err)
}

type rpiBegin struct {
	Chain        string `placeholder:"DIR" required:"" help:"Folder of the new chain; it must not exist."`
	Key          string `placeholder:"FILE" required:"" help:"Signing key."`
	Intent       string `placeholder:"FILE" required:"" help:"Stored intent, <sha256>.intent."`
	RepairRounds int    `placeholder:"N" default:"2" help:"Bound of repair rounds (default: 2)."`
	CrossModel   bool   `help:"Ask for a second validator family."`
}

func (c *rpiBegin) Run() error {
	if c.RepairRounds < 0 {
		return &refusal{"--repair-rounds must be zero or more"}
	}
	key, err := readKey(c.Key)
	if err != nil {
		return err
	}
	_, acceptance, err := validate.ReadIntent(c.Intent)
	if err != nil {
		return err
	}
	return validate.Begin(c.Chain, key, filepath.Base(c.Intent), acceptance,
		rpi.Options{RepairRounds: c.RepairRounds, CrossModel: c.CrossModel})
}

type rpiAppend struct {
	Chain    string   `placeholder:"DIR" required:"" help:"Chain to append to."`
	Key      string   `placeholder:"FILE" required:"" help:"Signing key of the chain."`
	Verdict  []string `sep:"none" placeholder:"FILE" required:"" help:"verdict.v2 of one judge; once for each judge of the round."`
	Bindings []string `sep:"none" placeholder:"FILE" required:"" help:"verdict-bindings.v1, in the same order."`
}

func (c *rpiAppend) Run(std streams) error {
	if len(c.Verdict) != len(c.Bindings) {
		return &refusal{"give --bindings once for each --verdict"}
	}
	key, err := readKey(c.Key)
	if err != nil {
		return err
	}
	legs := make([]validate.Judgment, len(c.Verdict))
	for i := range legs {
		if legs[i], err = validate.ReadJudgment(c.Verdict[i], c.Bindings[i]); err != nil {
			return err
		}
	}
	after, err := validate.Append(c.Chain, key, legs)
	if err != nil {
		return err
	}
	if err := writeJSON(std, "", after); err != nil {
		return err
	}
	if after.StopReason != string(rpi.Converged) {
		return &failure{reason: fmt.Sprintf("after this round: %s, %s", after.StopReason, after.Status)}
	}
	return nil
}

// pins are what a reader of a chain may know from elsewhere.
type pins struct {
	Signer string `placeholder:"HEX" help:"Public key that must have signed the chain."`
	Last   string `placeholder:"SHA256" help:"Digest of the last round's file; shows rounds cut off at the end."`
}

func (p pins) replay(dir string) (*validate.Replayed, error) {
	for flag, pin := range map[string]string{"--signer": p.Signer, "--last": p.Last} {
		if _, err := canon.ParseDigest(pin); pin != "" && err != nil {
			return nil, &refusal{flag + " is 64 lowercase hexadecimal digits"}
		}
	}
	return validate.Replay(dir, p.Signer, p.Last)
}

type rpiReplay struct {
	Chain string `placeholder:"DIR" required:"" help:"Chain to replay, offline, from its files alone."`
	pins
	Output string `placeholder:"FILE" help:"Where to write the rpi-outcome.v1 (default: standard output)."`
}

func (c *rpiReplay) Run(std streams) error {
	replayed, err := c.replay(c.Chain)
	if err != nil {
		return err
	}
	fmt.Fprintf(std.err, "selfsame: signed by %s, last %s\n", replayed.Signer, replayed.Last)
	outcome := replayed.Outcome
	if err := writeResult(std, c.Output, outcome.Value().AppendJSON(nil)); err != nil {
		return err
	}
	return stopped(outcome)
}

func stopped(outcome rpi.Outcome) error {
	if outcome.StopReason == rpi.Converged {
		return nil
	}
	return &failure{reason: fmt.Sprintf("the repair stopped with %s, %s", outcome.StopReason, outcome.Report.Status)}
}

package main

import (
	"fmt"
	"io"
	"strconv"
	"strings"

	"selfsame.dev/selfsame/internal/canon"
	"selfsame.dev/selfsame/living"
)

// livingStep is what one step did, as JSON.
type livingStep struct {
	Admitted       int64            `json:"admitted"`
	ContentSHA256  canon.Digest     `json:"content_sha256"`
	DocumentSHA256 canon.Digest     `json:"document_sha256"`
	Event          string           `json:"event"` // "unchanged" if nothing was written
	Failure        string           `json:"failure,omitzero"`
	Format         string           `json:"format"`
	Owner          string           `json:"owner"`
	Refused        []living.Refusal `json:"refused"`
	Turn           int64            `json:"turn"`
	Version        int64            `json:"version"`
}

func writeStep(std streams, r *living.Result, asJSON bool) error {
	step := livingStep{
		Admitted: r.Admitted, ContentSHA256: r.Document.ContentDigest(), DocumentSHA256: r.Document.Digest(), Event: string(r.Event),
		Format: "living-step.v1", Owner: r.Document.Owner(), Refused: r.Refused, Turn: r.Turn, Version: r.Document.Version(),
	}
	if step.Event == "" {
		step.Event = "unchanged"
	}
	if r.Failure != nil {
		step.Failure = r.Failure.Error()
	}
	if asJSON {
		raw, err := canon.Marshal(step)
		if err != nil {
			return err
		}
		return writeResult(std, "", raw)
	}
	fmt.Fprintf(std.out, "%s: %s, version %d", step.Owner, step.Event, step.Version)
	if step.Turn > 0 {
		fmt.Fprintf(std.out, ", turn %d, %d admitted, %d refused", step.Turn, step.Admitted, len(step.Refused))
	}
	fmt.Fprintf(std.out, "\n  document %s\n  content  %s\n", step.DocumentSHA256, step.ContentSHA256)
	describeRefused(std.out, step.Refused)
	if step.Failure != "" {
		fmt.Fprintf(std.out, "  no report: %s\n", printable(step.Failure))
	}
	return nil
}

// describe writes one record of a log for a person.
func describe(w io.Writer, raw []byte) error {
	rec, err := living.DecodeRecord(raw)
	if err != nil {
		return err
	}
	fmt.Fprintf(w, "record %d  %s  %s  version %d", rec.Sequence, rec.At, rec.Event, rec.Version)
	if rec.Turn > 0 {
		fmt.Fprintf(w, "  turn %d", rec.Turn)
	}
	if rec.RestoredVersion != nil {
		fmt.Fprintf(w, "  from version %d", *rec.RestoredVersion)
	}
	if rec.Event == living.Created || rec.Event == living.Rebased {
		fmt.Fprintf(w, "  baseline %s", rec.BaselineSHA256)
	}
	fmt.Fprintln(w)
	facts, err := rec.Facts()
	if err != nil {
		return err
	}
	for _, f := range facts {
		describeFact(w, "+ "+f.Axis, f.Fact)
	}
	describeRefused(w, rec.Refused)
	return nil
}

func describeRefused(w io.Writer, refused []living.Refusal) {
	for _, r := range refused {
		what := r.Axis + " " + r.Value
		if r.Axis == "" && r.Value == "" {
			what = "the whole report"
		}
		fmt.Fprintf(w, "  - %s: %s: %s\n", printable(what), r.Reason, printable(r.Detail))
	}
}

func describeFact(w io.Writer, label string, f *living.Fact) {
	fmt.Fprintf(w, "  %s %s\n", label, printable(f.Value()))
	for _, e := range f.Evidence() {
		fmt.Fprintf(w, "      from %s  (%d bytes, sha256 %s)\n", e.Source, e.Bytes, e.SHA256)
	}
}

func describeDocument(w io.Writer, doc *living.Document) {
	fmt.Fprintf(w, "%s: version %d, baseline %s\n", doc.Owner(), doc.Version(), doc.BaselineDigest())
	fmt.Fprintln(w, "memory, not ground truth: look at the source again before relying on it")
	for _, name := range doc.AxisNames() {
		a := doc.Axes()[name]
		facts := doc.Facts(name)
		fmt.Fprintf(w, "%s (%s, %d of %d)\n", name, a.Kind, len(facts), a.Cap)
		for _, f := range facts {
			describeFact(w, fmt.Sprintf("turn %d:", f.Turn()), f)
		}
	}
}

// printable keeps text that others wrote to its place on its line: what would end the line,
// move it or hide in it is escaped.
func printable(text string) string {
	var b strings.Builder
	for _, r := range text {
		if strconv.IsPrint(r) {
			b.WriteRune(r)
		} else {
			b.WriteString(strings.Trim(strconv.QuoteRune(r), "'"))
		}
	}
	return b.String()
}

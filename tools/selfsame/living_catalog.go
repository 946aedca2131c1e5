package main

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"

	"selfsame.dev/selfsame/internal/canon"
	"selfsame.dev/selfsame/living/catalog"
)

type livingCatalog struct {
	Results string `placeholder:"FILE" required:"" help:"Output of: go test -json ./living/..."`
	JSON    bool   `help:"Write the evidence as JSON (living-evidence.v1)."`
	Output  string `placeholder:"FILE" help:"Where to write the evidence (default: standard output)."`
}

// livingEvidence is the evidence for the catalog's check: which run, and what it showed.
type livingEvidence struct {
	Attributes []livingAttribute `json:"attributes"`
	Format     string            `json:"format"`
	RunSHA256  canon.Digest      `json:"run_sha256"` // of the results file
}

type livingAttribute struct {
	Attribute string            `json:"attribute"`
	Holds     string            `json:"holds"`
	Outcomes  map[string]string `json:"outcomes"`
}

func (c *livingCatalog) Run(std streams) error {
	statement, err := catalog.Load()
	if err != nil {
		return err
	}
	raw, err := os.ReadFile(c.Results)
	if err != nil {
		return err
	}
	results, err := catalog.Results(bytes.NewReader(raw))
	if err != nil {
		return canon.InFile(c.Results, err)
	}
	shown, failed := statement.Evidence(results)
	// What a run names is what exists.
	for _, problem := range statement.Problems(func(test string) bool { return results[test] != "" }) {
		failed = errors.Join(failed, errors.New(problem))
	}
	evidence := livingEvidence{Format: "living-evidence.v1", RunSHA256: canon.Sum(raw)}
	var text bytes.Buffer
	fmt.Fprintf(&text, "%d records, %d tests; run %s\n", len(statement.Records), len(statement.Tests()), evidence.RunSHA256)
	for _, s := range shown {
		evidence.Attributes = append(evidence.Attributes, livingAttribute(s))
		fmt.Fprintf(&text, "%s: %s\n", s.Attribute, s.Holds)
		for _, test := range slices.Sorted(maps.Keys(s.Outcomes)) {
			fmt.Fprintf(&text, "  %s  %s\n", s.Outcomes[test], test)
		}
	}
	out := bytes.TrimSuffix(text.Bytes(), []byte("\n"))
	if c.JSON {
		if out, err = canon.Marshal(evidence); err != nil {
			return err
		}
	}
	if err := writeResult(std, c.Output, out); err != nil {
		return err
	}
	if failed != nil {
		return &failure{reason: failed.Error()}
	}
	return nil
}

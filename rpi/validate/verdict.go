package validate

import (
	"fmt"
	"slices"
	"strings"

	"selfsame.dev/selfsame/internal/canon"
	"selfsame.dev/selfsame/schemas"
)

// The formats of a verdict, its sidecar, and the judge's own words before they are bound.
const (
	VerdictFormat  = "verdict.v2"
	BindingsFormat = "verdict-bindings.v1"
	DraftFormat    = "verdict-draft.v1"
)

// Verdict is a verdict.v2: a judgment bound to the exact intent bytes, the exact subject and
// the two contexts.
type Verdict struct {
	Format            string       `json:"schema_version"`
	Verdict           string       `json:"verdict"`
	Acceptance        canon.Digest `json:"acceptance_digest"`
	Subject           canon.Digest `json:"subject_manifest_digest"`
	AuthorContext     string       `json:"author_context_id"`
	ValidatorContext  string       `json:"validator_context_id"`
	ValidatorFamily   string       `json:"validator_family"`
	Freshness         Freshness    `json:"freshness_attestation"`
	Criteria          []Criterion  `json:"criteria"`
	Findings          []Finding    `json:"findings"`
	Evidence          []Evidence   `json:"evidence_refs"`
	Checked           []string     `json:"checked"`
	NotChecked        []string     `json:"not_checked"`
	OutOfScopeChanges []string     `json:"out_of_scope_changes"`
}

// Freshness says who attests that the validator's context is fresh: the runtime or the caller.
type Freshness struct {
	Source   string `json:"source"`
	Attester string `json:"attester_identity"`
}

// Criterion is one acceptance criterion with the refs of what proves it.
type Criterion struct {
	ID       string   `json:"id"`
	Evidence []string `json:"evidence"`
}

// Finding is one open finding.
type Finding struct {
	ID      string `json:"id"`
	Summary string `json:"summary"`
}

// Evidence is one receipt under a short ref.
type Evidence struct {
	Ref    string       `json:"ref"`
	Digest canon.Digest `json:"sha256"`
}

// Bindings is the verdict-bindings.v1 beside a verdict, tied to it by digest: what the law
// needs and a verdict does not hold.
type Bindings struct {
	Format  string            `json:"format"`
	Verdict canon.Digest      `json:"verdict_sha256"`
	Classes map[string]string `json:"classes"`
	Bound   []Binding         `json:"bound"`
}

// Binding ties a receipt to a subject: the findings it resolves, saw on the prior subject, or
// blames on the judged one.
type Binding struct {
	Ref         string       `json:"ref"`
	Subject     canon.Digest `json:"subject_digest"`
	Resolves    []string     `json:"resolves"`
	Preexisting []string     `json:"preexisting"`
	Introduced  []string     `json:"introduced"`
}

// Draft is a verdict-draft.v1: what the judge says, before it is bound to facts.
type Draft struct {
	Format     string            `json:"format"`
	Verdict    string            `json:"verdict"`
	Criteria   []Criterion       `json:"criteria"`
	Findings   []Finding         `json:"findings"`
	Classes    map[string]string `json:"classes"`
	Bound      []Binding         `json:"bound"`
	Checked    []string          `json:"checked"`
	NotChecked []string          `json:"not_checked"`
}

// ReadDraft decodes a verdict-draft.v1.
func ReadDraft(file string, raw []byte) (Draft, error) {
	var d Draft
	return d, schemas.Decode(file, DraftFormat, raw, &d)
}

// Facts are what runtime and caller observed; no judge writes them.
type Facts struct {
	// Intent are the raw stored bytes; their digest is derived here again (law R2).
	Intent           []byte
	Subject          Subject
	Criteria         []string
	AuthorContext    string
	ValidatorContext string
	ValidatorFamily  string
	Freshness        Freshness
	// Receipts are the judge's evidence by ref, over the judged or the prior subject.
	Receipts map[string]Receipt
}

// Judge binds a draft to the facts. A PASS is refused unless everything a PASS needs is there;
// FAIL and NOT_PROVEN stay what the judge said. Nobody judges their own work.
func Judge(facts Facts, draft Draft) (Verdict, Bindings, error) {
	if err := facts.Subject.check(); err != nil {
		return Verdict{}, Bindings{}, err
	}
	subject, err := facts.Subject.Digest()
	if err != nil {
		return Verdict{}, Bindings{}, err
	}
	v := Verdict{
		Format: VerdictFormat, Verdict: draft.Verdict,
		Acceptance: canon.Sum(facts.Intent), Subject: subject,
		AuthorContext: facts.AuthorContext, ValidatorContext: facts.ValidatorContext, ValidatorFamily: facts.ValidatorFamily,
		Freshness: facts.Freshness, Criteria: draft.Criteria, Findings: draft.Findings,
		Checked: draft.Checked, NotChecked: draft.NotChecked, OutOfScopeChanges: facts.Subject.OutOfScope,
	}
	for _, ref := range sortedRefs(facts.Receipts) {
		digest, err := canon.DigestOf(facts.Receipts[ref])
		if err != nil {
			return Verdict{}, Bindings{}, err
		}
		v.Evidence = append(v.Evidence, Evidence{ref, digest})
	}
	if err := v.check(); err != nil {
		return Verdict{}, Bindings{}, err
	}
	if err := sameCriteria(facts.Criteria, draft.Criteria); err != nil {
		return Verdict{}, Bindings{}, err
	}
	if draft.Verdict == "PASS" {
		for ref, receipt := range facts.Receipts {
			if cited(draft.Criteria, ref) && (!receipt.Passed || receipt.Subject != subject) {
				return Verdict{}, Bindings{}, refusePass("/criteria", fmt.Sprintf("the receipt %q is no passed check of this subject", ref))
			}
		}
	}
	raw, err := canon.Marshal(v)
	if err != nil {
		return Verdict{}, Bindings{}, err
	}
	if err := schemas.Validate("", VerdictFormat, raw); err != nil {
		return Verdict{}, Bindings{}, err
	}
	b := Bindings{Format: BindingsFormat, Verdict: canon.Sum(raw), Classes: draft.Classes, Bound: draft.Bound}
	for i, bound := range b.Bound {
		receipt, ok := facts.Receipts[bound.Ref]
		if !ok || receipt.Subject != bound.Subject {
			return Verdict{}, Bindings{}, &canon.InputError{Key: fmt.Sprintf("/bound/%d", i), Problem: fmt.Sprintf("no receipt %q is over the subject %s", bound.Ref, bound.Subject), Fix: "bind receipts to the subject they ran over"}
		}
		if len(bound.Resolves) > 0 && !receipt.Passed {
			return Verdict{}, Bindings{}, &canon.InputError{Key: fmt.Sprintf("/bound/%d/resolves", i), Problem: fmt.Sprintf("the check of receipt %q did not pass, so it resolves nothing", bound.Ref), Fix: "bind a check that passes where the finding is closed"}
		}
	}
	return v, b, b.check(v)
}

// check refuses a verdict that no judge may write.
func (v Verdict) check() error {
	refuse := func(key, problem, fix string) error { return &canon.InputError{Key: key, Problem: problem, Fix: fix} }
	if v.AuthorContext == v.ValidatorContext {
		return refuse("/validator_context_id", "the author judges their own work", "let another, fresh context judge")
	}
	ids := map[string]bool{}
	for i, f := range v.Findings {
		if ids[f.ID] {
			return refuse(fmt.Sprintf("/findings/%d", i), fmt.Sprintf("the finding %q is there twice", f.ID), "merge the two")
		}
		ids[f.ID] = true
	}
	refs := map[string]bool{}
	for i, e := range v.Evidence {
		if refs[e.Ref] {
			return refuse(fmt.Sprintf("/evidence_refs/%d", i), fmt.Sprintf("the ref %q is there twice", e.Ref), "give every receipt its own ref")
		}
		refs[e.Ref] = true
	}
	criteria := map[string]bool{}
	for i, c := range v.Criteria {
		if criteria[c.ID] {
			return refuse(fmt.Sprintf("/criteria/%d", i), fmt.Sprintf("the criterion %q is there twice", c.ID), "judge every criterion once")
		}
		criteria[c.ID] = true
		for _, ref := range c.Evidence {
			if !refs[ref] {
				return refuse(fmt.Sprintf("/criteria/%d", i), fmt.Sprintf("there is no receipt %q", ref), "cite receipts that are given")
			}
		}
	}
	switch v.Verdict {
	case "FAIL":
		if len(v.Findings) == 0 {
			return refuse("/findings", "a FAIL names no finding", "name what fails")
		}
	case "PASS":
		return v.checkPass()
	}
	return nil
}

// checkPass refuses a PASS without all that one needs.
func (v Verdict) checkPass() error {
	switch {
	case len(v.Findings) > 0:
		return refusePass("/findings", "findings are open")
	case len(v.Checked) == 0:
		return refusePass("/checked", "nothing was checked")
	case len(v.NotChecked) > 0:
		return refusePass("/not_checked", "acceptance is left unverified: "+strings.Join(v.NotChecked, ", "))
	case len(v.OutOfScopeChanges) > 0:
		return refusePass("/out_of_scope_changes", "changes are out of scope: "+strings.Join(v.OutOfScopeChanges, ", "))
	case len(v.Criteria) == 0:
		return refusePass("/criteria", "no criterion is named")
	}
	for i, c := range v.Criteria {
		if len(c.Evidence) == 0 {
			return refusePass(fmt.Sprintf("/criteria/%d", i), fmt.Sprintf("nothing proves the criterion %q", c.ID))
		}
	}
	return nil
}

func refusePass(key, problem string) error {
	return &canon.InputError{Key: key, Problem: "no PASS: " + problem, Fix: "complete the proof, or say NOT_PROVEN or FAIL"}
}

// sameCriteria refuses a draft that leaves an accepted criterion out or adds one of its own.
func sameCriteria(accepted []string, judged []Criterion) error {
	want := slices.Sorted(slices.Values(accepted))
	have := make([]string, len(judged))
	for i, c := range judged {
		have[i] = c.ID
	}
	slices.Sort(have)
	if !slices.Equal(want, have) || !ascending(have) {
		return &canon.InputError{Key: "/criteria", Problem: fmt.Sprintf("judged %q, accepted %q", have, want), Fix: "judge every accepted criterion once and no other"}
	}
	return nil
}

// check ties the sidecar to its verdict.
func (b Bindings) check(v Verdict) error {
	raw, err := canon.Marshal(v)
	if err != nil {
		return err
	}
	if b.Verdict != canon.Sum(raw) {
		return &canon.InputError{Key: "/verdict_sha256", Problem: "the bindings belong to another verdict", Fix: "keep a verdict and its bindings together"}
	}
	for _, id := range sortedKeys(b.Classes) {
		if !slices.ContainsFunc(v.Findings, func(f Finding) bool { return f.ID == id }) {
			return &canon.InputError{Key: "/classes", Problem: fmt.Sprintf("the verdict has no finding %q", id), Fix: "class the findings of this verdict"}
		}
	}
	seen := map[string]bool{}
	for i, bound := range b.Bound {
		if seen[bound.Ref] || !slices.ContainsFunc(v.Evidence, func(e Evidence) bool { return e.Ref == bound.Ref }) {
			return &canon.InputError{Key: fmt.Sprintf("/bound/%d", i), Problem: fmt.Sprintf("the ref %q is bound twice, or no evidence of the verdict", bound.Ref), Fix: "bind each receipt of the verdict once"}
		}
		seen[bound.Ref] = true
	}
	return nil
}

func cited(criteria []Criterion, ref string) bool {
	return slices.ContainsFunc(criteria, func(c Criterion) bool { return slices.Contains(c.Evidence, ref) })
}

func sortedRefs(receipts map[string]Receipt) []string {
	refs := make([]string, 0, len(receipts))
	for ref := range receipts {
		refs = append(refs, ref)
	}
	slices.Sort(refs)
	return refs
}

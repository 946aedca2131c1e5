package validate_test

import (
	"strings"
	"testing"

	"selfsame.dev/selfsame/internal/canon"
	"selfsame.dev/selfsame/rpi/validate"
)

// receiptOver is a passed synthetic check of a subject.
func receiptOver(subject canon.Digest) validate.Receipt {
	return validate.Receipt{Format: validate.ReceiptFormat, Check: shellCheck("true", validate.ReadOnly),
		Subject: subject, Containment: "synthetic", Passed: true}
}

// subjectOf is a synthetic subject of one file.
func subjectOf(content string) validate.Subject {
	return validate.Subject{Format: validate.SubjectFormat, Base: canon.Sum([]byte("base")), Tree: canon.Sum([]byte(content)), Scope: everything,
		Entries: []validate.Entry{{Path: "a", Kind: validate.File, Digest: canon.Sum([]byte(content)), Size: int64(len(content))}}, Changed: []string{"a"}}
}

func digestOf(t *testing.T, v any) canon.Digest {
	t.Helper()
	d, err := canon.DigestOf(v)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

var intent = []byte("synthetic intent\n")

// passing returns facts and a draft that make a PASS.
func passing(t *testing.T, content string) (validate.Facts, validate.Draft) {
	t.Helper()
	s := subjectOf(content)
	return validate.Facts{
			Intent: intent, Subject: s, Criteria: []string{"works", "fast"},
			AuthorContext: "author", ValidatorContext: "judge", ValidatorFamily: "north",
			Freshness: validate.Freshness{Source: "runtime", Attester: "synthetic:runtime"},
			Receipts:  map[string]validate.Receipt{"unit": receiptOver(digestOf(t, s)), "bench": receiptOver(digestOf(t, s))},
		}, validate.Draft{Format: validate.DraftFormat, Verdict: "PASS", Checked: []string{"acceptance"},
			Criteria: []validate.Criterion{{ID: "works", Evidence: []string{"unit"}}, {ID: "fast", Evidence: []string{"bench", "unit"}}}}
}

func TestJudgePasses(t *testing.T) {
	facts, draft := passing(t, "good")
	v, b, err := validate.Judge(facts, draft)
	if err != nil {
		t.Fatal(err)
	}
	if v.Acceptance != canon.Sum(intent) || v.Subject != digestOf(t, facts.Subject) || b.Verdict != digestOf(t, v) || len(v.Evidence) != 2 {
		t.Errorf("%+v %+v", v, b)
	}
	if v.Evidence[0].Ref != "bench" || v.Evidence[0].Digest != digestOf(t, facts.Receipts["bench"]) {
		t.Errorf("%+v", v.Evidence)
	}
}

// Each of these takes one thing from a PASS; the same draft as NOT_PROVEN is the control and stays what
// it is, save where the verdict may not be written at all.
func TestJudgeRefuses(t *testing.T) {
	type change = func(*validate.Facts, *validate.Draft)
	for name, tc := range map[string]struct {
		change change
		part   string
		always bool // refused as NOT_PROVEN too
	}{
		"own work":           {func(f *validate.Facts, _ *validate.Draft) { f.ValidatorContext = f.AuthorContext }, "own work", true},
		"no author":          {func(f *validate.Facts, _ *validate.Draft) { f.AuthorContext = "" }, "author_context_id", true},
		"blank validator":    {func(f *validate.Facts, _ *validate.Draft) { f.ValidatorContext = " \u3000" }, "validator_context_id", true},
		"no attester":        {func(f *validate.Facts, _ *validate.Draft) { f.Freshness.Attester = "" }, "attester_identity", true},
		"self-attested":      {func(f *validate.Facts, _ *validate.Draft) { f.Freshness.Source = "author" }, "source", true},
		"unknown verdict":    {func(_ *validate.Facts, d *validate.Draft) { d.Verdict = "OK" }, "verdict", true},
		"forged subject":     {func(f *validate.Facts, _ *validate.Draft) { f.Subject.Changed = []string{"b"} }, "no entry", true},
		"criterion left out": {func(_ *validate.Facts, d *validate.Draft) { d.Criteria = d.Criteria[:1] }, "accepted", true},
		"criterion added":    {func(f *validate.Facts, _ *validate.Draft) { f.Criteria = f.Criteria[:1] }, "accepted", true},
		"criterion twice":    {func(f *validate.Facts, d *validate.Draft) { f.Criteria[0], d.Criteria[0].ID = "fast", "fast" }, "twice", true},
		"evidence not there": {func(_ *validate.Facts, d *validate.Draft) { d.Criteria[0].Evidence = []string{"dream"} }, `no receipt "dream"`, true},
		"finding twice": {func(_ *validate.Facts, d *validate.Draft) {
			d.Findings = append(d.Findings, finding("x"), finding("x"))
		}, "twice", true},
		"class of nothing": {func(_ *validate.Facts, d *validate.Draft) { d.Classes = map[string]string{"ghost": "c"} }, `no finding "ghost"`, true},
		"bound elsewhere": {func(_ *validate.Facts, d *validate.Draft) {
			d.Bound = []validate.Binding{{Ref: "unit", Subject: canon.Sum(nil)}}
		}, "over the subject", true},
		"resolved by a failed check": {func(f *validate.Facts, d *validate.Draft) {
			r := receiptOver(f.Receipts["unit"].Subject)
			r.Exit, r.Passed = 1, false
			f.Receipts["red"] = r
			d.Bound = []validate.Binding{{Ref: "red", Subject: r.Subject, Resolves: []string{"leak"}}}
		}, "resolves nothing", true},
		"bound without ref": {func(_ *validate.Facts, d *validate.Draft) {
			d.Bound = []validate.Binding{{Ref: "none", Subject: canon.Sum(nil)}}
		}, "no receipt", true},
		"open finding":       {func(_ *validate.Facts, d *validate.Draft) { d.Findings = append(d.Findings, finding("x")) }, "findings are open", false},
		"nothing checked":    {func(_ *validate.Facts, d *validate.Draft) { d.Checked = nil }, "nothing was checked", false},
		"left unverified":    {func(_ *validate.Facts, d *validate.Draft) { d.NotChecked = []string{"cancel"} }, "unverified: cancel", false},
		"criterion unproven": {func(_ *validate.Facts, d *validate.Draft) { d.Criteria[1].Evidence = nil }, `proves the criterion "fast"`, false},
		"no criterion":       {func(f *validate.Facts, d *validate.Draft) { f.Criteria, d.Criteria = nil, nil }, "no criterion", false},
		"out of scope":       {func(f *validate.Facts, _ *validate.Draft) { f.Subject = outOfScope(); rebind(t, f) }, "out of scope: a", false},
		"failed receipt": {func(f *validate.Facts, _ *validate.Draft) {
			r := f.Receipts["unit"]
			r.Exit, r.Passed = 1, false
			f.Receipts["unit"] = r
		}, "no passed check", false},
		"receipt of the prior": {func(f *validate.Facts, _ *validate.Draft) {
			r := f.Receipts["unit"]
			r.Subject = canon.Sum(nil)
			f.Receipts["unit"] = r
		}, "no passed check", false},
	} {
		facts, draft := passing(t, "good")
		tc.change(&facts, &draft)
		_, _, err := validate.Judge(facts, draft)
		refused(t, name, err, tc.part)
		draft.Verdict = "NOT_PROVEN"
		if name == "unknown verdict" {
			continue
		}
		v, _, err := validate.Judge(facts, draft)
		if (err != nil) != tc.always || err == nil && v.Verdict != "NOT_PROVEN" {
			t.Errorf("%s: NOT_PROVEN became %q, %v", name, v.Verdict, err)
		}
	}
	// Control: what fails may show that a finding was there before, or that it is new.
	facts, draft := passing(t, "good")
	red := receiptOver(facts.Receipts["unit"].Subject)
	red.Exit, red.Passed = 1, false
	facts.Receipts["red"] = red
	draft.Bound = []validate.Binding{{Ref: "red", Subject: red.Subject, Preexisting: []string{"leak"}, Introduced: []string{"slow"}}}
	if _, _, err := validate.Judge(facts, draft); err != nil {
		t.Error(err)
	}
	facts, draft = passing(t, "good")
	draft.Verdict = "FAIL"
	_, _, err := validate.Judge(facts, draft)
	refused(t, "a FAIL that names nothing", err, "names no finding")
	draft.Findings = []validate.Finding{finding("slow")}
	if v, _, err := validate.Judge(facts, draft); err != nil || v.Verdict != "FAIL" {
		t.Errorf("a FAIL became %q, %v", v.Verdict, err)
	}
}

func finding(id string) validate.Finding { return validate.Finding{ID: id, Summary: "synthetic"} }

func outOfScope() validate.Subject {
	s := subjectOf("good")
	s.Scope = validate.Scope{Include: []string{"src/**"}}
	s.OutOfScope = []string{"a"}
	return s
}

func rebind(t *testing.T, f *validate.Facts) {
	for ref, r := range f.Receipts {
		r.Subject = digestOf(t, f.Subject)
		f.Receipts[ref] = r
	}
}

func TestReadDraft(t *testing.T) {
	const good = `{"format":"verdict-draft.v1","verdict":"FAIL","criteria":[{"id":"works","evidence":[]}],"checked":[],"findings":[{"id":"f","summary":"s"}],"bound":[{"ref":"r","subject_digest":"` + "%" + `"}]}`
	doc := strings.Replace(good, "%", strings.Repeat("a", 64), 1)
	if d, err := validate.ReadDraft("d.json", []byte(doc)); err != nil || d.Verdict != "FAIL" || len(d.Bound) != 1 {
		t.Fatal(d, err)
	}
	for name, change := range map[string][2]string{
		"blank id": {`"id":"works"`, `"id":" "`}, "class member": {`"summary"`, `"class":"c","summary"`}, "no checked": {`"checked":[],`, ``}, "digest": {"aaaa", "AAAA"},
	} {
		_, err := validate.ReadDraft("d.json", []byte(strings.Replace(doc, change[0], change[1], 1)))
		refused(t, name, err, "d.json")
	}
}

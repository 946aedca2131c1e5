package rpi

// ReportSchema names the format of a report.
const ReportSchema = "rpi-report.v1"

// Report is an rpi-report.v1, exactly nine members. References and digests that nobody
// declared are null. Those of a repair phase are the caller's own words, carried unread.
type Report struct {
	Status           Status
	IntentRef        Value
	AcceptanceDigest Value
	SubjectDigest    Value
	VerdictRef       Value
	VerdictDigest    Value
	Checked          []Value
	NotChecked       []Value
}

// Value returns the report as JSON, its members sorted.
func (r Report) Value() Value {
	return Value{kind: Object, kids: []Member{
		{"acceptance_digest", r.AcceptanceDigest},
		{"checked", ListOf(r.Checked...)},
		{"intent_ref", r.IntentRef},
		{"not_checked", ListOf(r.NotChecked...)},
		{"schema_version", String(ReportSchema)},
		{"status", String(r.Status.String())},
		{"subject_manifest_digest", r.SubjectDigest},
		{"verdict_digest", r.VerdictDigest},
		{"verdict_ref", r.VerdictRef},
	}}
}

// MarshalJSON returns the RFC 8785 form.
func (r Report) MarshalJSON() ([]byte, error) { return r.Value().AppendJSON(nil), nil }

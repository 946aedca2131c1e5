package validate

import "selfsame.dev/selfsame/rpi"

// Leg returns what the law reads of a verdict and its bindings. Receipts that are bound to
// nothing stay labels.
func Leg(v Verdict, b Bindings) rpi.Value {
	member := func(name string, value rpi.Value) rpi.Member { return rpi.Member{Name: name, Value: value} }
	findings := make([]rpi.Value, len(v.Findings))
	for i, f := range v.Findings {
		members := []rpi.Member{member("id", rpi.String(f.ID)), member("summary", rpi.String(f.Summary))}
		if class, ok := b.Classes[f.ID]; ok {
			members = append(members, member("class", rpi.String(class)))
		}
		findings[i] = rpi.ObjectOf(members...)
	}
	bound := map[string]Binding{}
	for _, entry := range b.Bound {
		bound[entry.Ref] = entry
	}
	evidence := make([]rpi.Value, len(v.Evidence))
	for i, e := range v.Evidence {
		entry, ok := bound[e.Ref]
		if !ok {
			evidence[i] = rpi.String(e.Ref)
			continue
		}
		evidence[i] = rpi.ObjectOf(
			member("ref", rpi.String(e.Ref)), member("receipt_sha256", rpi.String(e.Digest.String())), member("subject_digest", rpi.String(entry.Subject.String())),
			member("resolves", rpi.Strings(entry.Resolves)), member("preexisting", rpi.Strings(entry.Preexisting)), member("introduced", rpi.Strings(entry.Introduced)))
	}
	return rpi.ObjectOf(
		member("verdict", rpi.String(v.Verdict)),
		member("findings", rpi.ListOf(findings...)),
		member("evidence_refs", rpi.ListOf(evidence...)),
		member("subject_manifest_digest", rpi.String(v.Subject.String())),
		member("validator_family", rpi.String(v.ValidatorFamily)),
		member("checked", rpi.Strings(v.Checked)),
		member("not_checked", rpi.Strings(v.NotChecked)),
	)
}

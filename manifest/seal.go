package manifest

import "selfsame.dev/selfsame/internal/canon"

// SealDatabase recomputes the counts and digests of a fingerprint and of the rows that it vouches for, so that
// both agree with each other. The fingerprint's other rows stay. That makes neither of them true.
func SealDatabase(f *Fingerprint, d *DatabaseIdentity) error {
	// Rows first, the fingerprint over them, then the digest of the fingerprint into the rows' document.
	if err := d.Seal(canon.Digest{}); err != nil {
		return err
	}
	ours := map[string]bool{}
	for _, r := range d.Rows {
		ours[r.Table] = true
	}
	rows := []RowDigest{}
	for _, r := range f.Rows {
		if !ours[r.Table] {
			rows = append(rows, r)
		}
	}
	for _, r := range d.Rows {
		rows = append(rows, RowDigest{Table: r.Table, Row: r.Row, Digest: r.Digest})
	}
	f.Rows = rows
	if err := f.Seal(); err != nil {
		return err
	}
	bound := *f
	bound.WAL = nil // its position is no part of an identity
	sum, err := canon.DigestOf(bound)
	if err != nil {
		return err
	}
	return d.Seal(sum)
}

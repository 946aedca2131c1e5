// Command reseal recomputes the counts and digests of a database fingerprint and a database identity after
// their rows or evidence were edited by hand, and writes both in canonical form. It is for fixtures:
// sealing makes documents agree with each other, it does not make them true.
//
// Usage: reseal SOURCE-ROOT FINGERPRINT DATABASE-IDENTITY
package main

import (
	"fmt"
	"os"
	"path/filepath"

	"selfsame.dev/selfsame/internal/atomicfile"
	"selfsame.dev/selfsame/internal/canon"
	"selfsame.dev/selfsame/manifest"
)

func main() {
	if len(os.Args) != 4 {
		fmt.Fprintln(os.Stderr, "usage: reseal SOURCE-ROOT FINGERPRINT DATABASE-IDENTITY")
		os.Exit(2)
	}
	if err := reseal(os.Args[1], os.Args[2], os.Args[3]); err != nil {
		fmt.Fprintln(os.Stderr, "reseal:", err)
		os.Exit(1)
	}
}

func reseal(root, fingerprintFile, identityFile string) error {
	var identity manifest.DatabaseIdentity
	var fingerprint manifest.Fingerprint
	if err := decode(identityFile, &identity); err != nil {
		return err
	}
	if err := decode(fingerprintFile, &fingerprint); err != nil {
		return err
	}
	for i := range identity.Rows {
		for j := range identity.Rows[i].Evidence {
			e := &identity.Rows[i].Evidence[j]
			data, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(e.Path)))
			if err != nil {
				return err
			}
			e.Digest = canon.Sum(data)
		}
	}
	// Rows first, the fingerprint over them, then the digest of the fingerprint into the rows' document.
	if err := identity.Seal(canon.Digest{}); err != nil {
		return err
	}
	ours := map[string]bool{}
	for _, r := range identity.Rows {
		ours[r.Table] = true
	}
	rows := []manifest.RowDigest{}
	for _, r := range fingerprint.Rows {
		if !ours[r.Table] {
			rows = append(rows, r)
		}
	}
	for _, r := range identity.Rows {
		rows = append(rows, manifest.RowDigest{Table: r.Table, Row: r.Row, Digest: r.Digest})
	}
	fingerprint.Rows = rows
	if err := fingerprint.Seal(); err != nil {
		return err
	}
	wal := fingerprint.WAL
	fingerprint.WAL = nil
	sum, err := canon.DigestOf(fingerprint)
	if err != nil {
		return err
	}
	fingerprint.WAL = wal
	if err := identity.Seal(sum); err != nil {
		return err
	}
	if err := encode(fingerprintFile, fingerprint); err != nil {
		return err
	}
	return encode(identityFile, identity)
}

func decode(file string, dst any) error {
	data, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	return canon.InFile(file, canon.Decode(data, dst))
}

func encode(file string, v any) error {
	data, err := canon.Marshal(v)
	if err != nil {
		return err
	}
	return atomicfile.Write(file, data, 0o644)
}

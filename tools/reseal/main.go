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
	// Bazel runs a program in its own folder, and says here where its caller is.
	if dir := os.Getenv("BUILD_WORKING_DIRECTORY"); dir != "" {
		if err := os.Chdir(dir); err != nil {
			fmt.Fprintln(os.Stderr, "reseal:", err)
			os.Exit(1)
		}
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
	if err := manifest.SealDatabase(&fingerprint, &identity); err != nil {
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

package store

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"
	"selfsame.dev/selfsame/internal/atomicfile"
	"selfsame.dev/selfsame/internal/canon"
)

// KeyName names the keys that sign heads.
const KeyName = "selfsame-living"

// Keys sign and verify heads. Without a Signer a store is for reading.
type Keys struct {
	Signer   note.Signer
	Verifier note.Verifier
}

// signHead returns the signed note of a tree: origin, size and root, one a line (the
// form of C2SP tlog-checkpoint). The origin binds it to one owner's log.
func (k Keys) signHead(key string, tree tlog.Tree) ([]byte, error) {
	if k.Signer == nil {
		return nil, errors.New("no signing key: the store is open for reading")
	}
	text := fmt.Sprintf("selfsame living/%s\n%d\n%s\n", key, tree.N, tree.Hash)
	return note.Sign(&note.Note{Text: text}, k.Signer)
}

// OpenHead verifies a signed head and returns the owner key and tree it is for.
func (k Keys) OpenHead(signed []byte) (key string, tree tlog.Tree, err error) {
	n, err := note.Open(signed, note.VerifierList(k.Verifier))
	if err != nil {
		return "", tree, unproven("signed head: %v", err)
	}
	// note.Open skips what it does not know and forgives loose base64: one head, one form.
	if len(n.Sigs) != 1 || len(n.UnverifiedSigs) != 0 {
		return "", tree, unproven("signed head: want exactly one signature")
	}
	if _, err := base64.StdEncoding.Strict().DecodeString(n.Sigs[0].Base64); err != nil {
		return "", tree, unproven("signed head: signature: %v", err)
	}
	lines := strings.Split(n.Text, "\n")
	if len(lines) != 4 || lines[3] != "" {
		return "", tree, unproven("signed head: want the three lines origin, size and root")
	}
	key, found := strings.CutPrefix(lines[0], "selfsame living/")
	size, err := strconv.ParseInt(lines[1], 10, 64)
	if !found || err != nil || size < 0 || strconv.FormatInt(size, 10) != lines[1] {
		return "", tree, unproven("signed head: bad origin or size")
	}
	root, err := base64.StdEncoding.Strict().DecodeString(lines[2])
	if err != nil || len(root) != tlog.HashSize {
		return "", tree, unproven("signed head: bad root")
	}
	tree.N = size
	copy(tree.Hash[:], root)
	return key, tree, nil
}

// headOf verifies a signed head that must be of one owner's log.
func (k Keys) headOf(key string, signed []byte) (tlog.Tree, error) {
	of, tree, err := k.OpenHead(signed)
	if err == nil && of != key {
		err = unproven("signed head: it is of another log, %s", of)
	}
	return tree, err
}

// The files of a store's keys.
const (
	signerFile   = "signing.key"
	verifierFile = "signing.pub"
)

// CreateKeys writes a new Ed25519 key pair into a store's folder, unless it has one,
// and returns the keys. random is read only for a new pair.
func CreateKeys(dir string, random io.Reader) (Keys, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return Keys{}, err
	}
	err := locked(filepath.Join(dir, "lock"), func() error {
		if _, err := os.Lstat(filepath.Join(dir, signerFile)); !errors.Is(err, os.ErrNotExist) {
			return err
		}
		secret, public, err := note.GenerateKey(random, KeyName)
		if err != nil {
			return err
		}
		// The public half goes first: with the private one there, both are.
		if err := atomicfile.Write(filepath.Join(dir, verifierFile), []byte(public+"\n"), 0o644); err != nil {
			return err
		}
		return atomicfile.Write(filepath.Join(dir, signerFile), []byte(secret+"\n"), 0o600)
	})
	if err != nil {
		return Keys{}, err
	}
	return ReadKeys(dir)
}

// ReadKeys reads the keys of a store's folder. A store whose signing key is kept away
// has no Signer and is for reading.
func ReadKeys(dir string) (Keys, error) {
	keys, err := ReadVerifier(filepath.Join(dir, verifierFile))
	if err != nil {
		return Keys{}, err
	}
	path := filepath.Join(dir, signerFile)
	secret, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return keys, nil
	}
	if err != nil {
		return Keys{}, err
	}
	if keys.Signer, err = note.NewSigner(string(bytes.TrimSpace(secret))); err != nil {
		return Keys{}, &canon.InputError{File: path, Problem: err.Error(), Fix: "bring back the store's " + signerFile + ", or move the damaged one away to read only"}
	}
	return keys, nil
}

// ReadVerifier reads a public key (the text form of golang.org/x/mod/sumdb/note).
func ReadVerifier(path string) (Keys, error) {
	public, err := os.ReadFile(path)
	if err != nil {
		return Keys{}, err
	}
	verifier, err := note.NewVerifier(string(bytes.TrimSpace(public)))
	if err != nil {
		return Keys{}, &canon.InputError{File: path, Problem: err.Error(), Fix: "give the store's " + verifierFile}
	}
	return Keys{Verifier: verifier}, nil
}

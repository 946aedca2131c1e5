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
		return "", tree, fmt.Errorf("signed head: %w", err)
	}
	// note.Open skips what it does not know and forgives loose base64: one head, one form.
	if len(n.Sigs) != 1 || len(n.UnverifiedSigs) != 0 {
		return "", tree, errors.New("signed head: want exactly one signature")
	}
	if _, err := base64.StdEncoding.Strict().DecodeString(n.Sigs[0].Base64); err != nil {
		return "", tree, fmt.Errorf("signed head: signature: %w", err)
	}
	lines := strings.Split(n.Text, "\n")
	if len(lines) != 4 || lines[3] != "" {
		return "", tree, errors.New("signed head: want the three lines origin, size and root")
	}
	key, found := strings.CutPrefix(lines[0], "selfsame living/")
	size, err := strconv.ParseInt(lines[1], 10, 64)
	if !found || err != nil || size < 0 || strconv.FormatInt(size, 10) != lines[1] {
		return "", tree, errors.New("signed head: bad origin or size")
	}
	root, err := base64.StdEncoding.Strict().DecodeString(lines[2])
	if err != nil || len(root) != tlog.HashSize {
		return "", tree, errors.New("signed head: bad root")
	}
	tree.N = size
	copy(tree.Hash[:], root)
	return key, tree, nil
}

// headOf verifies a signed head that must be of one owner's log.
func (k Keys) headOf(key string, signed []byte) (tlog.Tree, error) {
	of, tree, err := k.OpenHead(signed)
	if err == nil && of != key {
		err = fmt.Errorf("signed head: it is of another log, %s", of)
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
	var keys Keys
	return keys, locked(filepath.Join(dir, "lock"), func() error {
		var err error
		if keys, err = ReadKeys(dir); !errors.Is(err, os.ErrNotExist) {
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
		if err := atomicfile.Write(filepath.Join(dir, signerFile), []byte(secret+"\n"), 0o600); err != nil {
			return err
		}
		keys, err = ReadKeys(dir)
		return err
	})
}

// ReadKeys reads the keys of a store's folder.
func ReadKeys(dir string) (Keys, error) {
	secret, err := os.ReadFile(filepath.Join(dir, signerFile))
	if err != nil {
		return Keys{}, err
	}
	signer, err := note.NewSigner(string(bytes.TrimSpace(secret)))
	if err != nil {
		return Keys{}, fmt.Errorf("%s: %w", filepath.Join(dir, signerFile), err)
	}
	public, err := os.ReadFile(filepath.Join(dir, verifierFile))
	if err != nil {
		return Keys{}, err
	}
	verifier, err := ParseVerifier(string(public))
	if err != nil {
		return Keys{}, fmt.Errorf("%s: %w", filepath.Join(dir, verifierFile), err)
	}
	return Keys{signer, verifier}, nil
}

// ParseVerifier reads the text form of a public key (golang.org/x/mod/sumdb/note).
func ParseVerifier(text string) (note.Verifier, error) {
	return note.NewVerifier(strings.TrimSpace(text))
}

package validate

import (
	"crypto/ed25519"
	"encoding/hex"
	"io"
	"strings"

	"selfsame.dev/selfsame/internal/canon"
)

// NewKey makes a signing key from a random source: the text of its file, 64 hexadecimal
// digits and a line feed, and the public key in hexadecimal.
func NewKey(random io.Reader) (file []byte, public string, err error) {
	seed := make([]byte, ed25519.SeedSize)
	if _, err := io.ReadFull(random, seed); err != nil {
		return nil, "", err
	}
	return []byte(hex.EncodeToString(seed) + "\n"), PublicKey(ed25519.NewKeyFromSeed(seed)), nil
}

// PublicKey returns the public half in hexadecimal.
func PublicKey(key ed25519.PrivateKey) string {
	return hex.EncodeToString(key.Public().(ed25519.PublicKey))
}

// ParseKey reads the text of a key file. No error repeats any of it.
func ParseKey(file []byte) (ed25519.PrivateKey, error) {
	seed, err := hex.DecodeString(strings.TrimSuffix(string(file), "\n"))
	if err != nil || len(seed) != ed25519.SeedSize {
		return nil, &canon.InputError{Problem: "it is no signing key: 64 hexadecimal digits", Fix: "make one with selfsame rpi key"}
	}
	return ed25519.NewKeyFromSeed(seed), nil
}

package canon

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
)

// Digest is a SHA-256 digest (FIPS 180-4) over uncompressed bytes. Its text form,
// also in JSON, is 64 lowercase hexadecimal digits and nothing else.
type Digest [sha256.Size]byte

// Sum returns the digest of data.
func Sum(data []byte) Digest { return sha256.Sum256(data) }

// ParseDigest reads the text form of a digest. Upper case, prefixes such as
// "sha256:" and any other length are refused.
func ParseDigest(text string) (Digest, error) {
	var d Digest
	if len(text) != 2*len(d) {
		return d, fmt.Errorf("digest %q: want 64 lowercase hexadecimal digits, have %d characters", text, len(text))
	}
	for i := 0; i < len(text); i++ {
		if c := text[i]; (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return d, fmt.Errorf("digest %q: character %d is not a lowercase hexadecimal digit", text, i+1)
		}
	}
	_, err := hex.Decode(d[:], []byte(text))
	return d, err
}

// String returns the text form.
func (d Digest) String() string { return hex.EncodeToString(d[:]) }

// IsZero reports whether d was never set; no known data has the zero digest.
func (d Digest) IsZero() bool { return d == Digest{} }

// MarshalText implements encoding.TextMarshaler.
func (d Digest) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler with the strictness of [ParseDigest].
func (d *Digest) UnmarshalText(text []byte) error {
	parsed, err := ParseDigest(string(text))
	if err != nil {
		return err
	}
	*d = parsed
	return nil
}

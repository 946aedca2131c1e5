package store

import (
	"strings"

	"selfsame.dev/selfsame/internal/canon"
	"selfsame.dev/selfsame/living"
)

// OwnerKey returns the file-system name of an owner: "o-", up to 32 readable
// characters, "-", and the SHA-256 of the owner's exact bytes in hexadecimal. The digest
// alone decides, so two owners never share a key: not by path tricks (only [a-z0-9-]
// occurs), not on file systems that fold case (there is no upper case), not by
// look-alike or long names. Names that [living.CheckOwner] refuses have no key.
func OwnerKey(owner string) (string, error) {
	if err := living.CheckOwner(owner); err != nil {
		return "", err
	}
	readable := strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= '0' && r <= '9':
			return r
		case r >= 'A' && r <= 'Z':
			return r + 'a' - 'A'
		}
		return -1
	}, owner)
	if len(readable) > 32 {
		readable = readable[:32]
	}
	return "o-" + readable + "-" + canon.Sum([]byte(owner)).String(), nil
}

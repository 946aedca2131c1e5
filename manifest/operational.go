package manifest

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"maps"
	"slices"
	"strings"

	"selfsame.dev/selfsame/internal/canon"
)

// Operational is what was seen beside the identity: where the roots came from, which keys and names were
// left out, and, when there is a local key, the keyed observation of the credentials.
type Operational struct {
	Origins     []Origin       `json:"origins"`
	Observation *Observation   `json:"observation,omitempty"`
	Config      Report         `json:"config"`
	Excluded    []ExcludedName `json:"excluded"`
}

// ExcludedName is a top level name of the template that is neither read nor copied.
type ExcludedName struct {
	Name  string `json:"name"`
	Class Class  `json:"class"`
}

// Observation is HMAC-SHA256 (RFC 2104), with a random key that never leaves the machine,
// over the configuration as it is and the credential files. Two observations with the same key id
// differ when a credential was rotated; without the key they tell nothing (law I4).
type Observation struct {
	Algorithm string       `json:"algorithm"`
	KeyID     string       `json:"key_id"`
	Value     canon.Digest `json:"value"`
}

func operational(s Sources, report Report) (Operational, error) {
	o := Operational{Origins: s.Origins, Config: report, Excluded: []ExcludedName{}}
	for _, n := range s.Template.Names {
		if class := ClassOf(n.Name); class != ClassPinned {
			o.Excluded = append(o.Excluded, ExcludedName{n.Name, class})
		}
	}
	slices.SortFunc(o.Excluded, func(a, b ExcludedName) int { return strings.Compare(a.Name, b.Name) })
	if s.ObservationKey == nil {
		return o, nil
	}
	if len(s.ObservationKey) < 32 {
		return o, &canon.InputError{Key: "observation key", Problem: "is shorter than 32 bytes", Fix: "let selfsame make a new key file"}
	}
	keyed := func(purpose string) func(parts ...[]byte) []byte {
		return func(parts ...[]byte) []byte {
			mac := hmac.New(sha256.New, s.ObservationKey)
			for _, part := range append([][]byte{[]byte("selfsame " + purpose)}, parts...) {
				mac.Write(binary.BigEndian.AppendUint64(nil, uint64(len(part)))) // parts cannot run together
				mac.Write(part)
			}
			return mac.Sum(nil)
		}
	}
	parts := [][]byte{[]byte(ConfigFile), s.Template.Config}
	for _, name := range slices.Sorted(maps.Keys(s.Template.Credentials)) {
		parts = append(parts, []byte(name), s.Template.Credentials[name])
	}
	o.Observation = &Observation{
		Algorithm: "hmac-sha256",
		KeyID:     hex.EncodeToString(keyed("key id")()[:8]),
		Value:     canon.Digest(keyed("operational observation")(parts...)),
	}
	return o, nil
}

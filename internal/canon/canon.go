// Package canon holds what every room agrees on about bytes: RFC 8785 canonical
// JSON, the SHA-256 digest type, and decoding that refuses what it does not know.
//
// Accepted JSON is I-JSON (RFC 7493): UTF-8 without lone surrogates, no
// duplicate names, and no integer whose value a double's shortest form does not
// keep, so that two integers never share a canonical form.
package canon

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"math/big"
	"strconv"
	"strings"
	"sync"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// MaxDepth is how deeply arrays and objects may nest in accepted JSON.
const MaxDepth = 512

// Marshal returns the RFC 8785 canonical form of v, with nil slices as [] and
// nil maps as {}. There is no trailing newline: SHA-256 of a file written from it is
// the digest of the value. Values that JSON cannot carry exactly (NaN, infinities,
// invalid UTF-8, integers that a double rounds) are errors.
func Marshal(v any) ([]byte, error) {
	raw, err := json.Marshal(v, json.Deterministic(true))
	if err != nil {
		return nil, err
	}
	return Canonicalize(raw)
}

// DigestOf returns the digest of the canonical form of v.
func DigestOf(v any) (Digest, error) {
	data, err := Marshal(v)
	if err != nil {
		return Digest{}, err
	}
	return Sum(data), nil
}

// Canonicalize returns the RFC 8785 form of one JSON document. It refuses what
// [Check] refuses.
func Canonicalize(raw []byte) ([]byte, error) {
	if err := Check(raw); err != nil {
		return nil, err
	}
	out := jsontext.Value(raw).Clone()
	if err := out.Canonicalize(); err != nil {
		return nil, inputError(err)
	}
	return out, nil
}

// Check refuses, as an [*InputError] naming the JSON pointer, anything that is not
// exactly one I-JSON document: trailing data, a duplicate name, invalid UTF-8, a lone
// surrogate, a number that a double cannot hold, nesting beyond [MaxDepth].
func Check(raw []byte) error {
	dec := decoders.Get().(*jsontext.Decoder)
	dec.Reset(bytes.NewBuffer(raw)) // which a Decoder reads in place
	defer func() {
		dec.Reset(strings.NewReader("")) // or the pool would hold raw
		decoders.Put(dec)
	}()
	refuse := func(problem, fix string) error {
		return &InputError{Key: string(dec.StackPointer()), Problem: problem, Fix: fix}
	}
	for values := 0; ; {
		tok, err := dec.ReadToken()
		if errors.Is(err, io.EOF) && values == 1 {
			return nil
		}
		if err != nil {
			return inputError(err)
		}
		if dec.StackDepth() > MaxDepth {
			return refuse(fmt.Sprintf("nests deeper than %d levels", MaxDepth), "flatten the document")
		}
		if tok.Kind() == '0' && !exact(tok.String()) {
			return refuse(fmt.Sprintf("number %s cannot be held exactly by a double (RFC 7493)", tok), "write it as a string")
		}
		if dec.StackDepth() == 0 {
			if values++; values > 1 {
				return refuse("data follows the JSON document", "keep one document a file")
			}
		}
	}
}

var decoders = sync.Pool{New: func() any { return jsontext.NewDecoder(strings.NewReader("")) }}

// exact reports whether a JSON number survives RFC 8785: a fraction may round to the
// nearest double, an integer must keep its value through the shortest form of it.
func exact(number string) bool {
	f, err := strconv.ParseFloat(number, 64)
	if err != nil || math.IsInf(f, 0) {
		return false
	}
	if math.Abs(f) <= 1<<53-1 || strings.ContainsAny(number, ".eE") {
		return true
	}
	want, _ := new(big.Rat).SetString(number)
	shortest, _ := new(big.Rat).SetString(strconv.FormatFloat(f, 'e', -1, 64))
	return want != nil && shortest != nil && want.Cmp(shortest) == 0
}

// Decode reads exactly one JSON document into dst. Beyond what [Check] refuses it
// refuses names that dst does not have, compared by case. Errors are
// [*InputError] and name the JSON pointer.
func Decode(raw []byte, dst any) error {
	if err := Check(raw); err != nil {
		return err
	}
	if err := json.Unmarshal(raw, dst, json.RejectUnknownMembers(true)); err != nil {
		return inputError(err)
	}
	return nil
}

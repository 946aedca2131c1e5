package manifest

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"

	"selfsame.dev/selfsame/internal/canon"
)

// Limits of a configuration file.
const (
	maxConfigBytes = 1 << 20
	maxConfigDepth = 32
)

// parseYAML reads one YAML document whose meaning no reader disputes: a mapping with string keys,
// no anchors, aliases, merge keys, tags or duplicate keys, and only scalars that
// YAML 1.1 and 1.2 and JSON agree on. Errors name a dotted key and never a value, since
// any value may be a credential.
func parseYAML(data []byte) (map[string]any, error) {
	if len(data) > maxConfigBytes {
		return nil, &canon.InputError{Problem: fmt.Sprintf("is longer than %d bytes", maxConfigBytes), Fix: "shorten it"}
	}
	if !utf8.Valid(data) {
		return nil, &canon.InputError{Problem: "is not UTF-8", Fix: "save it as UTF-8"}
	}
	dec := yaml.NewDecoder(bytes.NewReader(data))
	var doc, more yaml.Node
	if err := dec.Decode(&doc); err != nil {
		if errors.Is(err, io.EOF) {
			return nil, &canon.InputError{Problem: "is empty", Fix: "write at least the model"}
		}
		return nil, syntax(err)
	}
	switch err := dec.Decode(&more); {
	case err == nil:
		return nil, &canon.InputError{Problem: fmt.Sprintf("a second document begins at line %d", more.Line), Fix: "keep one document"}
	case !errors.Is(err, io.EOF):
		return nil, syntax(err)
	}
	if doc.Kind != yaml.DocumentNode || len(doc.Content) != 1 {
		return nil, &canon.InputError{Problem: "holds no document", Fix: "write a mapping"}
	}
	value, err := plain(doc.Content[0], "", 0)
	if err != nil {
		return nil, err
	}
	root, ok := value.(map[string]any)
	if !ok {
		return nil, &canon.InputError{Problem: "is not a mapping", Fix: "write key: value lines"}
	}
	return root, nil
}

var lineNumber = regexp.MustCompile(`line (\d+)`)

// syntax keeps only the line of an error of the YAML library, which may quote the input.
func syntax(err error) error {
	problem := "is not well-formed YAML"
	if m := lineNumber.FindStringSubmatch(err.Error()); m != nil {
		problem += " at line " + m[1]
	}
	return &canon.InputError{Problem: problem, Fix: "correct the YAML"}
}

// plain turns a node into the JSON value it stands for: map[string]any, []any, string,
// bool, nil, int64 or float64.
func plain(n *yaml.Node, key string, depth int) (any, error) {
	refuse := func(problem, fix string) (any, error) {
		return nil, &canon.InputError{Key: key, Problem: fmt.Sprintf("%s (line %d)", problem, n.Line), Fix: fix}
	}
	switch {
	case depth > maxConfigDepth:
		return refuse(fmt.Sprintf("nests deeper than %d levels", maxConfigDepth), "flatten it")
	case n.Kind == yaml.AliasNode:
		return refuse("is an alias", "write the value out")
	case n.Anchor != "":
		return refuse("has an anchor", "remove the anchor and write the values out")
	case n.Style&yaml.TaggedStyle != 0:
		return refuse("has an explicit tag", "remove the tag; quote the value if it is a string")
	}
	switch n.Kind {
	case yaml.MappingNode:
		out := make(map[string]any, len(n.Content)/2)
		for i := 0; i+1 < len(n.Content); i += 2 {
			k, v := n.Content[i], n.Content[i+1]
			if k.Kind != yaml.ScalarNode {
				return refuse("has a key that is not a string", "write plain string keys")
			}
			name := join(key, k.Value)
			at := func(problem, fix string) (any, error) {
				return nil, &canon.InputError{Key: name, Problem: fmt.Sprintf("%s (line %d)", problem, k.Line), Fix: fix}
			}
			if k.Tag == "!!merge" || k.Value == "<<" {
				return at("is a merge key", "write the keys out")
			}
			if k.Anchor != "" || k.Style&yaml.TaggedStyle != 0 {
				return at("the key has an anchor or a tag", "remove it")
			}
			if text, err := scalar(k); err != nil {
				return at("the key is not a string to every reader of YAML", "quote the key")
			} else if _, ok := text.(string); !ok {
				return at("the key is not a string", "quote the key")
			}
			if _, twice := out[k.Value]; twice {
				return at("the key appears twice", "keep one of the two")
			}
			value, err := plain(v, name, depth+1)
			if err != nil {
				return nil, err
			}
			out[k.Value] = value
		}
		return out, nil
	case yaml.SequenceNode:
		out := make([]any, 0, len(n.Content))
		for i, item := range n.Content {
			value, err := plain(item, fmt.Sprintf("%s[%d]", key, i), depth+1)
			if err != nil {
				return nil, err
			}
			out = append(out, value)
		}
		return out, nil
	case yaml.ScalarNode:
		value, err := scalar(n)
		if err != nil {
			return refuse(err.Error(), "write true, false, null or a JSON number, or quote the string")
		}
		return value, nil
	}
	return refuse("is no mapping, sequence or scalar", "write the value out")
}

var (
	// No exponents: YAML 1.1 reads 1e3 as a string.
	jsonNumber = regexp.MustCompile(`^-?(0|[1-9][0-9]*)(\.[0-9]+)?$`)
	// disputed are plain scalars that are a string to some readers and to others a boolean, null,
	// number, date or special value (YAML 1.1 types; 1.2 core schema).
	disputed = regexp.MustCompile(`^(?i:y|n|yes|no|on|off|true|false|null|~|=|[-+]?\.(inf|nan)|` +
		`[-+]?0[xob]?[0-9a-f_]+|[-+]?[0-9][0-9_]*(\.[0-9_]*)?(e[-+]?[0-9_]+)?|[-+]?\.[0-9_]+(e[-+]?[0-9_]+)?|` +
		`[-+]?[0-9][0-9_]*(:[0-5]?[0-9])+(\.[0-9_]*)?|` +
		`[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}([t \t].*)?)$`)
)

func scalar(n *yaml.Node) (any, error) {
	if n.Style&(yaml.DoubleQuotedStyle|yaml.SingleQuotedStyle|yaml.LiteralStyle|yaml.FoldedStyle) != 0 {
		return n.Value, nil
	}
	switch {
	case n.Value == "true":
		return true, nil
	case n.Value == "false":
		return false, nil
	case n.Value == "null" || n.Value == "":
		return nil, nil
	case jsonNumber.MatchString(n.Value):
		if err := canon.Check([]byte(n.Value)); err != nil {
			return nil, errors.New("is a number that JSON cannot carry exactly")
		}
		if i, err := strconv.ParseInt(n.Value, 10, 64); err == nil {
			return i, nil
		}
		f, err := strconv.ParseFloat(n.Value, 64)
		if err != nil || strings.ContainsRune(strconv.FormatFloat(f, 'g', -1, 64), 'e') && (math.Abs(f) < 1e-6 || math.Abs(f) >= 1e21) {
			return nil, errors.New("is a number that JSON would write with an exponent")
		}
		return f, nil
	case disputed.MatchString(n.Value):
		return nil, errors.New("is a plain scalar on whose meaning readers of YAML differ")
	}
	return n.Value, nil
}

// join makes a dotted key; a name that could hide a dot, or is not a plain word, is shown quoted or not at all.
func join(key, name string) string {
	switch {
	case looksSecret(name):
		name = "<secret-like key>"
	case !plainKey.MatchString(name):
		if len(name) > 64 {
			name = name[:64]
			for !utf8.ValidString(name) {
				name = name[:len(name)-1]
			}
		}
		name = strconv.QuoteToASCII(name)
	}
	return strings.TrimPrefix(key+"."+name, ".")
}

var plainKey = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)

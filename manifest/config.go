package manifest

import (
	"bytes"
	"errors"
	"maps"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"

	"selfsame.dev/selfsame/internal/canon"
)

// Settings are the allowed values of one part of config.yaml, and the digest of their RFC 8785
// form: the meaning of the configuration, free of comments, order and layout.
type Settings struct {
	Values map[string]any `json:"values"`
	SHA256 canon.Digest   `json:"sha256"`
}

var plainName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$`)

// readConfig reads a config.yaml and returns the runtime and permission settings that
// pass the allowlist, with a report on what did not.
func readConfig(data []byte) (runtime, permissions Settings, report Report, err error) {
	root, err := parseYAML(data)
	if err != nil {
		return runtime, permissions, report, canon.InFile(ConfigFile, err)
	}
	runtime, permissions, report, err = allow(root)
	return runtime, permissions, report, canon.InFile(ConfigFile, err)
}

// allow applies the allowlist to a parsed configuration.
func allow(root map[string]any) (runtime, permissions Settings, report Report, err error) {
	f := filter{Report{OmittedCredentials: []string{}, UnknownKeys: []string{}}}
	keys := maps.Clone(runtimeKeys)
	maps.Copy(keys, permissionKeys)
	all, err := f.mapping("", root, keys, nil)
	if err != nil {
		return runtime, permissions, report, err
	}
	runtime.Values, permissions.Values = map[string]any{}, map[string]any{}
	for name, value := range all {
		if _, ok := permissionKeys[name]; ok {
			permissions.Values[name] = value
		} else {
			runtime.Values[name] = value
		}
	}
	if _, ok := runtime.Values["model"]; !ok {
		return runtime, permissions, report, &canon.InputError{Key: "model", Problem: "is missing", Fix: "name the requested model"}
	}
	if runtime.SHA256, err = canon.DigestOf(runtime.Values); err != nil {
		return runtime, permissions, report, err
	}
	permissions.SHA256, err = canon.DigestOf(permissions.Values)
	return runtime, permissions, f.report, err
}

// restate puts settings that came from a JSON document through the allowlist again, and
// refuses what it would not have let through: a document is never believed about itself.
func restate(runtime, permissions Settings) error {
	root := map[string]any{}
	for _, part := range []Settings{runtime, permissions} {
		for name, value := range part.Values {
			if _, twice := root[name]; twice {
				return &canon.InputError{Key: name, Problem: "is in both parts of the configuration", Fix: "generate the manifest anew"}
			}
			root[name] = fromJSON(value)
		}
	}
	r, p, report, err := allow(root)
	if err != nil {
		return err
	}
	for _, names := range [][]string{report.UnknownKeys, report.OmittedCredentials} {
		if len(names) > 0 {
			return &canon.InputError{Key: names[0], Problem: "is not in the allowlist of the configuration", Fix: "generate the manifest anew"}
		}
	}
	if r.SHA256 != runtime.SHA256 || p.SHA256 != permissions.SHA256 {
		return &canon.InputError{Key: "sha256", Problem: "the digest of the configuration is not that of its values", Fix: "generate the manifest anew"}
	}
	return nil
}

// fromJSON gives decoded JSON values the types of [parseYAML].
func fromJSON(value any) any {
	switch value := value.(type) {
	case float64:
		if value == math.Trunc(value) && math.Abs(value) < 1<<53 {
			return int64(value)
		}
	case map[string]any:
		out := make(map[string]any, len(value))
		for name, item := range value {
			out[name] = fromJSON(item)
		}
		return out
	case []any:
		out := make([]any, len(value))
		for i, item := range value {
			out[i] = fromJSON(item)
		}
		return out
	}
	return value
}

// ConfigYAML writes the allowed values as the config.yaml of a compiled profile: block style, keys in
// byte order, every string in double quotes with JSON escapes, which is YAML too.
func ConfigYAML(runtime, permissions Settings) ([]byte, error) {
	all := maps.Clone(runtime.Values)
	maps.Copy(all, permissions.Values)
	var b bytes.Buffer
	b.WriteString("# Generated from the identity manifest; an edit is drift.\n")
	if err := writeMapping(&b, all, 0); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

func writeMapping(b *bytes.Buffer, m map[string]any, indent int) error {
	for _, name := range slices.Sorted(maps.Keys(m)) {
		b.WriteString(strings.Repeat("  ", indent))
		if plainKey.MatchString(name) && !disputed.MatchString(name) && !strings.HasPrefix(name, "-") {
			b.WriteString(name)
		} else {
			b.WriteString(strconv.Quote(name)) // names are ASCII
		}
		b.WriteString(":")
		if err := writeValue(b, m[name], indent+1); err != nil {
			return err
		}
	}
	return nil
}

func writeValue(b *bytes.Buffer, value any, indent int) error {
	switch value := value.(type) {
	case map[string]any:
		if len(value) > 0 {
			b.WriteString("\n")
			return writeMapping(b, value, indent)
		}
	case []any:
		if len(value) > 0 {
			b.WriteString("\n")
			for _, item := range value {
				b.WriteString(strings.Repeat("  ", indent) + "-")
				if err := writeItem(b, item, indent+1); err != nil {
					return err
				}
			}
			return nil
		}
	}
	return writeInline(b, value)
}

// writeItem writes the item of a list; a mapping begins on a line of its own below the dash.
func writeItem(b *bytes.Buffer, item any, indent int) error {
	if m, ok := item.(map[string]any); ok && len(m) > 0 {
		b.WriteString("\n")
		return writeMapping(b, m, indent)
	}
	return writeInline(b, item)
}

func writeInline(b *bytes.Buffer, value any) error {
	data, err := json.Marshal(value, json.Deterministic(true))
	if err != nil {
		return err
	}
	if data, err = canon.Canonicalize(data); err != nil {
		return err
	}
	b.WriteString(" ")
	b.Write(data)
	b.WriteString("\n")
	return nil
}

// configSurface says to which surface a refused key of config.yaml belongs.
func configSurface(err error) Surface {
	var input *canon.InputError
	if errors.As(err, &input) {
		root, _, _ := strings.Cut(input.Key, ".")
		root, _, _ = strings.Cut(root, "[")
		if _, ok := permissionKeys[root]; ok {
			return Permissions
		}
	}
	return RuntimeConfig
}

package manifest

import (
	"errors"
	"reflect"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
	"pgregory.net/rapid"

	"selfsame.dev/selfsame/internal/canon"
)

// Law I3: only what every reader of YAML and JSON understands alike is accepted.
func TestParseYAMLRefuses(t *testing.T) {
	for _, tc := range []struct{ name, in, key, problem string }{
		{"empty", "", "", "is empty"},
		{"only a comment", "# x\n", "", "is empty"},
		{"list", "- a\n", "", "not a mapping"},
		{"scalar", "a\n", "", "not a mapping"},
		{"syntax", "a: [\n", "", "not well-formed"},
		{"tab", "a:\n\t- b\n", "", "not well-formed"},
		{"two documents", "a: b\n---\nc: d\n", "", "second document"},
		{"duplicate key", "a:\n  b: 1\n  b: 1\n", "a.b", "twice"},
		{"duplicate key quoted", "a: 1\n\"a\": 2\n", "a", "twice"},
		{"duplicate key by escape", "a: 1\n\"\\x61\": 2\n", "a", "twice"},
		{"anchor", "a: &x 1\n", "a", "anchor"},
		{"alias", "a: &x 1\nb: *x\n", "a", "anchor"},
		{"anchor on a mapping", "a: &x {b: c}\n", "a", "anchor"},
		{"anchor on a key", "&x a: b\n", "a", "anchor"},
		{"merge key", "a: {b: 1}\nc:\n  <<: {d: 1}\n", "c", "merge key"},
		{"quoted merge key", "c:\n  \"<<\": {d: 1}\n", "c", "merge key"},
		{"tag", "a: !!str 1\n", "a", "tag"},
		{"local tag", "a: !x 1\n", "a", "tag"},
		{"tagged key", "!!str a: 1\n", "a", "tag"},
		{"number as key", "1: a\n", "1", "not a string"},
		{"boolean as key", "a: {true: b}\n", "a.true", "not a string"},
		{"YAML 1.1 boolean as key", "on: b\n", "on", "not a string to every reader"},
		{"null as key", "~: b\n", "", "not a string to every reader"},
		{"mapping as key", "? {a: b}\n: c\n", "", "key that is not a string"},
		{"YAML 1.1 boolean", "a: yes\n", "a", "readers of YAML differ"},
		{"upper case boolean", "a: True\n", "a", "readers of YAML differ"},
		{"tilde", "a: ~\n", "a", "readers of YAML differ"},
		{"octal", "a: 017\n", "a", "readers of YAML differ"},
		{"YAML 1.2 octal", "a: 0o17\n", "a", "readers of YAML differ"},
		{"hexadecimal", "a: 0x1f\n", "a", "readers of YAML differ"},
		{"underscores", "a: 1_000\n", "a", "readers of YAML differ"},
		{"exponent", "a: 1e3\n", "a", "readers of YAML differ"},
		{"plus", "a: +1\n", "a", "readers of YAML differ"},
		{"no integer part", "a: .5\n", "a", "readers of YAML differ"},
		{"no fraction", "a: 5.\n", "a", "readers of YAML differ"},
		{"sexagesimal", "a: 1:30\n", "a", "readers of YAML differ"},
		{"date", "a: 2026-01-02\n", "a", "readers of YAML differ"},
		{"time", "a: 2026-01-02 03:04:05\n", "a", "readers of YAML differ"},
		{"NaN", "a: .nan\n", "a", "readers of YAML differ"},
		{"infinity", "a: -.inf\n", "a", "readers of YAML differ"},
		{"integer beyond a double", "a: 9007199254740993\n", "a", "exactly"},
		{"tiny number", "a: 0.0000000001\n", "a", "exponent"},
		{"invalid UTF-8", "a: \xff\n", "", "UTF-8"},
		{"too deep", "a: " + strings.Repeat("[", 40) + strings.Repeat("]", 40) + "\n", "a", "deeper"},
		{"in a list", "a:\n  - b: [1, no]\n", "a[0].b[1]", "readers of YAML differ"},
		{"too long", "a: \"" + strings.Repeat("x", maxConfigBytes) + "\"\n", "", "longer"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, err := parseYAML([]byte(tc.in))
			var input *canon.InputError
			if !errors.As(err, &input) || !strings.HasPrefix(input.Key, tc.key) || !strings.Contains(input.Problem, tc.problem) || input.Fix == "" {
				t.Errorf("%v, want %s: %s", err, tc.key, tc.problem)
			}
		})
	}
	got, err := parseYAML([]byte("a: text\nb: 'yes'\nc: [1, -2.5, true, null, '']\nd:\n  e: |\n    x\nf:\n\"1\": \"~\"\n"))
	want := map[string]any{"a": "text", "b": "yes", "c": []any{int64(1), -2.5, true, nil, ""}, "d": map[string]any{"e": "x\n"}, "f": nil, "1": "~"}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("control: %v, %v", got, err)
	}
}

// An error never quotes the value: it may be a credential.
func TestErrorsQuoteNoValue(t *testing.T) {
	const secret = "hunter2hunter2"
	for _, in := range []string{"a: *" + secret, "a: &" + secret + " x", "a: !" + secret + " x", "a: \"\\q" + secret + "\"", "a: '" + secret, secret + ": [", "a: {b: " + secret + ": c}", "%" + secret + "\n---\na: b", "a: @" + secret, "a: `" + secret} {
		if _, err := parseYAML([]byte(in)); err == nil || strings.Contains(err.Error(), secret) {
			t.Errorf("%q: %v", in, err)
		}
	}
}

// The compiled config.yaml means what the manifest pins: to our reader, and to an independent one.
func TestConfigRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		value := anySetting(3).Draw(t, "values")
		values := map[string]any{"root": value}
		data, err := ConfigYAML(Settings{Values: values}, Settings{})
		if err != nil {
			t.Fatal(err)
		}
		got, err := parseYAML(data)
		if err != nil {
			t.Fatalf("%v in\n%s", err, data)
		}
		if !reflect.DeepEqual(got, values) {
			t.Fatalf("%#v became %#v in\n%s", values, got, data)
		}
		var other map[string]any
		if err := yaml.Unmarshal(data, &other); err != nil {
			t.Fatalf("%v in\n%s", err, data)
		}
		a, err := canon.Marshal(values)
		if err != nil {
			t.Fatal(err)
		}
		if b, err := canon.Marshal(other); err != nil || string(a) != string(b) {
			t.Fatalf("%s became %s, %v, in\n%s", a, b, err, data)
		}
	})
}

func anySetting(depth int) *rapid.Generator[any] {
	text := rapid.Custom(func(t *rapid.T) any {
		s := rapid.OneOf(rapid.String(), rapid.SampledFrom([]string{"yes", "null", "1", "0x1", "2026-01-01", "- a", "a: b", "#", "\"", "\\", "'", "|", "a\nb\n", " x ", "é", "😀", "{", "[]"})).Draw(t, "text")
		if checkText("k", s, shape{}) != nil {
			return "plain"
		}
		return s
	})
	scalar := rapid.OneOf(text, rapid.Bool().AsAny(), rapid.Int64Range(-1<<53+1, 1<<53-1).AsAny(), rapid.SampledFrom([]any{0.5, -2.25, 0.000001, 123456.789}))
	if depth == 0 {
		return scalar
	}
	inner := rapid.Deferred(func() *rapid.Generator[any] { return anySetting(depth - 1) })
	key := rapid.OneOf(rapid.StringMatching(`[A-Za-z0-9][A-Za-z0-9_.-]{0,8}`), rapid.SampledFrom([]string{"on", "1", "0x2", "true", "null", "a.b"}))
	return rapid.OneOf(scalar,
		rapid.SliceOfN(rapid.OneOf(scalar, rapid.MapOfN(key, inner, 0, 3).AsAny()), 0, 3).AsAny(),
		rapid.MapOfN(key, inner, 0, 4).AsAny())
}

// FuzzParseYAML: what is accepted survives being written and read again; nothing panics.
func FuzzParseYAML(f *testing.F) {
	for _, seed := range []string{"model: x\n", "a: [1, {b: c}]\n", "a: &x 1\nb: *x\n", "? a\n: b\n", "a: |\n  x\n", "\"a\": 'b'\n", "a: 1.50\n"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		first, err := parseYAML(data)
		if err != nil {
			return
		}
		text, err := canon.Marshal(first)
		if err != nil {
			return // a string or key that JSON cannot carry
		}
		again, err := parseYAML(text)
		if err != nil {
			t.Skip() // JSON forms beyond YAML: exponents, keys of over 1024 bytes
		}
		if other, err := canon.Marshal(again); err != nil || string(other) != string(text) {
			t.Fatalf("%q: %s, again %s, %v", data, text, other, err)
		}
	})
}

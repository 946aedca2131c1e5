package schemas_test

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"selfsame.dev/selfsame/internal/canon"
	"selfsame.dev/selfsame/schemas"
)

const fixtures = "../fixtures"

// vectors of a format: valid documents, by path relative to the fixtures, and edits of the
// first of them that make it invalid at a key.
type vectors struct {
	Valid   []string `json:"valid"`
	Invalid []struct {
		Name   string `json:"name"`
		Set    string `json:"set"`
		Value  any    `json:"value"`
		Remove string `json:"remove"`
		Key    string `json:"key"`
	} `json:"invalid"`
}

func TestVectors(t *testing.T) {
	files, err := filepath.Glob(fixtures + "/formats/*.json")
	if err != nil || len(files) < 10 {
		t.Fatalf("%d vector files, %v", len(files), err)
	}
	for _, file := range files {
		format := strings.TrimSuffix(filepath.Base(file), ".json")
		t.Run(format, func(t *testing.T) {
			if !slices.Contains(schemas.Names(), format) {
				t.Fatalf("no schema among %v", schemas.Names())
			}
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			var v vectors
			if err := canon.Decode(data, &v); err != nil {
				t.Fatal(err)
			}
			if len(v.Valid) == 0 || len(v.Invalid) < 5 {
				t.Errorf("%d valid and %d invalid vectors", len(v.Valid), len(v.Invalid))
			}
			var base []byte
			for i, name := range v.Valid {
				data, err := os.ReadFile(filepath.Join(fixtures, filepath.FromSlash(name)))
				if err != nil {
					t.Fatal(err)
				}
				if i == 0 {
					base = data
				}
				if err := schemas.Validate(name, format, data); err != nil {
					t.Errorf("valid: %v", err)
				}
			}
			for _, tc := range v.Invalid {
				var doc any
				if err := json.Unmarshal(base, &doc); err != nil {
					t.Fatal(err)
				}
				if tc.Set != "" {
					doc = apply(t, doc, tc.Set, func(parent map[string]any, name string) { parent[name] = tc.Value }, tc.Value)
				} else {
					doc = apply(t, doc, tc.Remove, func(parent map[string]any, name string) { delete(parent, name) }, nil)
				}
				edited, err := json.Marshal(doc)
				if err != nil {
					t.Fatal(err)
				}
				err = schemas.Validate("x.json", format, edited)
				var input *canon.InputError
				if !errors.As(err, &input) || input.Key != tc.Key || input.File != "x.json" || input.Fix == "" {
					t.Errorf("%s: %v, want a refusal at %q", tc.Name, err, tc.Key)
				}
			}
		})
	}
}

// apply edits the value at a JSON pointer.
func apply(t *testing.T, doc any, pointer string, edit func(map[string]any, string), value any) any {
	steps := strings.Split(pointer, "/")[1:]
	at := doc
	for i, step := range steps {
		last := i == len(steps)-1
		switch v := at.(type) {
		case map[string]any:
			if last {
				edit(v, step)
			}
			at = v[step]
		case []any:
			n, err := strconv.Atoi(step)
			if err != nil {
				t.Fatal(err)
			}
			if last {
				v[n] = value
			}
			at = v[n]
		default:
			t.Fatalf("no %s", pointer)
		}
	}
	return doc
}

// What JSON itself leaves open is refused before the schema is asked.
func TestStrict(t *testing.T) {
	const good = `{"agent":"leo","asks":["constitution"],"format":"identity-query.v1","query_id":"q","question":"Who?"}`
	if err := schemas.DecodeCanonical("q.json", "identity-query.v1", []byte(good), new(map[string]any)); err != nil {
		t.Fatalf("control: %v", err)
	}
	for name, text := range map[string]string{
		"duplicate name": strings.Replace(good, `"agent":"leo"`, `"agent":"leo","agent":"leo"`, 1), "trailing data": good + "{}", "NaN": `{"format":NaN}`, "empty": "",
	} {
		var input *canon.InputError
		if err := schemas.Validate("q.json", "identity-query.v1", []byte(text)); !errors.As(err, &input) || input.File != "q.json" {
			t.Errorf("%s: %v", name, err)
		}
	}
	for name, text := range map[string]string{
		"white space": strings.Replace(good, ",", ", ", 1), "newline": good + "\n", "order": strings.Replace(good, `"agent":"leo",`, "", 1)[:len(good)-15] + `,"agent":"leo"}`, "escape": strings.Replace(good, "leo", `l\u0065o`, 1),
	} {
		if err := schemas.DecodeCanonical("q.json", "identity-query.v1", []byte(text), new(map[string]any)); err == nil || !strings.Contains(err.Error(), "canonical") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := schemas.Validate("q.json", "no-such.v1", []byte(good)); err == nil {
		t.Error("a format without a schema is accepted")
	}
	for _, name := range schemas.Names() {
		if err := schemas.Validate("x.json", name, []byte(`[]`)); err == nil || strings.Contains(err.Error(), "schema of") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

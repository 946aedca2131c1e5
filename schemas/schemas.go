// Package schemas holds the JSON Schema (draft 2020-12) of every format of the project
// and the one way in for JSON of a known format.
package schemas

import (
	"bytes"
	"cmp"
	"embed"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"golang.org/x/text/language"
	"golang.org/x/text/message"

	"selfsame.dev/selfsame/internal/canon"
)

//go:embed *.schema.json
var files embed.FS

const suffix = ".schema.json"

var (
	mu       sync.Mutex
	compiled = map[string]*jsonschema.Schema{}
)

// Names returns the formats that have a schema ("name.vN"), sorted.
func Names() []string {
	entries, err := files.ReadDir(".")
	if err != nil {
		panic(err) // an embedded folder is always readable
	}
	var names []string
	for _, entry := range entries {
		names = append(names, strings.TrimSuffix(entry.Name(), suffix))
	}
	slices.Sort(names)
	return names
}

// Decode reads one document of a format ("name.vN") into dst. In this order it refuses
// what [canon.Check] refuses, what the schema of the format refuses, and names that dst does not have.
// Errors are [*canon.InputError] with file, key (a JSON pointer) and fix.
func Decode(file, format string, data []byte, dst any) error {
	if err := Validate(file, format, data); err != nil {
		return err
	}
	return canon.InFile(file, canon.Decode(data, dst))
}

// DecodeCanonical is [Decode] for documents that are stored as exact RFC 8785 bytes, so
// that no byte of them is without meaning.
func DecodeCanonical(file, format string, data []byte, dst any) error {
	if err := Decode(file, format, data, dst); err != nil {
		return err
	}
	exact, err := canon.Canonicalize(data)
	if err != nil {
		return canon.InFile(file, err)
	}
	if !bytes.Equal(exact, data) {
		at := 0
		for at < len(exact) && at < len(data) && exact[at] == data[at] {
			at++
		}
		return &canon.InputError{
			File:    file,
			Problem: fmt.Sprintf("not canonical JSON (RFC 8785): byte %d differs", at),
			Fix:     "store the canonical form: sorted names, no white space, no trailing newline",
		}
	}
	return nil
}

// Validate is [Decode] without a destination.
func Validate(file, format string, data []byte) error {
	if err := canon.Check(data); err != nil {
		return canon.InFile(file, err)
	}
	schema, err := find(format)
	if err != nil {
		return err
	}
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(data))
	if err != nil {
		return canon.InFile(file, err)
	}
	return refusal(file, format, schema.Validate(value))
}

func find(format string) (*jsonschema.Schema, error) {
	mu.Lock()
	defer mu.Unlock()
	if schema := compiled[format]; schema != nil {
		return schema, nil
	}
	data, err := files.ReadFile(format + suffix)
	if err != nil {
		return nil, fmt.Errorf("format %q has no schema", format)
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(data))
	if err != nil {
		return nil, fmt.Errorf("schema of %s: %w", format, err)
	}
	// No loader: a schema that refers to another file does not compile.
	c := jsonschema.NewCompiler()
	c.UseLoader(noLoader{})
	c.DefaultDraft(jsonschema.Draft2020)
	url := "selfsame:///" + format
	if err := c.AddResource(url, doc); err != nil {
		return nil, fmt.Errorf("schema of %s: %w", format, err)
	}
	schema, err := c.Compile(url)
	if err != nil {
		return nil, fmt.Errorf("schema of %s: %w", format, err)
	}
	compiled[format] = schema
	return schema, nil
}

type noLoader struct{}

func (noLoader) Load(url string) (any, error) {
	return nil, fmt.Errorf("%s: schemas stand alone", url)
}

// refusal names the deepest place the schema complains about.
func refusal(file, format string, err error) error {
	if err == nil {
		return nil
	}
	var invalid *jsonschema.ValidationError
	if !errors.As(err, &invalid) {
		return canon.InFile(file, err)
	}
	printer := message.NewPrinter(language.English)
	var found []*canon.InputError
	var collect func(*jsonschema.ValidationError)
	collect = func(e *jsonschema.ValidationError) {
		for _, cause := range e.Causes {
			collect(cause)
		}
		if len(e.Causes) == 0 {
			found = append(found, &canon.InputError{
				File:    file,
				Key:     pointer(e.InstanceLocation),
				Problem: e.ErrorKind.LocalizedString(printer),
				Fix:     "see schemas/" + format + suffix,
			})
		}
	}
	collect(invalid)
	// The library goes through maps, in any order.
	return slices.MinFunc(found, func(a, b *canon.InputError) int {
		return cmp.Or(strings.Count(b.Key, "/")-strings.Count(a.Key, "/"), cmp.Compare(a.Key, b.Key), cmp.Compare(a.Problem, b.Problem))
	})
}

func pointer(tokens []string) string {
	escape := strings.NewReplacer("~", "~0", "/", "~1")
	var b strings.Builder
	for _, token := range tokens {
		b.WriteString("/" + escape.Replace(token))
	}
	return b.String()
}

package canary

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"selfsame.dev/selfsame/canary/wire"
	"selfsame.dev/selfsame/internal/atomicfile"
	"selfsame.dev/selfsame/internal/canon"
	"selfsame.dev/selfsame/schemas"
)

var update = flag.Bool("update", false, "write the valid vectors of the canary's formats anew")

func vectorFile(name string) string { return filepath.Join("..", "fixtures", "canary", name) }

// invalid is one vector of fixtures/canary/invalid.json: a valid document with one change.
type invalid struct {
	Name    string          `json:"name"`
	File    string          `json:"file"`
	Pointer string          `json:"pointer"`
	Value   json.RawMessage `json:"value"` // absent: the member is removed
	// Class of failure: "schema" is refused as malformed, "claim" as not borne out by the rest.
	Class string `json:"class"`
}

var receipts = []string{"receipt-t2.json", "receipt-drift.json", "receipt-refused.json"}

func TestVectors(t *testing.T) {
	if *update {
		writeVectors(t)
	}
	formats := map[string]string{"request.json": wire.Format, "answer.json": wire.Format}
	for _, name := range receipts {
		formats[name] = Format
	}
	docs := map[string][]byte{}
	for name, format := range formats {
		data, err := os.ReadFile(vectorFile(name))
		if err != nil {
			t.Fatal(err)
		}
		docs[name] = data
		if err := schemas.Validate(name, format, data); err != nil {
			t.Errorf("%v", err)
		}
		if exact, err := canon.Canonicalize(data); err != nil || string(exact) != string(data) {
			t.Errorf("%s is not canonical (%v)", name, err)
		}
		if format == Format {
			if _, err := DecodeReceipt(name, data); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
	if _, err := wire.ParseRequest(docs["request.json"]); err != nil {
		t.Error(err)
	}
	var list []invalid
	data, err := os.ReadFile(vectorFile("invalid.json"))
	if err != nil {
		t.Fatal(err)
	}
	if err := canon.Decode(data, &list); err != nil {
		t.Fatal(err)
	}
	if len(list) < 20 {
		t.Fatalf("only %d invalid vectors", len(list))
	}
	for _, v := range list {
		t.Run(v.Name, func(t *testing.T) {
			bad := patched(t, docs[v.File], v)
			got := ""
			if formats[v.File] == Format {
				_, err := DecodeReceipt(v.File, bad)
				got = class(err)
			} else {
				got = class(schemas.Validate(v.File, wire.Format, bad))
			}
			if got != v.Class {
				t.Errorf("class %q, want %q", got, v.Class)
			}
		})
	}
}

func class(err error) string {
	var input *canon.InputError
	var claim *Inconsistent
	switch {
	case errors.As(err, &input):
		return "schema"
	case errors.As(err, &claim):
		return "claim"
	case err != nil:
		return err.Error()
	}
	return ""
}

// patched changes one place of a document and, for receipts, makes the digest of the
// reproducible part right again.
func patched(t *testing.T, data []byte, v invalid) []byte {
	t.Helper()
	var doc any
	if err := json.Unmarshal(data, &doc); err != nil {
		t.Fatal(err)
	}
	keys := strings.Split(v.Pointer, "/")[1:]
	at := doc
	for _, key := range keys[:len(keys)-1] {
		switch node := at.(type) {
		case map[string]any:
			at = node[key]
		case []any:
			i, err := strconv.Atoi(key)
			if err != nil || i >= len(node) {
				t.Fatalf("no %s", v.Pointer)
			}
			at = node[i]
		}
	}
	node, ok := at.(map[string]any)
	if !ok {
		t.Fatalf("no %s", v.Pointer)
	}
	last := keys[len(keys)-1]
	if len(v.Value) == 0 {
		if _, there := node[last]; !there {
			t.Fatalf("no %s", v.Pointer)
		}
		delete(node, last)
	} else {
		node[last] = v.Value
	}
	top := doc.(map[string]any)
	if rep, ok := top["reproducible"]; ok && v.Pointer != "/reproducible_sha256" {
		sum, err := canon.DigestOf(rep)
		if err != nil {
			t.Fatal(err)
		}
		top["reproducible_sha256"] = sum
	}
	out, err := canon.Marshal(doc)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func writeVectors(t *testing.T) {
	put := func(name string, data []byte, err error) {
		if err := errors.Join(err, atomicfile.Write(vectorFile(name), data, 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	good, err := runIn(t, context.Background(), synthetic())
	if err != nil {
		t.Fatal(err)
	}
	drifting := synthetic()
	drifting.Inject = &Injection{"skills", 2}
	drifted, err := runIn(t, context.Background(), drifting)
	if err != nil {
		t.Fatal(err)
	}
	failed, _ := runIn(t, context.Background(), synthetic("exit-1"))
	for i, r := range []*Receipt{good, drifted, failed} {
		data, err := r.Encode()
		put(receipts[i], data, err)
	}
	data, err := good.Reproducible.Query.Document.Encode()
	put("request.json", data, err)
	data, err = canon.Marshal(good.Reproducible.Answer)
	put("answer.json", data, err)
}

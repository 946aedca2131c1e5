package source_test

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"selfsame.dev/selfsame/internal/canon"
	"selfsame.dev/selfsame/manifest"
	"selfsame.dev/selfsame/manifest/leotest"
	"selfsame.dev/selfsame/manifest/source"
)

type object = map[string]any

func at(v any, path ...any) object {
	for _, step := range path {
		switch step := step.(type) {
		case string:
			v = v.(object)[step]
		case int:
			v = v.([]any)[step]
		}
	}
	return v.(object)
}

// digestOf is the digest of the RFC 8785 form of a part of a forged document.
func digestOf(t *testing.T, v any) string {
	sum, err := canon.DigestOf(v)
	if err != nil {
		t.Fatal(err)
	}
	return sum.String()
}

// rehash makes a forged manifest agree with its own outer digests.
func rehash(t *testing.T, doc object) {
	identity := at(doc, "identity")
	identity["inputs_sha256"] = digestOf(t, identity["inputs"])
	doc["identity_sha256"] = digestOf(t, identity)
}

func generic(t *testing.T, data []byte) object {
	var doc object
	if err := json.Unmarshal(data, &doc); err != nil {
		t.Fatal(err)
	}
	return doc
}

// Laws I7 and I8: a manifest that was changed and rehashed is refused when it is read, by what it says about
// itself; where it agrees with itself, it is refused by its sources.
func TestForgedManifest(t *testing.T) {
	root := leotest.Copy(t, repository)
	m, s := leotest.Build(t, root)
	data, err := m.Encode()
	if err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		name    string
		forge   func(doc object)
		problem string
	}{
		{"file count", func(d object) { at(d, "identity", "inputs", "behavior", "skills")["file_count"] = 5 }, "file_count"},
		{"total bytes", func(d object) { at(d, "identity", "inputs", "behavior", "hermes_code", "tree")["total_bytes"] = 1 }, "total_bytes"},
		{"tree digest", func(d object) {
			at(d, "identity", "inputs", "behavior", "plugins")["sha256"] = strings.Repeat("0", 64)
		}, "sha256"},
		{"file digest under an old tree digest", func(d object) {
			at(d, "identity", "inputs", "behavior", "plugins", "files", 0)["sha256"] = strings.Repeat("1", 64)
		}, "sha256"},
		{"order of files", func(d object) {
			files := at(d, "identity", "inputs", "behavior", "skills")["files"].([]any)
			files[0], files[1] = files[1], files[0]
		}, "byte order"},
		{"file listed twice", func(d object) {
			skills := at(d, "identity", "inputs", "behavior", "skills")
			skills["files"] = append(skills["files"].([]any), skills["files"].([]any)[3])
		}, "twice"},
		{"path above the root", func(d object) {
			at(d, "identity", "inputs", "behavior", "skills", "files", 3)["path"] = "skills/../../x"
		}, ".."},
		{"skill outside its folder", func(d object) {
			tree := at(d, "identity", "inputs", "behavior")
			tree["skills"] = tree["plugins"]
		}, "is not in the folder skills"},
		{"credential file in a tree", func(d object) {
			at(d, "identity", "inputs", "behavior", "skills", "files", 3)["path"] = "skills/z/.env"
		}, "for credentials"},
		{"file that the selection leaves out", func(d object) {
			at(d, "identity", "inputs", "behavior", "hermes_code", "selection")["exclude"] = []any{"hermes/**"}
		}, "is not selected"},
		{"permission outside the policy", func(d object) {
			p := at(d, "identity", "inputs", "behavior", "permissions")
			at(p, "values", "gateway")["send_policy"] = "send"
			p["sha256"] = digestOf(t, p["values"])
		}, "gateway.send_policy"},
		{"toolset that sends", func(d object) {
			p := at(d, "identity", "inputs", "behavior", "permissions")
			at(p, "values")["toolsets"] = []any{"skills", "messaging"}
			p["sha256"] = digestOf(t, p["values"])
		}, "can send"},
		{"setting under an old digest", func(d object) {
			at(d, "identity", "inputs", "behavior", "runtime_config", "values")["timezone"] = "Asia/Tokyo"
		}, "not that of its values"},
		{"setting that is not in the allowlist", func(d object) {
			c := at(d, "identity", "inputs", "behavior", "runtime_config")
			at(c, "values")["api_key"] = "x"
			c["sha256"] = digestOf(t, c["values"])
		}, "allowlist"},
		{"package that is not in the tree", func(d object) {
			at(d, "identity", "inputs", "behavior", "runtime_abi", "interpreters", 0, "packages", 0)["metadata_sha256"] = strings.Repeat("2", 64)
		}, "not in the tree"},
		{"rule under an old digest", func(d object) {
			at(d, "identity", "inputs", "constitution", "document", "rules", 1)["text"] = "Send anything."
		}, "semantic_sha256"},
		{"snapshot under an old digest", func(d object) {
			at(d, "identity", "inputs", "database_snapshot", "document", "database")["user"] = "postgres"
		}, "sha256"},
		{"statement under an old row digest", func(d object) {
			at(d, "identity", "inputs", "identity_rows", "document", "rows", 0)["statement"] = "My name is Mallory."
		}, "/rows/0/sha256"},
		{"row count", func(d object) { at(d, "identity", "inputs", "identity_rows", "document")["row_count"] = 4 }, "states 4 rows"},
		{"canonical label", func(d object) { at(d, "identity", "inputs")["label"] = "canonical" }, "synthetic_noncanonical_fixture"},
		{"canonical row", func(d object) {
			at(d, "identity", "inputs", "identity_rows", "document", "rows", 0)["source_mode"] = "canonical_database"
		}, "synthetic_noncanonical_fixture"},
		{"authority of rows", func(d object) {
			for _, s := range d["surfaces"].([]any) {
				if at(s)["surface"] == "identity-rows" {
					at(s)["authority"] = "static_authority"
				}
			}
		}, "/surfaces"},
		{"surface left out", func(d object) { d["surfaces"] = d["surfaces"].([]any)[1:] }, "/surfaces"},
		{"view", func(d object) { at(d, "identity", "views", 0)["sha256"] = strings.Repeat("3", 64) }, "/identity/views"},
		{"agent", func(d object) { at(d, "identity", "inputs")["agent"] = "mallory" }, "the constitution of"},
		{"canonical flag", func(d object) { at(d, "identity", "inputs", "identity_rows")["canonical"] = true }, "additional"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			doc := generic(t, data)
			tc.forge(doc)
			rehash(t, doc)
			forged, err := canon.Marshal(doc)
			if err != nil {
				t.Fatal(err)
			}
			_, err = manifest.Decode("forged.json", forged)
			var input *canon.InputError
			if !errors.As(err, &input) || !strings.Contains(err.Error(), tc.problem) || !strings.HasPrefix(err.Error(), "forged.json: ") && input.File == "" {
				t.Errorf("%v, want it to say %q", err, tc.problem)
			}
		})
	}
	t.Run("not rehashed", func(t *testing.T) {
		doc := generic(t, data)
		doc["identity_sha256"] = strings.Repeat("4", 64)
		forged, _ := canon.Marshal(doc)
		if _, err := manifest.Decode("forged.json", forged); err == nil || !strings.Contains(err.Error(), "/identity_sha256") {
			t.Error(err)
		}
	})
	t.Run("bytes that are not canonical", func(t *testing.T) {
		if _, err := manifest.Decode("forged.json", append(slices.Clone(data), '\n')); err == nil || !strings.Contains(err.Error(), "canonical") {
			t.Error(err)
		}
	})
	t.Run("control: unchanged", func(t *testing.T) {
		if again, err := manifest.Decode("m.json", data); err != nil || again.IdentitySHA256 != m.IdentitySHA256 {
			t.Error(err)
		}
	})
	// A forgery that agrees with itself throughout is a manifest; its sources show that it is not theirs.
	t.Run("consistent forgery", func(t *testing.T) {
		other := leotest.Copy(t, repository)
		edit(t, filepath.Join(leotest.Paths(other).HermesRoot, "hermes/prompt.py"), strings.ToUpper)
		forged, _ := leotest.Build(t, other)
		bytes, err := forged.Encode()
		if err != nil {
			t.Fatal(err)
		}
		decoded, err := manifest.Decode("m.json", bytes)
		if err != nil {
			t.Fatal(err)
		}
		differences, err := manifest.Verify(decoded, s)
		if err != nil || len(differences) != 1 || differences[0].Surface != manifest.HermesCode || differences[0].Path != "hermes/prompt.py" {
			t.Errorf("%v, %v", differences, err)
		}
	})
}

// Law I7 for the documents: none of them can be talked into authority, with all digests made to agree.
func TestForgedDocuments(t *testing.T) {
	for _, tc := range []struct {
		name    string
		file    func(p source.Paths) string
		from    string
		to      string
		problem string
	}{
		{"canonical label of rows", func(p source.Paths) string { return p.DatabaseIdentity }, `"label":"synthetic_noncanonical_fixture"`, `"label":"canonical"`, "/label"},
		{"canonical source of a row", func(p source.Paths) string { return p.DatabaseIdentity }, `"source_mode":"synthetic_noncanonical_fixture"`, `"source_mode":"database_exporter"`, "source_mode"},
		{"authority in a row", func(p source.Paths) string { return p.DatabaseIdentity }, `"rank":1`, `"authority":"canonical","rank":1`, "additional"},
		{"canonical capture", func(p source.Paths) string { return p.DatabaseFingerprint }, `"source_mode":"synthetic_noncanonical_fixture"`, `"source_mode":"canonical"`, "source_mode"},
		{"capture that wrote", func(p source.Paths) string { return p.DatabaseFingerprint }, `"read_only":true`, `"read_only":false`, "read_only"},
		{"canonical constitution", func(p source.Paths) string { return p.Constitution }, `"label": "synthetic_noncanonical_fixture"`, `"label": "canonical"`, "/label"},
		{"rows of another database", func(p source.Paths) string { return p.DatabaseIdentity }, `"name":"leo_fixture"`, `"name":"leo_live"`, "not the database of the fingerprint"},
		{"other agent", func(p source.Paths) string { return p.Constitution }, `"agent": "leo"`, `"agent": "mallory"`, "the constitution of"},
		{"rank twice", func(p source.Paths) string { return p.DatabaseIdentity }, `"rank":2`, `"rank":1`, "same rank"},
		{"duplicate name", func(p source.Paths) string { return p.Constitution }, `"agent": "leo",`, `"agent": "leo", "agent": "leo",`, "twice"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			root := leotest.Copy(t, repository)
			file := tc.file(leotest.Paths(root))
			edit(t, file, func(s string) string { return strings.Replace(s, tc.from, tc.to, 1) })
			if tc.problem == "not the database of the fingerprint" || tc.problem == "same rank" {
				reseal(t, file)
			}
			s, err := source.Folders(leotest.Paths(root))
			if err != nil {
				t.Fatal(err)
			}
			_, err = manifest.Build(s)
			var input *canon.InputError
			if !errors.As(err, &input) || !strings.Contains(err.Error(), tc.problem) || !strings.Contains(err.Error(), "leo-") {
				t.Errorf("%v, want it to name the file and %q", err, tc.problem)
			}
		})
	}
}

// reseal makes the rows of a document agree with their digests.
func reseal(t *testing.T, file string) {
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var doc manifest.DatabaseIdentity
	if err := canon.Decode(data, &doc); err != nil {
		t.Fatal(err)
	}
	if err := doc.Seal(doc.Snapshot); err != nil {
		t.Fatal(err)
	}
	if data, err = canon.Marshal(doc); err != nil {
		t.Fatal(err)
	}
	put(t, file, string(data))
}

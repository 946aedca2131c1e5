package scaffold

import (
	"selfsame.dev/selfsame/canary/wire"
	"selfsame.dev/selfsame/internal/canon"
	"selfsame.dev/selfsame/living"
	"selfsame.dev/selfsame/manifest"
)

// database returns the fingerprint of an invented database and its one row, sealed.
func database(agent string) ([]File, error) {
	cited, data, err := evidence(agent)
	if err != nil {
		return nil, err
	}
	db := manifest.Database{Name: agent + "_fixture", User: agent + "_reader", SystemIdentifier: "7300000000000000002"}
	row := manifest.Row{Table: "identity.rows", Row: "row-1", Kind: "name", Rank: 1, Statement: "My name is " + agent + " (synthetic).",
		SourceMode: manifest.Label, Evidence: []manifest.Evidence{{Path: cited, Digest: canon.Sum(data)}}}
	identity := manifest.DatabaseIdentity{Format: "database-identity.v1", Agent: agent, Label: manifest.Label, Database: db, Rows: []manifest.Row{row}}
	fingerprint := manifest.Fingerprint{Format: "database-fingerprint.v1", Label: manifest.Label, Database: db,
		Structure: []manifest.TableShape{{Table: row.Table, Columns: []manifest.Column{
			{Name: "row_id", Type: "text"}, {Name: "kind", Type: "text"}, {Name: "rank", Type: "integer"}, {Name: "statement", Type: "text"}}}},
		Capture: manifest.Capture{Exporter: "synthetic-fixture-exporter", ExporterVersion: "1", Isolation: "repeatable_read", ReadOnly: true, SourceMode: manifest.Label},
		WAL:     &manifest.WAL{LSN: "0/1A2B3C4D", Timeline: 1}}
	if err := manifest.SealDatabase(&fingerprint, &identity); err != nil {
		return nil, err
	}
	return documents(named{"database-fingerprint.json", fingerprint}, named{"database-identity.json", identity})
}

// question returns the fixed query.
func question(agent string) ([]File, error) {
	return documents(named{"query.json", wire.FixedQuery(agent)})
}

// repair returns recorded rounds that converge: a finding, then its proof of repair.
func repair(agent string) ([]File, error) {
	type object = map[string]any
	before, after := canon.Sum([]byte("synthetic: "+agent+" before the repair")), canon.Sum([]byte("synthetic: "+agent+" after the repair"))
	round := func(status string, subject canon.Digest, findings, evidence []any) object {
		return object{"checked": []string{"acceptance"}, "evidence_refs": evidence, "findings": findings, "not_checked": []string{},
			"status": status, "subject_digest": subject, "validator_family": "north"}
	}
	return documents(named{"rounds.json", []object{
		round("FAIL", before, []any{object{"id": "leak", "summary": "synthetic: a file handle stays open"}}, []any{"run-1"}),
		round("PASS", after, []any{}, []any{object{"ref": "handle-closed", "resolves": []string{"leak"}, "subject_digest": after}}),
	}})
}

// memory returns a baseline, two turns, and the content that they come to. The second turn's guess cites what
// nobody read, and is refused.
func memory(agent string) ([]File, error) {
	type object = map[string]any
	owner := "synthetic-" + agent
	axis := func(kind string, cap int) object { return object{"cap": cap, "kind": kind} }
	turn := func(n int, name, text string, claims ...object) object {
		for _, c := range claims {
			cited := canon.Sum([]byte(text))
			if c["guess"] != nil {
				delete(c, "guess")
				cited = canon.Sum([]byte("nobody read this"))
			}
			c["evidence"] = []object{{"name": name, "sha256": cited, "turn": n}}
		}
		return object{"claims": claims, "evidence": []object{{"name": name, "source": "cmd: " + name, "text": text}},
			"format": "living-turn.v1", "owner": owner, "turn": n}
	}
	files, err := documents(
		named{"memory/baseline.json", object{
			"axes": object{"language": axis("scalar_overwrite", 1), "notes": axis("list_append_dedupe_cap", 3),
				"region": axis("scalar_overwrite", 1), "tools": axis("set_union", 4)},
			"format": living.BaselineFormat,
			"limits": object{"delta_facts": 8, "document_bytes": 32768, "fact_bytes": 1024, "report_bytes": 16384, "turn_gap": 50, "view_bytes": 4096},
			"owner":  owner,
			"scope":  []object{{"axis": "region", "rule": "holds", "value": "eu"}, {"axis": "tools", "rule": "excludes", "value": "telnet"}},
		}},
		named{"memory/turns/01-learns.json", turn(1, "versions", "synthetic: bazel and python were found",
			object{"axis": "tools", "value": "bazel"}, object{"axis": "tools", "value": "python"}, object{"axis": "language", "value": "python"})},
		named{"memory/turns/02-guesses-once.json", turn(2, "readback", "synthetic: reports are read back",
			object{"axis": "notes", "value": "reports are read back"}, object{"axis": "notes", "guess": true, "value": "a guess"})},
	)
	if err != nil {
		return nil, err
	}
	base, err := living.DecodeBaseline(files[0].Data)
	if err != nil {
		return nil, err
	}
	r, err := living.Rehearse(base, [][]byte{files[1].Data, files[2].Data})
	if err != nil {
		return nil, err
	}
	return append(files, File{"memory/content.sha256", []byte(r.Document.ContentDigest().String() + "\n"), 0o644}), nil
}

type named struct {
	name  string
	value any
}

func documents(all ...named) ([]File, error) {
	var files []File
	for _, d := range all {
		data, err := canon.Marshal(d.value)
		if err != nil {
			return nil, err
		}
		files = append(files, File{d.name, data, 0o644})
	}
	return files, nil
}

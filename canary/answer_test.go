package canary

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"
	"testing/fstest"

	"selfsame.dev/selfsame/canary/respond"
	"selfsame.dev/selfsame/canary/wire"
	"selfsame.dev/selfsame/internal/canon"
)

// An answer counts only when all that it rests on is in the identity that was asked.
func TestCheckAnswer(t *testing.T) {
	agent := newFake()
	pinned, err := agent.Pin(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	view, err := wire.ParseView(pinned.View)
	if err != nil {
		t.Fatal(err)
	}
	var asked Asked
	asked.Document = wire.FixedQuery("ada")
	asked.Document.Asks = []string{wire.AskConstitution}
	if asked.SHA256, err = asked.Document.SHA256(); err != nil {
		t.Fatal(err)
	}
	request, err := asked.Document.Encode()
	if err != nil {
		t.Fatal(err)
	}
	fsys := fstest.MapFS{}
	for name, data := range agent.files() {
		fsys[name] = &fstest.MapFile{Data: []byte(data)}
	}
	good, err := respond.Answer(fsys, request)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := checkAnswer(good, &asked, view, pinned.Files); err != nil {
		t.Fatalf("control: %v", err)
	}
	rephrased := strings.Replace(string(good), "I send nothing.", "Nothing is sent by me.", 1)
	if _, err := checkAnswer([]byte(rephrased), &asked, view, pinned.Files); err != nil {
		t.Errorf("a runtime may use its own words: %v", err)
	}

	x := canon.Sum([]byte("x"))
	for name, tc := range map[string]struct {
		lie func(*wire.Answer)
		key string
	}{
		"another agent":     {func(a *wire.Answer) { a.Agent = "bob" }, "/agent"},
		"canonical":         {func(a *wire.Answer) { a.Label = "canonical" }, "/label"},
		"another query":     {func(a *wire.Answer) { a.QuerySHA256 = x }, "/query_sha256"},
		"another query id":  {func(a *wire.Answer) { a.QueryID = "q" }, "/query_sha256"},
		"another interface": {func(a *wire.Answer) { a.Format = "identity-runtime.v2" }, "/format"},
		"says nothing":      {func(a *wire.Answer) { a.Statements = nil }, "/statements"},
		"empty statement":   {func(a *wire.Answer) { a.Statements[1].Text = "" }, "/statements/1/text"},
		"unknown rule":      {func(a *wire.Answer) { a.Statements[1].Ref = "rule-9" }, "/statements/1"},
		"wrong kind":        {func(a *wire.Answer) { a.Statements[1].Kind = wire.KindRow }, "/statements/1"},
		"wrong rank":        {func(a *wire.Answer) { a.Statements[1].Rank++ }, "/statements/1"},
		"wrong digest":      {func(a *wire.Answer) { a.Statements[1].SHA256 = x }, "/statements/1"},
		"no evidence":       {func(a *wire.Answer) { a.Statements[1].Evidence = nil }, "/statements/1"},
		"other evidence":    {func(a *wire.Answer) { a.Statements[1].Evidence[0].SHA256 = x }, "/statements/1"},
		"row not asked for": {func(a *wire.Answer) {
			r := view.Rows[0]
			a.Statements = append(a.Statements, wire.Statement{Text: r.Statement, Provenance: wire.Provenance{Kind: wire.KindRow, Ref: r.Table + "/" + r.Row, Rank: r.Rank, SHA256: r.SHA256, Evidence: r.Evidence}})
		}, "/statements/2"},
		"said twice":      {func(a *wire.Answer) { a.Statements = append(a.Statements, a.Statements[0]) }, "/statements/2"},
		"no inputs":       {func(a *wire.Answer) { a.Inputs = nil }, "/inputs"},
		"view not read":   {func(a *wire.Answer) { a.Inputs = a.Inputs[:2] }, "/inputs"},
		"other input":     {func(a *wire.Answer) { a.Inputs[0].SHA256 = x }, "/inputs/0"},
		"unknown input":   {func(a *wire.Answer) { a.Inputs[2].Path = "memories/MEMORY.md" }, "/inputs"},
		"inputs unsorted": {func(a *wire.Answer) { a.Inputs[0], a.Inputs[1] = a.Inputs[1], a.Inputs[0] }, "/inputs/1"},
	} {
		t.Run(name, func(t *testing.T) {
			var a wire.Answer
			if err := canon.Decode(good, &a); err != nil {
				t.Fatal(err)
			}
			tc.lie(&a)
			raw, err := canon.Marshal(a)
			if err != nil {
				t.Fatal(err)
			}
			_, err = checkAnswer(raw, &asked, view, pinned.Files)
			var input *canon.InputError
			if !errors.As(err, &input) || input.Key != tc.key {
				t.Errorf("%v; want a complaint at %s", err, tc.key)
			}
		})
	}
}

// A runtime may leave out what it knows, but not a whole kind that it was asked for.
func TestAnswerToAllThatWasAsked(t *testing.T) {
	agent := newFake()
	pinned, err := agent.Pin(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	view, err := wire.ParseView(pinned.View)
	if err != nil {
		t.Fatal(err)
	}
	asked := Asked{Document: wire.FixedQuery("ada")}
	if asked.SHA256, err = asked.Document.SHA256(); err != nil {
		t.Fatal(err)
	}
	full := wire.Answer{Format: wire.Format, Agent: view.Agent, Label: view.Label, QueryID: asked.Document.QueryID, QuerySHA256: asked.SHA256,
		Statements: view.Sources(&asked.Document), Inputs: []wire.File{{Path: "identity.json", SHA256: pinned.Files["identity.json"]}}}
	for kept, good := range map[int]bool{3: true, 2: false, 1: false} {
		answer := full
		answer.Statements = full.Statements[:kept]
		raw, err := canon.Marshal(answer)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := checkAnswer(raw, &asked, view, pinned.Files); (err == nil) != good {
			t.Errorf("the first %d of %d statements: %v", kept, len(full.Statements), err)
		}
	}
	answer := full
	answer.Statements = full.Statements[1:]
	raw, err := canon.Marshal(answer)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := checkAnswer(raw, &asked, view, pinned.Files); err != nil {
		t.Errorf("one rule less: %v", err)
	}
}

func TestDigestFile(t *testing.T) {
	name := t.TempDir() + "/f"
	data := []byte(strings.Repeat("x", 300_000))
	if err := os.WriteFile(name, data, 0o600); err != nil {
		t.Fatal(err)
	}
	if got, err := digestFile(name); err != nil || got != canon.Sum(data) {
		t.Errorf("%v, %v", got, err)
	}
}

package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"selfsame.dev/selfsame/rpi"
)

// selfsame runs the command line and returns exit status, standard output and standard error.
func selfsame(t *testing.T, stdin string, args ...string) (int, string, string) {
	t.Helper()
	var out, errs bytes.Buffer
	status := run(context.Background(), args, streams{strings.NewReader(stdin), &out, &errs})
	return status, out.String(), errs.String()
}

// rpiVector returns input and expected outcome of a scenario.
func rpiVector(t *testing.T, name string) (input, outcome string) {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join("../../fixtures/rpi", name+".json"))
	if err != nil {
		t.Fatal(err)
	}
	doc, err := rpi.Decode(raw)
	if err != nil {
		t.Fatal(err)
	}
	in, _ := doc.Get("input")
	expect, _ := doc.Get("expect")
	want, _ := expect.Get("outcome")
	return in.String(), want.String()
}

func TestRpiRepair(t *testing.T) {
	for _, tc := range []struct {
		vector string
		flags  []string
		status int
		errors string // part of standard error, nothing where empty
	}{
		{"repair-converges", nil, exitHolds, ""},
		{"flip-same-bytes", nil, exitFails, "stopped with no_acceptance_progress, NOT_PROVEN"},
		{"flip-same-bytes", []string{"--expect-stop-reason", "no_acceptance_progress", "--expect-status", "NOT_PROVEN"}, exitHolds, ""},
		{"flip-same-bytes", []string{"--expect-stop-reason", "converged"}, exitFails, "expected stop reason converged"},
		{"repair-converges", []string{"--expect-status", "FAIL"}, exitFails, "expected status FAIL"},
		{"repair-converges", []string{"--expect-status", "GOOD"}, exitUsage, "--expect-status"},
		{"repair-converges", []string{"--expect-stop-reason", "tired"}, exitUsage, "--expect-stop-reason"},
		{"repair-converges", []string{"--repair-rounds", "-1"}, exitUsage, "--repair-rounds"},
		{"finding-twice", nil, exitInput, `-: /validations/0/findings/1: round 0, leg 0, finding "slow"`},
	} {
		input, outcome := rpiVector(t, tc.vector)
		status, out, errs := selfsame(t, input, append([]string{"rpi", "repair", "--rounds", "-"}, tc.flags...)...)
		if status != tc.status || !strings.Contains(errs, tc.errors) || (tc.errors == "") != (errs == "") {
			t.Errorf("%s %v: status %d, %s", tc.vector, tc.flags, status, errs)
		}
		if status < exitUsage && out != outcome+"\n" {
			t.Errorf("%s: got %s", tc.vector, out)
		}
		if status >= exitUsage && out != "" {
			t.Errorf("%s: a result in spite of the refusal: %s", tc.vector, out)
		}
	}
	input, _ := rpiVector(t, "repair-converges")
	if status, out, _ := selfsame(t, input, "rpi", "repair", "--repair-rounds", "0"); status != exitFails || !strings.Contains(out, `"repair_budget_exhausted"`) {
		t.Errorf("the caller's bound does not win: %d, %s", status, out)
	}
	if status, _, errs := selfsame(t, "", "rpi", "repair", "--rounds", "no/such/file"); status != exitEnvironment || !strings.Contains(errs, "no/such/file") {
		t.Errorf("a missing file: %d, %s", status, errs)
	}
}

func TestRpiOutput(t *testing.T) {
	input, outcome := rpiVector(t, "repair-converges")
	path := filepath.Join(t.TempDir(), "outcome.json")
	if status, out, errs := selfsame(t, input, "rpi", "repair", "--output", path); status != exitHolds || out != "" {
		t.Fatalf("%d, %s, %s", status, out, errs)
	}
	if data, err := os.ReadFile(path); err != nil || string(data) != outcome {
		t.Errorf("%s, %v", data, err)
	}
	if status, _, _ := selfsame(t, "[]", "rpi", "repair", "--output", path); status != exitInput {
		t.Errorf("status %d", status)
	}
	if data, _ := os.ReadFile(path); string(data) != outcome {
		t.Error("a refused run changed the file")
	}
}

func TestRpiLines(t *testing.T) {
	good, outcome := rpiVector(t, "repair-converges")
	bad, stopped := rpiVector(t, "flip-same-bytes")
	once, report := rpiVector(t, "once-pass")
	guard, decision := rpiVector(t, "guard-continue")
	stop, _ := rpiVector(t, "guard-stop")
	ok := func(result string) string { return `{"ok":` + result + "}\n" }
	for _, tc := range []struct {
		command, input, out string
		status              int
	}{
		{"repair", good + "\n" + good + "\n", ok(outcome) + ok(outcome), exitHolds},
		{"repair", good + "\n" + bad, ok(outcome) + ok(stopped), exitFails},
		{"repair", "[]\n" + good + "\n", `{"error":"the repair phase needs at least one validation round (no-rounds)"}` + "\n" + ok(outcome), exitInput},
		{"repair", "", "", exitHolds},
		{"once", once, ok(report), exitHolds},
		{"guard", guard, ok(decision), exitHolds},
		{"guard", stop + "\n", ok(strings.TrimSuffix(strings.TrimPrefix(stop, `{"guard":`), "}")), exitFails},
	} {
		status, out, errs := selfsame(t, tc.input, "rpi", tc.command, "--jsonl")
		if status != tc.status || out != tc.out {
			t.Errorf("%s: status %d, %s%s", tc.command, status, out, errs)
		}
	}
	if status, _, _ := selfsame(t, good, "rpi", "repair", "--jsonl", "--expect-status", "PASS"); status != exitUsage {
		t.Errorf("--jsonl with an expectation: status %d", status)
	}
}

func TestRpiExplain(t *testing.T) {
	input, _ := rpiVector(t, "class-returns")
	status, out, _ := selfsame(t, input, "rpi", "explain")
	for _, part := range []string{"proven by fix-slow", "stall", "recurring", "recurring_finding_class after 2 repair rounds", "FAIL, 1 findings open"} {
		if !strings.Contains(out, part) {
			t.Errorf("%q is missing in\n%s", part, out)
		}
	}
	if status != exitFails {
		t.Errorf("status %d", status)
	}
	if status, _, _ := selfsame(t, "[[]]", "rpi", "explain"); status != exitInput {
		t.Errorf("an empty round: status %d", status)
	}
}

// Phases as programs: each gets what it needs on standard input, once.
func TestRpiOncePrograms(t *testing.T) {
	dir := t.TempDir()
	digest, built := strings.Repeat("a", 64), strings.Repeat("b", 64)
	program := func(name, script string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte("#!/bin/sh\ncat >>'"+filepath.Join(dir, "log")+"'\necho >>'"+filepath.Join(dir, "log")+"'\n"+script+"\n"), 0o755); err != nil {
			t.Fatal(err)
		}
		return path
	}
	intent := filepath.Join(dir, "intent.json")
	if err := os.WriteFile(intent, []byte(`{"want": "it"}`), 0o644); err != nil {
		t.Fatal(err)
	}
	say := func(json string) string { return "printf '%s' '" + json + "'" }
	guard := `{"decision":"CONTINUE","reason":"It needs proof.","frozen_outcome":"o","parked_process_work":[],"remaining_proof":[],"stop_condition":"s"}`
	verdict := `{"verdict":"PASS","acceptance_digest":"` + digest + `","subject_manifest_digest":"` + built + `","author_context_id":"a","validator_context_id":"v","freshness_attestation":{"source":"caller","attester_identity":"x"}}`
	args := func(validate string) []string {
		return []string{"rpi", "once", "--intent", intent, "--guard", program("guard", say(guard)), "--plan", program("plan", say(`{"acceptance_digest":"`+digest+`"}`)),
			"--implement", program("implement", say(`{"subject_manifest_digest":"`+built+`"}`)), "--validate", program("validate", validate)}
	}
	status, out, errs := selfsame(t, "", args(say(verdict))...)
	if status != exitHolds || !strings.Contains(out, `"status":"PASS"`) {
		t.Fatalf("%d, %s, %s", status, out, errs)
	}
	log, err := os.ReadFile(filepath.Join(dir, "log"))
	want := `{"intent":{"want":"it"}}
{"intent":{"want":"it"}}
{"plan":{"acceptance_digest":"` + digest + `"}}
{"plan":{"acceptance_digest":"` + digest + `"},"subject":{"subject_manifest_digest":"` + built + `"}}
`
	if err != nil || string(log) != want {
		t.Errorf("phases read\n%s%v", log, err)
	}
	for name, tc := range map[string]struct {
		validate, errors string
		status           int
	}{
		"fails":       {"echo no judge >&2; exit 7", "exit status 7: no judge", exitEnvironment},
		"not JSON":    {"echo hello", "answer of ", exitInput},
		"other":       {say(strings.Replace(verdict, digest, built, 1)), "intent-mismatch", exitInput},
		"late":        {"sleep 60", "did not answer within 300ms", exitEnvironment},
		"too much":    {"while :; do echo 0123456789; done", "wrote more than 4096 bytes", exitEnvironment},
		"FAIL stands": {say(strings.Replace(verdict, "PASS", "FAIL", 1)), "the traversal ended FAIL", exitFails},
	} {
		extra := []string{"--max-output", "4096"}
		if name == "late" {
			extra = append(extra, "--timeout", "300ms")
		}
		status, out, errs := selfsame(t, "", append(args(tc.validate), extra...)...)
		if status != tc.status || !strings.Contains(errs, tc.errors) || (out != "") != (status == exitFails) {
			t.Errorf("%s: status %d, %s%s", name, status, out, errs)
		}
	}
	if status, _, errs := selfsame(t, "", "rpi", "once", "--intent", intent); status != exitUsage || !strings.Contains(errs, "--guard") {
		t.Errorf("a missing program: %d, %s", status, errs)
	}
}

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"selfsame.dev/selfsame/internal/canon"
	"selfsame.dev/selfsame/rpi"
	"selfsame.dev/selfsame/rpi/validate"
)

// work is a folder for one repair from real work: a subject that is wrong, then repaired.
type work struct {
	t   *testing.T
	dir string
}

func (w work) path(parts ...string) string {
	return filepath.Join(append([]string{w.dir}, parts...)...)
}

func (w work) write(name, data string) string {
	w.t.Helper()
	path := w.path(name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		w.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(data), 0o644); err != nil {
		w.t.Fatal(err)
	}
	return path
}

// run runs the command line, wants this exit status and returns standard output.
func (w work) run(want int, args ...string) string {
	w.t.Helper()
	status, out, errs := selfsame(w.t, "", append([]string{"rpi"}, args...)...)
	if status != want {
		w.t.Fatalf("selfsame rpi %s: exit status %d, want %d\n%s%s", strings.Join(args, " "), status, want, out, errs)
	}
	return out
}

// check runs the check over the subject of a round. Where nothing can be contained it must say
// so, and the receipt is made by hand for what follows.
func (w work) check(round string, passes bool) {
	w.t.Helper()
	status, _, errs := selfsame(w.t, "", "rpi", "check", "--check", w.path("check.json"), "--root", w.path("tree"), "--subject", w.path(round, "subject.json"),
		"--output", w.path(round, "receipt.json"), "--stdout", w.path(round, "stdout"))
	want := exitHolds
	if !passes {
		want = exitFails
	}
	if status == exitEnvironment && strings.Contains(errs, "no containment for checks: ") && strings.Contains(errs, "hint: ") {
		w.t.Logf("made by hand: %s", errs)
		w.receipt(round, passes)
		return
	}
	if status != want {
		w.t.Fatalf("check of round %s: exit status %d\n%s", round, status, errs)
	}
	if said, err := os.ReadFile(w.path(round, "stdout")); err != nil || string(said) != "checked\n" {
		w.t.Errorf("%s, %v", said, err)
	}
}

func (w work) receipt(round string, passes bool) {
	w.t.Helper()
	raw, err := os.ReadFile(w.path(round, "subject.json"))
	if err != nil {
		w.t.Fatal(err)
	}
	checkRaw, err := os.ReadFile(w.path("check.json"))
	if err != nil {
		w.t.Fatal(err)
	}
	check, err := validate.ReadCheck("check.json", checkRaw)
	if err != nil {
		w.t.Fatal(err)
	}
	r := validate.Receipt{Format: validate.ReceiptFormat, Check: check, Subject: canon.Sum(raw), Containment: "made by hand", Passed: passes}
	if !passes {
		r.Exit = 1
	}
	if raw, err = canon.Marshal(r); err != nil {
		w.t.Fatal(err)
	}
	w.write(filepath.Join(round, "receipt.json"), string(raw))
}

// From an intent to a chain that converges, by commands alone.
func TestRpiFromWorkToConvergence(t *testing.T) {
	w := work{t, t.TempDir()}
	w.write("base/greeting.txt", "hello\n")
	w.write("tree/greeting.txt", "helo\n")
	w.write("check.json", `{"format":"check.v1","name":"greeting","argv":["/bin/sh","-c","echo checked; test \"$(cat greeting.txt)\" = 'hello, world'"],"effect":"read-only","time_ms":20000,"output_bytes":4096}`)
	stored := w.run(exitHolds, "intent", "--file", w.write("intent.md", "Greet the world.\n"), "--store", w.path("intents"))
	digest := canon.Sum([]byte("Greet the world.\n")).String()
	intent := w.path("intents", digest+".intent")
	if stored != `{"acceptance_digest":"`+digest+`","intent_ref":"`+intent+`"}`+"\n" || w.run(exitHolds, "intent", "--verify", intent) != stored {
		t.Fatal(stored)
	}
	key := w.run(exitHolds, "key", "--output", w.path("key"))
	if info, err := os.Stat(w.path("key")); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v %v", info.Mode(), err)
	}
	w.run(exitEnvironment, "key", "--output", w.path("key"))
	w.run(exitHolds, "begin", "--chain", w.path("chain"), "--key", w.path("key"), "--intent", intent)

	round := func(name, draft string, passes bool, verdict, after int) {
		t.Helper()
		if err := os.Mkdir(w.path(name), 0o755); err != nil {
			t.Fatal(err)
		}
		w.run(exitHolds, "subject", "--root", w.path("tree"), "--base", w.path("base"), "--output", w.path(name, "subject.json"))
		w.run(exitHolds, "subject", "--root", w.path("tree"), "--verify", w.path(name, "subject.json"))
		w.check(name, passes)
		raw, err := os.ReadFile(w.path(name, "subject.json"))
		if err != nil {
			t.Fatal(err)
		}
		w.write(name+"/draft.json", strings.ReplaceAll(draft, "SUBJECT", canon.Sum(raw).String()))
		w.run(verdict, "verdict", "--intent", intent, "--subject", w.path(name, "subject.json"), "--draft", w.path(name, "draft.json"), "--criterion", "greets",
			"--receipt", name+"="+w.path(name, "receipt.json"), "--author", "author", "--validator", "judge-"+name, "--family", "north", "--attested-by", "synthetic:caller",
			"--output", w.path(name, "verdict.json"), "--bindings", w.path(name, "bindings.json"))
		w.run(after, "append", "--chain", w.path("chain"), "--key", w.path("key"), "--verdict", w.path(name, "verdict.json"), "--bindings", w.path(name, "bindings.json"))
	}
	round("first", `{"format":"verdict-draft.v1","verdict":"FAIL","criteria":[{"id":"greets","evidence":[]}],"checked":["greeting"],"findings":[{"id":"typo","summary":"synthetic"}],"classes":{"typo":"spelling"}}`,
		false, exitFails, exitFails)
	w.write("tree/greeting.txt", "hello, world\n")
	w.run(exitFails, "subject", "--root", w.path("tree"), "--verify", w.path("first", "subject.json"))
	round("second", `{"format":"verdict-draft.v1","verdict":"PASS","criteria":[{"id":"greets","evidence":["second"]}],"checked":["greeting"],"bound":[{"ref":"second","subject_digest":"SUBJECT","resolves":["typo"]}]}`,
		true, exitHolds, exitHolds)

	signer := strings.TrimSuffix(strings.TrimPrefix(key, `{"public_key":"`), "\"}\n")
	outcome := w.run(exitHolds, "replay", "--chain", w.path("chain"), "--signer", signer)
	value, err := rpi.Decode([]byte(outcome))
	if err != nil || text(value, "stop_reason") != "converged" {
		t.Errorf("%s %v", outcome, err)
	}
	table := w.run(exitHolds, "explain", "--chain", w.path("chain"))
	if !strings.Contains(table, "typo") || !strings.Contains(table, "proven by second") || !strings.Contains(table, "converged after 1 repair rounds") {
		t.Error(table)
	}
	if file := w.path("copy.json"); w.run(exitHolds, "replay", "--chain", w.path("chain"), "--output", file) != "" {
		t.Error("a result on standard output beside --output")
	} else if data, err := os.ReadFile(file); err != nil || string(data)+"\n" != outcome {
		t.Errorf("%s %v", data, err)
	}
	w.run(exitInput, "replay", "--chain", w.path("chain"), "--signer", strings.Repeat("0", 64))
	w.run(exitInput, "replay", "--chain", w.path("chain"), "--last", strings.Repeat("0", 64))
	w.run(exitUsage, "replay", "--chain", w.path("chain"), "--last", "x")
	w.run(exitInput, "append", "--chain", w.path("chain"), "--key", w.path("key"), "--verdict", w.path("second", "verdict.json"), "--bindings", w.path("second", "bindings.json"))
	file := w.path("chain", "round-000001.json")
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	w.write("chain/round-000001.json", strings.Replace(string(data), `"rounds_used":1`, `"rounds_used":0`, 1))
	w.run(exitInput, "replay", "--chain", w.path("chain"))
	w.run(exitInput, "explain", "--chain", w.path("chain"))
	w.run(exitEnvironment, "replay", "--chain", w.path("no-chain"))
}

func TestRpiJudgeRefuses(t *testing.T) {
	w := work{t, t.TempDir()}
	w.write("base/a", "1")
	w.write("tree/a", "2")
	w.run(exitInput, "subject", "--root", w.path("tree"), "--base", w.path("base"), "--path", "b")
	w.run(exitInput, "subject", "--root", w.path("tree"), "--base", w.path("base"), "--include", "../x")
	w.run(exitUsage, "subject", "--root", w.path("tree"))
	w.run(exitEnvironment, "subject", "--root", w.path("tree"), "--base", w.path("none"))
	w.run(exitUsage, "intent", "--file", w.path("base/a"))
	w.run(exitUsage, "intent")
	w.run(exitInput, "intent", "--verify", w.write("x.intent", "x"))
	w.run(exitInput, "begin", "--chain", w.path("c"), "--key", w.write("key", "no key"), "--intent", w.path("x.intent"))
	if _, err := os.Stat(w.path("c")); err == nil {
		t.Error("a refused begin left a chain")
	}
	w.run(exitUsage, "append", "--chain", w.path("c"), "--key", w.path("key"), "--verdict", "a", "--verdict", "b", "--bindings", "c")
	w.run(exitInput, "check", "--check", w.write("check.json", `{"format":"check.v1"}`), "--root", w.path("tree"), "--subject", w.path("none"))
}

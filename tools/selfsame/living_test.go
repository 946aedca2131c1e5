package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"selfsame.dev/selfsame/internal/canon"
	"selfsame.dev/selfsame/living"
	"selfsame.dev/selfsame/living/catalog"
	"selfsame.dev/selfsame/schemas"
)

const livingFixtures = "../../fixtures/living/"

// livingTurnEnv makes the test binary a turn program that learns one fact from its own
// evidence, or misbehaves on the turns named in it.
const livingTurnEnv = "SELFSAME_TEST_TURN"

func init() {
	bad := os.Getenv(livingTurnEnv)
	if bad == "" {
		return
	}
	raw, _ := io.ReadAll(os.Stdin)
	var seed living.TurnSeed
	if err := canon.Decode(raw, &seed); err != nil {
		os.Exit(9)
	}
	calls, _ := os.ReadFile(os.Getenv(livingTurnEnv + "_COUNT"))
	call := len(calls) + 1
	os.WriteFile(os.Getenv(livingTurnEnv+"_COUNT"), append(calls, '.'), 0o600)
	switch {
	case strings.Contains(bad, fmt.Sprintf("fail%d", call)):
		os.Exit(7)
	case strings.Contains(bad, fmt.Sprintf("prose%d", call)):
		fmt.Print("I have learned a lot.")
		os.Exit(0)
	}
	shown := fmt.Sprintf("call %d counted the files: %d", call, call*10)
	out, _ := canon.Marshal(map[string]any{
		"format": living.ReportFormat, "owner": seed.Owner, "turn": seed.Turn,
		"evidence": []any{map[string]any{"name": "e", "source": "cmd: count", "text": shown}},
		"claims": []any{map[string]any{"axis": "notes", "value": fmt.Sprintf("files: %d", call*10),
			"evidence": []any{map[string]any{"name": "e", "sha256": canon.Sum([]byte(shown)), "turn": seed.Turn}}}},
	})
	os.Stdout.Write(out)
	os.Exit(0)
}

// livingRun runs a command and returns its status and what it wrote.
func livingRun(t *testing.T, args ...string) (int, string, string) {
	t.Helper()
	var out, errs bytes.Buffer
	status := run(context.Background(), append([]string{"living"}, args...), streams{strings.NewReader(""), &out, &errs})
	return status, out.String(), errs.String()
}

// livingWant runs a command that must end with a status, and returns standard output.
func livingWant(t *testing.T, status int, args ...string) string {
	t.Helper()
	got, out, errs := livingRun(t, args...)
	if got != status {
		t.Fatalf("selfsame living %s: status %d, want %d\n%s%s", strings.Join(args, " "), got, status, out, errs)
	}
	if (status == 0) == strings.Contains(errs, "selfsame: error:") {
		t.Fatalf("selfsame living %s: status %d, standard error %q", strings.Join(args, " "), status, errs)
	}
	return out
}

type livingDirs struct{ store, base, now, owner string }

func livingStoreFor(t *testing.T) livingDirs {
	t.Helper()
	d := livingDirs{"--store=" + filepath.Join(t.TempDir(), "store"), "--baseline=" + livingFixtures + "baseline.json", "--now=2026-01-02T03:04:05Z", "--owner=synthetic-leo"}
	livingWant(t, 0, "init", d.store, d.base, d.now)
	return d
}

func (d livingDirs) path() string { return strings.TrimPrefix(d.store, "--store=") }

func livingHistory(t *testing.T) []string {
	t.Helper()
	paths, err := filepath.Glob(livingFixtures + "history/*.json")
	if err != nil || len(paths) != 9 {
		t.Fatalf("%v, %v", paths, err)
	}
	return paths
}

func jsonLines(t *testing.T, format, out string) []map[string]any {
	t.Helper()
	var all []map[string]any
	for line := range strings.Lines(out) {
		line = strings.TrimSuffix(line, "\n")
		if err := schemas.DecodeCanonical("", format, []byte(line), new(any)); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		var v map[string]any
		if err := json.Unmarshal([]byte(line), &v); err != nil {
			t.Fatal(err)
		}
		all = append(all, v)
	}
	return all
}

func TestLivingApplyLogShow(t *testing.T) {
	d := livingStoreFor(t)
	args := append([]string{"apply", d.store, d.base, d.now, "--json"}, livingHistory(t)...)
	steps := jsonLines(t, "living-step.v1", livingWant(t, 3, args...)) // two claims are refused
	if len(steps) != 9 || steps[8]["event"] != "unchanged" || steps[8]["version"] != 6.0 {
		t.Fatalf("%v", steps)
	}
	want, err := os.ReadFile(livingFixtures + "valid/living-profile.v1.json")
	if err != nil {
		t.Fatal(err)
	}
	if got := livingWant(t, 0, "show", d.store, d.owner, "--json"); got != string(want)+"\n" {
		t.Errorf("the document is\n%s", got)
	}
	before, err := os.ReadFile(filepath.Join(d.path(), livingOwnerFolder(t, d), "profile.db"))
	if err != nil {
		t.Fatal(err)
	}
	if again := livingWant(t, 3, args...); strings.Contains(again, `"event":"learned"`) {
		t.Errorf("a second delivery: %s", again)
	}
	after, err := os.ReadFile(filepath.Join(d.path(), livingOwnerFolder(t, d), "profile.db"))
	if err != nil || !bytes.Equal(before, after) {
		t.Error("a second delivery changed the stored bytes")
	}
	text := livingWant(t, 0, "log", d.store, d.owner)
	for _, part := range []string{"2026-01-02T03:04:05Z  learned", `+ notes "tests come first"`, "from file: CONTRIBUTING.md", `- notes "the owner prefers tabs": no_evidence`, `- region "us": baseline_contradiction`} {
		if !strings.Contains(text, part) {
			t.Errorf("the log does not say %q:\n%s", part, text)
		}
	}
	if records := jsonLines(t, "living-record.v1", livingWant(t, 0, "log", d.store, d.owner, "--json")); len(records) != 8 {
		t.Errorf("%d records", len(records))
	}
	if out := livingWant(t, 0, "show", d.store, d.owner, "--version=1"); !strings.Contains(out, `turn 1: "go"`) || !strings.Contains(out, "memory, not ground truth") {
		t.Errorf("version 1: %s", out)
	}
	livingWant(t, 0, "restore", d.store, d.base, d.now, "--version=1")
	if out := livingWant(t, 0, "log", d.store, d.owner, "--from=8"); !strings.Contains(out, "restored  version 7  from version 1") {
		t.Errorf("%s", out)
	}
	jsonLines(t, "living-view.v1", livingWant(t, 0, "compose", d.store, d.owner))
	if empty := livingWant(t, 0, "compose", d.store, "--owner=nobody"); !strings.Contains(empty, `"axes":{}`) || !strings.Contains(empty, `"ground_truth":false`) {
		t.Errorf("an empty view: %s", empty)
	}
	seeds := jsonLines(t, "living-seed.v1", livingWant(t, 0, "seed", d.store, d.base))
	if seeds[0]["turn"] != 8.0 {
		t.Errorf("seed %v", seeds)
	}
	jsonLines(t, "living-audit.v1", livingWant(t, 0, "fsck", d.store, d.owner, "--json"))
}

func livingOwnerFolder(t *testing.T, d livingDirs) string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(d.path(), "o-*"))
	if err != nil || len(found) != 1 {
		t.Fatalf("%v, %v", found, err)
	}
	return filepath.Base(found[0])
}

// One bad turn never spoils the loop: the others learn.
func TestLivingTurn(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for bad, want := range map[string]struct {
		status  int
		version int
	}{"none": {0, 4}, "fail2": {4, 3}, "prose3": {3, 3}, "fail1 prose2": {4, 2}} {
		d := livingStoreFor(t)
		t.Setenv(livingTurnEnv, bad)
		t.Setenv(livingTurnEnv+"_COUNT", filepath.Join(t.TempDir(), "count"))
		livingWant(t, want.status, "turn", d.store, d.base, d.now, "--turns=4", "--", self)
		out := livingWant(t, 0, "show", d.store, d.owner, "--json")
		if !strings.Contains(out, fmt.Sprintf(`"version":%d}`, want.version)) {
			t.Errorf("%s: %s", bad, out)
		}
		livingWant(t, 0, "fsck", d.store, d.owner)
	}
}

func TestLivingVerify(t *testing.T) {
	d := livingStoreFor(t)
	key := "--key=" + filepath.Join(d.path(), "signing.pub")
	scratch := t.TempDir()
	in := func(name string) string { return filepath.Join(scratch, name) }
	h := livingHistory(t)
	livingWant(t, 0, "apply", d.store, d.base, d.now, h[0])
	livingWant(t, 0, "verify", d.store, d.owner, "--save-head="+in("old"))
	livingWant(t, 0, "mirror", d.store, d.owner, d.now, "--output="+in("mirror"))
	livingWant(t, 0, "verify", "--mirror="+in("mirror"), key, "--head="+in("old"), d.now, "--max-age=1h")
	livingWant(t, 1, "verify", "--mirror="+in("mirror"), key, "--now=2026-01-02T05:00:00Z", "--max-age=1h")
	livingWant(t, 2, "verify", "--mirror="+in("mirror"))
	livingWant(t, 2, "compose", "--store="+in("mirror"), d.owner)
	if a, b := livingWant(t, 0, "compose", d.store, d.owner), livingWant(t, 0, "compose", "--store="+in("mirror"), key, d.owner); a != b {
		t.Errorf("the mirror shows %s, the store %s", b, a)
	}
	for _, write := range [][]string{{"apply", h[2]}, {"restore", "--version=0"}, {"init"}, {"rebase"}, {"turn", "--", "true"}} {
		args := append([]string{write[0], "--store=" + in("mirror"), key, d.base, d.now}, write[1:]...)
		status, _, errs := livingRun(t, args...)
		if status != 3 || !strings.Contains(errs, "a mirror takes no writes") {
			t.Errorf("%v on a mirror: status %d, %s", write, status, errs)
		}
	}
	livingWant(t, 0, "apply", d.store, d.base, d.now, h[2])
	livingWant(t, 0, "verify", d.store, d.owner, "--older-head="+in("old"), "--save-head="+in("new"))
	livingWant(t, 1, "verify", "--mirror="+in("mirror"), key, "--head="+in("new")) // stale
	livingWant(t, 0, "prove", d.store, d.owner, "--record=1", "--older-head="+in("old"), "--output="+in("proof"))
	livingWant(t, 0, "verify", "--proof="+in("proof"), key)
	livingWant(t, 1, "verify", "--proof="+in("proof"), "--key="+livingFixtures+"mirror.pub")
	// What was asked for is checked, or refused.
	mirrored := []string{"verify", "--mirror=" + in("mirror"), key}
	logged := []string{"verify", "--log=" + in("mirror/log.jsonl"), "--head=" + in("mirror/head.note"), key}
	proved := []string{"verify", "--proof=" + in("proof"), key}
	for _, what := range [][]string{mirrored, logged, proved} {
		livingWant(t, 0, append(what, d.owner)...)
		livingWant(t, 1, append(what, "--owner=synthetic-ada")...)
		livingWant(t, 2, append(what, "--save-head="+in("never"))...)
	}
	livingWant(t, 2, append(mirrored, "--max-age=-1s")...)
	livingWant(t, 2, append(logged, "--max-age=1h")...)
	livingWant(t, 2, append(proved, "--older-head="+in("new"))...)
	livingWant(t, 2, append(proved, "--head="+in("old"))...)
	livingWant(t, 2, "verify", d.store, d.owner, "--max-age=1h")
	for _, wrong := range [][]string{{"--turns=0"}, {"--turns=-1"}, {"--timeout=-1s"}} {
		livingWant(t, 2, append(append([]string{"turn", d.store, d.base}, wrong...), "--", "true")...)
	}
	livingWant(t, 2, "show", d.store, d.owner, "--version=-2")
	livingWant(t, 0, "verify", "--log="+in("mirror/log.jsonl"), "--head="+in("mirror/head.note"), key)
	livingWant(t, 1, "verify", "--log="+in("mirror/log.jsonl"), "--head="+in("new"), key)
	log, err := os.ReadFile(in("mirror/log.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	edited := bytes.Replace(log, []byte("cmd: versions"), []byte("cmd: Versions"), 1)
	if err := os.WriteFile(in("edited"), edited, 0o600); err != nil {
		t.Fatal(err)
	}
	livingWant(t, 1, "verify", "--log="+in("edited"), "--head="+in("mirror/head.note"), key)
	// Another baseline stops everything, until the change is recorded.
	base, err := os.ReadFile(livingFixtures + "baseline.json")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(in("base"), bytes.Replace(base, []byte(`"eu"`), []byte(`"us"`), 1), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"seed"}, {"apply", d.now, h[3]}, {"init", d.now}} {
		if status, _, errs := livingRun(t, append(args, d.store, "--baseline="+in("base"))...); status != 1 || !strings.Contains(errs, "living rebase") {
			t.Errorf("%v under another baseline: status %d, %s", args, status, errs)
		}
	}
	livingWant(t, 0, "rebase", d.store, "--baseline="+in("base"), d.now)
	livingWant(t, 0, "seed", d.store, "--baseline="+in("base"))
	livingWant(t, 0, "fsck", d.store, d.owner, "--output="+in("document"))
	document, err := os.ReadFile(in("document"))
	if err != nil || string(document)+"\n" != livingWant(t, 0, "show", d.store, d.owner, "--json") {
		t.Errorf("fsck re-derives %s, %v", document, err)
	}
}

func TestLivingReplay(t *testing.T) {
	base := "--baseline=" + livingFixtures + "baseline.json"
	expect := "--expect-file=" + livingFixtures + "history.content.sha256"
	h := livingHistory(t)
	with := func(more ...string) []string { return append(append([]string{"replay", base}, more...), h...) }
	jsonLines(t, "living-replay.v1", livingWant(t, 0, with(expect, "--expect-refused=no_evidence=1;baseline_contradiction=1", "--json")...))
	livingWant(t, 1, with("--expect="+strings.Repeat("0", 63)+"1")...)
	livingWant(t, 1, with(expect, "--expect-refused=no_evidence=2;baseline_contradiction=1")...)
	livingWant(t, 3, with("--expect=abc")...)
	livingWant(t, 1, "replay", base, expect, h[0], h[1]) // control: part of the history
	livingWant(t, 4, "replay", base, "/nonexistent")
	livingWant(t, 3, "replay", "--baseline="+h[0])
}

func TestLivingCatalog(t *testing.T) {
	statement, err := catalog.Load()
	if err != nil {
		t.Fatal(err)
	}
	var run strings.Builder
	for _, test := range statement.Tests() {
		pkg, name, _ := strings.Cut(test, ".")
		fmt.Fprintf(&run, "{\"Action\":\"pass\",\"Package\":\"selfsame.dev/selfsame/%s\",\"Test\":%q}\n", pkg, name)
	}
	path := filepath.Join(t.TempDir(), "run")
	write := func(text string) {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(run.String())
	if out := livingWant(t, 0, "catalog", "--results="+path); !strings.Contains(out, "authority: ") || !strings.Contains(out, "pass  living.TestSeedIsAnOverlay") {
		t.Errorf("%s", out)
	}
	jsonLines(t, "living-evidence.v1", livingWant(t, 0, "catalog", "--results="+path, "--json"))
	write(strings.Replace(run.String(), `"pass"`, `"fail"`, 1))
	livingWant(t, 1, "catalog", "--results="+path)
	write("")
	if out := livingWant(t, 1, "catalog", "--results="+path); !strings.Contains(out, "not run  living.TestSeedIsAnOverlay") {
		t.Errorf("%s", out)
	}
}

func TestLivingRefusesBadInput(t *testing.T) {
	d := livingStoreFor(t)
	for _, tc := range []struct {
		status int
		says   string
		args   []string
	}{
		{2, "--store", []string{"compose", d.owner}},
		{2, "--mirror", []string{"verify"}},
		{3, "is no store", []string{"compose", "--store=" + t.TempDir(), d.owner}},
		{3, "not in the store", []string{"show", d.store, "--owner=nobody"}},
		{3, "not in the store", []string{"show", d.store, d.owner, "--version=7"}},
		{3, "/owner", []string{"compose", d.store, "--owner=../x\ty"}},
		{3, "--now", []string{"apply", d.store, d.base, "--now=yesterday", livingHistory(t)[0]}},
		{3, "is not in the store", []string{"restore", d.store, d.base, d.now, "--version=3"}},
		{3, "", []string{"mirror", d.store, d.owner, d.now, "--output=" + d.path()}},
		{4, "", []string{"apply", d.store, d.base, d.now, "/nonexistent"}},
	} {
		status, out, errs := livingRun(t, tc.args...)
		if status != tc.status || !strings.Contains(errs, tc.says) || out != "" {
			t.Errorf("%v: status %d, %q, %q", tc.args, status, out, errs)
		}
	}
	if _, err := os.Stat(filepath.Join(d.path(), "x")); !errors.Is(err, os.ErrNotExist) {
		t.Error("something was made")
	}
}

// Whatever a report says, it writes no line of its own into the log that a person reads.
func TestLivingTextHoldsItsLines(t *testing.T) {
	d := livingStoreFor(t)
	forged := "record 9  2026-01-02T03:04:05Z  learned  version 9"
	for i, claim := range []string{
		`{"axis":"x\n` + forged + `\u001b[31m","evidence":[],"value":"v"}`,
		"{\"axis\":\n\"" + forged + "\",\"other\":1}",
		"{\"axis\":\"tools\",\"evidence\":[],\"value\":\n[\n\"" + forged + "\",null]}",
		"{\"axis\":\"tools\",\"evidence\":[],\"value\":\"\u202e\u009b2J\u2028" + forged + "\"}",
	} {
		path := filepath.Join(t.TempDir(), "report.json")
		report := fmt.Sprintf(`{"claims":[%s],"evidence":[],"format":"living-turn.v1","owner":"synthetic-leo","turn":1}`, claim)
		if err := os.WriteFile(path, []byte(report), 0o600); err != nil {
			t.Fatal(err)
		}
		for _, out := range []string{
			livingWant(t, 3, "apply", d.store, d.base, d.now, path),
			livingWant(t, 0, "log", d.store, d.owner, fmt.Sprintf("--from=%d", i+1)),
		} {
			if strings.ContainsAny(out, "\x1b\u009b\u202e\u2028") || strings.Contains(out, "\n"+forged) || strings.Contains(out, "\n\""+forged) {
				t.Errorf("claim %d: %q", i, out)
			}
			if !strings.Contains(out, forged) {
				t.Errorf("control: claim %d is not shown: %q", i, out)
			}
		}
	}
}

// A damaged key is refused by name, and no error shows any of it.
func TestLivingDamagedKey(t *testing.T) {
	d := livingStoreFor(t)
	path := filepath.Join(d.path(), "signing.key")
	secret, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	damaged := bytes.Clone(secret)
	damaged[len(damaged)/2] ^= 1
	if err := os.WriteFile(path, damaged, 0o600); err != nil {
		t.Fatal(err)
	}
	status, _, errs := livingRun(t, "apply", d.store, d.base, d.now, livingHistory(t)[0])
	if status != 3 || !strings.Contains(errs, path) || !strings.Contains(errs, "hint:") || strings.Contains(errs, string(damaged[len(damaged)/2:len(damaged)-1])) {
		t.Errorf("status %d, %s", status, errs)
	}
}

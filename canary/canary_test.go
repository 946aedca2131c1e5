package canary

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"selfsame.dev/selfsame/internal/canon"
)

func TestRestartReproduced(t *testing.T) {
	first, err := runIn(t, context.Background(), synthetic())
	if err != nil {
		t.Fatal(err)
	}
	if first.Outcome != Reproduced || first.Tier != T2 || !first.GoalTierSatisfied {
		t.Errorf("%s, %s, %v", first.Outcome, first.Tier, first.GoalTierSatisfied)
	}
	if got := states(first.Reproducible.Transitions); got != twice+" restart_reproduced" {
		t.Errorf("states: %s", got)
	}
	if p := first.Observed.Processes; len(p) != 2 || p[0].Process == p[1].Process || p[0].Process.Session == p[1].Process.Session {
		t.Errorf("processes: %+v", p)
	}
	var texts []string
	for _, s := range first.Reproducible.Answer.Statements {
		texts = append(texts, s.Text)
	}
	if got := strings.Join(texts, " "); got != "I send nothing. I keep to what is given. I am an example." {
		t.Errorf("answer: %s", got)
	}
	second, err := runIn(t, context.Background(), synthetic())
	if err != nil {
		t.Fatal(err)
	}
	if first.ReproducibleSHA256 != second.ReproducibleSHA256 {
		t.Error("the reproducible parts of two runs differ")
	}
	if reflect.DeepEqual(first.Observed, second.Observed) {
		t.Error("control: two runs observed the same")
	}
	other := synthetic()
	other.Query.Question = "Who?"
	third, err := runIn(t, context.Background(), other)
	if err != nil || third.ReproducibleSHA256 == first.ReproducibleSHA256 {
		t.Errorf("control: another query leaves the reproducible part as it was (%v)", err)
	}
}

// The environment is closed; between the starts the first folder is gone, and the second one new.
func TestStartsAreApart(t *testing.T) {
	t.Setenv("SECRET_TOKEN", "planted")
	cfg := synthetic("closed")
	var seen []string
	cfg.Watch = func(_ context.Context, e Event) {
		found, _ := filepath.Glob(filepath.Join(os.Getenv("CANARY_TEMP"), "*", "*", "profile"))
		var names []string
		for _, f := range found {
			names = append(names, filepath.Base(filepath.Dir(f)))
		}
		seen = append(seen, fmt.Sprintf("%s/%d: %s", e.At, e.Start, strings.Join(names, " ")))
	}
	cfg.TempDir = t.TempDir()
	t.Setenv("CANARY_TEMP", cfg.TempDir)
	r, err := Run(context.Background(), cfg)
	if err != nil || r.Outcome != Reproduced {
		t.Fatalf("%s: %v", r.Outcome, err)
	}
	want := []string{
		"pinning/0: ", "manifest_pinned/0: ",
		"compiling/1: ", "profile_compiled/1: 1", "verifying/1: 1", "runtime_verified/1: 1", "running/1: 1", "stopped_cleanly/1: ",
		"compiling/2: ", "profile_compiled/2: 2", "verifying/2: 2", "runtime_verified/2: 2", "running/2: 2", "stopped_cleanly/2: ",
		"restart_reproduced/2: ",
	}
	if !slices.Equal(seen, want) {
		t.Errorf("profiles by point:\n%s\nwant:\n%s", strings.Join(seen, "\n"), strings.Join(want, "\n"))
	}
}

// A child that answers badly, or does not end well, gets no receipt for it.
func TestHostileRuntime(t *testing.T) {
	for deed, reason := range map[string]string{
		"setsid": "left_processes", "double-fork": "left_processes", "hop": "left_processes",
		"hide-and-hang": "timed_out", "hide-and-crash": "bad_exit",
		"hang": "timed_out", "ignore-term": "timed_out", "linger": "lingered",
		"flood": "stdout_flood", "flood-stderr": "stderr_flood",
		"crash": "bad_exit", "kill-self": "bad_exit", "exit-1": "bad_exit",
		"silent": "answer_refused", "twice": "answer_refused", "garbage": "answer_refused",
		"trail": "answer_refused", "half": "answer_refused", "plant": "left_files",
	} {
		t.Run(deed, func(t *testing.T) {
			cfg := synthetic(deed, filepath.Join(t.TempDir(), "pid"))
			if reason == "timed_out" {
				cfg.Limits.Timeout = 300 * time.Millisecond
			}
			if deed == "hide-and-hang" { // which takes three more processes
				cfg.Limits.Timeout = 2 * time.Second
			}
			r, err := runIn(t, context.Background(), cfg)
			if err == nil || r.Outcome != Refused || r.Reason != reason || r.Tier != T1 || r.GoalTierSatisfied {
				t.Errorf("%s (%s), %s, %v", r.Outcome, r.Reason, r.Tier, err)
			}
			if len(r.Observed.Processes) != 1 || r.Reproducible.Answer != nil || len(r.Reproducible.Starts) != 0 {
				t.Errorf("an answer or a second start: %+v", r)
			}
			if got := states(r.Reproducible.Transitions); got != "manifest_pinned profile_compiled runtime_verified" {
				t.Errorf("states: %s", got)
			}
		})
	}
}

// What a start changes in its own profile is drift, unless it was expected.
func TestProfileChangedByStart(t *testing.T) {
	for _, tc := range []struct {
		deed     []string
		expected []string
		drift    string // path
	}{
		{deed: []string{"write", "state.db"}, drift: "state.db"},
		{deed: []string{"write", "SOUL.md"}, drift: "SOUL.md"},
		{deed: []string{"chmod", "SOUL.md"}, drift: "SOUL.md"},
		{deed: []string{"remove-profile"}, drift: "."},
		{deed: []string{"write", "state.db"}, expected: []string{"state.*"}},
		{deed: []string{"write", "other.db"}, expected: []string{"state.*"}, drift: "other.db"},
	} {
		t.Run(strings.Join(tc.deed, " "), func(t *testing.T) {
			cfg := synthetic(tc.deed...)
			cfg.Expected = tc.expected
			r, err := runIn(t, context.Background(), cfg)
			if err != nil {
				t.Fatal(err)
			}
			if tc.drift == "" {
				if r.Outcome != Reproduced {
					t.Errorf("%s %+v", r.Outcome, r.Reproducible.Drift)
				}
				return
			}
			if r.Outcome != Drifted || r.Reason != SurfaceProfile || r.Reproducible.Drift[0].Path != tc.drift || r.Reproducible.Answer != nil || len(r.Observed.Processes) != 1 {
				t.Errorf("%s (%s), %+v", r.Outcome, r.Reason, r.Reproducible.Drift)
			}
		})
	}
}

// The same inputs with another answer are no restart.
func TestAnswerWavers(t *testing.T) {
	r, err := runIn(t, context.Background(), synthetic("waver"))
	if err != nil || r.Outcome != Drifted || r.Reason != SurfaceAnswer || r.Tier != T1 || r.Reproducible.Equal == nil || r.Reproducible.Equal.Answer {
		t.Errorf("%s (%s), %v", r.Outcome, r.Reason, err)
	}
	if got := states(r.Reproducible.Transitions); got != twice+" drift_detected" {
		t.Errorf("states: %s", got)
	}
}

// Drift in any surface, before either start: named, no answer of that start, no next start.
func TestInjectedDrift(t *testing.T) {
	for _, surface := range []string{"skills", "plugins", SurfaceProgram, SurfaceProfile, profileGone, profileMode, profileLink,
		profilePart + "SOUL.md", profilePart + "identity.json", profilePart + "config.yaml", profilePart + "skills", profilePart + "plugins"} {
		for start, states1 := range map[int]string{1: "manifest_pinned profile_compiled", 2: once + " profile_compiled"} {
			t.Run(surface+"@"+[]string{"", "first", "second"}[start], func(t *testing.T) {
				cfg := synthetic()
				cfg.Inject = &Injection{surface, start}
				r, err := runIn(t, context.Background(), cfg)
				if err != nil {
					t.Fatal(err)
				}
				name, _, _ := strings.Cut(surface, "/")
				name, _, _ = strings.Cut(name, ":")
				if r.Outcome != Drifted || r.Reason != name || r.Tier != T1 || r.GoalTierSatisfied {
					t.Errorf("%s (%s), %s, %v", r.Outcome, r.Reason, r.Tier, r.GoalTierSatisfied)
				}
				if got := states(r.Reproducible.Transitions); got != states1+" drift_detected" {
					t.Errorf("states: %s", got)
				}
				if len(r.Observed.Processes) != start-1 || r.Reproducible.Answer != nil {
					t.Errorf("%d processes, answer %v", len(r.Observed.Processes), r.Reproducible.Answer)
				}
				if d := r.Reproducible.Drift[0]; d.Surface != name || d.Path == "" || d.Expected == d.Actual {
					t.Errorf("drift: %+v", d)
				}
			})
		}
	}
	cfg := synthetic()
	cfg.Inject = &Injection{"nonsense", 1}
	if r, err := runIn(t, context.Background(), cfg); r.Outcome != Refused || err == nil {
		t.Errorf("an unknown surface: %s, %v", r.Outcome, err)
	}
}

// Sources that move after they were pinned are drift before anything is compiled from them.
func TestSourcesDriftBeforeCompile(t *testing.T) {
	cfg := synthetic()
	agent := cfg.Agent.(*fake)
	cfg.Watch = func(_ context.Context, e Event) {
		if (e == Event{"compiling", 2}) {
			agent.sources["skills"] = "moved\n"
		}
	}
	r, err := runIn(t, context.Background(), cfg)
	if err != nil || r.Outcome != Drifted || r.Reason != "skills" || len(r.Observed.Processes) != 1 {
		t.Errorf("%s (%s), %v", r.Outcome, r.Reason, err)
	}
	if got := states(r.Reproducible.Transitions); got != once+" drift_detected" {
		t.Errorf("states: %s", got)
	}
}

func TestRefusedInputs(t *testing.T) {
	for name, spoil := range map[string]func(*Config){
		"query for another agent": func(c *Config) { c.Query.Agent = "bob" },
		"no program":              func(c *Config) { c.Runtime.Program += ".absent" },
		"canonical view": func(c *Config) {
			f := c.Agent.(*fake)
			f.view = []byte(strings.Replace(string(f.view), `"label":"synthetic_noncanonical_fixture"`, `"label":"canonical"`, 1))
		},
		"canonical row": func(c *Config) {
			f := c.Agent.(*fake)
			f.view = []byte(strings.Replace(string(f.view), `"source_mode":"synthetic_noncanonical_fixture"`, `"source_mode":"canonical"`, 1))
		},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := synthetic()
			spoil(&cfg)
			r, err := runIn(t, context.Background(), cfg)
			if err == nil || r.Outcome != Refused || r.Reason != "inputs_refused" || len(r.Observed.Processes) != 0 || len(r.Reproducible.Transitions) != 0 {
				t.Errorf("%s (%s), %v", r.Outcome, r.Reason, err)
			}
		})
	}
}

func TestParseInjection(t *testing.T) {
	for text, want := range map[string]*Injection{
		"skills": {"skills", 2}, "skills@first": {"skills", 1}, "skills@second": {"skills", 2},
		"compiled-profile/SOUL.md@first": {"compiled-profile/SOUL.md", 1},
		"":                               nil, "@first": nil, "skills@third": nil, "skills@": nil,
		"weather": nil, "answer": nil, "compiled-profile/": nil, "compiled-profile/../../other": nil, "compiled-profile//etc/passwd": nil,
	} {
		if got, err := ParseInjection(text); !reflect.DeepEqual(got, want) || (err == nil) != (want != nil) {
			t.Errorf("%q: %+v, %v", text, got, err)
		}
	}
}

// An injection that nothing noticed is no restart.
func TestInjectionNotDetected(t *testing.T) {
	cfg := synthetic()
	cfg.Agent = deaf{cfg.Agent}
	cfg.Inject = &Injection{"skills", 2}
	r, err := runIn(t, context.Background(), cfg)
	if err == nil || r.Outcome != Refused || r.Reason != "drift_not_detected" || r.Tier != T1 || r.Reproducible.Answer != nil {
		t.Errorf("%s (%s), %v", r.Outcome, r.Reason, err)
	}
}

type deaf struct{ Agent }

func (deaf) Tamper(string) error { return nil }

// Each lie, with the digests that follow from it made right again, is refused.
func TestVerifyReceiptRefusesClaims(t *testing.T) {
	good, err := runIn(t, context.Background(), synthetic())
	if err != nil {
		t.Fatal(err)
	}
	cfg := synthetic()
	cfg.Inject = &Injection{"skills", 2}
	drifted, err := runIn(t, context.Background(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	x := canon.Sum([]byte("x"))
	for name, tc := range map[string]struct {
		from *Receipt
		lie  func(r *Receipt)
		key  string
	}{
		"drift as T2": {drifted, func(r *Receipt) {
			r.Outcome, r.Reason = Reproduced, ""
			r.Tier, r.Reproducible.TierBasis, r.Reproducible.ClaimCeiling = standing(Reproduced)
			r.GoalTierSatisfied = true
		}, "/reproducible/transitions"},
		"tier alone":                  {drifted, func(r *Receipt) { r.Tier, r.GoalTierSatisfied = T2, true }, "/tier"},
		"goal alone":                  {drifted, func(r *Receipt) { r.GoalTierSatisfied = true }, "/goal_tier_satisfied"},
		"wider claims":                {good, func(r *Receipt) { r.Reproducible.ClaimCeiling.Excludes = r.Reproducible.ClaimCeiling.Excludes[1:] }, "/reproducible/claim_ceiling"},
		"a third claim":               {good, func(r *Receipt) { r.Reproducible.ClaimCeiling.Proves[0] = "everything" }, "/reproducible/claim_ceiling"},
		"T3":                          {good, func(r *Receipt) { r.Tier = "T3_vps" }, "/tier"},
		"canonical":                   {good, func(r *Receipt) { r.Reproducible.Identity.Label = "canonical" }, "/reproducible/identity/label"},
		"one process":                 {good, func(r *Receipt) { r.Observed.Processes = r.Observed.Processes[:1] }, "/observed/processes"},
		"no process":                  {good, func(r *Receipt) { r.Observed.Processes = nil }, "/observed/processes"},
		"same process twice":          {good, func(r *Receipt) { r.Observed.Processes[1].Process = r.Observed.Processes[0].Process }, "/observed/processes/1"},
		"shared session":              {good, func(r *Receipt) { r.Observed.Processes[1].Process.Session = r.Observed.Processes[0].Process.PID }, "/observed/processes/1"},
		"guardian as process":         {good, func(r *Receipt) { r.Observed.Guardian = r.Observed.Processes[1].Process }, "/observed/guardian"},
		"left process":                {good, func(r *Receipt) { r.Observed.Processes[0].Sweep.Left = 1 }, "/observed/processes/0"},
		"not searched":                {good, func(r *Receipt) { r.Observed.Processes[0].Sweep.Scans = 0 }, "/observed/processes/0"},
		"crashed":                     {good, func(r *Receipt) { r.Observed.Processes[0].Exit.Code = 1 }, "/observed/processes/0"},
		"not looked":                  {good, func(r *Receipt) { r.Observed.Cleanup.Absence.Scanned = 0 }, "/observed/cleanup"},
		"folder left":                 {good, func(r *Receipt) { r.Observed.Cleanup.FolderRemoved = false }, "/observed/cleanup"},
		"profile left":                {good, func(r *Receipt) { r.Observed.Cleanup.ProfilesRemoved = 1 }, "/observed/cleanup/profiles_removed"},
		"ended before it began":       {good, func(r *Receipt) { r.Observed.FinishedAt = "2001-01-01T00:00:00Z" }, "/observed/finished_at"},
		"no guardian":                 {good, func(r *Receipt) { r.Observed.Guardian.PID = 0 }, "/observed/guardian"},
		"guardian in another session": {good, func(r *Receipt) { p := r.Observed.Processes[0].Process; p.Session++; r.Observed.Guardian = p }, "/observed/processes/0"},
		"silent":                      {good, func(r *Receipt) { r.Observed.Processes[0].StdoutBytes = 0 }, "/observed/processes/0"},
		"drift of nothing":            {drifted, func(r *Receipt) { r.Reproducible.Drift[0].Actual = r.Reproducible.Drift[0].Expected }, "/reproducible/drift/0"},
		"no time":                     {good, func(r *Receipt) { r.Observed.StartedAt = "today" }, "/observed/finished_at"},
		"other answer":                {good, func(r *Receipt) { r.Reproducible.Answer.Statements[0].Text = "I rule." }, "/reproducible/answer"},
		"other provenance":            {good, func(r *Receipt) { r.Reproducible.Answer.Statements[0].Rank = 9 }, "/reproducible/answer"},
		"no answer":                   {good, func(r *Receipt) { r.Reproducible.Answer = nil }, "/reproducible/answer"},
		"other query":                 {good, func(r *Receipt) { r.Reproducible.Query.Document.Question = "?" }, "/reproducible/query/sha256"},
		"other runtime":               {good, func(r *Receipt) { r.Reproducible.Starts[1].RuntimeSHA256 = x }, "/reproducible/starts/1"},
		"other manifest":              {good, func(r *Receipt) { r.Reproducible.Identity.ManifestSHA256 = x }, "/reproducible/transitions"},
		"unequal":                     {good, func(r *Receipt) { r.Reproducible.Equal.Answer = false }, "/reproducible/equal"},
		"a start less":                {good, func(r *Receipt) { r.Reproducible.Starts = r.Reproducible.Starts[:1] }, "/reproducible/starts"},
		"skipped verification": {good, func(r *Receipt) {
			r.Reproducible.Transitions = append(r.Reproducible.Transitions[:2:2], r.Reproducible.Transitions[3:]...)
		}, "/reproducible/transitions"},
		"evidence removed":           {good, func(r *Receipt) { delete(r.Reproducible.Transitions[0].Evidence, evIdentity) }, "/reproducible/transitions"},
		"evidence changed":           {good, func(r *Receipt) { r.Reproducible.Transitions[3].Evidence[evAnswer] = x }, "/reproducible/starts/0"},
		"no transitions":             {good, func(r *Receipt) { r.Reproducible.Transitions = nil }, "/reproducible/starts"},
		"drift forgotten":            {drifted, func(r *Receipt) { r.Reproducible.Drift, r.Reproducible.DriftTotal = nil, 0 }, "/reproducible/drift"},
		"drift renamed":              {drifted, func(r *Receipt) { r.Reproducible.Drift[0].Path = "elsewhere" }, "/reproducible/drift"},
		"drift answered":             {drifted, func(r *Receipt) { r.Reproducible.Answer = good.Reproducible.Answer }, "/reproducible/answer"},
		"restart after an injection": {good, func(r *Receipt) { r.Reproducible.Injected = &Injection{"skills", 2} }, "/reproducible/injected"},
		"drift of the weather": {drifted, func(r *Receipt) {
			p := &r.Reproducible
			p.Drift[0].Surface, r.Reason = "weather", "weather"
			p.Transitions[len(p.Transitions)-1].Evidence[evDrift], _ = canon.DigestOf(p.Drift)
		}, "/reproducible/drift/0/surface"},
		"drift excused": {drifted, func(r *Receipt) { r.Reason = "weather" }, "/reason"},
		"answer after drift": {drifted, func(r *Receipt) {
			r.Observed.Processes = append(r.Observed.Processes, good.Observed.Processes[1])
		}, "/observed/processes"},
		"unsealed": {good, func(r *Receipt) { r.ReproducibleSHA256 = x }, "/reproducible_sha256"},
	} {
		t.Run(name, func(t *testing.T) {
			lying := clone(t, tc.from)
			tc.lie(lying)
			if name != "unsealed" {
				lying.ReproducibleSHA256, _ = canon.DigestOf(lying.Reproducible)
			}
			err := VerifyReceipt(lying)
			wrong, ok := err.(*Inconsistent)
			if !ok || wrong.Key != tc.key {
				t.Errorf("%v; want a complaint at %s", err, tc.key)
			}
			if err := VerifyReceipt(clone(t, tc.from)); err != nil {
				t.Errorf("control: the true receipt is refused: %v", err)
			}
		})
	}
	data, err := good.Encode()
	if err != nil {
		t.Fatal(err)
	}
	if again, err := DecodeReceipt("receipt.json", data); err != nil || !reflect.DeepEqual(again, good) {
		t.Errorf("a receipt does not survive its file: %v", err)
	}
}

func clone(t *testing.T, r *Receipt) *Receipt {
	t.Helper()
	data, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	var c Receipt
	if err := json.Unmarshal(data, &c); err != nil {
		t.Fatal(err)
	}
	return &c
}

package execlog_test

import (
	"os"
	"slices"
	"strings"
	"testing"

	"selfsame.dev/selfsame/execlog"
	"selfsame.dev/selfsame/internal/canon"
	"selfsame.dev/selfsame/schemas"
)

// open is what a test of logs without secrets gives.
var open = execlog.Secrets{Value: func(_, _ string) bool { return false }, File: func(string) bool { return false }}

// compareLogs compares two logs, with or without a listing of modes for each.
func compareLogs(t *testing.T, a, b string, modes ...execlog.Modes) *execlog.Comparison {
	t.Helper()
	var sources [2]execlog.Source
	for i, name := range []string{a, b} {
		file, err := os.Open("testdata/logs/" + name)
		if err != nil {
			t.Fatal(err)
		}
		defer file.Close()
		sources[i] = execlog.Source{Name: name, Reader: file}
		if len(modes) > 0 {
			sources[i].Modes = modes[i]
		}
	}
	c, err := execlog.Compare(sources[0], sources[1], open, execlog.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	for name, side := range map[string]execlog.Side{a: c.A, b: c.B} {
		if data, err := os.ReadFile("testdata/logs/" + name); err != nil || canon.Sum(data) != side.SHA256 || side.Name != name {
			t.Errorf("%s: %+v, %v", name, side, err)
		}
	}
	data, err := canon.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	if err := schemas.Validate("comparison", execlog.Format, data); err != nil {
		t.Errorf("%s, %s: %v", a, b, err)
	}
	return c
}

// Logs of a real Bazel (testdata/make.sh), the second of each pair with one thing changed: the only cause that is
// named is that thing, in whatever form the logs are.
func TestPlanted(t *testing.T) {
	const compile, follow = "Compile //:compile", "//:link //:pack"
	for _, tc := range []struct {
		name, a     string
		kind        execlog.Kind
		subject     string
		valueA      string // of A, or what it begins with
		valueB      string
		origin      string
		next        string
		in          string // the first action
		actions     int    // with this cause
		consequence string // labels of the actions that follow, in their order
	}{
		{"environment", "base", execlog.Environment, "GREETING", "hello", "hallo", "--action_env=GREETING", "pin it in .bazelrc", compile, 6, ""},
		{"path", "base", execlog.AbsolutePath, "-I", "/home/alice", "/home/bob/work", "command line", "relative to the execution root", compile, 5, ""},
		{"stamp-b", "stamp-a", execlog.StatusFile, "bazel-out/volatile-status.txt", "sha256 ", "sha256 ", "workspace status", "--nostamp", "Stamp //:stamped", 1, "//:after_stamped"},
		{"tool", "base", execlog.ToolFile, "tool.sh", "sha256 f3dd20f9f93dc4974ac65d66eb5cf5fcd92080a22c40c8b3b5e3224da44ac619, 27 bytes", "sha256 ", "tool that the action runs", "one tool on both", "Genrule //:pack", 1, ""},
		{"input", "base", execlog.SourceFile, "input.txt", "sha256 b640e840b19d378660b32fb51ae18d67dccb4a8596a29e7bd72c1b2ae5928f41, 6 bytes", "sha256 da8867e248dad02219f100ad2730e8422c04ea09d78b2808d6768c1878c6bc4f, 16 bytes", "source file", "git log -1 -- input.txt", compile, 1, follow},
		{"mapped-input", "mapped", execlog.SourceFile, "input.txt", "sha256 ", "sha256 ", "source file", "git log", compile, 1, follow},
		{"external", "base", execlog.ExternalFile, "external/dep~/data.txt", "sha256 ", "sha256 ", "@@dep~", "MODULE.bazel.lock", compile, 1, follow},
		{"runfiles", "base", execlog.ToolFile, "data.txt", "sha256 ", "sha256 ", "source file", "one tool on both", "Run //:run", 1, ""},
		{"folder", "base", execlog.SourceFile, "other.txt", "sha256 ", "sha256 ", "source file", "git log", "Unpack //:folder", 1, follow},
		{"mode", "base", execlog.Unrecorded, "Mode //:mode", bin("mode.txt") + ": sha256 ", bin("mode.txt") + ": sha256 ", "the outputs are not", "the mode of a source file", "Mode //:mode", 1, ""},
		{"random-b", "random-a", execlog.Unrecorded, "Random //:random", bin("random.txt") + ": sha256 ", bin("random.txt") + ": sha256 ", "the outputs are not", "random numbers", "Random //:random", 1, "//:after_random"},
	} {
		for _, forms := range [][2]string{{".compact.zst", ".compact.zst"}, {".json", ".json"}, {".binary", ".json"}, {".compact.zst", ".json"}, {".json", ".compact.zst"}} {
			a, b := tc.a+forms[0], tc.name+forms[1]
			if !exists(a) || !exists(b) {
				continue
			}
			c := compareLogs(t, a, b)
			if c.Equal || len(c.Causes) != 1 {
				t.Errorf("%s, %s: %s", a, b, c.Text())
				continue
			}
			cause := c.Causes[0]
			first := c.Actions[cause.Actions[0]]
			if cause.Kind != tc.kind || cause.Subject != tc.subject || !strings.HasPrefix(cause.A, tc.valueA) || !strings.HasPrefix(cause.B, tc.valueB) || cause.A == cause.B ||
				!strings.Contains(cause.Origin, tc.origin) || !strings.Contains(cause.Next, tc.next) || first.Mnemonic+" "+first.Label != tc.in || len(cause.Actions) != tc.actions {
				t.Errorf("%s, %s: %+v, first %+v", a, b, cause, first)
			}
			var follow []string
			for i, action := range c.Actions {
				if action.Cause {
					continue
				}
				follow = append(follow, action.Label)
				if len(action.Because) == 0 || slices.ContainsFunc(action.Because, func(j int) bool { return j >= i || c.Actions[j].Depth >= action.Depth }) {
					t.Errorf("%s, %s: %+v comes before what it follows from", a, b, action)
				}
			}
			if got := strings.Join(follow, " "); got != tc.consequence || cause.Consequences != len(follow) || c.Counts.Consequences != len(follow) {
				t.Errorf("%s, %s: %q follow, counted %d", a, b, got, cause.Consequences)
			}
			// The other way round the same is found.
			back := compareLogs(t, b, a)
			if len(back.Causes) != 1 || back.Causes[0].A != cause.B || back.Causes[0].B != cause.A || back.Causes[0].Subject != cause.Subject {
				t.Errorf("%s, %s: %s", b, a, back.Text())
			}
			for _, want := range []string{tc.subject, cause.Next, "in    " + tc.in} {
				if text := c.Text(); !strings.Contains(text, want) {
					t.Errorf("%s, %s: no %q in %s", a, b, want, text)
				}
			}
		}
	}
}

// With listings of the modes, which no log records, a planted mode is the only cause, either way round.
func TestPlantedMode(t *testing.T) {
	const a, b, in = "base.compact.zst", "mode.compact.zst", "Mode //:mode"
	listing := func(name string) execlog.Modes {
		file, err := os.Open("testdata/logs/" + name)
		if err != nil {
			t.Fatal(err)
		}
		defer file.Close()
		modes, err := execlog.ReadModes(name, file)
		if err != nil {
			t.Fatal(err)
		}
		return modes
	}
	base, changed := listing("base.modes"), listing("mode.modes")
	for _, tc := range []struct {
		a, b           string
		modesA, modesB execlog.Modes
		valueA, valueB string
	}{{a, b, base, changed, "mode 0644", "mode 0700"}, {b, a, changed, base, "mode 0700", "mode 0644"}} {
		c := compareLogs(t, tc.a, tc.b, tc.modesA, tc.modesB)
		if len(c.Causes) != 1 || c.Counts != (execlog.Counts{Equal: 5, Causes: 1}) {
			t.Fatalf("%s, %s: %s", tc.a, tc.b, c.Text())
		}
		cause, first := c.Causes[0], c.Actions[c.Causes[0].Actions[0]]
		if cause.Kind != execlog.SourceMode || cause.Subject != "mode.txt" || cause.A != tc.valueA || cause.B != tc.valueB || cause.Change != "changed" || len(cause.Suspects) > 0 || first.Mnemonic+" "+first.Label != in ||
			!strings.Contains(cause.Origin, "source file of the workspace; no log records modes") || !strings.Contains(cause.Next, "git ls-files -s mode.txt") {
			t.Errorf("%s, %s: %+v, first %+v", tc.a, tc.b, cause, first)
		}
		if text := c.Text(); !strings.Contains(text, "1. source mode: mode.txt\n   A     "+tc.valueA+"\n   B     "+tc.valueB+"\n") {
			t.Errorf("%s, %s: %s", tc.a, tc.b, text)
		}
	}
	// The controls: what equal listings say, and one that lacks the file.
	c := compareLogs(t, a, b, base, base)
	if len(c.Causes) != 1 || c.Causes[0].Kind != execlog.Unrecorded || len(c.Causes[0].Suspects) > 0 || strings.Contains(c.Causes[0].Next, "source file") {
		t.Errorf("equal listings: %s", c.Text())
	}
	delete(changed, "mode.txt")
	c = compareLogs(t, a, b, base, changed)
	if len(c.Causes) != 1 || c.Causes[0].Kind != execlog.Unrecorded || !slices.Equal(c.Causes[0].Suspects, []string{"mode.txt"}) {
		t.Errorf("listing without the file: %s", c.Text())
	}
	if c := compareLogs(t, a, "again.compact.zst", base, listing("mode.modes")); !c.Equal {
		t.Errorf("equal logs: %s", c.Text())
	}
}

func exists(name string) bool {
	_, err := os.Stat("testdata/logs/" + name)
	return err == nil
}

func bin(name string) string { return "bazel-out/k8-fastbuild/bin/" + name }

// The controls: two builds of the same, in every form, are equal, in -c opt too.
func TestEqual(t *testing.T) {
	for _, pair := range [][2]string{
		{"base.compact.zst", "again.compact.zst"}, {"base.json", "base.binary"}, {"base.compact.zst", "base.json"}, {"base.binary", "base.compact.zst"}, {"base.compact.zst", "opt.compact.zst"}, {"mapped.compact.zst", "mapped.json"},
	} {
		c := compareLogs(t, pair[0], pair[1])
		if !c.Equal || len(c.Actions) != 0 || c.Counts.Equal != 6 || !strings.HasSuffix(c.Text(), "equal\n") {
			t.Errorf("%v: %s", pair, c.Text())
		}
		if renamed := pair[1] == "opt.compact.zst"; renamed != (len(c.Configurations) == 1 && c.Configurations[0] == execlog.Renamed{A: "k8-fastbuild", B: "k8-opt"} && strings.Contains(c.Text(), "note: the output folder k8-opt")) {
			t.Errorf("%v: %+v", pair, c.Configurations)
		}
	}
}

// What only one side built.
func TestFewer(t *testing.T) {
	for _, form := range []string{".compact.zst", ".json"} {
		c := compareLogs(t, "base"+form, "fewer"+form)
		if len(c.Causes) != 2 || c.Causes[0].Kind != execlog.OnlyInA || c.Causes[0].Subject != "Genrule" || c.Causes[1].Subject != "Run" || c.Counts != (execlog.Counts{Equal: 4, OnlyInA: 2}) || c.Actions[0].Side != "a" {
			t.Errorf("%s", c.Text())
		}
		if back := compareLogs(t, "fewer"+form, "base"+form); len(back.Causes) != 2 || back.Causes[0].Kind != execlog.OnlyInB || back.Counts.OnlyInB != 2 {
			t.Errorf("%s", back.Text())
		}
	}
}

// The logs hold nothing of the machine that made them.
func TestLogsAreNeutral(t *testing.T) {
	files, err := os.ReadDir("testdata/logs")
	if err != nil || len(files) < 20 {
		t.Fatalf("%d logs, %v", len(files), err)
	}
	for _, f := range files {
		if strings.HasSuffix(f.Name(), ".zst") {
			continue // of the same builds
		}
		data, err := os.ReadFile("testdata/logs/" + f.Name())
		if err != nil {
			t.Fatal(err)
		}
		for _, part := range []string{"/root", "/tmp", "/var/", "execroot", "sandbox/"} {
			if strings.Contains(string(data), part) {
				t.Errorf("%s holds %s", f.Name(), part)
			}
		}
	}
}

package execlog

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"selfsame.dev/selfsame/internal/canon"
)

// pair compares two logs that write makes, once for each side.
func pair(t *testing.T, write func(m *maker, b bool)) *Comparison {
	t.Helper()
	var logs [2][]byte
	for i := range logs {
		m := newMaker()
		write(m, i == 1)
		logs[i] = m.out
	}
	return compareBytes(t, logs[0], logs[1])
}

func pick[T any](b bool, x, y T) T {
	if b {
		return y
	}
	return x
}

// What a real Bazel does not easily show: each difference alone, and the one cause it has.
func TestKinds(t *testing.T) {
	step := func(edit func(m *maker, b bool, a *act)) func(*maker, bool) {
		return func(m *maker, b bool) {
			a := act{label: "//:x", args: []string{"cc", "in.txt"}, out: bin("x"), made: "same"}
			edit(m, b, &a)
			m.act(a)
		}
	}
	for _, tc := range []struct {
		name, subject, a, b string
		kind                Kind
		change              string
		next                string
		write               func(*maker, bool)
	}{
		{"link for a file", "f", "sha256 7830", "link to g", FileType, changed, "core.symlinks", step(func(m *maker, b bool, a *act) {
			a.inputs = pick(b, m.file("f", "x0"), m.link("f", "g"))
		})},
		{"other target of a link", "f", "link to h", "link to g", SourceFile, changed, "", step(func(m *maker, b bool, a *act) { a.inputs = m.link("f", pick(b, "h", "g")) })},
		{"folder for a file", "f", "sha256 7830", "", FileType, missing, "same kind of file", step(func(m *maker, b bool, a *act) {
			a.inputs = pick(b, m.file("f", "x0"), m.folder("f", "empty", ""))
		})},
		{"only in B", "f", "", "sha256 7830", SourceFile, surplus, "git log", step(func(m *maker, b bool, a *act) {
			files := []uint64{m.file("g", "g")}
			if b {
				files = append(files, m.file("f", "x0"))
			}
			a.inputs = m.set(files)
		})},
		{"empty file", "f", "empty file", "sha256 7830", SourceFile, changed, "", step(func(m *maker, b bool, a *act) { a.inputs = m.file("f", pick(b, "", "x0")) })},
		{"file of the host", "/usr/include/z.h", "sha256", "sha256", HostFile, changed, "pinned repository", step(func(m *maker, b bool, a *act) { a.inputs = m.file("/usr/include/z.h", pick(b, "1", "2")) })},
		{"written by Bazel", bin("x.params"), "sha256", "sha256", GeneratedFile, changed, "bazel aquery", step(func(m *maker, b bool, a *act) { a.inputs = m.file(bin("x.params"), pick(b, "1", "2")) })},
		{"through a link that Bazel makes", "real.txt", "sha256", "sha256", SourceFile, changed, "git log -1 -- real.txt", step(func(m *maker, b bool, a *act) {
			m.entry(msg(entryAction, str(1, bin("link")), str(2, bin("link2"))))
			m.entry(msg(entryAction, str(1, "real.txt"), str(2, bin("link"))))
			a.inputs = m.file(bin("link2"), pick(b, "1", "2"))
		})},
		{"stable status", "bazel-out/stable-status.txt", "sha256", "sha256", StatusFile, changed, "--nostamp", step(func(m *maker, b bool, a *act) { a.inputs = m.file("bazel-out/stable-status.txt", pick(b, "1", "2")) })},
		{"platform", "OSFamily", "linux", "macos", Platform, changed, "execution platform", step(func(m *maker, b bool, a *act) { a.platform = []string{"OSFamily", pick(b, "linux", "macos")} })},
		{"remotable", "may run remotely", "false", "true", Execution, changed, "--modify_execution_info", step(func(m *maker, b bool, a *act) { a.remotable = b })},
		{"exit", "Step //:x", "exit 0", "exit 1 NON_ZERO_EXIT", ExitStatus, changed, "where it failed", step(func(m *maker, b bool, a *act) {
			if b {
				a.exit, a.status, a.made = 1, "NON_ZERO_EXIT", "-"
				a.out = bin("x")
			}
		})},
		{"option", "argument", "-O0", "-O2", Argument, changed, "bazel aquery", step(func(m *maker, b bool, a *act) { a.args = []string{"cc", pick(b, "-O0", "-O2"), "x"} })},
		{"value of an option", "--mode", "fast", "slow", Argument, changed, "", step(func(m *maker, b bool, a *act) { a.args = []string{"cc", "--mode=" + pick(b, "fast", "slow")} })},
		{"word of a command", "-c", "1.2", "1.3", Argument, changed, "", step(func(m *maker, b bool, a *act) {
			a.args = []string{"sh", "-c", "echo " + pick(b, "1.2", "1.3") + " >out"}
		})},
		{"more arguments", "-g", "", "-g", Argument, surplus, "", step(func(m *maker, b bool, a *act) {
			if a.args = []string{"cc", "x", "x"}; b {
				a.args = []string{"cc", "-g", "x", "x"}
			}
		})},
		{"path of the machine", "--sysroot", "/home/a", "/home/b", AbsolutePath, changed, "execution root", step(func(m *maker, b bool, a *act) {
			a.args = []string{"cc", "--sysroot=" + pick(b, "/home/a", "/home/b") + "/ws/root"}
		})},
		{"PATH", "PATH", "/bin", "/bin:/opt", Environment, changed, "--incompatible_strict_action_env", step(func(m *maker, b bool, a *act) { a.env = []string{"PATH", pick(b, "/bin", "/bin:/opt")} })},
		{"only set in A", "X", "1", "", Environment, missing, "--action_env=X", step(func(m *maker, b bool, a *act) {
			if a.env = []string{"X", "1", "A", "2"}; b {
				a.env = a.env[2:]
			}
		})},
		{"of a test", "X", "1", "2", Environment, changed, "--test_env=X", step(func(m *maker, b bool, a *act) { a.mnemonic, a.env = "TestRunner", []string{"X", pick(b, "1", "2")} })},
		{"of a tool's build", "X", "1", "2", Environment, changed, "--host_action_env=X", step(func(m *maker, b bool, a *act) {
			a.out, a.env = "bazel-out/k8-opt-exec/bin/x", []string{"X", pick(b, "1", "2")}
		})},
		{"stamp that is not logged", "Step //:x", bin("x") + ": sha256", bin("x") + ": sha256", Unrecorded, changed, "it reads the workspace status: build with --nostamp", step(func(m *maker, b bool, a *act) {
			a.inputs, a.made = m.file("bazel-out/volatile-status.txt", "constant"), pick(b, "1", "2")
		})},
		{"log of a test", "TestRunner //:x", bin("x") + ": sha256", bin("x") + ": sha256", Unrecorded, changed, "logs of tests hold times", step(func(m *maker, b bool, a *act) { a.mnemonic, a.made = "TestRunner", pick(b, "1", "2") })},
		{"only in B", "Extra", "", "ran", OnlyInB, surplus, "bazel clean", func(m *maker, b bool) {
			if m.act(act{label: "//:x", out: bin("x")}); b {
				m.act(act{label: "//:y", mnemonic: "Extra", out: bin("y"), made: "y"})
			}
		}},
		{"link that Bazel makes", bin("l"), "link to one", "link to two", Symlink, changed, "toolchains", func(m *maker, b bool) {
			m.entry(msg(entryAction, str(1, pick(b, "one", "two")), str(2, bin("l")), str(3, "//:l"), str(4, "Symlink")))
			m.act(act{label: "//:x", out: bin("x")})
		}},
		{"more outputs", bin("y"), "", "declared", Declared, surplus, "attributes", step(func(m *maker, b bool, a *act) {
			if b {
				a.outputs = []uint64{m.file(bin("y"), "y")}
			}
		})},
	} {
		c := pair(t, tc.write)
		if len(c.Causes) != 1 {
			t.Errorf("%s: %s", tc.name, c.Text())
			continue
		}
		got := c.Causes[0]
		if got.Kind != tc.kind || got.Subject != tc.subject || got.Change != tc.change || !strings.HasPrefix(got.A, tc.a) || !strings.HasPrefix(got.B, tc.b) || (tc.a == "") != (got.A == "") || !strings.Contains(got.Next, tc.next) || got.Origin == "" || got.Next == "" {
			t.Errorf("%s: %+v", tc.name, got)
		}
		// The control: either side with itself is equal.
		for _, b := range []bool{false, true} {
			if c := pair(t, func(m *maker, _ bool) { tc.write(m, b) }); !c.Equal {
				t.Errorf("%s: control: %s", tc.name, c.Text())
			}
		}
	}
}

// What is no difference: caches and runners, order of variables and inputs, structure of sets, ids.
func TestNoDifference(t *testing.T) {
	c := pair(t, func(m *maker, b bool) {
		if b {
			m.file("unused", "shifts all ids")
		}
		x, y, z := m.file("x", "1"), m.file("y", "2"), m.file("z", "3")
		shared := m.set([]uint64{x, y})
		empty := m.file("empty", "")
		if b { // the digest of an empty file may be left out, or not
			empty = m.put(entryFile, str(1, "empty"), msg(2, str(1, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855")))
		}
		inputs := m.set([]uint64{z, empty}, shared)
		env := []string{"A", "1", "B", "2"}
		if b {
			inputs = m.set([]uint64{y, x, y}, m.set([]uint64{z, x}), m.set([]uint64{x, y, z, empty}))
			env = []string{"B", "2", "A", "1"}
		}
		m.act(act{label: pick(b, "//:x", "@//:x"), env: env, inputs: inputs, runner: pick(b, "linux-sandbox", "remote cache hit"), out: bin("x"), made: "x"})
	})
	if !c.Equal || c.Counts.Equal != 1 || c.A.CacheHits != 0 || c.B.CacheHits != 1 {
		t.Errorf("%s", c.Text())
	}
	// The control: one file less in the same structure.
	c = pair(t, func(m *maker, b bool) {
		x, y, z := m.file("x", "1"), m.file("y", "2"), m.file("z", "3")
		inputs := m.set([]uint64{z}, m.set([]uint64{x, y}))
		if b {
			inputs = m.set([]uint64{y}, m.set([]uint64{x, y}), m.set([]uint64{y, x}))
		}
		m.act(act{label: "//:x", inputs: inputs, out: bin("x"), made: "x"})
	})
	if len(c.Causes) != 1 || c.Causes[0].Subject != "z" || c.Causes[0].Change != missing {
		t.Errorf("control: %s", c.Text())
	}
}

// A chain that the logs hold in the wrong order: each action is explained by the one before it, and a second cause
// far down stays one.
func TestCausalOrder(t *testing.T) {
	c := pair(t, func(m *maker, b bool) {
		const n = 60
		for i := n - 1; i >= 0; i-- {
			a := act{label: text(i, "//:step"), out: bin(text(i, "out")), made: pick(b, "a", "b") + text(i, "")}
			inputs := []uint64{m.file("always", "the same")}
			if i == 0 {
				inputs = append(inputs, m.file("root.txt", pick(b, "old", "new")))
			} else {
				inputs = append(inputs, m.file(bin(text(i-1, "out")), pick(b, "a", "b")+text(i-1, "")))
			}
			if i == 20 {
				a.env = []string{"LATE", pick(b, "1", "2")}
			}
			a.inputs = m.set(inputs)
			m.act(a)
		}
	})
	if len(c.Causes) != 2 || c.Causes[0].Subject != "root.txt" || c.Causes[1].Subject != "LATE" || c.Causes[0].Depth != 0 || c.Causes[1].Depth != 20 || c.Causes[0].Consequences != 19 || c.Causes[1].Consequences != 39 {
		t.Fatalf("%s", c.Text())
	}
	for i, a := range c.Actions {
		if a.Label != text(i, "//:step") || a.Depth != i || i > 0 && !slices.Equal(a.Because, []int{i - 1}) || a.Cause != (i == 0 || i == 20) {
			t.Errorf("%d: %+v", i, a)
		}
	}
	if c.Counts != (Counts{Causes: 2, Consequences: 58}) {
		t.Errorf("%+v", c.Counts)
	}
}

// An input that differs is no consequence where its maker made the same, or made nothing that is logged.
func TestMakerThatDoesNotDiffer(t *testing.T) {
	c := pair(t, func(m *maker, b bool) {
		m.act(act{label: "//:maker", out: bin("m"), made: "same"})
		m.act(act{label: "//:user", inputs: m.file(bin("m"), pick(b, "same", "written over")), out: bin("u"), made: pick(b, "1", "2")})
	})
	if len(c.Causes) != 1 || c.Causes[0].Kind != GeneratedFile || !strings.Contains(c.Causes[0].Origin, "output of Step //:maker") || c.Counts.Equal != 1 {
		t.Errorf("%s", c.Text())
	}
}

// Logs that no build can write still end: actions that wait for each other.
func TestCycle(t *testing.T) {
	c := pair(t, func(m *maker, b bool) {
		m.act(act{label: "//:x", inputs: m.file(bin("y"), pick(b, "1", "2")), out: bin("x"), made: pick(b, "1", "2")})
		m.act(act{label: "//:y", inputs: m.file(bin("x"), pick(b, "1", "2")), out: bin("y"), made: pick(b, "1", "2")})
	})
	if c.Equal || len(c.Causes) != 1 || !strings.Contains(c.Causes[0].Origin, "wait for each other") {
		t.Errorf("%s", c.Text())
	}
}

// Attempts of one test, and actions that share a target and a mnemonic, meet their own.
func TestRepeated(t *testing.T) {
	c := pair(t, func(m *maker, b bool) {
		for i := range 3 {
			m.act(act{label: "//:t", mnemonic: "TestRunner", out: bin("t.log"), made: text(i, "attempt")})
		}
		for i := range 3 {
			j := pick(b, i, 2-i)
			m.act(act{label: "//:x", out: bin(text(j, "o")), made: text(j, "m")})
		}
		if b {
			m.act(act{label: "//:t", mnemonic: "TestRunner", out: bin("t.log"), made: "fourth"})
		}
	})
	if len(c.Causes) != 1 || c.Causes[0].Kind != OnlyInB || c.Counts.Equal != 6 {
		t.Errorf("%s", c.Text())
	}
}

// No value that may be a credential is shown, nor its digest (law I4); without a judge none is.
func TestSecrets(t *testing.T) {
	const key = "synthetic-0123456789"
	write := func(m *maker, b bool) {
		v := key + pick(b, "a", "b")
		m.act(act{label: "//:x", args: []string{"sh", "--token=" + v, "--password", v, "-p" + v, pick(b, "1", "2"), "-r" + key + pick(b, "=1", "=2")}, env: []string{"API_KEY", v, "PLAIN", pick(b, "1", "2"), "ONE_SIDE", pick(b, "none", v)},
			inputs: m.set([]uint64{m.file(".env", v)}), outputs: []uint64{m.file(bin(".env"), v)}, out: bin("x"), made: "x"})
		more := act{label: "//:y", args: []string{"x"}, out: bin("y"), made: "y"}
		if b {
			more.args = append(more.args, "-p"+v, "-q"+v+"=x")
		}
		m.act(more)
	}
	a, b := newMaker(), newMaker()
	write(a, false)
	write(b, true)
	judge := Secrets{
		Value: func(name, value string) bool { return strings.Contains(value, key) },
		File:  func(path string) bool { return strings.HasSuffix(path, ".env") },
	}
	for name, tc := range map[string]struct {
		secrets Secrets
		plain   bool
	}{"judged": {judge, true}, "no judge": {Secrets{}, false}, "control": {shown, true}} {
		c, err := Compare(Source{Name: "a", Reader: strings.NewReader(string(a.out))}, Source{Name: "b", Reader: strings.NewReader(string(b.out))}, tc.secrets, Limits{})
		if err != nil {
			t.Fatal(err)
		}
		data, err := canon.Marshal(c)
		if err != nil {
			t.Fatal(err)
		}
		all := string(data) + c.Text() + c.Summary()
		digest := fmt.Sprintf("%x", key)[:20]
		leaks := strings.Contains(all, key) || strings.Contains(all, digest)
		if leaks != (name == "control") {
			t.Errorf("%s: leaks %t: %s", name, leaks, all)
		}
		if name == "control" {
			continue
		}
		if i := slices.IndexFunc(c.Causes, func(c Cause) bool { return c.Subject == "API_KEY" }); i < 0 || !c.Causes[i].Withheld || !strings.Contains(all, "withheld: it may be a credential") {
			t.Errorf("%s: %s", name, all)
		}
		if i := slices.IndexFunc(c.Causes, func(c Cause) bool { return c.Subject == "PLAIN" }); i < 0 || (c.Causes[i].A == "1") != tc.plain {
			t.Errorf("%s: %s", name, all)
		}
	}
}

// Thousands of differences: the text stays short, the JSON form holds all.
func TestMany(t *testing.T) {
	c := pair(t, func(m *maker, b bool) {
		for i := range 3000 {
			m.act(act{label: text(i, "//:x"), inputs: m.file(text(i, "src/f"), pick(b, "1", "2")), out: bin(text(i, "x")), made: pick(b, "1", "2")})
			m.act(act{label: text(i, "//:y"), inputs: m.file(bin(text(i, "x")), pick(b, "1", "2")), out: bin(text(i, "y")), made: pick(b, "1", "2"), env: []string{"SAME", "1"}})
		}
	})
	text := c.Text()
	if lines := strings.Count(text, "\n"); lines > 150 || !strings.Contains(text, "and 2988 more causes (all of them: --json)") || !strings.Contains(text, "2988 source file, such as") || !strings.Contains(text, "and 2997 more (all of them: --json)") {
		t.Errorf("%d lines: %.3000s", lines, text)
	}
	if len(c.Causes) != 3000 || len(c.Actions) != 6000 || c.Counts.Consequences != 3000 {
		t.Errorf("%+v", c.Counts)
	}
	// One cause in many actions is one.
	c = pair(t, func(m *maker, b bool) {
		for i := range 3000 {
			m.act(act{label: "//:x", env: []string{"TMP", pick(b, "/a", "/b")}, args: []string{"-I" + pick(b, "/h/a", "/h/b") + "/w/" + fmt.Sprint(i)}, out: bin(fmt.Sprint(i)), made: "x"})
		}
	})
	if len(c.Causes) != 2 || len(c.Causes[0].Actions) != 3000 || len(c.Causes[1].Actions) != 3000 || strings.Count(c.Text(), "\n") > 40 {
		t.Errorf("%.3000s", c.Text())
	}
}

// A terminal shows no control characters of a log, and long values are cut around what differs.
func TestText(t *testing.T) {
	long := strings.Repeat("ä", 2000)
	c := pair(t, func(m *maker, b bool) {
		m.act(act{label: "//:\x1b[31mx", env: []string{"N\n", pick(b, "\xff1", "\xff2"), "LONG", long + pick(b, "one", "two") + long}, out: bin("x")})
	})
	text := c.Text()
	if strings.ContainsAny(text, "\x1b\xff") || strings.Contains(text, "N\n") || !strings.Contains(text, "one") || !strings.Contains(text, "two") || strings.Contains(text, strings.Repeat("ä", 400)) {
		t.Error(text)
	}
	if i := slices.IndexFunc(c.Causes, func(c Cause) bool { return c.Subject == "LONG" }); c.Causes[i].A != long+"one"+long {
		t.Error("the value is cut in JSON")
	}
}

package execlog

import (
	"bytes"
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"selfsame.dev/selfsame/internal/canon"
)

func TestReadModes(t *testing.T) {
	got, err := ReadModes("a.modes", strings.NewReader("644 a b.txt\n4755 bin/x\n0 0\n0700 .hidden\n644 ..twice/\xff\n"))
	if want := (Modes{"a b.txt": 0o644, "bin/x": 0o4755, "0": 0, ".hidden": 0o700, "..twice/\xff": 0o644}); err != nil || !maps.Equal(got, want) {
		t.Errorf("%v, %v", got, err)
	}
	for _, tc := range []struct{ name, listing, says string }{
		{"empty", "", "a.modes: is empty"},
		{"cut", "644 a\n644 b", "a.modes: line 2: the listing ends in the middle of a line"},
		{"empty line", "644 a\n\n644 b\n", "a.modes: line 2: begins with no mode"},
		{"no path", "644 \n", "a.modes: line 1: names no file"},
		{"mode alone", "644\n", "a.modes: line 1: names no file"},
		{"path alone", "a\n", "a.modes: line 1: begins with no mode"},
		{"space before", " 644 a\n", "a.modes: line 1: begins with no mode"},
		{"tab for a space", "644\ta\n", "a.modes: line 1: begins with no mode"},
		{"not octal", "648 a\n", "a.modes: line 1: begins with no mode"},
		{"sign", "+644 a\n", "a.modes: line 1: begins with no mode"},
		{"five digits", "00644 a\n", "a.modes: line 1: begins with no mode"},
		{"type of the file, too", "100644 a\n", "a.modes: line 1: begins with no mode"},
		{"letters", "-rw-r--r-- a\n", "a.modes: line 1: begins with no mode"},
		{"twice", "644 a\n644 b\n755 a\n", "a.modes: line 3: names a file that an earlier line names: a"},
		{"absolute", "644 /etc/passwd\n", "a.modes: line 1: names no file by its plain path in the workspace"},
		{"printed with %p", "644 ./a\n", "a.modes: line 1: names no file by its plain path"},
		{"above", "644 ..\n", "a.modes: line 1: names no file by its plain path"},
		{"out of the workspace", "644 ../a\n", "a.modes: line 1: names no file by its plain path"},
		{"out and in", "644 a/../b\n", "a.modes: line 1: names no file by its plain path"},
		{"empty element", "644 a//b\n", "a.modes: line 1: names no file by its plain path"},
		{"folder", "755 a/\n", "a.modes: line 1: names no file by its plain path"},
		{"carriage return", "644 a\r\n", "a.modes: line 1: names no file"},
		{"NUL", "644 a\x00b\n", "a.modes: line 1: names no file"},
		{"long line", "644 " + strings.Repeat("a/", 1<<12) + "\n", "a.modes: line 1: is longer than a path can be"},
	} {
		modes, err := ReadModes("a.modes", strings.NewReader(tc.listing))
		var input *canon.InputError
		if !errors.As(err, &input) || !strings.HasPrefix(err.Error(), tc.says) || !strings.HasSuffix(input.Fix, "at the top of the workspace, with: "+listModes) || modes != nil {
			t.Errorf("%s: %v, %v", tc.name, modes, err)
		}
	}
	const line = "644 a\n"
	if _, err := readModes(strings.NewReader(line), int64(len(line))); err != nil {
		t.Errorf("as long as it may be: %v", err)
	}
	var input *canon.InputError
	if _, err := readModes(strings.NewReader(line), int64(len(line))-1); !errors.As(err, &input) || !strings.Contains(input.Problem, "is longer than") || !strings.Contains(input.Fix, "./.git/*") {
		t.Errorf("longer: %v", err)
	}
	gone := errors.New("the disk is gone")
	if _, err := ReadModes("a.modes", iotest.ErrReader(gone)); !errors.Is(err, gone) || errors.As(err, &input) {
		t.Errorf("%v", err)
	}
}

// pairOfModes is pair, with listings.
func pairOfModes(t *testing.T, modesA, modesB Modes, write func(m *maker, b bool)) *Comparison {
	t.Helper()
	sources := [2]Source{{Name: "a", Modes: modesA}, {Name: "b", Modes: modesB}}
	for i := range sources {
		m := newMaker()
		write(m, i == 1)
		sources[i].Reader = bytes.NewReader(m.out)
	}
	c, err := Compare(sources[0], sources[1], shown, Limits{})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// Which files are named, of an action that reads some and makes another thing.
func TestSourceModes(t *testing.T) {
	files := func(m *maker) uint64 {
		return m.set([]uint64{m.file("src/x.sh", "x"), m.file("src/y.sh", "y"), m.link("src/l", "x.sh"), m.file("external/dep/z", "z"), m.file(bin("p.runfiles/_main/src/r.sh"), "r")})
	}
	all := Modes{"src/x.sh": 0o755, "src/y.sh": 0o644, "src/r.sh": 0o644}
	with := func(more Modes) Modes {
		out := maps.Clone(all)
		maps.Copy(out, more)
		return out
	}
	without := func(path string) Modes {
		out := maps.Clone(all)
		delete(out, path)
		return out
	}
	type found struct{ kind, subject, a, b, suspects string }
	const step = "Step //:x"
	for _, tc := range []struct {
		name string
		a, b Modes
		edit func(a *act, b bool)
		want []found
		says string // in the Next of the first
	}{
		{"no listing", nil, nil, nil, []found{{"unrecorded", step, "", "", "src/r.sh src/x.sh src/y.sh"}}, "--modes-a and --modes-b"},
		{"one listing", all, nil, nil, []found{{"unrecorded", step, "", "", "src/r.sh src/x.sh src/y.sh"}}, "--modes-a and --modes-b"},
		{"equal listings", all, all, nil, []found{{"unrecorded", step, "", "", ""}}, "the mode of a file that is not in both listings"},
		{"not in A", without("src/x.sh"), all, nil, []found{{"unrecorded", step, "", "", "src/x.sh"}}, "not in both listings"},
		{"not in B", all, without("src/y.sh"), nil, []found{{"unrecorded", step, "", "", "src/y.sh"}}, "not in both listings"},
		{"owner", all, with(Modes{"src/x.sh": 0o655}), nil, []found{{"source_mode", "src/x.sh", "mode 0755", "mode 0655", ""}}, "git ls-files -s src/x.sh"},
		{"group only", all, with(Modes{"src/y.sh": 0o664}), nil, []found{{"source_mode", "src/y.sh", "mode 0644", "mode 0664", ""}}, "umask"},
		{"special bit", with(Modes{"src/y.sh": 0o4644}), all, nil, []found{{"source_mode", "src/y.sh", "mode 4644", "mode 0644", ""}}, "core.fileMode"},
		{"in a tree of runfiles", all, with(Modes{"src/r.sh": 0}), nil, []found{{"source_mode", "src/r.sh", "mode 0644", "mode 0000", ""}}, "git ls-files -s src/r.sh"},
		{"several", all, with(Modes{"src/x.sh": 0o700, "src/y.sh": 0o600}), nil, []found{{"source_mode", "src/x.sh", "mode 0755", "mode 0700", ""}, {"source_mode", "src/y.sh", "mode 0644", "mode 0600", ""}}, "not deterministic"},
		{"one differs, one is not known", without("src/y.sh"), with(Modes{"src/x.sh": 0o700}), nil, []found{{"source_mode", "src/x.sh", "mode 0755", "mode 0700", "src/y.sh"}}, ""},
		{"not read by it", with(Modes{"other": 0o644, "external/dep/z": 0o644, "src/l": 0o777}), with(Modes{"other": 0o600, "external/dep/z": 0o755, "src/l": 0o644}), nil, []found{{"unrecorded", step, "", "", ""}}, ""},
		{"log of a test", all, with(Modes{"src/x.sh": 0o700}), func(a *act, b bool) { a.mnemonic = "TestRunner" }, []found{{"unrecorded", "TestRunner //:x", "", "", ""}}, "logs of tests hold times"},
		{"test that fails", all, with(Modes{"src/x.sh": 0o644}), func(a *act, b bool) { a.mnemonic, a.exit = "TestRunner", pick(b, uint64(0), 126) }, []found{{"source_mode", "src/x.sh", "mode 0755", "mode 0644", ""}}, ""},
		{"action that fails", all, with(Modes{"src/x.sh": 0o644}), func(a *act, b bool) { a.exit, a.made = pick(b, uint64(0), 126), pick(b, "1", "-") }, []found{{"source_mode", "src/x.sh", "mode 0755", "mode 0644", ""}}, ""},
		{"action that fails, with equal modes", all, all, func(a *act, b bool) { a.exit, a.made = pick(b, uint64(0), 126), pick(b, "1", "-") }, []found{{"exit_status", step, "", "", ""}}, ""},
		{"a recorded difference", all, with(Modes{"src/x.sh": 0o700}), func(a *act, b bool) { a.env = []string{"X", pick(b, "1", "2")} }, []found{{"environment", "X", "1", "2", ""}}, ""},
		{"the same outputs", all, with(Modes{"src/x.sh": 0o700}), func(a *act, b bool) { a.made = "same" }, nil, ""},
	} {
		c := pairOfModes(t, tc.a, tc.b, func(m *maker, b bool) {
			a := act{label: "//:x", inputs: files(m), out: bin("x"), made: pick(b, "1", "2")}
			if tc.edit != nil {
				tc.edit(&a, b)
			}
			m.act(a)
		})
		var got []found
		for _, cause := range c.Causes {
			f := found{string(cause.Kind), cause.Subject, cause.A, cause.B, strings.Join(cause.Suspects, " ")}
			if cause.Kind == Unrecorded || cause.Kind == ExitStatus {
				f.a, f.b = "", ""
			}
			got = append(got, f)
		}
		if !slices.Equal(got, tc.want) || len(got) > 0 && !strings.Contains(c.Causes[0].Next, tc.says) {
			t.Errorf("%s: %v: %s", tc.name, got, c.Text())
		}
	}
}

// A file that several actions read is one cause of them all, and of what follows from them; their suspects are joined.
func TestSourceModeOfMany(t *testing.T) {
	c := pairOfModes(t, Modes{"x": 0o644}, Modes{"x": 0o755}, func(m *maker, b bool) {
		shared := m.file("x", "x")
		for i := range 40 {
			m.act(act{label: text(i, "//:x"), inputs: m.set([]uint64{shared, m.file(text(i%2, "own"), "own")}), out: bin(text(i, "x")), made: pick(b, "1", "2")})
		}
		m.act(act{label: "//:after", inputs: m.file(bin(text(0, "x")), pick(b, "1", "2")), out: bin("after"), made: pick(b, "1", "2")})
	})
	if len(c.Causes) != 1 || c.Causes[0].Kind != SourceMode || len(c.Causes[0].Actions) != 40 || c.Causes[0].Consequences != 1 || !slices.Equal(c.Causes[0].Suspects, []string{text(0, "own"), text(1, "own")}) {
		t.Fatalf("%s", c.Text())
	}
	if want := "1 cause, the first is source mode x"; !strings.Contains(c.Summary(), want) {
		t.Errorf("%s", c.Summary())
	}
}

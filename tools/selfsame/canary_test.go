package main

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"selfsame.dev/selfsame/canary"
	"selfsame.dev/selfsame/canary/respond/embedded"
	"selfsame.dev/selfsame/canary/wire"
	"selfsame.dev/selfsame/manifest/leotest"
)

// leoList writes the input list that a build rule would, for a copy of the fixtures, and
// goes where its paths are relative to.
func leoList(t *testing.T) string {
	t.Helper()
	root := leotest.Copy(t, "../..")
	p := leotest.Paths(root)
	var lines []string
	add := func(part, folder, file string) {
		logical, err := filepath.Rel(folder, file)
		if err != nil {
			t.Fatal(err)
		}
		relative, err := filepath.Rel(root, file)
		if err != nil {
			t.Fatal(err)
		}
		lines = append(lines, part+"\t"+filepath.ToSlash(logical)+"\t"+filepath.ToSlash(relative))
	}
	for part, folder := range map[string]string{"profile-template": p.ProfileTemplate, "hermes-root": p.HermesRoot, "deployment-root": p.DeploymentRoot} {
		err := filepath.WalkDir(folder, func(name string, d fs.DirEntry, err error) error {
			if err == nil && !d.IsDir() {
				add(part, folder, name)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	evidence, err := filepath.Glob(filepath.Join(root, leotest.Folder, "evidence", "*"))
	if err != nil || len(evidence) == 0 {
		t.Fatalf("no evidence: %v", err)
	}
	for _, name := range evidence {
		add("source-root", root, name)
	}
	add("database-fingerprint", root, p.DatabaseFingerprint)
	add("constitution", root, p.Constitution)
	add("database-identity", root, p.DatabaseIdentity)
	list := filepath.Join(t.TempDir(), "inputs")
	if err := os.WriteFile(list, []byte(strings.Join(lines, "\n")+"\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	t.Chdir(root)
	return list
}

// nothingIn fails when a canary left its folder in temp.
func nothingIn(t *testing.T, temp string) {
	t.Helper()
	if left, err := filepath.Glob(filepath.Join(temp, "selfsame-canary-*")); err != nil || len(left) > 0 {
		t.Errorf("left: %v, %v", left, err)
	}
}

func readReceipt(t *testing.T, file string) *canary.Receipt {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	r, err := canary.DecodeReceipt(file, data)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestCanaryRun(t *testing.T) {
	list := leoList(t)
	temp := t.TempDir()
	t.Setenv("TMPDIR", temp)
	out := t.TempDir()
	t.Setenv("TEST_UNDECLARED_OUTPUTS_DIR", out)
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	query := filepath.Join(t.TempDir(), "query.json")
	other := `{"format":"identity-query.v1","query_id":"q","agent":"bob","question":"Who?","asks":["constitution"]}`
	if err := os.WriteFile(query, []byte(other), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		name    string
		args    []string
		status  int
		outcome string // "" when there is no receipt
		says    string // on stderr
	}{
		{"restart", nil, 0, canary.Reproduced, ""},
		{"own program", []string{"--runtime", exe, "--runtime-arg", embedded.Arg}, 0, canary.Reproduced, ""},
		{"drift before restart", []string{"--inject-drift-before-restart"}, 1, canary.Drifted, "drift in compiled-views: SOUL.md"},
		{"drift that is expected", []string{"--inject-drift-before-restart", "--expect-drift"}, 0, canary.Drifted, ""},
		{"no drift where it is expected", []string{"--expect-drift"}, 1, canary.Reproduced, "no drift"},
		{"drift in a surface", []string{"--inject-drift", "skills@first"}, 1, canary.Drifted, "drift in skills"},
		{"drift of the program", []string{"--inject-drift", "runtime-program"}, 1, canary.Drifted, "drift in runtime-program"},
		{"unknown surface", []string{"--inject-drift", "weather"}, 2, "", "no such surface: name one of compiled-profile, "},
		{"surface outside of the profile", []string{"--inject-drift", "compiled-profile/../../other"}, 2, "", "no such surface"},
		{"unknown start", []string{"--inject-drift", "skills@third"}, 2, "", "SURFACE[@first|second]"},
		{"both injections", []string{"--inject-drift", "skills", "--inject-drift-before-restart"}, 2, "", "exclude each other"},
		{"runtime that answers nothing", []string{"--runtime", "/bin/true"}, 1, canary.Refused, "answer 1"},
		{"runtime that fails", []string{"--runtime", "/bin/false"}, 1, canary.Refused, "bad_exit"},
		{"runtime that hangs", []string{"--runtime", "/bin/sleep", "--runtime-arg", "60", "--timeout", "100ms"}, 1, canary.Refused, "timed_out"},
		{"no such runtime", []string{"--runtime", "absent"}, 4, canary.Refused, "absent"},
		{"query for another", []string{"--query", query}, 3, canary.Refused, "bob"},
		{"no time", []string{"--timeout", "0s"}, 2, "", "--timeout"},
		{"bad pattern", []string{"--expect-change", "["}, 2, "", "--expect-change"},
		{"argument without program", []string{"--runtime-arg", "x"}, 2, "", "--runtime"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "receipt.json")
			status, stdout, stderr := call(append([]string{"canary", "run", "--input-list", list, "--output", file}, tc.args...)...)
			if status != tc.status || !strings.Contains(stderr, tc.says) || (tc.status == 0) != (stderr == "") {
				t.Errorf("status %d, want %d; stderr %s", status, tc.status, stderr)
			}
			nothingIn(t, temp)
			if tc.outcome == "" {
				if _, err := os.Stat(file); err == nil || stdout != "" {
					t.Errorf("a receipt, or %q", stdout)
				}
				return
			}
			r := readReceipt(t, file)
			if r.Outcome != tc.outcome || !strings.Contains(stdout, `"outcome":"`+tc.outcome+`"`) {
				t.Errorf("%s; stdout %s", r.Outcome, stdout)
			}
			if status, _, stderr := call("canary", "verify-receipt", file); status != 0 {
				t.Errorf("verify-receipt: %d, %s", status, stderr)
			}
		})
	}
	t.Run("undeclared outputs", func(t *testing.T) {
		if status, _, stderr := call("canary", "run", "--input-list", list); status != 0 {
			t.Fatal(stderr)
		}
		readReceipt(t, filepath.Join(out, "canary-receipt.json"))
	})
	t.Run("standard output", func(t *testing.T) {
		t.Setenv("TEST_UNDECLARED_OUTPUTS_DIR", "")
		status, stdout, stderr := call("canary", "run", "--input-list", list)
		if status != 0 || !strings.HasPrefix(stdout, `{"format":"canary-receipt.v1"`) {
			t.Errorf("%d, %s, %s", status, stdout, stderr)
		}
	})
	t.Run("receipt that cannot be written", func(t *testing.T) {
		status, stdout, stderr := call("canary", "run", "--input-list", list, "--output", filepath.Join(temp, "absent", "receipt.json"))
		if status != 4 || stdout != "" || !strings.Contains(stderr, "receipt.json cannot be written") {
			t.Errorf("%d, %q, %s", status, stdout, stderr)
		}
	})
}

func TestCanaryVerifyReceipt(t *testing.T) {
	valid := filepath.Join("..", "..", "fixtures", "canary", "receipt-t2.json")
	drift := filepath.Join("..", "..", "fixtures", "canary", "receipt-drift.json")
	data, err := os.ReadFile(valid)
	if err != nil {
		t.Fatal(err)
	}
	edited := func(old, new string) string {
		file := filepath.Join(t.TempDir(), "receipt.json")
		if !strings.Contains(string(data), old) {
			t.Fatalf("no %s", old)
		}
		if err := os.WriteFile(file, []byte(strings.Replace(string(data), old, new, 1)), 0o644); err != nil {
			t.Fatal(err)
		}
		return file
	}
	for name, tc := range map[string]struct {
		args   []string
		status int
	}{
		"valid":         {[]string{valid}, 0},
		"same":          {[]string{valid, "--same", valid}, 0},
		"not the same":  {[]string{valid, "--same", drift}, 1},
		"forged answer": {[]string{edited("I send nothing.", "I send much.")}, 1},
		"not canonical": {[]string{edited("{", "{ ")}, 3},
		"unknown tier":  {[]string{edited(`"tier":"T2_runtime"`, `"tier":"T3_runtime"`)}, 3},
		"missing":       {[]string{"absent.json"}, 4},
		"nothing":       {nil, 2},
	} {
		if status, _, stderr := call(append([]string{"canary", "verify-receipt"}, tc.args...)...); status != tc.status {
			t.Errorf("%s: status %d, want %d: %s", name, status, tc.status, stderr)
		}
	}
}

// The seed's own flags, from a clean checkout; a dirty one is refused.
func TestCanaryFromCheckout(t *testing.T) {
	if !leotest.Git(t) {
		t.SkipNow()
	}
	root := leotest.Copy(t, "../..")
	git := func(args ...string) {
		cmd := exec.Command("git", append([]string{"-C", root, "-c", "user.name=Test", "-c", "user.email=test@example.invalid"}, args...)...)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("git %v: %v: %s", args, err, out)
		}
	}
	git("init", "-q")
	git("add", "-A", "-f")
	git("commit", "-q", "-m", "Leo")
	p := leotest.Paths(root)
	file := filepath.Join(t.TempDir(), "receipt.json")
	args := []string{"canary", "run", "--profile-template", p.ProfileTemplate, "--hermes-root", p.HermesRoot, "--deployment-root", p.DeploymentRoot,
		"--source-root", root, "--database-fingerprint", p.DatabaseFingerprint, "--constitution", p.Constitution, "--database-identity", p.DatabaseIdentity, "--output", file}
	if status, _, stderr := call(args...); status != 0 {
		t.Fatal(stderr)
	}
	if r := readReceipt(t, file); r.Tier != canary.T2 || len(r.Observed.Origins) != 4 || len(r.Observed.Origins[0].Commit) != 40 {
		t.Errorf("%s, origins %+v", r.Tier, r.Observed.Origins)
	}
	if err := os.WriteFile(filepath.Join(p.ProfileTemplate, "skills", "new.md"), []byte("new"), 0o644); err != nil {
		t.Fatal(err)
	}
	if status, _, stderr := call(args...); status != 3 || !strings.Contains(stderr, "skills/new.md") {
		t.Errorf("a dirty checkout: %d, %s", status, stderr)
	}
}

// A signal ends the command with status 4, a receipt that says so, and nothing left.
func TestCanaryInterrupted(t *testing.T) {
	list := leoList(t)
	temp, file := t.TempDir(), filepath.Join(t.TempDir(), "receipt.json")
	cmd := exec.Command("/proc/self/exe", "canary", "run", "--input-list", list, "--output", file, "--runtime", "/bin/sleep", "--runtime-arg", "61.5")
	cmd.Env = append(os.Environ(), "TMPDIR="+temp)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	for range 2000 { // until the runtime has its profile
		if found, _ := filepath.Glob(filepath.Join(temp, "*", "1", "profile", "SOUL.md")); len(found) > 0 {
			break
		}
		time.Sleep(5 * time.Millisecond)
	}
	time.Sleep(50 * time.Millisecond)
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	err := cmd.Wait()
	if cmd.ProcessState.ExitCode() != 4 || !strings.Contains(stderr.String(), "interrupted") {
		t.Errorf("%v, %s", err, stderr.String())
	}
	if r := readReceipt(t, file); r.Outcome != canary.Interrupted {
		t.Errorf("%s (%s)", r.Outcome, r.Reason)
	}
	nothingIn(t, temp)
}

// The guardian and the responder begin before the packages that take long to initialize: a canary starts three of them.
func TestBeginsEarly(t *testing.T) {
	const slow = "init github.com/santhosh-tekuri/jsonschema/v6 "
	for args, early := range map[[2]string]bool{
		{"selfsame-canary-guardian", "/absent/folder"}: true,
		{"/proc/self/exe", embedded.Arg}:               true,
		{"/proc/self/exe", "canary"}:                   false,
	} {
		cmd := &exec.Cmd{Path: "/proc/self/exe", Args: args[:], Env: []string{"GODEBUG=inittrace=1"}}
		out, err := cmd.CombinedOutput()
		if cmd.ProcessState == nil {
			t.Fatal(err)
		}
		if strings.Contains(string(out), slow) == early || !strings.Contains(string(out), "init os ") {
			t.Errorf("%v: early %v, but\n%s", args, early, out)
		}
	}
}

// The responder in this program answers as any runtime does.
func TestCanaryResponder(t *testing.T) {
	query := wire.FixedQuery("leo")
	request, err := query.Encode()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("/proc/self/exe", embedded.Arg)
	cmd.Env = []string{"HERMES_HOME=" + t.TempDir()}
	cmd.Stdin = strings.NewReader(string(request))
	out, err := cmd.CombinedOutput()
	if cmd.ProcessState.ExitCode() != 3 || !strings.Contains(string(out), "SOUL.md: missing") {
		t.Errorf("an empty profile: %v, %s", err, out)
	}
}

package validate_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"selfsame.dev/selfsame/internal/canon"
	"selfsame.dev/selfsame/rpi/bounded"
	"selfsame.dev/selfsame/rpi/validate"
)

// open contains nothing. It shows what a check could do, and lets the rest of RunCheck be tested
// where nothing can be contained.
type open struct{}

func (open) Name() string { return "none, for tests" }

func (open) Run(ctx context.Context, copy string, check validate.Check) (bounded.Result, error) {
	return bounded.Run(ctx, bounded.Command{Argv: check.Argv, Dir: copy, Env: []string{}},
		bounded.Limits{Time: time.Duration(check.TimeMS) * time.Millisecond, Output: check.OutputBytes})
}

func shellCheck(script string, effect validate.Effect) validate.Check {
	return validate.Check{Format: validate.CheckFormat, Name: "synthetic", Argv: []string{"/bin/sh", "-c", script},
		Effect: effect, TimeMS: 20000, OutputBytes: 1 << 16}
}

// judged makes a subject with its folder.
func judged(t *testing.T) (string, validate.Subject) {
	dir, base := trees(t)
	s, _ := build(t, dir, base, nil, everything)
	return dir, s
}

func tempFolders(t *testing.T) []string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(os.TempDir(), "selfsame-check-*"))
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func TestRunCheck(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	dir, subject := judged(t)
	digest, _ := subject.Digest()
	entries, err := validate.List(dir)
	if err != nil {
		t.Fatal(err)
	}
	tree, _ := validate.TreeDigest(entries)
	for name, tc := range map[string]struct {
		script string
		effect validate.Effect
		change func(*validate.Check)
		passed bool
		holds  func(validate.Receipt) bool
	}{
		"passes":               {`test "$(cat src/a.txt)" = "alpha 2" && echo fine`, validate.ReadOnly, nil, true, func(r validate.Receipt) bool { return r.Stdout == canon.Sum([]byte("fine\n")) && r.Copy == tree }},
		"fails":                {`exit 5`, validate.ReadOnly, nil, false, func(r validate.Receipt) bool { return r.Exit == 5 }},
		"mutates as declared":  {`echo changed >src/a.txt; rm -r new`, validate.DisposableMutation, nil, true, func(r validate.Receipt) bool { return r.Copy != tree }},
		"mutates undeclared":   {`echo changed >src/a.txt`, validate.ReadOnly, nil, false, func(r validate.Receipt) bool { return r.Copy != tree && r.Exit == 0 }},
		"sees the exec bits":   {`test ! -x src/a.txt`, validate.ReadOnly, nil, true, nil},
		"sees links":           {`test "$(readlink link)" = src/a.txt`, validate.ReadOnly, nil, true, nil},
		"runs late":            {`sleep 60`, validate.ReadOnly, func(c *validate.Check) { c.TimeMS = 200 }, false, func(r validate.Receipt) bool { return r.TimedOut && r.Signal == "killed" }},
		"writes much":          {`while :; do echo 0123456789; done`, validate.ReadOnly, func(c *validate.Check) { c.OutputBytes = 1000 }, false, func(r validate.Receipt) bool { return r.Overflow }},
		"takes its own rights": {`chmod 000 src; true`, validate.DisposableMutation, nil, true, nil},
	} {
		if name == "takes its own rights" && os.Geteuid() != 0 {
			tc.script = `chmod 500 src` // an unreadable copy is an error for others than root
		}
		check := shellCheck(tc.script, tc.effect)
		if tc.change != nil {
			tc.change(&check)
		}
		r, _, err := validate.RunCheck(context.Background(), open{}, dir, subject, check)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if r.Passed != tc.passed || r.Subject != digest || r.Tree != tree || (tc.holds != nil && !tc.holds(r)) {
			t.Errorf("%s: %+v", name, r)
		}
		raw, err := canon.Marshal(r)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := validate.ReadReceipt("r.json", raw); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		r.Passed = !r.Passed
		forged, _ := canon.Marshal(r)
		_, err = validate.ReadReceipt("r.json", forged)
		refused(t, name+" with the result turned over", err, "/passed")
	}
	if err := subject.Matches(dir); err != nil {
		t.Errorf("a check touched the judged tree: %v", err)
	}
	if left := tempFolders(t); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

func TestRunCheckRefuses(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	dir, subject := judged(t)
	run := func(dir string, check validate.Check) error {
		_, _, err := validate.RunCheck(context.Background(), open{}, dir, subject, check)
		return err
	}
	_, base := trees(t)
	refused(t, "another tree than the subject", run(base, shellCheck("true", validate.ReadOnly)), "new/c.txt")
	target := filepath.Join(dir, "src/a.txt")
	refused(t, "a subject that changes meanwhile", run(dir, shellCheck("echo spoilt >>'"+target+"'", validate.DisposableMutation)), "changed while the check ran")
	for _, tools := range []string{"relative", "/", "/usr/../etc"} {
		check := shellCheck("true", validate.ReadOnly)
		check.Tools = []string{tools}
		refused(t, "tools "+tools, run(dir, check), "clean absolute folder")
	}
	if left := tempFolders(t); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

func TestReadCheck(t *testing.T) {
	const good = `{"format":"check.v1","name":"n","argv":["true"],"effect":"read-only","time_ms":5,"output_bytes":9}`
	if c, err := validate.ReadCheck("c.json", []byte(good)); err != nil || c.TimeMS != 5 || c.Effect != validate.ReadOnly {
		t.Fatal(c, err)
	}
	for name, change := range map[string][2]string{
		"no program": {`["true"]`, `[]`}, "an argv of words": {`["true"]`, `"true"`}, "another effect": {`"read-only"`, `"anything"`},
		"no time": {`"time_ms":5`, `"time_ms":0`}, "no output": {`,"output_bytes":9`, ``}, "an unknown member": {`"name"`, `"shell":true,"name"`},
		"a fraction": {`"time_ms":5`, `"time_ms":1.5`},
	} {
		_, err := validate.ReadCheck("c.json", []byte(strings.Replace(good, change[0], change[1], 1)))
		refused(t, name, err, "c.json")
	}
}

// What containment promises, tried from the inside. The same script without containment is the
// control: there it can write. Where nothing can be contained, the refusal with its reason is the test.
func TestContainment(t *testing.T) {
	inside, err := validate.Bubblewrap(context.Background())
	var none *validate.NoContainment
	if errors.As(err, &none) {
		if none.Reason == "" || none.Hint() == "" {
			t.Errorf("no reason: %v", err)
		}
		t.Logf("checks are refused here: %v", err)
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	dir, subject := judged(t)
	outside := t.TempDir()
	probe := fmt.Sprintf(`
for place in %q /usr /etc /bin / /nix /root /home; do
  if (echo x >"$place/selfsame-probe") 2>/dev/null; then
    echo "wrote $place"
  fi
done
grep -c : /proc/net/dev
ls /proc | grep -c '^[0-9]*$' >/tmp/count
test "$(cat /tmp/count)" -le 6 || echo "sees other processes"
test -z "$SELFSAME_SECRET" || echo "sees the environment"
cat %q 2>/dev/null && echo "reads outside"
(echo x >src/a.txt) 2>/dev/null && echo "wrote the copy"
true`, outside, filepath.Join(outside, "secret"))
	write(t, outside, "secret", "hidden")
	t.Setenv("SELFSAME_SECRET", "hidden")
	r, result, err := validate.RunCheck(context.Background(), inside, dir, subject, shellCheck(probe, validate.ReadOnly))
	if err != nil || !r.Passed {
		t.Fatalf("%+v %s %v", r, result.Stderr, err)
	}
	// One line: the loopback interface alone.
	if string(result.Stdout) != "1\n" {
		t.Errorf("inside: %s", result.Stdout)
	}
	if _, err := os.Lstat(filepath.Join(outside, "selfsame-probe")); err == nil {
		t.Error("a write came out")
	}
	_, control, err := validate.RunCheck(context.Background(), open{}, dir, subject,
		shellCheck(fmt.Sprintf(`echo x >%q/selfsame-probe; cat %q; test -z "$SELFSAME_SECRET"`, outside, filepath.Join(outside, "secret")), validate.ReadOnly))
	if _, missing := os.Lstat(filepath.Join(outside, "selfsame-probe")); err != nil || missing != nil || string(control.Stdout) != "hidden" {
		t.Errorf("control: without containment nothing comes out either: %s, %v, %v", control.Stdout, missing, err)
	}
	r, _, err = validate.RunCheck(context.Background(), inside, dir, subject, shellCheck(`echo new >src/a.txt && rm link && ln -s /etc link`, validate.DisposableMutation))
	if err != nil || !r.Passed || r.Copy == r.Tree {
		t.Errorf("a declared mutation: %+v %v", r, err)
	}
	if err := subject.Matches(dir); err != nil {
		t.Errorf("a check touched the judged tree: %v", err)
	}
	// What was never started says nothing of the subject.
	absent := shellCheck("", validate.ReadOnly)
	absent.Argv = []string{"/usr/bin/absent-program"}
	_, _, err = validate.RunCheck(context.Background(), inside, dir, subject, absent)
	refused(t, "a program that is absent", err, "/argv/0")
	absent.Argv, absent.Tools = []string{"/bin/true"}, []string{"/absent-folder"}
	_, _, err = validate.RunCheck(context.Background(), inside, dir, subject, absent)
	refused(t, "a tool that is absent", err, "/tools/0")
	tool := shellCheck("cat "+filepath.Join(outside, "secret"), validate.ReadOnly) // below /tmp, mostly
	tool.Tools = []string{outside}
	if r, result, err := validate.RunCheck(context.Background(), inside, dir, subject, tool); err != nil || !r.Passed || string(result.Stdout) != "hidden" {
		t.Errorf("a folder of tools: %+v, %s, %v", r, result.Stderr, err)
	}
	if r, _, err := validate.RunCheck(context.Background(), inside, dir, subject, shellCheck("kill -9 $$", validate.ReadOnly)); err != nil || r.Passed {
		t.Errorf("control: a check that was started and killed: %+v, %v", r, err)
	}
	check := shellCheck(`test "$COLOR" = blue -a "$HOME" = /tmp`, validate.ReadOnly)
	check.Env = map[string]string{"COLOR": "blue"}
	if r, _, err := validate.RunCheck(context.Background(), inside, dir, subject, check); err != nil || !r.Passed {
		t.Errorf("environment: %+v %v", r, err)
	}
}

// Nothing of a contained check outlives it: not a daemon in a session of its own, not after a timeout.
func TestContainedProcessesAreReaped(t *testing.T) {
	inside, err := validate.Bubblewrap(context.Background())
	var none *validate.NoContainment
	if errors.As(err, &none) {
		t.Logf("checks are refused here: %v", err)
		return
	}
	dir, subject := judged(t)
	for name, end := range map[string]string{"end": "exit 0", "timeout": "sleep 600"} {
		marker := fmt.Sprintf("4%d.%d", os.Getpid(), time.Now().UnixNano()%1e6)
		check := shellCheck(`setsid sh -c 'echo up >/tmp/up; exec sleep `+marker+`' >/dev/null 2>&1 </dev/null &
while ! test -s /tmp/up; do sleep 0.02; done; echo started; `+end, validate.ReadOnly)
		// A busy machine may need more time until the daemon is up.
		for _, check.TimeMS = range []int64{800, 5000, 60000} {
			_, result, err := validate.RunCheck(context.Background(), inside, dir, subject, check)
			if err != nil {
				t.Fatal(err)
			}
			if string(result.Stdout) == "started\n" {
				break
			}
			if check.TimeMS == 60000 {
				t.Errorf("%s: control: the daemon never ran: %s", name, result.Stderr)
			}
		}
		if !comesTrue(func() bool { return !runs(marker) }) {
			t.Errorf("%s: the daemon still runs", name)
		}
	}
	sleeper := exec.Command("sleep", "471.5")
	if err := sleeper.Start(); err != nil {
		t.Fatal(err)
	}
	if !comesTrue(func() bool { return runs("471.5") }) {
		t.Error("control: a running process is not seen")
	}
	_ = sleeper.Process.Kill()
	_ = sleeper.Wait()
}

func comesTrue(condition func() bool) bool {
	for range 200 {
		if condition() {
			return true
		}
		time.Sleep(20 * time.Millisecond)
	}
	return false
}

// runs reports whether a process has the marker among its arguments.
func runs(marker string) bool {
	files, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err == nil && strings.HasPrefix(string(data), "sleep\x00"+marker) {
			return true
		}
	}
	return false
}

package canary

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"selfsame.dev/selfsame/canary/child"
	"selfsame.dev/selfsame/canary/internal/hostile"
	"selfsame.dev/selfsame/canary/respond"
	"selfsame.dev/selfsame/canary/wire"
	"selfsame.dev/selfsame/internal/atomicfile"
	"selfsame.dev/selfsame/internal/canon"
)

// The test binary is also the guardian, the hostile child, and the parent that is to be
// killed.
func TestMain(m *testing.M) {
	hostile.Main(func(query []byte) ([]byte, error) {
		return respond.Answer(os.DirFS(os.Getenv("HERMES_HOME")), query)
	})
	if len(os.Args) > 1 && os.Args[1] == "parent" {
		os.Exit(parent(os.Args[2], os.Args[3], os.Args[4], os.Args[5:]))
	}
	os.Exit(m.Run())
}

// parent runs a canary in a process of its own. At the point named it says so and waits, to
// be interrupted or killed.
func parent(point, temp, output string, deed []string) int {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	cfg := synthetic(deed...)
	cfg.TempDir = temp
	cfg.Watch = func(ctx context.Context, e Event) {
		if fmt.Sprintf("%s/%d", e.At, e.Start) == point {
			fmt.Println("here")
			<-ctx.Done()
		}
	}
	if strings.HasPrefix(point, "drift_detected/") {
		cfg.Inject = &Injection{SurfaceProfile, int(point[len(point)-1] - '0')}
	}
	receipt, err := Run(ctx, cfg)
	if receipt == nil {
		fmt.Fprintln(os.Stderr, err)
		return 4
	}
	data, encodeErr := receipt.Encode()
	if err := errors.Join(encodeErr, atomicfile.Write(output, data, 0o600)); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 4
	}
	switch {
	case receipt.Outcome == Reproduced:
		return 0
	case receipt.Outcome == Interrupted || receipt.Outcome == Failed:
		return 4
	}
	return 1
}

var quick = child.Limits{Timeout: 20 * time.Second, Grace: 200 * time.Millisecond, Stdout: 1 << 16, Stderr: 1 << 16}

// synthetic is a canary on a small invented agent; the deed is the child's, "answer" by default.
func synthetic(deed ...string) Config {
	exe, err := os.Executable()
	if err != nil {
		panic(err)
	}
	if len(deed) == 0 {
		deed = []string{"answer"}
	}
	return Config{
		Agent:   newFake(),
		Query:   &wire.Query{Format: wire.QueryFormat, QueryID: "q-1", Agent: "ada", Question: "Who are you?", Asks: []string{wire.AskConstitution, wire.AskRows}},
		Runtime: Runtime{Program: exe, Args: append([]string{hostile.Word}, deed...), Variant: LocalProgram},
		Limits:  quick,
		Now:     time.Now,
	}
}

// fake is an agent with two sources that are copied into the profile, and a view.
type fake struct {
	sources map[string]string // surface -> content
	pinned  map[string]string
	view    []byte
}

func newFake() *fake {
	var v wire.View
	v.Format, v.Agent, v.Authority, v.Label = wire.ViewFormat, "ada", "generated_view", wire.Label
	v.Constitution.Path, v.Constitution.SHA256 = "constitution.json", canon.Sum([]byte("c"))
	v.Rules = []wire.Rule{{ID: "rule-2", Rank: 2, Text: "I keep to what is given.", SHA256: canon.Sum([]byte("2"))}, {ID: "rule-1", Rank: 1, Text: "I send nothing.", SHA256: canon.Sum([]byte("1"))}}
	v.Rows = []wire.Row{{Table: "claims", Row: "7", Kind: "claim", Rank: 1, Statement: "I am an example.", SourceMode: wire.Label, SHA256: canon.Sum([]byte("7")), Evidence: []wire.File{{Path: "evidence/7.txt", SHA256: canon.Sum([]byte("e"))}}}}
	view, err := canon.Marshal(v)
	if err != nil {
		panic(err)
	}
	return &fake{sources: map[string]string{"skills": "one\n", "plugins": "two\n"}, view: view}
}

func (f *fake) files() map[string]string {
	return map[string]string{
		"SOUL.md": "# ada\n", "config.yaml": "model: none\n", "identity.json": string(f.view),
		"skills/a/SKILL.md": f.pinned["skills"], "plugins/b/plugin.yaml": f.pinned["plugins"],
	}
}

func (f *fake) Pin(context.Context) (*Pinned, error) {
	f.pinned = maps.Clone(f.sources)
	p := &Pinned{View: f.view, Files: map[string]canon.Digest{}}
	for name, data := range f.files() {
		p.Files[name] = canon.Sum([]byte(data))
	}
	inputs := map[string]canon.Digest{}
	for surface, data := range f.pinned {
		inputs[surface] = canon.Sum([]byte(data))
	}
	identity, _ := canon.DigestOf(inputs)
	profile, _ := canon.DigestOf(p.Files)
	p.Identity = Identity{Agent: "ada", ManifestSHA256: canon.Sum(identity[:]), IdentitySHA256: identity, Inputs: inputs, ProfileSHA256: profile, Label: wire.Label}
	return p, nil
}

func (f *fake) Compile(_ context.Context, dir string) error {
	if !maps.Equal(f.sources, f.pinned) {
		return errors.New("a source differs from the manifest")
	}
	for name, data := range f.files() {
		at := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
			return err
		}
		if err := errors.Join(os.WriteFile(at, []byte(data), 0o644), os.Chmod(at, 0o644)); err != nil {
			return err
		}
	}
	return nil
}

func (f *fake) VerifySources(context.Context) (drift []Drift, err error) {
	for surface, want := range f.pinned {
		if got := f.sources[surface]; got != want {
			drift = append(drift, Drift{surface, "changed", "all", canon.Sum([]byte(want)).String(), canon.Sum([]byte(got)).String()})
		}
	}
	return drift, nil
}

func (f *fake) VerifyProfile(_ context.Context, dir string) (drift []Drift, err error) {
	want := f.files()
	add := func(class, path, actual string) {
		drift = append(drift, Drift{SurfaceProfile, class, path, canon.Sum([]byte(want[path])).String(), actual})
	}
	err = filepath.WalkDir(dir, func(at string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		path, _ := filepath.Rel(dir, at)
		info, err := entry.Info()
		if err != nil {
			return err
		}
		data, _ := os.ReadFile(at)
		switch expect, ok := want[path]; {
		case !ok:
			add("unexpected", path, canon.Sum(data).String())
		case info.Mode() != 0o644:
			add("changed", path, info.Mode().String())
		case string(data) != expect:
			add("changed", path, canon.Sum(data).String())
		}
		delete(want, path)
		return nil
	})
	for _, path := range slices.Sorted(maps.Keys(want)) {
		add("missing", path, "")
	}
	return drift, err
}

func (f *fake) Tamper(surface string) error {
	if _, ok := f.sources[surface]; !ok {
		return UnknownSurface(surface)
	}
	f.sources[surface] += "x"
	return nil
}

// runIn runs a canary and checks what must hold whatever happened: nothing is left, and the
// receipt, if any, is coherent.
func runIn(t *testing.T, ctx context.Context, cfg Config) (*Receipt, error) {
	t.Helper()
	cfg.TempDir = t.TempDir()
	receipt, err := Run(ctx, cfg)
	nothingLeft(t, cfg.TempDir)
	if receipt == nil {
		t.Fatalf("no receipt: %v", err)
	}
	if verifyErr := VerifyReceipt(receipt); verifyErr != nil {
		t.Errorf("incoherent receipt: %v", verifyErr)
	}
	return receipt, err
}

// nothingLeft fails when a file is left in temp, or a process that was told of it.
func nothingLeft(t *testing.T, temp string) {
	t.Helper()
	if left := wait(func() []string { return named(temp) }); len(left) > 0 {
		t.Errorf("processes left: %v", left)
	}
	if left := wait(func() (names []string) {
		entries, _ := os.ReadDir(temp)
		for _, e := range entries {
			names = append(names, e.Name())
		}
		return names
	}); len(left) > 0 {
		t.Errorf("files left: %v", left)
	}
}

func wait(left func() []string) (last []string) {
	for range 2000 {
		if last = left(); len(last) == 0 {
			return nil
		}
		time.Sleep(5 * time.Millisecond)
	}
	return last
}

// named lists the processes, this one apart, whose environment or command line holds text.
func named(text string) (found []string) {
	procs, _ := filepath.Glob("/proc/[0-9]*")
	for _, proc := range procs {
		if proc == fmt.Sprintf("/proc/%d", os.Getpid()) {
			continue
		}
		for _, file := range []string{"environ", "cmdline"} {
			if data, err := os.ReadFile(filepath.Join(proc, file)); err == nil && bytes.Contains(data, []byte(text)) {
				found = append(found, proc+"/"+file)
			}
		}
	}
	return found
}

func states(steps []Transition) string {
	var names []string
	for _, s := range steps {
		names = append(names, string(s.To))
	}
	return strings.Join(names, " ")
}

const (
	once  = "manifest_pinned profile_compiled runtime_verified stopped_cleanly"
	twice = once + " profile_compiled runtime_verified stopped_cleanly"
)

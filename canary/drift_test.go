package canary

import (
	"context"
	"flag"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"selfsame.dev/selfsame/manifest"
	"selfsame.dev/selfsame/manifest/leotest"
)

// Drift can be made in every pinned surface and every part of the compiled profile, before
// either start, and is named.
func TestLeoDriftInEverySurface(t *testing.T) {
	root := leotest.Copy(t, repository)
	surfaces := []string{string(manifest.ProfileTemplate), SurfaceProgram, SurfaceProfile, profileGone, profileMode, profileLink}
	for _, d := range manifest.Inventory() {
		if d.Pinned {
			surfaces = append(surfaces, string(d.Surface))
		}
	}
	// The parts of a compiled profile, and the surface that each is reported under.
	parts := map[string]manifest.Surface{
		"config.yaml": manifest.RuntimeConfig, "SOUL.md": manifest.CompiledViews, "identity.json": manifest.CompiledViews,
		"profile-manifest.json": manifest.CompiledProfile,
		"skills":                manifest.Skills, "plugins": manifest.Plugins, "database-tools": manifest.DatabaseTools,
	}
	pinned, err := leo(t, root).Agent.Pin(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	for name := range pinned.Files {
		part, _, _ := strings.Cut(name, "/")
		if parts[part] == "" {
			t.Errorf("the part %s of the profile is not tested", part)
		}
	}
	for part := range parts {
		surfaces = append(surfaces, profilePart+part)
	}
	for _, surface := range surfaces {
		for start, when := range map[int]string{1: "first", 2: "second"} {
			t.Run(surface+"@"+when, func(t *testing.T) {
				cfg := leo(t, root)
				cfg.Inject = &Injection{surface, start}
				r, err := runIn(t, context.Background(), cfg)
				if err != nil {
					t.Fatal(err)
				}
				keep(t, "canary-receipt-"+surface+"-"+when, r)
				want := manifest.Surface(surface)
				switch surface {
				case profileGone, profileMode, profileLink:
					want = manifest.CompiledViews // it is SOUL.md that changes
				}
				if part, ok := strings.CutPrefix(surface, profilePart); ok {
					want = parts[part]
				}
				if r.Outcome != Drifted || r.Tier != T1 || r.GoalTierSatisfied || r.Reproducible.Answer != nil {
					t.Fatalf("%s (%s), %s", r.Outcome, r.Reason, r.Tier)
				}
				if !slices.ContainsFunc(r.Reproducible.Drift, func(d Drift) bool {
					return d.Surface == string(want) && d.Path != "" && d.Expected != d.Actual
				}) {
					t.Errorf("%s is not named: %+v", want, r.Reproducible.Drift)
				}
				if len(r.Observed.Processes) != start-1 {
					t.Errorf("%d processes were started", len(r.Observed.Processes))
				}
				wantStates := "manifest_pinned profile_compiled drift_detected"
				if start == 2 {
					wantStates = once + " profile_compiled drift_detected"
				}
				if got := states(r.Reproducible.Transitions); got != wantStates {
					t.Errorf("states: %s", got)
				}
			})
		}
	}
}

var everyFile = flag.Bool("every-file", false, "let every committed file drift, not the first of each folder")

// One byte more in a committed input, on disk, while the first process has stopped: named by
// its path, and no second start. What is not identity is the control.
func TestLeoDriftInEveryFile(t *testing.T) {
	root := leotest.Copy(t, repository)
	base := filepath.Join(root, leotest.Folder)
	var drifted, ignored int
	seen := map[string]bool{}
	err := filepath.WalkDir(base, func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		relative, err := filepath.Rel(base, name)
		if err != nil {
			return err
		}
		if folder := filepath.Dir(name); !*everyFile && seen[folder] && folder != base {
			return nil
		} else {
			seen[folder] = true
		}
		data, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		cfg := leo(t, root)
		cfg.Watch = func(_ context.Context, e Event) {
			if (e == Event{"compiling", 2}) {
				if err := os.WriteFile(name, append(data, 'x'), 0o644); err != nil {
					t.Error(err)
				}
			}
		}
		r, runErr := runIn(t, context.Background(), cfg)
		if runErr != nil {
			t.Errorf("%s: %v", relative, runErr)
		}
		if excluded(filepath.ToSlash(relative)) {
			ignored++
			if r.Outcome != Reproduced {
				t.Errorf("control: %s is no identity, and drifts: %+v", relative, r.Reproducible.Drift)
			}
		} else {
			drifted++
			if r.Outcome != Drifted || len(r.Observed.Processes) != 1 {
				t.Errorf("%s: %s", relative, r.Outcome)
			} else if d := r.Reproducible.Drift[0]; d.Surface == "" || d.Path == "" || d.Actual == d.Expected {
				t.Errorf("%s: %+v", relative, d)
			}
		}
		return os.WriteFile(name, data, 0o644)
	})
	if err != nil {
		t.Fatal(err)
	}
	if drifted < 15 || ignored < 3 {
		t.Errorf("control: %d files drifted, %d were ignored", drifted, ignored)
	}
}

// excluded says which fixtures are no identity: credentials, state, memory, legacy settings, the
// query, build files, and what a code root excludes.
func excluded(relative string) bool {
	for _, prefix := range []string{
		"profile-template/.env", "profile-template/auth.json", "profile-template/gateway.json",
		"profile-template/sessions/", "profile-template/memories/", "BUILD.bazel", "leo-fixed-query-v1.json", "teleo-deployment/notes/",
	} {
		if strings.HasPrefix(relative, prefix) {
			return true
		}
	}
	return false
}

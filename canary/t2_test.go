package canary

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"testing"

	"selfsame.dev/selfsame/canary/wire"
	"selfsame.dev/selfsame/manifest"
	"selfsame.dev/selfsame/manifest/leotest"
)

// The working target of the seed: two processes, one identity.
func TestLeoT2(t *testing.T) {
	root := leotest.Copy(t, repository)
	first, err := runIn(t, context.Background(), leo(t, root))
	if err != nil {
		t.Fatal(err)
	}
	keep(t, "canary-receipt-t2", first)
	if first.Outcome != Reproduced || first.Tier != T2 || !first.GoalTierSatisfied {
		t.Fatalf("%s (%s), %s: %+v", first.Outcome, first.Reason, first.Tier, first.Reproducible.Drift)
	}
	if got := states(first.Reproducible.Transitions); got != twice+" restart_reproduced" {
		t.Errorf("states: %s", got)
	}

	m, _ := leotest.Build(t, root)
	sum, err := m.SHA256()
	if err != nil {
		t.Fatal(err)
	}
	id := first.Reproducible.Identity
	if id.ManifestSHA256 != sum || id.IdentitySHA256 != m.IdentitySHA256 || id.Label != manifest.Label {
		t.Errorf("the receipt is about %+v", id)
	}
	pinned := 0
	for _, d := range m.Surfaces {
		if d.Pinned {
			pinned++
			if id.Inputs[string(d.Surface)].IsZero() {
				t.Errorf("the receipt does not bind %s", d.Surface)
			}
		}
	}
	if len(id.Inputs) != pinned {
		t.Errorf("%d inputs for %d pinned surfaces", len(id.Inputs), pinned)
	}

	// Every rule and row is said, each with its provenance.
	in := m.Identity.Inputs
	if got, want := len(first.Reproducible.Answer.Statements), len(in.Constitution.Document.Rules)+len(in.Rows.Document.Rows); got != want || want < 5 {
		t.Errorf("%d statements of %d", got, want)
	}
	noCredentials(t, first)

	// Elsewhere, deeper, and later: the same.
	deeper := filepath.Join(t.TempDir(), "a", "much", "longer", "path")
	if err := os.MkdirAll(filepath.Dir(deeper), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(root, deeper); err != nil {
		t.Fatal(err)
	}
	second, err := runIn(t, context.Background(), leo(t, deeper))
	if err != nil || second.ReproducibleSHA256 != first.ReproducibleSHA256 {
		t.Errorf("another checkout gives another reproducible part (%v)", err)
	}
}

// The committed query is the fixed one.
func TestLeoFixedQuery(t *testing.T) {
	data, err := os.ReadFile(filepath.Join(leotest.Copy(t, repository), leotest.Folder, "leo-fixed-query-v1.json"))
	if err != nil {
		t.Fatal(err)
	}
	q, err := wire.ParseQuery(data)
	if err != nil {
		t.Fatal(err)
	}
	fixed := wire.FixedQuery("leo")
	a, _ := q.SHA256()
	b, _ := fixed.SHA256()
	if a != b {
		t.Errorf("%+v is not %+v", *q, fixed)
	}
}

// What is not identity may change between the starts (law I3).
func TestLeoRotationBetweenStarts(t *testing.T) {
	root := leotest.Copy(t, repository)
	cfg := leo(t, root)
	template := filepath.Join(root, leotest.Folder, "profile-template")
	cfg.Watch = func(_ context.Context, e Event) {
		if (e != Event{"compiling", 2}) {
			return
		}
		for _, name := range []string{".env", "auth.json", "memories/MEMORY.md", "gateway.json"} {
			if err := os.WriteFile(filepath.Join(template, name), []byte("rotated\n"), 0o600); err != nil {
				t.Error(err)
			}
		}
		config, err := os.ReadFile(filepath.Join(template, "config.yaml"))
		if err != nil {
			t.Error(err)
		}
		rotated := bytes.Replace(config, []byte("planted-mcp-env-token-6b20d9"), []byte("rotated-00000000"), 1)
		if bytes.Equal(rotated, config) {
			t.Error("control: nothing was rotated")
		}
		if err := os.WriteFile(filepath.Join(template, "config.yaml"), rotated, 0o600); err != nil {
			t.Error(err)
		}
	}
	r, err := runIn(t, context.Background(), cfg)
	if err != nil || r.Outcome != Reproduced {
		t.Errorf("%s: %+v, %v", r.Outcome, r.Reproducible.Drift, err)
	}
}

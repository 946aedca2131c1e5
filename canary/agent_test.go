package canary

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"selfsame.dev/selfsame/manifest"
	"selfsame.dev/selfsame/manifest/leotest"
	"selfsame.dev/selfsame/manifest/source"
)

// A manifest that is given is not believed about the sources, neither at first nor after it was once right; and drift is
// found as often as one looks.
func TestSourcesAreReadEachTime(t *testing.T) {
	root := leotest.Copy(t, repository)
	given, _ := leotest.Build(t, root)
	load := func() (manifest.Sources, error) { return source.Folders(leotest.Paths(root)) }
	name := filepath.Join(root, filepath.FromSlash(leotest.Folder), "profile-template", "skills", "evidence-first", "SKILL.md")
	right, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	write := func(data []byte) {
		if err := os.WriteFile(name, data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for agentName, agent := range map[string]*Sourced{"given": NewPinned(given, load), "generated": NewSourced(load)} {
		drifted := agentName == "given" // from what was pinned, before it is pinned
		if drifted {
			write(append(right, '\n'))
		}
		if _, err := agent.Pin(context.Background()); err != nil {
			t.Fatal(err)
		}
		for i, now := range []bool{drifted, drifted, false, false, true, true, false} {
			write(right)
			if now {
				write(append(right, '\n'))
			}
			found, err := agent.VerifySources(context.Background())
			if err != nil || len(found) > 0 != now {
				t.Errorf("%s, reading %d: %v, %v; drifted: %v", agentName, i, found, err, now)
			}
		}
	}
}

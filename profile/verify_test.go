package profile_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"selfsame.dev/selfsame/manifest"
	"selfsame.dev/selfsame/profile"
)

// Law I8: a profile is exact; everything that is there besides, missing or other is named.
func TestVerify(t *testing.T) {
	file := func(text string) func(string) error {
		return func(at string) error {
			return errors.Join(os.MkdirAll(filepath.Dir(at), 0o755), os.WriteFile(at, []byte(text), 0o644))
		}
	}
	appended := func(at string) error {
		data, err := os.ReadFile(at)
		return errors.Join(err, os.WriteFile(at, append(data, ' '), 0o644))
	}
	mode := func(m os.FileMode) func(string) error { return func(at string) error { return os.Chmod(at, m) } }
	m, s, clean := compiled(t)
	if differences, err := profile.Verify(clean, m); err != nil || len(differences) > 0 {
		t.Fatalf("control: %v, %v", differences, err)
	}
	replaced := func(make func(string) error) func(string) error {
		return func(at string) error { return errors.Join(os.RemoveAll(at), make(at)) }
	}
	for _, tc := range []struct {
		name    string
		at      string
		change  func(at string) error
		surface manifest.Surface
		class   string
		path    string
	}{
		{"edited soul", "SOUL.md", appended, manifest.CompiledViews, manifest.Changed, ""},
		{"edited view", "identity.json", appended, manifest.CompiledViews, manifest.Changed, ""},
		{"edited configuration", "config.yaml", appended, manifest.RuntimeConfig, manifest.Changed, ""},
		{"edited profile manifest", "profile-manifest.json", appended, manifest.CompiledProfile, manifest.Changed, ""},
		{"edited skill", "skills/leo-voice/SKILL.md", appended, manifest.Skills, manifest.Changed, ""},
		{"same size, other content", "skills/leo-voice/SKILL.md", func(at string) error {
			data, err := os.ReadFile(at)
			data[10] ^= 1
			return errors.Join(err, os.WriteFile(at, data, 0o644))
		}, manifest.Skills, manifest.Changed, ""},
		{"removed plugin file", "plugins/leo-reply-guard/plugin.yaml", os.Remove, manifest.Plugins, manifest.Missing, ""},
		{"removed folder", "plugins/leo-reply-guard", os.RemoveAll, manifest.Plugins, manifest.Missing, "plugins/leo-reply-guard/plugin.yaml"},
		{"added tool", "database-tools/more", file("x"), manifest.DatabaseTools, manifest.Unexpected, ""},
		{"memory", "memories/MEMORY.md", file("x"), manifest.CompiledProfile, manifest.Unexpected, ""},
		{"empty memory folder", "memories", func(at string) error { return os.Mkdir(at, 0o755) }, manifest.CompiledProfile, manifest.Unexpected, ""},
		{"sessions", "sessions/a.jsonl", file("x"), manifest.CompiledProfile, manifest.Unexpected, ""},
		{"state", "state.db", file("x"), manifest.CompiledProfile, manifest.Unexpected, ""},
		{"pairing store", "pairing/telegram-approved.json", file("{}"), manifest.CompiledProfile, manifest.Unexpected, ""},
		{"legacy gateway", "gateway.json", file("{}"), manifest.CompiledProfile, manifest.Unexpected, ""},
		{"environment", ".env", file("A=b"), manifest.CompiledProfile, manifest.Unexpected, ""},
		{"credentials", "auth.json", file("{}"), manifest.CompiledProfile, manifest.Unexpected, ""},
		{"project context", "AGENTS.md", file("x"), manifest.CompiledProfile, manifest.Unexpected, ""},
		{"empty skill folder", "skills/empty", func(at string) error { return os.Mkdir(at, 0o755) }, manifest.Skills, manifest.Unexpected, ""},
		{"writable by all", "SOUL.md", mode(0o666), manifest.CompiledViews, manifest.Changed, ""},
		{"stricter than declared", "SOUL.md", mode(0o600), manifest.CompiledViews, manifest.Changed, ""},
		{"runnable skill", "skills/leo-voice/SKILL.md", mode(0o755), manifest.Skills, manifest.Changed, ""},
		{"tool that cannot run", "database-tools/leo-read-only-query", mode(0o644), manifest.DatabaseTools, manifest.Changed, ""},
		{"set user id", "database-tools/leo-read-only-query", mode(0o755 | os.ModeSetuid), manifest.DatabaseTools, manifest.Changed, ""},
		{"folder mode", "skills", mode(0o777), manifest.Skills, manifest.Changed, ""},
		{"root mode", "", mode(0o700), manifest.CompiledProfile, manifest.Changed, "."},
		{"link instead of a file", "SOUL.md", replaced(func(at string) error { return os.Symlink("identity.json", at) }), manifest.CompiledViews, manifest.Refused, ""},
		{"dangling link", "state.db", func(at string) error { return os.Symlink("nowhere", at) }, manifest.CompiledProfile, manifest.Refused, ""},
		{"FIFO instead of a file", "config.yaml", replaced(func(at string) error { return syscall.Mkfifo(at, 0o644) }), manifest.RuntimeConfig, manifest.Refused, ""},
		{"folder instead of a file", "config.yaml", replaced(func(at string) error { return os.Mkdir(at, 0o755) }), manifest.RuntimeConfig, manifest.Missing, ""},
		{"file instead of a folder", "plugins", replaced(file("x")), manifest.Plugins, manifest.Missing, "plugins/leo-reply-guard/plugin.yaml"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			dir := compile(t, m, s)
			if err := tc.change(filepath.Join(dir, tc.at)); err != nil {
				t.Fatal(err)
			}
			path := tc.path
			if path == "" {
				path = tc.at
			}
			differences, err := profile.Verify(dir, m)
			if err != nil {
				t.Fatal(err)
			}
			if !slices.ContainsFunc(differences, func(d manifest.Difference) bool {
				return d.Surface == tc.surface && d.Class == tc.class && d.Path == path && d.Expected != d.Actual
			}) {
				t.Errorf("%v names no %s %s %s", differences, tc.surface, tc.class, path)
			}
		})
	}
	if _, err := profile.Verify(clean+"-none", m); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a profile that is not there: %v", err)
	}
}

// A profile whose own manifest was made to agree with an edit is no better.
func TestVerifyBelievesNoProfileManifest(t *testing.T) {
	m, _, dir := compiled(t)
	soul := filepath.Join(dir, profile.ManifestFile)
	data, err := os.ReadFile(soul)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "state.db"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	listed := strings.Replace(string(data), `{"mode":"0644","path":"skills/`, `{"mode":"0644","path":"state.db","sha256":"`+strings.Repeat("e", 64)+`","size":0},{"mode":"0644","path":"skills/`, 1)
	if err := os.WriteFile(soul, []byte(listed), 0o644); err != nil {
		t.Fatal(err)
	}
	differences, err := profile.Verify(dir, m)
	if err != nil || len(differences) != 2 {
		t.Errorf("%v, %v", differences, err)
	}
}

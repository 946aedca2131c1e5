package source_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"selfsame.dev/selfsame/internal/canon"
	"selfsame.dev/selfsame/manifest"
	"selfsame.dev/selfsame/manifest/leotest"
	"selfsame.dev/selfsame/manifest/source"
)

func edit(t *testing.T, file string, change func(string) string) {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	changed := change(string(data))
	if changed == string(data) {
		t.Fatalf("%s: the edit changes nothing", file)
	}
	if err := os.WriteFile(file, []byte(changed), 0o644); err != nil {
		t.Fatal(err)
	}
}

func put(t *testing.T, file, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// Law I3: what is not identity changes nothing in the manifest, not even outside identity.
func TestContinuityIsNotIdentity(t *testing.T) {
	planted := leotest.Credentials(t, repository)
	m, _ := leotest.Build(t, leotest.Copy(t, repository))
	want, err := m.Encode()
	if err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		name   string
		change func(t *testing.T, root string)
	}{
		{"every planted credential rotated", func(t *testing.T, root string) {
			for _, p := range planted.Planted {
				edit(t, filepath.Join(root, filepath.FromSlash(leotest.Folder), p.File), func(s string) string {
					return strings.ReplaceAll(s, p.Value, "rotated-"+p.Place[:3])
				})
			}
		}},
		{"credential files removed", func(t *testing.T, root string) {
			for _, name := range []string{".env", "auth.json", "gateway.json"} {
				if err := os.Remove(filepath.Join(leotest.Paths(root).ProfileTemplate, name)); err != nil {
					t.Fatal(err)
				}
			}
		}},
		{"credential keys removed", func(t *testing.T, root string) {
			edit(t, filepath.Join(leotest.Paths(root).ProfileTemplate, "config.yaml"), func(s string) string {
				var kept []string
				for _, line := range strings.SplitAfter(s, "\n") {
					if !strings.Contains(line, "planted") && !strings.Contains(line, "X-Planted") && !strings.Contains(line, "AAplanted") {
						kept = append(kept, line)
					}
				}
				return strings.Join(kept, "")
			})
		}},
		{"sessions, state and memory", func(t *testing.T, root string) {
			template := leotest.Paths(root).ProfileTemplate
			edit(t, filepath.Join(template, "memories/MEMORY.md"), strings.ToUpper)
			put(t, filepath.Join(template, "memories/USER.md"), "new\n")
			put(t, filepath.Join(template, "sessions/new.jsonl"), "{}\n")
			for _, name := range []string{"state.db", "state.db-wal", "gateway.pid", "pairing/telegram-approved.json", "logs/agent.log", "image_cache/a.png", "SOUL.md"} {
				put(t, filepath.Join(template, name), "state")
			}
		}},
		{"position of the write-ahead log", func(t *testing.T, root string) {
			edit(t, leotest.Paths(root).DatabaseFingerprint, func(s string) string {
				return strings.Replace(s, `"lsn":"0/1A2B3C4D","timeline":1`, `"lsn":"7/FFFF0000","timeline":3`, 1)
			})
		}},
		{"comments and layout of config.yaml", func(t *testing.T, root string) {
			edit(t, filepath.Join(leotest.Paths(root).ProfileTemplate, "config.yaml"), func(s string) string {
				return "# another comment\n\n" + strings.ReplaceAll(s, "toolsets: [skills, terminal]", "toolsets:\n    - 'skills'\n    -   \"terminal\"   # both")
			})
		}},
		{"order of config.yaml", func(t *testing.T, root string) {
			edit(t, filepath.Join(leotest.Paths(root).ProfileTemplate, "config.yaml"), func(s string) string {
				var doc map[string]any
				if err := yaml.Unmarshal([]byte(s), &doc); err != nil {
					t.Fatal(err)
				}
				out, err := yaml.Marshal(doc) // sorted keys, other indentation, no comments
				if err != nil {
					t.Fatal(err)
				}
				return string(out)
			})
		}},
		{"unknown key", func(t *testing.T, root string) {
			edit(t, filepath.Join(leotest.Paths(root).ProfileTemplate, "config.yaml"), func(s string) string { return s + "voice: {enabled: true}\n" })
		}},
		{"permission bits and times", func(t *testing.T, root string) {
			err := filepath.Walk(root, func(path string, info os.FileInfo, err error) error {
				if err == nil && info.Mode().IsRegular() {
					return os.Chmod(path, 0o755)
				}
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
		}},
		{"files that a code root excludes", func(t *testing.T, root string) {
			put(t, filepath.Join(leotest.Paths(root).DeploymentRoot, "notes/more.txt"), "note\n")
			put(t, filepath.Join(leotest.Paths(root).HermesRoot, "hermes/__pycache__/prompt.pyc"), "cache")
			put(t, filepath.Join(leotest.Paths(root).HermesRoot, ".git/config"), "[core]\n")
		}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			root := leotest.Copy(t, repository)
			tc.change(t, root)
			again, s := leotest.Build(t, root)
			have, err := again.Encode()
			if err != nil {
				t.Fatal(err)
			}
			if string(have) != string(want) {
				t.Errorf("the manifest moved: %v", manifest.Compare(m, again))
			}
			if differences, err := manifest.Verify(m, s); err != nil || len(differences) > 0 {
				t.Errorf("differences: %v, %v", differences, err)
			}
		})
	}
}

// Law I4: rotation shows in the operational observation alone, only with a key, and only for that key.
func TestOperationalObservation(t *testing.T) {
	root := leotest.Copy(t, repository)
	observe := func(key string) *manifest.Behavior {
		p := leotest.Paths(root)
		p.ObservationKey = key
		s, err := source.Folders(p)
		if err != nil {
			t.Fatal(err)
		}
		b, err := manifest.Observe(s)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	if o := observe("").Operational.Observation; o != nil {
		t.Errorf("without a key there is an observation: %v", o)
	}
	dir := t.TempDir()
	key, other := filepath.Join(dir, "key"), filepath.Join(dir, "other")
	first, again, elsewhere := observe(key), observe(key), observe(other)
	if *first.Operational.Observation != *again.Operational.Observation {
		t.Error("the same key and credentials give another observation")
	}
	if o := elsewhere.Operational.Observation; o.Value == first.Operational.Observation.Value || o.KeyID == first.Operational.Observation.KeyID {
		t.Error("another key gives the same observation")
	}
	if info, err := os.Stat(key); err != nil || info.Mode().Perm() != 0o600 || info.Size() != 32 {
		t.Errorf("key file: %v, %v", info, err)
	}
	data, err := os.ReadFile(key)
	if err != nil {
		t.Fatal(err)
	}
	if text, err := first.Encode(); err != nil || len(leotest.Leaks(text, string(data))) > 0 {
		t.Error("the behavior manifest holds the key or its digest")
	}
	for _, name := range []string{".env", "auth.json", "config.yaml"} {
		before := observe(key)
		edit(t, filepath.Join(leotest.Paths(root).ProfileTemplate, name), func(s string) string { return strings.Replace(s, "planted", "rotated", 3) })
		after := observe(key)
		if before.Operational.Observation.Value == after.Operational.Observation.Value {
			t.Errorf("%s: rotation does not show", name)
		}
		if before.InputsSum != after.InputsSum {
			t.Errorf("%s: rotation moved the identity", name)
		}
	}
	if err := os.Chmod(key, 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := source.Key(key); err == nil || !strings.Contains(err.Error(), "owner alone") {
		t.Errorf("a key that others can read: %v", err)
	}
	if err := os.WriteFile(other, []byte("short"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := source.Key(other); err == nil {
		t.Error("a short key is accepted")
	}
}

// Law I4: no output holds a planted credential, its base64, or its SHA-256; nor that of a file that holds one.
func TestNoOutputHoldsACredential(t *testing.T) {
	root := leotest.Copy(t, repository)
	p := leotest.Paths(root)
	p.ObservationKey = filepath.Join(t.TempDir(), "key")
	s, err := source.Folders(p)
	if err != nil {
		t.Fatal(err)
	}
	b, err := manifest.Observe(s)
	if err != nil {
		t.Fatal(err)
	}
	m, err := manifest.Generate(b, s)
	if err != nil {
		t.Fatal(err)
	}
	var secrets []string
	for _, planted := range leotest.Credentials(t, repository).Planted {
		secrets = append(secrets, planted.Value)
	}
	for _, name := range []string{"config.yaml", ".env", "auth.json", "gateway.json"} {
		data, err := os.ReadFile(filepath.Join(p.ProfileTemplate, name))
		if err != nil {
			t.Fatal(err)
		}
		secrets = append(secrets, string(data))
	}
	outputs := map[string][]byte{"explain": []byte(manifest.Explain(m))}
	for name, encode := range map[string]func() ([]byte, error){"behavior": b.Encode, "manifest": m.Encode, "soul": m.Identity.Soul, "identity.json": m.Identity.IdentityView,
		"config.yaml": func() ([]byte, error) {
			return manifest.ConfigYAML(b.Inputs.RuntimeConfig, b.Inputs.Permissions.Settings())
		}} {
		if outputs[name], err = encode(); err != nil {
			t.Fatal(err)
		}
	}
	// Everything that can be wrong with a configuration, each said without a value.
	config := filepath.Join(p.ProfileTemplate, "config.yaml")
	original, err := os.ReadFile(config)
	if err != nil {
		t.Fatal(err)
	}
	for i, bad := range []string{
		"model: *planted-sudo-password-e81f\n", "a: &planted-sudo-password-e81f b\n", "model: \"planted-sudo-password-e81f\n", "!planted-sudo-password-e81f model: x\n",
		"model: {default: https://u:planted-sudo-password-e81f@h.invalid}\n", "model: {base_url: 'https://h.invalid/?api_key=planted-sudo-password-e81f'}\n",
		"model: {default: [planted-sudo-password-e81f]}\n", "smart_model_routing: {planted-sudo-password-e81f: 1}\nmodel: x\n", "agent: {reasoning_effort: planted-sudo-password-e81f}\nmodel: x\n",
		"model: sk-or-v1-planted-model-5f0d6c3e9b1a47d28c44\n", "%planted-sudo-password-e81f\n---\nmodel: x\n", "planted-sudo-password-e81f: {\n",
	} {
		if err := os.WriteFile(config, []byte(bad), 0o644); err != nil {
			t.Fatal(err)
		}
		s, err := source.Folders(leotest.Paths(root))
		if err != nil {
			t.Fatal(err)
		}
		_, err = manifest.Observe(s)
		if err == nil {
			t.Errorf("configuration %d is accepted", i)
			continue
		}
		outputs["error of "+bad] = []byte(err.Error())
		differences, err := manifest.Verify(m, s)
		if err != nil {
			t.Fatal(err)
		}
		if outputs["differences of "+bad], err = canon.Marshal(differences); err != nil {
			t.Fatal(err)
		}
	}
	for name, text := range outputs {
		if found := leotest.Leaks(text, secrets...); len(found) > 0 {
			t.Errorf("%s holds %q:\n%s", name, found, text)
		}
	}
	// Control: the search finds each credential where it was planted, and digests of it.
	for _, secret := range secrets[:13] {
		if len(leotest.Leaks(original, secret)) == 0 {
			t.Errorf("control: %q is not found in config.yaml", secret)
		}
		if text := []byte("x" + canon.Sum([]byte(secret)).String()); len(leotest.Leaks(text, secret)) != 1 {
			t.Errorf("control: the digest of %q is not found", secret)
		}
	}
}

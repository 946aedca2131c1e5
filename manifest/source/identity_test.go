package source_test

import (
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"selfsame.dev/selfsame/internal/canon"
	"selfsame.dev/selfsame/manifest"
	"selfsame.dev/selfsame/manifest/leotest"
	"selfsame.dev/selfsame/manifest/source"
)

const repository = "../.."

var everyByte = flag.Bool("every-byte", false, "change every byte of every fixture, not a sample")

// surfaceOf says which surfaces may be named when a byte of a fixture file changes, or none when
// the file is not identity.
func surfaceOf(file string) []manifest.Surface {
	for _, s := range []struct {
		prefix   string
		surfaces []manifest.Surface
	}{
		{"profile-template/config.yaml", []manifest.Surface{manifest.RuntimeConfig, manifest.Permissions}},
		{"profile-template/skills/", []manifest.Surface{manifest.Skills}},
		{"profile-template/plugins/", []manifest.Surface{manifest.Plugins}},
		{"profile-template/database-tools/", []manifest.Surface{manifest.DatabaseTools}},
		{"profile-template/", nil}, // credentials, sessions, memory, legacy configuration
		{"hermes-runtime/", []manifest.Surface{manifest.HermesCode, manifest.RuntimeABI}},
		{"teleo-deployment/notes/", nil}, // excluded by declaration
		{"teleo-deployment/", []manifest.Surface{manifest.DeploymentCode, manifest.RuntimeABI}},
		{"leo-constitution-v1.json", []manifest.Surface{manifest.Constitution}},
		{"leo-database-fingerprint-v1.json", []manifest.Surface{manifest.DatabaseSnapshot, manifest.IdentityRows}},
		{"leo-database-identity-v1.json", []manifest.Surface{manifest.IdentityRows}},
		{"evidence/", []manifest.Surface{manifest.IdentityRows}},
		{"leo-fixed-query-v1.json", nil}, // bound by the canary
		{"BUILD.bazel", nil},
	} {
		if strings.HasPrefix(file, s.prefix) {
			return s.surfaces
		}
	}
	panic("no surface for " + file)
}

// Law I2: a changed byte in a pinned input moves identity_sha256, or is refused, and either way it is
// named by surface and path. Law I3: in anything else it changes nothing.
func TestEveryByte(t *testing.T) {
	root := leotest.Copy(t, repository)
	m, _ := leotest.Build(t, root)
	base := filepath.Join(root, filepath.FromSlash(leotest.Folder))
	wal := walRange(t, filepath.Join(base, "leo-database-fingerprint-v1.json"))
	var files []string
	err := filepath.WalkDir(base, func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			files = append(files, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	moved, still := 0, 0
	for _, path := range files {
		relative, err := filepath.Rel(base, path)
		if err != nil {
			t.Fatal(err)
		}
		file := filepath.ToSlash(relative)
		original, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		step := max(1, len(original)/3)
		if *everyByte {
			step = 1
		}
		for at := 0; at < len(original); at += step {
			changed := slices.Clone(original)
			changed[at] ^= 1
			if err := os.WriteFile(path, changed, 0o644); err != nil {
				t.Fatal(err)
			}
			s, err := source.Folders(leotest.Paths(root))
			if err != nil {
				t.Fatal(err)
			}
			differences, err := manifest.Verify(m, s)
			if err != nil {
				t.Fatal(err)
			}
			again, buildErr := manifest.Build(s)
			same := buildErr == nil && again.IdentitySHA256 == m.IdentitySHA256
			if same != (len(differences) == 0) {
				t.Errorf("%s byte %d: identity moved: %v (%v), differences %v", file, at, !same, buildErr, differences)
			}
			surfaces := surfaceOf(file)
			isWAL := file == "leo-database-fingerprint-v1.json" && at >= wal[0] && at < wal[1]
			switch {
			case same && surfaces != nil && file != "profile-template/config.yaml" && !isWAL:
				t.Errorf("%s byte %d changed and nothing was found", file, at)
			case !same && surfaces == nil:
				t.Errorf("%s byte %d is not identity, and moved it: %v", file, at, differences)
			case !same:
				named := slices.ContainsFunc(differences, func(d manifest.Difference) bool {
					return slices.Contains(surfaces, d.Surface) && d.Path != "" && d.Expected != d.Actual
				})
				if !named {
					t.Errorf("%s byte %d: %v names none of %v", file, at, differences, surfaces)
				}
				var input *canon.InputError
				if buildErr != nil && !errors.As(buildErr, &input) {
					t.Errorf("%s byte %d: %v is no refusal", file, at, buildErr)
				}
			}
			if same {
				still++
			} else {
				moved++
			}
		}
		if err := os.WriteFile(path, original, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("%d files, %d bytes changed: %d moved the identity, %d were not identity", len(files), moved+still, moved, still)
	if moved < 120 || still < 15 {
		t.Errorf("only %d changes moved the identity and %d did not: the sample is too small", moved, still)
	}
	if again, _ := leotest.Build(t, root); again.IdentitySHA256 != m.IdentitySHA256 {
		t.Error("control: the restored fixtures have another identity")
	}
}

// walRange is where the position of the write-ahead log is in a canonical fingerprint.
func walRange(t *testing.T, file string) [2]int {
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	at := strings.Index(string(data), `"wal":{`)
	if at < 0 {
		t.Fatal("no wal in the fingerprint")
	}
	return [2]int{at, len(data)}
}

// Each pinned file that disappears, and each that is added, is named.
func TestMissingAndUnexpected(t *testing.T) {
	root := leotest.Copy(t, repository)
	m, _ := leotest.Build(t, root)
	at := func(name string) string { return filepath.Join(root, filepath.FromSlash(leotest.Folder), name) }
	for _, tc := range []struct {
		file    string
		surface manifest.Surface
		class   string
		path    string
	}{
		{"profile-template/skills/leo-voice/extra.md", manifest.Skills, manifest.Unexpected, "skills/leo-voice/extra.md"},
		{"profile-template/skills/leo-voice/SKILL.md", manifest.Skills, manifest.Missing, "skills/leo-voice/SKILL.md"},
		{"profile-template/plugins/leo-reply-guard/plugin.yaml", manifest.Plugins, manifest.Missing, "plugins/leo-reply-guard/plugin.yaml"},
		{"profile-template/database-tools/new-tool", manifest.DatabaseTools, manifest.Unexpected, "database-tools/new-tool"},
		{"profile-template/database-tools/leo-read-only-query", manifest.DatabaseTools, manifest.Missing, "database-tools/leo-read-only-query"},
		{"hermes-runtime/hermes/prompt.py", manifest.HermesCode, manifest.Missing, "hermes/prompt.py"},
		{"hermes-runtime/hermes/new.py", manifest.HermesCode, manifest.Unexpected, "hermes/new.py"},
		{"hermes-runtime/venv/pyvenv.cfg", manifest.RuntimeABI, manifest.Refused, "hermes-code#venv/pyvenv.cfg"},
		{"teleo-deployment/deploy.yaml", manifest.DeploymentCode, manifest.Missing, "deploy.yaml"},
		{"evidence/role-charter.md", manifest.IdentityRows, manifest.Refused, leotest.Folder + "/evidence/role-charter.md"},
		{"leo-constitution-v1.json", manifest.Constitution, manifest.Refused, leotest.Folder + "/leo-constitution-v1.json"},
		{"profile-template/config.yaml", manifest.ProfileTemplate, manifest.Refused, "config.yaml"},
	} {
		t.Run(tc.file, func(t *testing.T) {
			original, err := os.ReadFile(at(tc.file))
			if errors.Is(err, fs.ErrNotExist) {
				err = os.WriteFile(at(tc.file), []byte("new\n"), 0o644)
			} else {
				err = os.Remove(at(tc.file))
			}
			if err != nil {
				t.Fatal(err)
			}
			s, err := source.Folders(leotest.Paths(root))
			if err != nil {
				t.Fatal(err)
			}
			differences, err := manifest.Verify(m, s)
			if err != nil {
				t.Fatal(err)
			}
			if !slices.ContainsFunc(differences, func(d manifest.Difference) bool {
				return d.Surface == tc.surface && d.Class == tc.class && d.Path == tc.path
			}) {
				t.Errorf("%v does not name %s %s %s", differences, tc.surface, tc.class, tc.path)
			}
			if original == nil {
				err = os.Remove(at(tc.file))
			} else {
				err = os.WriteFile(at(tc.file), original, 0o644)
			}
			if err != nil {
				t.Fatal(err)
			}
		})
	}
}

// Every setting that is let through is identity: a change of any one is named by its key.
func TestEverySetting(t *testing.T) {
	root := leotest.Copy(t, repository)
	m, _ := leotest.Build(t, root)
	file := filepath.Join(leotest.Paths(root).ProfileTemplate, "config.yaml")
	original, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	in := m.Identity.Inputs.Behavior
	count := 0
	for surface, values := range map[manifest.Surface]map[string]any{manifest.RuntimeConfig: in.RuntimeConfig.Values, manifest.Permissions: in.Permissions.Values} {
		leaves(nil, values, func(path []any, value any) {
			count++
			var doc any
			if err := yaml.Unmarshal(original, &doc); err != nil {
				t.Fatal(err)
			}
			key := set(t, doc, path, value)
			changed, err := yaml.Marshal(doc)
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(file, changed, 0o644); err != nil {
				t.Fatal(err)
			}
			s, err := source.Folders(leotest.Paths(root))
			if err != nil {
				t.Fatal(err)
			}
			differences, err := manifest.Verify(m, s)
			if err != nil {
				t.Fatal(err)
			}
			if len(differences) != 1 || differences[0].Surface != surface {
				t.Errorf("%s: %v is not one difference in %s", key, differences, surface)
				return
			}
			// A refusal may name the list that the item is in.
			if d := differences[0]; d.Class == manifest.Changed && d.Path != key || d.Class == manifest.Refused && !strings.HasPrefix("config.yaml#"+key, strings.SplitN(d.Path, "[", 2)[0]) {
				t.Errorf("%s: named %s", key, d)
			}
		})
	}
	if count < 45 {
		t.Errorf("only %d settings", count)
	}
}

func leaves(path []any, value any, visit func([]any, any)) {
	switch value := value.(type) {
	case map[string]any:
		for name, item := range value {
			leaves(append(slices.Clone(path), name), item, visit)
		}
	case []any:
		for i, item := range value {
			leaves(append(slices.Clone(path), i), item, visit)
		}
	default:
		visit(path, value)
	}
}

// set changes one leaf of a parsed document, and returns its dotted key.
func set(t *testing.T, doc any, path []any, value any) string {
	var key []string
	for i, step := range path {
		key = append(key, fmt.Sprint(step))
		var replace any
		if i == len(path)-1 {
			switch value := value.(type) {
			case string:
				replace = value + "x"
			case bool:
				replace = !value
			case int64:
				replace = value + 1
			case float64:
				replace = value / 2
			}
		}
		switch at := doc.(type) {
		case map[string]any:
			if replace != nil {
				at[step.(string)] = replace
			}
			doc = at[step.(string)]
		case []any:
			if replace != nil {
				at[step.(int)] = replace
			}
			doc = at[step.(int)]
		default:
			t.Fatalf("no %v in the configuration", path)
		}
	}
	return strings.Join(key, ".")
}

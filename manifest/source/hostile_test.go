package source_test

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"selfsame.dev/selfsame/internal/canon"
	"selfsame.dev/selfsame/manifest"
	"selfsame.dev/selfsame/manifest/leotest"
	"selfsame.dev/selfsame/manifest/source"
)

// Law I8: what does not belong into a tree is refused by name, when a manifest is made and when one is verified.
func TestHostileTrees(t *testing.T) {
	link := func(target string) func(t *testing.T, at string) {
		return func(t *testing.T, at string) {
			if err := os.Symlink(target, at); err != nil {
				t.Fatal(err)
			}
		}
	}
	text := func(content string) func(t *testing.T, at string) {
		return func(t *testing.T, at string) { put(t, at, content) }
	}
	fifo := func(t *testing.T, at string) {
		if err := syscall.Mkfifo(at, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	socket := func(t *testing.T, at string) {
		// The name of a socket is short, that of the test's folder may not be.
		t.Chdir(filepath.Dir(at))
		l, err := net.Listen("unix", filepath.Base(at))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { l.Close() })
	}
	template, hermes := "profile-template/", "hermes-runtime/"
	m, _ := leotest.Build(t, leotest.Copy(t, repository))
	for _, tc := range []struct {
		name    string
		at      string
		make    func(t *testing.T, at string)
		surface manifest.Surface
		path    string
		problem string
	}{
		{"link in skills", template + "skills/leo-voice/link.md", link("SKILL.md"), manifest.Skills, "leo-voice/link.md", "symbolic link"},
		{"dangling link in plugins", template + "plugins/gone", link("nowhere"), manifest.Plugins, "gone", "symbolic link"},
		{"link at the top", template + "sessions-link", link("sessions"), manifest.ProfileTemplate, "sessions-link", "symbolic link"},
		{"dangling link at the top", template + "state.db", link("nowhere"), manifest.ProfileTemplate, "state.db", "symbolic link"},
		{"link to a folder at the top", template + "cache", link("/"), manifest.ProfileTemplate, "cache", "symbolic link"},
		{"unknown file at the top", template + "notes.txt", text("x"), manifest.ProfileTemplate, "notes.txt", "exact top level allowlist"},
		{"unknown folder at the top", template + "hooks/a", text("x"), manifest.ProfileTemplate, "hooks", "exact top level allowlist"},
		{"other case at the top", template + "Skills/a", text("x"), manifest.ProfileTemplate, "Skills", "exact top level allowlist"},
		{"project context", template + "AGENTS.md", text("x"), manifest.ProfileTemplate, "AGENTS.md", "exact top level allowlist"},
		{"unpinned identity", template + "mcp.json", text("{}"), manifest.ProfileTemplate, "mcp.json", "bears on identity"},
		{"cron jobs", template + "cron/jobs.json", text("{}"), manifest.ProfileTemplate, "cron", "bears on identity"},
		{"FIFO at the top", template + "gateway.pid", fifo, manifest.ProfileTemplate, "gateway.pid", "neither a file nor a folder"},
		{"FIFO in skills", template + "skills/pipe", fifo, manifest.Skills, "pipe", "FIFO"},
		{"socket in the runtime", hermes + "hermes/socket", socket, manifest.HermesCode, "hermes/socket", "socket"},
		{"environment file in a plugin", template + "plugins/leo-reply-guard/.env", text("A=b"), manifest.Plugins, "plugins/leo-reply-guard/.env", "for credentials"},
		{"environment file in the deployment", "teleo-deployment/.env.production", text("A=b"), manifest.DeploymentCode, ".env.production", "for credentials"},
		{"private key in the runtime", hermes + "id_ed25519", text("x"), manifest.HermesCode, "id_ed25519", "for credentials"},
		{"token in a skill", template + "skills/leo-voice/token.md", text("use sk-ant-api03-" + strings.Repeat("x1", 12)), manifest.Skills, "skills/leo-voice/token.md", "looks like a credential"},
		{"names that differ by case", template + "skills/LEO-VOICE/SKILL.md", text("x"), manifest.Skills, "", "case is folded"},
		{"name that is not NFC", template + "skills/cafe\u0301.md", text("x"), manifest.Skills, "", "normalization form C"},
		{"name that is not UTF-8", template + "skills/\xff.md", text("x"), manifest.Skills, "", "UTF-8"},
		{"control character in a name", hermes + "a\nb", text("x"), manifest.HermesCode, "", "control character"},
		{"two versions of a package", hermes + "venv/lib/python3.12/site-packages/httpx-0.29.0.dist-info/METADATA", text("Name: httpx\nVersion: 0.29.0\n"), manifest.RuntimeABI, "", "2 dist-info"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			root := leotest.Copy(t, repository)
			at := filepath.Join(root, filepath.FromSlash(leotest.Folder), tc.at)
			if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
				t.Fatal(err)
			}
			tc.make(t, at)
			s, err := source.Folders(leotest.Paths(root))
			if err != nil {
				t.Fatal(err)
			}
			var input *canon.InputError
			if _, err := manifest.Build(s); !errors.As(err, &input) || !strings.Contains(err.Error(), tc.problem) || input.Fix == "" || !strings.Contains(err.Error(), tc.path) {
				t.Errorf("build: %v", err)
			}
			differences, err := manifest.Verify(m, s)
			if err != nil {
				t.Fatal(err)
			}
			if !slices.ContainsFunc(differences, func(d manifest.Difference) bool {
				return d.Surface == tc.surface && d.Class == manifest.Refused && strings.Contains(d.Path, tc.path) && strings.Contains(d.Actual, tc.problem)
			}) {
				t.Errorf("verify: %v", differences)
			}
		})
	}
}

// A root that is itself a link, or a document that is one, is refused.
func TestLinkedRoots(t *testing.T) {
	for _, tc := range []struct {
		name    string
		file    func(p source.Paths) string
		surface manifest.Surface
	}{
		{"hermes root", func(p source.Paths) string { return p.HermesRoot }, manifest.HermesCode},
		{"constitution", func(p source.Paths) string { return p.Constitution }, manifest.Constitution},
		{"evidence", func(p source.Paths) string {
			return filepath.Join(p.SourceRoot, filepath.FromSlash(leotest.Folder), "evidence/naming-record.md")
		}, manifest.IdentityRows},
	} {
		t.Run(tc.name, func(t *testing.T) {
			root := leotest.Copy(t, repository)
			m, _ := leotest.Build(t, root)
			file := tc.file(leotest.Paths(root))
			if err := os.Rename(file, file+".real"); err != nil {
				t.Fatal(err)
			}
			if err := os.Symlink(file+".real", file); err != nil {
				t.Fatal(err)
			}
			s, err := source.Folders(leotest.Paths(root))
			if err != nil {
				t.Fatal(err)
			}
			differences, err := manifest.Verify(m, s)
			if err != nil || len(differences) == 0 || !slices.ContainsFunc(differences, func(d manifest.Difference) bool {
				return d.Surface == tc.surface && strings.Contains(d.Actual, "symbolic link")
			}) {
				t.Errorf("%v, %v", differences, err)
			}
		})
	}
}

// A file whose content is interpreted must be the one that was hashed.
func TestChangedWhileRead(t *testing.T) {
	for _, name := range []string{"profile-template/skills/leo-voice/SKILL.md", "hermes-runtime/selfsame-root.json", "hermes-runtime/venv/pyvenv.cfg",
		"hermes-runtime/venv/lib/python3.12/site-packages/httpx-0.28.1.dist-info/METADATA"} {
		root := leotest.Copy(t, repository)
		_, s := leotest.Build(t, root)
		edit(t, filepath.Join(root, filepath.FromSlash(leotest.Folder), name), func(s string) string { return s + "\n" })
		if _, err := manifest.Build(s); err == nil || !strings.Contains(err.Error(), "changed while") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

package manifest

import (
	"io/fs"
	"path"
	"strings"

	"selfsame.dev/selfsame/internal/canon"
)

// The names of a template that go into an identity.
const (
	ConfigFile       = "config.yaml"
	SkillsFolder     = "skills"
	PluginsFolder    = "plugins"
	DatabaseToolsDir = "database-tools"
)

// Class says what becomes of a top level name of a profile template.
type Class string

const (
	ClassPinned     Class = "pinned"
	ClassCredential Class = "credential"
	ClassState      Class = "state"
	ClassMemory     Class = "memory"
	ClassPairing    Class = "pairing"
	ClassCache      Class = "cache"
	ClassInstalled  Class = "infrastructure"
	ClassLegacy     Class = "legacy_configuration"
	ClassView       Class = "generated_view"
)

// classes is the exact list of names that a template may hold. What is not pinned is never read and never
// copied; what is not in this list is refused. (Names of a Hermes home, November 2026.)
var classes = map[string]Class{
	ConfigFile: ClassPinned, SkillsFolder: ClassPinned, PluginsFolder: ClassPinned, DatabaseToolsDir: ClassPinned,

	".env": ClassCredential, "auth.json": ClassCredential, "auth.lock": ClassCredential,

	"state.db": ClassState, "state.db-wal": ClassState, "state.db-shm": ClassState, "hermes_state.db": ClassState,
	"response_store.db": ClassState, "response_store.db-wal": ClassState, "response_store.db-shm": ClassState,
	"gateway.pid": ClassState, "gateway_state.json": ClassState, "processes.json": ClassState, "active_profile": ClassState,
	".update_check": ClassState, "errors.log": ClassState, ".hermes_history": ClassState, "sessions": ClassState,
	"terminal-sessions": ClassState, "logs": ClassState, "backups": ClassState, "state-snapshots": ClassState,
	"checkpoints": ClassState, "sandboxes": ClassState, "attachments": ClassState,

	"memories": ClassMemory,
	"pairing":  ClassPairing, "platforms": ClassPairing,

	"image_cache": ClassCache, "audio_cache": ClassCache, "document_cache": ClassCache,
	"browser_screenshots": ClassCache, "cache": ClassCache,

	"installs": ClassInstalled, "tools": ClassInstalled, "build-tools": ClassInstalled, "hermes-agent": ClassInstalled,
	".worktrees": ClassInstalled, "profiles": ClassInstalled, "bin": ClassInstalled, "node": ClassInstalled,
	"node_modules": ClassInstalled, ".hermes-runtime": ClassInstalled,

	"gateway.json": ClassLegacy,
	"SOUL.md":      ClassView, "identity.json": ClassView,
}

// identityBearing are names that change answers and that no surface of identity-manifest.v1 pins.
var identityBearing = map[string]bool{
	"mcp.json": true, "cron": true, "profile.yaml": true, "distribution.yaml": true, ".no-bundled-skills": true,
}

// ClassOf returns the class of a top level name of a template, or "" when it is unknown.
func ClassOf(name string) Class { return classes[name] }

// FolderSurface says which surface a path below one of the pinned folders belongs to.
func FolderSurface(path string) (Surface, bool) {
	folder, _, _ := strings.Cut(path, "/")
	switch folder {
	case SkillsFolder:
		return Skills, true
	case PluginsFolder:
		return Plugins, true
	case DatabaseToolsDir:
		return DatabaseTools, true
	}
	return "", false
}

// Root returns the pinned folder that a path relative to the template is in.
func (t Template) Root(path string) (Root, bool) {
	surface, ok := FolderSurface(path)
	switch surface {
	case Skills:
		return t.Skills, ok
	case Plugins:
		return t.Plugins, ok
	}
	return t.DatabaseTools, ok
}

// CheckTemplate refuses a template with a name outside the exact allowlist, or with a refused
// pinned folder.
func CheckTemplate(t Template) error {
	for _, problem := range []error{t.Problem, checkNames(t.Names), t.Skills.Problem, t.Plugins.Problem, t.DatabaseTools.Problem} {
		if problem != nil {
			return canon.InFile(string(ProfileTemplate), problem)
		}
	}
	return nil
}

// checkNames refuses the first name of a template that the exact allowlist does not have, and
// everything that is not a plain file or folder: links, dangling ones too, are refused by name.
func checkNames(names []Name) error {
	pinned := map[string]bool{}
	for _, n := range names {
		class := classes[n.Name]
		switch {
		case n.Type&fs.ModeSymlink != 0:
			return &canon.InputError{Key: n.Name, Problem: "is a symbolic link in the profile template", Fix: "replace it by the file itself, or remove it"}
		case identityBearing[n.Name]:
			return &canon.InputError{Key: n.Name, Problem: "bears on identity, and no surface pins it", Fix: "remove it from the profile template"}
		case class == "":
			return &canon.InputError{Key: n.Name, Problem: "is not in the exact top level allowlist of a profile template", Fix: "remove it from the profile template"}
		case n.Type != 0 && n.Type != fs.ModeDir:
			return &canon.InputError{Key: n.Name, Problem: "is neither a file nor a folder", Fix: "remove it from the profile template"}
		}
		if class != ClassPinned {
			continue
		}
		if pinned[n.Name] {
			return &canon.InputError{Key: n.Name, Problem: "is listed twice", Fix: "list it once"}
		}
		pinned[n.Name] = true
		if folder := n.Name != ConfigFile; folder != (n.Type == fs.ModeDir) {
			return &canon.InputError{Key: n.Name, Problem: "is a file where a folder belongs, or the other way round", Fix: "config.yaml is a file; skills, plugins and database-tools are folders"}
		}
	}
	if !pinned[ConfigFile] {
		return &canon.InputError{Key: ConfigFile, Problem: "is missing in the profile template", Fix: "add the runtime configuration"}
	}
	return nil
}

// CredentialFile reports whether a file name is one that holds credentials. A plain digest
// of such a file would be a digest of the credential, so no pinned tree may hold one.
func CredentialFile(p string) bool {
	name := strings.ToLower(path.Base(p))
	switch name {
	case ".env", "auth.json", "auth.lock", ".netrc", "_netrc", ".pgpass", ".npmrc", ".pypirc", ".git-credentials",
		"credentials.json", "id_rsa", "id_ecdsa", "id_ed25519", "id_dsa":
		return true
	}
	if rest, ok := strings.CutPrefix(name, ".env."); ok {
		return rest != "example" && rest != "sample" && rest != "template"
	}
	switch path.Ext(name) {
	case ".key", ".p12", ".pfx", ".keystore", ".jks":
		return true
	}
	return false
}

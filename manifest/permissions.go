package manifest

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"selfsame.dev/selfsame/internal/canon"
	"selfsame.dev/selfsame/internal/tree"
)

// Policy is the only one this schema pins: the agent sends nothing, and reads the database only.
const Policy = "no_send_read_only"

// PermissionInputs are the permissions as configured. They are no readback of an
// authorizer, and say so.
type PermissionInputs struct {
	Policy           string         `json:"policy"`
	DatabaseCommands []string       `json:"database_commands"`
	Readback         string         `json:"readback"`
	Values           map[string]any `json:"values"`
	SHA256           canon.Digest   `json:"sha256"`
}

// Settings returns the permission settings alone.
func (p PermissionInputs) Settings() Settings { return Settings{p.Values, p.SHA256} }

// harmless are the toolsets without a tool that sends, writes or runs what is not in command_allowlist.
var harmless = []string{"clarify", "skills", "terminal", "todo"}

// permit checks the permission settings against the exact policy. tools is what the database-tools
// folder holds: commands outside it are refused.
func permit(s Settings, tools []tree.Entry) (PermissionInputs, error) {
	out := PermissionInputs{Policy: Policy, DatabaseCommands: []string{}, Readback: "not_claimed", Values: s.Values, SHA256: s.SHA256}
	for _, want := range []struct {
		key   string
		value any
	}{
		{"gateway.send_policy", "no_send"},
		{"database.access", "read_only"},
		{"approvals.mode", "manual"},
		{"terminal.backend", "local"},
		{"memory.memory_enabled", false},
		{"memory.user_profile_enabled", false},
		{"hooks_auto_accept", false},
		{"unauthorized_dm_behavior", "ignore"},
	} {
		if have, found := lookup(s.Values, want.key); !found || have != want.value {
			return out, &canon.InputError{Key: want.key, Problem: fmt.Sprintf("the policy %s pins the value %v here", Policy, want.value), Fix: fmt.Sprintf("write %s: %v", want.key, want.value)}
		}
	}
	sets := map[string]any{"toolsets": s.Values["toolsets"]}
	platforms, _ := s.Values["platform_toolsets"].(map[string]any)
	for name, list := range platforms {
		sets["platform_toolsets."+name] = list
	}
	for _, key := range slices.Sorted(maps.Keys(sets)) {
		list, _ := sets[key].([]any)
		if len(list) == 0 {
			return out, &canon.InputError{Key: key, Problem: "names no toolset, which means the default ones", Fix: "name toolsets of: " + strings.Join(harmless, ", ")}
		}
		for _, item := range list {
			if name, _ := item.(string); !slices.Contains(harmless, name) {
				return out, &canon.InputError{Key: key, Problem: fmt.Sprintf("the toolset %q can send or write, which the policy %s refuses", item, Policy), Fix: "name toolsets of: " + strings.Join(harmless, ", ")}
			}
		}
	}
	commands, _ := s.Values["command_allowlist"].([]any)
	for _, item := range commands {
		command, _ := item.(string)
		if !slices.ContainsFunc(tools, func(e tree.Entry) bool { return e.Path == command }) {
			return out, &canon.InputError{Key: "command_allowlist", Problem: fmt.Sprintf("%q is no file of %s/", command, DatabaseToolsDir), Fix: "allow only the read-only wrappers of the profile"}
		}
		out.DatabaseCommands = append(out.DatabaseCommands, command)
	}
	if len(commands) == 0 {
		return out, &canon.InputError{Key: "command_allowlist", Problem: "names no read-only wrapper, which leaves the terminal unrestricted", Fix: "name the wrapper in " + DatabaseToolsDir + "/"}
	}
	for _, group := range []struct {
		key    string
		absent bool // whether a missing switch means off
	}{{"platforms", true}, {"mcp_servers", false}} {
		servers, _ := s.Values[group.key].(map[string]any)
		for _, name := range slices.Sorted(maps.Keys(servers)) {
			server, _ := servers[name].(map[string]any)
			enabled, found := server["enabled"]
			if enabled == true || !found && !group.absent {
				return out, &canon.InputError{Key: group.key + "." + name + ".enabled", Problem: "a channel that can send is enabled, which the policy " + Policy + " refuses", Fix: "write enabled: false"}
			}
		}
	}
	return out, nil
}

// lookup finds a value by dotted key.
func lookup(values map[string]any, key string) (any, bool) {
	name, rest, more := strings.Cut(key, ".")
	value, found := values[name]
	if !more || !found {
		return value, found
	}
	inner, _ := value.(map[string]any)
	return lookup(inner, rest)
}

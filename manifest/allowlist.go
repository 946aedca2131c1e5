package manifest

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"selfsame.dev/selfsame/internal/canon"
)

// shape is what the allowlist says about one key: which JSON types its value may have and,
// for mappings and lists, what they hold.
type shape struct {
	types  []string         // of: string boolean integer number mapping list
	values []string         // for strings: the only ones allowed; nil for any
	keys   map[string]shape // for mappings with known keys
	each   *shape           // for lists, and for mappings whose keys are free names
}

var (
	text    = shape{types: []string{"string"}}
	boolean = shape{types: []string{"boolean"}}
	integer = shape{types: []string{"integer"}}
	number  = shape{types: []string{"number"}}
	texts   = listOf(text)
)

func oneOf(values ...string) shape { return shape{types: text.types, values: values} }

func mapping(keys map[string]shape) shape { return shape{types: []string{"mapping"}, keys: keys} }

func named(each shape) shape { return shape{types: []string{"mapping"}, each: &each} }

func listOf(each shape) shape { return shape{types: []string{"list"}, each: &each} }

var effort = oneOf("none", "minimal", "low", "medium", "high", "xhigh")

// runtimeKeys and permissionKeys are the strict allowlist of config.yaml: every path that is
// identity, and its type. Everything else is omitted (credentials) or reported (unknown keys).
var runtimeKeys = map[string]shape{
	"_config_version": integer,
	"model": {types: []string{"string", "mapping"}, keys: map[string]shape{
		"default": text, "provider": text, "base_url": text, "api_mode": text,
		"context_length": integer, "max_tokens": integer, "temperature": number, "top_p": number,
	}},
	"smart_model_routing": boolean,
	"fallback_model":      mapping(map[string]shape{"provider": text, "model": text, "base_url": text, "api_mode": text}),
	"fallback_providers":  listOf(mapping(map[string]shape{"provider": text, "model": text, "base_url": text, "api_mode": text})),
	"providers":           named(mapping(map[string]shape{"base_url": text, "api_mode": text, "default_model": text, "models": texts, "timeout": integer})),
	"custom_providers": listOf(mapping(map[string]shape{
		"name": text, "base_url": text, "api_mode": text, "model": text, "context_length": integer})),
	"auxiliary": named(mapping(map[string]shape{"provider": text, "model": text, "base_url": text, "timeout": integer})),
	"agent": mapping(map[string]shape{
		"max_turns": integer, "max_tokens": integer, "reasoning_effort": effort, "system_prompt": text, "service_tier": text,
		"gateway_timeout": integer, "personalities": named(text)}),
	"personalities":           named(text),
	"delegation":              mapping(map[string]shape{"provider": text, "model": text, "base_url": text, "max_iterations": integer, "reasoning_effort": effort}),
	"compression":             mapping(map[string]shape{"enabled": boolean, "threshold": number, "target_ratio": number, "protect_last_n": integer}),
	"context":                 mapping(map[string]shape{"engine": text}),
	"context_file_max_chars":  integer,
	"file_read_max_chars":     integer,
	"max_concurrent_sessions": integer,
	"prompt_caching":          mapping(map[string]shape{"enabled": boolean, "cache_ttl": text}),
	"streaming":               mapping(map[string]shape{"enabled": boolean, "transport": text}),
	"timezone":                text,
	"tool_output":             mapping(map[string]shape{"max_bytes": integer, "max_lines": integer, "max_line_length": integer}),
	"session_reset":           mapping(map[string]shape{"mode": text, "idle_minutes": integer, "at_hour": integer}),
}

var permissionKeys = map[string]shape{
	"toolsets":                 texts,
	"platform_toolsets":        named(texts),
	"approvals":                mapping(map[string]shape{"mode": text, "timeout": integer, "cron_mode": text}),
	"command_allowlist":        texts,
	"terminal":                 mapping(map[string]shape{"backend": text, "cwd": text, "timeout": integer}),
	"code_execution":           mapping(map[string]shape{"mode": text, "timeout": integer, "max_tool_calls": integer}),
	"security":                 mapping(map[string]shape{"redact_secrets": boolean, "allow_private_urls": boolean, "tirith_enabled": boolean}),
	"privacy":                  mapping(map[string]shape{"redact_pii": boolean}),
	"gateway":                  mapping(map[string]shape{"send_policy": text}),
	"database":                 mapping(map[string]shape{"access": text}),
	"memory":                   mapping(map[string]shape{"memory_enabled": boolean, "user_profile_enabled": boolean, "memory_char_limit": integer, "user_char_limit": integer}),
	"platforms":                named(mapping(map[string]shape{"enabled": boolean})),
	"plugins":                  mapping(map[string]shape{"enabled": texts, "disabled": texts}),
	"mcp_servers":              named(mapping(map[string]shape{"enabled": boolean, "command": text, "args": texts, "url": text, "timeout": integer, "tools": mapping(map[string]shape{"include": texts, "exclude": texts})})),
	"hooks_auto_accept":        boolean,
	"require_mention":          boolean,
	"unauthorized_dm_behavior": text,
}

// credentialKey reports whether a key that the allowlist does not have is one for credentials.
func credentialKey(name string) bool {
	name = strings.ToLower(strings.ReplaceAll(name, "-", "_"))
	switch name {
	case "api_key", "apikey", "key", "token", "secret", "password", "passwd", "authorization", "auth", "headers",
		"extra_headers", "env", "key_cmd", "credential", "credentials", "cookie", "cookies":
		return true
	}
	for _, suffix := range []string{"_key", "_token", "_secret", "_password", "_passwd", "_credentials", "_headers", "_key_cmd"} {
		if strings.HasSuffix(name, suffix) {
			return true
		}
	}
	return false
}

// Report says what of a config.yaml did not pass: dotted keys only, never values.
type Report struct {
	OmittedCredentials []string `json:"omitted_credentials"`
	UnknownKeys        []string `json:"unknown_keys"`
}

// filter parts a parsed config.yaml into the values that are identity, and a report on the rest. Mappings
// that nothing is left of are dropped, so that a credential leaves no trace.
type filter struct{ report Report }

func (f *filter) mapping(key string, value map[string]any, keys map[string]shape, each *shape) (map[string]any, error) {
	out := map[string]any{}
	for _, name := range slices.Sorted(maps.Keys(value)) {
		at := join(key, name)
		s, known := keys[name]
		if each != nil && plainName.MatchString(name) && !looksSecret(name) {
			s, known = *each, true
		}
		switch {
		case known:
			passed, err := f.value(at, value[name], s)
			if err != nil {
				return nil, err
			}
			if m, ok := passed.(map[string]any); !ok || len(m) > 0 {
				out[name] = passed
			}
		case credentialKey(name):
			f.report.OmittedCredentials = append(f.report.OmittedCredentials, at)
		default:
			f.report.UnknownKeys = append(f.report.UnknownKeys, at)
		}
	}
	return out, nil
}

func (f *filter) value(key string, value any, s shape) (any, error) {
	kind := kindOf(value)
	if kind == "integer" && !slices.Contains(s.types, "integer") && slices.Contains(s.types, "number") {
		kind = "number"
	}
	if !slices.Contains(s.types, kind) {
		if key == "smart_model_routing" && kind == "mapping" {
			return nil, routing(value.(map[string]any))
		}
		fix := "write a " + strings.Join(s.types, " or a ")
		if kind == "null" {
			fix = "remove the key, or " + fix
		}
		return nil, &canon.InputError{Key: key, Problem: fmt.Sprintf("is a %s where a %s belongs", kind, strings.Join(s.types, " or ")), Fix: fix}
	}
	switch value := value.(type) {
	case string:
		return value, checkText(key, value, s)
	case map[string]any:
		return f.mapping(key, value, s.keys, s.each)
	case []any:
		out := make([]any, len(value))
		for i, item := range value {
			passed, err := f.value(key+"["+strconv.Itoa(i)+"]", item, *s.each)
			if err != nil {
				return nil, err
			}
			out[i] = passed
		}
		return out, nil
	}
	return value, nil
}

func checkText(key, value string, s shape) error {
	switch {
	case s.values != nil && !slices.Contains(s.values, value):
		return &canon.InputError{Key: key, Problem: "has a value that is not allowed", Fix: "write one of: " + strings.Join(s.values, ", ")}
	case strings.Contains(value, "${"):
		return &canon.InputError{Key: key, Problem: "is expanded from the environment, which no manifest can pin", Fix: "write the value out"}
	case looksSecret(value):
		return &canon.InputError{Key: key, Problem: "looks like a credential in a field that is identity", Fix: "move the credential to .env or to a credential key, and remove it here"}
	case len(value) > 1<<16:
		return &canon.InputError{Key: key, Problem: "is longer than 65536 bytes", Fix: "shorten it"}
	}
	for _, r := range value {
		// What YAML does not print raw (1.2, production c-printable), and what it may take for a line break.
		if r < ' ' && r != '\n' && r != '\t' || r >= 0x7f && r < 0xa0 || r == 0xfeff || r == 0xfffe || r == 0xffff || r == 0x2028 || r == 0x2029 {
			return &canon.InputError{Key: key, Problem: fmt.Sprintf("holds the control character U+%04X", r), Fix: "remove it"}
		}
	}
	return nil
}

// routing refuses the mapping that real profiles often have, and says what to write.
func routing(value map[string]any) error {
	write := "smart_model_routing: true or smart_model_routing: false"
	if enabled, ok := value["enabled"].(bool); ok {
		write = fmt.Sprintf("smart_model_routing: %t", enabled)
	}
	return &canon.InputError{Key: "smart_model_routing",
		Problem: "is a mapping; the identity contract pins a boolean switch and no nested routing data",
		Fix:     "write " + write + " at the top level, and remove the nested keys (name other models in fallback_model or auxiliary)"}
}

func kindOf(value any) string {
	switch value.(type) {
	case nil:
		return "null"
	case string:
		return "string"
	case bool:
		return "boolean"
	case int64:
		return "integer"
	case float64:
		return "number"
	case map[string]any:
		return "mapping"
	}
	return "list"
}

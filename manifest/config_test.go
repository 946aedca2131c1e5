package manifest

import (
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"

	"selfsame.dev/selfsame/internal/canon"
	"selfsame.dev/selfsame/internal/tree"
)

// permitted is a configuration that the policy accepts.
const permitted = `model: example/model
toolsets: [skills, terminal]
platform_toolsets: {telegram: [skills]}
command_allowlist: [database-tools/query]
gateway: {send_policy: no_send}
database: {access: read_only}
approvals: {mode: manual}
terminal: {backend: local}
memory: {memory_enabled: false, user_profile_enabled: false}
hooks_auto_accept: false
unauthorized_dm_behavior: ignore
platforms: {a.b: {enabled: false}}
mcp_servers: {index: {enabled: false, args: [serve]}}
`

var tools = []tree.Entry{{Path: "database-tools/query"}}

func configure(text string) (Settings, PermissionInputs, Report, error) {
	runtime, permissions, report, err := readConfig([]byte(text))
	if err != nil {
		return runtime, PermissionInputs{}, report, err
	}
	p, err := permit(permissions, tools)
	return runtime, p, report, err
}

func TestConfigRefuses(t *testing.T) {
	with := func(line string) string { return permitted + line + "\n" }
	swap := func(from, to string) string {
		if !strings.Contains(permitted, from) {
			panic(from)
		}
		return strings.Replace(permitted, from, to, 1)
	}
	for _, tc := range []struct{ name, in, key, problem, fix string }{
		{"no model", swap("model: example/model\n", ""), "model", "missing", ""},
		{"routing as a mapping", with("smart_model_routing: {enabled: true, max_simple_chars: 160, cheap_model: {provider: x}}"), "smart_model_routing", "is a mapping", "smart_model_routing: true at the top level"},
		{"routing as an empty mapping", with("smart_model_routing: {}"), "smart_model_routing", "is a mapping", "smart_model_routing: true or smart_model_routing: false"},
		{"routing as text", with("smart_model_routing: 'false'"), "smart_model_routing", "is a string where a boolean", ""},
		{"routing as null", with("smart_model_routing:"), "smart_model_routing", "is a null", "remove the key"},
		{"number as text", with("timezone: 5"), "timezone", "is a integer where a string", ""},
		{"fraction for integer", with("file_read_max_chars: 1.5"), "file_read_max_chars", "is a number where a integer", ""},
		{"mapping for a list", with("fallback_providers: {a: b}"), "fallback_providers", "is a mapping", ""},
		{"list item", with("agent: {personalities: {x: [z]}}"), "agent.personalities.x", "is a list", ""},
		{"value outside its list", with("agent: {reasoning_effort: huge}"), "agent.reasoning_effort", "not allowed", "medium"},
		{"environment", with("timezone: ${TZ}"), "timezone", "environment", ""},
		{"userinfo", with("fallback_model: {base_url: 'https://u:p@h.invalid/'}"), "fallback_model.base_url", "looks like a credential", ""},
		{"token in a query", with("fallback_model: {base_url: 'https://h.invalid/?token=abc'}"), "fallback_model.base_url", "looks like a credential", ""},
		{"token in a prompt", with("agent: {system_prompt: 'Use Bearer abcdefghijklmnop.'}"), "agent.system_prompt", "looks like a credential", ""},
		{"token as an argument", swap("args: [serve]", "args: ['--token', abc]"), "mcp_servers.index.args[0]", "looks like a credential", ""},
		{"long run", with("timezone: abcdefghij0123456789abcdefghij0123456789"), "timezone", "looks like a credential", ""},
		{"noncharacter", with(`timezone: "a\uffffb"`), "timezone", "control character U+FFFF", ""},
		{"C1 control", with(`timezone: "a\x80b"`), "timezone", "control character U+0080", ""},
		{"control character", with(`timezone: "a\x1bb"`), "timezone", "control character U+001B", ""},

		{"sends", swap("no_send", "all"), "gateway.send_policy", "pins the value no_send", "gateway.send_policy: no_send"},
		{"send policy missing", swap("gateway: {send_policy: no_send}\n", ""), "gateway.send_policy", "pins", ""},
		{"database writes", swap("read_only", "read_write"), "database.access", "pins", ""},
		{"approvals off", swap("{mode: manual}", "{mode: 'off'}"), "approvals.mode", "pins", ""},
		{"terminal elsewhere", swap("{backend: local}", "{backend: ssh}"), "terminal.backend", "pins", ""},
		{"memory on", swap("{memory_enabled: false", "{memory_enabled: true"), "memory.memory_enabled", "pins", ""},
		{"hooks", swap("hooks_auto_accept: false", "hooks_auto_accept: true"), "hooks_auto_accept", "pins", ""},
		{"pairing", swap("unauthorized_dm_behavior: ignore", "unauthorized_dm_behavior: pair"), "unauthorized_dm_behavior", "pins", ""},
		{"no toolsets", swap("toolsets: [skills, terminal]", "toolsets: []"), "toolsets", "default", ""},
		{"toolsets missing", swap("toolsets: [skills, terminal]\n", ""), "toolsets", "default", ""},
		{"toolset that sends", swap("[skills, terminal]", "[hermes-cli]"), "toolsets", "can send", ""},
		{"toolset of a platform", swap("{telegram: [skills]}", "{telegram: [messaging]}"), "platform_toolsets.telegram", "can send", ""},
		{"platform without toolsets", swap("{telegram: [skills]}", "{telegram: []}"), "platform_toolsets.telegram", "default", ""},
		{"no command", swap("[database-tools/query]", "[]"), "command_allowlist", "unrestricted", ""},
		{"command outside the tools", swap("[database-tools/query]", "[database-tools/query, psql]"), "command_allowlist", "psql", ""},
		{"command above the tools", swap("[database-tools/query]", "[database-tools/../x]"), "command_allowlist", "no file of", ""},
		{"platform on", swap("{a.b: {enabled: false}}", "{a.b: {enabled: true}}"), "platforms.a.b.enabled", "is enabled", ""},
		{"server on", swap("{enabled: false, args", "{enabled: true, args"), "mcp_servers.index.enabled", "is enabled", ""},
		{"server on by default", swap("{enabled: false, args", "{args"), "mcp_servers.index.enabled", "is enabled", ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, _, _, err := configure(tc.in)
			var input *canon.InputError
			if !errors.As(err, &input) || input.Key != tc.key || !strings.Contains(input.Problem, tc.problem) || !strings.Contains(input.Fix, tc.fix) || input.Fix == "" {
				t.Errorf("%v (%+v), want %s: %s; %s", err, input, tc.key, tc.problem, tc.fix)
			}
		})
	}
	if _, p, _, err := configure(permitted); err != nil || p.Policy != Policy || !slices.Equal(p.DatabaseCommands, []string{"database-tools/query"}) {
		t.Errorf("control: %+v, %v", p, err)
	}
}

// What does not pass is reported by key and leaves no trace in the settings.
func TestConfigReports(t *testing.T) {
	_, p, report, err := configure(permitted + `
api_key: a
auxiliary: {vision: {api_key: b, weight: 1}}
custom_providers: [{name: m, api_key: c, key_cmd: d, headers: {X: e}}]
slack: {token: f}
stt: 1
personalities: {"two words": x, fine: z}
"quoted key": 1
"sk-abcdefghijklmnopqrstuvwx": 1
`)
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{"api_key", "auxiliary.vision.api_key", "custom_providers[0].api_key", "custom_providers[0].headers", "custom_providers[0].key_cmd"}; !slices.Equal(report.OmittedCredentials, want) {
		t.Errorf("omitted %q, want %q", report.OmittedCredentials, want)
	}
	if want := []string{"auxiliary.vision.weight", `personalities."two words"`, `"quoted key"`, "<secret-like key>", "slack", "stt"}; !slices.Equal(report.UnknownKeys, want) {
		t.Errorf("unknown %q, want %q", report.UnknownKeys, want)
	}
	runtime, _, _, err := configure(permitted + "personalities: {fine: z}\ncustom_providers: [{name: m}]\n")
	if err != nil {
		t.Fatal(err)
	}
	all, _, _, err := configure(permitted + "personalities: {fine: z}\ncustom_providers: [{name: m, api_key: x}]\nauxiliary: {vision: {api_key: b}}\n")
	if err != nil || !reflect.DeepEqual(runtime, all) {
		t.Errorf("credentials leave a trace: %v and %v, %v", runtime, all, err)
	}
	if p.Readback != "not_claimed" {
		t.Error("a readback is claimed")
	}
}

// restate accepts what came out of readConfig, also after a way through JSON, and nothing that did not.
func TestRestate(t *testing.T) {
	runtime, p, _, err := configure(permitted + "compression: {threshold: 0.75}\n")
	if err != nil {
		t.Fatal(err)
	}
	throughJSON := func(s Settings) Settings {
		data, err := canon.Marshal(s)
		if err != nil {
			t.Fatal(err)
		}
		var out Settings
		if err := canon.Decode(data, &out); err != nil {
			t.Fatal(err)
		}
		return out
	}
	if err := restate(throughJSON(runtime), throughJSON(p.Settings())); err != nil {
		t.Errorf("control: %v", err)
	}
	moved := throughJSON(runtime)
	moved.Values["toolsets"] = []any{"skills"}
	if err := restate(moved, throughJSON(p.Settings())); err == nil {
		t.Error("a permission among the runtime settings is accepted")
	}
}

func TestLooksSecret(t *testing.T) {
	for _, secret := range []string{
		"sk-or-v1-abcdef0123456789abcd", "key is sk-abcdefghijklmnopqrst", "ghp_abcdefghijklmnopqrstuvwxyz012345", "xoxb-1234567890-abc", "AKIAABCDEFGHIJKLMNOP",
		"AIza" + strings.Repeat("x", 35), "eyJhbGciOiJI.eyJzdWIiOiIx.c2ln", "-----BEGIN RSA PRIVATE KEY-----", "-----BEGIN PRIVATE KEY-----", "Bearer abcdefghijklmnop",
		"bearer abcdefghijklmnop", "Basic YWxhZGRpbjpvcGVuc2VzYW1l", "7000000001:AA" + strings.Repeat("b", 33), "postgres://u:p@h/d", "https://t@h.invalid", "https://h.invalid/?x=1&api_key=a",
		"--password hunter2", "--token=abc", "--token", "--api-key", "DB_PASSWORD=x", "0123456789abcdef0123456789abcdef", "hf_abcdefghijklmnopqrstuv",
	} {
		if !looksSecret(secret) {
			t.Errorf("%q passes", secret)
		}
	}
	for _, plain := range []string{
		"anthropic/claude-sonnet-4.5", "https://openrouter.example.invalid/api/v1", "database-tools/leo-read-only-query", "You are Leo. Keep the key: it opens the door.",
		"task-abcdefghijklmnopqrstuvwxyz", "--read-only", "a@b.example", "token", "max_tokens", "ask-me-anything-about-the-house", "risk-averse-and-very-careful-mode", "Bearer of good news",
		"disk-usage-of-the-whole-machine", "basic understanding_of_things", "Europe/Paris", strings.Repeat("a", 60), strings.Repeat("1", 40), "",
	} {
		if looksSecret(plain) {
			t.Errorf("%q is refused", plain)
		}
	}
}

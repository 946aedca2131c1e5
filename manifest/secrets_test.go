package manifest

import "testing"

// What a build's variables and options may not show, and what must stay readable: paths with digests in them.
func TestSecretValue(t *testing.T) {
	for _, tc := range []struct {
		name, value string
		secret      bool
	}{
		{"DEPLOY_TOKEN", "1", true},
		{"API_KEY", "x", true},
		{"--password", "x", true},
		{"AWS_SECRET_ACCESS_KEY", "x", true},
		{"GH_TOKENS", "x", true},
		{"URL", "https://user:pw@example.com/x", true},
		{"", "--api-key=abc", true},
		{"", "curl -H 'Authorization: Bearer abcdefghijklmnop'", true},
		{"X", "sk-synthetic-0123456789abcdef", true},
		{"X", "Zm9vYmFyMTIzNDU2Nzg5MGFiY2RlZmdoaWprbG1u", true},
		{"PATH", "/nix/store/0c7i1zqk3b2v9x8w7f6g5h4j3k2l1m0n-bash/bin:/usr/bin", false},
		{"", "-I/b/0123456789abcdef0123456789abcdef/execroot/_main", false},
		{"X", "b640e840b19d378660b32fb51ae18d67dccb4a8596a29e7bd72c1b2ae5928f41", false},
		{"MONKEY", "x", false},
		{"KEYBOARD", "us", false},
		{"GREETING", "hello", false},
		{"", "-O2", false},
	} {
		if got := SecretValue(tc.name, tc.value); got != tc.secret {
			t.Errorf("%s %s: %t", tc.name, tc.value, got)
		}
	}
}

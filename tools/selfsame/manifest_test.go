package main

import (
	"bytes"
	"context"
	"encoding/json"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"selfsame.dev/selfsame/internal/canon"
	"selfsame.dev/selfsame/manifest"
	"selfsame.dev/selfsame/manifest/leotest"
)

// leo is a checkout with Leo's fixtures as the current folder, and all that commands wrote.
type leo struct {
	t      *testing.T
	output bytes.Buffer
}

// commit makes the current folder a clean Git work tree, and reports whether there is a Git to do so.
func (l *leo) commit() bool {
	if !leotest.Git(l.t) {
		return false
	}
	for _, args := range [][]string{{"init", "-q"}, {"add", "-A", "-f"}, {"-c", "user.name=Test", "-c", "user.email=test@example.invalid", "commit", "-q", "-m", "Leo"}} {
		if out, err := exec.Command("git", args...).CombinedOutput(); err != nil {
			l.t.Fatalf("git %v: %v: %s", args, err, out)
		}
	}
	return true
}

// run runs a command line and returns standard output and standard error; the exit status must be want.
func (l *leo) run(want int, args ...string) (string, string) {
	l.t.Helper()
	var out, errs bytes.Buffer
	status := run(context.Background(), args, streams{strings.NewReader(""), &out, &errs})
	l.output.Write(out.Bytes())
	l.output.Write(errs.Bytes())
	if status != want {
		l.t.Fatalf("selfsame %v: status %d, want %d\n%s%s", args, status, want, &out, &errs)
	}
	if status != exitHolds && !strings.Contains(errs.String(), "selfsame: error: ") {
		l.t.Errorf("selfsame %v: status %d without an error line: %s", args, status, &errs)
	}
	return out.String(), errs.String()
}

// list writes the input list of the fixtures.
func (l *leo) list() string {
	var b strings.Builder
	for part, root := range map[string]string{"profile-template": "profile-template", "hermes-root": "hermes-runtime", "deployment-root": "teleo-deployment"} {
		err := filepath.WalkDir(leotest.Folder+"/"+root, func(path string, d fs.DirEntry, err error) error {
			if err == nil && !d.IsDir() {
				b.WriteString(part + "\t" + strings.TrimPrefix(path, leotest.Folder+"/"+root+"/") + "\t" + path + "\n")
			}
			return err
		})
		if err != nil {
			l.t.Fatal(err)
		}
	}
	for part, name := range map[string]string{"database-fingerprint": "leo-database-fingerprint-v1.json", "constitution": "leo-constitution-v1.json", "database-identity": "leo-database-identity-v1.json"} {
		b.WriteString(part + "\t" + leotest.Folder + "/" + name + "\t" + leotest.Folder + "/" + name + "\n")
	}
	for _, name := range []string{"naming-record.md", "review-notes.md", "role-charter.md"} {
		b.WriteString("source-root\t" + leotest.Folder + "/evidence/" + name + "\t" + leotest.Folder + "/evidence/" + name + "\n")
	}
	file := filepath.Join(l.t.TempDir(), "inputs.list")
	if err := os.WriteFile(file, []byte(b.String()), 0o644); err != nil {
		l.t.Fatal(err)
	}
	return file
}

const leoAt = leotest.Folder + "/"

var (
	rootFlags     = []string{"--profile-template", leoAt + "profile-template", "--hermes-root", leoAt + "hermes-runtime", "--deployment-root", leoAt + "teleo-deployment"}
	documentFlags = []string{"--database-fingerprint", leoAt + "leo-database-fingerprint-v1.json", "--constitution", leoAt + "leo-constitution-v1.json", "--database-identity", leoAt + "leo-database-identity-v1.json", "--source-root", "."}
)

func command(first ...any) []string {
	var args []string
	for _, part := range first {
		switch part := part.(type) {
		case string:
			args = append(args, strings.Fields(part)...)
		case []string:
			args = append(args, part...)
		}
	}
	return args
}

// The source document's commands, in its order, on the command line and with a list as under Bazel: the
// same bytes; then drift, refusals, and a search for every planted credential in all that was written.
func TestManifestAndProfile(t *testing.T) {
	l := &leo{t: t}
	root := leotest.Copy(t, "../..")
	planted := leotest.Credentials(t, "../..")
	t.Chdir(root)
	out := t.TempDir()
	at := func(name string) string { return filepath.Join(out, name) }

	hasGit := l.commit()
	l.run(exitHolds, command("manifest generate --input-list", l.list(), "--output", at("listed.json"), "--digest", at("listed.sha256"),
		"--provenance", at("listed-provenance.json"), "--behavior-output", at("listed-behavior.json"))...)
	golden := at("listed.json")
	if hasGit {
		golden = at("manifest.json")
		_, notes := l.run(exitHolds, command("manifest behavior --profile", leoAt+"profile-template", rootFlags[2:], "--output", at("behavior.json"), "--observation-key", at("key"))...)
		for _, key := range []string{"display", "observatory_url", "platforms.telegram.home_channel"} {
			if !strings.Contains(notes, "unknown key, not copied: "+key+"\n") {
				t.Errorf("%s is not reported: %s", key, notes)
			}
		}
		result, _ := l.run(exitHolds, command("manifest generate --json --behavior-manifest", at("behavior.json"), documentFlags, "--output", golden, "--provenance", at("provenance.json"))...)
		data := mustRead(t, golden)
		var digests struct {
			Identity canon.Digest `json:"identity_sha256"`
			Manifest canon.Digest `json:"manifest_sha256"`
		}
		if err := canon.Decode([]byte(result), &digests); err != nil {
			t.Fatal(err)
		}
		if m, err := manifest.Decode("m", data); err != nil || m.IdentitySHA256 != digests.Identity || canon.Sum(data) != digests.Manifest {
			t.Errorf("%s, %v", result, err)
		}
		if sum := string(mustRead(t, golden+".sha256")); sum != digests.Manifest.String()+"\n" {
			t.Errorf("digest file %q", sum)
		}
		if string(data) != string(mustRead(t, at("listed.json"))) {
			t.Error("folders and list give other bytes")
		}
		var p manifest.Provenance
		if err := canon.Decode(mustRead(t, at("provenance.json")), &p); err != nil || len(p.Origins) != 4 || p.Origins[0].Kind != manifest.OriginGit || p.ManifestSHA256 != digests.Manifest {
			t.Errorf("%+v, %v", p, err)
		}
	}
	var p manifest.Provenance
	if err := canon.Decode(mustRead(t, at("listed-provenance.json")), &p); err != nil || len(p.Origins) != 4 || p.Origins[3].Kind != manifest.OriginContentAddressed {
		t.Errorf("%+v, %v", p, err)
	}

	l.run(exitHolds, command("manifest verify --manifest", golden, rootFlags)...)
	l.run(exitHolds, command("manifest verify --manifest", golden, "--input-list", l.list())...)
	if text, _ := l.run(exitHolds, command("manifest explain --manifest", golden)...); !strings.Contains(text, "hosted-weights: not identity, never_claimed") {
		t.Error(text)
	}
	l.run(exitHolds, command("profile compile --manifest", golden, "--source-root .", rootFlags, "--profile", at("profile"))...)
	l.run(exitHolds, command("profile compile --manifest", golden, "--input-list", l.list(), "--profile", at("listed-profile"))...)
	l.run(exitHolds, command("profile verify --manifest", golden, "--profile", at("profile"))...)
	l.run(exitHolds, command("profile verify --manifest", golden, "--profile", at("listed-profile"))...)

	// Files beside a manifest or a profile are verified by the byte.
	l.run(exitHolds, command("profile compile --manifest", golden, "--input-list", l.list(), "--profile", at("digested-profile"), "--digest", at("tree.sha256"))...)
	verifyManifest := command("manifest verify --manifest", at("listed.json"), "--input-list", l.list(), "--digest", at("listed.sha256"),
		"--behavior-manifest", at("listed-behavior.json"), "--provenance", at("listed-provenance.json"))
	verifyProfile := command("profile verify --manifest", golden, "--profile", at("digested-profile"), "--digest", at("tree.sha256"))
	l.run(exitHolds, verifyManifest...)
	l.run(exitHolds, verifyProfile...)
	for name, args := range map[string][]string{
		"listed.sha256": verifyManifest, "listed-behavior.json": verifyManifest, "listed-provenance.json": verifyManifest, "tree.sha256": verifyProfile,
	} {
		data := mustRead(t, at(name))
		changed := append([]byte(nil), data...)
		changed[len(changed)/2] ^= 1
		for _, forged := range [][]byte{changed, data[1:], nil} {
			write(t, at(name), forged)
			if text, _ := l.run(exitFails, args...); !strings.Contains(text, "generated-files: "+name+": changed: expected sha256 "+canon.Sum(data).String()) {
				t.Errorf("%s: %s", name, text)
			}
		}
		write(t, at(name), data)
	}
	l.run(exitInput, command("profile compile --manifest", golden, "--source-root .", rootFlags, "--profile", at("profile"))...)

	// Drift: named, status 1, nothing compiled.
	skill := leoAt + "profile-template/skills/leo-voice/SKILL.md"
	original := mustRead(t, skill)
	write(t, skill, append(original, '!'))
	if text, _ := l.run(exitFails, command("manifest verify --manifest", golden, rootFlags)...); !strings.Contains(text, "skills: skills/leo-voice/SKILL.md: changed: expected sha256 ") {
		t.Error(text)
	}
	text, _ := l.run(exitFails, command("manifest verify --json --manifest", golden, rootFlags)...)
	var result verification
	if err := canon.Decode([]byte(text), &result); err != nil || result.Holds || len(result.Differences) != 1 {
		t.Errorf("%s, %v", text, err)
	}
	l.run(exitFails, command("profile compile --manifest", golden, "--source-root .", rootFlags, "--profile", at("drifted"))...)
	if _, err := os.Lstat(at("drifted")); err == nil {
		t.Error("a drifted profile was compiled")
	}
	if hasGit {
		if _, text := l.run(exitInput, command("manifest behavior", rootFlags, "--output", at("dirty.json"))...); !strings.Contains(text, skill) || !strings.Contains(text, "hint: commit") {
			t.Error(text)
		}
	}
	write(t, skill, original)
	write(t, at("profile/state.db"), nil)
	if text, _ := l.run(exitFails, command("profile verify --json --manifest", golden, "--profile", at("profile"))...); !strings.Contains(text, "state.db") {
		t.Error(text)
	}

	// Refused input, usage, and what the system cannot do.
	var doc map[string]any
	if err := json.Unmarshal(mustRead(t, golden), &doc); err != nil {
		t.Fatal(err)
	}
	doc["identity_sha256"] = strings.Repeat("0", 64)
	forged, err := canon.Marshal(doc)
	if err != nil {
		t.Fatal(err)
	}
	write(t, at("forged.json"), forged)
	for _, tc := range []struct {
		status int
		args   []string
		text   string
	}{
		{exitInput, command("manifest explain --manifest", at("forged.json")), "forged.json: /identity_sha256"},
		{exitInput, command("profile verify --manifest", at("forged.json"), "--profile", at("profile")), "/identity_sha256"},
		{exitInput, command("manifest generate --input-list", at("forged.json"), "--output", at("x.json")), "line 1"},
		{exitInput, command("manifest generate --behavior-manifest", at("listed.json"), documentFlags, "--output", at("x.json")), ""},
		{exitUsage, command("manifest generate --output", at("x.json")), "--database-fingerprint"},
		{exitUsage, command("manifest generate", documentFlags, "--output", at("x.json")), "--behavior-manifest"},
		{exitUsage, command("manifest verify --manifest", golden), "--profile-template"},
		{exitUsage, command("manifest verify"), "--manifest"},
		{exitUsage, command("manifest verify --manifest", golden, rootFlags, "--digest", at("listed.sha256")), "--input-list"},
		{exitUsage, command("manifest verify --manifest", golden, "--no-such-flag"), "no-such-flag"},
		{exitEnvironment, command("manifest explain --manifest", at("none.json")), "none.json"},
		{exitEnvironment, command("manifest generate --input-list", l.list(), "--output", at("no/such/folder.json")), "no/such"},
	} {
		if !hasGit && strings.Contains(strings.Join(tc.args, " "), "--behavior-manifest") {
			continue
		}
		if _, text := l.run(tc.status, tc.args...); !strings.Contains(text, tc.text) {
			t.Errorf("%v: %s", tc.args, text)
		}
	}
	if _, err := os.Lstat(at("x.json")); err == nil {
		t.Error("a refused command left an output")
	}

	// Law I4, over everything written.
	var secrets []string
	for _, p := range planted.Planted {
		secrets = append(secrets, p.Value)
	}
	if hasGit {
		secrets = append(secrets, string(mustRead(t, at("key"))))
	}
	for _, name := range []string{"config.yaml", ".env", "auth.json", "gateway.json"} {
		secrets = append(secrets, string(mustRead(t, leoAt+"profile-template/"+name)))
	}
	searched := 0
	search := func(name string, data []byte) {
		searched++
		if found := leotest.Leaks(data, secrets...); len(found) > 0 {
			t.Errorf("%s holds %q", name, found)
		}
	}
	search("standard output and error", l.output.Bytes())
	err = filepath.WalkDir(out, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() && d.Name() != "key" {
			search(path, mustRead(t, path))
		}
		return err
	})
	if err != nil || searched < 35 {
		t.Errorf("searched %d outputs, %v", searched, err)
	}
	if len(leotest.Leaks(mustRead(t, leoAt+"profile-template/config.yaml"), secrets...)) < 12 {
		t.Error("control: the search finds little where the credentials are")
	}
}

func mustRead(t *testing.T, file string) []byte {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func write(t *testing.T, file string, data []byte) {
	t.Helper()
	if err := os.WriteFile(file, data, 0o644); err != nil {
		t.Fatal(err)
	}
}

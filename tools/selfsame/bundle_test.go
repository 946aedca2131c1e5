package main

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"selfsame.dev/selfsame/internal/canon"
	"selfsame.dev/selfsame/manifest"
	"selfsame.dev/selfsame/manifest/bundle"
	"selfsame.dev/selfsame/manifest/leotest"
	"selfsame.dev/selfsame/schemas"
)

func TestBundle(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	for name, content := range map[string]string{"src/agent.py": "print('leo')\n", "src/.git/config": "[core]\n", "src/notes/draft.md": "Synthetic.\n",
		"src/selfsame-root.json": `{"format":"code-root.v1","include":[],"exclude":["notes/**"],"go_programs":[]}`} {
		if err := os.MkdirAll(filepath.Dir(at(name)), 0o755); err != nil {
			t.Fatal(err)
		}
		write(t, at(name), []byte(content))
	}
	expect := func(want int, text string, args ...string) string {
		t.Helper()
		status, out, errs := call(args...)
		if status != want || !strings.Contains(errs, text) || strings.Contains(errs, "\r") {
			t.Errorf("%v: status %d, want %d and %q: %s%s", args, status, want, text, out, errs)
		}
		return out
	}
	var s bundle.Summary
	out := expect(exitHolds, "", "bundle", "create", "--root", at("src"), "--output", at("b"), "--json")
	if err := canon.Decode([]byte(out), &s); err != nil || s.Tree.FileCount != 2 { // the notes are excluded, and Git's metadata
		t.Fatalf("%s, %v", out, err)
	}
	text := expect(exitHolds, "", "bundle", "verify", "--bundle", at("b"))
	if !strings.HasPrefix(text, "bundle_sha256 "+s.SHA256.String()+"\ntree_sha256 "+s.Tree.Digest.String()+"\n") {
		t.Error(text)
	}
	for _, level := range bundle.Levels {
		expect(exitHolds, "", "bundle", "create", "--root", at("src"), "--output", at("b-"+level), "--level", level)
		expect(exitHolds, "", "bundle", "verify", "--bundle", at("b-"+level), "--sha256", s.SHA256.String())
	}
	if sum := canon.Sum(mustRead(t, at("b-none"))); sum != s.SHA256 {
		t.Errorf("the uncompressed file has digest %s, want %s", sum, s.SHA256)
	}
	var piped bytes.Buffer
	if status := run(context.Background(), []string{"bundle", "verify", "--bundle", "-", "--json"}, streams{bytes.NewReader(mustRead(t, at("b"))), &piped, &piped}); status != exitHolds || piped.String() != out {
		t.Errorf("from standard input: %d %s", status, &piped)
	}
	expect(exitHolds, "", "bundle", "create", "--root", at("src"), "--output", at("all"), "--exclude", "agent.py")
	if text := expect(exitHolds, "", "bundle", "verify", "--bundle", at("all")); !strings.Contains(text, "file_count 2\n") {
		t.Error(text) // the notes and the declaration; Git's metadata never
	}

	other := canon.Sum(nil).String()
	expect(exitFails, "expected "+other, "bundle", "verify", "--bundle", at("b"), "--sha256", other)
	expect(exitFails, "expected "+other, "bundle", "extract", "--bundle", at("b"), "--sha256", other, "--target", at("out"))
	expect(exitUsage, "--sha256", "bundle", "verify", "--bundle", at("b"), "--sha256", "x")
	expect(exitUsage, "--level", "bundle", "create", "--root", at("src"), "--output", at("x"), "--level", "ultra")
	expect(exitInput, at("b")+": files: declares 2, the limit is 1", "bundle", "verify", "--bundle", at("b"), "--max-files", "1")
	expect(exitInput, at("b")+": bytes: ", "bundle", "extract", "--bundle", at("b"), "--max-bytes", "1", "--target", at("out"))
	expect(exitEnvironment, "none", "bundle", "verify", "--bundle", at("none"))
	expect(exitEnvironment, "no/such", "bundle", "create", "--root", at("src"), "--output", at("no/such/file"))
	data := mustRead(t, at("b"))
	write(t, at("short"), data[:len(data)-1])
	expect(exitInput, at("short")+": ", "bundle", "extract", "--bundle", at("short"), "--target", at("out"))
	if err := os.Symlink("agent.py", at("src/link")); err != nil {
		t.Fatal(err)
	}
	expect(exitInput, "link: is a symbolic link", "bundle", "create", "--root", at("src"), "--output", at("x"))
	for _, name := range []string{"out", "x"} {
		if _, err := os.Lstat(at(name)); err == nil {
			t.Errorf("a refused command left %s", name)
		}
	}
	expect(exitHolds, "", "bundle", "extract", "--bundle", at("b"), "--sha256", s.SHA256.String(), "--target", at("out"))
	expect(exitInput, "is not an empty folder", "bundle", "extract", "--bundle", at("b"), "--target", at("out"))
	if got := expect(exitHolds, "", "bundle", "create", "--root", at("out"), "--output", at("again"), "--json"); got != out {
		t.Errorf("again: %s, want %s", got, out)
	}

	// An interrupted command leaves nothing.
	ctx, stop := context.WithCancel(context.Background())
	stop()
	for _, args := range [][]string{{"bundle", "create", "--root", at("out"), "--output", at("x")}, {"bundle", "extract", "--bundle", at("b"), "--target", at("x")}} {
		if status := run(ctx, args, streams{nil, &piped, &piped}); status != exitEnvironment {
			t.Errorf("%v: status %d", args, status)
		}
	}
	list, err := filepath.Glob(at(".*"))
	if _, there := os.Lstat(at("x")); there == nil || err != nil || len(list) > 0 {
		t.Errorf("left %v, %v", list, err)
	}
}

// Bundles bind the roots of a manifest where there is no commit at all: the same identity, other provenance.
func TestManifestOfBundles(t *testing.T) {
	l := &leo{t: t}
	t.Chdir(leotest.Copy(t, "../.."))
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	var bundles []string
	for _, root := range []struct{ flag, folder string }{{"profile-template", leoAt + "profile-template"}, {"hermes-root", leoAt + "hermes-runtime"}, {"deployment-root", leoAt + "teleo-deployment"}, {"source-root", "."}} {
		l.run(exitHolds, "bundle", "create", "--root", root.folder, "--output", at(root.flag), "--exclude", "**/.env", "--exclude", "**/auth.json")
		bundles = append(bundles, "--bundle", root.flag+"="+at(root.flag))
	}
	unbound := exitInput
	if !leotest.Git(t) {
		unbound = exitEnvironment // nobody can say
	}
	l.run(unbound, command("manifest behavior", rootFlags, "--output", at("none.json"))...) // control: no commit, no bundle
	l.run(exitHolds, command("manifest behavior", rootFlags, bundles[:6], "--output", at("behavior.json"))...)
	l.run(exitHolds, command("manifest generate --behavior-manifest", at("behavior.json"), documentFlags, bundles[6:], "--output", at("manifest.json"), "--provenance", at("provenance.json"))...)
	l.run(exitHolds, command("manifest verify --manifest", at("manifest.json"), rootFlags)...)
	data := mustRead(t, at("provenance.json"))
	var p manifest.Provenance
	if err := schemas.DecodeCanonical("provenance.json", manifest.ProvenanceFormat, data, &p); err != nil || len(p.Origins) != 4 {
		t.Fatalf("%s, %v", data, err)
	}
	for _, o := range p.Origins {
		text, _ := l.run(exitHolds, "bundle", "verify", "--bundle", at(o.Root))
		if o.Kind != manifest.OriginBundle || o.Bundle == nil || !strings.HasPrefix(text, "bundle_sha256 "+o.Bundle.String()+"\n") {
			t.Errorf("%+v, want %s", o, text)
		}
	}
	skill := leoAt + "profile-template/skills/leo-voice/SKILL.md"
	write(t, skill, append(mustRead(t, skill), '!'))
	if _, text := l.run(exitInput, command("manifest behavior", rootFlags, bundles[:6], "--output", at("x.json"))...); !strings.Contains(text, "skills/leo-voice/SKILL.md (changed)") {
		t.Error(text)
	}
	l.run(exitInput, command("manifest behavior", rootFlags, bundles, "--output", at("x.json"))...) // there is no source root
	l.run(exitUsage, command("manifest generate --input-list", l.list(), bundles[6:], "--output", at("x.json"))...)
}

// Progress is for long work on a terminal, and is cleared.
func TestMeter(t *testing.T) {
	file, err := os.Create(filepath.Join(t.TempDir(), "log"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	null, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	if newMeter(context.Background(), file, 0).terminal != nil || newMeter(context.Background(), &bytes.Buffer{}, 0).terminal != nil {
		t.Error("a file is taken for a terminal")
	}
	if newMeter(context.Background(), null, 0).terminal == nil {
		t.Error("control: a character device is taken for a file")
	}
	var out bytes.Buffer
	m := newMeter(context.Background(), &out, 4_000_000)
	m.terminal = &out
	m.Write(make([]byte, 1_000_000))
	if out.Len() > 0 {
		t.Errorf("short work shows %q", &out)
	}
	m.next = time.Now().Add(-time.Second)
	m.Write(make([]byte, 1_000_000))
	m.Write(make([]byte, 1_000_000))
	m.close()
	if want := "\r\x1b[Kselfsame: bundle: 2.0 MB of 4.0 MB (50%)\r\x1b[K"; out.String() != want {
		t.Errorf("%q, want %q", &out, want)
	}
	ctx, stop := context.WithCancel(context.Background())
	m = newMeter(ctx, &out, 0)
	stop()
	if _, err := m.Write(nil); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

package compare

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"selfsame.dev/selfsame/internal/canon"
	"selfsame.dev/selfsame/internal/tree"
	"selfsame.dev/selfsame/manifest"
	"selfsame.dev/selfsame/schemas"
)

var update = flag.Bool("update", false, "write the golden files anew")

// edited returns Leo's manifest with an edit, made consistent.
func edited(tb testing.TB, edit func(in *manifest.Inputs)) Document {
	tb.Helper()
	m, err := manifest.Decode("golden", golden(tb))
	if err != nil {
		tb.Fatal(err)
	}
	edit(&m.Identity.Inputs)
	return Document{"b.json", reseal(tb, m)}
}

func surfaces(c *Comparison) string {
	var out []string
	for _, g := range c.Groups {
		out = append(out, fmt.Sprintf("%s/%s", g.Class, g.Surface))
	}
	return strings.Join(out, " ")
}

func must(tb testing.TB, c *Comparison, err error) *Comparison {
	tb.Helper()
	if err != nil {
		tb.Fatal(err)
	}
	data, err := canon.Marshal(c)
	if err != nil {
		tb.Fatal(err)
	}
	if err := schemas.DecodeCanonical("comparison", Format, data, new(Comparison)); err != nil {
		tb.Fatal(err)
	}
	return c
}

// Each planted difference is named with surface, class, path, values, owner and action; the untouched manifest is equal.
func TestManifests(t *testing.T) {
	a := Document{"a.json", golden(t)}
	for _, tc := range []struct {
		name     string
		edit     func(in *manifest.Inputs)
		surfaces string
		path     string
	}{
		{"control", func(*manifest.Inputs) {}, "", ""},
		{"setting", func(in *manifest.Inputs) { in.Behavior.RuntimeConfig.Values["timezone"] = "Europe/Oslo" },
			"identity/runtime-config generated_view/compiled-views", "timezone"},
		{"skill", func(in *manifest.Inputs) { in.Behavior.Skills.Files[0].Digest[0]++ },
			"identity/skills generated_view/compiled-views", "skills/evidence-first/SKILL.md"},
		{"plugin gone", func(in *manifest.Inputs) { in.Behavior.Plugins.Files = in.Behavior.Plugins.Files[1:] },
			"identity/plugins generated_view/compiled-views", "plugins/leo-database-context/__init__.py"},
		{"rule", func(in *manifest.Inputs) { in.Constitution.Document.Rules[0].Text += " Always." },
			"identity/constitution generated_view/compiled-views", "fixtures/working-leo/leo-identity-v1/leo-constitution-v1.json#/rules/0/text"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			b := edited(t, tc.edit)
			c, err := Documents(a, b)
			must(t, c, err)
			if got := surfaces(c); got != tc.surfaces || c.Equal != (tc.surfaces == "") || c.SameIdentity != c.Equal {
				t.Fatalf("%q, equal %v, same %v; want %q", got, c.Equal, c.SameIdentity, tc.surfaces)
			}
			if c.Equal {
				return
			}
			d := c.Groups[0].Differences[0]
			if d.Path != tc.path || d.A == d.B || c.Groups[0].Owner == "" || c.Groups[0].Action == "" {
				t.Errorf("%+v", c.Groups[0])
			}
			if !strings.Contains(c.Text(), tc.path) {
				t.Errorf("the text does not name %s:\n%s", tc.path, c.Text())
			}
		})
	}
	// The side that has more is not the one that is wrong: both orders tell the same.
	b := edited(t, func(in *manifest.Inputs) { in.Behavior.Plugins.Files = in.Behavior.Plugins.Files[1:] })
	ab, err := Documents(a, b)
	must(t, ab, err)
	ba, err := Documents(b, a)
	must(t, ba, err)
	if x, y := ab.Groups[0].Differences[0], ba.Groups[0].Differences[0]; x.Change != manifest.Missing || y.Change != manifest.Unexpected || x.A != y.B || x.Path != y.Path {
		t.Errorf("%+v, %+v", x, y)
	}
}

func TestGolden(t *testing.T) {
	a := Document{"a.json", golden(t)}
	c, err := Documents(a, edited(t, func(in *manifest.Inputs) {
		in.Behavior.RuntimeConfig.Values["timezone"] = "Europe/Oslo"
		in.Behavior.Skills.Files[0].Digest[0]++
	}))
	must(t, c, err)
	equal, err := Documents(a, Document{"b.json", a.Data})
	must(t, equal, err)
	for name, c := range map[string]*Comparison{"differs.json": c, "equal.json": equal} {
		data, err := canon.Marshal(c)
		if err != nil {
			t.Fatal(err)
		}
		file := filepath.Join("../../fixtures/compare", name)
		if *update {
			if err := os.WriteFile(file, data, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if want, err := os.ReadFile(file); err != nil || string(want) != string(data) {
			t.Errorf("%s differs (%v); if that is meant: go test ./manifest/compare -run TestGolden -update\n%s", name, err, data)
		}
	}
}

// A document that does not agree with itself is refused, whichever side it is on, equal bytes or not.
func TestRefused(t *testing.T) {
	good := Document{"good.json", golden(t)}
	forged := Document{"forged.json", []byte(strings.Replace(string(good.Data), `"Europe/`, `"Africa/`, 1))}
	if string(forged.Data) == string(good.Data) {
		forged.Data = []byte(strings.Replace(string(good.Data), `"size":`, `"size":1`, 1))
	}
	provenance := Document{"p.json", fixture(t, "golden/leo-provenance-v1.json")}
	for name, pair := range map[string][2]Document{
		"A": {forged, good}, "B": {good, forged}, "both": {forged, forged}, "other format": {good, provenance},
		"empty": {good, {"empty.json", nil}}, "no JSON": {{"x.json", []byte("x")}, good}, "a list": {{"x.json", []byte("[]")}, good},
		"trailing newline": {good, {"n.json", append(slices.Clone(good.Data), '\n')}},
	} {
		var input *canon.InputError
		if c, err := Documents(pair[0], pair[1]); !errors.As(err, &input) || c != nil || input.Fix == "" || input.File != pair[0].Name && input.File != pair[1].Name {
			t.Errorf("%s: %v, %v", name, c, err)
		}
	}
	c, err := Documents(good, good)
	must(t, c, err)
}

func fixture(tb testing.TB, name string) []byte {
	tb.Helper()
	data, err := os.ReadFile("../../fixtures/working-leo/" + name)
	if err != nil {
		tb.Fatal(err)
	}
	return data
}

// What is no identity is of the class that says so, and never makes two agents of one.
func TestBehaviorAndProvenance(t *testing.T) {
	data := fixture(t, "golden/leo-behavior-manifest-v1.json")
	behavior := func(edit func(b *manifest.Behavior)) Document {
		b, err := manifest.DecodeBehavior("b.json", data)
		if err != nil {
			t.Fatal(err)
		}
		edit(b)
		if b.InputsSum, err = canon.DigestOf(b.Inputs); err != nil {
			t.Fatal(err)
		}
		out, err := b.Encode()
		if err != nil {
			t.Fatal(err)
		}
		return Document{"b.json", out}
	}
	observed := func(key, value string) func(b *manifest.Behavior) {
		return func(b *manifest.Behavior) {
			b.Operational.Observation = &manifest.Observation{Algorithm: "hmac-sha256", KeyID: key, Value: canon.Sum([]byte(value))}
		}
	}
	one := behavior(observed("0011223344556677", "x"))
	for _, tc := range []struct {
		name     string
		a        Document
		edit     func(b *manifest.Behavior)
		surfaces string
		same     bool
		paths    string
	}{
		{"control", Document{"a", data}, func(*manifest.Behavior) {}, "", true, ""},
		{"credential key", Document{"a", data}, func(b *manifest.Behavior) {
			b.Operational.Config.OmittedCredentials = append(b.Operational.Config.OmittedCredentials, "zz.api_key")
		}, "credential_presence/credentials", true, "config.yaml#zz.api_key"},
		{"credential file", Document{"a", data}, func(b *manifest.Behavior) { drop(b, manifest.ClassCredential) }, "credential_presence/credentials", true, ".env auth.json"},
		{"sessions and memory", Document{"a", data}, func(b *manifest.Behavior) { drop(b, manifest.ClassState); drop(b, manifest.ClassMemory) },
			"continuity/sessions continuity/memory", true, "sessions memories"},
		{"unknown key", Document{"a", data}, func(b *manifest.Behavior) {
			b.Operational.Config.UnknownKeys = append(b.Operational.Config.UnknownKeys, "zz")
		}, "operational/profile-template", true, "config.yaml#zz"},
		{"origin", Document{"a", data}, func(b *manifest.Behavior) {
			b.Operational.Origins = []manifest.Origin{{Root: "profile-template", Kind: manifest.OriginGit, Commit: strings.Repeat("1", 40), Path: "."}}
		}, "provenance/git-provenance", true, ""},
		{"rotation", one, observed("0011223344556677", "y"), "operational/operational-observation", true, "value"},
		{"two keys say nothing", one, observed("8811223344556677", "y"), "operational/operational-observation", true, "key_id"},
		{"skill", Document{"a", data}, func(b *manifest.Behavior) {
			b.Inputs.Skills.Files = b.Inputs.Skills.Files[1:]
			resum(t, &b.Inputs.Skills)
		},
			"identity/skills", false, "skills/evidence-first/SKILL.md"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c, err := Documents(tc.a, behavior(tc.edit))
			must(t, c, err)
			var paths []string
			for _, g := range c.Groups {
				for _, d := range g.Differences {
					paths = append(paths, d.Path)
				}
			}
			if got := surfaces(c); got != tc.surfaces || c.SameIdentity != tc.same || tc.paths != "" && strings.Join(paths, " ") != tc.paths {
				t.Errorf("%q same %v %q, want %q %v %q", got, c.SameIdentity, paths, tc.surfaces, tc.same, tc.paths)
			}
		})
	}

	var p manifest.Provenance
	raw := fixture(t, "golden/leo-provenance-v1.json")
	if err := canon.Decode(raw, &p); err != nil {
		t.Fatal(err)
	}
	provenance := func(edit func()) *Comparison {
		edit()
		out, err := canon.Marshal(p)
		if err != nil {
			t.Fatal(err)
		}
		c, err := Documents(Document{"a", raw}, Document{"b", out})
		return must(t, c, err)
	}
	if c := provenance(func() { p.Origins[0].Root += "-x" }); surfaces(c) != "provenance/git-provenance" || !c.SameIdentity || c.Total() != 2 {
		t.Errorf("%+v", c)
	}
	if c := provenance(func() { p.IdentitySHA256[0]++ }); c.SameIdentity || c.Groups[0].Surface != Binding {
		t.Errorf("%+v", c)
	}
	// Other bytes are never equal, not even where only an order differs.
	if err := canon.Decode(raw, &p); err != nil {
		t.Fatal(err)
	}
	if c := provenance(func() { slices.Reverse(p.Origins) }); c.Equal || c.Total() == 0 {
		t.Errorf("another order of origins is equal: %+v", c)
	}
}

func drop(b *manifest.Behavior, class manifest.Class) {
	b.Operational.Excluded = slices.DeleteFunc(b.Operational.Excluded, func(n manifest.ExcludedName) bool { return n.Class == class })
}

func resum(t *testing.T, tr *manifest.Tree) {
	var err error
	if tr.Summary, err = tree.Summarize(tr.Files); err != nil {
		t.Fatal(err)
	}
}

// folder makes a folder of outputs in memory.
func folder(name string, files map[string]string, withheld ...string) Folder {
	f := Folder{Name: name, Withheld: withheld}
	for path, text := range files {
		f.Files = append(f.Files, tree.Entry{Path: path, Size: int64(len(text)), Digest: canon.Sum([]byte(text))})
	}
	slices.SortFunc(f.Files, func(a, b tree.Entry) int { return strings.Compare(a.Path, b.Path) })
	f.Read = func(path string) ([]byte, error) { return []byte(files[path]), nil }
	return f
}

func TestFolders(t *testing.T) {
	base := map[string]string{
		"leo.json": string(golden(t)), "leo.json.sha256": "1", "leo.provenance.json": string(fixture(t, "golden/leo-provenance-v1.json")),
		"leo_profile/profile-manifest.json": "{}", "leo_profile/SOUL.md": "s", "leo_profile/config.yaml": "c", "leo_profile/skills/a/SKILL.md": "k",
		"leo_profile.tree.sha256": "2", "canary-receipt.json": "{}", "leo.verified.json": "{}",
	}
	drifted := string(edited(t, func(in *manifest.Inputs) { in.Behavior.Skills.Files[0].Digest[0]++ }).Data)
	const identity, same = false, true
	for _, tc := range []struct {
		path, text string
		same       bool
		surfaces   string
	}{
		{"leo.json", drifted, identity, "identity/skills generated_view/compiled-views"},
		{"leo.json.sha256", "9", identity, "generated_view/digest-file"},
		{"leo_profile.tree.sha256", "9", identity, "generated_view/digest-file"},
		{"leo_profile/profile-manifest.json", "{} ", identity, "generated_view/compiled-profile"},
		{"leo_profile/SOUL.md", "x", identity, "generated_view/compiled-views"},
		{"leo_profile/config.yaml", "x", identity, "identity/runtime-config"},
		{"leo_profile/skills/a/SKILL.md", "x", identity, "identity/skills"},
		{"leo_profile/new", "x", identity, "unclassified/output"},
		{"leo_profile/memories/MEMORY.md", "x", same, "continuity/memory"},
		{"leo_profile/sessions/1", "x", same, "continuity/sessions"},
		{"stray.bin", "x", identity, "unclassified/output"},
		{"canary-receipt.json", "x", same, "operational/receipt"},
		{"leo.verified.json", "x", same, "operational/receipt"},
	} {
		files := map[string]string{}
		for name, text := range base {
			files[name] = text
		}
		files[tc.path] = tc.text
		c, err := Folders(folder("a", base), folder("b", files))
		must(t, c, err)
		if got := surfaces(c); got != tc.surfaces || c.SameIdentity != tc.same || c.Equal {
			t.Errorf("%s: %q, same %v; want %q, %v", tc.path, got, c.SameIdentity, tc.surfaces, tc.same)
		}
	}
	c, err := Folders(folder("a", base), folder("b", base))
	if must(t, c, err); !c.Equal {
		t.Errorf("control: %+v", c)
	}
	c, err = Folders(folder("a", base, ".env"), folder("b", base, "auth.json"))
	if must(t, c, err); surfaces(c) != "credential_presence/credentials" || !c.SameIdentity || c.Total() != 2 || c.Groups[0].Differences[0].A != "present" {
		t.Errorf("%+v", c)
	}
	// A forged manifest in a folder, and a file that changes while it is read.
	for name, spoil := range map[string]func(f *Folder, files map[string]string){
		"forged":  func(f *Folder, files map[string]string) {},
		"changed": func(f *Folder, files map[string]string) { files["leo.json"] = string(golden(t)) },
	} {
		files := map[string]string{"leo.json": strings.Replace(drifted, `"size":`, `"size":1`, 1)}
		f := folder("b", files)
		spoil(&f, files)
		var input *canon.InputError
		if _, err := Folders(folder("a", base), f); !errors.As(err, &input) || input.File != "b/leo.json" {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Every surface of the inventory, and every one that differences name, has a class, an authority, an owner and an action.
func TestOwners(t *testing.T) {
	for surface := range owners {
		if o := ownerOf(surface); o.owner == "" || o.action == "" || o.authority == "" || !slices.Contains(Classes, o.class) {
			t.Errorf("%s: %+v", surface, o)
		}
	}
	for _, d := range manifest.Inventory() {
		o := ownerOf(d.Surface)
		if owners[d.Surface].owner == "" {
			t.Errorf("%s has no owner", d.Surface)
		}
		if d.Pinned != o.class.Identity() || d.Pinned && o.authority != d.Authority {
			t.Errorf("%s: class %s, declared %+v", d.Surface, o.class, d)
		}
	}
	if o := ownerOf("no-such-surface"); o.owner != "" {
		t.Error("control: an unknown surface has an owner")
	}
}

// Thousands of differences: the text stays short and counts all, the JSON form has each one.
func TestThousands(t *testing.T) {
	const n = 10_000
	a, b := Document{"a.json", large(t, n, 0)}, Document{"b.json", large(t, n, 2)}
	c, err := Documents(a, b)
	must(t, c, err)
	want := c.Counts[Identity]
	if want < n/2-50 || want > n/2 {
		t.Fatalf("%d differences", want)
	}
	data, err := canon.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.Count(string(data), `"path":"zz/`); got != want {
		t.Errorf("%d of %d differences in JSON", got, want)
	}
	text := c.Text()
	if lines := strings.Count(text, "\n"); lines > 60 || !strings.Contains(text, fmt.Sprintf("%d changed", want)) {
		t.Errorf("%d lines:\n%s", lines, text)
	}
	// The counts by folder add up.
	sum, rest := 0, 0
	for line := range strings.Lines(text) {
		var count int
		if _, err := fmt.Sscanf(line, "  and %d more", &count); err == nil {
			rest = count
		} else if _, err := fmt.Sscanf(line, "    %d in ", &count); err == nil {
			sum += count
		}
	}
	if sum == 0 || sum != rest || rest != want-few {
		t.Errorf("%d by folder, %d in all, %d shown", sum, rest, few)
	}
}

// What a terminal would obey is quoted.
func TestTextIsPlain(t *testing.T) {
	c, err := Folders(folder("a\x1b[2J", map[string]string{"x": "1"}), folder("b\u202e", map[string]string{"x": "2"}))
	must(t, c, err)
	for _, r := range c.Text() {
		if r == 0x1b || r == 0x202e {
			t.Fatalf("%q", c.Text())
		}
	}
}

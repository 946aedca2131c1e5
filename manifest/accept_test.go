package manifest

import (
	"bytes"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"selfsame.dev/selfsame/internal/canon"
	"selfsame.dev/selfsame/internal/tree"
)

// What is accepted without the schema of every file is what the schema and the check accept: no edit parts them, be it of
// the bytes, or of a file in a tree that was rehashed all through.
func TestAcceptIsDecode(t *testing.T) {
	data, err := os.ReadFile("../fixtures/working-leo/golden/leo-identity-manifest-v1.json")
	if err != nil {
		t.Fatal(err)
	}
	agree := func(name string, data []byte, want bool) {
		t.Helper()
		quick := accept(data) != nil
		_, err := decode("m", data)
		if quick != (err == nil) || quick != want {
			t.Errorf("%s: accepted %v, decoded %v; want %v", name, quick, err, want)
		}
	}
	agree("control", data, true)
	// Names that JSON could write in more than one way are no exception.
	m, err := decode("m", data)
	if err != nil {
		t.Fatal(err)
	}
	in := m.Identity.Inputs
	in.Behavior.HermesCode.Tree.Files = slices.Clone(in.Behavior.HermesCode.Tree.Files)
	for _, name := range []string{"zz/\u00e9\u20ac", "zz/<&>\"", "zz/\U0001f600", "zz/~"} {
		in.Behavior.HermesCode.Tree.Files = append(in.Behavior.HermesCode.Tree.Files, tree.Entry{Path: name, Size: 1 << 40, Digest: canon.Sum(nil)})
	}
	files := in.Behavior.HermesCode.Tree.Files
	slices.SortFunc(files, func(a, b tree.Entry) int { return strings.Compare(a.Path, b.Path) })
	if in.Behavior.HermesCode.Tree.Summary, err = tree.Summarize(files); err != nil {
		t.Fatal(err)
	}
	odd, err := pin(in)
	if err != nil {
		t.Fatal(err)
	}
	text, err := odd.Encode()
	if err != nil {
		t.Fatal(err)
	}
	agree("odd names", text, true)
	for name, forge := range map[string]func(m *Manifest){
		"identity_sha256": func(m *Manifest) { m.IdentitySHA256[0]++ },
		"inputs_sha256":   func(m *Manifest) { m.Identity.InputsSHA256[0]++ },
		"view":            func(m *Manifest) { m.Identity.Views[0].SHA256[0]++ },
		"surface":         func(m *Manifest) { m.Surfaces[0].Note += "!" },
		"label":           func(m *Manifest) { m.Identity.Inputs.Label = "canonical" },
	} {
		m, err := decode("m", data)
		if err != nil {
			t.Fatal(err)
		}
		forge(m)
		if name != "identity_sha256" { // as far as a forger can
			if m.IdentitySHA256, err = canon.DigestOf(m.Identity); err != nil {
				t.Fatal(err)
			}
		}
		text, err := m.Encode()
		if err != nil {
			t.Fatal(err)
		}
		agree("forged "+name, text, false)
	}
	agree("odd name escaped", bytes.Replace(text, []byte("\u20ac"), []byte(`\u20ac`), 1), false)
	for i := 0; i < len(data); i += len(data)/100 + 1 {
		changed := slices.Clone(data)
		changed[i] ^= 1
		agree("bit "+string(data[max(0, i-20):min(len(data), i+20)]), changed, false)
		agree("cut", data[:i], false)
	}
	// Every name left out once, renamed once, and given twice; white space.
	seen := map[string]bool{}
	for _, at := range regexp.MustCompile(`"[a-z0-9_]+":`).FindAllIndex(data, -1) {
		name := string(data[at[0]:at[1]])
		if seen[name] {
			continue
		}
		seen[name] = true
		for _, other := range []string{strings.Replace(name, `":`, `_":`, 1), name + `0,` + name, " " + name} {
			agree(name+" as "+other, slices.Concat(data[:at[0]], []byte(other), data[at[1]:]), false)
		}
	}
	if len(seen) < 60 {
		t.Errorf("only %d names", len(seen))
	}
	agree("file without size", regexp.MustCompile(`,"size":[0-9]+`).ReplaceAll(data, nil), false)

	for name, edit := range map[string]func(files []tree.Entry) []tree.Entry{
		"control":           func(f []tree.Entry) []tree.Entry { return f },
		"path with control": func(f []tree.Entry) []tree.Entry { f[1].Path += "\x01"; return f },
		"path with DEL":     func(f []tree.Entry) []tree.Entry { f[1].Path += "\x7f"; return f },
		"backslash":         func(f []tree.Entry) []tree.Entry { f[1].Path += `\x`; return f },
		"absolute":          func(f []tree.Entry) []tree.Entry { f[1].Path = "/" + f[1].Path; return f },
		"empty path":        func(f []tree.Entry) []tree.Entry { f[1].Path = ""; return f },
		"long path":         func(f []tree.Entry) []tree.Entry { f[1].Path += strings.Repeat("x", 1100); return f },
		"negative size":     func(f []tree.Entry) []tree.Entry { f[1].Size = -1; return f },
		"size beyond JSON":  func(f []tree.Entry) []tree.Entry { f[1].Size = 1 << 53; return f },
		"zero digest":       func(f []tree.Entry) []tree.Entry { f[1].Digest = canon.Digest{}; return f },
		"twice":             func(f []tree.Entry) []tree.Entry { return slices.Insert(f, 1, f[1]) },
		"other order":       func(f []tree.Entry) []tree.Entry { f[0], f[1] = f[1], f[0]; return f },
		"folded case": func(f []tree.Entry) []tree.Entry {
			e := f[1]
			e.Path = strings.ToUpper(e.Path)
			return append([]tree.Entry{e}, f...)
		},
	} {
		m, err := decode("m", data)
		if err != nil {
			t.Fatal(err)
		}
		skills := &m.Identity.Inputs.Behavior.Skills
		skills.Files = edit(skills.Files)
		if sum, err := tree.Summarize(skills.Files); err == nil {
			skills.Summary = sum
		}
		forged, err := pin(m.Identity.Inputs)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		text, err := forged.Encode()
		if err != nil {
			t.Fatal(err)
		}
		if name != "control" && bytes.Equal(text, data) {
			t.Errorf("%s: nothing changed", name)
		}
		agree(name, text, name == "control")
	}
}

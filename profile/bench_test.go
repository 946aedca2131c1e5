package profile_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"selfsame.dev/selfsame/manifest"
	"selfsame.dev/selfsame/manifest/leotest"
	"selfsame.dev/selfsame/profile"
)

// large makes Leo's fixtures with about 200 files of 10 KB in the profile.
func large(b *testing.B) (*manifest.Manifest, manifest.Sources) {
	root := leotest.Copy(b, repository)
	for i := range 190 {
		file := filepath.Join(leotest.Paths(root).ProfileTemplate, "skills", fmt.Sprintf("skill-%03d", i/4), fmt.Sprintf("part-%d.md", i%4))
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			b.Fatal(err)
		}
		text := make([]byte, 10<<10)
		for j := range text {
			text[j] = byte('a' + (i+j)%26)
		}
		if err := os.WriteFile(file, text, 0o644); err != nil {
			b.Fatal(err)
		}
	}
	return leotest.Build(b, root)
}

func BenchmarkCompile(b *testing.B) {
	m, s := large(b)
	dir := b.TempDir()
	for i := 0; b.Loop(); i++ {
		if err := profile.Compile(m, s.Template, filepath.Join(dir, fmt.Sprint(i)), profile.Options{}); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkVerify(b *testing.B) {
	m, s := large(b)
	dir := filepath.Join(b.TempDir(), "profile")
	if err := profile.Compile(m, s.Template, dir, profile.Options{}); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if differences, err := profile.Verify(dir, m); err != nil || len(differences) > 0 {
			b.Fatal(differences, err)
		}
	}
}

func BenchmarkFiles(b *testing.B) {
	m, _ := large(b)
	for b.Loop() {
		if _, err := profile.Files(m); err != nil {
			b.Fatal(err)
		}
	}
}

//go:build bazel

package check

import (
	"bytes"
	"crypto/sha256"
	"debug/buildinfo"
	"debug/elf"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// hostPaths are places of a machine that a compiler may leave in a program: output folders and bases, sandboxes,
// homes, Go roots and module caches. The first part of each is searched for, the whole must match around it.
var hostPaths = map[string]*regexp.Regexp{
	"bazel-out/":    regexp.MustCompile(`bazel-out/[A-Za-z0-9_.-]+/(bin|genfiles)`),
	"/execroot/":    nil,
	"/_bazel_":      nil,
	"-sandbox/":     nil,
	"/home/":        nil,
	"/Users/":       nil,
	"/root/":        nil,
	"/tmp/":         nil,
	"/usr/local/go": nil,
	"/usr/lib/go":   nil,
	"/pkg/mod/":     nil,
	`:\Users\`:      nil,
}

// rules_go writes this in place of a hash of the inputs, which would hold their paths.
const buildID = "redacted"

// gnuBuildID is what the linker derives from it.
func gnuBuildID() []byte {
	sum := sha256.Sum256([]byte(buildID))
	sum[0] ^= 0xff
	return sum[:20]
}

// parts returns everything of a program that can hold text: the whole file, and each section as a
// debugger reads it (the linker compresses those of DWARF).
func parts(data []byte) (map[string][]byte, error) {
	out := map[string][]byte{"file": data}
	file, err := elf.NewFile(bytes.NewReader(data))
	if err != nil {
		return nil, err
	}
	for _, s := range file.Sections {
		if s.Type == elf.SHT_NOBITS || s.Type == elf.SHT_NULL {
			continue
		}
		if out[s.Name], err = s.Data(); err != nil {
			return nil, fmt.Errorf("%s: %w", s.Name, err)
		}
	}
	return out, nil
}

// traces names what ties a program to the machine that made it; exact are paths of this one.
func traces(data []byte, exact []string) ([]string, error) {
	sections, err := parts(data)
	if err != nil {
		return nil, err
	}
	var found []string
	for name, content := range sections {
		for literal, whole := range hostPaths {
			for rest := content; ; {
				at := bytes.Index(rest, []byte(literal))
				if at < 0 {
					break
				}
				around := rest[at:min(len(rest), at+80)]
				if whole == nil || whole.Match(around) {
					found = append(found, fmt.Sprintf("%s: %q", name, rest[max(0, at-40):at+len(around)]))
				}
				rest = rest[at+len(literal):]
			}
		}
		for _, path := range exact {
			if at := bytes.Index(content, []byte(path)); at >= 0 {
				found = append(found, fmt.Sprintf("%s: %s at %d", name, path, at))
			}
		}
	}
	if note := sections[".note.go.buildid"]; !bytes.HasSuffix(bytes.TrimRight(note, "\x00"), []byte("Go\x00\x00"+buildID)) {
		found = append(found, fmt.Sprintf("build ID: %q", note))
	}
	if note, ok := sections[".note.gnu.build-id"]; ok && !bytes.HasSuffix(note, gnuBuildID()) {
		found = append(found, fmt.Sprintf("GNU build ID: %x", note))
	}
	// rules_go records the package's path alone.
	if info, err := buildinfo.Read(bytes.NewReader(data)); err == nil {
		for _, s := range info.Settings {
			if strings.HasPrefix(s.Key, "vcs") || strings.Contains(s.Value, "/") {
				found = append(found, "build information: "+s.Key+"="+s.Value)
			}
		}
	}
	slices.Sort(found)
	return found, nil
}

// TestBinaries is law I1 for the tool: no program holds a path of the machine that made it, nor a build ID that would
// differ between checkouts.
func TestBinaries(t *testing.T) {
	var exact []string
	for _, path := range []string{os.Getenv("TEST_SRCDIR"), os.Getenv("TEST_TMPDIR")} {
		if len(path) > 4 {
			exact = append(exact, path)
		}
	}
	names := strings.Fields(os.Getenv("SELFSAME_BINARIES"))
	if len(names) != 4 {
		t.Fatalf("%d programs, want the tool and the responder, for targets and for actions", len(names))
	}
	for _, name := range names {
		path, err := filepath.EvalSymlinks(filepath.Join(os.Getenv("TEST_SRCDIR"), name))
		if err != nil {
			t.Fatal(err)
		}
		// Runfiles are links into the output base, its last folder named by a hash of the checkout's path.
		base, _, found := strings.Cut(path, "/execroot/")
		if !found {
			t.Fatalf("%s is in no output base", path)
		}
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		paths := append(slices.Clone(exact), base, filepath.Base(base))
		left, err := traces(data, paths)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range left {
			t.Errorf("%s: %s", name, f)
		}

		// Control: whatever is planted is found, in place of text that is there.
		const there = "GOROOT/src/runtime/proc.go"
		if !bytes.Contains(data, []byte(there)) {
			t.Fatalf("control: %s does not hold %s", name, there)
		}
		plant := func(old, new string) {
			t.Helper()
			changed := slices.Clone(data)
			copy(changed[bytes.Index(data, []byte(old)):], new)
			if got, err := traces(changed, paths); err != nil || len(got) == 0 {
				t.Errorf("control: %q is not found in %s: %v", new, name, err)
			}
		}
		for _, path := range []string{"/home/ada/src/selfsame/x.go", "/root/.cache/bazel/x.go", "/x/_bazel_ada/0/external", "/x/execroot/_main/x.go",
			"bazel-out/k8-opt/bin/x.a", "/usr/local/go/src/fmt", "/tmp/build1/x.go", "/var/tmp/x", "/x/go/pkg/mod/x", "/x/linux-sandbox/7/x.go", `C:\Users\ada\x.go`} {
			plant(there, path)
		}
		plant(there, filepath.Base(base))
		plant("Go\x00\x00"+buildID, "Go\x00\x00"+"AAAAAAA/")
		plant(string(gnuBuildID()), strings.Repeat("A", 20))
	}
}

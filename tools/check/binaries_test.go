//go:build bazel

package check

import (
	"bytes"
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

// Places of a machine that a compiler may leave in a program: output bases, sandboxes, homes, Go roots and
// module caches, checkouts under test.
var hostPath = regexp.MustCompile(`bazel-out/|/execroot/|/_bazel_[^/\x00]+/|-sandbox/[0-9]+/|/sandbox/|/(home|Users)/[^/\x00]+/|/root/|` +
	`/(var/)?tmp/[A-Za-z0-9]|/usr/(local|lib)/go[-/0-9]|/src/runtime/|/pkg/mod/|[A-Z]:\\Users\\`)

// rules_go writes this in place of a hash of the inputs, which would hold their paths.
const buildID = "redacted"

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
		for _, m := range hostPath.FindAllIndex(content, 5) {
			// The runtime's own files are named by their place in the Go root, which has no path.
			if context := content[max(0, m[0]-40):min(len(content), m[1]+60)]; !bytes.Contains(context, []byte("GOROOT/src/runtime/")) {
				found = append(found, fmt.Sprintf("%s: %q", name, context))
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
	if note, ok := sections[".note.gnu.build-id"]; ok {
		found = append(found, fmt.Sprintf("GNU build ID: %x", note))
	}
	// A program that rules_go links has no build information; of one that has, what follows the source alone is welcome.
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
		found2, err := traces(data, paths)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range found2 {
			t.Errorf("%s: %s", name, f)
		}

		// Control: whatever is planted is found, in place of text that is there.
		const there = "GOROOT/src/runtime/proc.go"
		if !bytes.Contains(data, []byte(there)) {
			t.Fatalf("control: %s does not hold %s", name, there)
		}
		for _, planted := range []string{"/home/ada/src/selfsame/x.go", "/root/.cache/bazel/x.go", "bazel-out/k8-fastbuild/bin", "/usr/local/go/src/fmt", "/tmp/build1/x.go", "/var/tmp/x", "/home/ada/go/pkg/mod/x", "/x/sandbox/linux-sandbox/7/", filepath.Base(base)[:min(len(filepath.Base(base)), len(there))]} {
			copy := bytes.Replace(data, []byte(there), []byte((planted + strings.Repeat("\x00", len(there)))[:len(there)]), 1)
			if got, err := traces(copy, append(paths, filepath.Base(base)[:min(len(filepath.Base(base)), len(there))])); err != nil || len(got) == 0 {
				t.Errorf("control: %s is not found in %s: %v", planted, name, err)
			}
		}
		for _, id := range []string{"redactee", "AAAAAAA/"} {
			copy := bytes.Replace(data, []byte("Go\x00\x00"+buildID), []byte("Go\x00\x00"+id), 1)
			if got, err := traces(copy, paths); err != nil || len(got) == 0 {
				t.Errorf("control: build ID %s is not found in %s: %v", id, name, err)
			}
		}
	}
}

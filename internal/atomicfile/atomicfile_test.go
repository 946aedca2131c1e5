package atomicfile

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

func TestWrite(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "out.json")
	for _, data := range []string{"first", "second"} {
		if err := Write(path, []byte(data), 0o600); err != nil {
			t.Fatal(err)
		}
		got, err := os.ReadFile(path)
		if err != nil || string(got) != data {
			t.Fatalf("got %q, %v", got, err)
		}
	}
	if info, err := os.Stat(path); err != nil || info.Mode() != 0o600 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
}

// A target that cannot be replaced keeps what it had, and nothing else is left beside it.
func TestWriteFailureLeavesNothing(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "out.json")
	if err := os.MkdirAll(filepath.Join(path, "kept"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := Write(path, []byte("x"), 0o600); err == nil {
		t.Fatal("a folder was replaced by a file")
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 1 {
		t.Errorf("left: %v, %v", entries, err)
	}
	if _, err := os.Stat(filepath.Join(path, "kept")); err != nil {
		t.Error(err)
	}
}

// A rename over a device, a FIFO or a link would destroy it: as root, --output /dev/null would be the end of /dev/null.
func TestWriteReplacesOnlyRegularFiles(t *testing.T) {
	dir := t.TempDir()
	fifo, link, folder := filepath.Join(dir, "fifo"), filepath.Join(dir, "link"), filepath.Join(dir, "folder")
	if err := errors.Join(syscall.Mkfifo(fifo, 0o600), os.Symlink("fifo", link), os.Mkdir(folder, 0o700)); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{fifo, link, folder} {
		before, err := os.Lstat(path)
		if err != nil {
			t.Fatal(err)
		}
		if err := Write(path, []byte("x"), 0o600); err == nil || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: %v", path, err)
		}
		if after, err := os.Lstat(path); err != nil || after.Mode() != before.Mode() {
			t.Errorf("%s was replaced: %v", path, err)
		}
	}
	missing := filepath.Join(dir, "none", "out.json")
	if err := Write(missing, []byte("x"), 0o600); err == nil || !strings.HasPrefix(err.Error(), missing+" cannot be written: no such") {
		t.Errorf("an error without the path that was named: %v", err)
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 3 {
		t.Errorf("left: %v, %v", entries, err)
	}
}

// Where one of several cannot be written none of them is.
func TestWriteAll(t *testing.T) {
	dir := t.TempDir()
	one, two := filepath.Join(dir, "one"), filepath.Join(dir, "two")
	if err := WriteAll(0o600, File{one, []byte("1")}, File{two, []byte("2")}); err != nil {
		t.Fatal(err)
	}
	if err := WriteAll(0o600, File{one, []byte("x")}, File{filepath.Join(dir, "none", "three"), nil}, File{two, []byte("x")}); err == nil {
		t.Error("a file in no folder was written")
	}
	if err := WriteAll(0o600, File{one, []byte("x")}, File{dir + "/./one", []byte("y")}); err == nil {
		t.Error("one path was written twice")
	}
	for path, want := range map[string]string{one: "1", two: "2"} {
		if got, err := os.ReadFile(path); err != nil || string(got) != want {
			t.Errorf("%s: %q, %v", path, got, err)
		}
	}
	if err := errors.Join(Writable(one), Writable(filepath.Join(dir, "new"))); err != nil {
		t.Error(err)
	}
	for _, path := range []string{dir, filepath.Join(dir, "none", "out")} {
		if Writable(path) == nil {
			t.Errorf("%s is writable", path)
		}
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 2 {
		t.Errorf("left: %v, %v", entries, err)
	}
}

package scaffold

import (
	"errors"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"selfsame.dev/selfsame/internal/canon"
)

// A folder that cannot be made whole is not made, and neither are the folders above it.
func TestPlaceIsAllOrNothing(t *testing.T) {
	root := t.TempDir()
	dir := filepath.Join(root, "a", "b", "c")
	broken := []File{{"x", nil, 0o644}, {"x/y", nil, 0o644}}
	if err := Place(dir, broken); err == nil {
		t.Fatal("a file below a file was made")
	}
	if left, err := os.ReadDir(root); err != nil || len(left) != 0 {
		t.Fatalf("left behind: %v, %v", left, err)
	}
	if err := Place(dir, []File{{"x/y", []byte("z"), 0o755}}); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(filepath.Join(dir, "x", "y"))
	if err != nil || info.Mode().Perm()&0o700 != 0o700 {
		t.Errorf("%v, %v", info, err)
	}
	if left, _ := os.ReadDir(root); len(left) != 1 {
		t.Errorf("left behind: %v", left)
	}
}

// Of many at once, one makes the folder, and its files are all its own.
func TestPlaceOnce(t *testing.T) {
	root := t.TempDir()
	dir := filepath.Join(root, "agents", "bob")
	errs := make([]error, 8)
	var all sync.WaitGroup
	for i := range errs {
		all.Go(func() {
			mark := []byte{byte('0' + i)}
			errs[i] = Place(dir, []File{{"one", mark, 0o644}, {"two", mark, 0o644}})
		})
	}
	all.Wait()
	won := -1
	for i, err := range errs {
		if err == nil && won >= 0 {
			t.Errorf("%d and %d both made the folder", won, i)
		}
		if err == nil {
			won = i
		}
	}
	one, _ := os.ReadFile(filepath.Join(dir, "one"))
	two, _ := os.ReadFile(filepath.Join(dir, "two"))
	if won < 0 || string(one) != string(two) || len(one) != 1 || int(one[0]-'0') != won {
		t.Errorf("winner %d, files %q and %q, %v", won, one, two, errs)
	}
	if left, _ := os.ReadDir(root); len(left) != 1 {
		t.Errorf("left behind: %v", left)
	}
	var input *canon.InputError
	if err := Place(dir, []File{{"one", nil, 0o644}}); !errors.As(err, &input) || input.File != filepath.Join(dir, "one") {
		t.Errorf("an existing file is not named: %v", err)
	}
}

package disk

import (
	"path/filepath"
	"strings"
	"testing"

	"selfsame.dev/selfsame/internal/tree"
)

// A worker that comes to a large file gives the rest of its batch back before it reads.
func TestLargeFileGivesTheBatchBack(t *testing.T) {
	root := build(t, t.TempDir(), spec{"small": "1", "large": strings.Repeat("x", large)})
	f := &folder{}
	w := worker{pool: &pool{stack: []job{}}, job: job{folder: f, from: 2, to: 9}}
	w.wake.L = &w.mu
	w.hasher = newHasher(Options{opened: func(key string) {
		if given := len(w.stack) == 1; given != (key == "large") {
			t.Errorf("reading %s, the rest is given back: %v", key, given)
		}
	}})
	w.large = w.share
	for _, name := range []string{"small", "large"} {
		if err := w.at(filepath.Join(root, name), &tree.Entry{Path: name}); err != nil {
			t.Fatal(err)
		}
	}
	if w.stack[0] != (job{folder: f, from: 2, to: 9}) || w.job.from != w.job.to {
		t.Errorf("given back %+v, kept %+v", w.stack, w.job)
	}
}

package store

import (
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"testing"

	"selfsame.dev/selfsame/living/store/storetest"
)

// childEnv makes the test binary a writer of its own: "DIR FIRST COUNT".
const childEnv = "LIVING_STORE_CHILD"

func TestMain(m *testing.M) {
	if args := os.Getenv(childEnv); args != "" {
		os.Exit(child(args))
	}
	os.Exit(m.Run())
}

// child learns COUNT facts, the first at turn FIRST, with the store's real durability.
func child(args string) int {
	var dir string
	var first, count int64
	if _, err := fmt.Sscan(args, &dir, &first, &count); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 2
	}
	keys, err := ReadKeys(dir)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 2
	}
	k := storetest.Kernel(&testing.T{}, Open(dir, keys), owner)
	for turn := first; turn < first+count; turn++ {
		if _, err := k.Apply(storetest.Report(owner, turn, storetest.Saw("notes", "note "+strconv.FormatInt(turn, 10)))); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
	}
	return 0
}

func childCommand(dir string, first, count int64) *exec.Cmd {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), fmt.Sprintf("%s=%s %d %d", childEnv, dir, first, count))
	cmd.Stderr = os.Stderr
	return cmd
}

// Two processes that create and write the same profile at once lose nothing.
func TestTwoProcesses(t *testing.T) {
	s := newStore(t)
	const each = 12
	one, two := childCommand(s.dir, 1, each), childCommand(s.dir, each+1, each)
	for _, cmd := range []*exec.Cmd{one, two} {
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
	}
	for _, cmd := range []*exec.Cmd{one, two} {
		if err := cmd.Wait(); err != nil {
			t.Fatal(err)
		}
	}
	got, err := s.Fsck(owner)
	if err != nil {
		t.Fatal(err)
	}
	// Turn order decides what the list keeps; both writers' newest turns are known.
	if notes := got.Document.Facts("notes"); got.Unpublished != 0 || len(notes) != 8 || notes[7].Turn() != 2*each {
		t.Errorf("%+v", got)
	}
	// A turn behind the window of kept facts may come too late to change anything.
	if got.Records < each+1 || got.Records > 2*each+1 {
		t.Errorf("%d records", got.Records)
	}
}

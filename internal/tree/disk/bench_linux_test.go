package disk

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"selfsame.dev/selfsame/internal/tree"
)

// The benchmark against peers. By default it is small, checks that peers agree on every
// digest, and judges no time. The full size, with its limits, is
//
//	SELFSAME_TREE_FILES=100000 SELFSAME_TREE_BYTES=2000000000 go test -run TestSpeed -v -timeout 30m ./internal/tree/disk
const (
	envFiles  = "SELFSAME_TREE_FILES"  // files in the tree
	envBytes  = "SELFSAME_TREE_BYTES"  // bytes in all of them
	envFolder = "SELFSAME_TREE_FOLDER" // where to build it (default: a temporary folder)
	envRounds = "SELFSAME_TREE_ROUNDS" // interleaved rounds, of which the fastest counts
	envChild  = "SELFSAME_TREE_CHILD"  // which part this process is

	fullSize  = 100_000 // files from which the limits hold
	maxRatio  = 0.4     // of the time of find, sort and xargs sha256sum
	maxMemory = 64 << 20
)

func TestMain(m *testing.M) {
	if part := os.Getenv(envChild); part != "" {
		if err := child(part, os.Args[1], os.Stdin, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// child is one measured process: ours, or a part of the floor.
func child(part, root string, in *os.File, out *os.File) error {
	switch part {
	case "ours", "plain":
		entries, err := Hash(root, Options{plain: part == "plain"})
		if err != nil {
			return err
		}
		sum, err := tree.Summarize(entries)
		if err != nil {
			return err
		}
		memory, err := peakMemory()
		if err != nil {
			return err
		}
		fmt.Fprintln(out, sum.FileCount, sum.TotalBytes, sum.Digest, memory)
		return nil
	case "read": // open, fstat, read and close every file of a known list
		var paths []string
		lines := bufio.NewScanner(in)
		for lines.Scan() {
			paths = append(paths, lines.Text())
		}
		if err := os.Chdir(root); err != nil {
			return err
		}
		return shareOut(len(paths), func(i int, buf []byte) error {
			fd, err := unix.Open(paths[i], unix.O_RDONLY|unix.O_CLOEXEC, 0)
			if err != nil {
				return err
			}
			defer unix.Close(fd)
			var stat unix.Stat_t
			if err := unix.Fstat(fd, &stat); err != nil {
				return err
			}
			for left := stat.Size; left > 0; {
				n, err := unix.Read(fd, buf)
				if err != nil || n == 0 {
					return fmt.Errorf("%s: %d bytes missing: %v", paths[i], left, err)
				}
				left -= int64(n)
			}
			return nil
		})
	case "hash": // the same bytes and number of digests, from memory
		var sizes []int64
		lines := bufio.NewScanner(in)
		for lines.Scan() {
			size, err := strconv.ParseInt(lines.Text(), 10, 64)
			if err != nil {
				return err
			}
			sizes = append(sizes, size)
		}
		return shareOut(len(sizes), func(i int, buf []byte) error {
			h := sha256.New()
			for left := sizes[i]; left > 0; left -= int64(len(buf)) {
				h.Write(buf[:min(left, int64(len(buf)))])
			}
			h.Sum(nil)
			return nil
		})
	}
	return fmt.Errorf("no part %q", part)
}

func shareOut(n int, do func(i int, buf []byte) error) error {
	var next atomic.Int64
	var failure atomic.Value
	var workers sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		workers.Go(func() {
			buf := make([]byte, bufferSize)
			for i := next.Add(1) - 1; i < int64(n); i = next.Add(1) - 1 {
				if err := do(int(i), buf); err != nil {
					failure.Store(err)
				}
			}
		})
	}
	workers.Wait()
	err, _ := failure.Load().(error)
	return err
}

// peakMemory is the peak resident size of this process in bytes. (The rusage that a parent
// gets would count the parent itself, whose memory a child has before it calls exec.)
func peakMemory() (int64, error) {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(status)) {
		if fields := strings.Fields(line); len(fields) == 3 && fields[0] == "VmHWM:" {
			kib, err := strconv.ParseInt(fields[1], 10, 64)
			return kib << 10, err
		}
	}
	return 0, fmt.Errorf("no VmHWM in /proc/self/status")
}

func setting(t *testing.T, name string, otherwise int64) int64 {
	text := os.Getenv(name)
	if text == "" {
		return otherwise
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n <= 0 {
		t.Fatalf("%s=%s is no positive number", name, text)
	}
	return n
}

func TestSpeed(t *testing.T) {
	files := setting(t, envFiles, 400)
	total := setting(t, envBytes, files*20_000)
	rounds := setting(t, envRounds, 1)
	root := os.Getenv(envFolder)
	if root == "" {
		root = t.TempDir()
	}
	for _, tool := range []string{"sh", "find", "sort", "xargs", "sha256sum"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Fatalf("the peer needs %s: %v", tool, err)
		}
	}
	if err := buildBenchTree(root, files, total); err != nil {
		t.Fatal(err)
	}

	var paths, sizes bytes.Buffer
	entries, err := Hash(root, Options{})
	if err != nil {
		t.Fatal(err)
	}
	want, err := tree.Summarize(entries)
	if err != nil {
		t.Fatal(err)
	}
	byTool := make([]string, 0, len(entries))
	for _, e := range entries {
		fmt.Fprintln(&paths, e.Path)
		fmt.Fprintln(&sizes, e.Size)
		byTool = append(byTool, e.Digest.String()+"  "+e.Path)
	}

	self := func(part string, in []byte) *exec.Cmd {
		cmd := exec.Command("/proc/self/exe", root)
		cmd.Env = append(os.Environ(), envChild+"="+part)
		cmd.Stdin = bytes.NewReader(in)
		return cmd
	}
	parts := []struct {
		name string
		cmd  func() *exec.Cmd
	}{
		{"ours", func() *exec.Cmd { return self("ours", nil) }},
		{"plain", func() *exec.Cmd { return self("plain", nil) }},
		{"find|sort|xargs sha256sum", func() *exec.Cmd {
			cmd := exec.Command("sh", "-c", `find * -type f -print0 | sort -z | xargs -0 -P2 sha256sum`)
			cmd.Dir = root
			cmd.Env = append(os.Environ(), "LC_ALL=C")
			return cmd
		}},
		{"read", func() *exec.Cmd { return self("read", paths.Bytes()) }},
		{"hash", func() *exec.Cmd { return self("hash", sizes.Bytes()) }},
	}
	fastest, cpu := map[string]time.Duration{}, map[string]time.Duration{}
	var memory int64
	for range rounds {
		for _, part := range parts {
			cmd := part.cmd()
			var out, problems bytes.Buffer
			cmd.Stdout, cmd.Stderr = &out, &problems
			start := time.Now()
			if err := cmd.Run(); err != nil {
				t.Fatalf("%s: %v\n%s", part.name, err, &problems)
			}
			took := time.Since(start)
			for times, took := range map[*map[string]time.Duration]time.Duration{
				&fastest: took, &cpu: cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime(),
			} {
				if best, ok := (*times)[part.name]; !ok || took < best {
					(*times)[part.name] = took
				}
			}
			switch part.name {
			case "ours", "plain":
				var got tree.Summary
				var digest string
				var peak int64
				if _, err := fmt.Sscan(out.String(), &got.FileCount, &got.TotalBytes, &digest, &peak); err != nil {
					t.Fatal(err)
				}
				if got.FileCount != want.FileCount || got.TotalBytes != want.TotalBytes || digest != want.Digest.String() {
					t.Fatalf("%s gives %s, want %v", part.name, out.String(), want)
				}
				if part.name == "ours" {
					memory = max(memory, peak)
				}
			case "find|sort|xargs sha256sum":
				lines := strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")
				slices.Sort(lines) // two processes write in turn
				if other := slices.Sorted(slices.Values(byTool)); !slices.Equal(lines, other) {
					t.Fatalf("sha256sum gives other digests: %d lines, want %d", len(lines), len(other))
				}
			}
		}
	}

	ours := fastest["ours"]
	floor := fastest["read"] + fastest["hash"]
	peer := fastest["find|sort|xargs sha256sum"]
	ratio := ours.Seconds() / peer.Seconds()
	t.Logf("%d files, %d bytes, %d CPUs, fastest of %d rounds", want.FileCount, want.TotalBytes, runtime.GOMAXPROCS(0), rounds)
	t.Logf("ours %v (peak %.1f MB), plain %v, find|sort|xargs -P2 sha256sum %v, floor %v (read %v + hash %v)",
		ours.Round(time.Millisecond), float64(memory)/1e6, fastest["plain"].Round(time.Millisecond), peer.Round(time.Millisecond),
		floor.Round(time.Millisecond), fastest["read"].Round(time.Millisecond), fastest["hash"].Round(time.Millisecond))
	t.Logf("ours / pipeline %.3f (of CPU time %.3f), ours / floor %.3f, plain / ours %.2f", ratio,
		cpu["ours"].Seconds()/cpu["find|sort|xargs sha256sum"].Seconds(), ours.Seconds()/floor.Seconds(), fastest["plain"].Seconds()/ours.Seconds())
	if want.FileCount >= fullSize {
		if ratio > maxRatio {
			t.Errorf("ours takes %.3f of the pipeline, the limit is %.1f", ratio, maxRatio)
		}
		if memory >= maxMemory {
			t.Errorf("peak memory is %d bytes, the limit is %d", memory, maxMemory)
		}
	}
}

// buildBenchTree makes files of skewed sizes, many small and few large, about a hundred a
// folder, three folders deep. A folder that holds the tree already is left as it is.
func buildBenchTree(root string, files, total int64) error {
	if list, err := os.ReadDir(root); err == nil && len(list) > 0 {
		return nil
	}
	random := rand.New(rand.NewPCG(1, 2))
	content := make([]byte, 64<<20)
	for i := range content {
		content[i] = byte(random.Uint32())
	}
	weights := make([]float64, files)
	var sum float64
	for i := range weights {
		weights[i] = random.ExpFloat64() * random.ExpFloat64()
		sum += weights[i]
	}
	for i := range weights {
		size := min(int64(weights[i]/sum*float64(total)), int64(len(content)))
		from := random.Int64N(int64(len(content)) - size + 1)
		name := fmt.Sprintf("part%02d/section%02d/chapter%02d/file-%06d.dat", i/100%20, i/2000%10, i/20000, i)
		name = filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(name), 0o777); err != nil {
			return err
		}
		if err := os.WriteFile(name, content[from:from+size], fs.FileMode(0o666)); err != nil {
			return err
		}
	}
	return nil
}

func BenchmarkHash(b *testing.B) {
	root := b.TempDir()
	if err := buildBenchTree(root, 400, 8_000_000); err != nil {
		b.Fatal(err)
	}
	for _, r := range readers {
		b.Run(strings.ReplaceAll(r.name, " ", "-"), func(b *testing.B) {
			b.SetBytes(8_000_000)
			for b.Loop() {
				if _, err := Hash(root, r.with(Options{})); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

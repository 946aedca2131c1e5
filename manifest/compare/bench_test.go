package compare

import (
	"fmt"
	"os"
	"testing"

	"golang.org/x/sys/unix"

	"selfsame.dev/selfsame/internal/canon"
	"selfsame.dev/selfsame/internal/tree"
	"selfsame.dev/selfsame/manifest"
)

// large returns Leo's manifest with n files in the tree of the runtime's code, the digest of
// every step-th of them changed.
func large(tb testing.TB, n, step int) []byte {
	tb.Helper()
	m, err := manifest.Decode("golden", golden(tb))
	if err != nil {
		tb.Fatal(err)
	}
	code := &m.Identity.Inputs.Behavior.HermesCode.Tree
	for i := range n - len(code.Files) {
		text := fmt.Sprintf("file %d", i)
		if step > 0 && i%step == 0 {
			text += " changed"
		}
		code.Files = append(code.Files, tree.Entry{Path: fmt.Sprintf("zz/package%02d/module%05d.py", i%97, i), Size: int64(len(text)), Digest: canon.Sum([]byte(text))})
	}
	return reseal(tb, m)
}

func BenchmarkDecode(b *testing.B) {
	data := large(b, 10_000, 0)
	for b.Loop() {
		if _, err := manifest.Decode("a", data); err != nil {
			b.Fatal(err)
		}
	}
}

func golden(tb testing.TB) []byte {
	tb.Helper()
	data, err := os.ReadFile("../../fixtures/working-leo/golden/leo-identity-manifest-v1.json")
	if err != nil {
		tb.Fatal(err)
	}
	return data
}

// The whole of a comparison but reading the files: two manifests of 10,000 files, every hundredth other.
func BenchmarkDocuments(b *testing.B) {
	x, y := Document{"a", large(b, 10_000, 0)}, Document{"b", large(b, 10_000, 100)}
	before := cpu(b)
	for b.Loop() {
		if _, err := Documents(x, y); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(cpu(b)-before)/1e6/float64(b.N), "cpu-ms/op") // of both cores; steadier than the clock
}

// cpu is the processor time of this process in nanoseconds.
func cpu(b *testing.B) int64 {
	var usage unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &usage); err != nil {
		b.Fatal(err)
	}
	return usage.Utime.Nano() + usage.Stime.Nano()
}

package canary

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
	"testing"
	"time"

	"selfsame.dev/selfsame/canary/wire"
	"selfsame.dev/selfsame/manifest/leotest"
)

// BenchmarkLeo compares a canary with what it cannot do without, in the same run: pinning
// once, and twice a bare start of the responder, a compile and a verification. Medians; the
// ratio is reported with and without the pinning on both sides, and, stricter, without the digests of
// the program among what is needed; the canary by its parts. ratio-literal counts two starts, compiles and
// verifications alone as needed, and the whole canary, pinning included, against them.
// The cpu-ratio compares processor time, all processes included, and so holds on a busy machine too.
// SELFSAME_RESPONDER names the responder to start, else it is this test binary.
func BenchmarkLeo(b *testing.B) {
	root := leotest.Copy(b, repository)
	query := wire.FixedQuery("leo")
	request, err := query.Encode()
	if err != nil {
		b.Fatal(err)
	}
	ctx := context.Background()
	times := map[string][]float64{}
	timed := func(part string, f func() error) {
		begun, cpu := time.Now(), cpuTime(b)
		if err := f(); err != nil {
			b.Fatal(part, err)
		}
		times[part] = append(times[part], millis(time.Since(begun)))
		times["cpu-"+part] = append(times["cpu-"+part], millis(cpuTime(b)-cpu))
	}
	agent := leo(b, root).Agent
	runtime := responder(b)
	scratch := b.TempDir()
	for i := range b.N {
		timed("need-pin", func() error { _, err := agent.Pin(ctx); return err })
		dir := filepath.Join(scratch, strconv.Itoa(i))
		timed("need-program", func() error { _, err := digestFile(runtime.Program); return err })
		timed("need-compile", func() error { return agent.Compile(ctx, dir) })
		timed("need-verify", func() error {
			a, err := agent.VerifySources(ctx)
			c, profileErr := agent.VerifyProfile(ctx, dir)
			if len(a)+len(c) > 0 {
				return errors.New("drift")
			}
			return errors.Join(err, profileErr)
		})
		timed("need-start", func() error {
			cmd := exec.Command(runtime.Program, runtime.Args...)
			cmd.Env = []string{"HERMES_HOME=" + dir}
			cmd.Stdin = bytes.NewReader(request)
			out, err := cmd.Output()
			if err == nil && len(out) == 0 {
				err = errors.New("no answer")
			}
			return err
		})
		if err := os.RemoveAll(dir); err != nil {
			b.Fatal(err)
		}
		cfg := leo(b, root)
		cfg.TempDir = scratch
		var receipt *Receipt
		timed("canary", func() error {
			var err error
			if receipt, err = Run(ctx, cfg); err == nil && receipt.Outcome != Reproduced {
				err = errors.New(receipt.Outcome)
			}
			return err
		})
		for part, ms := range receipt.Observed.Millis {
			times["part-"+part] = append(times["part-"+part], ms)
		}
	}
	median := func(part string) float64 {
		slices.Sort(times[part])
		return times[part][len(times[part])/2]
	}
	twice := func(kind string) float64 {
		return 2 * (median(kind+"need-compile") + median(kind+"need-verify") + median(kind+"need-program") + median(kind+"need-start"))
	}
	pin := func(kind string) float64 { return median(kind+"need-pin") + median(kind+"need-program") }
	b.ReportMetric(0, "ns/op")
	for part := range times {
		b.ReportMetric(median(part), part+"-ms")
	}
	b.ReportMetric(median("canary")/(twice("")+pin("")), "ratio")
	b.ReportMetric((median("canary")-median("part-pin"))/twice(""), "ratio-without-pin")
	b.ReportMetric(median("canary")/(twice("")+pin("")-3*median("need-program")), "ratio-strict")
	b.ReportMetric(median("canary")/(twice("")-2*median("need-program")), "ratio-literal")
	b.ReportMetric(median("cpu-canary")/(twice("cpu-")+pin("cpu-")), "cpu-ratio")
}

// cpuTime is the processor time of this process and of all that it, and they, waited for.
func cpuTime(b *testing.B) time.Duration {
	b.Helper()
	var sum time.Duration
	for _, who := range []int{syscall.RUSAGE_SELF, syscall.RUSAGE_CHILDREN} {
		var u syscall.Rusage
		if err := syscall.Getrusage(who, &u); err != nil {
			b.Fatal(err)
		}
		sum += time.Duration(u.Utime.Nano() + u.Stime.Nano())
	}
	return sum
}

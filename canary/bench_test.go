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
	"selfsame.dev/selfsame/manifest"
	"selfsame.dev/selfsame/manifest/leotest"
	"selfsame.dev/selfsame/manifest/source"
	"selfsame.dev/selfsame/profile"
)

// BenchmarkLeo compares a canary with two bare starts of the responder, two compiles and two verifications, each on its
// own in the same run; a verification is of sources, profile and program, as before every start. Medians. The manifest
// is given; ratio-generating has a canary that generates it first, whose time no other part of the comparison has.
// cpu-ratio compares processor time, all processes included, and so holds on a busy machine too.
// SELFSAME_RESPONDER names the responder to start, else it is this test binary.
func BenchmarkLeo(b *testing.B) {
	root := leotest.Copy(b, repository)
	paths := leotest.Paths(root)
	m, sources := leotest.Build(b, root)
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
	given := leo(b, root)
	given.TempDir = b.TempDir()
	generating := given
	load := func() (manifest.Sources, error) { return source.Folders(paths) }
	for i := range b.N {
		dir := filepath.Join(given.TempDir, strconv.Itoa(i))
		timed("compile", func() error { return profile.Compile(m, sources.Template, dir, profile.Options{}) })
		timed("verify", func() error {
			s, err := source.Folders(paths)
			if err != nil {
				return err
			}
			drift, err := manifest.Verify(m, s)
			changes, profileErr := profile.Verify(dir, m)
			_, programErr := digestFile(given.Runtime.Program)
			if len(drift)+len(changes) > 0 {
				return errors.New("drift")
			}
			return errors.Join(err, profileErr, programErr)
		})
		timed("start", func() error {
			cmd := exec.Command(given.Runtime.Program, given.Runtime.Args...)
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
		given.Agent, generating.Agent = NewPinned(m, load), NewSourced(load)
		for part, cfg := range map[string]Config{"canary": given, "generating": generating} {
			timed(part, func() error {
				receipt, err := Run(ctx, cfg)
				if err != nil {
					return err
				}
				if receipt.Outcome != Reproduced {
					return errors.New(receipt.Outcome)
				}
				for name, ms := range receipt.Observed.Millis {
					times[part+"-"+name] = append(times[part+"-"+name], ms)
				}
				return nil
			})
		}
	}
	median := func(part string) float64 {
		slices.Sort(times[part])
		return times[part][len(times[part])/2]
	}
	needed := func(kind string) float64 {
		return 2 * (median(kind+"start") + median(kind+"compile") + median(kind+"verify"))
	}
	b.ReportMetric(0, "ns/op")
	for part := range times {
		b.ReportMetric(median(part), part+"-ms")
	}
	b.ReportMetric(median("canary")/needed(""), "ratio")
	b.ReportMetric(median("generating")/needed(""), "ratio-generating")
	b.ReportMetric(median("cpu-canary")/needed("cpu-"), "cpu-ratio")
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

package rpi_test

import (
	"fmt"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"selfsame.dev/selfsame/rpi"
	"selfsame.dev/selfsame/rpi/rpitest"
)

// law is the program under test, or a wrong variant of it.
type law struct {
	run       func([]rpi.Value, rpi.Options) (rpi.Outcome, error)
	normalize func(rpi.Value) (facts, error)
}

// facts are what the properties read of a round.
type facts struct {
	status rpi.Status
	open   []string
}

var real = law{rpi.RunRepairPhase, func(v rpi.Value) (facts, error) {
	round, err := rpi.NormalizeRound(v)
	if err != nil {
		return facts{}, err
	}
	f := facts{status: round.Status()}
	for _, finding := range round.Open() {
		f.open = append(f.open, finding.ID)
	}
	slices.Sort(f.open)
	return f, nil
}}

// lawless walks the rounds and judges by the last one, as if every round were progress.
var lawless = law{func(rounds []rpi.Value, o rpi.Options) (rpi.Outcome, error) {
	out := rpi.Outcome{StopReason: rpi.NotConverged}
	for _, value := range rounds {
		round, err := rpi.NormalizeRound(value)
		if err != nil {
			return out, err
		}
		out.Report.Status, out.Open = round.Status(), round.Open()
	}
	if out.Report.Status == rpi.Pass {
		out.StopReason = rpi.NoProgress // so that its report carries PASS at a law stop
	}
	return out, nil
}, func(v rpi.Value) (facts, error) {
	f, err := real.normalize(v)
	if v.Kind() == rpi.List { // the last leg alone decides
		for _, leg := range v.Items() {
			if last, err := real.normalize(leg); err == nil {
				f = last
			}
		}
	}
	return f, err
}}

var reportKeys = []string{
	"acceptance_digest", "checked", "intent_ref", "not_checked", "schema_version", "status",
	"subject_manifest_digest", "verdict_digest", "verdict_ref",
}

// A property says how the program breaks it on one random repair, or "".
var properties = []struct {
	name  string
	holds func(law, rpitest.Traces) string
}{
	{"nine keys", func(l law, g rpitest.Traces) string {
		out, err := l.run(g.Rounds(), g.Options())
		if err != nil {
			return ""
		}
		var keys []string
		for key := range out.Report.Value().Members() {
			keys = append(keys, key)
		}
		if !slices.Equal(keys, reportKeys) {
			return fmt.Sprint(keys)
		}
		lines := 0
		for _, line := range out.Report.Checked {
			if s, _ := line.Text(); strings.HasPrefix(s, "repair round ") {
				lines++
			}
		}
		if lines != out.RoundsUsed+1 {
			return fmt.Sprintf("%d round lines for %d rounds used", lines, out.RoundsUsed)
		}
		return ""
	}},
	{"PASS means converged", func(l law, g rpitest.Traces) string {
		out, err := l.run(g.Rounds(), g.Options())
		if err == nil && (out.Report.Status == rpi.Pass) != (out.StopReason == rpi.Converged) {
			return fmt.Sprintf("%s with %s", out.Report.Status, out.StopReason)
		}
		return ""
	}},
	{"adding legs never improves a status", func(l law, g rpitest.Traces) string {
		round := g.Rounds()[0]
		first, err := l.normalize(round)
		if err != nil {
			return ""
		}
		legs := legsOf(round)
		more, err := l.normalize(rpi.ListOf(append(legs, legsOf(g.Rounds()[0])...)...))
		if err == nil && more.status < first.status {
			return fmt.Sprintf("%s became %s", first.status, more.status)
		}
		return ""
	}},
	{"permuting legs keeps status and open ids", func(l law, g rpitest.Traces) string {
		round := g.Rounds()[0]
		if g.Chance(30) {
			round = g.Mutate(round)
		}
		legs := legsOf(round)
		first, err := l.normalize(rpi.ListOf(legs...))
		g.Shuffle(len(legs), func(i, j int) { legs[i], legs[j] = legs[j], legs[i] })
		again, err2 := l.normalize(rpi.ListOf(legs...))
		if (err == nil) != (err2 == nil) || err == nil && (first.status != again.status || !slices.Equal(first.open, again.open)) {
			return fmt.Sprintf("%v %v, then %v %v", first, err, again, err2)
		}
		return ""
	}},
	{"renaming an open finding is no progress", func(l law, g rpitest.Traces) string {
		rounds := g.Rounds()
		o := g.Options()
		o.RepairRounds = len(rounds) + 1
		out, err := l.run(rounds, o)
		if err != nil || out.StopReason != rpi.NotConverged || len(out.Open) == 0 {
			return ""
		}
		ids := []string{"renamed"}
		for _, f := range out.Open[1:] {
			ids = append(ids, f.ID)
		}
		next := rpitest.Leg("FAIL", ids, nil, rpitest.Subject(99), "north", rpitest.Binding("rename", rpitest.Subject(99), "resolves", out.Open[0].ID))
		if out, err = l.run(append(rounds, next), o); err == nil && !out.StopReason.LawStop() {
			return string(out.StopReason)
		}
		return ""
	}},
	{"rounds behind a stop are not looked at", func(l law, g rpitest.Traces) string {
		rounds, o := g.Rounds(), g.Options()
		out, err := l.run(rounds, o)
		if err != nil || out.StopReason == rpi.NotConverged {
			return ""
		}
		again, err := l.run(append(rounds, rpi.String("garbage")), o)
		if err != nil || again.Value().String() != out.Value().String() {
			return fmt.Sprint(again.Value(), err)
		}
		return ""
	}},
}

func legsOf(round rpi.Value) []rpi.Value {
	if round.Kind() != rpi.List {
		return []rpi.Value{round}
	}
	var legs []rpi.Value
	for _, leg := range round.Items() {
		legs = append(legs, leg)
	}
	return legs
}

func TestProperties(t *testing.T) {
	const tries = 3000
	for _, p := range properties {
		t.Run(p.name, func(t *testing.T) {
			for seed := range uint64(tries) {
				if broken := p.holds(real, rpitest.New(seed)); broken != "" {
					t.Fatalf("seed %d: %s", seed, broken)
				}
			}
			for seed := range uint64(tries) {
				if p.holds(lawless, rpitest.New(seed)) != "" {
					return
				}
			}
			t.Error("control: a program without the law is not told apart")
		})
	}
}

// The generator must reach every stop reason and many refusals, or the properties say little.
func TestTracesReachEverything(t *testing.T) {
	reasons, refused := map[rpi.StopReason]int{}, map[string]int{}
	for seed := range uint64(6000) {
		g := rpitest.New(seed)
		rounds := g.Rounds()
		if seed%3 == 0 {
			rounds = legsOf(g.Mutate(rpi.ListOf(rounds...)))
		}
		out, err := rpi.RunRepairPhase(rounds, g.Options())
		if err != nil {
			refused[string(err.(*rpi.Refusal).Rule)]++
			continue
		}
		reasons[out.StopReason]++
	}
	for _, reason := range rpi.StopReasons() {
		if reasons[reason] < 5 {
			t.Errorf("%s: %d times", reason, reasons[reason])
		}
	}
	if len(refused) < 15 {
		t.Errorf("only %d rules: %v", len(refused), refused)
	}
}

// Neither a run nor a refusal changes its input, and a second run says the same.
func TestInputIsNeverChanged(t *testing.T) {
	for seed := range uint64(3000) {
		g := rpitest.New(seed)
		rounds := rpi.ListOf(g.Rounds()...)
		if seed%2 == 0 {
			rounds = g.Mutate(rounds)
		}
		before := rounds.String()
		list, o := legsOf(rounds), g.Options()
		out, err := rpi.RunRepairPhase(list, o)
		again, err2 := rpi.RunRepairPhase(list, o)
		if rounds.String() != before {
			t.Fatalf("seed %d: input changed", seed)
		}
		if fmt.Sprint(err) != fmt.Sprint(err2) || err == nil && out.Value().String() != again.Value().String() {
			t.Fatalf("seed %d: two runs differ", seed)
		}
	}
}

// A phase fed round by round says after each what a whole run over the prefix says.
func TestPhaseAgreesWithPrefixes(t *testing.T) {
	for seed := range uint64(2000) {
		g := rpitest.New(seed)
		rounds, o := g.Rounds(), g.Options()
		phase, err := rpi.NewPhase(o)
		if err != nil {
			t.Fatal(err)
		}
		for i := range rounds {
			more, err := phase.Offer(rounds[i])
			want, wantErr := rpi.RunRepairPhase(rounds[:i+1], o)
			if (err == nil) != (wantErr == nil) {
				t.Fatalf("seed %d round %d: %v, whole run %v", seed, i, err, wantErr)
			}
			got, _ := phase.Outcome()
			if err == nil && got.Value().String() != want.Value().String() {
				t.Fatalf("seed %d round %d: %s, whole run %s", seed, i, got.Value(), want.Value())
			}
			if !more {
				break
			}
		}
	}
}

// longTrace makes rounds of 100 findings each: every round closes one and finds one that
// was there before.
func longTrace(n int) []rpi.Value {
	const width = 100
	rounds := make([]rpi.Value, n)
	id := func(i int) string { return fmt.Sprintf("finding-%d", i) }
	for r := range n {
		ids := make([]string, width)
		for i := range ids {
			ids[i] = id(r + i)
		}
		var evidence []rpi.Value
		if r > 0 {
			evidence = []rpi.Value{
				rpitest.Binding(fmt.Sprintf("fix-%d", r), rpitest.Subject(r), "resolves", id(r-1)),
				rpitest.Binding(fmt.Sprintf("seen-%d", r), rpitest.Subject(r-1), "preexisting", id(r+width-1)),
			}
		}
		rounds[r] = rpitest.Leg("FAIL", ids, nil, rpitest.Subject(r), "north", evidence...)
	}
	return rounds
}

func TestLinearInSize(t *testing.T) {
	const n, factor = 250, 8
	cost := func(n int) time.Duration {
		rounds, o := longTrace(n), rpi.Options{RepairRounds: n}
		best := time.Hour
		for range 3 {
			start := processorTime(t)
			out, err := rpi.RunRepairPhase(rounds, o)
			best = min(best, processorTime(t)-start)
			if err != nil || out.RoundsUsed != n-1 {
				t.Fatalf("%d rounds used, %v, %v", out.RoundsUsed, out.StopReason, err)
			}
		}
		return best
	}
	small, large := cost(n), cost(n*factor)
	// A quadratic law would take 64 times as long.
	if large > small*factor*3 {
		t.Errorf("%d rounds take %v, %d times as many %v", n, small, factor, large)
	}
	t.Logf("%d rounds of 100 findings: %v; %d: %v", n, small, n*factor, large)
}

// processorTime is what this process took so far; other load does not count.
func processorTime(t *testing.T) time.Duration {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		t.Fatal(err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

func BenchmarkLongTrace(b *testing.B) {
	for _, n := range []int{1000, 10000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			rounds := longTrace(n)
			b.ReportAllocs()
			for b.Loop() {
				if _, err := rpi.RunRepairPhase(rounds, rpi.Options{RepairRounds: n}); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n), "ns/round")
		})
	}
}

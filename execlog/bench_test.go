package execlog

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"
)

// large writes a compact log of n actions as a build of many libraries has them: each with a few sources of its own, the
// outputs of up to 8 others and of all that those read, a toolchain of 500 files, some 30 arguments. The content of
// the source of action odd differs.
func large(n, odd int) []byte {
	m := newMaker()
	var toolchain []uint64
	for i := range 500 {
		toolchain = append(toolchain, m.file(fmt.Sprintf("external/toolchain+/lib/part%03d/%s.a", i%40, text(i, "lib")), text(i, "tool")))
	}
	tools := m.set(toolchain)
	const leaves = 40
	sets := make([]uint64, n)
	outs := make([]uint64, n)
	dirty := make([]bool, n)
	env := []string{"PATH", "/bin:/usr/bin:/usr/local/bin", "TZ", "UTC", "LC_ALL", "C.UTF-8", "PWD", "/proc/self/cwd"}
	var flags []string
	for i := range 20 {
		flags = append(flags, fmt.Sprintf("-Iexternal/toolchain+/include/part%d", i))
	}
	for i := range n {
		pkg := fmt.Sprintf("services/area%02d/%s", i%50, text(i, "package"))
		var sources []uint64
		for j := range 3 + i%4 {
			content := fmt.Sprintf("source %d %d", i, j)
			if i == odd && j == 0 {
				content += " changed"
			}
			sources = append(sources, m.file(fmt.Sprintf("%s/source%d.cc", pkg, j), content))
		}
		// Layers, as builds have them: an action reads some of the layer below.
		var direct, below []uint64
		if layer := i / leaves; layer > 0 {
			for j := range 1 + i%8 {
				d := (layer-1)*leaves + (i*7+j*5)%leaves
				direct = append(direct, outs[d])
				dirty[i] = dirty[i] || dirty[d]
				if layer%30 != 0 {
					below = append(below, sets[d])
				}
			}
		}
		sets[i] = m.set(direct, below...)
		inputs := m.set(sources, sets[i], tools)
		out := bin(pkg + "/lib.a")
		content := fmt.Sprintf("made %d", i)
		if dirty[i] = dirty[i] || i == odd; dirty[i] {
			content += " otherwise"
		}
		args := append([]string{"external/toolchain+/bin/cc", "-c", pkg + "/source0.cc", "-o", out, "-frandom-seed=" + out, "-DNAME=" + text(i, "n")}, flags...)
		outs[i] = m.file(out, content)
		m.act(act{label: "//" + pkg + ":lib", mnemonic: "CppCompile", args: args, env: env, inputs: inputs, tools: tools, outputs: []uint64{outs[i]}})
	}
	return m.out
}

// Two logs of 50,000 actions: how long, and how much memory (of the process, at its peak, with both logs in memory).
//
//	go test ./execlog -run '^$' -bench Large -benchtime 1x
func BenchmarkLarge(b *testing.B) {
	for _, tc := range []struct {
		name string
		odd  int
	}{{"equal", -1}, {"one source", 20_000}, {"first source", 0}} {
		b.Run(tc.name, func(b *testing.B) {
			dir := b.TempDir()
			for name, odd := range map[string]int{"a": -1, "b": tc.odd} {
				if err := os.WriteFile(dir+"/"+name, squeeze(large(50_000, odd)), 0o644); err != nil {
					b.Fatal(err)
				}
			}
			runtime.GC()
			for b.Loop() {
				peak := watch()
				begin := time.Now()
				c := compareFiles(b, dir+"/a", dir+"/b")
				b.ReportMetric(time.Since(begin).Seconds(), "s/pair")
				b.ReportMetric(float64(peak())/(1<<20), "MiB-heap-peak")
				if c.Equal != (tc.odd < 0) || tc.odd >= 0 && len(c.Causes) != 1 {
					b.Fatal(c.Counts)
				}
				b.ReportMetric(float64(c.Counts.Consequences), "consequences")
			}
		})
	}
}

func compareFiles(tb testing.TB, a, b string) *Comparison {
	tb.Helper()
	var sources [2]Source
	for i, name := range []string{a, b} {
		f, err := os.Open(name)
		if err != nil {
			tb.Fatal(err)
		}
		defer f.Close()
		sources[i] = Source{Name: name, Reader: f}
	}
	c, err := Compare(sources[0], sources[1], shown, Limits{})
	if err != nil {
		tb.Fatal(err)
	}
	return c
}

// watch samples the heap in use beyond what is in use now; the func it returns says the peak in bytes.
func watch() func() uint64 {
	var before runtime.MemStats
	runtime.ReadMemStats(&before)
	stop, done := make(chan bool), make(chan uint64)
	go func() {
		var peak uint64
		var now runtime.MemStats
		for {
			runtime.ReadMemStats(&now)
			peak = max(peak, now.HeapInuse)
			select {
			case <-stop:
				done <- peak - min(peak, before.HeapInuse)
				return
			case <-time.After(20 * time.Millisecond):
			}
		}
	}()
	return func() uint64 { close(stop); return <-done }
}

// Memory follows what is distinct, not what is repeated: ten times the actions on the same files cost little.
func TestMemoryIsBounded(t *testing.T) {
	repeated := func(n int) []byte {
		m := newMaker()
		var files []uint64
		for i := range 2000 {
			files = append(files, m.file(text(i, "src/file"), text(i, "content")))
		}
		set := m.set(files)
		for i := range n {
			m.act(act{label: "//a:b", args: []string{strings.Repeat("x", 2000), text(i%10, "n")}, inputs: m.set(nil, set), out: bin(text(i%10, "o")), made: "m"})
		}
		return m.out
	}
	kept := func(data []byte) int64 {
		st := newStore(DefaultLimits.Kept)
		if _, err := read(Source{Name: "log", Reader: bytes.NewReader(data)}, st, DefaultLimits); err != nil {
			t.Fatal(err)
		}
		return st.size
	}
	small, big := kept(repeated(1000)), kept(repeated(10_000))
	if big > small+small/10 {
		t.Errorf("1,000 actions keep %d bytes, 10,000 keep %d", small, big)
	}
	// The control: distinct text is kept.
	if other := kept(large(1000, -1)); other < 2*kept(large(300, -1)) {
		t.Errorf("control: %d", other)
	}
}

var shown = Secrets{Value: func(_, _ string) bool { return false }, File: func(string) bool { return false }}

// A log written with JSON objects for the actions of a compact one, inputs listed one by one.
func largeJSON(w io.Writer, n, inputs, odd int) {
	for i := range n {
		fmt.Fprintf(w, "{\n  \"commandArgs\": [\"cc\", \"-o\", %q],\n  \"environmentVariables\": [{\n    \"name\": \"PATH\",\n    \"value\": \"/bin\"\n  }],\n  \"platform\": {\n    \"properties\": []\n  },\n  \"inputs\": [", bin(text(i, "o")))
		for j := range inputs {
			if j > 0 {
				fmt.Fprint(w, ", ")
			}
			content := j + i/100*100
			if content == odd {
				content = 1 << 30
			}
			fmt.Fprintf(w, "{\n    \"path\": \"%s\",\n    \"digest\": {\n      \"hash\": \"%064x\",\n      \"sizeBytes\": \"12\",\n      \"hashFunctionName\": \"SHA-256\"\n    },\n    \"isTool\": false,\n    \"symlinkTargetPath\": \"\"\n  }", text(j+i/100*100, "some/folder/of/the/workspace/file"), content)
		}
		fmt.Fprintf(w, "],\n  \"listedOutputs\": [%q],\n  \"remotable\": true,\n  \"cacheable\": true,\n  \"timeoutMillis\": \"0\",\n  \"mnemonic\": \"Cc\",\n  \"actualOutputs\": [],\n  \"runner\": \"linux-sandbox\",\n  \"cacheHit\": false,\n  \"status\": \"\",\n  \"exitCode\": 0,\n  \"remoteCacheable\": true,\n  \"targetLabel\": \"//:%s\",\n  \"metrics\": {\n    \"totalTime\": \"0.1s\"\n  }\n}", bin(text(i, "o")), text(i, "o"))
	}
}

// Two JSON logs of 50,000 actions with 60 inputs each, 700 MB a log.
func BenchmarkLargeJSON(b *testing.B) {
	dir := b.TempDir()
	for name, odd := range map[string]int{"a": -1, "b": 730} {
		f, err := os.Create(dir + "/" + name)
		if err != nil {
			b.Fatal(err)
		}
		w := bufio.NewWriter(f)
		largeJSON(w, 50_000, 60, odd)
		if err := w.Flush(); err != nil {
			b.Fatal(err)
		}
		if err := f.Close(); err != nil {
			b.Fatal(err)
		}
	}
	for b.Loop() {
		peak := watch()
		begin := time.Now()
		c := compareFiles(b, dir+"/a", dir+"/b")
		b.ReportMetric(time.Since(begin).Seconds(), "s/pair")
		b.ReportMetric(float64(peak())/(1<<20), "MiB-heap-peak")
		if len(c.Causes) != 1 {
			b.Fatal(c.Text())
		}
	}
}

package rpi_test

import (
	"fmt"
	"strings"
	"testing"

	"selfsame.dev/selfsame/rpi"
)

// document is a synthetic repair of about 2 kB: three rounds, four legs.
func document(n int) string {
	leg := func(status, ids, digest, evidence, family string) string {
		var findings []string
		for _, id := range strings.Fields(ids) {
			findings = append(findings, fmt.Sprintf(`{"id":%q,"summary":"finding %s: the gate still rejects this tree","class":"c-%s"}`, id, id, id[:2]))
		}
		return fmt.Sprintf(`{"status":%q,"findings":[%s],"subject_digest":%q,"evidence_refs":[%s],"validator_family":%q,"checked":["acceptance","unit tests"],"not_checked":[]}`,
			status, strings.Join(findings, ","), strings.Repeat(digest, 64), evidence, family)
	}
	bound := func(ref, digest, id string) string {
		return fmt.Sprintf(`{"ref":%q,"subject_digest":%q,"resolves":[%q]}`, ref, strings.Repeat(digest, 64), id)
	}
	first := fmt.Sprintf("f%d-a", n)
	return fmt.Sprintf(`{"validations":[%s,%s,[%s,%s]],"options":{"repair_rounds":3,"intent_ref":"x","acceptance_digest":%q}}`,
		leg("FAIL", first+" f2-b f3-c", "a", `"acceptance-receipt"`, "fresh"),
		leg("FAIL", "f2-b f3-c", "b", bound("fixed-1", "b", first), "fresh"),
		leg("FAIL", "f3-c", "c", bound("fixed-2", "c", "f2-b"), "fresh"),
		leg("PASS", "", "c", `"x"`, "other"), strings.Repeat("e", 64))
}

func BenchmarkLaw(b *testing.B) {
	value, err := rpi.Decode([]byte(document(1)))
	if err != nil {
		b.Fatal(err)
	}
	doc, err := rpi.ReadDocument(value)
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := doc.Run(); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/3, "ns/round")
}

func BenchmarkDecode(b *testing.B) {
	raw := []byte(document(1))
	b.SetBytes(int64(len(raw)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := rpi.Decode(raw); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkEncode(b *testing.B) {
	value, _ := rpi.Decode([]byte(document(1)))
	doc, _ := rpi.ReadDocument(value)
	outcome, err := doc.Run()
	if err != nil {
		b.Fatal(err)
	}
	var out []byte
	b.ReportAllocs()
	for b.Loop() {
		out = outcome.Value().AppendJSON(out[:0])
	}
}

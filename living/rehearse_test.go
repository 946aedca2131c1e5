package living

import (
	"strings"
	"testing"
)

func TestRehearse(t *testing.T) {
	base := testBaseline(t)
	for _, n := range []int{0, 1, 4, 9} {
		var reports [][]byte
		for turn := 1; turn <= n; turn++ {
			reports = append(reports, newDraft(t, int64(turn)).claims("notes", `"`+strings.Repeat("n", turn)+`"`).claims("language", `"go"`).bytes())
		}
		reports = append(reports, []byte("noise"))
		r, err := Rehearse(base, reports)
		if err != nil {
			t.Fatal(err)
		}
		if last := r.Steps[n]; last.Admitted != 0 || last.Refused[0].Reason != Malformed {
			t.Errorf("%+v", last)
		}
		orders, err := r.Converges(base)
		if want := map[int]int{0: 1, 1: 2, 4: 120, 9: 100}[n]; err != nil || orders != want {
			t.Errorf("%d reports: %d orders, %v", n, orders, err)
		}
		if n < 4 {
			continue
		}
		// Control: what the deltas do not lead to is found.
		wrong := *r
		wrong.Document = NewDocument(base)
		if _, err := wrong.Converges(base); err == nil {
			t.Error("control: other content is accepted")
		}
	}
}

package ledger

import (
	"fmt"
	"slices"
	"strings"

	"selfsame.dev/selfsame/internal/canon"
)

// AgreementFormat is the format of an [Agreement].
const AgreementFormat = "ledger-agreement.v1"

// Agreement is the format ledger-agreement.v1: of every label, in order of appearance, which machines agree. It
// holds when there are labels and each of them holds.
type Agreement struct {
	Format   string       `json:"format"`
	Records  int          `json:"records"`
	Head     canon.Digest `json:"head_sha256"`
	Required int          `json:"machines_required"`
	Holds    bool         `json:"holds"`
	Labels   []Label      `json:"labels"`
}

// Label is what the machines say under one label, each by its latest record. They agree when all name one
// identity and one manifest. Since is, where they agree, the record with which
// the last of them came to it; where they do not, the first that differed, from which on they never all agreed
// again. It is neutral: it does not say who is right.
type Label struct {
	Label    string    `json:"label"`
	Holds    bool      `json:"holds"` // they agree, and are at least as many as required
	Agree    bool      `json:"agree"`
	Machines int       `json:"machines"`
	Since    Event     `json:"since"`
	Findings []Finding `json:"findings"` // by the first record of each
}

// Finding is one identity and manifest, and the machines whose latest record names them.
type Finding struct {
	Identity canon.Digest `json:"identity_sha256"`
	Manifest canon.Digest `json:"manifest_sha256"`
	Hosts    []Host       `json:"hosts"`
}

// Host is a machine: since which record it says so without a break, and its latest record.
type Host struct {
	Host   string `json:"host"`
	Since  Event  `json:"since"`
	Latest Event  `json:"latest"`
}

// Event is a record by its place, machine and time.
type Event struct {
	Sequence int64  `json:"sequence"`
	Host     string `json:"host"`
	At       string `json:"at"`
}

type found struct{ identity, manifest canon.Digest }

type hostState struct {
	found         found
	since, latest Event
}

// Agreement says who agrees. Required is how many machines a label must have at the least.
func (l *Ledger) Agreement(required int) Agreement {
	out := Agreement{Format: AgreementFormat, Records: len(l.Records), Head: l.Head(), Required: required, Labels: []Label{}}
	var order []string
	byLabel := map[string][]Record{}
	for _, r := range l.Records {
		if byLabel[r.Label] == nil {
			order = append(order, r.Label)
		}
		byLabel[r.Label] = append(byLabel[r.Label], r)
	}
	out.Holds = len(order) > 0
	for _, name := range order {
		label := agree(name, byLabel[name])
		label.Holds = label.Agree && label.Machines >= required
		out.Holds = out.Holds && label.Holds
		out.Labels = append(out.Labels, label)
	}
	return out
}

// agree plays the records of one label.
func agree(name string, records []Record) Label {
	out := Label{Label: name}
	hosts := map[string]hostState{}
	present := map[found]int{} // how many machines name each
	var order []found
	for _, r := range records {
		f, event := found{r.Identity, r.Manifest}, Event{r.Sequence, r.Host, r.At}
		if !slices.Contains(order, f) {
			order = append(order, f)
		}
		state, known := hosts[r.Host]
		moved := !known || state.found != f
		if moved {
			if present[state.found]--; present[state.found] <= 0 {
				delete(present, state.found)
			}
			present[f]++
			state = hostState{found: f, since: event}
		}
		state.latest = event
		hosts[r.Host] = state
		// In agreement the last one that came to it counts, in disagreement the first that broke it.
		if now := len(present) == 1; now && moved || !now && out.Agree {
			out.Agree, out.Since = now, event
		}
	}
	out.Machines = len(hosts)
	for _, f := range order {
		finding := Finding{Identity: f.identity, Manifest: f.manifest}
		for host, state := range hosts {
			if state.found == f {
				finding.Hosts = append(finding.Hosts, Host{host, state.since, state.latest})
			}
		}
		slices.SortFunc(finding.Hosts, func(a, b Host) int { return int(a.Since.Sequence - b.Since.Sequence) })
		if len(finding.Hosts) > 0 {
			out.Findings = append(out.Findings, finding)
		}
	}
	return out
}

// Text is the agreement for the eye.
func (a Agreement) Text() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d records, head %s\n", a.Records, a.Head)
	for _, l := range a.Labels {
		fmt.Fprintf(&b, "\n%s: ", l.Label)
		since := fmt.Sprintf("%s (record %d, %s)", l.Since.At, l.Since.Sequence, l.Since.Host)
		switch {
		case !l.Agree:
			fmt.Fprintf(&b, "%d machines do not agree; the first that did not: %s, at %s in record %d\n", l.Machines, l.Since.Host, l.Since.At, l.Since.Sequence)
		case l.Machines == 1:
			fmt.Fprintf(&b, "one machine alone, since %s\n", since)
		default:
			fmt.Fprintf(&b, "%d machines agree since %s\n", l.Machines, since)
		}
		if l.Agree && !l.Holds {
			fmt.Fprintf(&b, "  at least %d machines are required\n", a.Required)
		}
		for _, f := range l.Findings {
			fmt.Fprintf(&b, "  identity %s\n  manifest %s\n", f.Identity, f.Manifest)
			for _, h := range f.Hosts {
				fmt.Fprintf(&b, "    %s since %s (record %d), last seen %s\n", h.Host, h.Since.At, h.Since.Sequence, h.Latest.At)
			}
		}
	}
	return b.String()
}

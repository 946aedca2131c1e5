// Package wire is identity-runtime.v1: how the canary asks a runtime, on stdin, and
// how the runtime answers, on stdout. A runtime is any program; it finds the compiled
// profile in $HERMES_HOME, reads one request up to the end of stdin, writes one
// answer and exits with status 0.
package wire

import (
	"cmp"
	"fmt"
	"slices"

	"selfsame.dev/selfsame/internal/canon"
)

// Formats.
const (
	Format      = "identity-runtime.v1"
	QueryFormat = "identity-query.v1"
	ViewFormat  = "identity-view.v1"
)

// Label is the authority of all that is known here: none (law I7).
const Label = "synthetic_noncanonical_fixture"

// What a query can ask for, and the kind of the statements that answer it.
const (
	AskConstitution = "constitution"  // answered by the rules
	AskRows         = "identity_rows" // answered by the database rows
	KindRule        = "rule"
	KindRow         = "row"
)

// Query is one identity query (identity-query.v1).
type Query struct {
	Format   string   `json:"format"`
	QueryID  string   `json:"query_id"`
	Agent    string   `json:"agent"`
	Question string   `json:"question"`
	Asks     []string `json:"asks"`
}

// Request is what a runtime reads.
type Request struct {
	Format string `json:"format"`
	Query  Query  `json:"query"`
}

// Answer is what a runtime writes. There is no text outside the statements, so none is
// without provenance.
type Answer struct {
	Format      string       `json:"format"`
	Agent       string       `json:"agent"`
	Label       string       `json:"label"`
	QueryID     string       `json:"query_id"`
	QuerySHA256 canon.Digest `json:"query_sha256"` // of the canonical query
	Statements  []Statement  `json:"statements"`
	Inputs      []File       `json:"inputs"` // the profile files read, sorted by path
}

// Statement is one thing that the agent says, and why it may.
type Statement struct {
	Text string `json:"text"`
	Provenance
}

// Provenance names one rule or row of identity.json.
type Provenance struct {
	Kind     string       `json:"kind"`   // rule or row
	Ref      string       `json:"ref"`    // the rule's id, or table/row
	Rank     int          `json:"rank"`   // as in identity.json
	SHA256   canon.Digest `json:"sha256"` // of the rule or row, as in identity.json
	Evidence []File       `json:"evidence"`
}

// File is a file by slash path and digest.
type File struct {
	Path   string       `json:"path"`
	SHA256 canon.Digest `json:"sha256"`
}

// View is identity.json (identity-view.v1), the generated view that a profile carries.
type View struct {
	Format       string       `json:"format"`
	Agent        string       `json:"agent"`
	Authority    string       `json:"authority"`
	Label        string       `json:"label"`
	InputsSHA256 canon.Digest `json:"inputs_sha256"`
	Constitution struct {
		Path           string       `json:"path"`
		SHA256         canon.Digest `json:"sha256"`
		SemanticSHA256 canon.Digest `json:"semantic_sha256"`
	} `json:"constitution"`
	Database struct {
		Name             string       `json:"name"`
		User             string       `json:"user"`
		SystemIdentifier string       `json:"system_identifier"`
		SnapshotSHA256   canon.Digest `json:"snapshot_sha256"`
	} `json:"database"`
	Rules []Rule `json:"rules"`
	Rows  []Row  `json:"rows"`
}

// Rule is one constitutional rule.
type Rule struct {
	ID     string       `json:"id"`
	Rank   int          `json:"rank"`
	Text   string       `json:"text"`
	SHA256 canon.Digest `json:"sha256"`
}

// Row is one database row that says something of the identity.
type Row struct {
	Table      string       `json:"table"`
	Row        string       `json:"row"`
	Kind       string       `json:"kind"`
	Rank       int          `json:"rank"`
	Statement  string       `json:"statement"`
	SourceMode string       `json:"source_mode"`
	SHA256     canon.Digest `json:"sha256"`
	Evidence   []File       `json:"evidence"`
}

// ParseView reads identity.json. A view that claims more than to be a labelled
// generated view is refused.
func ParseView(data []byte) (*View, error) {
	var v View
	if err := canon.Decode(data, &v); err != nil {
		return nil, err
	}
	refuse := func(key, problem string) error {
		return &canon.InputError{Key: key, Problem: problem, Fix: "compile the profile anew"}
	}
	switch {
	case v.Format != ViewFormat:
		return nil, refuse("/format", fmt.Sprintf("%q is not %q", v.Format, ViewFormat))
	case v.Agent == "":
		return nil, refuse("/agent", "the agent has no name")
	case v.Authority != "generated_view":
		return nil, refuse("/authority", fmt.Sprintf("%q: a compiled view is never an authority", v.Authority))
	case v.Label != Label:
		return nil, refuse("/label", fmt.Sprintf("%q: a local profile carries %q", v.Label, Label))
	}
	for i, row := range v.Rows {
		if row.SourceMode != Label {
			return nil, refuse(fmt.Sprintf("/rows/%d/source_mode", i), fmt.Sprintf("%q: no row gains authority here", row.SourceMode))
		}
	}
	return &v, nil
}

// ParseQuery reads an identity query.
func ParseQuery(data []byte) (*Query, error) {
	var q Query
	if err := canon.Decode(data, &q); err != nil {
		return nil, err
	}
	return &q, q.check("")
}

func (q *Query) check(at string) error {
	refuse := func(key, problem, fix string) error {
		return &canon.InputError{Key: at + key, Problem: problem, Fix: fix}
	}
	switch {
	case q.Format != QueryFormat:
		return refuse("/format", fmt.Sprintf("%q is not %q", q.Format, QueryFormat), "write an "+QueryFormat+" document")
	case q.QueryID == "" || q.Agent == "" || q.Question == "":
		return refuse("", "query_id, agent and question must not be empty", "fill them in")
	case len(q.Asks) == 0:
		return refuse("/asks", "nothing is asked", "ask for "+AskConstitution+" or "+AskRows)
	}
	for i, ask := range q.Asks {
		if (ask != AskConstitution && ask != AskRows) || slices.Contains(q.Asks[:i], ask) {
			return refuse(fmt.Sprintf("/asks/%d", i), fmt.Sprintf("%q is unknown or asked twice", ask), "ask for "+AskConstitution+" or "+AskRows+", once")
		}
	}
	return nil
}

// FixedQuery is what an agent is asked unless the caller has a query of its own: all of it.
func FixedQuery(agent string) Query {
	return Query{QueryFormat, agent + "-fixed-query-v1", agent, "Who are you, what binds you, and on what evidence?", []string{AskConstitution, AskRows}}
}

// SHA256 is the digest of the canonical query.
func (q *Query) SHA256() (canon.Digest, error) { return canon.DigestOf(q) }

// Encode returns what the runtime reads for q.
func (q *Query) Encode() ([]byte, error) {
	return canon.Marshal(Request{Format: Format, Query: *q})
}

// ParseRequest reads what a runtime is given.
func ParseRequest(data []byte) (*Query, error) {
	var r Request
	if err := canon.Decode(data, &r); err != nil {
		return nil, err
	}
	if r.Format != Format {
		return nil, &canon.InputError{Key: "/format", Problem: fmt.Sprintf("%q is not %q", r.Format, Format), Fix: "speak " + Format}
	}
	return &r.Query, r.Query.check("/query")
}

// Sources returns what may be said to q from v, in the order in which it is to be
// said: as asked, then by rank, then by name.
func (v *View) Sources(q *Query) []Statement {
	var all []Statement
	for _, ask := range q.Asks {
		var some []Statement
		switch ask {
		case AskConstitution:
			for _, r := range v.Rules {
				some = append(some, Statement{r.Text, Provenance{KindRule, r.ID, r.Rank, r.SHA256,
					[]File{{v.Constitution.Path, v.Constitution.SHA256}}}})
			}
		case AskRows:
			for _, r := range v.Rows {
				some = append(some, Statement{r.Statement, Provenance{KindRow, r.Table + "/" + r.Row, r.Rank, r.SHA256, r.Evidence}})
			}
		}
		slices.SortStableFunc(some, func(a, b Statement) int {
			return cmp.Or(cmp.Compare(a.Rank, b.Rank), cmp.Compare(a.Ref, b.Ref))
		})
		all = append(all, some...)
	}
	return all
}

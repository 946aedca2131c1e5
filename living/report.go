package living

import (
	"encoding/base64"
	"fmt"

	"github.com/go-json-experiment/json/jsontext"
	"selfsame.dev/selfsame/internal/canon"
)

// ReportFormat names the structured report of one turn.
const ReportFormat = "living-turn.v1"

// report is what a turn hands back: the evidence it produced, byte for byte, and the
// facts it claims from that evidence. Claims are decoded one by one, so that a
// malformed one spoils no other.
type report struct {
	Claims   []jsontext.Value `json:"claims"`
	Evidence []produced       `json:"evidence"`
	Format   string           `json:"format"`
	Owner    string           `json:"owner"`
	Turn     int64            `json:"turn"`
}

// produced is one piece of evidence: a name within the report, where to look again, and
// the bytes, as text or as base64 (RFC 4648, section 4).
type produced struct {
	Base64 *string `json:"base64"`
	Name   string  `json:"name"`
	Source string  `json:"source"`
	Text   *string `json:"text"`

	data   []byte
	digest canon.Digest // of data
	echo   *echo        // looked at once, however often it is cited
}

// claim is one fact as a turn states it.
type claim struct {
	Axis     string         `json:"axis"`
	Evidence []citation     `json:"evidence"`
	Value    jsontext.Value `json:"value"`
}

// citation names evidence, its digest, and the turn that produced it.
type citation struct {
	Name   string       `json:"name"`
	SHA256 canon.Digest `json:"sha256"`
	Turn   int64        `json:"turn"`
}

func decodeReport(raw []byte) (*report, error) {
	r := &report{}
	if err := canon.Decode(raw, r); err != nil {
		return nil, err
	}
	if err := checkFormat(r.Format, ReportFormat); err != nil {
		return nil, err
	}
	if err := CheckOwner(r.Owner); err != nil {
		return nil, err
	}
	if r.Turn < 1 || r.Turn > maxCount {
		return nil, refuse("/turn", fmt.Sprintf("%d is no turn", r.Turn), "count turns from 1")
	}
	names := map[string]bool{}
	for i := range r.Evidence {
		e := &r.Evidence[i]
		key := fmt.Sprintf("/evidence/%d", i)
		if e.Name == "" || names[e.Name] {
			return nil, refuse(key+"/name", fmt.Sprintf("%q is empty or names two pieces of evidence", e.Name), "give each its own name")
		}
		names[e.Name] = true
		if err := checkSource(e.Source); err != nil {
			return nil, under(key+"/source", err)
		}
		switch {
		case (e.Text == nil) == (e.Base64 == nil):
			return nil, refuse(key, "evidence is given as text or as base64", "give exactly one of the two")
		case e.Text != nil:
			e.data = []byte(*e.Text)
		default:
			data, err := base64.StdEncoding.Strict().DecodeString(*e.Base64)
			if err != nil {
				return nil, refuse(key+"/base64", err.Error(), "encode the bytes with RFC 4648, section 4")
			}
			e.data = data
		}
		e.digest = canon.Sum(e.data)
	}
	return r, nil
}

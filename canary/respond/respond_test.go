package respond

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"selfsame.dev/selfsame/canary/wire"
	"selfsame.dev/selfsame/internal/canon"
)

const label = `"synthetic_noncanonical_fixture"`

var (
	zero = strings.Repeat("0", 63) + "1"
	view = `{"format":"identity-view.v1","agent":"ada","authority":"generated_view","label":` + label + `,"inputs_sha256":"` + zero + `",
		"constitution":{"path":"c.json","sha256":"` + zero + `","semantic_sha256":"` + zero + `"},
		"database":{"name":"d","user":"u","system_identifier":"1","snapshot_sha256":"` + zero + `"},
		"rules":[{"id":"b","rank":2,"text":"Second rule.","sha256":"` + zero + `"},{"id":"a","rank":1,"text":"First rule.","sha256":"` + zero + `"}],
		"rows":[{"table":"t","row":"r","kind":"name","rank":1,"statement":"A row.","source_mode":` + label + `,"sha256":"` + zero + `","evidence":[{"path":"e","sha256":"` + zero + `"}]}]}`
)

func profile(change map[string]string) fstest.MapFS {
	files := map[string]string{"SOUL.md": "# ada\n", "config.yaml": "{}\n", "identity.json": view}
	for name, data := range change {
		files[name] = data
	}
	fsys := fstest.MapFS{}
	for name, data := range files {
		if data != "absent" {
			fsys[name] = &fstest.MapFile{Data: []byte(data)}
		}
	}
	return fsys
}

func request(t *testing.T, asks ...string) []byte {
	t.Helper()
	q := wire.FixedQuery("ada")
	q.Asks = asks
	data, err := q.Encode()
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// Statements come as asked, by rank; each with what it rests on, and nothing else is said.
func TestAnswer(t *testing.T) {
	for want, asks := range map[string][]string{
		"First rule.|Second rule.|A row.": {"constitution", "identity_rows"},
		"A row.|First rule.|Second rule.": {"identity_rows", "constitution"},
		"A row.":                          {"identity_rows"},
		"First rule.|Second rule.":        {"constitution"},
	} {
		data, err := Answer(profile(nil), request(t, asks...))
		if err != nil {
			t.Fatal(err)
		}
		var a wire.Answer
		if err := canon.Decode(data, &a); err != nil {
			t.Fatal(err)
		}
		var said []string
		for _, s := range a.Statements {
			said = append(said, s.Text)
			if s.SHA256.IsZero() || s.Rank == 0 || len(s.Evidence) == 0 || s.Ref == "" {
				t.Errorf("%s rests on nothing: %+v", s.Text, s)
			}
		}
		if got := strings.Join(said, "|"); got != want {
			t.Errorf("asked for %v: %s, want %s", asks, got, want)
		}
		if len(a.Inputs) != 3 || a.Inputs[2].SHA256 != canon.Sum([]byte(view)) || a.Label != wire.Label {
			t.Errorf("inputs %+v, label %s", a.Inputs, a.Label)
		}
	}
}

func TestRefuses(t *testing.T) {
	good := string(request(t, "constitution"))
	edit := func(of, old, new string) string {
		if !strings.Contains(of, old) {
			t.Fatalf("no %s", old)
		}
		return strings.Replace(of, old, new, 1)
	}
	for name, tc := range map[string]struct {
		profile map[string]string
		request string
		names   string // in the error
	}{
		"no view":           {profile: map[string]string{"identity.json": "absent"}, names: "identity.json: missing"},
		"empty view":        {profile: map[string]string{"identity.json": ""}, names: "identity.json: empty"},
		"half a view":       {profile: map[string]string{"identity.json": view[:200]}, names: "identity.json"},
		"two views":         {profile: map[string]string{"identity.json": view + view}, names: "data follows"},
		"unknown member":    {profile: map[string]string{"identity.json": edit(view, `"agent"`, `"extra":1,"agent"`)}, names: "/extra"},
		"member twice":      {profile: map[string]string{"identity.json": edit(view, `"agent"`, `"agent":"eve","agent"`)}, names: "twice"},
		"another format":    {profile: map[string]string{"identity.json": edit(view, "identity-view.v1", "identity-view.v2")}, names: "/format"},
		"as an authority":   {profile: map[string]string{"identity.json": edit(view, "generated_view", "static_authority")}, names: "/authority"},
		"canonical":         {profile: map[string]string{"identity.json": edit(view, `"label":`+label, `"label":"canonical"`)}, names: "/label"},
		"canonical row":     {profile: map[string]string{"identity.json": edit(view, `"source_mode":`+label, `"source_mode":"canonical"`)}, names: "/rows/0/source_mode"},
		"no soul":           {profile: map[string]string{"SOUL.md": "absent"}, names: "SOUL.md: missing"},
		"no configuration":  {profile: map[string]string{"config.yaml": "absent"}, names: "config.yaml: missing"},
		"another agent":     {request: edit(good, `"agent":"ada"`, `"agent":"bob"`), names: "/query/agent"},
		"unknown ask":       {request: edit(good, `"constitution"`, `"memory"`), names: "/query/asks/0"},
		"same ask twice":    {request: edit(good, `"constitution"`, `"constitution","constitution"`), names: "/query/asks/1"},
		"nothing asked":     {request: edit(good, `"constitution"`, ``), names: "/query/asks"},
		"another interface": {request: edit(good, wire.Format, "identity-runtime.v2"), names: "/format"},
		"no request":        {request: " ", names: "request"},
		"two requests":      {request: good + good, names: "data follows"},
	} {
		t.Run(name, func(t *testing.T) {
			asked := tc.request
			if asked == "" {
				asked = good
			}
			answer, err := Answer(profile(tc.profile), []byte(asked))
			var input *canon.InputError
			if !errors.As(err, &input) || answer != nil || !strings.Contains(err.Error(), tc.names) {
				t.Errorf("%s, %v; want an error that names %q", answer, err, tc.names)
			}
		})
	}
	if _, err := Answer(profile(nil), []byte(good)); err != nil {
		t.Errorf("control: %v", err)
	}
}

func TestMainStatus(t *testing.T) {
	home := t.TempDir()
	for name, file := range profile(nil) {
		if err := os.WriteFile(filepath.Join(home, name), file.Data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	long := bytes.Repeat([]byte(" "), maxRequest+1)
	for _, tc := range []struct {
		name   string
		in     []byte
		home   string
		status int
	}{
		{"good", request(t, "constitution"), home, 0},
		{"no home", request(t, "constitution"), "", 3},
		{"empty home", request(t, "constitution"), t.TempDir(), 3},
		{"too long", long, home, 3},
		{"garbage", []byte("<"), home, 3},
	} {
		var out, errs bytes.Buffer
		if got := Main(bytes.NewReader(tc.in), &out, &errs, tc.home); got != tc.status {
			t.Errorf("%s: status %d, want %d (%s)", tc.name, got, tc.status, errs.String())
		}
		if (tc.status == 0) != (out.Len() > 0) || (tc.status == 0) != (errs.Len() == 0) {
			t.Errorf("%s: stdout %q, stderr %q", tc.name, out.String(), errs.String())
		}
	}
}

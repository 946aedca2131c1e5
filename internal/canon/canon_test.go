package canon

import (
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/gowebpki/jcs"
	"pgregory.net/rapid"
)

// The vectors of RFC 8785: section 3.2.2 (serialization) and 3.2.3 (order of names).
func TestCanonicalizeRFC8785(t *testing.T) {
	for _, tc := range []struct{ name, in, want string }{
		{"section 3.2.2", `{"numbers":[333333333.33333329,1E30,4.50,2e-3,0.000000000000000000000000001],"string":"\u20ac$\u000F\u000aA'\u0042\u0022\u005c\\\"\/","literals":[null,true,false]}`,
			`{"literals":[null,true,false],"numbers":[333333333.3333333,1e+30,4.5,0.002,1e-27],"string":"€$\u000f\nA'B\"\\\\\"/"}`},
		{"section 3.2.3", `{"\u20ac":"Euro Sign","\r":"Carriage Return","\ufb33":"Hebrew Letter Dalet With Dagesh","1":"One","\ud83d\ude00":"Emoji: Grinning Face","\u0080":"Control","\u00f6":"Latin Small Letter O With Diaeresis"}`,
			"{\"\\r\":\"Carriage Return\",\"1\":\"One\",\"\u0080\":\"Control\",\"ö\":\"Latin Small Letter O With Diaeresis\",\"€\":\"Euro Sign\",\"😀\":\"Emoji: Grinning Face\",\"\ufb33\":\"Hebrew Letter Dalet With Dagesh\"}"},
		{"scalar", ` "a" `, `"a"`},
		{"minus zero", `-0`, `0`},
		{"largest integer", `9007199254740991`, `9007199254740991`},
		{"large exact integer", `100000000000000000000`, `100000000000000000000`},
		{"empty", `{"a":{},"b":[]}`, `{"a":{},"b":[]}`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, err := Canonicalize([]byte(tc.in))
			if err != nil || string(got) != tc.want {
				t.Fatalf("Canonicalize(%s) = %s, %v; want %s", tc.in, got, err, tc.want)
			}
		})
	}
}

func TestCheckRefuses(t *testing.T) {
	for _, tc := range []struct{ name, in, key, problem string }{
		{"empty", ``, "", "ends too early"},
		{"truncated", `{"a":`, "/a", "ends too early"},
		{"trailing data", `{} {}`, "", "data follows"},
		{"trailing garbage", `{}x`, "", "invalid character"},
		{"duplicate name", `{"a":{"b":1,"b":1}}`, "/a/b", "twice"},
		{"duplicate name by escape", `{"a":1,"\u0061":1}`, "/a", "twice"},
		{"NaN", `{"a":NaN}`, "/a", "invalid character"},
		{"infinite", `{"a":1e400}`, "/a", "exactly"},
		{"integer beyond a double", `{"a":[0,9007199254740993]}`, "/a/1", "exactly"},
		{"lone surrogate", `{"a":"\ud800"}`, "", "surrogate"},
		{"invalid UTF-8", "{\"a\":\"\xff\"}", "/a", "UTF-8"},
		{"byte order mark", "\ufeff{}", "", "invalid character"},
		{"comment", `{/**/}`, "", "invalid character"},
		{"too deep", strings.Repeat("[", MaxDepth+1) + strings.Repeat("]", MaxDepth+1), "", "deeper"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			err := Check([]byte(tc.in))
			var input *InputError
			if !errors.As(err, &input) {
				t.Fatalf("Check(%s) = %v, want an InputError", tc.in, err)
			}
			if tc.key != "" && input.Key != tc.key {
				t.Errorf("key %q, want %q", input.Key, tc.key)
			}
			if !strings.Contains(input.Problem, tc.problem) {
				t.Errorf("problem %q, want it to name %q", input.Problem, tc.problem)
			}
		})
	}
	if err := Check([]byte(`{"a":[1,2.5,"é",null]}`)); err != nil {
		t.Errorf("control: a plain document is refused: %v", err)
	}
}

func TestDecodeIsStrict(t *testing.T) {
	type doc struct {
		Name  string   `json:"name"`
		Count int      `json:"count"`
		List  []Digest `json:"list"`
	}
	var ok doc
	if err := Decode([]byte(`{"name":"leo","count":2,"list":[]}`), &ok); err != nil || ok.Name != "leo" || ok.Count != 2 {
		t.Fatalf("control: %+v, %v", ok, err)
	}
	for _, tc := range []struct{ name, in, key string }{
		{"unknown field", `{"name":"leo","extra":1}`, "/extra"},
		{"other case", `{"Name":"leo"}`, "/Name"},
		{"wrong type", `{"count":"2"}`, "/count"},
		{"fraction for integer", `{"count":2.5}`, "/count"},
		{"bad digest", `{"list":["ABC"]}`, "/list/0"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var d doc
			var input *InputError
			if err := Decode([]byte(tc.in), &d); !errors.As(err, &input) || input.Key != tc.key {
				t.Fatalf("Decode(%s) = %v, want an InputError at %s", tc.in, err, tc.key)
			}
			named := InFile("x.json", error(input))
			if !strings.HasPrefix(named.Error(), "x.json: "+tc.key+": ") {
				t.Errorf("%q does not name file and key", named)
			}
		})
	}
}

func TestMarshal(t *testing.T) {
	got, err := Marshal(struct {
		B []string       `json:"b"`
		A map[string]int `json:"a"`
		D Digest         `json:"d"`
	}{})
	want := `{"a":{},"b":[],"d":"` + strings.Repeat("0", 64) + `"}`
	if err != nil || string(got) != want {
		t.Errorf("got %s, %v; want %s", got, err, want)
	}
	for name, v := range map[string]any{"NaN": math.NaN(), "infinity": math.Inf(1), "big": int64(1) << 60, "UTF-8": "\xff"} {
		if got, err := Marshal(v); err == nil {
			t.Errorf("%s: marshalled to %s", name, got)
		}
	}
}

func TestParseDigest(t *testing.T) {
	good := Sum([]byte("abc")).String()
	if good != "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad" {
		t.Fatalf("SHA-256 of abc is %s", good)
	}
	if d, err := ParseDigest(good); err != nil || d.String() != good {
		t.Fatalf("control: %v, %v", d, err)
	}
	for _, bad := range []string{"", good[1:], good + "0", strings.ToUpper(good), "sha256:" + good, good[:63] + "g", good[:63] + " "} {
		if _, err := ParseDigest(bad); err == nil {
			t.Errorf("%q is accepted", bad)
		}
	}
}

// Two independent implementations of RFC 8785 must agree, and a canonical form is its own.
func TestCanonicalizeAgreesWithPeer(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		raw, err := json.Marshal(anyJSON(3).Draw(t, "value"))
		if err != nil {
			t.Skip("not JSON")
		}
		got, err := Canonicalize(raw)
		if err != nil {
			t.Fatalf("Canonicalize(%s): %v", raw, err)
		}
		// The peer takes only arrays and objects at the top.
		peer, err := jcs.Transform([]byte("[" + string(raw) + "]"))
		if err != nil {
			t.Fatal(err)
		}
		if "["+string(got)+"]" != string(peer) {
			t.Fatalf("%s: %s, peer %s", raw, got, peer)
		}
		again, err := Canonicalize(got)
		if err != nil || string(again) != string(got) {
			t.Fatalf("canonical form moves: %s, %s, %v", got, again, err)
		}
	})
}

func anyJSON(depth int) *rapid.Generator[any] {
	scalar := rapid.OneOf(
		rapid.String().AsAny(), rapid.Bool().AsAny(), rapid.Float64().AsAny(),
		rapid.Int64Range(-1<<53+1, 1<<53-1).AsAny(), rapid.Just[any](nil))
	if depth == 0 {
		return scalar
	}
	inner := rapid.Deferred(func() *rapid.Generator[any] { return anyJSON(depth - 1) })
	return rapid.OneOf(scalar, rapid.SliceOfN(inner, 0, 4).AsAny(), rapid.MapOfN(rapid.String(), inner, 0, 4).AsAny())
}

func FuzzCanonicalize(f *testing.F) {
	for _, seed := range []string{`{"b":1,"a":[true,null,"\u20ac"]}`, `1e21`, `{"a":"\ud83d\ude00"}`, `[-0,1.5e-7]`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		got, err := Canonicalize(raw)
		if err != nil {
			return
		}
		if again, err := Canonicalize(got); err != nil || string(again) != string(got) {
			t.Fatalf("%q -> %q -> %q, %v", raw, got, again, err)
		}
	})
}

// A key comes from whoever wrote the input: it writes no line of its own, and no page.
func TestKeysAreShownOnOneLine(t *testing.T) {
	for _, key := range []string{"/x\nselfsame: ok", "/\x1b[31m", "/\u202e", "/" + strings.Repeat("0/", 100000)} {
		text := (&InputError{File: "f", Key: key, Problem: "p"}).Error()
		if len(text) > 1000 || strings.ContainsAny(text, "\n\x1b\u202e") || !strings.HasSuffix(text, ": p") {
			t.Errorf("%.80q is shown as %.200q", key, text)
		}
	}
	if text := (&InputError{File: "f", Key: "/axes/ünïcode", Problem: "p"}).Error(); text != "f: /axes/ünïcode: p" {
		t.Errorf("control: %q", text)
	}
}

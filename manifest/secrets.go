package manifest

import (
	"bytes"
	"regexp"
	"strings"
	"unicode"
)

// Token shapes of widespread providers. Each begins with a literal, so that a scan of
// many files stays a search for literals; see [HoldsSecret].
var tokens = []struct {
	literal string
	rest    *regexp.Regexp // right after the literal
}{
	{"sk-", regexp.MustCompile(`^[A-Za-z0-9_-]{16,}`)},
	{"sk_live_", regexp.MustCompile(`^[A-Za-z0-9]{12,}`)},
	{"ghp_", regexp.MustCompile(`^[A-Za-z0-9]{20,}`)},
	{"gho_", regexp.MustCompile(`^[A-Za-z0-9]{20,}`)},
	{"ghs_", regexp.MustCompile(`^[A-Za-z0-9]{20,}`)},
	{"github_pat_", regexp.MustCompile(`^[A-Za-z0-9_]{20,}`)},
	{"glpat-", regexp.MustCompile(`^[A-Za-z0-9_-]{16,}`)},
	{"xoxb-", regexp.MustCompile(`^[A-Za-z0-9-]{10,}`)},
	{"xoxp-", regexp.MustCompile(`^[A-Za-z0-9-]{10,}`)},
	{"xoxa-", regexp.MustCompile(`^[A-Za-z0-9-]{10,}`)},
	{"xapp-", regexp.MustCompile(`^[A-Za-z0-9-]{10,}`)},
	{"AKIA", regexp.MustCompile(`^[A-Z0-9]{16}`)},
	{"ASIA", regexp.MustCompile(`^[A-Z0-9]{16}`)},
	{"AIza", regexp.MustCompile(`^[A-Za-z0-9_-]{30,}`)},
	{"hf_", regexp.MustCompile(`^[A-Za-z0-9]{20,}`)},
	{"gsk_", regexp.MustCompile(`^[A-Za-z0-9]{20,}`)},
	{"npm_", regexp.MustCompile(`^[A-Za-z0-9]{30,}`)},
	{"eyJ", regexp.MustCompile(`^[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]*`)},
	{"-----BEGIN ", regexp.MustCompile(`^([A-Z]+ )*PRIVATE KEY`)},
	{"earer ", regexp.MustCompile(`^[A-Za-z0-9._~+/=-]{12,}`)},
	{"EARER ", regexp.MustCompile(`^[A-Za-z0-9._~+/=-]{12,}`)},
	{"asic ", regexp.MustCompile(`^[A-Za-z0-9+/]{12,}={0,2}(["'\s]|$)`)},
	{":AA", regexp.MustCompile(`^[A-Za-z0-9_-]{33}`)}, // bot tokens of Telegram: digits:AA...
}

// HoldsSecret reports whether text holds a token of a known shape.
func HoldsSecret(text []byte) bool {
	for _, t := range tokens {
		for at := 0; ; {
			i := bytes.Index(text[at:], []byte(t.literal))
			if i < 0 {
				break
			}
			begin := at + i
			at = begin + len(t.literal)
			if t.rest.Match(text[at:]) && boundary(text, begin, t.literal) {
				return true
			}
		}
	}
	return false
}

// boundary reports whether a token may begin at text[at]: "task-..." holds no "sk-".
func boundary(text []byte, at int, literal string) bool {
	if at == 0 {
		return !strings.HasPrefix(literal, ":")
	}
	c := rune(text[at-1])
	switch literal {
	case ":AA":
		return unicode.IsDigit(c)
	case "earer ", "asic ":
		return c == 'B' || c == 'b'
	case "EARER ":
		return c == 'B'
	}
	return c > unicode.MaxASCII || !unicode.IsLetter(c) && !unicode.IsDigit(c) && c != '_'
}

const secretName = `(api[-_]?key|access[-_]?token|auth[-_]?token|token|secret|password|passwd|pwd|signature|sig|key|authorization|credential)`

var (
	userinfo  = regexp.MustCompile(`[A-Za-z][A-Za-z0-9+.-]*://[^/?#\s]*@`)
	parameter = regexp.MustCompile(`(?i)([?&#;]` + secretName + `=[^&\s]|^--?` + secretName + `$|--?` + secretName + `[= ]\S|\b[a-z_]*(key|token|secret|password)=\S)`)
	longRun   = regexp.MustCompile(`[A-Za-z0-9+_]{32,}`)
)

// looksSecret reports whether a value of the configuration looks like a credential: a token of a known
// shape, user information in a URL, a parameter named like a credential, or a run of 32 or more
// characters that mixes letters and digits.
func looksSecret(text string) bool {
	if len(text) < 14 && !strings.ContainsAny(text, "@=-") {
		return false // shorter than every shape below
	}
	if HoldsSecret([]byte(text)) || userinfo.MatchString(text) || parameter.MatchString(text) {
		return true
	}
	for _, run := range longRun.FindAllString(text, -1) {
		if strings.ContainsAny(run, "0123456789") && strings.IndexFunc(run, unicode.IsLetter) >= 0 {
			return true
		}
	}
	return false
}

var (
	secretNamed = regexp.MustCompile(`(?i)(^|[^a-z])` + secretName + `s?($|[^a-z])`)
	digestOrID  = regexp.MustCompile(`^[0-9a-f]+$`)
)

// SecretValue reports whether the value of a variable or an option of a build may be a credential: by its name ("" where
// it has none), or as values of the configuration are. Runs of letters and digits that are folders of a path, as
// output roots and content-addressed stores have them, or plain hexadecimal, as digests are, are none.
func SecretValue(name, value string) bool {
	if secretNamed.MatchString(name) || HoldsSecret([]byte(value)) || userinfo.MatchString(value) || parameter.MatchString(value) {
		return true
	}
	for _, at := range longRun.FindAllStringIndex(value, -1) {
		run := value[at[0]:at[1]]
		inPath := at[0] > 0 && value[at[0]-1] == '/'
		if !inPath && !digestOrID.MatchString(run) && strings.ContainsAny(run, "0123456789") && strings.IndexFunc(run, unicode.IsLetter) >= 0 {
			return true
		}
	}
	return false
}

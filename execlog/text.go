package execlog

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

// What the text shows: causes up to manyCauses, and of lists the first few.
const (
	manyCauses = 12
	few        = 3
	widest     = 300 // bytes of a value
)

// Text is the comparison for the eye: causes first, what follows from them counted. Only the JSON form holds everything.
func (c *Comparison) Text() string {
	var b strings.Builder
	for _, side := range []struct {
		name string
		side Side
	}{{"A", c.A}, {"B", c.B}} {
		fmt.Fprintf(&b, "%s  %s  %s (%d from a cache)  sha256 %s\n", side.name, clean(side.side.Name), plural(side.side.Actions, "action"), side.side.CacheHits, side.side.SHA256)
	}
	for _, note := range c.Notes {
		fmt.Fprintf(&b, "note: %s\n", clean(note))
	}
	if c.Equal {
		b.WriteString("equal\n")
		return b.String()
	}
	fmt.Fprintf(&b, "%s; actions: %d equal, %d where it begins, %d that follow, %d only in A, %d only in B\n",
		plural(len(c.Causes), "cause"), c.Counts.Equal, c.Counts.Causes, c.Counts.Consequences, c.Counts.OnlyInA, c.Counts.OnlyInB)
	shown := c.Causes
	if len(shown) > manyCauses {
		shown = shown[:manyCauses]
	}
	for i, cause := range shown {
		c.cause(&b, i+1, cause)
	}
	c.rest(&b, c.Causes[len(shown):])
	c.consequences(&b)
	return b.String()
}

func (c *Comparison) cause(b *strings.Builder, number int, cause Cause) {
	fmt.Fprintf(b, "\n%d. %s: %s", number, cause.Kind.words(), clean(cause.Subject))
	switch {
	case cause.Kind == OnlyInA || cause.Kind == OnlyInB:
	case cause.Change == missing:
		b.WriteString(" (only in A)")
	case cause.Change == surplus:
		b.WriteString(" (only in B)")
	}
	b.WriteString("\n")
	if cause.Kind != OnlyInA && cause.Kind != OnlyInB {
		left, right := around(cause.A, cause.B)
		fmt.Fprintf(b, "   A     %s\n   B     %s\n", value(left, cause.Withheld), value(right, cause.Withheld))
	}
	fmt.Fprintf(b, "   from  %s\n", clean(cause.Origin))
	for i, at := range cause.Actions {
		if i == few {
			fmt.Fprintf(b, "         and %d more\n", len(cause.Actions)-few)
			break
		}
		word := "     "
		if i == 0 {
			word = "in   "
		}
		fmt.Fprintf(b, "   %s %s\n", word, c.name(at))
	}
	if n := len(cause.Suspects); n > 0 {
		fmt.Fprintf(b, "   reads %s", clean(strings.Join(cause.Suspects[:min(n, few)], ", ")))
		if n > few {
			fmt.Fprintf(b, " and %d more source files", n-few)
		}
		b.WriteString("\n")
	}
	if cause.Consequences > 0 {
		fmt.Fprintf(b, "   then  %s\n", plural(cause.Consequences, "action")+" after it, because of it")
	}
	fmt.Fprintf(b, "   next  %s\n", clean(cause.Next))
}

// rest counts the causes that are not shown.
func (c *Comparison) rest(b *strings.Builder, causes []Cause) {
	if len(causes) == 0 {
		return
	}
	fmt.Fprintf(b, "\nand %d more causes (all of them: --json):\n", len(causes))
	var order []Kind
	count := map[Kind]int{}
	example := map[Kind]string{}
	for _, cause := range causes {
		if count[cause.Kind]++; count[cause.Kind] == 1 {
			order = append(order, cause.Kind)
			example[cause.Kind] = cause.Subject
		}
	}
	for _, kind := range order {
		fmt.Fprintf(b, "  %6d %s, such as %s\n", count[kind], kind.words(), clean(example[kind]))
	}
}

func (c *Comparison) consequences(b *strings.Builder) {
	if c.Counts.Consequences == 0 {
		return
	}
	fmt.Fprintf(b, "\nonly because of others differ %s:\n", plural(c.Counts.Consequences, "action"))
	left := few
	for _, a := range c.Actions {
		if a.Cause {
			continue
		}
		if left--; left < 0 {
			fmt.Fprintf(b, "  and %d more (all of them: --json)\n", c.Counts.Consequences-few)
			return
		}
		fmt.Fprintf(b, "  %s %s, because of ", a.Mnemonic, clean(a.Label))
		if len(a.Because) > 0 {
			b.WriteString(c.Actions[a.Because[0]].Mnemonic + " " + clean(c.Actions[a.Because[0]].Label))
		}
		if n := len(a.Because) - 1; n > 0 {
			fmt.Fprintf(b, " and %d more", n)
		}
		b.WriteString("\n")
	}
}

func (c *Comparison) name(at int) string {
	a := c.Actions[at]
	return clean(fmt.Sprintf("%s %s (%s)", a.Mnemonic, a.Label, a.Output))
}

func value(text string, secret bool) string {
	switch {
	case text == "":
		return "-"
	case secret:
		return "(withheld: it may be a credential)"
	}
	return clean(text)
}

// around cuts long values to what lies around the first byte that differs.
func around(a, b string) (string, string) {
	begin, _ := commonEnds(a, b)
	return window(a, begin), window(b, begin)
}

func window(text string, at int) string {
	if len(text) <= widest {
		return text
	}
	begin := max(0, min(at-widest/3, len(text)-widest))
	end := min(len(text), begin+widest)
	for begin > 0 && !utf8.RuneStart(text[begin]) {
		begin--
	}
	for end < len(text) && !utf8.RuneStart(text[end]) {
		end++
	}
	out := text[begin:end]
	if begin > 0 {
		out = "…" + out
	}
	if end < len(text) {
		out += "…"
	}
	return out
}

func (k Kind) words() string {
	switch k {
	case OnlyInA:
		return "only in A"
	case OnlyInB:
		return "only in B"
	}
	return strings.ReplaceAll(string(k), "_", " ")
}

func plural(n int, noun string) string {
	if n != 1 {
		noun += "s"
	}
	return strconv.Itoa(n) + " " + noun
}

// clean quotes text that could move the cursor or hide on a terminal.
func clean(text string) string {
	for _, r := range text {
		if !strconv.IsPrint(r) {
			return strconv.QuoteToASCII(text)
		}
	}
	return text
}

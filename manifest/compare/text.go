package compare

import (
	"cmp"
	"fmt"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"

	"selfsame.dev/selfsame/manifest"
)

// What the text shows of a group: all of it up to whole, else the first few and where the others are.
const (
	whole   = 12
	few     = 4
	folders = 8
)

// Text is the comparison for the eye: a table a surface. Large groups are counted by folder; only the JSON
// form holds everything.
func (c *Comparison) Text() string {
	var b strings.Builder
	for _, side := range []struct {
		name string
		side Side
	}{{"A", c.A}, {"B", c.B}} {
		fmt.Fprintf(&b, "%s  %s  %s  sha256 %s\n", side.name, clean(side.side.Name), side.side.Kind, side.side.SHA256)
		if side.side.Identity != nil {
			fmt.Fprintf(&b, "   identity_sha256 %s\n", side.side.Identity)
		}
		if n := len(side.side.Withheld); n > 0 {
			fmt.Fprintf(&b, "   %s for credentials, not read\n", plural(n, "file"))
		}
	}
	if c.Equal {
		b.WriteString("equal\n")
		return b.String()
	}
	var counts []string
	for _, class := range Classes {
		if n := c.Counts[class]; n > 0 {
			counts = append(counts, fmt.Sprintf("%s %d", class, n))
		}
	}
	verdict := "the identity is the same"
	if !c.SameIdentity {
		verdict = "not the same identity"
	}
	fmt.Fprintf(&b, "%s, %s: %s\n", verdict, plural(c.Total(), "difference"), strings.Join(counts, ", "))
	for _, g := range c.Groups {
		g.text(&b)
	}
	return b.String()
}

func (g Group) text(b *strings.Builder) {
	fmt.Fprintf(b, "\n%s  (%s, %s)", g.Surface, g.Class, g.Authority)
	if g.File != "" {
		fmt.Fprintf(b, "  in %s", clean(g.File))
	}
	kinds := map[string]int{}
	for _, d := range g.Differences {
		kinds[d.Change]++
	}
	var counts []string
	for _, kind := range slices.Sorted(maps.Keys(kinds)) {
		counts = append(counts, fmt.Sprintf("%d %s", kinds[kind], word(kind)))
	}
	fmt.Fprintf(b, "\n  %s\n  owner: %s\n  next:  %s\n", strings.Join(counts, ", "), g.Owner, g.Action)
	shown := g.Differences
	if len(shown) > whole {
		shown = shown[:few]
	}
	for _, d := range shown {
		fmt.Fprintf(b, "  %-9s %s\n", word(d.Change), clean(d.Path))
		for _, value := range []struct{ side, text string }{{"A", d.A}, {"B", d.B}} {
			if value.text != "" {
				fmt.Fprintf(b, "    %s %s\n", value.side, clean(value.text))
			}
		}
	}
	rest := g.Differences[len(shown):]
	if len(rest) == 0 {
		return
	}
	count := map[string]int{}
	for _, d := range rest {
		count[path.Dir(d.Path)]++
	}
	names := slices.SortedFunc(maps.Keys(count), func(a, b string) int {
		return cmp.Or(count[b]-count[a], cmp.Compare(a, b))
	})
	fmt.Fprintf(b, "  and %d more (all of them: --json):\n", len(rest))
	other := 0
	for i, name := range names {
		if i < folders {
			fmt.Fprintf(b, "    %6d in %s/\n", count[name], clean(name))
		} else {
			other += count[name]
		}
	}
	if n := len(names) - folders; n > 0 {
		fmt.Fprintf(b, "    %6d in %s\n", other, plural(n, "other folder"))
	}
}

// word is what a change means when neither side is the expected one.
func word(change string) string {
	switch change {
	case manifest.Missing:
		return "only in A"
	case manifest.Unexpected:
		return "only in B"
	}
	return change
}

func plural(n int, noun string) string {
	if n != 1 {
		noun += "s"
	}
	return fmt.Sprintf("%d %s", n, noun)
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

package living

import "fmt"

// Instant is a moment as text, in UTC to the second: 2006-01-02T15:04:05Z (RFC 3339).
// The core only writes it down.
type Instant string

// ParseInstant refuses any other shape and impossible dates.
func ParseInstant(s string) (Instant, error) {
	var y, mo, d, h, mi, sec int
	n, err := fmt.Sscanf(s, "%4d-%2d-%2dT%2d:%2d:%2dZ", &y, &mo, &d, &h, &mi, &sec)
	days := []int{31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31}
	if y%4 == 0 && y%100 != 0 || y%400 == 0 {
		days[1] = 29
	}
	if err != nil || n != 6 || y < 0 || mo < 1 || mo > 12 || d < 1 || d > days[mo-1] || h < 0 || h > 23 || mi < 0 || mi > 59 || sec < 0 || sec > 59 ||
		fmt.Sprintf("%04d-%02d-%02dT%02d:%02d:%02dZ", y, mo, d, h, mi, sec) != s {
		return "", refuse("", fmt.Sprintf("%q is no instant", excerpt(s)), "write it in UTC, as 2006-01-02T15:04:05Z")
	}
	return Instant(s), nil
}

// UnmarshalText implements encoding.TextUnmarshaler with the strictness of [ParseInstant].
func (i *Instant) UnmarshalText(text []byte) error {
	parsed, err := ParseInstant(string(text))
	if err != nil {
		return err
	}
	*i = parsed
	return nil
}

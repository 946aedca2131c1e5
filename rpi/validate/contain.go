package validate

import "fmt"

// Containment turns an argv into one that runs it cut off: no network, and no writes but to
// the disposable copy and to temporary places that end with it.
type Containment interface {
	// Name is written into receipts.
	Name() string
	// Wrap returns the command to start. The copy is the folder to run in; writable says whether
	// the check may change it.
	Wrap(copy string, writable bool, check Check) []string
}

// NoContainment says why nothing can be contained here; checks do not run then.
type NoContainment struct{ Reason string }

func (e *NoContainment) Error() string { return "no containment for checks: " + e.Reason }

// Hint says what would help.
func (e *NoContainment) Hint() string {
	return "run on Linux with bubblewrap (bwrap) and user namespaces allowed"
}

func noContainment(format string, args ...any) error {
	return &NoContainment{fmt.Sprintf(format, args...)}
}

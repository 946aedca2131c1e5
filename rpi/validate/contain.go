package validate

import (
	"context"
	"fmt"

	"selfsame.dev/selfsame/rpi/bounded"
)

// Containment runs a check cut off: no network, and no writes but to the disposable copy and
// to temporary places that end with it.
type Containment interface {
	// Name is written into receipts.
	Name() string
	// Run runs the check in the copy. It is an error where the check itself was never started:
	// that says nothing of the subject.
	Run(ctx context.Context, copy string, check Check) (bounded.Result, error)
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

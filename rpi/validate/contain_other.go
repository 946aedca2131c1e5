//go:build !linux

package validate

import (
	"context"
	"runtime"
)

// Bubblewrap exists on Linux alone.
func Bubblewrap(context.Context) (Containment, error) {
	return nil, noContainment("there is no bubblewrap on %s", runtime.GOOS)
}

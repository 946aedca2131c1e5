//go:build !linux

package child

import (
	"context"
	"errors"
)

var errLinux = errors.New("the canary needs Linux: subreapers and pidfds keep its promise that nothing is left")

// ErrGuardianLost says that the guardian ended before its time.
var ErrGuardianLost = errors.New("the guardian was killed")

// Supervisor cannot be had on this system; [Open] says so.
type Supervisor struct{}

func Open(string) (*Supervisor, error) { return nil, errLinux }
func (*Supervisor) Base() string       { return "" }
func (*Supervisor) Ready() error       { return errLinux }
func (*Supervisor) Guardian() Process  { return Process{} }
func (*Supervisor) Run(context.Context, Spec, func(Process)) (Result, error) {
	return Result{}, errLinux
}
func (*Supervisor) Remove(string) error    { return errLinux }
func (*Supervisor) Look() (Absence, error) { return Absence{}, errLinux }
func (*Supervisor) Close() error           { return nil }

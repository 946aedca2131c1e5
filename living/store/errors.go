package store

import (
	"errors"
	"fmt"

	"selfsame.dev/selfsame/living"
)

// CorruptError says that stored data does not hold together: a failed verification.
type CorruptError struct {
	Path    string
	Problem string
}

func (e *CorruptError) Error() string { return e.Path + ": " + e.Problem }

// Hint says what to do.
func (e *CorruptError) Hint() string {
	return "keep the files as they are, and go back to a copy that selfsame living fsck accepts"
}

// RollbackError says that a log is older than, or forked from, a head signed before.
type RollbackError struct {
	Path    string
	Problem string
}

func (e *RollbackError) Error() string { return e.Path + ": rollback: " + e.Problem }

// Hint says what to do.
func (e *RollbackError) Hint() string {
	return "bring back the newer log; a head that was signed cannot be taken back"
}

// ReadOnlyError says that a mirror takes no writes (law L7).
type ReadOnlyError struct{ Path string }

func (e *ReadOnlyError) Error() string { return e.Path + ": a mirror takes no writes" }

// Hint says what to do.
func (e *ReadOnlyError) Hint() string { return "write to the authoritative store, then mirror again" }

// StaleError says that a mirror is behind what is known.
type StaleError struct {
	Path    string
	Problem string
}

func (e *StaleError) Error() string { return e.Path + ": stale: " + e.Problem }

// Hint says what to do.
func (e *StaleError) Hint() string { return "mirror again with: selfsame living mirror" }

// UnpublishedError says that a commit is stored, but that its signed head could not be
// written beside the log: until the next commit a rollback to the head there goes unseen.
type UnpublishedError struct{ Err error }

func (e *UnpublishedError) Error() string {
	return fmt.Sprintf("stored, but the signed head was not published: %v", e.Err)
}

func (e *UnpublishedError) Unwrap() error { return e.Err }

// BusyError says that another process holds the store.
type BusyError struct{ Path string }

func (e *BusyError) Error() string { return e.Path + ": another process holds the store" }

// Hint says what to do.
func (e *BusyError) Hint() string { return "try again when it is done" }

// ProofError says that a head, a log or a proof does not verify.
type ProofError struct{ Problem string }

func (e *ProofError) Error() string { return e.Problem }

func unproven(format string, args ...any) error { return &ProofError{fmt.Sprintf(format, args...)} }

// Failed reports whether err is a failed verification, rather than bad input or a
// broken environment.
func Failed(err error) bool {
	var corrupt *CorruptError
	var rollback *RollbackError
	var stale *StaleError
	var history *living.HistoryError
	var proof *ProofError
	var drift *living.BaselineDriftError
	return errors.As(err, &corrupt) || errors.As(err, &rollback) || errors.As(err, &stale) || errors.As(err, &history) || errors.As(err, &proof) || errors.As(err, &drift)
}

// Package child starts one program at a time so that nothing of it is ever left
// (law I6): no process, one that called setsid or forked twice included, and no
// folder.
//
// A guardian, this same binary started anew, is the parent of every child and a
// subreaper (prctl(2), PR_SET_CHILD_SUBREAPER): whatever a child forks stays below
// it in the process tree. The guardian holds a socket to its own parent; when
// that closes, however the parent ended, it kills everything below and removes the
// folder. When the guardian itself is killed, the parent does the same.
//
// This is supervision, not a jail: a child of the same user that kills both of its
// ancestors at once can outlive them.
package child

import (
	"time"

	"selfsame.dev/selfsame/internal/canon"
)

// Spec says what to start. The child has a session of its own, cannot gain
// privileges, inherits no file but its three streams and no variable but Env.
type Spec struct {
	Program string   `json:"program"` // absolute path of the executable
	Args    []string `json:"args"`    // without the program's name
	Env     []string `json:"env"`     // the whole environment, KEY=value
	Dir     string   `json:"dir"`     // working folder
	Stdin   []byte   `json:"stdin"`
	Limits  Limits   `json:"limits"`
}

// Limits bound one child. Every one must be positive.
type Limits struct {
	Timeout time.Duration `json:"timeout"` // from start to exit
	// Grace is how long a child may live on after it closed stdout, after
	// SIGTERM, and how long what it forked may live on after its exit.
	Grace  time.Duration `json:"grace"`
	Stdout int           `json:"stdout"` // bytes
	Stderr int           `json:"stderr"` // bytes
}

// DefaultLimits suit a local runtime that answers one query.
var DefaultLimits = Limits{Timeout: 30 * time.Second, Grace: 500 * time.Millisecond, Stdout: 1 << 20, Stderr: 1 << 20}

// Process names one process for good: a pid is reused, a pid with its start time is not.
type Process struct {
	PID        int   `json:"pid"`
	Session    int   `json:"session"`
	StartTicks int64 `json:"start_ticks"` // clock ticks since boot, proc_pid_stat(5) field 22
}

// Problem says why a child's output must not be used; "" when it ended by itself,
// within its limits, with status 0, leaving nothing.
type Problem string

const (
	TimedOut      Problem = "timed_out"
	Lingered      Problem = "lingered"       // closed stdout and stayed
	StdoutFlood   Problem = "stdout_flood"   // more than Limits.Stdout
	StderrFlood   Problem = "stderr_flood"   // more than Limits.Stderr
	BadExit       Problem = "bad_exit"       // status other than 0, or killed by a signal
	LeftProcesses Problem = "left_processes" // it ended, what it forked did not
	Stopped       Problem = "stopped"        // by the caller
	NotStarted    Problem = "not_started"
	NotKilled     Problem = "not_killed" // something below survived SIGKILL
)

// Exit is how a child ended: a status, or the signal that killed it.
type Exit struct {
	Code   int    `json:"code"`   // 128 and the signal's number when a signal killed it
	Signal string `json:"signal"` // "SIGKILL", "" when it exited
}

// Sweep is the count of one search for what a child left. It ends with a scan
// that finds nothing, or with Left above 0.
type Sweep struct {
	Scans  int `json:"scans"`
	Killed int `json:"killed"`
	Left   int `json:"left"`
}

// Result is one child from start to absence.
type Result struct {
	Process Process      `json:"process"`
	Exit    Exit         `json:"exit"`
	Problem Problem      `json:"problem"`
	Detail  string       `json:"detail"` // for people
	Stdout  []byte       `json:"stdout"` // at most Limits.Stdout bytes
	Stderr  StderrRecord `json:"stderr"`
	Sweep   Sweep        `json:"sweep"`
}

// StderrRecord keeps stderr by size and digest: it may hold anything, so its
// bytes go no further than the operator's terminal.
type StderrRecord struct {
	Bytes  int          `json:"bytes"`
	SHA256 canon.Digest `json:"sha256"`
	Tail   string       `json:"tail"` // the last printable bytes; never stored
}

// Absence is the caller's own look, apart from the guardian's, at what is left.
type Absence struct {
	Scanned int `json:"scanned"` // process numbers looked at
	Present int `json:"present"` // named processes still there
	Session int `json:"session"` // members of their sessions
	Traced  int `json:"traced"`  // environments that name the folder
}

// Clean reports whether the look found nothing.
func (a Absence) Clean() bool { return a.Scanned > 0 && a.Present+a.Session+a.Traced == 0 }

// Package execlog says why two builds of one workspace, on two machines, did not do the same: it compares two
// execution logs of Bazel, follows every difference from action to action to where it began, and names
// what to do. It reads the compact, the binary and the JSON form, and is pure: readers are passed in.
//
// The result is the format execlog-comparison.v1. Nothing is left out of it.
package execlog

import (
	"fmt"

	"selfsame.dev/selfsame/internal/canon"
)

// Format is the format of a [Comparison].
const Format = "execlog-comparison.v1"

// Comparison is the format execlog-comparison.v1. That outputs came from a cache on one side is no difference.
type Comparison struct {
	Format         string    `json:"format"`
	A              Side      `json:"a"`
	B              Side      `json:"b"`
	Equal          bool      `json:"equal"`
	Counts         Counts    `json:"counts"`
	Configurations []Renamed `json:"configurations"` // output folders that were taken for the same
	Notes          []string  `json:"notes"`
	Causes         []Cause   `json:"causes"`  // in causal order
	Actions        []Action  `json:"actions"` // that differ, in causal order
}

// Side is one of the two logs. SHA256 is that of the file.
type Side struct {
	Name           string         `json:"name"`
	SHA256         canon.Digest   `json:"sha256"`
	Encoding       string         `json:"encoding"`
	Compressed     bool           `json:"compressed"`
	DigestFunction string         `json:"digest_function"`
	Actions        int            `json:"actions"`
	CacheHits      int            `json:"cache_hits"`
	UnknownEntries map[string]int `json:"unknown_entries"` // by field number: seen, not understood
}

// Counts are numbers of actions: in both logs and equal, only in one, and those in both that differ, as causes or only
// because of others.
type Counts struct {
	Equal        int `json:"equal"`
	OnlyInA      int `json:"only_in_a"`
	OnlyInB      int `json:"only_in_b"`
	Causes       int `json:"causes"`
	Consequences int `json:"consequences"`
}

// Kind is what a cause is.
type Kind string

// Kinds of causes.
const (
	SourceFile    Kind = "source_file"
	ExternalFile  Kind = "external_file"
	HostFile      Kind = "host_file"
	StatusFile    Kind = "status_file"
	GeneratedFile Kind = "generated_file" // no action of the logs made it
	ToolFile      Kind = "tool_file"
	FileType      Kind = "file_type" // a file on one side, a link or folder on the other
	Environment   Kind = "environment"
	AbsolutePath  Kind = "absolute_path"
	Argument      Kind = "argument"
	Platform      Kind = "platform"
	Execution     Kind = "execution"
	Declared      Kind = "declared_outputs"
	Symlink       Kind = "symlink_action"
	SourceMode    Kind = "source_mode" // of a file, by the listings of modes that were given
	Unrecorded    Kind = "unrecorded"  // nothing that is logged differs, and yet the outputs do
	ExitStatus    Kind = "exit_status"
	OnlyInA       Kind = "only_in_a"
	OnlyInB       Kind = "only_in_b"
)

// Cause is one thing that differs and follows from nothing else that is logged.
type Cause struct {
	Kind         Kind     `json:"kind"`
	Subject      string   `json:"subject"` // path, variable, option or target
	Change       string   `json:"change"`  // changed, only_in_a, only_in_b
	A            string   `json:"a"`
	B            string   `json:"b"`
	Withheld     bool     `json:"withheld"` // the values may be credentials: neither they nor digests are shown
	Origin       string   `json:"origin"`
	Next         string   `json:"next"`
	Depth        int      `json:"depth"`        // of the first of its actions: how many differing actions lead to it
	Actions      []int    `json:"actions"`      // where it acts: indexes of Comparison.Actions
	Consequences int      `json:"consequences"` // actions that differ only because of others, counted at the first cause they lead back to
	Suspects     []string `json:"suspects"`     // source files whose mode, which no log records and not both listings hold, may be the cause
}

// Action is an action that differs.
type Action struct {
	Label     string     `json:"label"`
	Mnemonic  string     `json:"mnemonic"`
	Output    string     `json:"output"`
	Side      string     `json:"side"` // both, a, b
	Cause     bool       `json:"cause"`
	Depth     int        `json:"depth"`
	Because   []int      `json:"because"` // indexes of actions whose differing outputs it reads
	Differs   []string   `json:"differs"` // arguments, environment, platform, execution, inputs, tools, outputs, declared_outputs, exit
	Arguments []Argued   `json:"arguments"`
	Outputs   []Produced `json:"outputs"`
	RunnerA   string     `json:"runner_a"`
	RunnerB   string     `json:"runner_b"`
}

// Argued is an argument that differs; Index is its place in A, or in B where only B has it.
type Argued struct {
	Index int    `json:"index"`
	A     string `json:"a"`
	B     string `json:"b"`
}

// Produced is an output that differs.
type Produced struct {
	Path string `json:"path"`
	A    string `json:"a"`
	B    string `json:"b"`
}

// Secrets says what must not be shown, neither plain nor as a digest.
type Secrets struct {
	Value func(name, value string) bool // of a variable, an option, or an argument ("")
	File  func(path string) bool
}

// Compare compares two logs. It reads A to its end, then B. Errors are [*canon.InputError] unless a source cannot
// be read.
func Compare(a, b Source, secrets Secrets, limits Limits) (*Comparison, error) {
	if limits == (Limits{}) {
		limits = DefaultLimits
	}
	st := newStore(limits.Kept)
	left, err := read(a, st, limits)
	if err != nil {
		return nil, err
	}
	right, err := read(b, st, limits)
	if err != nil {
		return nil, err
	}
	if left.hashFunction != "" && right.hashFunction != "" && left.hashFunction != right.hashFunction {
		return nil, &canon.InputError{File: right.name, Problem: fmt.Sprintf("has digests of %s, while %s has %s", right.hashFunction, left.name, left.hashFunction), Fix: "make both logs with the same --digest_function"}
	}
	names := configurations(st, left, right)
	if len(names) > 0 {
		rename(st, right, names)
	}
	if st.full() {
		return nil, canon.InFile(right.name, (&reader{limits: limits}).tooMuch())
	}
	n := &analysis{walker: newWalker(st, left, right), logA: left, logB: right, units: match(st, left, right), secrets: secrets}
	return n.compare(names), nil
}

package main

import (
	"bytes"
	"context"
	"os"
	"slices"
	"testing"
)

// The test binary is the command too, where a test or the canary starts it anew.
func TestMain(m *testing.M) {
	if slices.Contains([]string{"canary", "ledger"}, firstArg()) {
		main()
	}
	os.Exit(m.Run())
}

func firstArg() string {
	if len(os.Args) < 2 {
		return ""
	}
	return os.Args[1]
}

// call runs the command in this process.
func call(args ...string) (status int, stdout, stderr string) {
	var out, errs bytes.Buffer
	status = run(context.Background(), args, streams{bytes.NewReader(nil), &out, &errs})
	return status, out.String(), errs.String()
}

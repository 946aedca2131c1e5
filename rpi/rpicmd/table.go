package rpicmd

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/tabwriter"

	"selfsame.dev/selfsame/rpi"
)

// meanings says in words what each stop reason means.
var meanings = map[rpi.StopReason]string{
	rpi.Converged:            "fresh judges pass the exact subject with proof of their own",
	rpi.DiversityUnsatisfied: "a second validator family was asked for and did not pass it",
	rpi.BudgetExhausted:      "the caller's repair rounds are spent",
	rpi.ReopenedFinding:      "a finding that was closed is open again",
	rpi.RecurringClass:       "a class of finding that was closed is back",
	rpi.IntroducedRegression: "a receipt blames the new subject for an open finding",
	rpi.UnknownCause:         "a new finding has no receipt that saw it on the prior subject",
	rpi.NoProgress:           "no new receipt bound to the subject proves that a finding closed, over a subject that may be repaired",
	rpi.NotConverged:         "rounds are left; repair may go on",
}

// Table writes what each round did to each finding, and why the phase stopped.
func Table(w io.Writer, steps []rpi.Step, outcome rpi.Outcome) error {
	out := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(out, "ROUND\tFINDING\tCLASS\tSTATE\tWHY")
	for _, s := range steps {
		why := "subject " + s.Subject[:12]
		if len(s.Receipts) > 0 {
			why += ", new receipts " + cells(s.Receipts...)
		}
		fmt.Fprintf(out, "%d\t\t\t%s\t%s\n", s.Round, s.Status, why)
		for _, f := range s.Findings {
			fmt.Fprintf(out, "%d\t%s\t%s\t%s\t%s\n", s.Round, cells(f.ID), cells(f.Class), f.State, cells(f.Why))
		}
	}
	if err := out.Flush(); err != nil {
		return err
	}
	_, err := fmt.Fprintf(w, "\n%s after %d repair rounds: %s\n%s, %d findings open\n",
		outcome.StopReason, outcome.RoundsUsed, meanings[outcome.StopReason], outcome.Report.Status, len(outcome.Open))
	return err
}

// cells joins texts so that none can leave its cell or drive the terminal.
func cells(texts ...string) string {
	shown := make([]string, len(texts))
	for i, text := range texts {
		shown[i] = strings.Trim(strconv.Quote(text), `"`)
	}
	return strings.Join(shown, ", ")
}

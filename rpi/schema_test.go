package rpi_test

import (
	"testing"

	"selfsame.dev/selfsame/rpi"
	"selfsame.dev/selfsame/rpi/rpitest"
	"selfsame.dev/selfsame/schemas"
)

// beyondSchema are the rules about how parts fit together, which no schema of a document says.
var beyondSchema = map[rpi.Rule]bool{
	rpi.FindingTwice: true, rpi.FindingConflict: true, rpi.EvidenceConflict: true,
	rpi.EvidenceNull: true, rpi.LegDisagreement: true,
}

// unread are vectors with parts that the law never looks at and a schema does.
var unread = map[string]bool{"past-the-bound.json": true}

// The schemas and the program agree: a document of rounds that runs fits, a refused one does
// not, save for what the two tables above name; every outcome and report fits.
func TestSchemas(t *testing.T) {
	runs, refusals := 0, 0
	for _, v := range readVectors(t) {
		switch v.kind {
		case "once":
			if v.expectsOutcome {
				fits(t, v.name, "rpi-report.v1", v.outcome, true)
			}
		case "repair":
			if v.expectsOutcome {
				runs++
				fits(t, v.name, "rpi-outcome.v1", v.outcome, true)
				report, _ := v.outcome.Get("report")
				fits(t, v.name, "rpi-report.v1", report, true)
				fits(t, v.name, "rpi-rounds.v1", v.input, !unread[v.name])
			} else {
				refusals++
				fits(t, v.name, "rpi-rounds.v1", v.input, beyondSchema[v.refused])
			}
		}
	}
	if runs < 40 || refusals < 30 {
		t.Errorf("only %d runs and %d refusals were held against the schemas", runs, refusals)
	}
}

func TestSchemasRefuse(t *testing.T) {
	good, err := rpi.RunRepairPhase(longTrace(3), rpi.DefaultOptions())
	if err != nil {
		t.Fatal(err)
	}
	report := good.Report.Value()
	fits(t, "control", "rpi-report.v1", report, true)
	fits(t, "a tenth member", "rpi-report.v1", report.With(rpitest.Object("next_action", "retry")), false)
	fits(t, "another version", "rpi-report.v1", report.With(rpitest.Object("schema_version", "rpi-report.v2")), false)
	fits(t, "no report", "rpi-report.v1", rpi.ObjectOf(), false)
	outcome := good.Value()
	fits(t, "control", "rpi-outcome.v1", outcome, true)
	fits(t, "a tenth reason", "rpi-outcome.v1", outcome.With(rpitest.Object("stop_reason", "gave_up")), false)
	fits(t, "converged with a FAIL", "rpi-outcome.v1", outcome.With(rpitest.Object("stop_reason", "converged")), false)
	fits(t, "a PASS that did not converge", "rpi-outcome.v1", outcome.With(rpitest.Object("report", report.With(rpitest.Object("status", "PASS")))), false)
}

// Random documents: the law runs exactly those that fit the schema, the two tables aside.
func TestSchemaAgreesOnRandomDocuments(t *testing.T) {
	for seed := range uint64(500) {
		g := rpitest.New(seed)
		rounds := rpi.ListOf(g.Rounds()...)
		if seed%4 != 0 {
			rounds = g.Mutate(rounds)
		}
		document, err := rpi.ReadDocument(rounds)
		if err == nil {
			for _, round := range document.Rounds {
				if _, err = rpi.NormalizeRound(round); err != nil {
					break
				}
			}
			if len(document.Rounds) == 0 {
				_, err = document.Run()
			}
		}
		var refusal *rpi.Refusal
		if err != nil {
			refusal = err.(*rpi.Refusal)
			if beyondSchema[refusal.Rule] {
				continue
			}
		}
		fits(t, rounds.String(), "rpi-rounds.v1", rounds, refusal == nil)
	}
}

func fits(t *testing.T, name, format string, value rpi.Value, want bool) {
	t.Helper()
	err := schemas.Validate(name, format, value.AppendJSON(nil))
	if want && err != nil {
		t.Errorf("%s does not fit %s: %v", name, format, err)
	}
	if !want && err == nil {
		t.Errorf("%s fits %s", name, format)
	}
}

package rpi

import (
	"errors"
	"math"
	"strconv"
)

// Document is one recorded repair phase: rounds with the caller's options (rpi-rounds.v1).
type Document struct {
	Rounds  []Value
	Options Options
	// bare: the document is the list of rounds itself.
	bare bool
}

// ReadDocument reads a decoded document: a list of rounds, or an object with validations
// and, if wanted, options. The rounds themselves are not looked at.
func ReadDocument(doc Value) (Document, error) {
	d := Document{Options: DefaultOptions()}
	switch doc.kind {
	case List:
		d.bare = true
		d.Rounds, _ = doc.sequence()
		return d, nil
	case Object:
	default:
		return Document{}, refuse(DocumentShape, "")
	}
	rounds := doc.member("validations")
	if rounds == nil || rounds.kind != List {
		return Document{}, refuse(DocumentShape, "/validations")
	}
	if len(rounds.kids) == 0 {
		return Document{}, refuse(NoRounds, "/validations")
	}
	d.Rounds, _ = rounds.sequence()
	for name, value := range doc.Members() {
		switch name {
		case "validations":
		case "options":
			if err := readOptions(value, &d.Options); err != nil {
				return Document{}, err
			}
		default:
			return Document{}, refuse(DocumentShape, "/"+name)
		}
	}
	return d, nil
}

// readOptions reads as the signature of the reference does: repair_rounds is an integer
// and no boolean, the two flags go by Python's truth, the rest is carried as it is.
func readOptions(value Value, o *Options) error {
	if value.kind != Object {
		return refuse(OptionsShape, "/options")
	}
	for name, member := range value.Members() {
		switch name {
		case "repair_rounds":
			if member.kind != Number || !member.flag || member.float() < 0 {
				return refuse(RepairRounds, "/options/repair_rounds")
			}
			o.RepairRounds = math.MaxInt
			if n, err := strconv.Atoi(member.text); err == nil {
				o.RepairRounds = n
			}
		case "cross_model":
			o.CrossModel = member.truthy()
		case "risky_surface":
			o.RiskySurface = member.truthy()
		case "intent_ref":
			o.IntentRef = member
		case "acceptance_digest":
			o.AcceptanceDigest = member
		case "verdict_ref":
			o.VerdictRef = member
		case "verdict_digest":
			o.VerdictDigest = member
		default:
			return refuse(OptionsShape, "/options/"+name)
		}
	}
	return nil
}

// Run walks the rounds of the document.
func (d Document) Run() (Outcome, error) {
	outcome, err := RunRepairPhase(d.Rounds, d.Options)
	if err != nil {
		return Outcome{}, d.place(err)
	}
	return outcome, nil
}

// Explain is [Explain] over the document.
func (d Document) Explain() ([]Step, Outcome, error) {
	steps, outcome, err := Explain(d.Rounds, d.Options)
	return steps, outcome, d.place(err)
}

// place turns the path of a refusal inside the rounds into one inside the document.
func (d Document) place(err error) error {
	var refusal *Refusal
	if d.bare || !errors.As(err, &refusal) || refusal.Round < 0 {
		return err
	}
	placed := *refusal
	placed.Path = "/validations" + refusal.Path
	return &placed
}

package rpicmd

import (
	"selfsame.dev/selfsame/internal/canon"
	"selfsame.dev/selfsame/rpi"
)

// Overrides are the caller's own declarations; where set they win over the document's.
type Overrides struct {
	RepairRounds *int
	CrossModel   bool
}

// Apply returns the options of the document under the caller's.
func (o Overrides) Apply(options rpi.Options) rpi.Options {
	if o.RepairRounds != nil {
		options.RepairRounds = *o.RepairRounds
	}
	options.CrossModel = options.CrossModel || o.CrossModel
	return options
}

// Repair judges documents of rounds; a converged one holds.
func Repair(overrides Overrides) Judge {
	return func(value rpi.Value) (rpi.Value, bool, error) {
		document, err := rpi.ReadDocument(value)
		if err != nil {
			return rpi.Value{}, false, err
		}
		document.Options = overrides.Apply(document.Options)
		outcome, err := document.Run()
		if err != nil {
			return rpi.Value{}, false, err
		}
		return outcome.Value(), outcome.StopReason == rpi.Converged, nil
	}
}

// Guard judges {"guard": answer}; a decision to continue holds.
func Guard(value rpi.Value) (rpi.Value, bool, error) {
	if err := only(value, "guard"); err != nil {
		return rpi.Value{}, false, err
	}
	answer, _ := value.Get("guard")
	guard, err := rpi.ReadGuard(answer)
	return guard.Fields, guard.Continue, err
}

// Once judges the recorded answers of one traversal,
// {"intent", "guard", "plan", "subject", "validation"}; a PASS holds.
func Once(value rpi.Value) (rpi.Value, bool, error) {
	if err := only(value, "intent", "guard", "plan", "subject", "validation"); err != nil {
		return rpi.Value{}, false, err
	}
	intent, _ := value.Get("intent")
	report, err := rpi.InvokeOnce(intent, recorded{value})
	if err != nil {
		return rpi.Value{}, false, err
	}
	return report.Value(), report.Status == rpi.Pass, nil
}

// recorded answers each phase from a document; a missing answer is null.
type recorded struct{ answers rpi.Value }

func (r recorded) get(name string) (rpi.Value, error) {
	answer, _ := r.answers.Get(name)
	return answer, nil
}

func (r recorded) Guard(rpi.Value) (rpi.Value, error)     { return r.get("guard") }
func (r recorded) Plan(rpi.Value) (rpi.Value, error)      { return r.get("plan") }
func (r recorded) Implement(rpi.Value) (rpi.Value, error) { return r.get("subject") }
func (r recorded) Validate(_, _ rpi.Value) (rpi.Value, error) {
	return r.get("validation")
}

// only refuses anything but an object with no other members than these.
func only(value rpi.Value, allowed ...string) error {
	if value.Kind() != rpi.Object {
		return &canon.InputError{Problem: "the document is " + value.Kind().String() + ", not an object", Fix: "give an object"}
	}
next:
	for name := range value.Members() {
		for _, known := range allowed {
			if name == known {
				continue next
			}
		}
		return &canon.InputError{Key: "/" + name, Problem: "the name is unknown", Fix: "remove it, or check its spelling and case"}
	}
	return nil
}

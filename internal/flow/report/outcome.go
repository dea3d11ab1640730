package report

import (
	"slices"

	"lockkeeper/internal/flow"
	"lockkeeper/internal/flow/progress"
)

// An Outcome is what became of a unit. Every unit has one.
type Outcome string

// The outcomes, in the order of a report.
const (
	Landed   Outcome = "landed"    // complete, with changes in the tree
	NoChange Outcome = "no_change" // complete, and nothing changed
	Failed   Outcome = "failed"    // waits for a retry
	Waits    Outcome = "waiting"   // waits for a decision
	Excluded Outcome = "excluded"  // a person excluded it
	Open     Outcome = "open"      // work is left
)

// Outcomes lists the outcomes in the order of a report.
func Outcomes() []Outcome { return []Outcome{Failed, Waits, Open, Landed, NoChange, Excluded} }

// outcomeOf returns what became of a unit.
func outcomeOf(u *progress.Unit, of *Unit) Outcome {
	failed := of.Failed || slices.ContainsFunc(of.Batches, func(b Batch) bool { return b.Failed })
	switch {
	case u.Excluded != nil:
		return Excluded
	case failed:
		return Failed
	case u.Status() != flow.Complete && len(u.OpenDecisions()) > 0:
		return Waits
	case u.Status() != flow.Complete:
		return Open
	case slices.ContainsFunc(of.Batches, func(b Batch) bool { return b.isInTree() }):
		return Landed
	}
	return NoChange
}

// ByOutcome returns the units with an outcome.
func (r *Report) ByOutcome(o Outcome) (list []Unit) {
	for _, u := range r.Units {
		if u.Outcome == o {
			list = append(list, u)
		}
	}
	return list
}

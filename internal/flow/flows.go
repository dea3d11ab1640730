package flow

import (
	"slices"
	"strings"
	"sync"

	"lockkeeper"
)

// A Flow describes one kind of run: its phases, and the few ways in which flows differ. Code
// outside this package reads these fields and never compares names.
type Flow struct {
	Name   string  `json:"name"`
	Phases []Phase `json:"phases"`

	Source         Source `json:"-"` // where the units of the flow come from
	OneUnit        string `json:"-"` // the only unit of a flow whose batches people write; its name starts with a plus, which no discovered unit has
	Counted        string `json:"-"` // the noun for counts: a unit, or a batch in a flow with one unit
	Folder         string `json:"-"` // folder of the flow inside the directory of documents; empty: that directory
	PlannedBy      string `json:"-"` // the step that declares the write targets of batches
	OptionalReview string `json:"-"` // the phase after which a setting can add a review; empty: none
	UnitsOwnFiles  bool   `json:"-"` // a unit is a set of files, so a change outside it is risky
	DeclaresReads  bool   `json:"-"` // a batch lists all its dependencies; otherwise a batch without a list depends on every file of its unit
	LocksReads     bool   `json:"-"` // batches lock their reads by default
}

type Source string

// The sources of units.
const (
	Codebase     Source = "codebase"  // a glob finds the units
	FromManifest Source = "manifest"  // a manifest lists screens, grouped by controller
	FromPlan     Source = "plan file" // a plan file lists the batches of one unit
)

// All lists the flows, the default first.
func All() []Flow { return []Flow{Controllers(), Screens(), Tasks()} }

// Default returns the flow of a run that names no flow.
func Default() Flow { return All()[0] }

func (f Flow) IsDefault() bool { return f.Name == Default().Name }

func ForPlan() Flow { return find(func(f Flow) bool { return f.Source == FromPlan }) }

// ForScreens returns the flow that works on screens.
func ForScreens() Flow { return find(Flow.HasScreens) }

func ForResearch() Flow {
	return find(func(f Flow) bool {
		return slices.ContainsFunc(f.Phases, func(p Phase) bool { return p.Executor == API })
	})
}

// find returns the first flow for which the function is returns true. Such a flow must exist.
func find(is func(Flow) bool) Flow { return All()[slices.IndexFunc(All(), is)] }

// IsCheck reports whether this is the name of a check phase of any flow.
func IsCheck(phase string) bool { return slices.Contains(checkNames(), phase) }

// checkNames lists the names of the check phases of all flows. Readers of thousands of calls ask for
// each of them.
var checkNames = sync.OnceValue(func() (names []string) {
	for _, p := range checkPhases() {
		names = append(names, p.Name)
	}
	return names
})

// checkPhases returns the check phases of all flows. Readers of thousands of records call it for each.
var checkPhases = sync.OnceValue(func() (list []Phase) {
	for _, f := range All() {
		list = append(list, f.Checks()...)
	}
	return list
})

func Names() (names []string) {
	for _, f := range All() {
		names = append(names, f.Name)
	}
	return names
}

func ByName(name string) (Flow, error) {
	for _, f := range All() {
		if f.Name == name {
			return f, nil
		}
	}
	return Flow{}, &lockkeeper.InputError{Field: "flow", Value: name, Reason: "unknown", Next: "use one of " + strings.Join(Names(), ", ")}
}

// HasScreens reports whether a phase of the flow works on screens.
func (f Flow) HasScreens() bool {
	return slices.ContainsFunc(f.Phases, func(p Phase) bool { return p.Unit == Screen })
}

// Owns reports whether the folder of documents with this name belongs to a unit of the flow.
func (f Flow) Owns(unit string) bool {
	if f.OneUnit != "" {
		return unit == f.OneUnit
	}
	return !strings.HasPrefix(unit, "+") // a plus marks the folder or the only unit of another flow
}

func (f Flow) Phase(name string) (Phase, bool) {
	return f.phase(func(p Phase) bool { return p.Name == name })
}

// PhaseQueued finds a phase by its name in the scheduler. That is its own name, or its FixQueue
// while an agent fixes a failed check.
func (f Flow) PhaseQueued(name string) (p Phase, fixing, ok bool) {
	if p, ok = f.Phase(name); ok {
		return p, false, true
	}
	p, ok = f.phase(func(p Phase) bool { return p.FixQueue == name && name != "" })
	return p, ok, ok
}

// PhaseOf finds the phase that writes a document.
func (f Flow) PhaseOf(output string) (Phase, bool) {
	return f.phase(func(p Phase) bool { return p.Output == output })
}

func (f Flow) phase(is func(Phase) bool) (Phase, bool) {
	i := slices.IndexFunc(f.Phases, is)
	if i < 0 {
		return Phase{}, false
	}
	return f.Phases[i], true
}

// BatchPhases lists the phases that a batch goes through, in order.
func (f Flow) BatchPhases() []Phase {
	return slices.DeleteFunc(slices.Clone(f.Phases), func(p Phase) bool { return p.Unit != BatchUnit })
}

// FirstOfBatch returns the name of the first phase of a batch.
func (f Flow) FirstOfBatch() string { return f.BatchPhases()[0].Name }

// LastOfBatch returns the name of the last phase of a batch. A batch that waits for its review or
// its landing is queued in this phase.
func (f Flow) LastOfBatch() string {
	phases := f.BatchPhases()
	return phases[len(phases)-1].Name
}

// Checks lists the check phases of a batch, in order.
func (f Flow) Checks() []Phase {
	return slices.DeleteFunc(f.BatchPhases(), func(p Phase) bool { return p.Step != Checking })
}

// Reviewed returns the flow with a review after the given phase.
func (f Flow) Reviewed(phase string) Flow {
	f.Phases = slices.Clone(f.Phases)
	for i := range f.Phases {
		if f.Phases[i].Name == phase {
			f.Phases[i].Review = true
		}
	}
	return f
}

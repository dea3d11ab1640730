package flow

import (
	"slices"
	"strings"

	"lockkeeper"
)

// A Flow describes one kind of run: its phases, and the few ways in which flows differ.
// Code outside this package reads these fields and never compares names.
type Flow struct {
	Name   string  `json:"name"`
	Phases []Phase `json:"phases"`

	// Source says where the units of the flow come from.
	Source Source `json:"-"`
	// OneUnit is the only unit of a flow whose batches people write themselves, and ""
	// in other flows. Its name starts with a plus, which no discovered unit has.
	OneUnit string `json:"-"`
	// Counted is what people count: a unit, or in a flow with one unit its batches.
	Counted string `json:"-"`
	// Folder is the flow's folder inside the directory of documents; "" is that directory.
	Folder string `json:"-"`
	// PlannedBy names the step that declares the write targets of batches.
	PlannedBy string `json:"-"`
	// OptionalReview is a phase that a setting can add a review to; "" is none.
	OptionalReview string `json:"-"`
	// UnitsOwnFiles: a unit is a set of files, so a change outside it is risky.
	UnitsOwnFiles bool `json:"-"`
	// DeclaresReads: a batch lists all that it depends on. In other flows a batch that
	// lists nothing depends on every file of its unit.
	DeclaresReads bool `json:"-"`
	// LocksReads: batches lock what they read unless a setting says otherwise.
	LocksReads bool `json:"-"`
}

// A Source says where the units of a flow come from.
type Source string

// The sources.
const (
	Codebase     Source = "codebase"  // a glob finds them
	FromManifest Source = "manifest"  // a manifest lists screens, grouped by controller
	FromPlan     Source = "plan file" // a plan file lists the batches of one unit
)

// All lists the flows, the default first.
func All() []Flow { return []Flow{Controllers(), Screens(), Tasks()} }

// Default returns the flow that a run follows if nothing else is asked for.
func Default() Flow { return All()[0] }

// IsDefault reports whether f is the default flow.
func (f Flow) IsDefault() bool { return f.Name == Default().Name }

// ForPlan returns the flow that a plan file belongs to.
func ForPlan() Flow { return find(func(f Flow) bool { return f.Source == FromPlan }) }

// ForScreens returns the flow that works on screens.
func ForScreens() Flow { return find(Flow.HasScreens) }

// ForResearch returns the flow that researches topics.
func ForResearch() Flow {
	return find(func(f Flow) bool {
		return slices.ContainsFunc(f.Phases, func(p Phase) bool { return p.Executor == API })
	})
}

// find returns the first flow of a kind. Each kind has one.
func find(is func(Flow) bool) Flow { return All()[slices.IndexFunc(All(), is)] }

// IsCheck reports whether a phase of any flow with this name runs check commands.
func IsCheck(phase string) bool {
	return slices.ContainsFunc(checkPhases(), func(p Phase) bool { return p.Name == phase })
}

// checkPhases lists the check phases of all flows.
func checkPhases() (list []Phase) {
	for _, f := range All() {
		list = append(list, f.Checks()...)
	}
	return list
}

// Names lists the names of the flows.
func Names() (names []string) {
	for _, f := range All() {
		names = append(names, f.Name)
	}
	return names
}

// ByName finds a flow.
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

// Owns reports whether a folder of documents with this name holds a unit of the flow.
func (f Flow) Owns(unit string) bool {
	if f.OneUnit != "" {
		return unit == f.OneUnit
	}
	return !strings.HasPrefix(unit, "+") // a folder, or the one unit, of another flow
}

// Phase finds a phase of the flow.
func (f Flow) Phase(name string) (Phase, bool) {
	return f.phase(func(p Phase) bool { return p.Name == name })
}

// PhaseQueued finds the phase that the scheduler knows by a name: its own, or the one it
// has while an agent fixes what it found.
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

// FirstOfBatch names the phase in which a batch is made.
func (f Flow) FirstOfBatch() string { return f.BatchPhases()[0].Name }

// LastOfBatch names the last phase of a batch. A batch that waits for its review or its
// landing is queued in it.
func (f Flow) LastOfBatch() string {
	phases := f.BatchPhases()
	return phases[len(phases)-1].Name
}

// Checks lists the check phases of a batch, in order.
func (f Flow) Checks() []Phase {
	return slices.DeleteFunc(f.BatchPhases(), func(p Phase) bool { return p.Step != Checking })
}

// Reviewed returns the flow with a review after one more of its phases.
func (f Flow) Reviewed(phase string) Flow {
	f.Phases = slices.Clone(f.Phases)
	for i := range f.Phases {
		if f.Phases[i].Name == phase {
			f.Phases[i].Review = true
		}
	}
	return f
}

// Statuses lists every status that a unit or a batch of the flow can have, in order.
func (f Flow) Statuses() []string {
	list := []string{Idle}
	for _, p := range f.Phases {
		list = append(list, p.Status)
		if p.Fixing != "" {
			list = append(list, p.Fixing)
		}
		if p.Unit == Whole {
			list = append(list, Discovered, Queued)
		}
	}
	return append(list, Complete, NoChange, Failed)
}

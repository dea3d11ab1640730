package flow

import (
	"slices"
	"strings"

	"lockkeeper"
)

// Flow is a sequence of phases.
type Flow struct {
	Name   string  `json:"name"`
	Phases []Phase `json:"phases"`
}

// Controllers takes each controller from analysis to verified changes, with a person's
// word on what is done and in which batches.
func Controllers() Flow {
	return Flow{"controllers", append([]Phase{
		{Name: "discover", Status: "discovering", Unit: Whole, Executor: BuiltIn},
		{Name: "analyze", Status: "analyzing", Unit: Controller, Executor: Agent, Output: AnalysisFile, Prompt: "analyze", Answer: "analysis"},
		{Name: "research", Status: "researching", Unit: Controller, Executor: API, Output: "research"},
		{Name: "extract", Status: "extracting", Unit: Controller, Executor: Agent, Output: ExtractFile, Prompt: "extract", Answer: "extract"},
		{Name: "synthesize", Status: "synthesizing", Unit: Controller, Executor: Agent, Output: SynthesizeFile, Prompt: "synthesize", Answer: "synthesis"},
		{Name: "audit", Status: "auditing", Unit: Controller, Executor: BuiltIn, Output: AuditFile},
		{Name: "decide", Status: "awaiting_decisions", Unit: Controller, Executor: Human, Output: DecisionsFile},
		{Name: "batch_plan", Status: "planning_batches", Unit: Controller, Executor: Agent, Review: true, Output: BatchesFile, Prompt: "batch_plan", Answer: "batches"},
	}, lifecycle("apply", "apply")...)}
}

// Screens analyses each screen of a manifest and merges what was found into the code,
// controller by controller. The batch of a merge is made from its screens' write targets.
func Screens() Flow {
	return Flow{"screens", append([]Phase{
		{Name: "discover", Status: "discovering", Unit: Whole, Executor: BuiltIn},
		{Name: "analyze", Status: "analyzing", Unit: Screen, Executor: Agent, Output: AnalysisFile, Prompt: "screen", Answer: "screen"},
		{Name: "batch_plan", Status: "awaiting_decisions", Unit: Controller, Executor: BuiltIn, Output: BatchesFile},
	}, lifecycle("merge", "merge")...)}
}

// Tasks does what the prompts of a plan file say. Whoever wrote the file agreed to it.
func Tasks() Flow {
	return Flow{"tasks", append([]Phase{
		{Name: "batch_plan", Status: "planning_batches", Unit: Whole, Executor: BuiltIn, Output: BatchesFile},
	}, lifecycle("apply", "task")...)}
}

// lifecycle is the phases of a batch, which it goes through one after the other under one
// grant.
func lifecycle(first, prompt string) []Phase {
	return []Phase{
		{Name: first, Status: "applying", Unit: BatchUnit, Executor: Agent, Writes: true, Output: ApplyFile, Prompt: prompt, Answer: "summary"},
		{Name: "test", Status: "testing", Fixing: "fixing_tests", Unit: BatchUnit, Executor: Command, Writes: true, Output: TestFile, Prompt: "fix_tests", Answer: "summary"},
		{Name: "ci", Status: "ci_checking", Fixing: "fixing_ci", Unit: BatchUnit, Executor: Command, Writes: true, Output: CIFile, Prompt: "fix_ci", Answer: "summary"},
		{Name: "verify", Status: "verifying", Unit: BatchUnit, Executor: Agent, Writes: true, Output: VerificationFile, Prompt: "verify", Answer: "verdict"},
	}
}

// All lists the flows.
func All() []Flow { return []Flow{Controllers(), Screens(), Tasks()} }

// ByName finds a flow.
func ByName(name string) (Flow, error) {
	var names []string
	for _, f := range All() {
		if f.Name == name {
			return f, nil
		}
		names = append(names, f.Name)
	}
	return Flow{}, &lockkeeper.InputError{Field: "flow", Value: name, Reason: "unknown", Next: "use one of " + strings.Join(names, ", ")}
}

// Phase finds a phase of the flow.
func (f Flow) Phase(name string) (Phase, bool) {
	i := slices.IndexFunc(f.Phases, func(p Phase) bool { return p.Name == name })
	if i < 0 {
		return Phase{}, false
	}
	return f.Phases[i], true
}

// Reviewed is the flow with a person's word needed after one more of its phases.
func (f Flow) Reviewed(phase string) Flow {
	f.Phases = slices.Clone(f.Phases)
	for i := range f.Phases {
		if f.Phases[i].Name == phase {
			f.Phases[i].Review = true
		}
	}
	return f
}

// Statuses lists every status that a unit or a batch of the flow can have, in the order
// in which they come.
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

// ActiveStatuses are those in which something is under way, and from which it can go to
// the error state.
func (f Flow) ActiveStatuses() []string {
	return slices.DeleteFunc(f.Statuses(), func(s string) bool {
		return s == Idle || s == Discovered || IsDone(s) || s == Failed
	})
}

package flow

// Controllers returns the flow that takes each controller from analysis to verified changes.
// People decide on the items and approve the batches.
func Controllers() Flow {
	return Flow{
		Name: "controllers", Source: Codebase, Counted: "unit", PlannedBy: "batch_plan", UnitsOwnFiles: true,
		Phases: append([]Phase{
			{Name: "discover", Step: Discovering, Status: "discovering", Unit: Whole, Executor: BuiltIn},
			{Name: "analyze", Step: Asking, Rank: 6, Status: "analyzing", Unit: Controller, Executor: Agent, Output: AnalysisFile, Prompt: "analyze", Answer: "analysis",
				Form: described{Analysis{}, "The purpose of a controller and how it works today."}},
			{Name: "research", Step: Researching, Rank: 5, Status: "researching", Unit: Controller, Executor: API, Output: ResearchFolder},
			{Name: "extract", Step: Asking, Rank: 5, Status: "extracting", Unit: Controller, Executor: Agent, Output: ExtractFile, Prompt: "extract", Answer: "extract",
				Form: described{Extract{}, "The possible improvements."}},
			{Name: "synthesize", Step: Asking, Rank: 5, Status: "synthesizing", Unit: Controller, Executor: Agent, Output: SynthesizeFile, Prompt: "synthesize", Answer: "synthesis",
				Form: described{Synthesis{}, "The possible items after a comparison with the code."}},
			{Name: "audit", Step: Auditing, Rank: 5, Status: "auditing", Unit: Controller, Executor: BuiltIn, Output: AuditFile},
			{Name: "decide", Step: Deciding, Status: "awaiting_decisions", Unit: Controller, Executor: Human, Output: DecisionsFile},
			{Name: "batch_plan", Step: Asking, Rank: 4, Status: "planning_batches", Unit: Controller, Executor: Agent, Review: true, Output: BatchesFile, Prompt: "batch_plan", Answer: "batches",
				Form: described{plannedBatches{}, "The planned batches."}},
		}, batchPhases("apply", "apply")...),
	}
}

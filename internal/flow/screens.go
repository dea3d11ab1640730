package flow

// Screens returns the flow that analyzes each screen of a manifest and merges the findings into
// the code, with one batch for each controller. The batch writes the files that the analyses of
// its screens declare.
func Screens() Flow {
	return Flow{
		Name: "screens", Source: FromManifest, Counted: "unit", Folder: "+screens", PlannedBy: "analyze", OptionalReview: "batch_plan", LocksReads: true,
		Phases: append([]Phase{
			{Name: "discover", Step: Discovering, Status: "discovering", Unit: Whole, Executor: BuiltIn},
			{Name: "analyze", Step: AskingScreens, Rank: 6, Status: "analyzing", Unit: Screen, Executor: Agent, Output: AnalysisFile, Prompt: "screen", Answer: "screen",
				Form: described{screenAnswer{}, "The findings for one screen."}},
			{Name: "batch_plan", Step: Merging, Rank: 4, Status: "awaiting_decisions", Unit: Controller, Executor: BuiltIn, Output: BatchesFile},
		}, batchPhases("merge", "merge")...),
	}
}

package flow

// Tasks returns the flow that carries out the prompts of a plan file. The author approved the
// plan by writing it.
func Tasks() Flow {
	return Flow{
		Name: "tasks", Source: FromPlan, OneUnit: "+tasks", Counted: "task", PlannedBy: "plan file", DeclaresReads: true,
		Phases: append([]Phase{
			{Name: "batch_plan", Step: TakingPlan, Rank: 4, Status: "planning_batches", Unit: Whole, Executor: BuiltIn, Output: BatchesFile},
		}, batchPhases("apply", "task")...),
	}
}

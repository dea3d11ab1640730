package flow

import (
	"slices"
)

// A Phase is one step of a flow: an entry in the flow's table of phases. Its Step names the code
// that carries it out.
type Phase struct {
	Name     string   `json:"name"`
	Status   string   `json:"status"`           // the status of a unit or batch in this phase
	Fixing   string   `json:"fixing,omitempty"` // the status while an agent fixes a failed check
	Unit     Unit     `json:"unit"`
	Executor Executor `json:"executor"`
	Review   bool     `json:"review,omitempty"` // a person approves before the next phase
	Writes   bool     `json:"writes,omitempty"` // the phase runs under the write locks of its batch
	Output   string   `json:"output,omitempty"` // the document that the phase writes, or a folder with one text for each topic
	Prompt   string   `json:"prompt,omitempty"` // the prompt of the phase's agent; for a command, that of the agent that fixes failures
	Answer   string   `json:"answer,omitempty"` // the schema of the agent's answer

	Step Step      `json:"-"`
	Form described `json:"-"` // the type of the answer; empty: another phase has it
	// Rank orders the queue: items in a phase of rank 1 start first. Work near its end comes
	// first, so that few items hold locks. The items of a phase of rank 0 are never queued.
	Rank     int    `json:"-"`
	FixQueue string `json:"-"` // the scheduler's name for the phase while an agent fixes a failed check

	// These fields are for a check phase. Checks describes it, Commands is the setting that lists
	// its commands (empty: it runs the tests of the batch), and FixLimit is the setting that
	// limits fixes (empty: max_fix_attempts).
	Checks, Commands, FixLimit string `json:"-"`
}

// A Step names the code that carries out a phase. Package run has one function for each step.
type Step string

// The steps of a run, of a unit, and of a batch.
const (
	Discovering Step = "discover" // find the units
	TakingPlan  Step = "plan"     // take the batches from a plan file

	Asking        Step = "ask"      // ask an agent that reads the code; its answer is the document
	AskingScreens Step = "screens"  // ask an agent about each screen of the unit
	Researching   Step = "research" // get an answer for each topic, from the API or from people
	Auditing      Step = "audit"    // compare the items with earlier decisions
	Deciding      Step = "decide"   // wait for people
	Merging       Step = "merge"    // make one batch from the screens of the unit

	Applying  Step = "apply"  // have an agent change the code
	Checking  Step = "check"  // run commands, and have an agent fix their failures
	Verifying Step = "verify" // have an agent compare the original with the change
)

// batchPhases returns the phases of a batch. A batch holds one grant during all of them.
func batchPhases(first, prompt string) []Phase {
	return []Phase{
		{Name: first, Step: Applying, Rank: jobRank, Status: "applying", Unit: BatchUnit, Executor: Agent, Writes: true, Output: ApplyFile, Prompt: prompt, Answer: "summary",
			Form: described{summary{}, "The agent's report on its change."}},
		{Name: "test", Step: Checking, Rank: 2, Status: "testing", Fixing: "fixing_tests", FixQueue: "fix", Unit: BatchUnit, Executor: Command, Writes: true, Output: TestFile, Prompt: "fix_tests", Answer: "summary",
			Checks: "tests", FixLimit: "max_fix_attempts"},
		{Name: "ci", Step: Checking, Rank: 2, Status: "ci_checking", Fixing: "fixing_ci", FixQueue: "ci_fix", Unit: BatchUnit, Executor: Command, Writes: true, Output: "ci_results.json", Prompt: "fix_ci", Answer: "summary",
			Checks: "CI checks", Commands: "run.ci", FixLimit: "max_ci_fix_attempts"},
		{Name: "verify", Step: Verifying, Rank: 1, Status: "verifying", Unit: BatchUnit, Executor: Agent, Writes: true, Output: VerificationFile, Prompt: "verify", Answer: "verdict",
			Form: described{Verdict{}, "The result of comparing the changed code with the original."}},
	}
}

// A Unit is the kind of thing that a phase works on.
type Unit string

const (
	Whole      Unit = "codebase"
	Controller Unit = "controller"
	Screen     Unit = "screen"
	BatchUnit  Unit = "batch"
)

// An Executor is the kind of worker that carries out a phase.
type Executor string

const (
	BuiltIn Executor = "built-in"
	Agent   Executor = "agent"
	API     Executor = "api"
	Human   Executor = "human"
	Command Executor = "command"
)

// These statuses belong to no phase.
const (
	Idle       = "idle"
	Discovered = "ready"
	Queued     = "queued"
	Complete   = "complete"
	NoChange   = "no_change" // a batch passed every phase and changed nothing
	Failed     = "error"

	AwaitingReview = "awaiting_review" // a batch passed every phase, and a person must review it before it lands
	Excluded       = "excluded"        // a person excluded the unit or batch from the run
)

// IsDone reports whether a unit or a batch with this status has nothing left to do.
func IsDone(status string) bool {
	return status == Complete || status == NoChange || status == Excluded
}

// A submitted job belongs to no flow. Its items have the rank of the phases that apply changes.
const (
	jobPhase = "job"
	jobRank  = 3
)

// QuestionPhase is the scheduler's name for work on a question of a person. It comes first in the
// queue, because a person waits for it and it holds no files.
const (
	QuestionPhase = "question"
	questionRank  = 1
)

// QueueOrder lists the names that the phases of all flows have in the queue, by rank.
func QueueOrder() [][]string {
	var order [][]string
	add := func(rank int, name string) {
		for len(order) < rank {
			order = append(order, nil)
		}
		if rank > 0 && name != "" && !slices.Contains(order[rank-1], name) {
			order[rank-1] = append(order[rank-1], name)
		}
	}
	var phases []Phase
	for _, f := range All() {
		phases = append(phases, f.Phases...)
	}
	for _, p := range phases {
		add(p.Rank, p.Name)
	}
	for _, p := range phases {
		add(p.Rank, p.FixQueue)
	}
	add(jobRank, jobPhase)
	add(questionRank, QuestionPhase)
	return order
}

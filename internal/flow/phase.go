package flow

// Unit is what one piece of work of a phase is about.
type Unit string

// The units.
const (
	Whole      Unit = "codebase"
	Controller Unit = "controller"
	Screen     Unit = "screen"
	BatchUnit  Unit = "batch"
)

// Executor is who does a phase.
type Executor string

// The executors.
const (
	BuiltIn Executor = "built-in"
	Agent   Executor = "agent"
	API     Executor = "api"
	Human   Executor = "human"
	Command Executor = "command"
)

// Phase is one step of a flow.
type Phase struct {
	Name     string   `json:"name"`
	Status   string   `json:"status"`           // of a unit that is in it
	Fixing   string   `json:"fixing,omitempty"` // and while an agent mends what it found
	Unit     Unit     `json:"unit"`
	Executor Executor `json:"executor"`
	Review   bool     `json:"review,omitempty"` // a person agrees before the next phase
	Writes   bool     `json:"writes,omitempty"` // it runs under the write locks of its batch
	Output   string   `json:"output,omitempty"` // its document; one for each topic: a folder
	Prompt   string   `json:"prompt,omitempty"` // what its agent is asked; of a command: to mend what it found
	Answer   string   `json:"answer,omitempty"` // the schema of the agent's answer
}

// Statuses that are no phase's own.
const (
	Idle       = "idle"
	Discovered = "ready"
	Queued     = "queued"
	Complete   = "complete"
	NoChange   = "no_change" // of a batch: it passed every phase and changed nothing
	Failed     = "error"
)

// IsDone reports whether a unit or a batch with a status has nothing left to do.
func IsDone(status string) bool { return status == Complete || status == NoChange }

package flow

import (
	"encoding/json"
	"time"

	"lockkeeper"
)

// These are the documents of a unit, in the order of the phases.
const (
	AnalysisFile   = "analysis.json"
	ExtractFile    = "extract.json"
	SynthesizeFile = "synthesize.json"
	AuditFile      = "audit.json"
	DecisionsFile  = "decisions.json"
	BatchesFile    = "batches.json"
	ResearchFolder = "research" // the folder with one text for each topic

	// These are the documents of a batch, in batches/<batch id>/.
	ApplyFile        = "apply.json"
	TestFile         = "test_results.json"
	VerificationFile = "verification.json"
	ReviewFile       = "review.json"
	LandedFile       = "landed.json"
)

// An Analysis describes the purpose of a controller. It is the answer of the phase analyze.
type Analysis struct {
	Purpose   string     `json:"purpose" text:"words" doc:"The purpose of the controller, in a few sentences."`
	Behaviour string     `json:"behaviour" text:"words" doc:"What the controller does today: actions, rules, side effects, and which inputs and permissions it does and does not check."`
	Screens   []Served   `json:"screens" doc:"The screens that the controller serves."`
	Relations []Relation `json:"relations" doc:"Other controllers that this one relates to."`
	Files     []string   `json:"files" text:"words" doc:"The files of the controller and the files that the controller depends on." each:"Path relative to the root."`
	Topics    []Topic    `json:"research_topics" doc:"Research questions about things outside of this codebase. The answers should help to improve the controller."`
}

// A Served is a screen that a controller serves.
type Served struct {
	Name   string `json:"name" text:"words" doc:"The name that people use for the screen."`
	Action string `json:"action" text:"words" doc:"The action that serves the screen."`
}

// A Relation describes how a controller relates to another one.
type Relation struct {
	Controller string `json:"controller" text:"words" doc:"Name of the other controller, such as blog/comments."`
	How        string `json:"how" text:"words" doc:"How the two controllers relate."`
}

// A Topic is a question to research. It gets its slug when it is stored.
type Topic struct {
	Slug   string `json:"slug,omitempty" in:"document" text:"id" doc:"Name of the file with the answer."`
	Prompt string `json:"prompt" text:"words" doc:"The complete question. It is sent without any other context."`
}

type Level string

const (
	High   Level = "high"
	Medium Level = "medium"
	Low    Level = "low"
)

// An Extract lists possible improvements. It is the answer of the phase extract. Items get
// their ids when it is stored.
type Extract struct {
	Items []Possible `json:"items" doc:"Every possible item, once."`
}

type Possible struct {
	ID          string `json:"id,omitempty" in:"document" required:"true" text:"words" doc:"Id of the item in this unit."`
	Description string `json:"description" text:"words" doc:"One concrete improvement, short and specific."`
}

// A Synthesis lists the possible items that fit the code. It is the answer of the phase
// synthesize.
type Synthesis struct {
	Items   []Ready   `json:"items" doc:"The items that a person should decide on."`
	Dropped []Dropped `json:"dropped" doc:"The items that are already done or do not apply."`
}

// A Ready is an improvement to decide on.
type Ready struct {
	ID          string `json:"id" text:"words" doc:"The id of the possible item."`
	Description string `json:"description" text:"words" doc:"One concrete improvement, short and specific."`
	Impact      Level  `json:"impact" doc:"How much the improvement helps."`
	Effort      Level  `json:"effort" doc:"How much work the improvement takes."`
	Rationale   string `json:"rationale" text:"words" doc:"Why the improvement is worth the effort, with reference to what the code does today."`
}

// A Dropped is an item that is not pursued, with the reason.
type Dropped struct {
	ID     string `json:"id" text:"words" doc:"The id of the item."`
	Reason string `json:"reason" text:"words" doc:"Why the item was dropped."`
}

// An Audit lists the ready items with earlier decisions.
type Audit struct {
	Items   []Audited `json:"items" doc:"The items that a person decides on."`
	Dropped []Dropped `json:"dropped" doc:"The items that a person rejected in an earlier run."`
}

// An Audited is a ready item with an earlier decision on it or on a similar item.
type Audited struct {
	Ready
	Prior *Prior `json:"prior,omitempty" doc:"An earlier decision on the same or a similar item."`
}

// A Prior is an earlier decision.
type Prior struct {
	Decision    Decision  `json:"decision" enum:"DEFER REJECT" doc:"The decision."`
	Description string    `json:"description" text:"words" doc:"Description of the item that was decided."`
	Similar     bool      `json:"similar,omitempty" doc:"Whether that item is only similar, not the same."`
	At          time.Time `json:"at" doc:"When the audit was made."`
	Notes       string    `json:"notes,omitempty" doc:"The person's notes."`
}

type Decision string

const (
	Todo   Decision = "TODO"
	Defer  Decision = "DEFER"
	Reject Decision = "REJECT"
)

// Decisions are the decisions on the items of a unit.
type Decisions struct {
	Items []Decided `json:"items" doc:"Every item with its decision."`
}

// A Decided is an item with its decision.
type Decided struct {
	Ready
	Decision Decision  `json:"decision" doc:"The decision."`
	By       string    `json:"by" text:"words" doc:"Who decided."`
	At       time.Time `json:"at" doc:"When the item was decided."`
	Notes    string    `json:"notes,omitempty" doc:"The person's notes."`
	Added    bool      `json:"added,omitempty" doc:"Whether a person added the item."`
}

// A Plan lists the batches of a unit in order.
type Plan struct {
	Batches  []Batch   `json:"batches" doc:"The batches, in the order in which they are done."`
	Approved *Approval `json:"approved,omitempty" doc:"Who approved the plan, and when. No batch starts before this."`
}

// An Approval records who approved, and when.
type Approval struct {
	By string    `json:"by" text:"words" doc:"The person's name."`
	At time.Time `json:"at" doc:"When the person did so."`
}

// A Batch is a set of changes that lands together, with the files that it may change.
type Batch struct {
	ID           string   `json:"id" text:"id" doc:"Id of the batch in this plan."`
	Title        string   `json:"title" doc:"What the batch does, in a few words."`
	Items        []string `json:"items" text:"words" doc:"Ids of the items that the batch implements." each:"Id of an item."`
	WriteTargets []string `json:"write_targets" min:"1" text:"words" doc:"Exact paths of the files that the batch changes or creates, relative to the root. Never a directory." each:"Path of one file, relative to the root."`
	Reads        []string `json:"reads,omitempty" text:"words" doc:"Files and directories that the batch depends on but does not change. If one changes, the batch is tested again." each:"Path relative to the root."`
	Effort       Level    `json:"effort,omitempty" doc:"How much work the whole batch takes."`
	After        []string `json:"after,omitempty" text:"words" doc:"Ids of the batches whose changes this batch needs." each:"Id of a batch."`
	Prompt       string   `json:"prompt,omitempty" doc:"For a task: the instructions for the agent."`
	Tests        []string `json:"tests,omitempty" text:"words" doc:"For a task: its own test commands." each:"A command."`
	Agent        string   `json:"agent,omitempty" doc:"For a task: the agent that does it. Without it, the default agent does."`
}

// A File is one changed file of a batch. The folder of the batch has its old and new content.
type File struct {
	Path string             `json:"path" text:"words" doc:"Path relative to the root."`
	Old  lockkeeper.Version `json:"old"`
	New  lockkeeper.Version `json:"new"`
}

// A Gap is a change that an agent made without a lock on the file.
type Gap struct {
	Path    string    `json:"path" doc:"Path relative to the root."`
	Reason  string    `json:"reason" doc:"Why the change was reverted."`
	Phase   string    `json:"phase" doc:"The phase that made the change."`
	Planned string    `json:"planned_by" doc:"The step that should have declared the file as a write target."`
	Rescue  string    `json:"rescue,omitempty" doc:"Id of the saved change, for lockkeeper rescue."`
	At      time.Time `json:"at" doc:"When the change was reverted."`
	Answer  string    `json:"answer,omitempty" doc:"A person's answer: dismissed, or the batch that makes the change later."`
	By      string    `json:"by,omitempty" doc:"Who answered."`
}

// A Call describes one call of an agent.
type Call struct {
	Agent   string        `json:"agent"`
	Phase   string        `json:"phase"`
	Model   string        `json:"model,omitempty"`
	Session string        `json:"session,omitempty"`
	USD     float64       `json:"cost_usd,omitempty"`
	Tokens  int64         `json:"tokens,omitempty"`
	Turns   int           `json:"turns,omitempty"`
	Denials []string      `json:"denials,omitempty"`
	Began   time.Time     `json:"began"`
	Took    time.Duration `json:"took"`
	Error   string        `json:"error,omitempty"`
	Note    string        `json:"note,omitempty"`   // parts of the answer that were ignored
	Output  string        `json:"output,omitempty"` // the file with the call's output, relative to the root
}

// An Applied describes the changes of an agent.
type Applied struct {
	Batch   string `json:"batch_sha256" text:"sum" doc:"SHA-256 of the batch definition that the agent was given."`
	Summary string `json:"summary" doc:"The agent's own summary."`
	Files   []File `json:"files" doc:"Changed files. Both versions of a file are stored under their hashes."`
	Gaps    []Gap  `json:"gaps" doc:"Changes to files that the grant did not cover. They were reverted."`
}

// A Checked is the result of a check phase of a batch.
type Checked struct {
	State   CheckState `json:"state,omitempty" doc:"The result. Empty: not complete, or stored by an earlier version."`
	Passed  bool       `json:"passed" doc:"Whether the state is \"passed\". Earlier versions read it."`
	Skipped string     `json:"skipped,omitempty" doc:"Why no command ran."`
	// AsBefore has a value exactly if the state is CheckAsBefore.
	AsBefore string     `json:"as_before,omitempty" doc:"What fails exactly as it did before the run."`
	Runs     []CheckRun `json:"runs" doc:"Every run of every command."`
	Fixes    int        `json:"fix_attempts" doc:"How often an agent was asked to fix the failure."`
	Asked    []string   `json:"asked,omitempty" doc:"The changes that a reviewer requested."`
	Summary  string     `json:"summary,omitempty" doc:"The summary of the last agent that changed the batch."`
	Again    []Recheck  `json:"rechecks,omitempty" doc:"Times at which the batch was tested again because its dependencies changed."`
	Files    []File     `json:"files" doc:"Changed files. Both versions of a file are stored under their hashes."`
	Gaps     []Gap      `json:"gaps" doc:"Changes to files that the grant did not cover. They were reverted."`
}

type CheckRun struct {
	Command  string        `json:"command" text:"words" doc:"The command."`
	Attempt  int           `json:"attempt" doc:"The number of earlier fixes."`
	Exit     int           `json:"exit" doc:"The exit status of the command."`
	Took     time.Duration `json:"took" doc:"Duration in nanoseconds."`
	Output   string        `json:"output" doc:"Path of the file with the output of the command, relative to the root."`
	Last     string        `json:"last,omitempty" doc:"The last part of the output of the command."`
	AsBefore bool          `json:"as_before,omitempty" doc:"Whether the command failed in the same way before the run."`
}

// A Recheck records that a batch was tested again because its dependencies changed.
type Recheck struct {
	Moved []string  `json:"moved" doc:"The changed dependencies." each:"Path relative to the root."`
	At    time.Time `json:"at" doc:"When the batch was tested again."`
}

// A Verdict is the answer of the phase verify.
type Verdict struct {
	Verdict string   `json:"verdict" enum:"pass fail" doc:"Whether the change may land."`
	Report  string   `json:"report" text:"words" doc:"What changed, and whether the change does what was requested and nothing else."`
	Issues  []string `json:"issues" text:"words" doc:"The problems, one per entry. Empty if there are none."`
}

// A Verification is the report that compares the original and the modified code.
type Verification struct {
	Verdict
	Files []File `json:"files" doc:"Changed files. Both versions of a file are stored under their hashes."`
}

// A Review is a person's review of the diff of a batch.
type Review struct {
	State    string    `json:"state" enum:"wanted approved returned" doc:"The state of the review."`
	Files    []File    `json:"files" doc:"Changed files. Both versions of a file are stored under their hashes."`
	Comments []string  `json:"comments,omitempty" doc:"The changes that the person requested."`
	By       string    `json:"by,omitempty" doc:"Who reviewed the diff."`
	At       time.Time `json:"at" doc:"When the state last changed."`
}

// A Landed records the landing of a batch.
type Landed struct {
	Landings []uint64  `json:"landings" doc:"Numbers of the landings of the batch."`
	Grant    string    `json:"grant_id" doc:"Id of the grant under which the batch landed."`
	Fence    uint64    `json:"fence" doc:"The fencing number of the grant."`
	Commit   string    `json:"commit,omitempty" doc:"The git commit, if one was made."`
	Files    []File    `json:"files" doc:"Changed files. Both versions of a file are stored under their hashes."`
	Again    []Recheck `json:"rechecks,omitempty" doc:"Times at which the batch was tested again because its dependencies changed."`
	At       time.Time `json:"at" doc:"When the batch landed."`
	Undone   *Approval `json:"undone,omitempty" doc:"Who undid the landings, and when."`
}

// A CheckState is the outcome of the tests or the CI checks of a batch.
type CheckState string

// The states of a check.
const (
	CheckPassed   CheckState = "passed"
	CheckFailed   CheckState = "failed"
	CheckSkipped  CheckState = "skipped"   // no command ran, so nothing was tested
	CheckAsBefore CheckState = "as_before" // a command failed exactly as it did on the tree with which the run started
)

// End sets the state after the last command: CheckSkipped if no command ran, CheckAsBefore if one
// failed as before the run, else CheckPassed.
func (c *Checked) End() {
	c.State = CheckPassed
	switch {
	case c.Skipped != "":
		c.State = CheckSkipped
	case c.AsBefore != "":
		c.State = CheckAsBefore
	}
	c.Passed = c.State == CheckPassed
}

// Cleared reports whether the batch can continue. A skipped check does not stop the batch, because
// people were warned that no tests are configured. Neither does a failure that the batch did not
// cause.
func (c *Checked) Cleared() bool {
	return c != nil && (c.State == CheckPassed || c.State == CheckSkipped || c.State == CheckAsBefore)
}

// UnmarshalJSON implements json.Unmarshaler. Earlier versions stored skipped checks as passed.
func (c *Checked) UnmarshalJSON(text []byte) error {
	type plain Checked
	if err := json.Unmarshal(text, (*plain)(c)); err != nil {
		return err
	}
	switch {
	case c.Skipped != "" && (c.Passed || c.State == CheckSkipped):
		c.State = CheckSkipped
	case c.State != "":
	case c.Passed:
		c.State = CheckPassed
	default:
		c.State = CheckFailed
	}
	c.Passed = c.State == CheckPassed
	return nil
}

package flow

import (
	"time"

	"lockkeeper"
)

// Names of the documents of a unit, in the order in which they come to be.
const (
	AnalysisFile   = "analysis.json"
	ExtractFile    = "extract.json"
	SynthesizeFile = "synthesize.json"
	AuditFile      = "audit.json"
	DecisionsFile  = "decisions.json"
	BatchesFile    = "batches.json"
	ResearchFolder = "research" // a text for each topic

	// Of a batch, in batches/<batch id>/.
	ApplyFile        = "apply.json"
	TestFile         = "test_results.json"
	CIFile           = "ci_results.json"
	VerificationFile = "verification.json"
	ReviewFile       = "review.json"
	LandedFile       = "landed.json"
)

// Analysis says what a controller is for. It is the answer of the phase analyze.
type Analysis struct {
	Purpose   string     `json:"purpose"`
	Behaviour string     `json:"behaviour"`
	Screens   []Served   `json:"screens"`
	Relations []Relation `json:"relations"`
	Files     []string   `json:"files"` // what it is made of and depends on, from the root
	Topics    []Topic    `json:"research_topics"`
}

// Served is a screen that a controller serves.
type Served struct {
	Name   string `json:"name"`
	Action string `json:"action"`
}

// Relation is how a controller relates to another one.
type Relation struct {
	Controller string `json:"controller"`
	How        string `json:"how"`
}

// Topic is something to be researched. Its slug is given when it is stored.
type Topic struct {
	Slug   string `json:"slug,omitempty"`
	Prompt string `json:"prompt"`
}

// Level is a rating.
type Level string

// The ratings.
const (
	High   Level = "high"
	Medium Level = "medium"
	Low    Level = "low"
)

// Extract lists what could be improved. It is the answer of the phase extract; ids are
// given when it is stored.
type Extract struct {
	Items []Possible `json:"items"`
}

// Possible is an improvement that could be made.
type Possible struct {
	ID          string `json:"id,omitempty"`
	Description string `json:"description"`
}

// Synthesis is what is left of the possible items once the code was looked at. It is the
// answer of the phase synthesize.
type Synthesis struct {
	Items   []Ready   `json:"items"`
	Dropped []Dropped `json:"dropped"`
}

// Ready is an improvement that is worth a decision.
type Ready struct {
	ID          string `json:"id"` // of the possible item
	Description string `json:"description"`
	Impact      Level  `json:"impact"`
	Effort      Level  `json:"effort"`
	Rationale   string `json:"rationale"`
}

// Dropped is an item that goes no further, and why.
type Dropped struct {
	ID     string `json:"id"`
	Reason string `json:"reason"`
}

// Audit is the ready items as earlier decisions leave them.
type Audit struct {
	Items   []Audited `json:"items"`
	Dropped []Dropped `json:"dropped"` // those that were rejected before
}

// Audited is a ready item with what was decided of it, or of one like it, before.
type Audited struct {
	Ready
	Prior *Prior `json:"prior,omitempty"`
}

// Prior is an earlier decision.
type Prior struct {
	Decision    Decision  `json:"decision"`
	Description string    `json:"description"`       // of the item it was made for
	Similar     bool      `json:"similar,omitempty"` // that one is alike, and not the same
	At          time.Time `json:"at"`
	Notes       string    `json:"notes,omitempty"`
}

// Decision is what becomes of an item.
type Decision string

// The decisions.
const (
	Todo   Decision = "TODO"
	Defer  Decision = "DEFER"
	Reject Decision = "REJECT"
)

// Decisions is what people decided of the items of a unit.
type Decisions struct {
	Items []Decided `json:"items"`
}

// Decided is an item with its decision.
type Decided struct {
	Ready
	Decision Decision  `json:"decision"`
	By       string    `json:"by"`
	At       time.Time `json:"at"`
	Notes    string    `json:"notes,omitempty"`
	Added    bool      `json:"added,omitempty"` // a person thought of it
}

// Plan is the batches of a unit, in order. The phase batch_plan answers with its batches.
type Plan struct {
	Batches  []Batch   `json:"batches"`
	Approved *Approval `json:"approved,omitempty"` // nothing is applied before
}

// Approval says who agreed, and when.
type Approval struct {
	By string    `json:"by"`
	At time.Time `json:"at"`
}

// Batch is work for one call of an agent, with the files that it may change.
type Batch struct {
	ID           string   `json:"id"`
	Title        string   `json:"title"`
	Items        []string `json:"items"` // ids of what is to be done
	WriteTargets []string `json:"write_targets"`
	Reads        []string `json:"reads,omitempty"` // what it depends on: if that moves, it is tested again
	Effort       Level    `json:"effort,omitempty"`
	After        []string `json:"after,omitempty"`  // ids of batches of the same plan
	Prompt       string   `json:"prompt,omitempty"` // of a task: what a person wants done
	Tests        []string `json:"tests,omitempty"`  // of a task: its own commands
	Agent        string   `json:"agent,omitempty"`  // of a task: who does it
}

// File is one changed file of a batch. What it held and holds is kept in the folder of
// the batch under its hash.
type File struct {
	Path string             `json:"path"`
	Old  lockkeeper.Version `json:"old"`
	New  lockkeeper.Version `json:"new"`
}

// Gap is a change that an agent made and that its grant did not cover.
type Gap struct {
	Path    string    `json:"path"`
	Reason  string    `json:"reason"`
	Phase   string    `json:"phase"`
	Planned string    `json:"planned_by"`       // the step that should have declared it
	Rescue  string    `json:"rescue,omitempty"` // where the change is kept
	At      time.Time `json:"at"`
	Answer  string    `json:"answer,omitempty"` // what a person made of it: dismissed, or the batch that follows it up
	By      string    `json:"by,omitempty"`
}

// Call is what is known of one call of an agent.
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
	Output  string        `json:"output,omitempty"` // where all that it said is, from the root
}

// Applied is what an agent made of a batch.
type Applied struct {
	Batch   string `json:"batch_sha256"` // of the definition it was made from
	Summary string `json:"summary"`
	Files   []File `json:"files"`
	Gaps    []Gap  `json:"gaps"`
}

// Checked is how the tests, or the CI checks, of a batch went.
type Checked struct {
	State   CheckState `json:"state,omitempty"`   // none: of an earlier version, or not over
	Passed  bool       `json:"passed"`            // for earlier versions: the state is CheckPassed
	Skipped string     `json:"skipped,omitempty"` // why there was nothing to run
	Runs    []CheckRun `json:"runs"`
	Fixes   int        `json:"fix_attempts"`
	Asked   []string   `json:"asked,omitempty"`   // what a person who looked at the diff wanted otherwise
	Summary string     `json:"summary,omitempty"` // of whoever changed it last
	Again   []Recheck  `json:"rechecks,omitempty"`
	Files   []File     `json:"files"` // as they were checked
	Gaps    []Gap      `json:"gaps"`  // of the fixes
}

// CheckRun is one run of one command.
type CheckRun struct {
	Command string        `json:"command"`
	Attempt int           `json:"attempt"` // how many fixes came before
	Exit    int           `json:"exit"`
	Took    time.Duration `json:"took"`
	Output  string        `json:"output"` // where what it said is kept, from the root
	Last    string        `json:"last,omitempty"`
}

// Recheck says that something a batch depends on moved after it was tested, so it was
// tested again.
type Recheck struct {
	Moved []string  `json:"moved"`
	At    time.Time `json:"at"`
}

// Verdict is the answer of the phase verify.
type Verdict struct {
	Verdict string   `json:"verdict"` // pass or fail
	Report  string   `json:"report"`
	Issues  []string `json:"issues"`
}

// Verification is the report on original and modified code.
type Verification struct {
	Verdict
	Files []File `json:"files"` // as they were verified
}

// Review is what a person says of the diff of a batch before it lands.
type Review struct {
	State    string    `json:"state"` // wanted, approved or returned
	Files    []File    `json:"files"` // as they were shown
	Comments []string  `json:"comments,omitempty"`
	By       string    `json:"by,omitempty"`
	At       time.Time `json:"at"`
}

// Landed says how a batch reached the shared tree.
type Landed struct {
	Landings []uint64  `json:"landings"`
	Grant    string    `json:"grant_id"`
	Fence    uint64    `json:"fence"`
	Commit   string    `json:"commit,omitempty"` // of git
	Files    []File    `json:"files"`
	Again    []Recheck `json:"rechecks,omitempty"`
	At       time.Time `json:"at"`
	Undone   *Approval `json:"undone,omitempty"`
}

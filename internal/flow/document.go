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
	ResearchFolder = "research" // a text for each topic

	// These are the documents of a batch, in batches/<batch id>/.
	ApplyFile        = "apply.json"
	TestFile         = "test_results.json"
	VerificationFile = "verification.json"
	ReviewFile       = "review.json"
	LandedFile       = "landed.json"
)

// An Analysis describes the purpose of a controller. It is the answer of the phase analyze.
type Analysis struct {
	Purpose   string     `json:"purpose"`
	Behaviour string     `json:"behaviour"`
	Screens   []Served   `json:"screens"`
	Relations []Relation `json:"relations"`
	Files     []string   `json:"files"` // its files and dependencies, relative to the root
	Topics    []Topic    `json:"research_topics"`
}

// A Served is a screen that a controller serves.
type Served struct {
	Name   string `json:"name"`
	Action string `json:"action"`
}

// A Relation describes how a controller relates to another one.
type Relation struct {
	Controller string `json:"controller"`
	How        string `json:"how"`
}

// A Topic is a question to research. It gets its slug when it is stored.
type Topic struct {
	Slug   string `json:"slug,omitempty"`
	Prompt string `json:"prompt"`
}

// A Level is a rating.
type Level string

// The ratings.
const (
	High   Level = "high"
	Medium Level = "medium"
	Low    Level = "low"
)

// An Extract lists possible improvements. It is the answer of the phase extract. Items get
// their ids when it is stored.
type Extract struct {
	Items []Possible `json:"items"`
}

// A Possible is a possible improvement.
type Possible struct {
	ID          string `json:"id,omitempty"`
	Description string `json:"description"`
}

// A Synthesis lists the possible items that fit the code. It is the answer of the phase
// synthesize.
type Synthesis struct {
	Items   []Ready   `json:"items"`
	Dropped []Dropped `json:"dropped"`
}

// A Ready is an improvement to decide on.
type Ready struct {
	ID          string `json:"id"` // the id of the possible item
	Description string `json:"description"`
	Impact      Level  `json:"impact"`
	Effort      Level  `json:"effort"`
	Rationale   string `json:"rationale"`
}

// A Dropped is an item that is not pursued, with the reason.
type Dropped struct {
	ID     string `json:"id"`
	Reason string `json:"reason"`
}

// An Audit lists the ready items with earlier decisions.
type Audit struct {
	Items   []Audited `json:"items"`
	Dropped []Dropped `json:"dropped"` // the items that were rejected before
}

// An Audited is a ready item with an earlier decision on it or on a similar item.
type Audited struct {
	Ready
	Prior *Prior `json:"prior,omitempty"`
}

// A Prior is an earlier decision.
type Prior struct {
	Decision    Decision  `json:"decision"`
	Description string    `json:"description"`       // the description of the decided item
	Similar     bool      `json:"similar,omitempty"` // the decided item is similar, not the same
	At          time.Time `json:"at"`
	Notes       string    `json:"notes,omitempty"`
}

// A Decision is the decision on an item.
type Decision string

// The decisions.
const (
	Todo   Decision = "TODO"
	Defer  Decision = "DEFER"
	Reject Decision = "REJECT"
)

// Decisions are the decisions on the items of a unit.
type Decisions struct {
	Items []Decided `json:"items"`
}

// A Decided is an item with its decision.
type Decided struct {
	Ready
	Decision Decision  `json:"decision"`
	By       string    `json:"by"`
	At       time.Time `json:"at"`
	Notes    string    `json:"notes,omitempty"`
	Added    bool      `json:"added,omitempty"` // added by a person
}

// A Plan lists the batches of a unit in order.
type Plan struct {
	Batches  []Batch   `json:"batches"`
	Approved *Approval `json:"approved,omitempty"` // nil: not approved, so nothing is applied
}

// An Approval records who approved, and when.
type Approval struct {
	By string    `json:"by"`
	At time.Time `json:"at"`
}

// A Batch is a set of changes that lands together, with the files that it may change.
type Batch struct {
	ID           string   `json:"id"`
	Title        string   `json:"title"`
	Items        []string `json:"items"` // ids of the items
	WriteTargets []string `json:"write_targets"`
	Reads        []string `json:"reads,omitempty"` // files it depends on; if one changes, the batch is tested again
	Effort       Level    `json:"effort,omitempty"`
	After        []string `json:"after,omitempty"`  // ids of batches of the same plan
	Prompt       string   `json:"prompt,omitempty"` // for a task
	Tests        []string `json:"tests,omitempty"`  // for a task
	Agent        string   `json:"agent,omitempty"`  // for a task; empty: the default agent
}

// A File is one changed file of a batch. The folder of the batch has its old and new content.
type File struct {
	Path string             `json:"path"`
	Old  lockkeeper.Version `json:"old"`
	New  lockkeeper.Version `json:"new"`
}

// A Gap is a change that an agent made without a lock on the file.
type Gap struct {
	Path    string    `json:"path"`
	Reason  string    `json:"reason"`
	Phase   string    `json:"phase"`
	Planned string    `json:"planned_by"`       // the step that should have declared the file
	Rescue  string    `json:"rescue,omitempty"` // the id for lockkeeper rescue
	At      time.Time `json:"at"`
	Answer  string    `json:"answer,omitempty"` // dismissed, or the batch that follows it up
	By      string    `json:"by,omitempty"`
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
	Output  string        `json:"output,omitempty"` // the file with its output, relative to the root
}

// An Applied describes the changes of an agent.
type Applied struct {
	Batch   string `json:"batch_sha256"` // the digest of the batch's definition
	Summary string `json:"summary"`
	Files   []File `json:"files"`
	Gaps    []Gap  `json:"gaps"`
}

// A Checked is the result of a check phase of a batch.
type Checked struct {
	State   CheckState `json:"state,omitempty"`   // empty: not complete, or stored by an earlier version
	Passed  bool       `json:"passed"`            // for earlier versions: the state is CheckPassed
	Skipped string     `json:"skipped,omitempty"` // why no command ran
	Runs    []CheckRun `json:"runs"`
	Fixes   int        `json:"fix_attempts"`
	Asked   []string   `json:"asked,omitempty"`   // the changes that a reviewer requested
	Summary string     `json:"summary,omitempty"` // the summary of the last agent
	Again   []Recheck  `json:"rechecks,omitempty"`
	Files   []File     `json:"files"` // the files as checked
	Gaps    []Gap      `json:"gaps"`  // the gaps of the fixes
}

// A CheckRun is one run of one command.
type CheckRun struct {
	Command string        `json:"command"`
	Attempt int           `json:"attempt"` // the number of earlier fixes
	Exit    int           `json:"exit"`
	Took    time.Duration `json:"took"`
	Output  string        `json:"output"` // the file with its output, relative to the root
	Last    string        `json:"last,omitempty"`
}

// A Recheck records that a batch was tested again because its dependencies changed.
type Recheck struct {
	Moved []string  `json:"moved"`
	At    time.Time `json:"at"`
}

// A Verdict is the answer of the phase verify.
type Verdict struct {
	Verdict string   `json:"verdict"` // pass or fail
	Report  string   `json:"report"`
	Issues  []string `json:"issues"`
}

// A Verification is the report that compares the original and the modified code.
type Verification struct {
	Verdict
	Files []File `json:"files"` // the files as verified
}

// A Review is a person's review of the diff of a batch.
type Review struct {
	State    string    `json:"state"` // wanted, approved or returned
	Files    []File    `json:"files"` // the files as shown
	Comments []string  `json:"comments,omitempty"`
	By       string    `json:"by,omitempty"`
	At       time.Time `json:"at"`
}

// A Landed records the landing of a batch.
type Landed struct {
	Landings []uint64  `json:"landings"`
	Grant    string    `json:"grant_id"`
	Fence    uint64    `json:"fence"`
	Commit   string    `json:"commit,omitempty"` // the git commit
	Files    []File    `json:"files"`
	Again    []Recheck `json:"rechecks,omitempty"`
	At       time.Time `json:"at"`
	Undone   *Approval `json:"undone,omitempty"`
}

// A CheckState is the outcome of the tests or the CI checks of a batch.
type CheckState string

// The states of a check.
const (
	CheckPassed  CheckState = "passed"
	CheckFailed  CheckState = "failed"
	CheckSkipped CheckState = "skipped" // no command ran, so nothing was tested
)

// End sets the state after the last command passed: CheckSkipped if no command ran, else
// CheckPassed.
func (c *Checked) End() {
	c.State = CheckPassed
	if c.Skipped != "" {
		c.State = CheckSkipped
	}
	c.Passed = c.State == CheckPassed
}

// Cleared reports whether the batch can continue. A skipped check does not stop the batch, because
// people were warned that no tests are configured.
func (c *Checked) Cleared() bool {
	return c != nil && (c.State == CheckPassed || c.State == CheckSkipped)
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

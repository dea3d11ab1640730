package run

import (
	"context"
	"time"

	"lockkeeper"
	"lockkeeper/gate"
	"lockkeeper/internal/agent"
	"lockkeeper/internal/agent/sandbox"
	"lockkeeper/internal/agent/toolcache"
	"lockkeeper/internal/flow"
	"lockkeeper/internal/flow/documents"
	"lockkeeper/internal/flow/progress"
	"lockkeeper/internal/flow/research"
	"lockkeeper/internal/git"
	"lockkeeper/internal/machine/process"
	"lockkeeper/lock"
	"lockkeeper/sched"
	"lockkeeper/store"
	"lockkeeper/tree"
)

// Options configure a pipeline. The caller closes open resources.
type Options struct {
	Run   string // the id of the run, whose earlier calls count against the budget
	Root  *tree.Root
	Store store.Store
	Locks *lock.Manager // nil: the legacy mode, without locks and queue
	Queue *sched.Queue
	Gate  *gate.Gate // nil: the pipeline only shows the run, until Lead
	// CheckCopy refuses locks on files that are older here than on another machine. Nil: nothing is.
	CheckCopy func(context.Context, []lockkeeper.Lock) error
	// Permits refuses a path that the gate does not permit.
	Permits func(path string) error
	Host    *process.Host
	Flow    flow.Flow

	Progress  *progress.Tracker
	Documents *documents.Store // the documents that Progress reads
	Layout    flow.Layout
	Discovery flow.DiscoverOptions
	Manifest  *flow.Manifest // for the screens flow
	Tasks     *flow.TaskFile // for the tasks flow

	Repo     *git.Repo        // nil: no git, or no commits wanted
	Research *research.Client // nil: people research
	Agents   Agents
	Prompts  *flow.Prompts
	Sandbox  sandbox.Level

	Calls      string           // the directory of call records, inside .lockkeeper; absolute
	Workspaces string           // the directory of workspaces, outside the root; absolute
	Slots      string           // the directory of a file for each test slot, outside the root; empty: none
	Caches     *toolcache.Store // nil: what tools add to their caches is always discarded
	Folder     string           // folder of the documents, relative to the root
	Analysis   string           // directory of the screens' documents, relative to the root, for the screens flow
	Own        []string         // directories of the pipeline, which workspaces do not contain
	Env        []string

	Limits     Limits
	Checks     Checks
	Budget     Budget
	Land       string // after_verify or after_apply
	Review     string // off, risky or all
	LockReads  bool
	Unverified bool // no agent compares a change with the original before it lands
	Linked     []string
	// Reach returns the files and variables that an agent may use in addition to its workspace.
	// The name "" is for test and CI commands. Nil: nothing.
	Reach  func(agent string) Reach
	Branch string
	// Baseline says what happens if the tests fail on the tree with which the run starts; empty: BaselineAsk.
	Baseline     string
	BaselineFile string // keeps the result of these tests, absolute; empty: nothing is kept
	// AskBaseline asks the person at the terminal whether to go on. Nil: there is no person.
	AskBaseline func(context.Context, *Baseline) (goOn bool, err error)
	Push        bool // each commit goes to the upstream of its branch
	Commit      bool // each batch that lands becomes a commit
	API         bool // topics go to the Messages API without asking

	Only  []string         // units, or unit/batch, unit/screen and tasks; empty: all
	Auto  *progress.Policy // decides in place of a person; nil: people decide
	Wait  bool             // do not end while decisions are open
	Retry bool             // retry failed work
	// Wants reports whether a unit, or a batch, screen or topic of it, is in the run. It replaces
	// Only once the run is conducted. It may include more work later; after an EventDecided the
	// run calls it again. Nil: it includes everything.
	Wants func(unit, part string) bool

	Crew *Crew // shares calls with other machines; nil: all of them run here

	Actor lockkeeper.Actor
	Tell  func(News) // receives events from any goroutine; it must return quickly
}

// Agents configure the calls of agents.
type Agents struct {
	Named      func(name string) (agent.Adapter, error) // returns the adapter of an agent; the name "" is the default agent
	Default    string                                   // the name of the default agent; only this agent gets Model and Args
	Model      string
	Args       []string
	Timeout    time.Duration
	StallAfter time.Duration
	Retry      agent.RetryPolicy
}

// Limits bound concurrency and repetition.
type Limits struct {
	Agents, API, Tests int
	Fixes              int            // number of fixes by agents in one check phase
	FixesIn            map[string]int // number of fixes for each check phase with a limit of its own, by name
	Rechecks           int            // tests of one batch because a dependency changed
	CheckTimeout       time.Duration
	LimitPause         time.Duration // the pause for a rate limit without a reset time
}

// prepared returns how many calls of agents are prepared before they have a slot.
func (l Limits) prepared() int { return sched.Limits{Agents: l.Agents}.Prepared() }

// FixesOf returns how many fixes agents may make in a check phase.
func (l Limits) FixesOf(phase string) int {
	if n, ok := l.FixesIn[phase]; ok {
		return n
	}
	return l.Fixes
}

// Checks are the commands that a batch must pass.
type Checks struct {
	Test     string              // command that tests a file; {path} and {controller} are filled in
	TestPath string              // the test file of a controller
	Suite    string              // all tests, for a batch whose test file is missing
	Commands map[string][]string // commands of the other check phases, by name
}

// A Budget is the most that a run may spend; 0: no limit.
type Budget struct {
	USD    float64
	Tokens int64
}

// News is an event of a run, for people.
type News struct {
	At    time.Time `json:"at"`
	Kind  NewsKind  `json:"kind"`
	Unit  string    `json:"unit,omitempty"`
	Batch string    `json:"batch,omitempty"`
	Phase string    `json:"phase,omitempty"`
	Item  string    `json:"item,omitempty"`
	Text  string    `json:"text,omitempty"`
}

type NewsKind string

// The kinds of news.
const (
	NewsRun      NewsKind = "run"       // about the whole run
	NewsStarted  NewsKind = "started"   // a phase began
	NewsDone     NewsKind = "done"      // a phase stored its document
	NewsSkipped  NewsKind = "skipped"   // a test or CI phase had no command to run
	NewsBaseline NewsKind = "baseline"  // the tests fail on the tree with which the run started
	NewsAsBefore NewsKind = "as_before" // the tests of a batch fail as they did before the run
	NewsRed      NewsKind = "red"       // a test or CI command failed, and an agent may fix it
	NewsFailed   NewsKind = "failed"
	NewsGap      NewsKind = "gap"
	NewsLanded   NewsKind = "landed"
	NewsNoChange NewsKind = "no_change" // a batch is done and changed nothing
	NewsUndone   NewsKind = "undone"    // the run undid landings that were made before their tests
	NewsAgain    NewsKind = "again"     // a batch is tested again
	NewsStalled  NewsKind = "stalled"
	NewsWarning  NewsKind = "warning"
	NewsPaused   NewsKind = "paused"
	NewsResumed  NewsKind = "resumed"
	NewsPerson   NewsKind = "person" // a person must decide
)

// An execution carries out one work item: an item of the queue or, in the legacy mode, a
// goroutine.
type execution interface {
	// Phase releases the slots of one phase and waits for those of the next.
	Phase(ctx context.Context, phase string, pools ...string) error
	// ReturnSlots releases the slots, because the processes that needed them have ended.
	ReturnSlots(ctx context.Context) error
	Note(ctx context.Context, text string) error
	ID() string
	Mark() string             // text that identifies the processes of the agent
	Grant() *lockkeeper.Grant // nil in the legacy mode
	Slot() int                // the slot in the test pool; 0: none
	Started(ctx context.Context, group lockkeeper.Process) error
}

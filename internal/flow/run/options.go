package run

import (
	"context"
	"time"

	"lockkeeper"
	"lockkeeper/gate"
	"lockkeeper/internal/agent"
	"lockkeeper/internal/agent/sandbox"
	"lockkeeper/internal/flow"
	"lockkeeper/internal/flow/progress"
	"lockkeeper/internal/flow/research"
	"lockkeeper/internal/flow/sidecar"
	"lockkeeper/internal/git"
	"lockkeeper/internal/machine/process"
	"lockkeeper/lock"
	"lockkeeper/sched"
	"lockkeeper/store"
	"lockkeeper/tree"
)

// Options say what a pipeline works on and with. All that is open stays the caller's.
type Options struct {
	Run   string // names the run: what it spent before counts
	Root  *tree.Root
	Store store.Store
	Locks *lock.Manager // nil: the legacy mode, without locks and queue
	Queue *sched.Queue
	Gate  *gate.Gate // nil: for somebody who only looks
	// Permits refuses a path that the gate would let nobody write to.
	Permits func(path string) error
	Host    *process.Host
	Flow    flow.Flow

	Progress  *progress.Tracker
	Documents *sidecar.Store // that the book is made of
	Layout    flow.Layout
	Discovery flow.DiscoverOptions
	Manifest  *flow.Manifest // of the screens flow
	Tasks     *flow.TaskFile // of the tasks flow

	Repo     *git.Repo        // nil: no git, or no commits wanted
	Research *research.Client // nil: people research
	Agents   Agents
	Prompts  *flow.Prompts
	Sandbox  sandbox.Level

	Calls      string   // where calls of agents leave their traces: inside .lockkeeper, absolute
	Workspaces string   // where copies of the tree are made: outside the root, absolute
	Sidecar    string   // from the root
	Analysis   string   // from the root, of the screens flow
	Own        []string // folders that are the pipeline's own: no agent needs them, and they change all the time
	Env        []string

	Limits    Limits
	Checks    Checks
	Budget    Budget
	Land      string // after_verify or after_apply
	Review    string // off, risky or all
	LockReads bool
	Linked    []string
	// Reach says what the agent with a name, and tests and CI commands by the name "", may
	// use besides their workspace. Nil: nothing.
	Reach  func(agent string) Reach
	Branch string
	Commit bool // each batch that lands becomes a commit
	API    bool // topics go to the Messages API without asking

	Only  []string         // units, or unit/batch, unit/screen and tasks; empty: all
	Auto  *progress.Policy // decides in place of a person; nil: people decide
	Wait  bool             // do not end while decisions are open
	Retry bool             // retry what failed before
	// Wants reports whether a unit, or a batch, screen or topic of it, is in the run. It
	// replaces Only once the run is conducted. It may want more later; an EventDecided makes
	// the run ask again. Nil: it wants everything.
	Wants func(unit, part string) bool

	Actor lockkeeper.Actor
	Tell  func(News) // receives what happens, from any goroutine; it must return quickly
}

// Agents are who does the work.
type Agents struct {
	Named      func(name string) (agent.Adapter, error) // "" is the usual one
	Usual      string                                   // its name: model and arguments are for it alone
	Model      string
	Args       []string
	Timeout    time.Duration
	StallAfter time.Duration
	Retry      agent.RetryPolicy
}

// Limits bound what runs at once, and how often what fails is fixed.
type Limits struct {
	Agents, API, Tests int
	Fixes              int            // how often an agent may fix what a check finds
	FixesIn            map[string]int // of check phases that have another limit, by name
	Rechecks           int            // how often a batch is tested again because something moved
	CheckTimeout       time.Duration
	LimitPause         time.Duration // how long a limit of the API lasts that does not say so
}

func (l Limits) fixesIn(phase string) int {
	if n, ok := l.FixesIn[phase]; ok {
		return n
	}
	return l.Fixes
}

// Checks are the commands that a batch has to pass.
type Checks struct {
	Test     string              // {path} and {controller} are filled in
	TestPath string              // the test file of a controller
	Suite    string              // all tests, for a batch whose test file is missing
	Commands map[string][]string // of the other check phases, by name
}

// Budget is what a run may spend; 0 is no limit.
type Budget struct {
	USD    float64
	Tokens int64
}

// News is something that happened in a run, fit to be shown.
type News struct {
	At    time.Time `json:"at"`
	Kind  NewsKind  `json:"kind"`
	Unit  string    `json:"unit,omitempty"`
	Batch string    `json:"batch,omitempty"`
	Phase string    `json:"phase,omitempty"`
	Item  string    `json:"item,omitempty"`
	Text  string    `json:"text,omitempty"`
}

// NewsKind says what happened.
type NewsKind string

// The kinds of news.
const (
	NewsRun      NewsKind = "run"     // of the run as a whole
	NewsStarted  NewsKind = "started" // a phase began
	NewsDone     NewsKind = "done"    // a phase left its document
	NewsSkipped  NewsKind = "skipped" // a test or CI phase had no command to run
	NewsRed      NewsKind = "red"     // a test or CI command failed, and an agent may fix it
	NewsFailed   NewsKind = "failed"
	NewsGap      NewsKind = "gap"
	NewsLanded   NewsKind = "landed"
	NewsNoChange NewsKind = "no_change" // a batch is done and changed nothing
	NewsUndone   NewsKind = "undone"    // what landed before its tests is taken out again
	NewsAgain    NewsKind = "again"     // it is tested again, because something moved
	NewsStalled  NewsKind = "stalled"
	NewsWarning  NewsKind = "warning"
	NewsPaused   NewsKind = "paused"
	NewsResumed  NewsKind = "resumed"
	NewsPerson   NewsKind = "person" // somebody is needed
)

// An execution is one piece of work in the hands of whoever does it: an item of the queue, or,
// in the legacy mode, nothing but a goroutine.
type execution interface {
	// Phase gives back the slots of one phase and waits for those of the next.
	Phase(ctx context.Context, phase string, pools ...string) error
	// Holds reports whether it has a slot of a pool.
	Holds(pool string) bool
	Note(ctx context.Context, text string) error
	ID() string
	Mark() string             // what processes that work for it carry
	Grant() *lockkeeper.Grant // nil: there is none
	Slot() int                // of the pool of test runs; 0: none
	Started(ctx context.Context, group lockkeeper.Process) error
}

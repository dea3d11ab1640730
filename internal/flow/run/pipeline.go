package run

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"lockkeeper"
	"lockkeeper/gate"
	"lockkeeper/internal/agent"
	"lockkeeper/internal/agent/workspace"
	"lockkeeper/internal/flow"
	"lockkeeper/internal/machine/process"
	"lockkeeper/sched"
)

// A Pipeline runs one flow over one codebase.
type Pipeline struct {
	opt        Options
	ledger     *ledger
	durations  *Durations // what earlier work took
	sums       *workspace.Sums
	workspaces workspaceBase
	branch     string // the branch of the run; empty: no git
	self       *lockkeeper.Process

	landing sync.Mutex    // held during a landing of this process
	lander  chan struct{} // holds one token; only the batch that took it may land

	units  []string
	found  map[string]flow.FoundUnit
	groups map[string]flow.ScreenGroup
	parts  map[string][]string // the included batches or screens of units that are only partly in the run
	faults error               // units that the survey could not read

	slots       map[string]chan int // free slots of the legacy mode, by pool
	unqueuedIDs atomic.Uint64
	closing     atomic.Bool // the run is stopping its items, so their errors are not failures
	starting    sync.Mutex  // held while a call or a check is announced, so that none is after halt
	halted      atomic.Bool // nothing new starts
	taking      atomic.Bool // the tests of the baseline run
	baseline    baselineTask
	common      commonFailures
	worker      *sched.Worker
	attention   chan struct{} // receives a value when work may be due
	waited      time.Duration // how long Run waited for people while nothing ran, and for the ends of rate limits

	crew       *crew          // nil: all calls run here
	goroutines sync.WaitGroup // running work of the legacy mode
	oddities   sync.Map       // the workspace.Oddity values that were reported

	mu        sync.Mutex
	dirty     map[string]bool       // units to advance
	going     map[string]bool       // running work of the legacy mode, by key
	failed    map[string]error      // failed work of the legacy mode, and blocked units, by key
	requested map[string][]flow.Gap // files that agents requested, by item
	until     time.Time             // the end of a rate limit; zero: none
	budget    *agent.BudgetError    // why the budget is used up; nil: it is not

	troubles map[string]time.Time // when each error was reported last
}

func New(o Options) (*Pipeline, error) {
	p := &Pipeline{opt: o, sums: workspace.NewSums(), slots: slotsOf(o.Limits), attention: make(chan struct{}, 1), lander: make(chan struct{}, 1), dirty: map[string]bool{}, going: map[string]bool{}, failed: map[string]error{}, requested: map[string][]flow.Gap{}, troubles: map[string]time.Time{}}
	p.lander <- struct{}{}
	var err error
	if p.ledger, err = openLedger(o.Calls, o.Run, o.Budget); err != nil {
		return nil, err
	}
	timings, err := p.ledger.timings()
	if err != nil {
		return nil, err
	}
	p.durations = durationsOf(o.Flow, timings)
	self, err := process.Self()
	if err != nil {
		return nil, err
	}
	p.self = &self
	return p, os.MkdirAll(o.Workspaces, 0o700)
}

// Lead lets the pipeline conduct a run: it can land changes, and it counts the earlier cost of
// the run. Before Lead it can only show the run.
func (p *Pipeline) Lead(run string, g *gate.Gate) (err error) {
	p.opt.Run, p.opt.Gate = run, g
	if p.opt.Wants != nil {
		p.opt.Only, p.units = nil, nil // keeps all units: Wants can include more later
	}
	p.ledger, err = p.ledger.of(run, p.opt.Budget)
	return err
}

// Waited returns how long Run waited for people while nothing ran, and for the ends of rate limits.
// Run must have returned.
func (p *Pipeline) Waited() time.Duration { return p.waited }

// Spent returns the cost of the run so far.
func (p *Pipeline) Spent() agent.Spent { return p.ledger.spent() }

func (p *Pipeline) tell(n News) {
	n.At = time.Now()
	if p.opt.Tell != nil {
		p.opt.Tell(n)
	}
}

// troubleEvery is the shortest time between two reports of the same background error.
const troubleEvery = time.Minute

// trouble reports a background error. Background work is retried every second, so trouble reports
// the same error at most once per troubleEvery.
func (p *Pipeline) trouble(err error) {
	p.mu.Lock()
	last := p.troubles[err.Error()]
	again := time.Since(last) < troubleEvery
	if !again {
		p.troubles[err.Error()] = time.Now()
	}
	p.mu.Unlock()
	if !again {
		p.tell(News{Kind: NewsWarning, Text: err.Error()})
	}
}

func (p *Pipeline) checkEnv(t execution, w *workspace.Workspace) []string {
	// What npm says about newer versions is no result of a test, and hides the last line of one.
	env := append(w.Env(p.opt.Env), "LOCKKEEPER_ITEM="+t.ID(), "NPM_CONFIG_UPDATE_NOTIFIER=false")
	if t.Slot() != 0 {
		env = append(env, fmt.Sprintf("LOCKKEEPER_SLOT=%d", t.Slot()))
	}
	return env
}

func (p *Pipeline) filesOf(unit string) []string {
	if f, ok := p.found[unit]; ok {
		return f.Files
	}
	var files []string
	for _, s := range p.groups[unit].Screens {
		files = append(files, p.opt.Layout.ReadsOf(s)...)
	}
	return flow.Targets(files)
}

func (p *Pipeline) testOf(unit string) string {
	if f, ok := p.found[unit]; ok {
		return f.Test
	}
	return flow.TestOf(p.opt.Checks.TestPath, unit)
}

func counted(n int, what string) string {
	if n != 1 {
		what += "s"
	}
	return fmt.Sprintf("%d %s", n, what)
}

// text encodes a document for a prompt.
func text(v any) string {
	b, err := json.MarshalIndent(v, "", "  ")
	if err != nil { // cannot happen: documents have only strings and numbers
		return err.Error()
	}
	return string(b)
}

func (p *Pipeline) mark(units ...string) {
	p.mu.Lock()
	for _, u := range units {
		p.dirty[u] = true
	}
	p.mu.Unlock()
	select {
	case p.attention <- struct{}{}:
	default: // a wakeup is pending
	}
}

func (p *Pipeline) marked() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	defer clear(p.dirty)
	return slices.Sorted(maps.Keys(p.dirty))
}

// stopping reports whether an error only means that the run is stopping.
func (p *Pipeline) stopping(err error) bool {
	return p.closing.Load() && err != nil
}

// pauseUntil pauses the run until a rate limit has passed.
func (p *Pipeline) pauseUntil(until time.Time, why string) {
	p.mu.Lock()
	told := !until.After(p.until)
	if !told {
		p.until = until
	}
	p.mu.Unlock()
	if told {
		return
	}
	if p.worker != nil {
		p.worker.Pause()
	}
	p.tell(News{Kind: NewsPaused, Text: fmt.Sprintf("nothing starts until %s: %s", until.Local().Format("15:04:05"), why)})
	p.mark()
}

// A Pause says why a run starts nothing. The zero Pause means that it does.
type Pause struct {
	Until  time.Time `json:"until,omitzero"`   // the end of a rate limit
	Budget string    `json:"budget,omitempty"` // why the budget is used up
}

// Paused returns why the run starts nothing now.
func (p *Pipeline) Paused() Pause {
	p.mu.Lock()
	defer p.mu.Unlock()
	pause := Pause{Until: p.until}
	if p.budget != nil {
		pause.Budget = p.budget.Reason
	}
	return pause
}

// Weights returns the usual seconds of each phase of the flow, and whether any of them was recorded.
func (p *Pipeline) Weights() (map[string]float64, bool) { return p.durations.Weights(p.opt.Flow) }

// halt starts nothing new and lets running work finish.
func (p *Pipeline) halt(why string) {
	p.starting.Lock()
	p.halted.Store(true)
	p.starting.Unlock()
	if p.worker != nil {
		p.worker.Pause()
	}
	p.tell(News{Kind: NewsRun, Text: why})
	p.mark()
}

// begin announces a call or a check that is about to start. If nothing may start, because the run
// stops or waits for the end of a rate limit, it returns a *pausedError, which returns the work to
// the queue.
func (p *Pipeline) begin(q question, text string) error {
	p.starting.Lock()
	defer p.starting.Unlock()
	if err := p.resting(); err != nil {
		return err
	}
	p.news(NewsStarted, q, text)
	return nil
}

// resting returns a *pausedError if no call may start now.
func (p *Pipeline) resting() error {
	if p.halted.Load() {
		return &pausedError{errors.New("the run is stopping")}
	}
	if until := p.limited(); !until.IsZero() {
		return &pausedError{fmt.Errorf("nothing starts until %s", until.Local().Format("15:04:05"))}
	}
	return nil
}

// exhausted pauses the run for good because the budget is used up.
func (p *Pipeline) exhausted(why *agent.BudgetError) {
	p.mu.Lock()
	first := p.budget == nil
	p.budget = why
	p.mu.Unlock()
	if !first {
		return
	}
	if p.worker != nil {
		p.worker.Pause()
	}
	p.tell(News{Kind: NewsPaused, Text: why.Error()})
	p.mark()
}

package run

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"lockkeeper"
	"lockkeeper/internal/flow"
	"lockkeeper/internal/flow/progress"
	"lockkeeper/internal/surface/feed"
	"lockkeeper/sched"
)

// An Outcome is the result of a run so far.
type Outcome struct {
	Complete int                 `json:"complete"`
	Failed   int                 `json:"failed"`
	Excluded int                 `json:"excluded,omitempty"` // units that people excluded
	Waiting  []progress.Decision `json:"waiting"`            // open decisions
	Stopped  bool                `json:"stopped"`
	Budget   string              `json:"budget,omitempty"`   // why the budget is used up; empty: it is not
	Baseline *Baseline           `json:"baseline,omitempty"` // the tests on the tree with which the run started; nil: they did not run
	Unpushed string              `json:"unpushed,omitempty"` // why the last commit is not at the git server; empty: it is, or nothing is pushed
	State    *State              `json:"state"`
}

// Run conducts the flow until every remaining step needs a person. When stop is closed, Run
// starts nothing new and finishes running work. When ctx ends, Run stops running work, which
// returns to the queue.
func (p *Pipeline) Run(ctx context.Context, stop <-chan struct{}) (out *Outcome, err error) {
	if err := p.discover(ctx); err != nil {
		return nil, err
	}
	if err := p.sweep(ctx); err != nil {
		return nil, err
	}
	if p.opt.Repo != nil {
		if err := p.enterBranch(ctx); err != nil {
			return nil, err
		}
	}
	defer func() { err = errors.Join(err, p.closeBase(context.WithoutCancel(ctx))) }()
	events, err := feed.Open(ctx, p.opt.Store, feed.Options{})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, events.Close()) }()
	if p.opt.Crew != nil && p.opt.Locks != nil {
		p.crew = newCrew(p)
		leave, err := p.crew.start(ctx)
		if err != nil {
			return nil, err
		}
		defer leave()
	}
	if p.opt.Locks != nil {
		if err := p.startWorker(ctx); err != nil {
			return nil, err
		}
		defer func() {
			p.closing.Store(true)
			err = errors.Join(err, p.worker.Close())
		}()
	}
	if p.opt.Retry {
		if err := p.retryFailed(ctx); err != nil {
			return nil, err
		}
	}
	p.mark(p.units...)
	defer p.goroutines.Wait()
	p.goroutines.Go(func() { p.prepareBase(ctx) })
	stopped, err := p.conduct(ctx, stop, events)
	if err != nil {
		return nil, err
	}
	if !stopped && !p.overBudget() && len(p.opt.Only) == 0 {
		if err := p.discardUnused(ctx); err != nil {
			return nil, err
		}
	}
	if err := p.repairIndex(ctx); err != nil {
		return nil, err
	}
	return p.outcome(context.WithoutCancel(ctx), stopped)
}

// rootPrefix precedes the name of a flow in the Root field of its items.
const rootPrefix = "flow/"

// root returns the root of the flow's items. Only the worker of the flow's conductor takes items
// with this root.
func (p *Pipeline) root() string { return rootPrefix + p.opt.Flow.Name }

// guestSlots is how many more items the worker may run for calls on other machines.
func (p *Pipeline) guestSlots() int {
	if p.crew == nil {
		return 0
	}
	return 1_000
}

func (p *Pipeline) startWorker(ctx context.Context) (err error) {
	l := p.opt.Limits
	p.worker, err = p.opt.Queue.Start(ctx, sched.WorkerOptions{
		Slots: l.Agents + l.prepared() + l.API + 2*l.Tests + 8 + p.guestSlots(), // more than all pools, because a batch keeps a worker slot while it waits for its next phase
		Ahead: true,
		Node:  p.self.Host, Process: p.self, Roots: []string{p.root()}, Only: true,
		CheckFresh: p.checkItem, Run: p.work, OnEnd: p.ended, TickEvery: time.Second, Paused: true,
		OnError: p.trouble,
	})
	if err != nil {
		return err
	}
	// Reserve work that an earlier conductor started. Otherwise new work could acquire its locks
	// and change its files while it waits for a slot.
	_, err = p.opt.Queue.Tick(ctx)
	if err == nil {
		err = p.opt.Queue.ReserveBegun(ctx, p.root())
	}
	if err != nil {
		err = errors.Join(err, p.worker.Close())
	}
	return err
}

// conduct advances the marked units until the run is idle.
func (p *Pipeline) conduct(ctx context.Context, stop <-chan struct{}, events *feed.Feed) (stopped bool, err error) {
	ctx, cancel := context.WithCancelCause(ctx)
	var following sync.WaitGroup
	following.Go(func() { p.follow(ctx, events, cancel) })
	defer following.Wait()
	defer cancel(nil)
	p.prepareBaseline(ctx)
	begun := false
	resume := time.NewTimer(time.Hour)
	defer resume.Stop()
	for {
		stopped = p.halted.Load()
		for _, unit := range p.marked() {
			p.noteBlocked(unit, p.advance(ctx, unit))
		}
		p.askCommon()
		if !begun && p.worker != nil && !p.isAsking() {
			p.worker.Resume()
		}
		begun = true
		if until := p.limited(); !until.IsZero() {
			resume.Reset(time.Until(until))
		}
		idle, err := p.isIdle(ctx)
		if err != nil {
			return false, err
		}
		waiting := idle || !p.limited().IsZero()
		if idle && p.opt.Wait && !stopped && !p.overBudget() {
			open, err := p.opt.Progress.Waiting(ctx, p.units)
			if err != nil {
				return false, err
			}
			idle = len(open) == 0
		}
		if idle {
			return stopped, nil
		}
		began := time.Now()
		select {
		case <-p.attention:
		case <-resume.C:
			p.resumeAfterLimit()
		case <-stop:
			stop = nil
			p.halt("stopping: running work finishes, nothing new starts")
		case <-ctx.Done():
			p.closing.Store(true)
			return true, lostFeed(ctx)
		}
		if waiting {
			p.waited += time.Since(began)
		}
	}
}

// errFeed reports that the conductor cannot follow the event log.
var errFeed = errors.New("cannot follow the event log")

// lostFeed returns the cause if ctx ended because the event log failed, and nil otherwise.
func lostFeed(ctx context.Context) error {
	if cause := context.Cause(ctx); errors.Is(cause, errFeed) {
		return cause
	}
	return nil
}

// follow marks every unit when a person acts.
func (p *Pipeline) follow(ctx context.Context, events *feed.Feed, end context.CancelCauseFunc) {
	for after := events.Last(); ; {
		list, err := events.Next(ctx, after)
		if err != nil {
			if ctx.Err() == nil {
				end(errors.Join(errFeed, err))
			}
			return
		}
		for _, ev := range list {
			after = ev.Seq
			if concerns(ev) {
				p.mark(p.units...)
			}
		}
	}
}

// noteBlocked records why a unit cannot advance, or that it can. Other units continue.
func (p *Pipeline) noteBlocked(unit string, why error) {
	key := p.key(workItem{Work: Work{Unit: unit}, phase: "advance"})
	p.mu.Lock()
	was := p.failed[key]
	if delete(p.failed, key); why != nil {
		p.failed[key] = why
	}
	p.mu.Unlock()
	if why != nil && (was == nil || was.Error() != why.Error()) {
		p.tell(News{Kind: NewsFailed, Unit: unit, Text: why.Error()})
	}
}

// concerns reports whether an event can make work due.
func concerns(ev lockkeeper.Event) bool {
	return ev.Kind == lockkeeper.EventDecided || ev.Kind == lockkeeper.EventRequeued && ev.Actor.Kind != lockkeeper.ActorSystem
}

func (p *Pipeline) limited() time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.until
}

func (p *Pipeline) resumeAfterLimit() {
	p.mu.Lock()
	due := !p.until.IsZero() && !time.Now().Before(p.until)
	if due {
		p.until = time.Time{}
	}
	broke := p.budget != nil
	p.mu.Unlock()
	if due && !broke {
		p.tell(News{Kind: NewsResumed, Text: "the rate limit has passed"})
		p.startAgain()
	}
}

func (p *Pipeline) overBudget() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.budget != nil
}

// isIdle reports whether nothing runs and nothing can start without a person.
func (p *Pipeline) isIdle(ctx context.Context) (bool, error) {
	p.mu.Lock()
	busy := len(p.dirty) > 0 || len(p.going) > 0 || !p.until.IsZero() || p.taking.Load() && !p.halted.Load()
	broke := p.budget != nil
	p.mu.Unlock()
	if busy {
		return false, nil
	}
	items, err := p.items(ctx)
	if err != nil {
		return false, err
	}
	paused := broke || p.worker != nil && p.worker.Paused()
	for _, it := range items {
		if it.Status == lockkeeper.ItemDispatched || it.Status == lockkeeper.ItemQueued && !paused {
			return false, nil
		}
	}
	return true, nil
}

// advance queues the next phase of a unit, unless it waits for a person.
func (p *Pipeline) advance(ctx context.Context, unit string) error {
	u, err := p.readUnit(ctx, unit)
	if err != nil {
		return err
	}
	for _, bad := range u.Malformed {
		p.tell(News{Kind: NewsWarning, Unit: unit, Text: fmt.Sprintf("%s:%d: %s; its phase runs again", bad.Path, bad.Line, bad.Reason)})
	}
	if err := p.queueQuestions(ctx, u); err != nil {
		return err
	}
	switch {
	case u.Excluded != nil:
		return nil
	case len(u.Batches) > 0 && !u.AwaitsReview:
		return p.advanceBatches(ctx, u)
	case flow.IsDone(u.Status()) || u.AwaitsReview:
		return nil
	}
	phase, _ := p.opt.Flow.Phase(u.Phase())
	if queue := p.unitSteps()[phase.Step].queue; queue != nil {
		return queue(ctx, u, phase)
	}
	return nil
}

// readUnit reads a unit, lets a policy decide, and notes the questions of the unit.
func (p *Pipeline) readUnit(ctx context.Context, unit string) (*progress.Unit, error) {
	p.common.reading.Lock()
	defer p.common.reading.Unlock()
	u, err := p.opt.Progress.Unit(ctx, unit)
	if err != nil {
		return nil, err
	}
	if u.NeedsRecovery() { // a process died while it stored decisions
		if err := p.opt.Progress.Recover(ctx, unit); err != nil {
			return nil, err
		}
		if u, err = p.opt.Progress.Unit(ctx, unit); err != nil {
			return nil, err
		}
	}
	if p.opt.Auto != nil {
		decided, err := p.opt.Progress.AutoDecide(ctx, unit, *p.opt.Auto, p.opt.Actor.Name)
		if err != nil {
			return nil, err
		}
		if len(decided) > 0 {
			if u, err = p.opt.Progress.Unit(ctx, unit); err != nil {
				return nil, err
			}
		}
	}
	p.noteQuestions(u)
	return u, nil
}

// advanceBatches queues the batches that can start.
func (p *Pipeline) advanceBatches(ctx context.Context, u *progress.Unit) error {
	behind := p.behind(u)
	for i := range u.Batches {
		b := &u.Batches[i]
		if b.Next == "" || b.AwaitsReview || !b.Approved || len(b.Blocked) > 0 || !p.wants(Work{Unit: u.Name, Kind: string(flow.BatchUnit), Part: b.ID}) {
			continue
		}
		if !p.hasBaseline() {
			return nil // the end of the tests marks every unit
		}
		d := workItem{Work: Work{Unit: u.Name, Kind: string(flow.BatchUnit), Part: b.ID}, phase: p.queuedIn(b), generation: b.Digest[:8], targets: b.WriteTargets, reads: b.Reads, behind: behind[b.ID]}
		if phase, _ := p.opt.Flow.Phase(b.Next); phase.Executor == flow.Agent || b.Returned() {
			d.pools = []string{sched.PoolAgent}
		}
		if err := p.enqueue(ctx, d); err != nil {
			return err
		}
	}
	return nil
}

func (p *Pipeline) queuedIn(b *progress.Batch) string {
	switch {
	case b.Next == progress.LandPhase || b.Next == progress.ReviewPhase:
		return p.opt.Flow.LastOfBatch()
	case b.Returned():
		phase, _ := p.opt.Flow.Phase(b.Next)
		return phase.FixQueue
	}
	return b.Next
}

func (p *Pipeline) outcome(ctx context.Context, stopped bool) (*Outcome, error) {
	st, units, err := p.read(ctx)
	if err != nil {
		return nil, err
	}
	out := &Outcome{State: st, Stopped: stopped, Baseline: p.Baseline(), Waiting: progress.OpenDecisions(units)}
	for _, u := range st.Units {
		switch {
		case u.Status == flow.Complete:
			out.Complete++
		case u.Status == flow.Excluded:
			out.Excluded++
		case u.Status == flow.Failed || slices.ContainsFunc(u.Batches, func(b BatchState) bool { return b.Status == flow.Failed }):
			out.Failed++
		}
	}
	p.mu.Lock()
	if p.budget != nil {
		out.Budget = p.budget.Reason
	}
	p.mu.Unlock()
	return out, nil
}

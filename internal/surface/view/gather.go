package view

import (
	"context"
	"slices"

	"lockkeeper"
	"lockkeeper/internal/flow"
	"lockkeeper/internal/flow/conduct"
	"lockkeeper/internal/flow/progress"
	"lockkeeper/internal/flow/run"
	"lockkeeper/internal/job"
	"lockkeeper/sched"
	"lockkeeper/store"
)

// blockedShown is how many of the blocked items are explained: a look at each costs a
// question to the store.
const blockedShown = 100

// scene is what the store says of the queue and of a flow at one moment.
type scene struct {
	Moment
	queue     *job.Queue
	flow      string
	run       *conduct.Run // the last one; nil: there was none
	conductor *store.Record
	starting  bool // the conductor has not begun to take work: it looks for units
	census    store.Census
	active    []*lockkeeper.Item
	items     map[string][]*lockkeeper.Item // of the flow, not completed, by unit
	workers   []lockkeeper.Worker           // that live
	slots     []Slots

	blocked []*sched.Explanation // by addBlocked
}

// scene looks at the queue and a flow; "": the one under way, or last. More sees the same
// moment.
func (l *Look) scene(ctx context.Context, flowName string, more func(*scene, store.Reader) error) (*scene, error) {
	s := &scene{}
	var err error
	if s.flow, err = conduct.LastFlow(l.app, flowName); err != nil {
		return nil, err
	}
	if s.run, err = conduct.CurrentRun(l.app); err != nil {
		return nil, err
	}
	if s.queue, err = job.Open(l.app); err != nil {
		return nil, err
	}
	s.Moment, err = l.at(ctx, func(r store.Reader) (err error) {
		if err := l.lookAtQueue(s, r); err != nil {
			return err
		}
		return more(s, r)
	})
	return s, err
}

func (l *Look) lookAtQueue(s *scene, r store.Reader) (err error) {
	if s.conductor, err = conduct.LeaseRecord(l.app, r); err != nil {
		return err
	}
	if s.workers, err = s.queue.WorkersIn(r); err != nil {
		return err
	}
	if s.census, err = r.Census(); err != nil {
		return err
	}
	if s.active, err = r.Items(store.ItemQuery{Status: lockkeeper.ItemDispatched, Limit: maxActive}); err != nil {
		return err
	}
	s.items = map[string][]*lockkeeper.Item{}
	if l.hasLocks() {
		if s.items, err = run.OpenItems(r, s.flow); err != nil {
			return err
		}
	}
	s.starting = s.conductor != nil && l.hasLocks() && !slices.ContainsFunc(s.workers, s.conducts)
	s.slots, err = l.slotsIn(r)
	return err
}

// addBlocked explains what something is in the way of, the first of it.
func (s *scene) addBlocked(r store.Reader) (err error) {
	if s.blocked = nil; s.census.Waiting > 0 {
		s.blocked, err = s.queue.BlockedIn(r, blockedShown)
	}
	return err
}

// orphanIn finds the first item that is ready and belongs to no flow, if no worker takes
// such; nil: there is none. Items of a flow wait for its conductor, which is told elsewhere.
func (s *scene) orphanIn(r store.Reader) (*lockkeeper.Item, error) {
	if s.census.Ready == 0 {
		return nil, nil
	}
	queued, err := r.Items(store.ItemQuery{Status: lockkeeper.ItemQueued, Limit: eventPage})
	for _, it := range queued {
		taken := slices.ContainsFunc(s.workers, func(w lockkeeper.Worker) bool { return w.Reaches(it.Root) && !isConductors(w) })
		if it.Stage == lockkeeper.StageReady && run.FlowOf(it) == "" && !taken {
			return it, err
		}
	}
	return nil, err
}

// isConductors reports whether a worker takes the items of a flow alone.
func isConductors(w lockkeeper.Worker) bool {
	return slices.ContainsFunc(w.Roots, func(root string) bool { return run.FlowOf(&lockkeeper.Item{Root: root}) != "" })
}

// maxActive bounds how many running items are read at once.
const maxActive = 10_000

// hasLocks reports whether runs use locks and the queue; without it is the legacy mode.
func (l *Look) hasLocks() bool { return l.app.Config.Run.Locking == "on" }

// conducts reports whether a worker is that of the conductor.
func (s *scene) conducts(w lockkeeper.Worker) bool {
	p := s.conductor.Process
	return p != nil && w.Process != nil && *p == *w.Process
}

// slotsIn is how many slots are taken of those that runs use.
func (l *Look) slotsIn(r store.Reader) (list []Slots, err error) {
	c := l.app.Config
	for _, s := range []Slots{{Pool: sched.PoolAgent, Limit: c.MaxClaudeConcurrency}, {Pool: sched.PoolTest, Limit: c.MaxTestConcurrency}, {Pool: sched.PoolAPI, Limit: c.MaxAPIConcurrency}} {
		if s.Taken, err = r.SlotsTaken(s.Pool); err != nil {
			return nil, err
		}
		list = append(list, s)
	}
	return list, nil
}

// phase is that of the whole.
func (s *scene) phase() string {
	switch {
	case s.starting:
		return "discovering"
	case s.conductor == nil && s.run == nil:
		return flow.Idle
	}
	return flow.Discovered
}

// isThisRun reports whether the last run is one of the flow that is looked at.
func (s *scene) isThisRun() bool { return s.run != nil && s.run.Flow == s.flow }

// line is the run in a line.
func (s *scene) line(states []run.UnitState, waiting int) RunLine {
	line := RunLine{State: RunNone, Flow: s.flow, Units: len(states), Next: "lockkeeper run"}
	for _, u := range states {
		switch {
		case u.Status == flow.Complete:
			line.Complete++
		case u.Status == flow.Failed || slices.ContainsFunc(u.Batches, func(b run.BatchState) bool { return b.Status == flow.Failed }):
			line.Failed++
		}
	}
	if s.isThisRun() {
		line.ID, line.Plan, line.Began, line.Ended = s.run.ID, s.run.Plan, s.run.Began, s.run.Ended
		if line.State = RunEnded; s.run.Ended.IsZero() {
			line.State = RunInterrupted
		}
	} else {
		line.Next += " --flow " + s.flow
	}
	if s.conductor == nil {
		return line
	}
	line.Conductor = s.conductor.Holder
	if s.isThisRun() && s.run.Ended.IsZero() {
		line.Next, line.State = "", RunActive
		if s.starting {
			line.State = RunDiscovering
		} else if waiting > 0 && !s.isBusy() && s.hasQueue() {
			line.State = RunWaiting
		}
	}
	return line
}

// isBusy reports whether something of the flow runs, or can.
func (s *scene) isBusy() bool {
	for _, items := range s.items {
		if slices.ContainsFunc(items, func(it *lockkeeper.Item) bool { return it.Status != lockkeeper.ItemError }) {
			return true
		}
	}
	return false
}

// hasQueue reports whether the conductor works through the queue, and not in the legacy
// mode, in which nobody else sees what runs.
func (s *scene) hasQueue() bool { return slices.ContainsFunc(s.workers, s.conducts) }

// cost is what the last run of a flow has cost, and may still cost. Beside an error it is
// what is known of that.
func (l *Look) cost(s *scene, p *papers, states []run.UnitState) (c Cost, err error) {
	c.BudgetUSD, c.BudgetTokens = float64(l.app.Config.Run.BudgetUSD), int64(l.app.Config.Run.BudgetTokens)
	calls, err := l.journal.Calls(s.flow)
	var ofRun []flow.Call
	for _, call := range calls {
		if s.isThisRun() && call.Run == s.run.ID {
			ofRun = append(ofRun, call.Call)
			c.add(call.Call)
		}
	}
	c.RestUSD = cents(run.Rest(p.flow, ofRun, states))
	c.TotalUSD = cents(c.USD + c.RestUSD)
	c.Exhausted = c.BudgetUSD > 0 && c.USD >= c.BudgetUSD || c.BudgetTokens > 0 && c.Tokens >= c.BudgetTokens
	return c, err
}

func (c *Cost) add(call flow.Call) {
	c.USD, c.Tokens, c.Calls = micros(c.USD+call.USD), c.Tokens+call.Tokens, c.Calls+1
}

// needs counts what waits for a person.
func needs(gates []progress.Decision) Needs {
	n := Needs{Total: len(gates), Kinds: []NeedsKind{}}
	for _, kind := range []progress.Kind{progress.TopicKind, progress.ItemKind, progress.PlanKind, progress.ReviewKind, progress.GapKind} {
		of := NeedsKind{Kind: kind}
		for _, g := range gates {
			if g.Ref.Kind != kind {
				continue
			}
			if of.Count++; of.Count == 1 {
				of.First = g.Ref
			}
			if n.Oldest.IsZero() || !g.Since.IsZero() && g.Since.Before(n.Oldest) {
				n.Oldest = g.Since
			}
		}
		if of.Count > 0 {
			n.Kinds = append(n.Kinds, of)
		}
	}
	return n
}

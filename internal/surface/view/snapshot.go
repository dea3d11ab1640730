package view

import (
	"cmp"
	"context"
	"slices"
	"time"

	"lockkeeper"
	"lockkeeper/internal/flow"
	"lockkeeper/internal/flow/conduct"
	"lockkeeper/internal/flow/progress"
	"lockkeeper/internal/flow/run"
	"lockkeeper/internal/job"
	"lockkeeper/sched"
	"lockkeeper/store"
)

// blockedShown limits the blocked items that are explained, because each costs a query.
const blockedShown = 100

// snapshot is the queue and a flow at one moment.
type snapshot struct {
	Moment
	queue     *job.Queue
	flow      string
	run       *conduct.Run // the last run; nil: there was none
	conductor *store.Record
	crash     string // why conducting the last run ended early
	failing   string // the tests that failed before the last run
	starting  bool   // the conductor takes no work yet: it discovers units
	census    store.Census
	active    []*lockkeeper.Item
	items     map[string][]*lockkeeper.Item // incomplete items of the flow, by unit
	workers   []lockkeeper.Worker           // live workers
	slots     []Slots

	blocked []*sched.Explanation // set by addBlocked
}

// snapshot reads the queue and a flow; "": the current or last flow. The
// function more, if not nil, reads in the same transaction.
func (rd *Reader) snapshot(ctx context.Context, flowName string, more func(*snapshot, store.Reader) error) (*snapshot, error) {
	s := &snapshot{}
	var err error
	if s.flow, err = conduct.LastFlow(rd.project, flowName); err != nil {
		return nil, err
	}
	if s.run, err = conduct.CurrentRun(rd.project); err != nil {
		return nil, err
	}
	if s.failing, err = s.run.FailedBefore(rd.project); err != nil {
		return nil, err
	}
	if s.queue, err = job.Open(rd.project); err != nil {
		return nil, err
	}
	s.Moment, err = rd.at(ctx, func(r store.Reader) (err error) {
		if err := rd.readQueue(s, r); err != nil || more == nil {
			return err
		}
		return more(s, r)
	})
	return s, err
}

// flowState reads the queue, a flow and its documents; "": the current or last flow.
func (rd *Reader) flowState(ctx context.Context, flowName string, more func(*snapshot, store.Reader) error) (*snapshot, *documents, error) {
	s, err := rd.snapshot(ctx, flowName, more)
	if err != nil {
		return nil, nil, err
	}
	p, err := rd.documents(ctx, s.flow)
	return s, p, err
}

func (rd *Reader) readQueue(s *snapshot, r store.Reader) (err error) {
	if s.conductor, err = conduct.LeaseRecord(rd.project, r); err != nil {
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
	if rd.usesLocks() {
		if s.items, err = run.OpenItems(r, s.flow); err != nil {
			return err
		}
	}
	if s.conductor == nil {
		s.crash = s.run.Crash(rd.project)
	}
	s.starting = s.conductor != nil && rd.usesLocks() && !slices.ContainsFunc(s.workers, s.conducts)
	s.slots, err = rd.slotsIn(s, r)
	return err
}

// addBlocked explains the first blocked items.
func (s *snapshot) addBlocked(r store.Reader) (err error) {
	if s.blocked = nil; s.census.Waiting > 0 {
		s.blocked, err = s.queue.BlockedIn(r, blockedShown)
	}
	return err
}

// unclaimedIn returns the first ready item that no worker takes; nil: there is none. It
// skips items of a flow, which wait for the flow's conductor.
func (s *snapshot) unclaimedIn(r store.Reader) (*lockkeeper.Item, error) {
	if s.census.Ready == 0 {
		return nil, nil
	}
	queued, err := r.Items(store.ItemQuery{Status: lockkeeper.ItemQueued, Limit: eventPage})
	for _, it := range queued {
		taken := slices.ContainsFunc(s.workers, func(w lockkeeper.Worker) bool {
			ofFlow := slices.ContainsFunc(w.Roots, func(root string) bool { return run.FlowOf(&lockkeeper.Item{Root: root}) != "" })
			return w.Reaches(it.Root) && !ofFlow // a worker of a flow takes only items of that flow
		})
		if it.Stage == lockkeeper.StageReady && run.FlowOf(it) == "" && !taken {
			return it, err
		}
	}
	return nil, err
}

// maxActive limits the running items that are read.
const maxActive = 10_000

// usesLocks reports whether runs use locks and the queue. Otherwise it is the legacy mode.
func (rd *Reader) usesLocks() bool { return rd.project.Config.Run.Locking == "on" }

// conducts reports whether a worker belongs to the conductor.
func (s *snapshot) conducts(w lockkeeper.Worker) bool {
	if s.conductor == nil {
		return false
	}
	p := s.conductor.Process
	return p != nil && w.Process != nil && *p == *w.Process
}

// slotsIn returns the slots of each pool on this machine: those of the run, as with --slots, and
// without a run those of the configuration.
func (rd *Reader) slotsIn(s *snapshot, r store.Reader) (list []Slots, err error) {
	c := rd.project.Config
	conducts := slices.IndexFunc(s.workers, s.conducts)
	for _, pool := range []Slots{{Pool: sched.PoolAgent, Limit: c.MaxClaudeConcurrency}, {Pool: sched.PoolTest, Limit: c.MaxTestConcurrency}, {Pool: sched.PoolAPI, Limit: c.MaxAPIConcurrency}} {
		if conducts >= 0 {
			pool.Limit = cmp.Or(s.workers[conducts].Pools[pool.Pool], pool.Limit)
		}
		if pool.Taken, err = r.SlotsTaken(pool.Pool); err != nil {
			return nil, err
		}
		list = append(list, pool)
	}
	return list, nil
}

func (s *snapshot) phase() string {
	switch {
	case s.starting:
		return "discovering"
	case s.crash != "":
		return flow.Failed
	case s.conductor == nil && s.run == nil:
		return flow.Idle
	}
	return flow.Discovered
}

func (s *snapshot) isThisRun() bool { return s.run != nil && s.run.Flow == s.flow }

func (s *snapshot) line(states []run.UnitState, waiting int) RunLine {
	line := RunLine{State: RunNone, Flow: s.flow, Next: "lockkeeper run"}
	line.count(states)
	if s.isThisRun() {
		line.ID, line.Plan, line.Began, line.Ended = s.run.ID, s.run.Plan, s.run.Began, s.run.Ended
		line.Baseline = s.failing
		if line.State = RunEnded; s.run.Ended.IsZero() {
			line.State, line.Error = RunInterrupted, s.crash
			if s.crash == "" && !s.isBusy() && line.Failed+waiting > 0 {
				line.State = RunStopped
			}
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
		} else if waiting > 0 && !s.isBusy() && slices.ContainsFunc(s.workers, s.conducts) { // in the legacy mode other processes cannot see what runs
			line.State = RunWaiting
		}
	}
	return line
}

// count counts the units, or the tasks of the only unit of a flow, which is complete only at the end.
func (line *RunLine) count(states []run.UnitState) {
	tasks := len(states) == 1 && states[0].Name == flow.Tasks().OneUnit
	for _, u := range states {
		if tasks {
			line.Units += len(u.Batches)
			for _, b := range u.Batches {
				switch {
				case b.Status == flow.Excluded:
					line.Excluded++
				case flow.IsDone(b.Status):
					line.Complete++
				case b.Status == flow.Failed:
					line.Failed++
				}
			}
			continue
		}
		line.Units++
		switch {
		case u.Status == flow.Excluded:
			line.Excluded++
		case u.Status == flow.Complete:
			line.Complete++
		case u.Status == flow.Failed || slices.ContainsFunc(u.Batches, func(b run.BatchState) bool { return b.Status == flow.Failed }):
			line.Failed++
		}
	}
}

// isBusy reports whether an item of the flow runs or can run.
func (s *snapshot) isBusy() bool {
	for _, items := range s.items {
		if slices.ContainsFunc(items, func(it *lockkeeper.Item) bool { return it.Status != lockkeeper.ItemError }) {
			return true
		}
	}
	return false
}

// cost returns the cost of the last run, and an estimate for the rest. With an error it is
// incomplete.
func (rd *Reader) cost(s *snapshot, p *documents, states []run.UnitState) (c Cost, err error) {
	c.BudgetUSD, c.BudgetTokens = float64(rd.project.Config.Run.BudgetUSD), int64(rd.project.Config.Run.BudgetTokens)
	calls, err := rd.journal.Calls(s.flow)
	var ofRun []flow.Call
	for _, call := range calls {
		if s.isThisRun() && call.Run == s.run.ID {
			ofRun = append(ofRun, call.Call)
			c.add(call.Call)
		}
	}
	c.HourUSD = rounded(s.perHour(ofRun), 1e2)
	c.RestUSD = rounded(run.Rest(p.flow, ofRun, states), 1e2)
	c.TotalUSD = rounded(c.USD+c.RestUSD, 1e2)
	c.Exhausted = c.BudgetUSD > 0 && c.USD >= c.BudgetUSD || c.BudgetTokens > 0 && c.Tokens >= c.BudgetTokens
	return c, err
}

// spentLately is the time over which the money per hour is measured, and spentLeast is the shortest
// time of a run for which there is one.
const (
	spentLately = 30 * time.Minute
	spentLeast  = time.Minute
)

// perHour returns what the calls of the current run that ended lately cost per hour; 0: nothing runs.
func (s *snapshot) perHour(calls []flow.Call) (usd float64) {
	if s.conductor == nil || !s.isThisRun() || s.At.Sub(s.run.Began) < spentLeast {
		return 0
	}
	over := min(spentLately, s.At.Sub(s.run.Began))
	for _, c := range calls {
		if s.At.Sub(c.Began.Add(c.Took)) <= over {
			usd += c.USD
		}
	}
	return usd / over.Hours()
}

func (c *Cost) add(call flow.Call) {
	c.USD, c.Tokens, c.Calls = rounded(c.USD+call.USD, 1e6), c.Tokens+call.Tokens, c.Calls+1
}

func needs(open []progress.Decision) Needs {
	n := Needs{Total: len(open), Kinds: []NeedsKind{}}
	for _, kind := range progress.Kinds() {
		of := NeedsKind{Kind: kind}
		for _, g := range open {
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

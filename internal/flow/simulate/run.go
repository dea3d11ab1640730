package simulate

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"lockkeeper"
	"lockkeeper/lock"
	"lockkeeper/sched"
	"lockkeeper/store"
)

// tickEvery is how often the simulated worker looks for what is due, at least: as often
// as a sched.Worker does.
const tickEvery = 5 * time.Second

// maxStandstill is how long nothing at all may run while something is queued, before
// the simulation gives up.
const maxStandstill = time.Hour

// simulation is a worker with some slots, whose items take as long as the plan says.
type simulation struct {
	now     time.Duration // since the begin
	store   *watch
	locks   *lock.Manager
	queue   *sched.Queue
	worker  lockkeeper.Worker
	plan    map[string]*Item
	running []run // the next to end first
	began   []run // all, in the order of their starts
}

// run is one item under way.
type run struct {
	item       *Item
	job        *sched.Job
	start, end time.Duration
}

func newSimulation(p *Plan, slots int, opt sched.Options) (*simulation, error) {
	s := &simulation{plan: map[string]*Item{}, worker: lockkeeper.Worker{ID: "simulated", Node: "simulated", Slots: slots}}
	s.store = newWatch(p, s.moment)
	policies := lockkeeper.Policies()
	agent := policies[lockkeeper.DefaultPolicy]
	agent.TTL = 0 // an agent that lives renews its lease
	policies[agent.Name] = agent
	s.locks = lock.New(s.store, lock.Options{Policies: policies})
	for i := range p.Items {
		s.plan[p.Items[i].Name] = &p.Items[i]
	}
	var err error
	s.queue, err = sched.New(s.store, s.locks, opt)
	return s, err
}

// moment is the clock of the simulation.
func (s *simulation) moment() store.Moment {
	return store.Moment{Lease: lockkeeper.Instant(s.now) + 1, Wall: time.Unix(0, 0).UTC().Add(s.now)}
}

func (s *simulation) close() error { return errors.Join(s.locks.Close(), s.store.Close()) }

// enqueue queues the whole plan.
func (s *simulation) enqueue(ctx context.Context, p *Plan) error {
	var orders []sched.ItemSpec
	for i := range p.Items {
		it := &p.Items[i]
		orders = append(orders, sched.ItemSpec{Key: it.Name, Workflow: it.Name, Unit: it.Unit, Phase: it.phase(), Project: it.Project,
			Locks: it.locks(), After: it.After, By: lockkeeper.Actor{Name: "plan", Kind: lockkeeper.ActorSystem}})
	}
	_, err := s.queue.Enqueue(ctx, orders...)
	return err
}

// work runs until nothing runs and nothing that is queued can start any more.
func (s *simulation) work(ctx context.Context) error {
	for idle := s.now; ; {
		if err := s.claim(ctx); err != nil {
			return err
		}
		due, err := s.queue.Tick(ctx)
		if err != nil {
			return err
		}
		if err := s.claim(ctx); err != nil { // what the tick made ready
			return err
		}
		if len(s.running) == 0 {
			switch {
			case due == 0:
				return nil
			case s.now-idle > maxStandstill:
				return fmt.Errorf("the scheduler starts nothing at %s, and nothing runs", s.now)
			}
			s.now += min(due, tickEvery)
			continue
		}
		tick := tickEvery
		if due > 0 {
			tick = min(due, tickEvery)
		}
		if s.now+tick < s.running[0].end {
			s.now += tick
			continue
		}
		if err := s.advance(ctx); err != nil {
			return err
		}
		idle = s.now
	}
}

// claim starts what can start while slots are free.
func (s *simulation) claim(ctx context.Context) error {
	for len(s.running) < s.worker.Slots {
		job, err := s.queue.Dispatch(ctx, s.worker)
		if err != nil || job == nil {
			return err
		}
		s.begin(job)
	}
	return nil
}

func (s *simulation) begin(job *sched.Job) {
	it := s.plan[job.Item.Workflow]
	r := run{item: it, job: job, start: s.now, end: s.now + it.Duration}
	at, _ := slices.BinarySearchFunc(s.running, r, func(a, b run) int { return cmp.Or(cmp.Compare(a.end, b.end), -1) })
	s.running = slices.Insert(s.running, at, r)
	s.began = append(s.began, r)
}

// advance goes to the next end. Of those who end at that moment the last one claims for
// its slot, as whoever is last does, when what all of them held is free.
func (s *simulation) advance(ctx context.Context) error {
	s.now = s.running[0].end
	for len(s.running) > 0 && s.running[0].end == s.now {
		r := s.running[0]
		s.running = s.running[1:]
		var claimant *lockkeeper.Worker
		if len(s.running) == 0 || s.running[0].end > s.now {
			claimant = &s.worker
		}
		next, err := r.job.Finish(ctx, nil, claimant)
		if err != nil {
			return err
		}
		if next != nil {
			s.begin(next)
		}
	}
	return nil
}

// left lists the items that were not completed: those that gave up, and those that wait
// for them.
func (s *simulation) left(ctx context.Context) (list []Left, err error) {
	list = []Left{} // not null in JSON
	err = s.store.View(ctx, func(r store.Reader) error {
		for _, status := range []lockkeeper.ItemStatus{lockkeeper.ItemError, lockkeeper.ItemQueued} {
			items, err := r.Items(store.ItemQuery{Status: status, Limit: maxItems})
			if err != nil {
				return err
			}
			for _, it := range items {
				l := Left{Name: it.Workflow, Reason: "waits for an item that gives up"}
				if it.Failure != nil {
					l.Reason, l.Waited = it.Failure.Reason, Span(it.Failure.Waited)
					for _, c := range it.Failure.Conflicts {
						l.Paths = append(l.Paths, c.BlockingPath)
					}
					slices.Sort(l.Paths)
					l.Paths = slices.Compact(l.Paths)
				}
				list = append(list, l)
			}
		}
		return nil
	})
	return list, err
}

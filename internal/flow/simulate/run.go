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
	"lockkeeper/store/memstore"
)

// tickEvery is the longest time between two ticks, as in sched.Worker.
const tickEvery = 5 * time.Second

// maxStandstill is how long the queue may have items while none runs, before the simulation
// fails.
const maxStandstill = time.Hour

// A simulation is a worker whose items take the durations of the plan.
type simulation struct {
	now     time.Duration // time since the start
	store   *watch
	locks   *lock.Manager
	queue   *sched.Queue
	worker  lockkeeper.Worker
	plan    map[string]*Item
	running []*run // sorted by until
	taken   int    // number of agents' slots in use
	tests   testSlots[*run]
	began   []*run // all items, in the order of their starts
}

type run struct {
	item       *Item
	job        *sched.Job
	start, end time.Duration // end is set when the item ends
	stage      stage
	until      time.Duration // the end of the stage
}

func newSimulation(p *Plan, slots, tests int, opt sched.Options) (*simulation, error) {
	s := &simulation{plan: map[string]*Item{}, worker: lockkeeper.Worker{ID: "simulated", Node: "simulated", Slots: slots}, tests: testSlots[*run]{limit: tests}}
	s.store = newWatch(s.moment)
	policies := lockkeeper.Policies()
	agent := policies[lockkeeper.DefaultPolicy]
	agent.TTL = 0 // live agents renew their leases, so the simulated ones must not expire
	policies[agent.Name] = agent
	s.locks = lock.New(s.store, lock.Options{Policies: policies})
	for i := range p.Items {
		s.plan[p.Items[i].Name] = &p.Items[i]
	}
	opt.Phases = phases()
	var err error
	s.queue, err = sched.New(s.store, s.locks, opt)
	return s, err
}

func (s *simulation) moment() store.Moment {
	return store.Moment{Lease: lockkeeper.Instant(s.now) + 1, Wall: time.Unix(0, 0).UTC().Add(s.now)}
}

func (s *simulation) close() error { return errors.Join(s.locks.Close(), s.store.Close()) }

func (s *simulation) enqueue(ctx context.Context, p *Plan) error {
	var orders []sched.ItemSpec
	for i := range p.Items {
		it := &p.Items[i]
		orders = append(orders, sched.ItemSpec{Key: it.Name, Workflow: it.Name, Unit: it.Unit, Phase: it.phase(), Project: it.Project, Estimate: it.Duration,
			Locks: it.locks(), After: it.After, By: lockkeeper.Actor{Name: "plan", Kind: lockkeeper.ActorSystem}})
	}
	_, err := s.queue.Enqueue(ctx, orders...)
	return err
}

// work advances the time until nothing runs and nothing can start.
func (s *simulation) work(ctx context.Context) error {
	for idle := s.now; ; {
		if err := s.dispatch(ctx); err != nil {
			return err
		}
		due, err := s.queue.Tick(ctx)
		if err != nil {
			return err
		}
		if err := s.dispatch(ctx); err != nil { // starts items that the tick made ready
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
		if s.now+tick < s.running[0].until {
			s.now += tick
			continue
		}
		if err := s.advance(ctx); err != nil {
			return err
		}
		idle = s.now
	}
}

// dispatch starts items while slots are free.
func (s *simulation) dispatch(ctx context.Context) error {
	for s.taken < s.worker.Slots {
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
	r := &run{item: it, job: job, start: s.now}
	s.taken++
	s.await(r)
	s.began = append(s.began, r)
}

// await lets an item run until the end of its stage.
func (s *simulation) await(r *run) {
	r.until = s.now + r.item.takes(r.stage)
	at, _ := slices.BinarySearchFunc(s.running, r, func(a, b *run) int { return cmp.Or(cmp.Compare(a.until, b.until), -1) })
	s.running = slices.Insert(s.running, at, r)
}

// leave ends a stage of an item and begins its next one.
func (s *simulation) leave(r *run) {
	switch r.stage {
	case inSlot:
		s.taken--
	case inTests:
		if next, ok := s.tests.leave(); ok {
			s.await(next)
		}
	}
	switch r.stage = r.item.next(r.stage); {
	case r.stage == ended:
		r.end = s.now
	case r.stage != inTests || s.tests.enter(r):
		s.await(r)
	}
}

// advance advances the time to the next end of a stage. If several items end at the same time, only the
// last one dispatches a new item. Only then are the locks of all of them free.
func (s *simulation) advance(ctx context.Context) error {
	s.now = s.running[0].until
	for len(s.running) > 0 && s.running[0].until == s.now {
		r := s.running[0]
		s.running = s.running[1:]
		if s.leave(r); r.stage != ended {
			continue
		}
		var dispatcher *lockkeeper.Worker
		if last := len(s.running) == 0 || s.running[0].until > s.now; last && s.taken < s.worker.Slots {
			dispatcher = &s.worker
		}
		next, err := r.job.Finish(ctx, nil, dispatcher)
		if err != nil {
			return err
		}
		if next != nil {
			s.begin(next)
		}
	}
	return nil
}

// left lists the items that did not complete: failed items, and items that wait for them.
func (s *simulation) left(ctx context.Context) (list []Left, err error) {
	list = []Left{} // an empty list is [] in JSON, not null
	err = s.store.View(ctx, func(r store.Reader) error {
		for _, status := range []lockkeeper.ItemStatus{lockkeeper.ItemError, lockkeeper.ItemQueued} {
			items, err := r.Items(store.ItemQuery{Status: status, Limit: maxItems})
			if err != nil {
				return err
			}
			for _, it := range items {
				l := Left{Name: it.Workflow, Reason: "waits for an item that fails"}
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

// A watch is the store of a simulation. It measures how long items wait for files.
type watch struct {
	*memstore.Store
	waiting map[string]wait                     // items that wait for a file now
	blocked map[string]map[string]time.Duration // the time that items waited, by path and item
}

// A wait says since when an item waits for a path.
type wait struct {
	path  string
	since time.Time
}

func newWatch(now func() store.Moment) *watch {
	return &watch{Store: memstore.New("simulation", memstore.Options{Now: now}),
		waiting: map[string]wait{}, blocked: map[string]map[string]time.Duration{}}
}

// Update implements store.Store. A simulation never rolls back, because an error ends it.
func (w *watch) Update(ctx context.Context, fn func(store.Tx) error) error {
	return w.Store.Update(ctx, func(tx store.Tx) error { return fn(watched{tx, w}) })
}

type watched struct {
	store.Tx
	watch *watch
}

func (t watched) SaveItem(it *lockkeeper.Item) error {
	t.watch.saw(it, t.Now().Wall)
	return t.Tx.SaveItem(it)
}

// saw adds the time that an item waited until now. An item that has reserved its locks still
// waits for the file that it waited for before.
func (w *watch) saw(it *lockkeeper.Item, now time.Time) {
	last, was := w.waiting[it.Workflow]
	if spent := now.Sub(last.since); was && spent > 0 {
		if w.blocked[last.path] == nil {
			w.blocked[last.path] = map[string]time.Duration{}
		}
		w.blocked[last.path][it.Workflow] += spent
	}
	if it.Stage != lockkeeper.StageWaiting || !store.IsOnLock(it.WaitsOn) {
		delete(w.waiting, it.Workflow)
		return
	}
	path, ok := store.PathOf(it.WaitsOn)
	if !ok {
		path = last.path
	}
	w.waiting[it.Workflow] = wait{path, now}
}

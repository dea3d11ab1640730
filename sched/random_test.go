package sched_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"lockkeeper"
	"lockkeeper/lock"
	"lockkeeper/sched"
	"lockkeeper/store"
	"lockkeeper/store/memstore"
	"lockkeeper/store/sqlstore"
	"lockkeeper/store/storetest"
)

// A chaos drives a queue with random events: new items, workers, their deaths, people.
type chaos struct {
	*yard
	yards  []*yard // handles on the same store, used in turn
	rnd    *rand.Rand
	clock  *storetest.Clock
	limits sched.Limits
	known  []*lockkeeper.Item
	jobs   map[string][]*sched.Job // by worker
	people []*lock.Grant

	dispatches map[string]int
	ends       map[string]int
	order      []string // order of dispatch
}

// newChaos returns a chaos on the stores that open returns. They are handles on one space with
// the same clock.
func newChaos(t *testing.T, seed uint64, open func(testing.TB, *storetest.Clock) []store.Store) *chaos {
	c := &chaos{
		rnd: rand.New(rand.NewPCG(seed, 1)), clock: storetest.NewClock(), jobs: map[string][]*sched.Job{},
		limits:     sched.Limits{Agents: 3, API: 2, Tests: 1, Jobs: 6, CPU: 1, JobsPerProject: 3, MapsPerProject: 1},
		dispatches: map[string]int{}, ends: map[string]int{},
	}
	for _, st := range open(t, c.clock) {
		policies := lockkeeper.Policies()
		agent := policies[lockkeeper.DefaultPolicy]
		agent.Heartbeat = 10 * time.Minute // the clock moves minutes at a time
		policies[agent.Name] = agent
		y := &yard{t: t, store: st, locks: lock.New(st, lock.Options{Policies: policies})}
		var err error
		y.queue, err = newQueue(st, y.locks, sched.Options{Limits: c.limits, MaxAttempts: 1 << 30, MaxLockRetries: 1 << 30})
		must(t, err)
		t.Cleanup(func() { must(t, y.locks.Close(), st.Close()) })
		c.yards = append(c.yards, y)
	}
	c.yard = c.yards[0]
	return c
}

// inMemory opens a store in memory.
func inMemory(_ testing.TB, clock *storetest.Clock) []store.Store {
	return []store.Store{memstore.New(space, memstore.Options{Now: clock.Now, KeepEvents: 1 << 20})}
}

// handles returns a function that opens n stores on one space of a database.
func handles(kind string, n int) func(testing.TB, *storetest.Clock) []store.Store {
	return func(t testing.TB, clock *storetest.Clock) (list []store.Store) {
		s := shop{Kind: kind, Options: sqlstore.Options{Clock: clock.Now}}
		s.create(t)
		for range n {
			st, err := s.open(t.Context())
			must(t, err)
			if p, ok := st.(*sqlstore.Postgres); ok {
				st = calm{p}
			}
			list = append(list, st)
		}
		return list
	}
}

// calm is a PostgreSQL store that ignores an impatient caller. The driver treats a context as
// canceled when its channel is closed.
type calm struct{ *sqlstore.Postgres }

func (s calm) Update(ctx context.Context, fn func(store.Tx) error) error {
	return s.Postgres.Update(patient(ctx), fn)
}

func (s calm) View(ctx context.Context, fn func(store.Reader) error) error {
	return s.Postgres.View(patient(ctx), fn)
}

func (s calm) Listen(ctx context.Context, id string) (store.Listener, error) {
	return s.Postgres.Listen(patient(ctx), id)
}

func patient(ctx context.Context) context.Context {
	if i, ok := ctx.(impatient); ok {
		return i.Context
	}
	return ctx
}

func (c *chaos) pick(list ...string) string { return list[c.rnd.IntN(len(list))] }

// draw returns a random item. It uses few paths, so that many items conflict.
func (c *chaos) draw() sched.ItemSpec {
	o := sched.ItemSpec{Workflow: fmt.Sprint("w", len(c.known)), Phase: c.pick("analyze", "apply", "verify"), Project: c.pick("a", "b", "c"), Job: c.rnd.IntN(2) == 0, By: ada}
	for range c.rnd.IntN(4) {
		path := fmt.Sprint("f", c.rnd.IntN(8))
		switch c.rnd.IntN(5) {
		case 0:
			o.Locks = append(o.Locks, writes("d/"+path)...)
		case 3:
			o.Locks = append(o.Locks, lockkeeper.Lock{Target: lockkeeper.Target{Path: "d", Kind: lockkeeper.Tree}, Mode: lockkeeper.Read})
		default:
			o.Locks = append(o.Locks, writes(path)...)
		}
	}
	if c.rnd.IntN(8) == 0 { // a node lock does not cover the paths below it
		o.Locks = []lockkeeper.Lock{{Target: lockkeeper.Target{Path: "d", Kind: lockkeeper.Node}, Mode: []lockkeeper.Mode{lockkeeper.Read, lockkeeper.Write}[c.rnd.IntN(2)]}}
	}
	if c.rnd.IntN(2) == 0 {
		o.Pools = []string{c.pick(sched.PoolAgent, sched.PoolAPI, sched.PoolTest)}
	}
	if c.rnd.IntN(8) == 0 {
		o.Class = "cpu"
	}
	if c.rnd.IntN(8) == 0 {
		o.Map = true
	}
	for range c.rnd.IntN(3) {
		if len(c.known) > 0 && c.rnd.IntN(3) == 0 {
			o.After = append(o.After, c.known[c.rnd.IntN(len(c.known))].ID)
		}
	}
	return o
}

func (c *chaos) step() {
	c.yard = c.yards[c.rnd.IntN(len(c.yards))]
	worker := fmt.Sprint("worker ", c.rnd.IntN(5))
	switch n := c.rnd.IntN(100); {
	case n < 25:
		c.known = append(c.known, c.enqueue(c.draw()))
	case n < 55:
		job, err := c.queue.Dispatch(c.t.Context(), lockkeeper.Worker{ID: worker, Node: c.pick("here", "there")})
		must(c.t, err)
		c.begun(worker, job)
	case n < 76:
		c.finishOne(worker)
	case n < 80:
		c.interrupt(worker)
	case n < 83: // the worker dies and leaves its items
		delete(c.jobs, worker)
	case n < 88:
		c.person()
	case n < 89:
		c.cancel()
	case n < 91:
		c.retry()
	case n < 93:
		c.phase(worker)
	default:
		c.clock.Advance(time.Duration(c.rnd.Int64N(int64(8 * time.Minute))))
		c.keepAlive()
		c.tick()
	}
}

func (c *chaos) begun(worker string, job *sched.Job) {
	if job == nil {
		return
	}
	c.jobs[worker] = append(c.jobs[worker], job)
	c.dispatches[job.Item.ID]++
	c.order = append(c.order, job.Item.ID)
	if got := c.item(job.Item.ID).Attempts; got > c.dispatches[job.Item.ID] {
		c.t.Errorf("%s was dispatched %d times and says %d", job.Item.ID, c.dispatches[job.Item.ID], got)
	}
}

// keepAlive renews the grants of live workers, as their keepers do.
func (c *chaos) keepAlive() {
	for _, jobs := range c.jobs {
		for _, job := range jobs {
			_, err := c.locks.Renew(c.t.Context(), job.Grant.ID, job.Grant.Token)
			if err != nil && lockkeeper.CodeOf(err) != lockkeeper.CodeNotHeld { // the item was canceled
				c.t.Error(err)
			}
		}
	}
}

func (c *chaos) finishOne(worker string) {
	jobs := c.jobs[worker]
	if len(jobs) == 0 {
		return
	}
	i := c.rnd.IntN(len(jobs))
	job := jobs[i]
	c.jobs[worker] = slices.Delete(jobs, i, i+1)
	var failure error
	if c.rnd.IntN(10) == 0 {
		failure = errors.New("it failed")
	}
	var claimant *lockkeeper.Worker
	if c.rnd.IntN(2) == 0 {
		claimant = &lockkeeper.Worker{ID: worker, Node: "here"}
	}
	next, err := job.Finish(c.t.Context(), failure, claimant)
	switch {
	case err == nil:
		c.ends[job.Item.ID]++
	case lockkeeper.CodeOf(err) != lockkeeper.CodeNotHeld: // canceled, or dispatched to another worker after its own seemed dead
		c.t.Error(err)
	}
	c.begun(worker, next)
}

// interrupt returns an item to the queue, because its worker stops or its copy is behind.
func (c *chaos) interrupt(worker string) {
	jobs := c.jobs[worker]
	if len(jobs) == 0 {
		return
	}
	i := c.rnd.IntN(len(jobs))
	job := jobs[i]
	c.jobs[worker] = slices.Delete(jobs, i, i+1)
	var err error
	if c.rnd.IntN(2) == 0 {
		err = job.ReturnFrom(c.t.Context(), c.pick("here", "there"), errors.New("behind"))
	} else {
		err = job.Return(c.t.Context(), "interrupted")
	}
	if err != nil && lockkeeper.CodeOf(err) != lockkeeper.CodeNotHeld {
		c.t.Error(err)
	}
}

// person acquires or releases locks outside the queue.
func (c *chaos) person() {
	if len(c.people) > 0 && c.rnd.IntN(2) == 0 {
		must(c.t, c.people[0].Release(c.t.Context()))
		c.people = c.people[1:]
		return
	}
	g, err := c.locks.TryAcquire(c.t.Context(), lockkeeper.Request{Holder: "ada", Locks: writes(fmt.Sprint("f", c.rnd.IntN(8))), Policy: "person"})
	if err == nil {
		c.people = append(c.people, g)
	}
}

func (c *chaos) cancel() {
	if len(c.known) == 0 {
		return
	}
	id := c.known[c.rnd.IntN(len(c.known))].ID
	_, err := c.queue.Cancel(c.t.Context(), id, ada, "chance")
	if code := lockkeeper.CodeOf(err); err != nil && code != lockkeeper.CodeRefused {
		c.t.Error(err)
	}
}

func (c *chaos) retry() {
	if len(c.known) == 0 {
		return
	}
	_, err := c.queue.Retry(c.t.Context(), c.known[c.rnd.IntN(len(c.known))].ID, ada)
	if code := lockkeeper.CodeOf(err); err != nil && code != lockkeeper.CodeRefused {
		c.t.Error(err)
	}
}

// phase requests the slot of the next phase of a running item, without waiting for it.
func (c *chaos) phase(worker string) {
	if jobs := c.jobs[worker]; len(jobs) > 0 {
		_ = jobs[c.rnd.IntN(len(jobs))].Phase(impatient{c.t.Context()}, "test", c.pick(sched.PoolTest, sched.PoolAgent))
	}
}

// check checks the invariants of the queue.
func (c *chaos) check() {
	t := c.t
	t.Helper()
	must(t, c.store.View(t.Context(), func(r store.Reader) error {
		running, err := r.Items(store.ItemQuery{Status: lockkeeper.ItemDispatched, Limit: 1000})
		must(t, err)
		taken := map[string]int{}
		for i, a := range running {
			pools := a.Caps
			if a.Stage == lockkeeper.StageRunning {
				pools = slices.Concat(pools, a.Pools)
			}
			for _, pool := range pools {
				taken[pool]++
			}
			rec, err := r.Get(a.GrantID)
			must(t, err)
			if rec == nil {
				continue // its worker died and no worker has ticked since
			}
			for _, b := range running[:i] {
				other, err := r.Get(b.GrantID)
				must(t, err)
				if other != nil && conflict(a, b) {
					t.Errorf("%s and %s run at the same time on the same paths", a.ID, b.ID)
				}
			}
		}
		for _, pool := range []string{sched.PoolAgent, sched.PoolAPI, sched.PoolTest, sched.PoolJobs, sched.PoolCPU, "jobs of a", "jobs of b", "jobs of c", "maps of a", "maps of b", "maps of c"} {
			n, err := r.SlotsTaken(pool)
			must(t, err)
			limit, known := c.limits.Of(pool)
			if n != taken[pool] || !known || n > limit {
				t.Errorf("pool %s: %d of %d taken, and %d have one", pool, n, limit, taken[pool])
			}
		}
		c.checkWaiting(r)
		return nil
	}))
}

// checkWaiting checks that the key an item waits on is taken, or that the first
// item that waits on it is about to be checked.
func (c *chaos) checkWaiting(r store.Reader) {
	t := c.t
	all, err := r.Items(store.ItemQuery{Limit: 10_000})
	must(t, err)
	wokenBy := map[string]bool{}
	for _, it := range all {
		if it.Stage == lockkeeper.StageReady {
			wokenBy[it.WokenBy] = true
		}
	}
	for _, it := range all {
		if it.Stage == lockkeeper.StageWaiting && store.IsOnLock(it.WaitsOn) {
			first, err := r.FirstWaiting(it.WaitsOn)
			must(t, err)
			if (first.ID == it.ID) != (it.FirstSince != 0) {
				t.Errorf("%s is waiting on %s behind %s and leads since %d", it.ID, it.WaitsOn, first.ID, it.FirstSince)
			}
		}
		if it.Stage == lockkeeper.StageEnded && (it.WaitsOn != "" || it.WokenBy != "" || it.CheckAt != 0 || it.FirstSince != 0) {
			t.Errorf("%s has ended, and is waiting on %q, woken by %q, due %d, leads %d", it.ID, it.WaitsOn, it.WokenBy, it.CheckAt, it.FirstSince)
		}
		if it.Stage != lockkeeper.StageWaiting || wokenBy[it.WaitsOn] {
			continue
		}
		kind, what, _ := strings.Cut(it.WaitsOn, ":")
		taken := false
		switch kind {
		case "path":
			found, _, err := r.Overlapping(store.Query{Locks: it.Locks, Before: store.AnyTicket})
			must(t, err)
			taken = slices.ContainsFunc(found, func(o store.Overlap) bool { return store.OnLock(o.Asked.Mode, o.Lock.Target) == it.WaitsOn })
		case "pool":
			n, err := r.SlotsTaken(what)
			must(t, err)
			limit, _ := c.limits.Of(what)
			taken = n >= limit
		case "item":
			first, err := r.Item(what)
			must(t, err)
			taken = first.Status != lockkeeper.ItemCompleted
		case "copy":
			taken = it.CheckAt != 0
		case "grant":
			rec, err := r.Get(what)
			must(t, err)
			taken = rec != nil && rec.State == store.StateWaiting
		}
		if !taken {
			t.Errorf("%s is waiting on %s, which is free", it.ID, it.WaitsOn)
		}
	}
}

func conflict(a, b *lockkeeper.Item) bool {
	for _, x := range a.Locks {
		for _, y := range b.Locks {
			if x.Conflicts(y) {
				return true
			}
		}
	}
	return false
}

// drain lets every item end: dead workers are detected, people release their locks, and failed
// items are retried.
func (c *chaos) drain() {
	t := c.t
	for _, g := range c.people {
		must(t, g.Release(t.Context()))
	}
	c.people = nil
	for round := 0; ; round++ {
		if round > 2_000 {
			for _, it := range c.known {
				if now := c.item(it.ID); now != nil && now.Status != lockkeeper.ItemCompleted { // nil if it was pruned
					t.Errorf("%s is %s, stage %d, waiting on %q, woken by %q, escalated %t, grant %q, due %d", it.ID, now.Status, now.Stage, now.WaitsOn, now.WokenBy, now.Escalated, now.GrantID, now.CheckAt)
				}
			}
			t.Fatal("it never comes to an end")
		}
		for range 5 { // after 40 minutes the dead workers are detected
			c.clock.Advance(8 * time.Minute)
			c.keepAlive()
		}
		c.tick()
		for worker := range c.jobs {
			for range len(c.jobs[worker]) {
				c.finishOne(worker)
			}
		}
		job, err := c.queue.Dispatch(t.Context(), lockkeeper.Worker{ID: "last", Node: "here"})
		must(t, err)
		c.begun("last", job)
		c.check()
		failed := 0
		must(t, c.store.View(t.Context(), func(r store.Reader) error {
			list, err := r.Items(store.ItemQuery{Status: lockkeeper.ItemError, Limit: 10_000})
			failed = len(list)
			c.known = append(c.known, list...)
			return err
		}))
		for _, it := range c.known[len(c.known)-failed:] {
			_, err := c.queue.Retry(t.Context(), it.ID, ada)
			must(t, err)
		}
		if failed == 0 && c.depth() == 0 && len(c.active()) == 0 {
			return
		}
	}
}

// Under random events, the caps hold, no conflicting items overlap, no item is lost, and every
// item ends exactly as often as it was ended.
//
// shows: SW-73 GP-11 DL-59 DL-60 DL-80 DL-91
func TestChaos(t *testing.T) {
	for _, on := range []struct {
		name  string
		open  func(testing.TB, *storetest.Clock) []store.Store
		seeds int
		looks int // steps between two checks, because a check can take longer than many steps
	}{
		{"memory", inMemory, 20, 1}, {"SQLite", handles("SQLite", 1), 1, 8}, {"SQLite, two handles", handles("SQLite", 2), 1, 8},
		{"PostgreSQL", handles("PostgreSQL", 1), 1, 8}, {"PostgreSQL, two handles", handles("PostgreSQL", 2), 1, 8},
	} {
		t.Run(on.name, func(t *testing.T) {
			for n := range storetest.Times(on.seeds, 2*on.seeds) {
				seed := rand.Uint64()
				if n == 0 {
					seed = 1
				}
				t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) { newChaos(t, seed, on.open).run(max(1, on.looks/storetest.Torture())) })
			}
		})
	}
}

// run performs random steps and checks the invariants every looks steps.
func (c *chaos) run(looks int) {
	for n := range 400 {
		c.step()
		if n%looks == 0 {
			c.check()
		}
		if c.t.Failed() {
			return
		}
	}
	c.drain()
	for _, it := range c.known {
		if now := c.item(it.ID); now != nil && now.Status != lockkeeper.ItemCompleted { // nil if it was pruned
			c.t.Errorf("%s is %s, waiting on %q", it.ID, now.Status, now.WaitsOn)
		}
	}
}

// Within a rank and a project, items without conflicts start in the order in which they were
// queued.
//
// shows: SW-31 PL-51
func TestFirstComeFirstServed(t *testing.T) {
	for range 20 * storetest.Torture() {
		seed := rand.Uint64()
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			c := newChaos(t, seed, inMemory)
			place := map[string][]string{}
			for range 60 {
				o := c.draw()
				o.Locks, o.After, o.Pools, o.Map, o.Class, o.Job = nil, nil, []string{sched.PoolAgent}, false, "", false
				it := c.enqueue(o)
				place[o.Project+o.Phase] = append(place[o.Project+o.Phase], it.ID)
				if c.rnd.IntN(3) == 0 {
					c.begun("w", c.claim())
				}
				if c.rnd.IntN(3) == 0 {
					c.finishOne("w")
				}
			}
			for range 200 {
				c.begun("w", c.claim())
				c.finishOne("w")
			}
			for lane, want := range place {
				var got []string
				for _, id := range c.order {
					if slices.Contains(want, id) {
						got = append(got, id)
					}
				}
				if !slices.Equal(got, want) {
					t.Errorf("%s: dispatched %v, queued %v", lane, got, want)
				}
			}
		})
	}
}

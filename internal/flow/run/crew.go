package run

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"lockkeeper/internal/flow/fleet"
	"lockkeeper/internal/git/parcel"
)

// A Crew is what a process needs to share calls with other machines. The conductor and a Joiner have one
// each.
type Crew struct {
	Fleet   *fleet.Fleet
	Parcels *parcel.Repo
	Remote  string              // of git, through which parcels go
	Space   string              // names the refs of the parcels
	Self    fleet.Machine       // this process
	Needs   map[string][]string // labels that a machine needs for calls of a phase

	// Publish makes the documents of the run, as they are now, reachable for other machines. Nil: they are
	// on this one only.
	Publish func(context.Context) error
}

// StateKind is the kind of the refs with the documents of a run.
const StateKind = "state"

// Ref returns the ref of a parcel.
func (c *Crew) Ref(kind, name string) string {
	return "refs/lockkeeper/" + c.Space + "/" + kind + "/" + name
}

// A crew is what the conductor knows about the other machines and about the calls that they carry out.
// The slots of the queue count those of all machines; the crew has those of this one.
type crew struct {
	*Crew
	p     *Pipeline
	free  map[string]chan int // free slots of this machine, by pool
	mine  sync.Map            // the calls that this process offered, by id
	bases sync.Map            // the tree of each workspace, by its home: baseTree

	running sync.WaitGroup // the watch, and the removal of parcels

	mu      sync.Mutex
	self    fleet.Machine
	working map[string]fleet.Working
	last    int // numbers the entries of working
	others  []fleet.Machine
	calls   map[string]fleet.Call // the calls of the space, by id
	looks   int                   // how many times look has begun to read calls
	awaited map[string]int        // looks when a call of this process was added to calls, by id
	removed map[string]bool       // calls that this process removed, by id
	settled []fleet.Call          // calls whose results are stored in documents that are not published yet
	spent   int64                 // what other machines spent, in millionths of a dollar
	waiting int                   // calls that this process waits for
	changed chan struct{}         // closed when any of this has changed
	poke    chan struct{}
}

func newCrew(p *Pipeline) *crew {
	c := &crew{Crew: p.opt.Crew, p: p, self: p.opt.Crew.Self, free: map[string]chan int{}, working: map[string]fleet.Working{}, calls: map[string]fleet.Call{}, awaited: map[string]int{}, removed: map[string]bool{},
		changed: make(chan struct{}), poke: make(chan struct{}, 1)}
	for pool, slots := range map[string]int{fleet.AgentPool: p.opt.Limits.Agents, fleet.TestPool: p.opt.Limits.Tests} {
		c.free[pool] = make(chan int, slots)
		for n := range slots {
			c.free[pool] <- n + 1
		}
	}
	return c
}

// start looks at the other machines once, and then until the returned function is called.
func (c *crew) start(ctx context.Context) (stop func(), err error) {
	if err := c.look(ctx); err != nil {
		return nil, err
	}
	used, err := c.p.ledger.usedCalls()
	if err != nil {
		return nil, err
	}
	for _, call := range c.calls {
		if call.Run != c.p.opt.Run || call.Purpose == "" || used[call.ID] { // no call waits for it
			if err := c.remove(ctx, &call); err != nil {
				return nil, err
			}
		}
	}
	c.running.Go(func() { c.sweep(context.WithoutCancel(ctx)) })
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx)) // calls that are stopped are removed after ctx has ended
	c.running.Go(func() { c.watch(ctx) })
	return func() {
		cancel()
		c.running.Wait()
	}, nil
}

// sweep removes parcels at the remote that belong to no call: of conductors that died, and of
// machines that were late.
func (c *crew) sweep(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, parcelTimeout)
	defer cancel()
	prefix := "refs/lockkeeper/" + c.Space + "/"
	refs, err := c.Parcels.Refs(ctx, c.Remote, prefix)
	if err != nil {
		return // git says so when a call is offered
	}
	calls, err := c.Fleet.Calls(ctx)
	if err != nil {
		c.p.trouble(err)
		return
	}
	refs = slices.DeleteFunc(refs, func(ref string) bool {
		kind, name, _ := strings.Cut(strings.TrimPrefix(ref, prefix), "/")
		id, _, _ := strings.Cut(name, "/")
		if kind == StateKind {
			return true // who publishes documents removes the last ones
		}
		_, mine := c.mine.Load(id)
		return mine || slices.ContainsFunc(calls, func(call fleet.Call) bool { return call.ID == id })
	})
	if len(refs) == 0 {
		return
	}
	if err := c.Parcels.Drop(ctx, c.Remote, refs...); err != nil {
		c.p.trouble(fmt.Errorf("remove old calls from %s: %w", c.Remote, err))
	}
}

// Times of watching the other machines.
const (
	lookEvery = 250 * time.Millisecond // while a call is under way on one
	idleEvery = time.Second
)

// watch looks at the other machines until ctx ends.
func (c *crew) watch(ctx context.Context) {
	renewed := time.Time{}
	wait := time.NewTimer(0)
	defer wait.Stop()
	for {
		select {
		case <-ctx.Done():
			if err := c.Fleet.Leave(context.WithoutCancel(ctx), &c.self); err != nil {
				c.p.trouble(err)
			}
			return
		case <-c.poke:
			renewed = time.Time{} // others see at once what this machine does
		case <-wait.C:
		}
		if time.Since(renewed) >= fleet.Renew {
			if err := c.announce(ctx); err != nil && ctx.Err() == nil {
				c.p.trouble(fmt.Errorf("tell the other machines what this one does: %w", err))
			}
			renewed = time.Now()
		}
		if err := c.look(ctx); err != nil && ctx.Err() == nil {
			c.p.trouble(fmt.Errorf("see what the other machines do: %w", err))
		}
		c.mu.Lock()
		next := idleEvery
		if c.waiting > 0 {
			next = lookEvery
		}
		c.mu.Unlock()
		wait.Reset(next)
	}
}

func (c *crew) announce(ctx context.Context) error {
	c.mu.Lock()
	m := c.self
	m.Working = slices.SortedFunc(maps.Values(c.working), func(a, b fleet.Working) int { return a.Since.Compare(b.Since) })
	m.MicroUSD = c.p.Spent().MicroUSD - c.spent
	c.mu.Unlock()
	err := c.Fleet.Announce(ctx, &m)
	c.mu.Lock()
	c.self = m
	c.mu.Unlock()
	return err
}

// look reads machines and calls, returns the calls of dead machines to the queue, and wakes those
// who wait.
func (c *crew) look(ctx context.Context) error {
	c.mu.Lock()
	c.looks++
	look := c.looks
	c.mu.Unlock()
	machines, err := c.Fleet.Machines(ctx)
	if err != nil {
		return err
	}
	others := slices.DeleteFunc(machines, func(m fleet.Machine) bool { return m.ID == c.self.ID || m.Gone || m.Conducts })
	list, err := c.Fleet.Calls(ctx)
	if err != nil {
		return err
	}
	calls := map[string]fleet.Call{}
	for _, call := range list {
		if lost, err := c.Fleet.Expire(ctx, &call); err != nil {
			return err
		} else if lost {
			c.p.tell(News{Kind: NewsWarning, Text: call.Work + " " + call.Phase + ": " + call.Refused + ", the call returns to the queue"})
		}
		calls[call.ID] = call
	}
	c.mu.Lock()
	known := map[string]bool{}
	for _, m := range c.others {
		known[m.ID] = true
	}
	came, left := []fleet.Machine{}, maps.Clone(known)
	for _, m := range others {
		if delete(left, m.ID); !known[m.ID] {
			came = append(came, m)
		}
	}
	for id, since := range c.awaited {
		if _, read := calls[id]; !read && since >= look { // it was offered while the list was read
			calls[id] = c.calls[id]
		}
	}
	maps.DeleteFunc(calls, func(id string, _ fleet.Call) bool { return c.removed[id] }) // after the list was read
	gone := slices.DeleteFunc(slices.Clone(c.others), func(m fleet.Machine) bool { return !left[m.ID] })
	c.others, c.calls = others, calls
	close(c.changed)
	c.changed = make(chan struct{})
	c.mu.Unlock()
	for _, m := range came {
		c.p.tell(News{Kind: NewsRun, Text: fmt.Sprintf("machine %s joined: agents %d, tests %d", m.Name, m.Agents, m.Tests)})
	}
	for _, m := range gone {
		c.p.tell(News{Kind: NewsRun, Text: "machine " + m.Name + " left"})
	}
	return c.p.opt.Queue.Extend(ctx, c.extra())
}

// extra returns how many slots the other machines have, by pool.
func (c *crew) extra() map[string]int {
	c.mu.Lock()
	defer c.mu.Unlock()
	more := map[string]int{}
	for pool := range c.free {
		for _, m := range c.others {
			if !m.Stops {
				more[pool] += m.Slots(pool)
			}
		}
	}
	return more
}

// ships reports whether calls may run, or have run, on another machine.
func (c *crew) ships() bool {
	if c == nil {
		return false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.others)+len(c.calls) > 0
}

// drop forgets a removed call, and removes its parcels in the background.
func (c *crew) drop(ctx context.Context, call *fleet.Call) {
	c.mu.Lock()
	delete(c.calls, call.ID)
	c.removed[call.ID] = true
	c.mu.Unlock()
	refs := c.refsOf(call)
	ctx = context.WithoutCancel(ctx)
	c.running.Go(func() {
		ctx, cancel := context.WithTimeout(ctx, parcelTimeout)
		defer cancel()
		if err := c.Parcels.Drop(ctx, c.Remote, refs...); err != nil {
			c.p.trouble(fmt.Errorf("remove %s: %w", refs[0], err))
		}
	})
}

func (c *Crew) refsOf(call *fleet.Call) []string {
	refs := []string{c.Ref("base", call.ID)}
	if call.Result != "" {
		refs = append(refs, c.resultRef(call))
	}
	return refs
}

func (c *Crew) resultRef(call *fleet.Call) string {
	return c.Ref("result", fmt.Sprintf("%s/%d", call.ID, call.Fence))
}

// settle forgets a call whose result is stored here. The call itself is removed when other machines can
// read the documents: until then another conductor would use its result.
func (c *crew) settle(ctx context.Context, call *fleet.Call) error {
	if c.Publish == nil {
		return c.remove(ctx, call)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.calls, call.ID)
	c.removed[call.ID] = true
	c.settled = append(c.settled, *call)
	return nil
}

// TakeSettled returns calls whose results are stored in documents. The caller removes them with
// ForgetCalls, once other machines can read the documents.
func (p *Pipeline) TakeSettled() (list []fleet.Call) {
	if p.crew == nil {
		return nil
	}
	p.crew.mu.Lock()
	defer p.crew.mu.Unlock()
	list, p.crew.settled = p.crew.settled, nil
	return list
}

// PutSettled returns calls of TakeSettled that were not removed.
func (p *Pipeline) PutSettled(list []fleet.Call) {
	if len(list) > 0 {
		p.crew.mu.Lock()
		defer p.crew.mu.Unlock()
		p.crew.settled = append(list, p.crew.settled...)
	}
}

// ForgetCalls removes calls that TakeSettled returned.
func (p *Pipeline) ForgetCalls(ctx context.Context, list []fleet.Call) (err error) {
	if len(list) == 0 {
		return nil
	}
	var refs []string
	for i := range list {
		_, gone := p.crew.Fleet.Forget(ctx, &list[i])
		err = errors.Join(err, gone)
		refs = append(refs, p.crew.refsOf(&list[i])...)
	}
	return errors.Join(err, p.crew.Parcels.Drop(ctx, p.crew.Remote, refs...))
}

// publish makes the documents reachable for other machines before a landing: if the landing is not pushed, another
// conductor needs the files of the batch.
func (p *Pipeline) publish(ctx context.Context) error {
	if p.crew == nil || p.crew.Publish == nil {
		return nil
	}
	if err := p.crew.Publish(ctx); err != nil {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		p.trouble(fmt.Errorf("another machine could not continue the run: %w", err))
	}
	return nil
}

// parcelTimeout bounds how long git may take to move a parcel.
const parcelTimeout = 10 * time.Minute

// remove removes a call whose result is stored here.
func (c *crew) remove(ctx context.Context, call *fleet.Call) error {
	_, err := c.Fleet.Forget(ctx, call)
	c.drop(ctx, call)
	return err
}

package run

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"lockkeeper/internal/flow/fleet"
	"lockkeeper/internal/git/parcel"
)

// A Joiner takes the calls of a run that another machine conducts, and carries them out here: in
// workspaces of exactly the tree that was sent, in the sandbox and with the agents of this machine.
type Joiner struct {
	p        *Pipeline // its root is the checkout; it runs no flow
	c        *Crew
	checkout *parcel.Checkout
	tell     func(string)
	conducts func(context.Context, *fleet.Run) (bool, error)

	entering sync.Mutex // held while the checkout has the tree of one call
	entered  string     // that tree

	free map[string]chan int

	mu      sync.Mutex
	self    fleet.Machine
	working map[string]fleet.Working
	until   time.Time // no agent starts before: a rate limit
	poke    chan struct{}
}

// NewJoiner makes a joiner. The root of the options is the directory of the checkout. The function conducts reports
// whether the conductor of a run lives.
func NewJoiner(o Options, checkout *parcel.Checkout, tell func(string), conducts func(context.Context, *fleet.Run) (bool, error)) (*Joiner, error) {
	p, err := New(o)
	if err != nil {
		return nil, err
	}
	j := &Joiner{p: p, c: o.Crew, checkout: checkout, tell: tell, conducts: conducts, self: o.Crew.Self, working: map[string]fleet.Working{}, poke: make(chan struct{}, 1), free: map[string]chan int{}}
	for pool, slots := range map[string]int{fleet.AgentPool: o.Limits.Agents, fleet.TestPool: o.Limits.Tests} {
		j.free[pool] = make(chan int, slots)
		for n := range slots {
			j.free[pool] <- n + 1
		}
	}
	return j, nil
}

// An Ending says why a joiner ended.
type Ending struct {
	Run  *fleet.Run // the last run; nil: there was none
	Dead bool       // its conductor disappeared
}

// Run takes calls until the run ends, or with stay until stop is closed. When stop is closed, it
// takes no further calls and finishes running ones. When ctx ends, running calls are stopped, and
// return to the queue.
func (j *Joiner) Run(ctx context.Context, stop <-chan struct{}, stay bool) (end Ending, err error) {
	defer func() { err = errors.Join(err, j.p.closeBase(context.WithoutCancel(ctx))) }()
	defer func() { err = errors.Join(err, j.c.Fleet.Leave(context.WithoutCancel(ctx), &j.self)) }()
	var calls sync.WaitGroup
	defer calls.Wait()
	wait := time.NewTimer(0)
	defer wait.Stop()
	var announced, asked time.Time
	over := false
	for {
		select {
		case <-stop:
			stop = nil
			j.mu.Lock()
			j.self.Stops = true
			j.mu.Unlock()
			announced = time.Time{}
		case <-j.poke:
			announced = time.Time{}
		case <-wait.C:
		case <-ctx.Done():
			return end, nil
		}
		if time.Since(announced) >= fleet.Renew {
			if err := j.announce(ctx); err != nil {
				j.trouble(ctx, err)
			} else {
				announced = time.Now()
			}
		}
		if time.Since(asked) >= idleEvery {
			if err := j.ask(ctx, &end, &over); err != nil {
				j.trouble(ctx, err)
			} else {
				asked = time.Now()
			}
		}
		if (j.isStopping() || over && (!stay || end.Dead)) && j.isIdle() {
			return end, nil
		}
		if !j.isStopping() && !over {
			if err := j.take(ctx, &calls); err != nil {
				j.trouble(ctx, err)
			}
		}
		wait.Reset(lookEvery)
	}
}

// ask reads the run of the space, and whether its conductor lives.
func (j *Joiner) ask(ctx context.Context, end *Ending, over *bool) error {
	r, err := j.c.Fleet.Run(ctx)
	if err != nil {
		return err
	}
	lives := false
	if r != nil && r.Ended.IsZero() {
		if lives, err = j.conducts(ctx, r); err != nil {
			return err
		}
	}
	end.Run, end.Dead, *over = r, r != nil && r.Ended.IsZero() && !lives, !lives
	return nil
}

func (j *Joiner) trouble(ctx context.Context, err error) {
	if ctx.Err() == nil {
		j.p.trouble(err)
	}
}

func (j *Joiner) isStopping() bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.self.Stops
}

func (j *Joiner) isIdle() bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	return len(j.working) == 0
}

func (j *Joiner) announce(ctx context.Context) error {
	j.mu.Lock()
	m := j.self
	m.Working = slices.SortedFunc(maps.Values(j.working), func(a, b fleet.Working) int { return a.Since.Compare(b.Since) })
	if j.rests() {
		m.Agents = 0
	}
	agents := j.self.Agents
	j.mu.Unlock()
	err := j.c.Fleet.Announce(ctx, &m)
	j.mu.Lock()
	defer j.mu.Unlock()
	stops := j.self.Stops
	calls, spent := j.self.Calls, j.self.MicroUSD
	j.self = m
	j.self.Agents, j.self.Stops, j.self.Calls, j.self.MicroUSD = agents, stops, calls, spent
	return err
}

// rests reports whether no agent may start on this machine: its account is limited, or its share of the budget is used
// up. The caller holds mu.
func (j *Joiner) rests() bool { return time.Now().Before(j.until) || j.p.ledger.start() != nil }

// take claims queued calls while slots are free.
func (j *Joiner) take(ctx context.Context, calls *sync.WaitGroup) error {
	list, err := j.c.Fleet.Calls(ctx)
	if err != nil {
		return err
	}
	for _, call := range list {
		j.mu.Lock()
		m := j.self
		if j.rests() {
			m.Agents = 0
		}
		j.mu.Unlock()
		if call.State != fleet.Queued || !m.Takes(call.Need) || slices.Contains(call.Avoid, m.ID) {
			continue
		}
		select {
		case slot := <-j.free[call.Need.Pool]:
			mine, err := j.c.Fleet.Claim(ctx, &call, &m)
			if err != nil || !mine {
				j.free[call.Need.Pool] <- slot
				if err != nil {
					return err
				}
				continue
			}
			j.begin(&call)
			calls.Go(func() {
				defer func() {
					j.end(&call)
					j.free[call.Need.Pool] <- slot
				}()
				j.carryOut(ctx, &call, slot)
			})
		default:
		}
	}
	return nil
}

func (j *Joiner) begin(call *fleet.Call) {
	j.mu.Lock()
	j.working[call.ID] = fleet.Working{Call: call.ID, Work: call.Work, Phase: call.Phase, Pool: call.Need.Pool, Since: time.Now().UTC()}
	j.mu.Unlock()
	j.tell(call.Work + " " + call.Phase + " started")
	j.wake()
}

func (j *Joiner) end(call *fleet.Call) {
	j.mu.Lock()
	delete(j.working, call.ID)
	j.self.Calls++
	j.mu.Unlock()
	j.wake()
}

func (j *Joiner) wake() {
	select {
	case j.poke <- struct{}{}:
	default: // a wake-up is pending already
	}
}

// errTakenBack is the cause if a call was given to another machine, or removed.
var errTakenBack = errors.New("the conductor took the call back")

// carryOut carries out a claimed call, and stores its result unless the call was withdrawn.
func (j *Joiner) carryOut(ctx context.Context, call *fleet.Call, slot int) {
	began := time.Now()
	work, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	stopRenewing := j.renew(work, call, cancel)
	commit, err := j.do(work, call, slot)
	stopRenewing()
	what := call.Work + " " + call.Phase
	switch {
	case errors.Is(context.Cause(work), errTakenBack):
		j.tell(what + " stopped: " + errTakenBack.Error())
		return
	case err != nil:
		j.tell(what + " returned to the queue: " + err.Error())
		if _, err := j.c.Fleet.Return(context.WithoutCancel(ctx), call, j.c.Self.Name+": "+err.Error()); err != nil {
			j.p.trouble(err)
		}
		return
	}
	ctx, done := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
	defer done()
	mine, err := j.c.Fleet.Finish(ctx, call, commit)
	switch {
	case err != nil:
		j.p.trouble(fmt.Errorf("%s: its result could not be stored: %w", what, err))
	case !mine:
		j.tell(what + ": its result is dropped, because the call was given to another machine")
		if err := j.c.Parcels.Drop(ctx, j.c.Remote, j.c.resultRef(call)); err != nil {
			j.p.trouble(err)
		}
	default:
		j.tell(what + " done after " + time.Since(began).Round(100*time.Millisecond).String())
	}
}

// renew renews the claim of a call until the returned function is called. If the claim is lost, or
// cannot be renewed before it ends, renew stops the work.
func (j *Joiner) renew(ctx context.Context, call *fleet.Call, lost context.CancelCauseFunc) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	var done sync.WaitGroup
	done.Go(func() {
		every := time.NewTicker(fleet.Renew)
		defer every.Stop()
		for valid := time.Now().Add(fleet.Lease); ; {
			select {
			case <-ctx.Done():
				return
			case <-every.C:
			}
			asked := time.Now()
			limited, done := context.WithDeadline(ctx, valid)
			mine, err := j.c.Fleet.Renew(limited, call)
			done()
			switch {
			case err == nil && mine:
				valid = asked.Add(fleet.Lease)
			case ctx.Err() != nil:
				return
			case err == nil || !time.Now().Before(valid.Add(-fleet.Renew)):
				lost(errTakenBack)
				return
			}
		}
	})
	return func() {
		cancel()
		done.Wait()
	}
}

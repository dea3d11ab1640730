package run

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"lockkeeper/internal/flow/fleet"
)

// A placement says where a call runs: in a slot of this machine, or, if call is set, on another one,
// where it is done.
type placement struct {
	slot int
	done func()
	call *fleet.Call
}

// A wanted call is about to be placed.
type wantedCall struct {
	need    fleet.Need
	working fleet.Working
	purpose string
	// offer puts the call into the queue of all machines. It returns an error if it cannot run on
	// another one.
	offer func(context.Context) (*fleet.Call, error)
}

// patience is how long a call waits for a machine with a free slot before a slot that becomes free
// here takes it back.
const patience = time.Second

// place waits for a free slot and chooses the least busy machine. If that is another machine, place
// returns when the call has ended there.
func (c *crew) place(ctx context.Context, w wantedCall) (placement, error) {
	if found := c.withPurpose(w.purpose); found != nil { // an earlier conductor offered it
		return c.await(ctx, w, found)
	}
	failed := false
	for {
		here, there, better, changed := c.choices(w.need)
		there = there && !failed
		if here && (!there || better) {
			select {
			case slot := <-c.free[w.need.Pool]:
				return c.inSlot(w, slot), nil
			default:
			}
		}
		if there {
			call, err := w.offer(ctx)
			if err == nil {
				return c.await(ctx, w, call)
			}
			if ctx.Err() != nil {
				return placement{}, context.Cause(ctx)
			}
			failed = true // it runs here
			c.p.trouble(fmt.Errorf("%s %s cannot run on another machine: %w", w.working.Work, w.working.Phase, err))
			continue
		}
		if !here {
			c.p.trouble(fmt.Errorf("%s %s waits for a machine that has %s", w.working.Work, w.working.Phase, w.need))
			select {
			case <-changed:
			case <-ctx.Done():
				return placement{}, context.Cause(ctx)
			}
			failed = false
			continue
		}
		select {
		case slot := <-c.free[w.need.Pool]:
			return c.inSlot(w, slot), nil
		case <-changed:
		case <-ctx.Done():
			return placement{}, context.Cause(ctx)
		}
	}
}

// choices reports whether this machine can run a call, whether another one can, and whether this one
// is no busier than every other one.
func (c *crew) choices(n fleet.Need) (here, there, better bool, changed <-chan struct{}) {
	c.mu.Lock()
	defer c.mu.Unlock()
	here, better = c.self.Takes(n), true
	load := func(busy, slots int) float64 { return float64(busy) / float64(slots) }
	slots := cap(c.free[n.Pool])
	own := load(slots-len(c.free[n.Pool]), max(1, slots))
	queued := 0
	for _, call := range c.calls {
		if call.State == fleet.Queued && call.Need.Pool == n.Pool {
			queued++
		}
	}
	for _, m := range c.others {
		if m.Takes(n) {
			there = true
			better = better && own <= load(m.Busy(n.Pool)+queued, m.Slots(n.Pool))
		}
	}
	return here, there, better, c.changed
}

// inSlot places a call in a slot of this machine.
func (c *crew) inSlot(w wantedCall, slot int) placement {
	done := c.begin(w.working)
	return placement{slot: slot, done: func() {
		done()
		c.free[w.need.Pool] <- slot
	}}
}

// begin shows what this machine does until the returned function is called.
func (c *crew) begin(w fleet.Working) (done func()) {
	w.Since = time.Now().UTC()
	c.mu.Lock()
	c.last++
	key := fmt.Sprint(c.last)
	c.working[key] = w
	c.mu.Unlock()
	c.tell()
	return func() {
		c.mu.Lock()
		delete(c.working, key)
		c.mu.Unlock()
		c.tell()
	}
}

func (c *crew) tell() {
	select {
	case c.poke <- struct{}{}:
	default: // a wake-up is pending already
	}
}

// withPurpose returns a call for a purpose of this run, or nil.
func (c *crew) withPurpose(purpose string) *fleet.Call {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, call := range c.calls {
		if purpose != "" && call.Purpose == purpose && call.Run == c.p.opt.Run && !c.removed[call.ID] {
			return &call
		}
	}
	return nil
}

// resultOf returns the completed call for a purpose of this run, or nil.
func (c *crew) resultOf(purpose string) *fleet.Call {
	if c == nil {
		return nil
	}
	if found := c.withPurpose(purpose); found != nil && found.State == fleet.Done {
		return found
	}
	return nil
}

// await waits until a call is done. If a slot of this machine becomes free first, the call runs here.
func (c *crew) await(ctx context.Context, w wantedCall, call *fleet.Call) (placement, error) {
	c.mu.Lock()
	c.waiting++
	c.calls[call.ID], c.awaited[call.ID] = *call, c.looks
	here := c.self.Takes(w.need)
	c.mu.Unlock()
	c.tell()
	defer func() {
		c.mu.Lock()
		c.waiting--
		delete(c.awaited, call.ID)
		c.mu.Unlock()
	}()
	queued := time.Now()
	for {
		c.mu.Lock()
		now, known := c.calls[call.ID]
		changed := c.changed
		c.mu.Unlock()
		switch {
		case !known:
			return placement{}, errors.New("another process removed the call of " + w.working.Work)
		case now.State == fleet.Done:
			return placement{call: &now}, nil
		case now.State == fleet.Claimed:
			queued = time.Now()
		}
		var free chan int
		if here && now.State == fleet.Queued && time.Since(queued) > patience {
			free = c.free[w.need.Pool]
		}
		select {
		case <-changed:
		case slot := <-free:
			if ok, err := c.Fleet.Withdraw(ctx, &now); err != nil || !ok {
				c.free[w.need.Pool] <- slot
				if err != nil {
					return placement{}, err
				}
				queued = time.Now() // a machine has just claimed it
				continue
			}
			c.drop(ctx, &now)
			return c.inSlot(w, slot), nil
		case <-ctx.Done():
			return placement{}, errors.Join(context.Cause(ctx), c.abandon(ctx, call.ID))
		}
	}
}

// abandon removes a call that this run stops. While the conductor only dies, calls stay.
func (c *crew) abandon(ctx context.Context, id string) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	for {
		calls, err := c.Fleet.Calls(ctx)
		at := slices.IndexFunc(calls, func(call fleet.Call) bool { return call.ID == id })
		if err != nil || at < 0 || calls[at].State == fleet.Done {
			return err // a complete result is used by the next run
		}
		if ok, err := c.Fleet.Forget(ctx, &calls[at]); err != nil || ok {
			c.drop(ctx, &calls[at])
			return err
		}
	}
}

package lock

import (
	"context"
	"errors"
	"time"

	"lockkeeper"
	"lockkeeper/store"
)

// Acquire waits for the whole request, behind the requests that came earlier. The argument wait is
// the longest wait, also for a store that cannot be reached for some time. Acquire returns a grant, a *LockTimeoutError that lists the blockers, or the
// context's error. With an error, nothing is held and nothing waits.
func (m *Manager) Acquire(ctx context.Context, req lockkeeper.Request, wait time.Duration) (*Grant, error) {
	if wait < 0 {
		return nil, &lockkeeper.InputError{Field: "wait", Value: wait.String(), Reason: "negative", Next: "give a positive duration"}
	}
	p, err := m.NewPosition(req)
	if err != nil {
		return nil, err
	}
	defer p.close()
	deadline := time.NewTimer(wait)
	defer deadline.Stop()
	for failed := 0; ; {
		g, err := p.Poll(ctx)
		switch {
		case g != nil:
			return g, nil
		case err == nil:
			failed = 0
			err = p.sleep(ctx, deadline.C)
		case lockkeeper.IsTemporary(err):
			cause := err
			if err = p.pause(ctx, store.Pause(failed), deadline.C); err == errWaitedLongEnough {
				err = cause
			}
			failed++
		}
		if err != nil {
			return p.leave(ctx, err)
		}
	}
}

// pause returns nil after the time between two attempts.
func (p *Position) pause(ctx context.Context, d time.Duration, deadline <-chan time.Time) error {
	again := time.NewTimer(d)
	defer again.Stop()
	select {
	case <-again.C:
		return nil
	case <-deadline:
		return errWaitedLongEnough
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// A Position is a request in the wait list, for a caller that does its own waiting. The
// first Poll enters the list. The caller must poll again within Options.WaitLease, until
// Poll returns a grant or the caller calls Leave. Only one goroutine may use it.
type Position struct {
	m        *Manager
	rec      *store.Record
	holder   *lockkeeper.Process // recorded once the request is held
	token    string
	listener store.Listener // nil before the first Poll
	entered  time.Time
	polled   time.Time
	attempts int
	unsure   bool               // an attempt failed, so the request may be in the store
	found    []store.Overlap    // the blockers at the last Poll
	foundAt  lockkeeper.Instant // time of the last Poll
	lapse    time.Duration      // time from the last Poll until the blocker that the request waits on lapses; 0: never
}

// NewPosition checks a request. It does not enter the wait list.
func (m *Manager) NewPosition(req lockkeeper.Request) (*Position, error) {
	rec, token, err := m.prepare(req)
	if err != nil {
		return nil, err
	}
	return &Position{m: m, rec: rec, holder: rec.Process, token: token, entered: time.Now()}, nil
}

// ID returns the id that the grant will have.
func (p *Position) ID() string { return p.rec.ID }

// Woken returns a channel that says when to poll again. It is nil before the first Poll.
func (p *Position) Woken() <-chan struct{} {
	if p.listener == nil {
		return nil
	}
	return p.listener.Woken()
}

// Conflicts returns the blockers that the last Poll found.
func (p *Position) Conflicts() []lockkeeper.ConflictInfo { return Conflicts(p.found) }

// Poll enters the wait list, renews the position in it, or acquires the grant. It returns nil
// while the request is blocked, and never waits. After an error the request may or may not
// be in the list: call Poll again, or Leave.
func (p *Position) Poll(ctx context.Context) (*Grant, error) {
	for {
		if err := p.poll(ctx); err != nil {
			return nil, err
		}
		if p.rec.State == store.StateHeld {
			p.close()
			return p.m.handle(p.rec, p.token, p.polled), nil
		}
		// Free only the blocker that the request waits on. The request cannot be granted before
		// that blocker leaves, and the facts about the other blockers may be old.
		freed, err := p.m.recoverGone(ctx, p.found[:1], p.foundAt)
		if err != nil || !freed {
			return nil, err
		}
	}
}

// Leave removes the request from the wait list. It releases a grant that Poll has not
// returned yet. A grant that Poll has returned stays.
func (p *Position) Leave(ctx context.Context) error {
	defer p.close()
	if p.rec.State == store.StateHeld {
		return nil
	}
	_, err := p.leave(ctx, errLeft)
	if err == errLeft { // not errors.Is: errLeft may be joined with another error
		return nil
	}
	return err
}

func (p *Position) close() {
	if p.listener != nil {
		p.listener.Close()
	}
}

var (
	errWaitedLongEnough = errors.New("the time limit of the wait has passed")
	errLeft             = errors.New("left the wait list")
)

// sleep returns nil when it is time to poll: the listener was woken, the lease or the process
// of a blocker ended, or the request must be renewed.
func (p *Position) sleep(ctx context.Context, deadline <-chan time.Time) error {
	wait := p.m.opt.WaitLease / 3
	if p.lapse > 0 {
		wait = min(wait, p.lapse)
	}
	again := time.NewTimer(wait)
	defer again.Stop()
	watching, stop := context.WithCancel(ctx)
	defer stop()
	select {
	case <-p.listener.Woken():
	case <-again.C:
	case <-p.m.exited(watching, p.found):
	case <-deadline:
		return errWaitedLongEnough
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	return nil
}

// poll is one transaction of Poll. A request that lapsed while this process slept enters
// again, at the end of the list. The fields change only after the transaction has committed.
func (p *Position) poll(ctx context.Context) error {
	p.attempts++
	p.polled = time.Now()
	if p.listener == nil {
		if !p.unsure {
			granted, err := p.m.tryFastPath(ctx, p.rec)
			if p.unsure = err != nil; err != nil || granted {
				return err
			}
		}
		var err error
		if p.listener, err = p.m.store.Listen(ctx, p.rec.ID); err != nil {
			return err
		}
	}
	var next *store.Record
	var found []store.Overlap
	var seen lockkeeper.Instant
	var lapse time.Duration
	err := p.m.Update(ctx, func(tx *Tx) error {
		cur, err := tx.Get(p.rec.ID)
		if err != nil {
			return err
		}
		if cur != nil && tx.m.lapsed(cur, tx.Now().Lease) {
			if err := tx.expire(cur); err != nil {
				return err
			}
			cur = nil
		}
		if cur == nil {
			next = clone(p.rec)
			next.Ticket, next.Process = 0, p.holder
			found, err = tx.enter(next, store.StateHeld)
		} else {
			next = clone(cur)
			next.Process = p.holder
			found, err = tx.proceed(next, p.found)
		}
		seen, lapse = tx.Now().Lease, tx.untilLapse(found)
		return err
	})
	if err == nil {
		p.rec, p.found, p.foundAt, p.lapse = next, found, seen, lapse
	}
	return err
}

// leave removes the request from the wait list. If it was granted meanwhile, a waiter that
// timed out keeps the grant, and a canceled waiter releases it.
func (p *Position) leave(ctx context.Context, why error) (*Grant, error) {
	timedOut := errors.Is(why, errWaitedLongEnough)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	began := time.Now()
	var kept *store.Record
	err := p.m.Update(ctx, func(tx *Tx) error {
		kept = nil
		cur, err := tx.Get(p.rec.ID)
		if err != nil || cur == nil {
			return err
		}
		if timedOut && cur.State != store.StateWaiting && !tx.m.lapsed(cur, tx.Now().Lease) {
			kept = clone(cur)
			kept.Process = p.holder
			_, err := tx.proceed(kept, nil)
			return err
		}
		ev := about(lockkeeper.EventWithdrawn, cur)
		ev.Reason = why.Error()
		if timedOut {
			ev.Kind, ev.Conflicts = lockkeeper.EventTimedOut, Conflicts(p.found)
		}
		return tx.free(cur, ev)
	})
	switch {
	case err != nil:
		return nil, errors.Join(why, err)
	case kept != nil:
		return p.m.handle(kept, p.token, began), nil
	case timedOut:
		return nil, &lockkeeper.LockTimeoutError{Holder: p.rec.Holder, Waited: time.Since(p.entered),
			Attempts: p.attempts, Conflicts: Conflicts(p.found)}
	}
	return nil, why
}

// exited returns a channel that is closed when the process of the blocker that a request
// waits on is gone.
func (m *Manager) exited(ctx context.Context, found []store.Overlap) <-chan struct{} {
	if m.opt.Processes == nil || len(found) == 0 || found[0].Record.Process == nil {
		return nil
	}
	return m.opt.Processes.Exited(ctx, *found[0].Record.Process)
}

package lock

import (
	"context"
	"errors"
	"time"

	"lockkeeper"
)

// Acquire waits up to wait for the whole request, in the order of asking. It
// ends with a grant, with a *LockTimeoutError that says who was in the way, or
// with the context's error; in the latter two cases nothing is held and nothing
// waits.
func (m *Manager) Acquire(ctx context.Context, req lockkeeper.Request, wait time.Duration) (*Grant, error) {
	if wait < 0 {
		return nil, &lockkeeper.InputError{Field: "wait", Value: wait.String(), Reason: "negative", Next: "give a positive duration"}
	}
	rec, token, err := m.prepare(req)
	if err != nil {
		return nil, err
	}
	if m.express != nil {
		found, _, err := m.try(ctx, rec)
		if err != nil {
			return nil, err
		}
		if found == nil {
			return m.handle(rec, token), nil
		}
	}
	bell, err := m.store.Bell(ctx, rec.ID)
	if err != nil {
		return nil, err
	}
	defer bell.Close()
	w := waiter{m: m, rec: rec, bell: bell, began: time.Now(), limit: wait}
	if err := w.line(ctx); err != nil {
		return nil, err
	}
	return m.handle(w.rec, token), nil
}

// waiter is one request on its way through the line. It belongs to one call of
// Acquire.
type waiter struct {
	m        *Manager
	rec      *lockkeeper.Record
	bell     lockkeeper.Bell
	began    time.Time
	limit    time.Duration
	attempts int
	found    []lockkeeper.Overlap // what stood in the way at the last attempt
	lapse    time.Duration        // from the last attempt to the earliest lapse among found; 0: none
}

// line enters the line and stays until the request is held or given up.
func (w *waiter) line(ctx context.Context) error {
	deadline := time.NewTimer(w.limit)
	defer deadline.Stop()
	for {
		if err := w.attend(ctx); err != nil {
			return w.leave(ctx, err)
		}
		if w.rec.State == lockkeeper.StateHeld {
			return nil
		}
		freed, err := w.m.recoverGone(ctx, w.found)
		if err != nil {
			return w.leave(ctx, err)
		}
		if freed {
			continue
		}
		if err := w.sleep(ctx, deadline.C); err != nil {
			return w.leave(ctx, err)
		}
	}
}

var errWaitedLongEnough = errors.New("waited long enough")

// sleep returns nil when the state is worth another look: the bell rang, a
// blocker's lease or process ended, or the own lease wants renewing.
func (w *waiter) sleep(ctx context.Context, deadline <-chan time.Time) error {
	look := w.m.opt.WaitLease / 3
	if w.lapse > 0 {
		look = min(look, w.lapse)
	}
	again := time.NewTimer(look)
	defer again.Stop()
	watching, stop := context.WithCancel(ctx)
	defer stop()
	select {
	case <-w.bell.Ring():
	case <-again.C:
	case <-w.m.anyExited(watching, w.found):
	case <-deadline:
		return errWaitedLongEnough
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	return nil
}

// attend is one visit to the line: enter it, renew the place in it, or take and
// confirm the grant. A place that lapsed while this process slept is lost, and
// entering again is at the end of the line.
func (w *waiter) attend(ctx context.Context) error {
	w.attempts++
	return w.m.update(ctx, func(s *step) error {
		cur, err := s.tx.Get(w.rec.ID)
		if err != nil {
			return err
		}
		if cur != nil && s.m.lapsed(cur, s.now.Lease) {
			if err := s.expire(cur); err != nil {
				return err
			}
			cur = nil
		}
		var next lockkeeper.Record
		if cur == nil {
			next = *w.rec
			next.Ticket = 0
			w.found, err = s.enter(&next)
		} else {
			next = *cur
			w.found, err = s.proceed(&next)
		}
		w.rec, w.lapse = &next, s.earliestLapse(w.found)
		return err
	})
}

// enter grants a new request or puts it at the end of the line.
func (s *step) enter(rec *lockkeeper.Record) ([]lockkeeper.Overlap, error) {
	found, _, err := s.blockers(lockkeeper.Query{Locks: rec.Locks, Before: lockkeeper.AnyTicket})
	if err != nil {
		return nil, err
	}
	if len(found) == 0 {
		return nil, s.grant(rec, lockkeeper.StateHeld)
	}
	rec.State, rec.AcquiredAt = lockkeeper.StateWaiting, s.now.Wall
	rec.ParkedOn, rec.Blockers = found[0].Record.Ticket, digest(found)
	s.leaseFor(rec, s.m.opt.WaitLease)
	ev := &lockkeeper.Event{
		Kind: lockkeeper.EventWaiting, Actor: lockkeeper.Actor{Name: rec.Holder, Kind: lockkeeper.ActorHolder},
		GrantID: rec.ID, Holder: rec.Holder, Locks: rec.Locks, Conflicts: conflicts(found),
	}
	if err := s.append(ev); err != nil {
		return nil, err
	}
	rec.Ticket = ev.Seq
	return found, s.tx.Insert(rec)
}

// proceed confirms a promotion, or renews the place of a request that waits on.
func (s *step) proceed(rec *lockkeeper.Record) ([]lockkeeper.Overlap, error) {
	if rec.State == lockkeeper.StateWaiting {
		found, err := s.examine(rec, lockkeeper.StateHeld)
		if err != nil {
			return nil, err
		}
		cur, err := s.tx.Get(rec.ID)
		if err != nil {
			return nil, err
		}
		*rec = *cur
		if len(found) > 0 {
			s.leaseFor(rec, s.m.opt.WaitLease)
			return found, s.tx.Save(rec)
		}
		return nil, nil
	}
	rec.State = lockkeeper.StateHeld
	s.lease(rec)
	return nil, s.tx.Save(rec)
}

// earliestLapse is the time until the first of the blockers lapses by itself,
// a little later, so that it has lapsed when it is looked at; 0 when none will.
func (s *step) earliestLapse(found []lockkeeper.Overlap) (soonest time.Duration) {
	for _, o := range found {
		if at, ok := s.m.lapsesAt(o.Record); ok {
			d := max(at.Until(s.now.Lease), 0) + time.Millisecond
			if soonest == 0 || d < soonest {
				soonest = d
			}
		}
	}
	return soonest
}

// leave takes the request out of the line. When it was granted meanwhile, a
// waiter whose time is up keeps it and one that was cancelled gives it back.
func (w *waiter) leave(ctx context.Context, why error) error {
	timedOut := errors.Is(why, errWaitedLongEnough)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	err := w.m.update(ctx, func(s *step) error {
		cur, err := s.tx.Get(w.rec.ID)
		if err != nil || cur == nil {
			return err
		}
		if timedOut && cur.State != lockkeeper.StateWaiting && !s.m.lapsed(cur, s.now.Lease) {
			next := *cur
			_, err := s.proceed(&next)
			w.rec = &next
			return err
		}
		ev := &lockkeeper.Event{Kind: lockkeeper.EventWithdrawn, Reason: why.Error(),
			Actor: lockkeeper.Actor{Name: w.rec.Holder, Kind: lockkeeper.ActorHolder}}
		if timedOut {
			ev.Kind, ev.Conflicts = lockkeeper.EventTimedOut, conflicts(w.found)
		}
		return s.free(cur, ev)
	})
	switch {
	case err != nil:
		return errors.Join(why, err)
	case w.rec.State == lockkeeper.StateHeld:
		return nil
	case timedOut:
		return &lockkeeper.LockTimeoutError{Holder: w.rec.Holder, Waited: time.Since(w.began),
			Attempts: w.attempts, Conflicts: conflicts(w.found)}
	}
	return why
}

// anyExited is closed when one of the blockers' processes is gone.
func (m *Manager) anyExited(ctx context.Context, found []lockkeeper.Overlap) <-chan struct{} {
	if m.opt.Processes == nil {
		return nil
	}
	const watched = 16 // the slow poll finds the rest
	var all []<-chan struct{}
	seen := map[lockkeeper.Process]bool{}
	for _, o := range found {
		if p := o.Record.Process; p != nil && !seen[*p] && len(all) < watched {
			seen[*p] = true
			all = append(all, m.opt.Processes.Exited(ctx, *p))
		}
	}
	switch len(all) {
	case 0:
		return nil
	case 1:
		return all[0]
	}
	first := make(chan struct{}, len(all))
	for _, c := range all {
		go func() {
			select {
			case <-c:
				first <- struct{}{}
			case <-ctx.Done():
			}
		}()
	}
	return first
}

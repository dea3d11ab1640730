package lock

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"lockkeeper"
	"lockkeeper/store"
)

// Acquire waits up to wait for the whole request, in the order of asking. It
// ends with a grant, with a *LockTimeoutError that says who was in the way, or
// with the context's error; in the latter two cases nothing is held and nothing
// waits.
func (m *Manager) Acquire(ctx context.Context, req lockkeeper.Request, wait time.Duration) (*Grant, error) {
	if wait < 0 {
		return nil, &lockkeeper.InputError{Field: "wait", Value: wait.String(), Reason: "negative", Next: "give a positive duration"}
	}
	p, err := m.Place(req)
	if err != nil {
		return nil, err
	}
	defer p.close()
	deadline := time.NewTimer(wait)
	defer deadline.Stop()
	for {
		g, err := p.Attend(ctx)
		if err == nil && g == nil {
			err = p.sleep(ctx, deadline.C)
		}
		switch {
		case err != nil:
			return p.leave(ctx, err)
		case g != nil:
			return g, nil
		}
	}
}

// Place is one request on its way through the line, for a caller that waits in
// its own way. It is in the line from the first Attend on, and has to be
// attended again within Options.WaitLease, until a grant comes or Leave. It is
// not for several goroutines at once.
type Place struct {
	m        *Manager
	rec      *store.Record
	holder   *lockkeeper.Process // recorded once the request is held
	token    string
	bell     store.Listener // nil before the first visit
	entered  time.Time
	visited  time.Time
	attempts int
	found    []store.Overlap    // what stood in the way at the last visit
	seen     lockkeeper.Instant // when that was
	lapse    time.Duration      // from the last visit to the lapse of the one it is parked on; 0: none
}

// Place checks a request and makes a place for it, without entering the line.
func (m *Manager) Place(req lockkeeper.Request) (*Place, error) {
	rec, token, err := m.prepare(req)
	if err != nil {
		return nil, err
	}
	return &Place{m: m, rec: rec, holder: rec.Process, token: token, entered: time.Now()}, nil
}

// ID is the id that the grant will have.
func (p *Place) ID() string { return p.rec.ID }

// Ring tells that Attend is worth calling now. It is nil before the first call.
func (p *Place) Woken() <-chan struct{} {
	if p.bell == nil {
		return nil
	}
	return p.bell.Woken()
}

// Conflicts is what stood in the way when the place was last attended.
func (p *Place) Conflicts() []lockkeeper.ConflictInfo { return conflicts(p.found) }

// Attend enters the line, keeps the place in it, or takes the grant. It answers
// nil while something stands in the way, and never waits. After an error the
// place may or may not be in the line: call Attend again, or Leave.
func (p *Place) Attend(ctx context.Context) (*Grant, error) {
	for {
		if err := p.visit(ctx); err != nil {
			return nil, err
		}
		if p.rec.State == store.StateHeld {
			p.close()
			return p.m.handle(p.rec, p.token, p.visited), nil
		}
		// Only the blocker it is parked on: before that one leaves, the request cannot
		// be granted anyway, and what is known of the others may be old.
		freed, err := p.m.recoverGone(ctx, p.found[:1], p.seen)
		if err != nil || !freed {
			return nil, err
		}
	}
}

// Leave takes the request out of the line. A grant that came meanwhile, and was
// not yet answered by Attend, is given back; one that was answered is its
// holder's.
func (p *Place) Leave(ctx context.Context) error {
	defer p.close()
	if p.rec.State == store.StateHeld {
		return nil
	}
	_, err := p.leave(ctx, errLeft)
	if err == errLeft { // and not joined with the reason why it could not
		return nil
	}
	return err
}

func (p *Place) close() {
	if p.bell != nil {
		p.bell.Close()
	}
}

var (
	errWaitedLongEnough = errors.New("waited long enough")
	errLeft             = errors.New("left the line")
)

// sleep returns nil when the state is worth another look: the bell rang, a
// blocker's lease or process ended, or the own lease wants renewing.
func (p *Place) sleep(ctx context.Context, deadline <-chan time.Time) error {
	look := p.m.opt.WaitLease / 3
	if p.lapse > 0 {
		look = min(look, p.lapse)
	}
	again := time.NewTimer(look)
	defer again.Stop()
	watching, stop := context.WithCancel(ctx)
	defer stop()
	select {
	case <-p.bell.Woken():
	case <-again.C:
	case <-p.m.exited(watching, p.found):
	case <-deadline:
		return errWaitedLongEnough
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	return nil
}

// visit is one look at the line: enter it, renew the place in it, or take and
// confirm the grant. A place that lapsed while this process slept is lost, and
// entering again is at the end of the line. What is believed of the request
// changes only once the transaction has committed.
func (p *Place) visit(ctx context.Context) error {
	p.attempts++
	p.visited = time.Now()
	if p.bell == nil {
		granted, err := p.m.admit(ctx, p.rec)
		if err != nil || granted {
			return err
		}
		if p.bell, err = p.m.store.Listen(ctx, p.rec.ID); err != nil {
			return err
		}
	}
	var next *store.Record
	var found []store.Overlap
	var seen lockkeeper.Instant
	var lapse time.Duration
	err := p.m.update(ctx, func(s *step) error {
		cur, err := s.tx.Get(p.rec.ID)
		if err != nil {
			return err
		}
		if cur != nil && s.m.lapsed(cur, s.now.Lease) {
			if err := s.expire(cur); err != nil {
				return err
			}
			cur = nil
		}
		if cur == nil {
			next = clone(p.rec)
			next.Ticket, next.Process = 0, p.holder
			found, err = s.enter(next, store.StateHeld)
		} else {
			next = clone(cur)
			next.Process = p.holder
			found, err = s.proceed(next, p.found)
		}
		seen, lapse = s.now.Lease, s.untilLapse(found)
		return err
	})
	if err == nil {
		p.rec, p.found, p.seen, p.lapse = next, found, seen, lapse
	}
	return err
}

// enter grants a new request, in the given state, or puts it at the end of the line.
func (s *step) enter(rec *store.Record, free store.State) ([]store.Overlap, error) {
	found, _, err := s.blockers(store.Query{Locks: rec.Locks, Before: store.AnyTicket})
	if err != nil {
		return nil, err
	}
	if len(found) == 0 {
		return nil, s.grant(rec, free)
	}
	rec.State, rec.AcquiredAt = store.StateWaiting, s.now.Wall
	rec.WaitsOn, rec.Blockers = found[0].Record.Ticket, digest(found)
	s.keepPlace(rec)
	ev := about(lockkeeper.EventWaiting, rec)
	ev.Conflicts = conflicts(found)
	seq, err := s.append(&ev)
	if err != nil {
		return nil, err
	}
	rec.Ticket = seq
	return found, s.tx.Insert(rec)
}

// proceed confirms a promotion, or renews the place of a request that waits on;
// last is what stood in its way when it was last looked at.
func (s *step) proceed(rec *store.Record, last []store.Overlap) ([]store.Overlap, error) {
	if rec.State != store.StateWaiting {
		rec.State = store.StateHeld
		s.lease(rec)
		return nil, s.tx.Save(rec)
	}
	found, err := s.stillParked(rec, last)
	if err != nil {
		return nil, err
	}
	if found == nil {
		if found, err = s.examine(rec, store.StateHeld); err != nil || len(found) == 0 {
			return nil, err
		}
	}
	s.keepPlace(rec)
	return found, s.tx.Save(rec)
}

// keepPlace gives a waiting record a new waiting lease, and the process that
// waits: a dead one must not keep others waiting.
func (s *step) keepPlace(rec *store.Record) {
	s.leaseFor(rec, s.m.opt.WaitLease)
	rec.Process = cmp.Or(rec.Process, s.m.opt.Self)
}

// stillParked answers last, brought up to date, when the blocker that a waiting
// request is parked on is the one it was parked on then and has not left: then
// nothing has to be looked for. Otherwise it answers nil.
func (s *step) stillParked(rec *store.Record, last []store.Overlap) ([]store.Overlap, error) {
	if len(last) == 0 || last[0].Record.Ticket != rec.WaitsOn {
		return nil, nil
	}
	blocker, err := s.tx.Get(last[0].Record.ID)
	if err != nil || blocker == nil || blocker.Ticket != rec.WaitsOn || s.m.mayExpire(blocker, s.now.Lease) {
		return nil, err
	}
	found := slices.Clone(last)
	for i := range found {
		if found[i].Record.Ticket == rec.WaitsOn {
			found[i].Record = blocker
		}
	}
	return found, nil
}

// untilLapse is the time until the blocker that a request is parked on lapses by
// itself, a little later, so that it has lapsed when it is looked at; 0 when it
// will not. One that has lapsed and is still there cannot be freed at the
// moment: looking at it again at once would be spinning.
func (s *step) untilLapse(found []store.Overlap) time.Duration {
	if len(found) == 0 {
		return 0
	}
	at, ok := s.m.lapsesAt(found[0].Record)
	if !ok || at <= s.now.Lease {
		return 0
	}
	return at.Until(s.now.Lease) + time.Millisecond
}

// leave takes the request out of the line. When it was granted meanwhile, a
// waiter whose time is up keeps it and one that was cancelled gives it back.
func (p *Place) leave(ctx context.Context, why error) (*Grant, error) {
	timedOut := errors.Is(why, errWaitedLongEnough)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	began := time.Now()
	var kept *store.Record
	err := p.m.update(ctx, func(s *step) error {
		kept = nil
		cur, err := s.tx.Get(p.rec.ID)
		if err != nil || cur == nil {
			return err
		}
		if timedOut && cur.State != store.StateWaiting && !s.m.lapsed(cur, s.now.Lease) {
			kept = clone(cur)
			kept.Process = p.holder
			_, err := s.proceed(kept, nil)
			return err
		}
		ev := about(lockkeeper.EventWithdrawn, cur)
		ev.Reason = why.Error()
		if timedOut {
			ev.Kind, ev.Conflicts = lockkeeper.EventTimedOut, conflicts(p.found)
		}
		return s.free(cur, ev)
	})
	switch {
	case err != nil:
		return nil, errors.Join(why, err)
	case kept != nil:
		return p.m.handle(kept, p.token, began), nil
	case timedOut:
		return nil, &lockkeeper.LockTimeoutError{Holder: p.rec.Holder, Waited: time.Since(p.entered),
			Attempts: p.attempts, Conflicts: conflicts(p.found)}
	}
	return nil, why
}

// exited is closed when the process of the blocker that a request is parked on
// is gone.
func (m *Manager) exited(ctx context.Context, found []store.Overlap) <-chan struct{} {
	if m.opt.Processes == nil || len(found) == 0 || found[0].Record.Process == nil {
		return nil
	}
	return m.opt.Processes.Exited(ctx, *found[0].Record.Process)
}

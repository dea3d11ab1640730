package lock

import (
	"cmp"
	"context"
	"time"

	"lockkeeper"
	"lockkeeper/store"
)

// Act is one transaction of the engine that its caller composes: what is taken,
// given back and noted in it happens together or not at all. It is for whoever
// keeps rows of their own beside the locks, as the queue does.
type Act struct{ s *step }

// Within runs body as one transaction. Like every transaction of the engine it ends
// with promoting whom it made way for. After an error nothing has happened, and
// nothing that body returned is to be used.
func (m *Manager) Within(ctx context.Context, body func(*Act) error) error {
	return m.update(ctx, func(s *step) error { return body(&Act{s}) })
}

// Policy is the policy of that name, or the default one.
func (m *Manager) Policy(name string) (lockkeeper.Policy, error) { return m.policy(name) }

// Check refuses a request that could never be granted, whatever is free.
func (m *Manager) Check(req lockkeeper.Request) error {
	_, _, err := m.prepare(req)
	return err
}

// Tx is the transaction itself.
func (a *Act) Tx() store.Tx { return a.s.tx }

// Now is when the transaction began.
func (a *Act) Now() store.Moment { return a.s.now }

// Note appends an event and returns its number.
func (a *Act) Note(ev lockkeeper.Event) (uint64, error) { return a.s.append(&ev) }

// Held is a grant that an Act has taken. It counts once the Act has committed.
type Held struct {
	rec   *store.Record
	token string
	began time.Time
}

// ID is the id of the grant.
func (h *Held) ID() string { return h.rec.ID }

// Handle hands a grant to its holder, after the Act that took it has committed.
func (m *Manager) Handle(h *Held) *Grant { return m.handle(h.rec, h.token, h.began) }

// Try grants a request, or answers what is in its way, the latest first. A refusal is
// not recorded: its caller does that, once for each change of blockers.
func (a *Act) Try(req lockkeeper.Request) (*Held, []store.Overlap, error) {
	began := time.Now()
	rec, token, err := a.s.m.prepare(req)
	if err != nil {
		return nil, nil, err
	}
	found, _, err := a.s.blockers(store.Query{Locks: rec.Locks, Before: store.AnyTicket})
	if err != nil || len(found) > 0 {
		return nil, found, err
	}
	return &Held{rec, token, began}, nil, a.s.grant(rec, store.StateHeld)
}

// InTheWay lists what Try would answer, and takes nothing. Of a request that is in
// the line already, which reserved names, it lists what is before it there.
func (a *Act) InTheWay(locks []lockkeeper.Lock, reserved string) ([]store.Overlap, error) {
	q := store.Query{Locks: locks, Before: store.AnyTicket}
	if reserved != "" {
		rec, err := a.s.tx.Get(reserved)
		if err != nil {
			return nil, err
		}
		if rec != nil {
			q.Before, q.Except = rec.Ticket, rec.Ticket
		}
	}
	found, _, err := a.s.blockers(q)
	return found, err
}

// Reserve puts a request into the line, where it keeps its place for so long, and
// returns the id that its grant will have. With nothing in its way it is promised its
// grant at once. Either falls with the process that reserved, unless another keeps it.
func (a *Act) Reserve(req lockkeeper.Request, lease time.Duration) (id string, err error) {
	rec, _, err := a.s.m.prepare(req)
	if err != nil {
		return "", err
	}
	if _, err := a.s.enter(rec, store.StatePromoted); err != nil {
		return "", err
	}
	rec.Process = cmp.Or(rec.Process, a.s.m.opt.Self)
	a.s.leaseFor(rec, lease)
	return rec.ID, a.s.tx.Save(rec)
}

// Keep renews a place in the line, or a grant that was promised there, for so long,
// unless it is good for most of that and whoever reserved it lives; one that is gone stays
// gone.
func (a *Act) Keep(id string, lease time.Duration) error {
	rec, err := a.s.tx.Get(id)
	if err != nil || rec == nil || rec.State.Confirmed() {
		return err
	}
	if rec.Expires > a.s.now.Lease.Add(lease*3/4) && a.s.m.life(rec.Process) != lockkeeper.LifeDead {
		return nil
	}
	next := clone(rec)
	next.Process = a.s.m.opt.Self // a dead one must not keep others waiting
	a.s.leaseFor(next, lease)
	return a.s.tx.Save(next)
}

// Claim takes the grant that was promised to a place in the line. It answers nil
// while the place waits, and gone when it is not there any more.
func (a *Act) Claim(id string, holder *lockkeeper.Process) (held *Held, gone bool, err error) {
	began := time.Now()
	rec, err := a.s.tx.Get(id)
	switch {
	case err != nil:
		return nil, false, err
	case rec == nil || a.s.m.lapsed(rec, a.s.now.Lease):
		return nil, true, nil
	case rec.State != store.StatePromoted:
		return nil, false, nil
	}
	next := clone(rec)
	_, token := newSecrets() // whoever reserved it need not be who takes it
	next.TokenHash, next.Process = hashToken(token), clone(holder)
	if _, err := a.s.proceed(next, nil); err != nil {
		return nil, false, err
	}
	return &Held{next, token, began}, false, nil
}

// Freed is what came of Act.Free.
type Freed uint8

// What can come of it.
const (
	FreedNow    Freed = iota
	FreedGone         // it was not there any more
	LandingOpen       // a landing is open under it: nothing was changed
)

// Free gives a grant back, or takes a request out of the line, with the event that
// says so. An event without an actor is its holder's.
func (a *Act) Free(id string, ev lockkeeper.Event) (Freed, error) {
	rec, err := a.s.tx.Get(id)
	switch {
	case err != nil:
		return FreedGone, err
	case rec == nil:
		return FreedGone, nil
	case rec.State > store.StateHeld:
		return LandingOpen, nil
	}
	if ev.Actor == (lockkeeper.Actor{}) {
		ev.Actor = lockkeeper.Actor{Name: rec.Holder, Kind: lockkeeper.ActorHolder}
	}
	return FreedNow, a.s.free(rec, ev)
}

// Note appends an event that is not the engine's own. With a key it does so once an
// hour, and told reports whether it did now.
func (m *Manager) Note(ctx context.Context, key string, ev lockkeeper.Event) (told bool, err error) {
	err = m.update(ctx, func(s *step) error {
		if key != "" {
			if before, err := s.tx.Denial(key); err != nil || before != 0 {
				return err
			}
			if err := s.tx.SetDenial(key, 1); err != nil {
				return err
			}
		}
		told = true
		return s.note(&ev)
	})
	return told && err == nil, err
}

// Conflicts renders what is in the way as facts.
func Conflicts(found []store.Overlap) []lockkeeper.ConflictInfo { return conflicts(found) }

// Digest identifies a set of blockers: it changes when one comes, goes or turns from
// waiting into held.
func Digest(found []store.Overlap) uint64 { return digest(found) }

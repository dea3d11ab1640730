package lock

import (
	"cmp"
	"context"
	"time"

	"lockkeeper"
	"lockkeeper/store"
)

// A Tx is one transaction of the engine: a transaction of the store, with the lock rules on
// top. Packages that have their own rows in addition to the locks, such as the queue, change
// both in one Tx. A Tx must not be used after the function that got it returned.
type Tx struct {
	store.Tx
	m        *Manager
	departed []uint64             // tickets that left: promote examines the requests that waited on them
	body     func(*Tx) error      // the caller's part
	run      func(store.Tx) error // the method tx.runBody as a function value, made once

	// These fields hold the arguments and results of the two hottest transactions. So the
	// transactions need no closures, which would be much of the garbage with a memory store.
	attempt attempt
	release release
}

// Update runs the function body as one transaction. Before it commits, it grants the waiting
// requests that body unblocked. If Update returns an error, nothing has changed, and the caller
// must not use anything that body returned.
func (m *Manager) Update(ctx context.Context, body func(*Tx) error) error {
	tx := m.newTx()
	defer tx.recycle()
	return tx.update(ctx, body)
}

// newTx returns a Tx from the pool, or a new one. The caller recycles it.
func (m *Manager) newTx() *Tx {
	tx, _ := m.txs.Get().(*Tx)
	if tx == nil {
		tx = &Tx{m: m}
		tx.run = tx.runBody
	}
	return tx
}

func (tx *Tx) recycle() {
	*tx = Tx{m: tx.m, run: tx.run, departed: tx.departed[:0]}
	tx.m.txs.Put(tx)
}

func (tx *Tx) update(ctx context.Context, body func(*Tx) error) error {
	tx.body = body
	return tx.m.store.Update(ctx, tx.run)
}

func (tx *Tx) runBody(st store.Tx) error {
	tx.Tx, tx.departed = st, tx.departed[:0]
	if err := tx.body(tx); err != nil {
		return err
	}
	return tx.promote()
}

// pruneEvery is the number of events after which the log is pruned.
const pruneEvery = 1_000

// Append appends an event and returns its number.
func (tx *Tx) Append(ev lockkeeper.Event) (uint64, error) {
	ev.At = tx.Now().Wall
	if len(ev.Conflicts) > maxEventConflicts {
		ev.Conflicts = ev.Conflicts[:maxEventConflicts]
	}
	seq, err := tx.Tx.Append(ev)
	if err == nil && seq%pruneEvery == 0 {
		err = tx.m.prune(tx)
	}
	return seq, err
}

func (tx *Tx) note(ev lockkeeper.Event) error {
	_, err := tx.Append(ev)
	return err
}

// noteOnce appends an event, unless one was appended under the same key in the last hour.
func (tx *Tx) noteOnce(key string, ev lockkeeper.Event) (noted bool, err error) {
	if before, err := tx.Denial(key); err != nil || before != 0 {
		return false, err
	}
	if err := tx.SetDenial(key, 1); err != nil {
		return false, err
	}
	return true, tx.note(ev)
}

// A PendingGrant is a grant that a Tx has acquired. It is held once the Tx has committed.
type PendingGrant struct {
	rec   *store.Record
	token string
	began time.Time
}

// ID returns the id of the grant.
func (p *PendingGrant) ID() string { return p.rec.ID }

// Handle returns the handle of a grant, after the Tx that acquired it has committed.
func (m *Manager) Handle(p *PendingGrant) *Grant { return m.handle(p.rec, p.token, p.began) }

// Try grants a request, or returns its blockers, the latest first. It records no refusal:
// the caller does, once for each change of blockers.
func (tx *Tx) Try(req lockkeeper.Request) (*PendingGrant, []store.Overlap, error) {
	began := time.Now()
	rec, token, err := tx.m.prepare(req)
	if err != nil {
		return nil, nil, err
	}
	found, _, err := tx.blockers(store.Query{Locks: rec.Locks, Before: store.AnyTicket})
	if err != nil || len(found) > 0 {
		return nil, found, err
	}
	return &PendingGrant{rec, token, began}, nil, tx.grant(rec, store.StateHeld)
}

// Blockers returns the blockers that Try would return, and acquires nothing. If reserved is
// the id of a waiting request, only grants and earlier requests count.
func (tx *Tx) Blockers(locks []lockkeeper.Lock, reserved string) ([]store.Overlap, error) {
	q := store.Query{Locks: locks, Before: store.AnyTicket}
	if reserved != "" {
		rec, err := tx.Get(reserved)
		if err != nil {
			return nil, err
		}
		if rec != nil {
			q.Before, q.Except = rec.Ticket, rec.Ticket
		}
	}
	found, _, err := tx.blockers(q)
	return found, err
}

// Reserve puts a request into the wait list for the duration of a lease, and returns the
// id that its grant will have. If nothing blocks the request, it is promoted at once. The
// reservation ends with the process that made it, unless another process keeps it.
func (tx *Tx) Reserve(req lockkeeper.Request, lease time.Duration) (id string, err error) {
	rec, _, err := tx.m.prepare(req)
	if err != nil {
		return "", err
	}
	if _, err := tx.enter(rec, store.StatePromoted); err != nil {
		return "", err
	}
	rec.Process = cmp.Or(rec.Process, tx.m.opt.Self)
	tx.leaseFor(rec, lease)
	return rec.ID, tx.Save(rec)
}

// Keep renews a reservation, unless most of its lease is left and the process that made it
// is alive. It does nothing for a reservation that is gone.
func (tx *Tx) Keep(id string, lease time.Duration) error {
	rec, err := tx.Get(id)
	if err != nil || rec == nil || rec.State.Confirmed() {
		return err
	}
	if rec.Expires > tx.Now().Lease.Add(lease*3/4) && tx.m.liveness(rec.Process) != lockkeeper.ProcessDead {
		return nil
	}
	next := clone(rec)
	next.Process = tx.m.opt.Self // a reservation of a dead process must not block others
	tx.leaseFor(next, lease)
	return tx.Save(next)
}

// Confirm acquires the grant of a reservation that was promoted. It returns nil while the
// reservation waits, and gone if there is no such reservation.
func (tx *Tx) Confirm(id string, holder *lockkeeper.Process) (grant *PendingGrant, gone bool, err error) {
	began := time.Now()
	rec, err := tx.Get(id)
	switch {
	case err != nil:
		return nil, false, err
	case rec == nil || tx.m.lapsed(rec, tx.Now().Lease):
		return nil, true, nil
	case rec.State != store.StatePromoted:
		return nil, false, nil
	}
	next := clone(rec)
	_, token := newSecrets() // another process may have made the reservation
	next.TokenHash, next.Process = hashToken(token), clone(holder)
	if _, err := tx.proceed(next, nil); err != nil {
		return nil, false, err
	}
	return &PendingGrant{next, token, began}, false, nil
}

// Freed is the result of Tx.Free.
type Freed uint8

const (
	FreedNow    Freed = iota
	FreedGone         // there was no such grant
	LandingOpen       // a landing is open under the grant, and nothing was changed
)

// Free releases a grant, or removes a request from the wait list, and appends the event.
// If the event names no actor, the holder is the actor.
func (tx *Tx) Free(id string, ev lockkeeper.Event) (Freed, error) {
	rec, err := tx.Get(id)
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
	return FreedNow, tx.free(rec, ev)
}

// Note appends an event of another package. If key is not empty, it does so at most once
// an hour for each key, and noted reports whether it did.
func (m *Manager) Note(ctx context.Context, key string, ev lockkeeper.Event) (noted bool, err error) {
	err = m.Update(ctx, func(tx *Tx) (err error) {
		if key != "" {
			noted, err = tx.noteOnce(key, ev)
			return err
		}
		noted = true
		return tx.note(ev)
	})
	return noted && err == nil, err
}

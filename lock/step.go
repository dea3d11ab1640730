package lock

import (
	"context"
	"fmt"
	"hash/fnv"
	"time"

	"lockkeeper"
	"lockkeeper/store"
)

// maxConflicts bounds how many blockers of one request are read and told;
// maxEventConflicts how many an event lists.
const (
	maxConflicts      = 1_000
	maxEventConflicts = 50
)

// A step is one transaction of the engine. It remembers which tickets left, so that
// promote can examine the requests that waited on them. Steps are pooled and carry the
// arguments of the two most common transactions, so that those need no closures: with a
// store in memory, closures would be much of the garbage.
type step struct {
	m        *Manager
	tx       store.Tx
	now      store.Moment
	departed []uint64
	body     func(*step) error
	inTx     func(store.Tx) error // s.transact, bound once

	attempt attempt // of try
	leaving leaving // of release
}

// update runs body as one transaction and promotes whom it made way for.
func (m *Manager) update(ctx context.Context, body func(*step) error) error {
	s := m.newStep()
	defer s.recycle()
	return s.run(ctx, body)
}

// newStep returns a step from the pool, or a new one.
func (m *Manager) newStep() *step {
	s, _ := m.steps.Get().(*step)
	if s == nil {
		s = &step{m: m}
		s.inTx = s.transact
	}
	return s
}

func (s *step) recycle() {
	*s = step{m: s.m, inTx: s.inTx, departed: s.departed[:0]}
	s.m.steps.Put(s)
}

// run runs body in a transaction of the store, and commits.
func (s *step) run(ctx context.Context, body func(*step) error) error {
	s.body = body
	return s.m.store.Update(ctx, s.inTx)
}

func (s *step) transact(tx store.Tx) error {
	s.tx, s.now, s.departed = tx, tx.Now(), s.departed[:0]
	if err := s.body(s); err != nil {
		return err
	}
	return s.promote()
}

// lapsed reports whether a record's time is up by itself: nothing but the clock
// has to be asked.
func (m *Manager) lapsed(rec *store.Record, now lockkeeper.Instant) bool {
	at, ok := m.lapsesAt(rec)
	return ok && at <= now
}

// lapsesAt is when a record's time is up by itself, if it ever is.
func (m *Manager) lapsesAt(rec *store.Record) (lockkeeper.Instant, bool) {
	if rec.Expires == 0 {
		return 0, false
	}
	if !rec.State.Confirmed() {
		return rec.Expires, true // the waiter's own lease, under any policy
	}
	switch p := m.policyOf(rec.Policy); p.Stale {
	case lockkeeper.Reap:
		return rec.Expires, true
	case lockkeeper.Break:
		return rec.Expires.Add(p.Grace), true
	}
	return 0, false
}

// blockers answers a query after freeing what has lapsed. Lapsed grants with a process stay in
// the list: they are freed by recovery, outside of a transaction.
func (s *step) blockers(q store.Query) ([]store.Overlap, bool, error) {
	q.Limit = maxConflicts
	for {
		found, more, err := s.tx.Overlapping(q)
		if err != nil || len(found) == 0 {
			return nil, false, err
		}
		freed := map[uint64]bool{}
		for _, o := range found {
			r := o.Record
			if freed[r.Ticket] || !s.m.mayExpire(r, s.now.Lease) {
				continue
			}
			if err := s.expire(r); err != nil {
				return nil, false, err
			}
			freed[r.Ticket] = true
		}
		if len(freed) == 0 {
			return found, more, nil
		}
	}
}

// mayExpire reports whether a record can be freed by the clock alone: its time
// is up, no process can have been started under it, and nothing is decided that
// is not done. It blocks nobody.
func (m *Manager) mayExpire(r *store.Record, now lockkeeper.Instant) bool {
	return m.lapsed(r, now) && (r.Process == nil && r.State == store.StateHeld || !r.State.Confirmed())
}

// expire frees a lapsed record.
func (s *step) expire(r *store.Record) error {
	over := s.now.Lease.Until(r.Expires)
	return s.free(r, lockkeeper.Event{
		Kind: lockkeeper.EventExpired, Actor: lockkeeper.System(),
		Reason:     fmt.Sprintf("%s lease ran out", stateWord(r.State)),
		Conditions: []lockkeeper.Condition{{Name: "lease past", Held: true, Fact: "by " + over.Round(time.Millisecond).String()}},
	})
}

func stateWord(s store.State) string {
	switch s {
	case store.StateWaiting:
		return "waiting"
	case store.StatePromoted:
		return "unconfirmed"
	case store.StateLanding:
		return "landing"
	case store.StateRevoking:
		return "revoking"
	}
	return "held"
}

// free removes a record with the event that says why.
func (s *step) free(r *store.Record, ev lockkeeper.Event) error {
	ev.GrantID, ev.Holder, ev.Locks = r.ID, r.Holder, r.Locks
	ev.Data = withItem(ev.Data, r)
	if err := s.note(&ev); err != nil {
		return err
	}
	if err := s.tx.Delete(r); err != nil {
		return err
	}
	if err := s.rouse(r); err != nil {
		return err
	}
	s.departed = append(s.departed, r.Ticket)
	// A holder that releases knows it; only supervisors, who record their process,
	// and whoever is in the line listen for it as well.
	if ev.Kind != lockkeeper.EventReleased || r.Process != nil || !r.State.Confirmed() {
		s.tx.Wake(r.ID)
	}
	return nil
}

// rouse lets queued items that were parked on what a record had locked be looked at
// again: the first of each line, because it may take the path.
func (s *step) rouse(r *store.Record) error {
	if !s.tx.AnyWaitsOnLock() {
		return nil
	}
	for _, l := range r.Locks {
		if err := store.WakeWaiters(s.tx, l); err != nil {
			return err
		}
	}
	if r.State.Confirmed() {
		return nil
	}
	_, err := store.WakeFirst(s.tx, store.OnGrant(r.ID))
	return err
}

// ItemKey is the key of a request's metadata that names the queued item it is for.
// Events about it say so, too.
const ItemKey = "item"

func withItem(data map[string]string, r *store.Record) map[string]string {
	item := r.Metadata[ItemKey]
	if item == "" {
		return data
	}
	if data == nil {
		data = map[string]string{}
	}
	data[ItemKey] = item
	return data
}

// about is an event that the holder of a request caused.
func about(kind lockkeeper.EventKind, rec *store.Record) lockkeeper.Event {
	return lockkeeper.Event{Kind: kind, Actor: lockkeeper.Actor{Name: rec.Holder, Kind: lockkeeper.ActorHolder},
		GrantID: rec.ID, Holder: rec.Holder, Locks: rec.Locks, Data: withItem(nil, rec)}
}

// pruneEvery is after how many events the log is cut, by whoever appends.
const pruneEvery = 1_000

// append adds an event and returns its number.
func (s *step) append(ev *lockkeeper.Event) (uint64, error) {
	ev.At = s.now.Wall
	if len(ev.Conflicts) > maxEventConflicts {
		ev.Conflicts = ev.Conflicts[:maxEventConflicts]
	}
	seq, err := s.tx.Append(*ev)
	if err == nil && seq%pruneEvery == 0 {
		err = s.m.prune(s.tx)
	}
	return seq, err
}

func (s *step) note(ev *lockkeeper.Event) error {
	_, err := s.append(ev)
	return err
}

// grant makes a record held, or promoted, with a new fence. A record without a
// ticket is new and gets its fence as ticket.
func (s *step) grant(rec *store.Record, state store.State) error {
	ev := about(lockkeeper.EventAcquired, rec)
	seq, err := s.append(&ev)
	if err != nil {
		return err
	}
	rec.State, rec.Fence = state, seq
	rec.AcquiredAt, rec.WaitsOn, rec.Blockers = s.now.Wall, 0, 0
	if state == store.StateHeld {
		s.lease(rec)
	}
	if rec.Ticket != 0 {
		return s.tx.Save(rec)
	}
	rec.Ticket = seq
	return s.tx.Insert(rec)
}

// lease gives a record its whole lease from now on.
func (s *step) lease(rec *store.Record) { s.leaseFor(rec, rec.TTL) }

func (s *step) leaseFor(rec *store.Record, ttl time.Duration) {
	rec.Heartbeat, rec.HeartbeatAt = s.now.Lease, s.now.Wall
	rec.Expires, rec.ExpiresAt = 0, time.Time{}
	if ttl > 0 {
		rec.Expires, rec.ExpiresAt = s.now.Lease.Add(ttl), s.now.Wall.Add(ttl)
	}
}

// conflicts renders overlaps as facts.
func conflicts(found []store.Overlap) []lockkeeper.ConflictInfo {
	out := make([]lockkeeper.ConflictInfo, len(found))
	for i, o := range found {
		r := o.Record
		out[i] = lockkeeper.ConflictInfo{
			Path: o.Asked.Path, Mode: o.Asked.Mode,
			BlockingPath: o.Lock.Path, BlockingMode: o.Lock.Mode,
			Kind: lockkeeper.Held, Holder: r.Holder, GrantID: r.ID, AcquiredAt: r.AcquiredAt,
		}
		if r.State == store.StateWaiting {
			out[i].Kind = lockkeeper.Waiting
		}
		if r.Expires != 0 {
			at := r.ExpiresAt
			out[i].ExpiresAt = &at
		}
	}
	return out
}

// digest identifies a set of blockers: it changes when one comes, goes or turns
// from waiting into held.
func digest(found []store.Overlap) uint64 {
	var sum uint64
	last := uint64(0)
	for _, o := range found { // latest ticket first, so repeats are neighbours
		if o.Record.Ticket == last {
			continue
		}
		last = o.Record.Ticket
		h := fnv.New64a()
		fmt.Fprint(h, o.Record.Ticket, o.Record.State == store.StateWaiting)
		sum ^= h.Sum64()
	}
	return sum | 1 // never 0, which means "none told"
}

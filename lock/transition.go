package lock

import (
	"fmt"
	"hash/fnv"
	"time"

	"lockkeeper"
	"lockkeeper/store"
)

// maxConflicts bounds how many blockers of one request are read, and maxEventConflicts how
// many an event lists.
const (
	maxConflicts      = 1_000
	maxEventConflicts = 50
)

// lapsed reports whether a record has ended by time alone.
func (m *Manager) lapsed(rec *store.Record, now lockkeeper.Instant) bool {
	at, ok := m.lapsesAt(rec)
	return ok && at <= now
}

// lapsesAt returns when a record ends by time alone, if it does.
func (m *Manager) lapsesAt(rec *store.Record) (lockkeeper.Instant, bool) {
	if rec.Expires == 0 {
		return 0, false
	}
	if !rec.State.Confirmed() {
		return rec.Expires, true // the waiter's own lease counts, under any policy
	}
	switch p := m.policyOf(rec.Policy); p.Stale {
	case lockkeeper.Reap:
		return rec.Expires, true
	case lockkeeper.Break:
		return rec.Expires.Add(p.Grace), true
	}
	return 0, false
}

// blockers answers a query after it has freed the records that may expire. Lapsed grants
// with a process remain: recovery frees them, outside of a transaction.
func (tx *Tx) blockers(q store.Query) ([]store.Overlap, bool, error) {
	q.Limit = maxConflicts
	for {
		found, more, err := tx.Overlapping(q)
		if err != nil || len(found) == 0 {
			return nil, false, err
		}
		freed := map[uint64]bool{}
		for _, o := range found {
			r := o.Record
			if freed[r.Ticket] || !tx.m.mayExpire(r, tx.Now().Lease) {
				continue
			}
			if err := tx.expire(r); err != nil {
				return nil, false, err
			}
			freed[r.Ticket] = true
		}
		if len(freed) == 0 {
			return found, more, nil
		}
	}
}

// mayExpire reports whether a record can be freed by time alone: it has lapsed,
// no process can run under it, and no landing is open under it. Such a record blocks no
// request.
func (m *Manager) mayExpire(r *store.Record, now lockkeeper.Instant) bool {
	return m.lapsed(r, now) && (r.Process == nil && r.State == store.StateHeld || !r.State.Confirmed())
}

func (tx *Tx) expire(r *store.Record) error {
	over := tx.Now().Lease.Until(r.Expires)
	return tx.free(r, lockkeeper.Event{
		Kind: lockkeeper.EventExpired, Actor: lockkeeper.System(),
		Reason:     fmt.Sprintf("%s lease expired", stateWord(r.State)),
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
func (tx *Tx) free(r *store.Record, ev lockkeeper.Event) error {
	ev.GrantID, ev.Holder, ev.Locks = r.ID, r.Holder, r.Locks
	ev.Data = withItem(ev.Data, r)
	if err := tx.note(ev); err != nil {
		return err
	}
	if err := tx.Delete(r); err != nil {
		return err
	}
	if err := tx.wakeItems(r); err != nil {
		return err
	}
	tx.departed = append(tx.departed, r.Ticket)
	// A holder that releases needs no wake-up. Only supervisors, which record their process,
	// and waiting requests listen for the end.
	if ev.Kind != lockkeeper.EventReleased || r.Process != nil || !r.State.Confirmed() {
		tx.Wake(r.ID)
	}
	return nil
}

// wakeItems wakes the first queued item on each key that a record has blocked.
func (tx *Tx) wakeItems(r *store.Record) error {
	if !tx.AnyWaitsOnLock() {
		return nil
	}
	for _, l := range r.Locks {
		if err := store.WakeWaiters(tx, l); err != nil {
			return err
		}
	}
	if r.State.Confirmed() {
		return nil
	}
	_, err := store.WakeFirst(tx, store.OnGrant(r.ID))
	return err
}

// ItemKey is the metadata key of the queued item that a request is for. The data of the
// request's events has the same key.
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

func about(kind lockkeeper.EventKind, rec *store.Record) lockkeeper.Event {
	return lockkeeper.Event{Kind: kind, Actor: lockkeeper.Actor{Name: rec.Holder, Kind: lockkeeper.ActorHolder},
		GrantID: rec.ID, Holder: rec.Holder, Locks: rec.Locks, Data: withItem(nil, rec)}
}

// grant makes a record held or promoted, with a new fence. A new record, which has no
// ticket, gets the fence as its ticket.
func (tx *Tx) grant(rec *store.Record, state store.State) error {
	seq, err := tx.Append(about(lockkeeper.EventAcquired, rec))
	if err != nil {
		return err
	}
	rec.State, rec.Fence = state, seq
	rec.AcquiredAt, rec.WaitsOn, rec.Blockers = tx.Now().Wall, 0, 0
	if state == store.StateHeld {
		tx.lease(rec)
	}
	if rec.Ticket != 0 {
		return tx.Save(rec)
	}
	rec.Ticket = seq
	return tx.Insert(rec)
}

// lease starts the lease of a record.
func (tx *Tx) lease(rec *store.Record) { tx.leaseFor(rec, rec.TTL) }

func (tx *Tx) leaseFor(rec *store.Record, ttl time.Duration) {
	rec.Heartbeat, rec.HeartbeatAt = tx.Now().Lease, tx.Now().Wall
	rec.Expires, rec.ExpiresAt = 0, time.Time{}
	if ttl > 0 {
		rec.Expires, rec.ExpiresAt = tx.Now().Lease.Add(ttl), tx.Now().Wall.Add(ttl)
	}
}

// Conflicts describes overlaps for people.
func Conflicts(found []store.Overlap) []lockkeeper.ConflictInfo {
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
			out[i].ExpiresAt = new(r.ExpiresAt)
		}
	}
	return out
}

// Digest identifies a set of blockers. It changes when a blocker comes, leaves or is
// granted.
func Digest(found []store.Overlap) uint64 {
	var sum uint64
	last := uint64(0)
	for _, o := range found { // the list is sorted by ticket, so repeats are neighbors
		if o.Record.Ticket == last {
			continue
		}
		last = o.Record.Ticket
		h := fnv.New64a()
		fmt.Fprint(h, o.Record.Ticket, o.Record.State == store.StateWaiting)
		sum ^= h.Sum64()
	}
	return sum | 1 // never 0, which means none
}

package storetest

import (
	"errors"
	"fmt"
	"slices"

	"lockkeeper"
	"lockkeeper/store"
)

// A model applies the plain rules to the records of a space, which it keeps in ticket order. It
// predicts the answer of each operation and checks the resulting state.
type model struct {
	now      lockkeeper.Instant
	policies map[string]lockkeeper.Policy
	recs     []*store.Record
	seq      uint64 // number of the last event
}

func (m *model) find(id string) *store.Record {
	for _, r := range m.recs {
		if r.ID == id {
			return r
		}
	}
	return nil
}

// lapsed reports whether a record no longer blocks requests, by time alone.
func (m *model) lapsed(r *store.Record) bool {
	p := m.policies[r.Policy]
	switch {
	case r.Expires == 0:
		return false
	case r.State != store.StateHeld || p.Stale == lockkeeper.Reap:
		return r.Expires <= m.now
	case p.Stale == lockkeeper.Break:
		return r.Expires.Add(p.Grace) <= m.now
	}
	return false
}

// stale reports whether the four conditions hold.
func (m *model) stale(r *store.Record) bool {
	return r.Expires != 0 && r.Expires <= m.now && m.now.Until(r.Heartbeat) > m.policies[r.Policy].Grace
}

// abandoned reports whether a request that the record blocks recovers it.
func (m *model) abandoned(r *store.Record) bool {
	return r.State == store.StateHeld && m.policies[r.Policy].Stale == lockkeeper.RecoverUnclaimed && m.stale(r)
}

func (m *model) gone(r *store.Record) bool { return m.lapsed(r) || m.abandoned(r) }

// free reports whether a request would be granted: no live grant conflicts with it, and no
// earlier request in the wait list. ticket is the position of
// the request in the wait list; MaxUint64 is behind all others.
func (m *model) free(ls []lockkeeper.Lock, id string, ticket uint64) bool {
	for _, r := range m.recs {
		earlier := r.State != store.StateWaiting || r.Ticket < ticket
		if r.ID != id && earlier && !m.gone(r) && conflict(ls, r.Locks) {
			return false
		}
	}
	return true
}

// mayGrow reports whether a grant may add locks. Other live grants can prevent it, and waiting
// requests with an earlier ticket.
func (m *model) mayGrow(ls []lockkeeper.Lock, id string, before uint64) bool {
	for _, r := range m.recs {
		counts := r.State != store.StateWaiting || r.Ticket < before
		if r.ID != id && counts && !m.lapsed(r) && conflict(ls, r.Locks) {
			return false
		}
	}
	return true
}

// touched says which changes an operation may make.
type touched struct {
	id      string // the record of the operation
	freed   bool   // frees the record
	leased  bool   // renews the lease of the record
	grown   bool   // changes the locks of the record
	entered bool   // adds the record to the wait list or grants it
	sweeps  bool   // the operation must free every record that is gone
}

// judge compares the state after an operation with the one before it and with the events in
// between, and then adopts it.
func (m *model) judge(after []*store.Record, events []lockkeeper.Event, op touched) error {
	var wrong []error
	report := func(format string, args ...any) { wrong = append(wrong, fmt.Errorf(format, args...)) }
	if err := checkRecords(after); err != nil {
		wrong = append(wrong, err)
	}
	log := &ledger{open: slices.Clone(events)}
	if len(events) > 0 && events[0].Seq <= m.seq {
		report("event %d after %d", events[0].Seq, m.seq)
	}
	byTicket := map[uint64]*store.Record{}
	for _, r := range after {
		byTicket[r.Ticket] = r
	}
	for _, before := range m.recs {
		now := byTicket[before.Ticket]
		delete(byTicket, before.Ticket)
		if now != nil {
			if err := m.follows(before, now, op, log); err != nil {
				report("%s: %w", name(before), err)
			}
			if op.sweeps && m.gone(now) {
				report("%s has lapsed and was not freed", name(now))
			}
			continue
		}
		if !(op.freed && before.ID == op.id) && !m.gone(before) {
			report("%s was freed, and nothing permits it", name(before))
		}
		if !log.take(freeing, before.ID) {
			report("%s was freed without an event", name(before))
		}
	}
	for _, fresh := range byTicket {
		if !op.entered || fresh.ID != op.id {
			report("%s was created without an event", name(fresh))
		}
		if fresh.State != store.StateWaiting {
			if !log.takeSeq(lockkeeper.EventAcquired, fresh.ID, fresh.Fence) {
				report("%s is granted without an event that has its fence", name(fresh))
			}
			if fresh.Fence <= m.seq {
				report("%s has the old fence %d", name(fresh), fresh.Fence)
			}
		} else if !log.takeSeq(lockkeeper.EventWaiting, fresh.ID, fresh.Ticket) {
			report("%s waits without an event that has its ticket", name(fresh))
		}
	}
	for _, r := range after { // no request was promoted past an earlier one
		if r.State == store.StateWaiting || r.Fence <= m.seq {
			continue
		}
		for _, w := range after {
			if w.State == store.StateWaiting && w.Ticket < r.Ticket && conflict(w.Locks, r.Locks) {
				report("%s was granted past %s", name(r), name(w))
			}
		}
	}
	for _, e := range log.rest() {
		report("event %s of %s (%s) records no change", e.Kind, e.Holder, e.Reason)
	}
	m.recs = after
	if n := len(events); n > 0 {
		m.seq = events[n-1].Seq
	}
	return errors.Join(wrong...)
}

// follows checks the change of one record that still exists.
func (m *model) follows(before, now *store.Record, op touched, log *ledger) error {
	own := op.id == before.ID
	if now == before && !own {
		return nil // the same pointer: a store may share unchanged records
	}
	want := *before
	granted := before.State == store.StateWaiting && now.State != store.StateWaiting
	if before.State == store.StateWaiting {
		want.WaitsOn, want.Blockers = now.WaitsOn, now.Blockers
	}
	if granted {
		want.State, want.Fence, want.AcquiredAt = store.StatePromoted, now.Fence, now.AcquiredAt
		if !log.takeSeq(lockkeeper.EventAcquired, now.ID, now.Fence) || now.Fence <= m.seq {
			return fmt.Errorf("granted without an event that has its new fence %d", now.Fence)
		}
		if m.lapsed(before) {
			return errors.New("promoted although its request had lapsed")
		}
	}
	if own && op.entered && now.State == store.StateHeld {
		want.State = store.StateHeld
	}
	if own && (op.leased || op.entered) {
		want.Expires, want.ExpiresAt, want.Heartbeat, want.HeartbeatAt = now.Expires, now.ExpiresAt, now.Heartbeat, now.HeartbeatAt
		if now.Heartbeat != m.now || now.State == store.StateHeld && now.Expires != leaseEnd(lockkeeper.Instant(now.TTL), m.now) {
			return fmt.Errorf("leased until %d at %d with ttl %v", now.Expires, m.now, now.TTL)
		}
	}
	if own && op.grown {
		want.Locks = now.Locks
		if !slices.Equal(before.Locks, now.Locks) && !log.take(growing, now.ID) {
			return errors.New("grew without an event")
		}
	}
	if d := differ(now, &want); d != "" {
		return errors.New(d)
	}
	return nil
}

func leaseEnd(ttl, now lockkeeper.Instant) lockkeeper.Instant {
	if ttl == 0 {
		return 0
	}
	return now + ttl
}

// freeing lists the kinds of events that record the end of a grant, and growing the kinds that
// record a change of its locks.
var (
	freeing = []lockkeeper.EventKind{lockkeeper.EventReleased, lockkeeper.EventExpired, lockkeeper.EventRecovered,
		lockkeeper.EventForceReleased, lockkeeper.EventWithdrawn, lockkeeper.EventTimedOut}
	growing = []lockkeeper.EventKind{lockkeeper.EventUpgraded, lockkeeper.EventExtended}
)

// A ledger removes events as it finds the changes that they record.
type ledger struct{ open []lockkeeper.Event }

func (l *ledger) cross(ok func(lockkeeper.Event) bool) bool {
	i := slices.IndexFunc(l.open, ok)
	if i >= 0 {
		l.open = slices.Delete(l.open, i, i+1)
	}
	return i >= 0
}

func (l *ledger) take(kinds []lockkeeper.EventKind, id string) bool {
	return l.cross(func(e lockkeeper.Event) bool { return e.GrantID == id && slices.Contains(kinds, e.Kind) })
}

func (l *ledger) takeSeq(kind lockkeeper.EventKind, id string, seq uint64) bool {
	return l.cross(func(e lockkeeper.Event) bool { return e.GrantID == id && e.Kind == kind && e.Seq == seq })
}

// rest returns the events without a matching change. It omits refusals and changed blockers,
// which change no record.
func (l *ledger) rest() []lockkeeper.Event {
	return slices.DeleteFunc(l.open, func(e lockkeeper.Event) bool {
		switch e.Kind {
		case lockkeeper.EventDenied, lockkeeper.EventWaiting, lockkeeper.EventUpgradeDenied, lockkeeper.EventExtendDenied,
			lockkeeper.EventRenewFailed, lockkeeper.EventRefused:
			return true
		}
		return false
	})
}

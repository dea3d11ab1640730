package lock

import (
	"context"

	"lockkeeper"
	"lockkeeper/store"
)

// Entry is one request as people look at it: a grant, or a place in the line
// with what stands in its way.
type Entry struct {
	lockkeeper.GrantSnapshot
	State     string                    `json:"state"`          // held, waiting, unconfirmed
	Stale     bool                      `json:"stale"`          // its lease is past, and it still blocks other requests
	Free      bool                      `json:"free,omitempty"` // the next request for its paths frees it
	Conflicts []lockkeeper.ConflictInfo `json:"conflicts,omitempty"`

	Targets []lockkeeper.Lock `json:"-"` // with their kinds; shared, not to be changed
}

// ActiveGrants lists every live grant, oldest first.
func (m *Manager) ActiveGrants(ctx context.Context) ([]lockkeeper.GrantSnapshot, error) {
	var out []lockkeeper.GrantSnapshot
	err := m.each(ctx, func(r store.Reader, rec *store.Record) error {
		if rec.State != store.StateWaiting {
			out = append(out, rec.Snapshot(r.Now().Wall))
		}
		return nil
	})
	return out, err
}

// GrantsIn is the records of ActiveGrants, in a state that the caller reads. They are
// shared: of one that has not changed since a store last listed it, it may be the same.
func (m *Manager) GrantsIn(r store.Reader) (out []*store.Record, err error) {
	for after, more := uint64(0), true; more && err == nil; {
		after, more, err = m.eachIn(r, after, func(rec *store.Record) error {
			if rec.State != store.StateWaiting {
				out = append(out, rec)
			}
			return nil
		})
	}
	return out, err
}

// FirstIn lists the first so many grants and waiting requests, without those that are over,
// and says whether there may be more, in a state that the caller reads.
func (m *Manager) FirstIn(r store.Reader, limit int) (out []*store.Record, more bool, err error) {
	recs, err := r.List(0, limit)
	for _, rec := range recs {
		if !m.mayExpire(rec, r.Now().Lease) {
			out = append(out, rec)
		}
	}
	return out, len(recs) == limit, err
}

// Entries lists every live grant and every waiting request with what stands in
// its way, in ticket order.
func (m *Manager) Entries(ctx context.Context) ([]Entry, error) {
	var out []Entry
	err := m.each(ctx, func(r store.Reader, rec *store.Record) error {
		e, err := m.entry(r, rec)
		out = append(out, e)
		return err
	})
	return out, err
}

// EntriesIn is Entries in a state that the caller reads.
func (m *Manager) EntriesIn(r store.Reader) (out []Entry, err error) {
	for after, more := uint64(0), true; more && err == nil; {
		after, more, err = m.eachIn(r, after, func(rec *store.Record) error {
			e, err := m.entry(r, rec)
			out = append(out, e)
			return err
		})
	}
	return out, err
}

// StaleIn lists the grants whose lease is past and which still block other requests, in a
// state that the caller reads.
func (m *Manager) StaleIn(r store.Reader) (out []Entry, err error) {
	for after, more := uint64(0), true; more && err == nil; {
		after, more, err = m.eachIn(r, after, func(rec *store.Record) error {
			if rec.State == store.StateWaiting || rec.Expires == 0 || rec.Expires > r.Now().Lease {
				return nil
			}
			e, err := m.entry(r, rec)
			if e.Stale {
				out = append(out, e)
			}
			return err
		})
	}
	return out, err
}

// Entry finds one request with its conflicts; nil when there is none.
func (m *Manager) Entry(ctx context.Context, id string) (*Entry, error) {
	if err := validID(id); err != nil {
		return nil, err
	}
	var out *Entry
	err := m.store.View(ctx, func(r store.Reader) error {
		rec, err := r.Get(id)
		if err != nil || rec == nil || m.mayExpire(rec, r.Now().Lease) {
			return err
		}
		e, err := m.entry(r, rec)
		out = &e
		return err
	})
	return out, err
}

// IsFree reports whether the next request for what a grant holds frees it: until then it is
// listed, and it blocks nobody. The judgement is the one that such a request makes. A grant
// whose process is alive is not free: the request has to end that process first, and cannot
// always.
func (m *Manager) IsFree(r store.Reader, rec *store.Record) (bool, error) {
	if !rec.State.Confirmed() || rec.State == store.StateRevoking || m.life(rec.Process) == lockkeeper.LifeAlive {
		return false, nil
	}
	f, err := m.judgeIn(rec, r.Now().Lease, func(see func(store.Reader) error) error { return see(r) })
	return f != nil, err
}

func (m *Manager) entry(r store.Reader, rec *store.Record) (Entry, error) {
	e := Entry{GrantSnapshot: rec.Snapshot(r.Now().Wall), State: stateWord(rec.State), Targets: rec.Locks}
	if rec.State != store.StateWaiting {
		free, err := m.IsFree(r, rec)
		e.Free, e.Stale = free, !free && rec.Expires != 0 && rec.Expires <= r.Now().Lease
		return e, err
	}
	found, _, err := r.Overlapping(store.Query{Locks: rec.Locks, Before: rec.Ticket, Except: rec.Ticket, Limit: maxConflicts})
	e.Conflicts = conflicts(found)
	return e, err
}

// each visits every record that counts, a page to a transaction.
func (m *Manager) each(ctx context.Context, visit func(store.Reader, *store.Record) error) error {
	for after, more := uint64(0), true; more; {
		err := m.store.View(ctx, func(r store.Reader) (err error) {
			after, more, err = m.eachIn(r, after, func(rec *store.Record) error { return visit(r, rec) })
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// eachIn visits one page of them, and says where the next begins.
func (m *Manager) eachIn(r store.Reader, after uint64, visit func(*store.Record) error) (last uint64, more bool, err error) {
	recs, err := r.List(after, page)
	for _, rec := range recs {
		after = rec.Ticket
		if m.mayExpire(rec, r.Now().Lease) {
			continue
		}
		if err := visit(rec); err != nil {
			return after, false, err
		}
	}
	return after, len(recs) == page, err
}

// Events returns one page of the event log.
func (m *Manager) Events(ctx context.Context, q store.EventQuery) (events []lockkeeper.Event, err error) {
	err = m.store.View(ctx, func(r store.Reader) error {
		events, err = r.Events(q)
		return err
	})
	return events, err
}

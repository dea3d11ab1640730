package lock

import (
	"context"

	"lockkeeper"
)

// Entry is one request as people look at it: a grant, or a place in the line
// with what stands in its way.
type Entry struct {
	lockkeeper.GrantSnapshot
	State     string                    `json:"state"` // held, waiting, unconfirmed
	Stale     bool                      `json:"stale"` // its lease is past, and its policy does not free it by time alone
	Conflicts []lockkeeper.ConflictInfo `json:"conflicts,omitempty"`
}

// ActiveGrants lists every live grant, oldest first.
func (m *Manager) ActiveGrants(ctx context.Context) ([]lockkeeper.GrantSnapshot, error) {
	var out []lockkeeper.GrantSnapshot
	err := m.each(ctx, func(rec *lockkeeper.Record, now lockkeeper.Moment) {
		if rec.State != lockkeeper.StateWaiting {
			out = append(out, rec.Snapshot(now.Wall))
		}
	})
	return out, err
}

// Entries lists every live grant and every waiting request, in ticket order.
func (m *Manager) Entries(ctx context.Context) ([]Entry, error) {
	var out []Entry
	err := m.each(ctx, func(rec *lockkeeper.Record, now lockkeeper.Moment) {
		out = append(out, m.entry(rec, now))
	})
	return out, err
}

// Entry finds one request with its conflicts; nil when there is none.
func (m *Manager) Entry(ctx context.Context, id string) (*Entry, error) {
	if err := validID(id); err != nil {
		return nil, err
	}
	var out *Entry
	err := m.store.View(ctx, func(r lockkeeper.Reader) error {
		rec, err := r.Get(id)
		if err != nil || rec == nil || m.lapsed(rec, r.Now().Lease) {
			return err
		}
		e := m.entry(rec, r.Now())
		if rec.State == lockkeeper.StateWaiting {
			found, _, err := r.Overlapping(lockkeeper.Query{Locks: rec.Locks, Before: rec.Ticket, Except: rec.Ticket, Limit: maxConflicts})
			if err != nil {
				return err
			}
			e.Conflicts = conflicts(found)
		}
		out = &e
		return nil
	})
	return out, err
}

func (m *Manager) entry(rec *lockkeeper.Record, now lockkeeper.Moment) Entry {
	return Entry{
		GrantSnapshot: rec.Snapshot(now.Wall),
		State:         stateWord(rec.State),
		Stale:         rec.Expires != 0 && rec.Expires <= now.Lease,
	}
}

// each visits every record that has not lapsed, a page to a transaction.
func (m *Manager) each(ctx context.Context, visit func(*lockkeeper.Record, lockkeeper.Moment)) error {
	for after, more := uint64(0), true; more; {
		err := m.store.View(ctx, func(r lockkeeper.Reader) error {
			recs, err := r.List(after, page)
			if err != nil {
				return err
			}
			now := r.Now()
			for _, rec := range recs {
				after = rec.Ticket
				if !m.lapsed(rec, now.Lease) {
					visit(rec, now)
				}
			}
			more = len(recs) == page
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// Events returns one page of the event log.
func (m *Manager) Events(ctx context.Context, q lockkeeper.EventQuery) (events []lockkeeper.Event, err error) {
	err = m.store.View(ctx, func(r lockkeeper.Reader) error {
		events, err = r.Events(q)
		return err
	})
	return events, err
}

package lock

import (
	"context"

	"lockkeeper"
	"lockkeeper/store"
)

// A RequestInfo describes one request to people: a grant, or a waiting request with its
// blockers.
type RequestInfo struct {
	lockkeeper.GrantSnapshot
	State     string                    `json:"state"`          // held, waiting, unconfirmed, landing, revoking
	Stale     bool                      `json:"stale"`          // the lease has expired, and the grant still blocks other requests
	Free      bool                      `json:"free,omitempty"` // the next request for the paths of the grant frees it
	Conflicts []lockkeeper.ConflictInfo `json:"conflicts,omitempty"`

	Targets []lockkeeper.Lock `json:"-"` // targets with their kinds; shared, must not be changed
}

// ActiveGrants lists every live grant, oldest first.
func (m *Manager) ActiveGrants(ctx context.Context) ([]lockkeeper.GrantSnapshot, error) {
	return store.Read(ctx, m.store, func(r store.Reader) (out []lockkeeper.GrantSnapshot, err error) {
		recs, err := m.GrantsIn(r)
		for _, rec := range recs {
			out = append(out, rec.Snapshot(r.Now().Wall))
		}
		return out, err
	})
}

// GrantsIn returns the records that ActiveGrants lists, as a Reader sees them. They are
// shared: the store may return the same record until it changes.
func (m *Manager) GrantsIn(r store.Reader) (out []*store.Record, err error) {
	err = m.each(r, func(rec *store.Record) error {
		if rec.State != store.StateWaiting {
			out = append(out, rec)
		}
		return nil
	})
	return out, err
}

// FirstIn returns the first live grants and waiting requests, up to limit, and whether there
// may be more.
func (m *Manager) FirstIn(r store.Reader, limit int) (out []*store.Record, more bool, err error) {
	recs, err := r.List(0, limit)
	for _, rec := range recs {
		if !m.mayExpire(rec, r.Now().Lease) {
			out = append(out, rec)
		}
	}
	return out, len(recs) == limit, err
}

// Requests lists every live grant and every waiting request with its blockers, in ticket
// order.
func (m *Manager) Requests(ctx context.Context) ([]RequestInfo, error) {
	return store.Read(ctx, m.store, m.RequestsIn)
}

// RequestsIn returns what Requests lists, as a Reader sees it.
func (m *Manager) RequestsIn(r store.Reader) (out []RequestInfo, err error) {
	err = m.each(r, func(rec *store.Record) error {
		info, err := m.info(r, rec)
		out = append(out, info)
		return err
	})
	return out, err
}

// StaleIn lists the grants whose lease has expired and which still block other requests.
func (m *Manager) StaleIn(r store.Reader) (out []RequestInfo, err error) {
	err = m.each(r, func(rec *store.Record) error {
		if rec.State == store.StateWaiting || rec.Expires == 0 || rec.Expires > r.Now().Lease {
			return nil
		}
		info, err := m.info(r, rec)
		if info.Stale {
			out = append(out, info)
		}
		return err
	})
	return out, err
}

// Request returns one request with its blockers; nil if there is none.
func (m *Manager) Request(ctx context.Context, id string) (*RequestInfo, error) {
	if err := validID(id); err != nil {
		return nil, err
	}
	return store.Read(ctx, m.store, func(r store.Reader) (*RequestInfo, error) {
		rec, err := r.Get(id)
		if err != nil || rec == nil || m.mayExpire(rec, r.Now().Lease) {
			return nil, err
		}
		info, err := m.info(r, rec)
		return &info, err
	})
}

// IsFree reports whether the next request for the paths of a grant frees the grant. Until
// then the grant is listed and blocks no request. A grant whose process is alive is not
// free: the request must end that process first, and cannot always.
func (m *Manager) IsFree(r store.Reader, rec *store.Record) (bool, error) {
	if !rec.State.Confirmed() || rec.State == store.StateRevoking || m.liveness(rec.Process) == lockkeeper.ProcessAlive {
		return false, nil
	}
	f, err := m.judgeAt(rec, r.Now().Lease, func() (store.Moment, error) { return r.Now(), nil })
	return f != nil, err
}

func (m *Manager) info(r store.Reader, rec *store.Record) (RequestInfo, error) {
	info := RequestInfo{GrantSnapshot: rec.Snapshot(r.Now().Wall), State: stateWord(rec.State), Targets: rec.Locks}
	if rec.State != store.StateWaiting {
		free, err := m.IsFree(r, rec)
		info.Free, info.Stale = free, !free && rec.Expires != 0 && rec.Expires <= r.Now().Lease
		return info, err
	}
	found, _, err := r.Overlapping(store.Query{Locks: rec.Locks, Before: rec.Ticket, Except: rec.Ticket, Limit: maxConflicts})
	info.Conflicts = Conflicts(found)
	return info, err
}

// pageSize is how many records one read returns.
const pageSize = 1_000

// each visits every live record that a Reader sees.
func (m *Manager) each(r store.Reader, visit func(*store.Record) error) error {
	for after := uint64(0); ; {
		recs, err := r.List(after, pageSize)
		if err != nil {
			return err
		}
		for _, rec := range recs {
			after = rec.Ticket
			if m.mayExpire(rec, r.Now().Lease) {
				continue
			}
			if err := visit(rec); err != nil {
				return err
			}
		}
		if len(recs) < pageSize {
			return nil
		}
	}
}

// Events returns one page of the event log.
func (m *Manager) Events(ctx context.Context, q store.EventQuery) ([]lockkeeper.Event, error) {
	return store.Read(ctx, m.store, func(r store.Reader) ([]lockkeeper.Event, error) { return r.Events(q) })
}

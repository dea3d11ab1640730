package sqlstore

import (
	"fmt"
	"sync/atomic"
	"time"

	"lockkeeper"
	"lockkeeper/store"
)

// recordColumns lists the columns of a request in the order of recordRow.
const recordColumns = `r.ticket, r.id, r.holder, r.policy, r.token, r.state, r.fence, r.ttl, r.expires, r.heartbeat,
 r.acquired_at, r.expires_at, r.heartbeat_at, r.parked_on, r.blockers, r.process, r.metadata, r.locks`

// A recordRow is one row of the requests table.
type recordRow struct {
	plainRow
	token []byte
}

// A plainRow holds the comparable columns of a request.
type plainRow struct {
	ticket                             int64
	id, holder, policy                 string
	state, fence, ttl                  int64
	expires, heartbeat                 int64
	acquiredAt, expiresAt, heartbeatAt int64
	waitsOn, blockers                  int64
	process, metadata, locks           string
}

func (r *recordRow) dest() []any {
	return []any{&r.ticket, &r.id, &r.holder, &r.policy, &r.token, &r.state, &r.fence, &r.ttl, &r.expires, &r.heartbeat,
		&r.acquiredAt, &r.expiresAt, &r.heartbeatAt, &r.waitsOn, &r.blockers, &r.process, &r.metadata, &r.locks}
}

// A locksCache keeps the most recently decoded locks. The same holder is read repeatedly, and
// its locks are most of the work of decoding it.
type locksCache struct{ last atomic.Pointer[decodedLocks] }

type decodedLocks struct {
	text  string
	locks []lockkeeper.Lock
}

// decode parses stored locks. Callers share the result and must not change it.
func (m *locksCache) decode(text string) ([]lockkeeper.Lock, error) {
	if d := m.last.Load(); d != nil && d.text == text {
		return d.locks, nil
	}
	locks, err := decodeLocks(text)
	if err == nil {
		m.last.Store(&decodedLocks{text, locks})
	}
	return locks, err
}

func (r *recordRow) record(space string, known *locksCache) (*store.Record, error) {
	rec := &store.Record{
		Grant: lockkeeper.Grant{
			ID: r.id, Space: space, Holder: r.holder, Policy: r.policy, Fence: uint64(r.fence),
			AcquiredAt: toTime(r.acquiredAt), ExpiresAt: toTime(r.expiresAt), HeartbeatAt: toTime(r.heartbeatAt),
		},
		Ticket: uint64(r.ticket), State: store.State(r.state), TTL: time.Duration(r.ttl),
		Expires: lockkeeper.Instant(r.expires), Heartbeat: lockkeeper.Instant(r.heartbeat),
		WaitsOn: uint64(r.waitsOn), Blockers: uint64(r.blockers),
	}
	copy(rec.TokenHash[:], r.token)
	if err := decode(r.process, &rec.Process); err != nil {
		return nil, fmt.Errorf("decode the process of request %s: %w", r.id, err)
	}
	if err := decode(r.metadata, &rec.Metadata); err != nil {
		return nil, fmt.Errorf("decode the metadata of request %s: %w", r.id, err)
	}
	var err error
	if rec.Locks, err = known.decode(r.locks); err != nil {
		return nil, fmt.Errorf("decode the locks of request %s: %w", r.id, err)
	}
	return rec, nil
}

// toTime converts a stored time; 0 is the zero time.
func toTime(ns int64) time.Time {
	if ns == 0 {
		return time.Time{}
	}
	return time.Unix(0, ns).UTC()
}

func fromTime(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixNano()
}

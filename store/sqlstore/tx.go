package sqlstore

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"lockkeeper"
	"lockkeeper/store"
)

var errClosed = errors.New("the store is closed")

// A session runs statements inside one transaction. Parameters are numbered: $1, $2, …
type session interface {
	exec(sql string, args ...any) error
	// query calls each for every row. The argument of each is a function that scans the row.
	query(sql string, args []any, each func(scan func(dest ...any) error) error) error

	// These statements differ between the dialects.

	insertTargets(space int64, ticket uint64, locks []lockkeeper.Lock) error
	deleteTargets(space int64, ticket uint64, locks []lockkeeper.Lock) error
	// targets selects path, kind, mode and ticket of the targets at the given neighbors.
	targets(space int64, p neighbors, each func(scan func(dest ...any) error) error) error
	// landed selects path, landing and new of the latest landing at each path.
	landed(space int64, grantID string, paths []string, each func(scan func(dest ...any) error) error) error
	insertChanges(space int64, landing uint64, changes []lockkeeper.PathChange) error
	// numbered selects the rows of a space that have one of the numbers.
	numbered(what numberedRows, space int64, numbers []int64, each func(scan func(dest ...any) error) error) error
}

// numberedRows says which rows of a space a session selects by their numbers.
type numberedRows uint8

const (
	requestsByTicket numberedRows = iota // selects recordColumns of the requests with these tickets
	landingsByNumber                     // selects landingColumns
	changesByLanding                     // selects landing, path, old and new; the changes of one landing come in their order
)

// A tx is a transaction on one space.
type tx struct {
	session
	key        int64 // key of the space in the database
	space      string
	locksCache *locksCache
	listCache  *listCache
	now        store.Moment
	ask        func() // sets now, which the first query of a read-only transaction sets otherwise; nil: now is set
	counters
	began counters          // values at the start of the transaction
	seen  map[string]stored // items by id; nil in a read-only transaction
	woken []string
}

// counters are the counts in the space's row.
type counters struct {
	seq     uint64 // the last event number given
	waiting int64  // items that wait on locks
}

// setCounters sets the counters to the values of the space's row.
func (t *tx) setCounters(seq, waiting int64) {
	t.began = counters{uint64(seq), waiting}
	t.counters, t.seen = t.began, map[string]stored{}
}

// saveCounters writes the counters to the row if they changed.
func (t *tx) saveCounters() error {
	if t.counters == t.began {
		return nil
	}
	return t.exec(`UPDATE spaces SET seq = $2, parked = $3 WHERE key = $1`, t.key, int64(t.seq), t.waiting)
}

func (t *tx) Now() store.Moment {
	if t.ask != nil {
		t.ask()
	}
	return t.now
}

// getSQL writes the space so that only the index on ids applies. If the planner takes the table
// for small, it may otherwise choose an index that reads all of it.
const getSQL = `SELECT ` + recordColumns + ` FROM requests r WHERE r.id = $2 AND r.space + 0 = $1`

func (t *tx) Get(id string) (*store.Record, error) {
	recs, err := t.records(getSQL, t.key, id)
	if err != nil || len(recs) == 0 {
		return nil, err
	}
	return recs[0], nil
}

func (t *tx) Waiters(on uint64) ([]*store.Record, error) {
	return t.records(`SELECT `+recordColumns+` FROM requests r WHERE r.space = $1 AND r.parked_on = $2 AND r.parked_on > 0 ORDER BY r.ticket`,
		t.key, int64(on))
}

func (t *tx) records(sql string, args ...any) (out []*store.Record, err error) {
	err = t.query(sql, args, func(scan func(...any) error) error {
		var row recordRow
		if err := scan(row.dest()...); err != nil {
			return err
		}
		rec, err := row.record(t.space, t.locksCache)
		out = append(out, rec)
		return err
	})
	return out, err
}

func (t *tx) Overlapping(q store.Query) ([]store.Overlap, bool, error) {
	if len(q.Locks) == 0 {
		return nil, false, nil
	}
	q.Locks = lockkeeper.Normalize(q.Locks) // the search below needs normalized locks
	targets, err := t.targetsAt(neighborsOf(q.Locks))
	if err != nil || len(targets) == 0 {
		return nil, false, err
	}
	recs, err := t.recordsOf(targets)
	if err != nil {
		return nil, false, err
	}
	c := &collector{query: q}
	for _, m := range targets {
		rec := recs[m.ticket]
		if rec == nil {
			return nil, false, fmt.Errorf("target %s belongs to ticket %d, which does not exist", m.lock.Path, m.ticket)
		}
		c.row(m.lock, rec)
	}
	found, more := c.answer()
	return found, more, nil
}

// A target is one lock of the record with the given ticket.
type target struct {
	lock   lockkeeper.Lock
	ticket int64
}

func (t *tx) targetsAt(p neighbors) (targets []target, err error) {
	err = t.targets(t.key, p, func(scan func(...any) error) error {
		var m target
		var kind, mode int64
		err := scan(&m.lock.Path, &kind, &mode, &m.ticket)
		m.lock.Kind, m.lock.Mode = lockkeeper.Kind(kind), lockkeeper.Mode(mode)
		targets = append(targets, m)
		return err
	})
	return targets, err
}

// recordsOf reads the record of each ticket once. A record with thousands of targets is large,
// and a request may conflict with all of them.
func (t *tx) recordsOf(targets []target) (map[int64]*store.Record, error) {
	recs := map[int64]*store.Record{}
	var tickets []int64
	for _, m := range targets {
		if _, known := recs[m.ticket]; !known {
			recs[m.ticket] = nil
			tickets = append(tickets, m.ticket)
		}
	}
	err := t.numbered(requestsByTicket, t.key, tickets, func(scan func(...any) error) error {
		var row recordRow
		if err := scan(row.dest()...); err != nil {
			return err
		}
		rec, err := row.record(t.space, t.locksCache)
		recs[row.ticket] = rec
		return err
	})
	return recs, err
}

func (t *tx) Events(q store.EventQuery) ([]lockkeeper.Event, error) {
	before := int64(store.AnyTicket)
	if q.Before > 0 {
		before = int64(q.Before)
	}
	order := `ASC`
	if q.Latest {
		order = `DESC`
	}
	var out []lockkeeper.Event
	err := t.query(`SELECT seq, at, body FROM events WHERE space = $1 AND seq > $2 AND seq < $3 ORDER BY seq `+order+` LIMIT $4`,
		[]any{t.key, int64(q.After), before, int64(store.Page(q.Limit))}, func(scan func(...any) error) error {
			var seq, at int64
			var body string
			if err := scan(&seq, &at, &body); err != nil {
				return err
			}
			ev := lockkeeper.Event{}
			if err := decode(body, &ev); err != nil {
				return fmt.Errorf("decode event %d: %w", seq, err)
			}
			ev.Seq, ev.Space, ev.At = uint64(seq), t.space, toTime(at)
			out = append(out, ev)
			return nil
		})
	return out, err
}

func (t *tx) Append(ev lockkeeper.Event) (uint64, error) {
	body, err := encodeEvent(&ev)
	if err != nil {
		return 0, err
	}
	t.seq++
	return t.seq, t.exec(`INSERT INTO events (space, seq, at, body) VALUES ($1, $2, $3, $4)`,
		t.key, int64(t.seq), fromTime(ev.At), body)
}

func (t *tx) Insert(rec *store.Record) error {
	process, metadata, locks, err := bodies(rec)
	if err != nil {
		return err
	}
	err = t.exec(`INSERT INTO requests (space, ticket, id, holder, policy, token, state, fence, ttl, expires, heartbeat,
 acquired_at, expires_at, heartbeat_at, parked_on, blockers, process, metadata, locks)
 VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19)`,
		t.key, int64(rec.Ticket), rec.ID, rec.Holder, rec.Policy, rec.TokenHash[:], int64(rec.State), int64(rec.Fence),
		int64(rec.TTL), int64(rec.Expires), int64(rec.Heartbeat), fromTime(rec.AcquiredAt), fromTime(rec.ExpiresAt),
		fromTime(rec.HeartbeatAt), int64(rec.WaitsOn), int64(rec.Blockers), process, metadata, locks)
	if err != nil {
		return err
	}
	return t.insertTargets(t.key, rec.Ticket, rec.Locks)
}

func (t *tx) Save(rec *store.Record) error {
	process, metadata, _, err := bodies(rec)
	if err != nil {
		return err
	}
	return t.exec(`UPDATE requests SET state = $3, fence = $4, ttl = $5, expires = $6, heartbeat = $7, acquired_at = $8,
 expires_at = $9, heartbeat_at = $10, parked_on = $11, blockers = $12, process = $13, metadata = $14, holder = $15, policy = $16,
 token = $17 WHERE space = $1 AND ticket = $2`,
		t.key, int64(rec.Ticket), int64(rec.State), int64(rec.Fence), int64(rec.TTL), int64(rec.Expires), int64(rec.Heartbeat),
		fromTime(rec.AcquiredAt), fromTime(rec.ExpiresAt), fromTime(rec.HeartbeatAt), int64(rec.WaitsOn), int64(rec.Blockers), process, metadata,
		rec.Holder, rec.Policy, rec.TokenHash[:])
}

func (t *tx) SetLocks(rec *store.Record, locks []lockkeeper.Lock) error {
	// A grant of many locks that gains one keeps its other rows.
	if gone := missing(rec.Locks, locks); len(gone) > 0 {
		if err := t.deleteTargets(t.key, rec.Ticket, gone); err != nil {
			return err
		}
	}
	if err := t.exec(`UPDATE requests SET locks = $3 WHERE space = $1 AND ticket = $2`, t.key, int64(rec.Ticket), encodeLocks(locks)); err != nil {
		return err
	}
	return t.insertTargets(t.key, rec.Ticket, missing(locks, rec.Locks))
}

// missing returns the locks that are not in the list others, compared by all fields.
func missing(locks, others []lockkeeper.Lock) (list []lockkeeper.Lock) {
	has := make(map[lockkeeper.Lock]bool, len(others))
	for _, l := range others {
		has[l] = true
	}
	for _, l := range locks {
		if !has[l] {
			list = append(list, l)
		}
	}
	return list
}

func (t *tx) Delete(rec *store.Record) error {
	if err := t.deleteTargets(t.key, rec.Ticket, rec.Locks); err != nil {
		return err
	}
	return t.exec(`DELETE FROM requests WHERE space = $1 AND ticket = $2`, t.key, int64(rec.Ticket))
}

func (t *tx) Denial(key string) (uint64, error) {
	var digest int64
	err := t.query(`SELECT digest FROM denials WHERE space = $1 AND key = $2`, []any{t.key, key},
		func(scan func(...any) error) error { return scan(&digest) })
	return uint64(digest), err
}

func (t *tx) SetDenial(key string, digest uint64) error {
	return t.exec(`INSERT INTO denials (space, key, digest, at) VALUES ($1, $2, $3, $4)
 ON CONFLICT (space, key) DO UPDATE SET digest = excluded.digest, at = excluded.at`, t.key, key, int64(digest), fromTime(t.now.Wall))
}

// pruneAtOnce bounds how many events one transaction reads and deletes. It is more than are
// added between two prunings.
const pruneAtOnce = 2_000

func (t *tx) Prune(before time.Time, keep int) error {
	var oldest, due int64
	err := t.query(`SELECT seq FROM events WHERE space = $1 ORDER BY seq LIMIT 1`, []any{t.key},
		func(scan func(...any) error) error { return scan(&oldest) })
	if err != nil {
		return err
	}
	// If the wall clock is set back, event times do not rise with their numbers. So the bound
	// is the newest old event within a bounded page.
	err = t.query(`SELECT seq FROM (SELECT seq, at FROM events WHERE space = $1 ORDER BY seq LIMIT $2) AS page WHERE at < $3 ORDER BY seq DESC LIMIT 1`,
		[]any{t.key, int64(pruneAtOnce), fromTime(before)}, func(scan func(...any) error) error { return scan(&due) })
	if err != nil {
		return err
	}
	// Numbers have a gap between epochs, so they count events only within the current epoch.
	// Events of earlier epochs are deleted once the current epoch alone has enough.
	var epoch int64
	err = t.query(`SELECT epoch FROM spaces WHERE key = $1`, []any{t.key}, func(scan func(...any) error) error { return scan(&epoch) })
	if err != nil {
		return err
	}
	if over := int64(t.seq) - int64(keep); over > due && over >= epoch {
		due = over
	}
	due = min(due, oldest+pruneAtOnce)
	if err := t.exec(`DELETE FROM events WHERE space = $1 AND seq <= $2`, t.key, due); err != nil {
		return err
	}
	if err := t.pruneLandings(before); err != nil {
		return err
	}
	if err := t.pruneItems(before); err != nil {
		return err
	}
	return t.exec(`DELETE FROM denials WHERE space = $1 AND at < $2`, t.key, fromTime(t.now.Wall.Add(-time.Hour)))
}

func (t *tx) Wake(id string) {
	if !slices.Contains(t.woken, id) {
		t.woken = append(t.woken, id)
	}
}

// Numbers of an epoch start at a number that its start time determines, so that they are above all
// that a lost database can have given. Numbers stay below 2^53 for 60 years, so JSON readers keep
// them exact.
const (
	// perMillisecond is how far the first numbers of epochs are apart that start a millisecond
	// apart. No server gives as many numbers in that time.
	perMillisecond = 4474
	// epochGap is the least distance between the last known number and the next epoch.
	epochGap = 1 << 28
	// promotionGap is the least distance after a promotion, about an hour. The clock of the lost
	// primary may have been ahead of the clock of its standby.
	promotionGap = 60 * epochGap
)

// nextEpoch returns the first number of an epoch after the number last.
func nextEpoch(last uint64, now time.Time, promoted bool) uint64 {
	elapsed := now.Sub(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)) / time.Millisecond
	from := uint64(max(elapsed, 0)) * perMillisecond
	if promoted {
		return max(last, from) + promotionGap
	}
	return max(last+epochGap, from)
}

// newEpoch starts a new epoch for this physical database, which may be a promoted standby. It does
// nothing if the space already belongs to this database and its last number is not below the number
// above.
func (t *tx) newEpoch(incarnation string, above uint64, promoted bool) error {
	var was string
	err := t.query(`SELECT incarnation FROM spaces WHERE key = $1`, []any{t.key},
		func(scan func(...any) error) error { return scan(&was) })
	if err != nil || was == incarnation && above <= t.seq {
		return err
	}
	t.seq = nextEpoch(max(t.seq, above), t.now.Wall, promoted)
	if err := t.exec(`UPDATE spaces SET incarnation = $2, epoch = $3 WHERE key = $1`, t.key, incarnation, int64(t.seq)); err != nil {
		return err
	}
	_, err = t.Append(lockkeeper.Event{Kind: lockkeeper.EventEpoch, At: t.now.Wall, Reason: "the database was restarted, promoted, restored or copied",
		Actor: lockkeeper.Actor{Name: "lockkeeper", Kind: lockkeeper.ActorSystem}})
	return err
}

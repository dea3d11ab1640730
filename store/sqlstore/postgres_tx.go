//go:build !nopostgres

package sqlstore

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"lockkeeper"
	"lockkeeper/store"
)

const nowSQL = `(extract(epoch FROM clock_timestamp()) * 1000000)::bigint * 1000`

// A commit records the outcome of a transaction.
type commit struct {
	woken   []string
	refused bool   // the caller's function returned an error of its own
	lost    string // the transaction id if the connection broke during the commit
}

func (p *Postgres) Update(ctx context.Context, fn func(store.Tx) error) error {
	var c commit
	err := p.with(ctx, func(conn *pgx.Conn) (bool, error) { return p.update(ctx, conn, fn, &c) })
	if c.lost != "" { // asked only here, because with has returned the broken connection, whose place in the pool others may need
		err = p.outcome(ctx, c.lost, err)
	}
	switch {
	case c.refused:
		return err
	case err != nil:
		return p.explain(ctx, err)
	}
	p.listen.wake(c.woken) // listeners in this process need not wait for the server
	return nil
}

// with runs fn on a connection of the pool. If fn reports that its connection was dead and nothing
// was done, with retries on another connection. After a restart of the server every pooled
// connection may be dead.
func (p *Postgres) with(ctx context.Context, fn func(*pgx.Conn) (again bool, err error)) error {
	for range p.conns {
		if again, err := p.once(ctx, fn); !again {
			return err
		}
	}
	_, err := p.once(ctx, fn)
	return err
}

func (p *Postgres) once(ctx context.Context, fn func(*pgx.Conn) (bool, error)) (bool, error) {
	conn, err := p.acquire(ctx)
	if err != nil {
		return false, err
	}
	defer p.release(conn)
	return fn(conn.Conn())
}

// release returns a connection to the pool, or closes it if the server has few. A connection that ended a View
// stays with the store for a moment, because the next use ends the transaction without a round trip.
func (p *Postgres) release(conn *pgxpool.Conn) {
	if !p.pooled && !conn.Conn().IsClosed() && preparedOn(conn.Conn()).viewing {
		p.spareMu.Lock()
		if p.spare == nil && !p.closed {
			p.spare = conn
			p.spareEnd = time.AfterFunc(spareFor, func() { p.give(p.takeSpare()) })
			conn = nil
		}
		p.spareMu.Unlock()
	}
	p.give(conn)
}

// spareFor is how long a connection waits for another use.
const spareFor = 100 * time.Millisecond

// takeSpare returns the connection that waits for another use, or nil.
func (p *Postgres) takeSpare() *pgxpool.Conn {
	p.spareMu.Lock()
	defer p.spareMu.Unlock()
	conn := p.spare
	if p.spare = nil; conn != nil {
		p.spareEnd.Stop()
	}
	return conn
}

// give ends a View on a connection and returns it to the pool.
func (p *Postgres) give(conn *pgxpool.Conn) {
	if conn == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	if known := preparedOn(conn.Conn()); known.viewing && !conn.Conn().IsClosed() {
		known.viewing = false
		rollback(ctx, conn.Conn())
	}
	if p.isCrowded() {
		conn.Hijack().Close(ctx)
		return
	}
	conn.Release()
}

// acquire returns a connection of the pool. While the server has no free connection, it tries again for
// the Busy limit.
func (p *Postgres) acquire(ctx context.Context) (*pgxpool.Conn, error) {
	if conn := p.takeSpare(); conn != nil {
		return conn, nil
	}
	pause := 20 * time.Millisecond
	for began := time.Now(); ; pause = min(2*pause, time.Second) {
		conn, err := p.pool.Acquire(ctx)
		if err == nil || !isFull(err) {
			return conn, err
		}
		p.noteCrowded()
		if time.Since(began) > p.opt.Busy {
			return nil, err
		}
		select {
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-time.After(pause/2 + rand.N(pause)):
		}
	}
}

// crowdedFor is how long this process keeps no idle connection after the server had few to spare.
const crowdedFor = 30 * time.Second

func (p *Postgres) noteCrowded() { p.crowded.Store(time.Now().Add(crowdedFor).UnixNano()) }

func (p *Postgres) isCrowded() bool { return time.Now().UnixNano() < p.crowded.Load() }

// crowdedSQL says whether more than half of the server's connections are in use.
const crowdedSQL = `(SELECT sum(numbackends) > current_setting('max_connections')::int / 2 FROM pg_stat_database)`

// isFull reports whether the server refused a connection because it has too many.
func isFull(err error) bool {
	pg, ok := errors.AsType[*pgconn.PgError](err)
	return ok && pg.Code == "53300"
}

func (p *Postgres) update(ctx context.Context, conn *pgx.Conn, fn func(store.Tx) error, c *commit) (again bool, err error) {
	s := p.session(ctx, conn)
	t := &tx{session: s, key: p.key, space: p.space, locksCache: &p.locksCache, listCache: &p.listCache}
	finished := false
	defer func() {
		if !finished && !conn.IsClosed() { // fn failed or panicked
			rollback(ctx, conn)
		}
	}()
	xid, err := p.begin(s, t)
	if err != nil {
		return conn.IsClosed(), err
	}
	if err := fn(t); err != nil {
		c.refused = s.failed == nil
		return false, err
	}
	if s.failed != nil { // fn ignored the error; the server would roll back and report success
		return false, s.failed
	}
	if err := t.saveCounters(); err != nil {
		return false, err
	}
	var after []statement
	if len(t.woken) > 0 { // inside the transaction, a notification would make the commits of all spaces wait for each other
		after = append(after, statement{sql: `SELECT pg_notify($1, id) FROM unnest($2::text[]) AS id`, args: []any{p.channel(), t.woken}})
	}
	err = s.commit(after...)
	if lost(err, conn) {
		c.lost = xid
	}
	finished, c.woken = err == nil, t.woken
	if finished {
		p.saw(int64(t.seq))
	}
	return false, err
}

// saw notes a number that the server has given. A server that has only lower ones has lost some.
func (p *Postgres) saw(number int64) {
	for {
		last := p.last.Load()
		if number <= last || p.last.CompareAndSwap(last, number) {
			return
		}
	}
}

// rollback ends a transaction, or the connection if that fails.
func rollback(ctx context.Context, conn *pgx.Conn) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	err := conn.PgConn().Exec(ctx, `ROLLBACK`).Close()
	if err != nil {
		conn.Close(ctx)
	}
	return err
}

// inTransaction runs fn in a transaction that does not concern a space.
func (p *Postgres) inTransaction(ctx context.Context, fn func(*pgSession) error) error {
	return p.with(ctx, func(conn *pgx.Conn) (again bool, err error) {
		s := p.session(ctx, conn)
		defer func() {
			if err != nil && !conn.IsClosed() {
				rollback(ctx, conn)
			}
		}()
		p.start(s, `BEGIN`)
		if err := fn(s); err != nil {
			return false, err
		}
		return false, s.commit()
	})
}

// start queues the statements that begin a transaction. Without settings of the session, they apply to the
// transaction.
func (p *Postgres) start(s *pgSession, begin string) {
	s.exec(begin)
	if !p.pooled {
		return
	}
	settings := p.settings()
	delete(settings, "default_transaction_isolation") // begin says it
	names := slices.Sorted(maps.Keys(settings))
	values := make([]string, len(names))
	for i, name := range names {
		values[i] = settings[name]
	}
	s.exec(`SELECT set_config(s.name, s.value, true) FROM unnest($1::text[], $2::text[]) AS s (name, value)`, names, values)
}

// begin starts a transaction. It locks the space's row first and reads the clock once it has
// the lock. If another server may have lost numbers, it starts a new epoch: every number that the
// transaction gives is above them.
func (p *Postgres) begin(s *pgSession, t *tx) (xid string, err error) {
	p.start(s, `BEGIN ISOLATION LEVEL READ COMMITTED`)
	if err := s.exec(`SELECT 1 FROM spaces WHERE key = $1 FOR UPDATE`, p.key); err != nil {
		return "", err
	}
	found := false
	var seq, waiting, now int64
	var was, is string
	asked := time.Now()
	err = s.query(`SELECT seq, parked, `+nowSQL+`, pg_current_xact_id()::text, incarnation, incarnation() FROM spaces WHERE key = $1 AND id = $2`, []any{p.key, p.space},
		func(scan func(...any) error) error {
			found = true
			return scan(&seq, &waiting, &now, &xid, &was, &is)
		})
	if err != nil {
		return "", err
	}
	if !found {
		return "", p.spaceGone()
	}
	t.setCounters(seq, waiting)
	t.now = p.moment(now, asked)
	last := p.last.Load()
	if was == is && seq >= last {
		return xid, nil
	}
	if was != is {
		err = t.restartLeases()
	}
	return xid, errors.Join(err, t.newEpoch(is, uint64(last), wasPromoted(was, is)))
}

// restartLeases gives every lease its whole time again, after another server began to judge them by its own
// clock.
func (t *tx) restartLeases() error {
	err := t.exec(`UPDATE requests SET heartbeat = $2, expires = $2 + (expires - heartbeat), heartbeat_at = $3, expires_at = $3 + (expires - heartbeat)
 WHERE space = $1 AND expires <> 0`, t.key, int64(t.now.Lease), fromTime(t.now.Wall))
	return errors.Join(err, t.restartQueue(time.Minute))
}

// wasPromoted reports whether a standby took over between two incarnations.
func wasPromoted(was, is string) bool {
	return timelineOf(was) != "" && timelineOf(is) > timelineOf(was) // hexadecimal, of the same length
}

func timelineOf(incarnation string) string {
	if parts := strings.Split(incarnation, ":"); len(parts) == 3 {
		return parts[1]
	}
	return ""
}

// moment returns the time that the server answered. The host read its own clock (asked)
// before it sent the question.
func (p *Postgres) moment(ns int64, asked time.Time) store.Moment {
	if p.opt.Clock != nil {
		return p.opt.Clock()
	}
	wall := time.Unix(0, ns).UTC()
	return store.Moment{Lease: lockkeeper.Instant(ns), Wall: wall, Skew: asked.Sub(wall)}
}

// lost reports whether the server may have executed the statement despite the error. That
// includes a server that terminates the session.
func lost(err error, conn *pgx.Conn) bool {
	return err != nil && conn.IsClosed() && !pgconn.SafeToRetry(err)
}

// outcome asks the server whether a transaction committed after its connection broke.
func (p *Postgres) outcome(caller context.Context, xid string, cause error) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(caller), p.opt.Busy)
	defer cancel()
	unknown := func(err error) error {
		return &lockkeeper.StoreError{Store: p.name, Reason: "the connection broke during a commit, and whether it took effect is unknown",
			Next: "check with `lockkeeper status` when the server is back; a grant that was made expires with its lease", Err: errors.Join(cause, err), Temporary: true}
	}
	for {
		var status *string
		err := p.row(ctx, `SELECT pg_xact_status($1::text::xid8)`, []any{xid}, &status)
		switch {
		case err != nil && ctx.Err() == nil:
			// The server may be restarting.
		case err != nil:
			return unknown(err)
		case status == nil:
			return unknown(errors.New("the server no longer knows transaction " + xid))
		case *status == "committed":
			return nil
		case *status == "aborted":
			return p.unchanged(caller, cause)
		}
		// In progress: the server has not noticed yet that the connection is closed.
		select {
		case <-ctx.Done():
			return unknown(ctx.Err())
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// row runs a statement outside of a transaction and scans its row.
func (p *Postgres) row(ctx context.Context, sql string, args []any, dest ...any) error {
	_, err := p.once(ctx, func(conn *pgx.Conn) (bool, error) {
		return false, p.session(ctx, conn).query(sql, args, func(scan func(...any) error) error { return scan(dest...) })
	})
	return err
}

// unchanged returns the error for a broken connection if nothing was committed.
func (p *Postgres) unchanged(caller context.Context, cause error) error {
	if caller.Err() != nil { // the caller canceled the transaction
		return context.Cause(caller)
	}
	return &lockkeeper.StoreError{Store: p.name, Reason: "the connection broke and nothing was changed", Next: "try again", Err: cause, Temporary: true}
}

func (p *Postgres) View(ctx context.Context, fn func(store.Reader) error) error {
	refused := false
	err := p.with(ctx, func(conn *pgx.Conn) (bool, error) { return p.view(ctx, conn, fn, &refused) })
	if refused {
		return err
	}
	return p.explain(ctx, err)
}

func (p *Postgres) view(ctx context.Context, conn *pgx.Conn, fn func(store.Reader) error, refused *bool) (again bool, err error) {
	s := p.session(ctx, conn)
	t := &tx{session: s, key: p.key, space: p.space, locksCache: &p.locksCache, listCache: &p.listCache}
	// The transaction begins with the first query, and its end is sent with the next use of the connection.
	p.start(s, `BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY`)
	asked, begun := time.Now(), false
	s.queued = append(s.queued, statement{sql: `SELECT ` + nowSQL, each: func(scan func(...any) error) error {
		var now int64
		err := scan(&now)
		t.now, t.ask, begun = p.moment(now, asked), nil, true
		return err
	}})
	t.ask = func() { s.flush() } // an error is kept in s.failed
	err = fn(t)
	*refused = err != nil && s.failed == nil
	preparedOn(conn).viewing = begun && !conn.IsClosed()
	return !begun && s.failed != nil && conn.IsClosed() && ctx.Err() == nil, cmp.Or(err, s.failed)
}

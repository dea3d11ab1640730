//go:build !nopostgres

package sqlstore

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

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
	p.notify(ctx, c.woken)
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
	conn, err := p.pool.Acquire(ctx)
	if err != nil {
		return false, err
	}
	defer conn.Release()
	return fn(conn.Conn())
}

func (p *Postgres) update(ctx context.Context, conn *pgx.Conn, fn func(store.Tx) error, c *commit) (again bool, err error) {
	s := newPgSession(ctx, conn)
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
	err = s.send(`COMMIT`, nil, nil)
	if lost(err, conn) {
		c.lost = xid
	}
	finished, c.woken = err == nil, t.woken
	return false, err
}

// rollback ends a transaction, or the connection if that fails.
func rollback(ctx context.Context, conn *pgx.Conn) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	_, err := conn.Exec(ctx, `ROLLBACK`)
	if err != nil {
		conn.Close(ctx)
	}
	return err
}

// begin starts a transaction. It locks the space's row first and reads the clock once it has
// the lock.
func (p *Postgres) begin(s *pgSession, t *tx) (xid string, err error) {
	if err := errors.Join(s.exec(`BEGIN`), s.exec(`SELECT 1 FROM spaces WHERE key = $1 FOR UPDATE`, p.key)); err != nil {
		return "", err
	}
	found := false
	var seq, waiting, now int64
	asked := time.Now()
	err = s.query(`SELECT seq, parked, `+nowSQL+`, pg_current_xact_id()::text FROM spaces WHERE key = $1`, []any{p.key}, func(scan func(...any) error) error {
		found = true
		return scan(&seq, &waiting, &now, &xid)
	})
	if err != nil {
		return "", err
	}
	if !found {
		return "", p.spaceGone()
	}
	t.setCounters(seq, waiting)
	t.now = p.moment(now, asked)
	return xid, nil
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
			Next: "check with `lockkeeper status` when the server is back; a grant that was made expires with its lease", Err: errors.Join(cause, err)}
	}
	for {
		var status *string
		err := p.pool.QueryRow(ctx, `SELECT pg_xact_status($1::text::xid8)`, xid).Scan(&status)
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

// unchanged returns the error for a broken connection if nothing was committed.
func (p *Postgres) unchanged(caller context.Context, cause error) error {
	if caller.Err() != nil { // the caller canceled the transaction
		return context.Cause(caller)
	}
	return &lockkeeper.StoreError{Store: p.name, Reason: "the connection broke and nothing was changed", Next: "try again", Err: cause}
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
	s := newPgSession(ctx, conn)
	t := &tx{session: s, key: p.key, space: p.space, locksCache: &p.locksCache, listCache: &p.listCache}
	defer func() {
		if !conn.IsClosed() {
			err = cmp.Or(err, rollback(ctx, conn))
		}
	}()
	if err := s.exec(`BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY`); err != nil {
		return false, err
	}
	var now int64
	asked := time.Now()
	err = s.query(`SELECT `+nowSQL, nil, func(scan func(...any) error) error { return scan(&now) })
	if err != nil {
		return conn.IsClosed(), err
	}
	t.now = p.moment(now, asked)
	err = fn(t)
	*refused = err != nil && s.failed == nil
	return false, err
}

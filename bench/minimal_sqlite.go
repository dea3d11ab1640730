package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/ncruces/go-sqlite3"

	"lockkeeper"
	"lockkeeper/lock"
	"lockkeeper/store"
	"lockkeeper/store/sqlstore"
)

// createSQLite creates a database with an empty space and returns its path.
func (b *bench) createSQLite(path string) string {
	check(sqlstore.CreateSQLite(b.ctx, path, "bench"))
	return path
}

func (b *bench) openSQLite(path string) store.Store {
	s := get(sqlstore.OpenSQLite(b.ctx, path, "bench", sqlstore.Options{}))
	b.cleanup(s.Close)
	return s
}

func (b *bench) manager(s store.Store, opt lock.Options) *lock.Manager {
	m := lock.New(s, opt)
	b.cleanup(m.Close)
	return m
}

// connect opens a database without the product.
func (b *bench) connect(path string) *sqlite3.Conn {
	conn := get(sqlite3.OpenContext(b.ctx, "file:"+path))
	b.cleanup(conn.Close)
	conn.SetInterrupt(context.Background())
	check(errors.Join(conn.BusyTimeout(30*time.Second), conn.Exec(`PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL`)))
	return conn
}

func (b *bench) prepare(conn *sqlite3.Conn, sql string) *sqlite3.Stmt {
	st, _, err := conn.PrepareFlags(sql, sqlite3.PREPARE_PERSISTENT)
	if err != nil {
		check(fmt.Errorf("%s: %w", sql, err))
	}
	b.cleanup(st.Close)
	return st
}

// A sample is what the product stored for one grant. The minimal transactions write rows of
// exactly that size.
type sample struct {
	holder, policy, process, metadata, locks string
	token                                    []byte
	ttl                                      int64
	acquired, released                       string // bodies of the events
}

// A minimalSQLite is what a developer would write by hand to store the rows of a sample in
// the tables of the product. It looks for no conflicts, checks no token and encodes nothing.
type minimalSQLite struct {
	seq int64
	row sample

	begin, commit, count, event, request, targets, noTargets, noRequest, read *sqlite3.Stmt
}

// openMinimalSQLite opens a database that the product created, and reads back from it
// what the product stores for req. Several processes give different names, so
// that their ids differ.
func openMinimalSQLite(b *bench, path, name string, req lockkeeper.Request) *minimalSQLite {
	conn := b.connect(path)
	many := func(group string) string { return strings.Repeat(group+",", len(req.Locks)-1) + group }
	s := &minimalSQLite{
		row:    learn(b, conn, path, req),
		begin:  b.prepare(conn, `BEGIN IMMEDIATE`),
		commit: b.prepare(conn, `COMMIT`),
		read:   b.prepare(conn, `SELECT seq FROM spaces WHERE key = 1`),
		count:  b.prepare(conn, `UPDATE spaces SET seq = ? WHERE key = 1`),
		event:  b.prepare(conn, `INSERT INTO events (space, seq, at, body) VALUES (1, ?, ?, ?)`),
		request: b.prepare(conn, `INSERT INTO requests (space, ticket, id, holder, policy, token, state, fence, ttl, expires, heartbeat, acquired_at,
 expires_at, heartbeat_at, parked_on, blockers, process, metadata, locks) VALUES (1,?,?,?,?,?,3,?,?,?,?,?,?,?,0,0,?,?,?)`),
		targets:   b.prepare(conn, `INSERT INTO targets (space, ticket, path, mode, kind) VALUES `+many(`(1,?1,?,3,1)`)),
		noTargets: b.prepare(conn, `DELETE FROM targets WHERE space = 1 AND ticket = ?1 AND path IN (`+many(`?`)+`)`),
		noRequest: b.prepare(conn, `DELETE FROM requests WHERE ticket = ?`),
	}
	for i, l := range req.Locks {
		check(errors.Join(s.targets.BindText(i+2, l.Path), s.noTargets.BindText(i+2, l.Path)))
	}
	r := s.request
	check(errors.Join(r.BindText(2, fmt.Sprintf("%-36s", name)), r.BindText(3, s.row.holder), r.BindText(4, s.row.policy), r.BindBlob(5, s.row.token),
		r.BindInt64(7, s.row.ttl), r.BindText(13, s.row.process), r.BindText(14, s.row.metadata), r.BindText(15, s.row.locks)))
	return s
}

func learn(b *bench, conn *sqlite3.Conn, path string, req lockkeeper.Request) (row sample) {
	own := &bench{ctx: b.ctx} // closes the store before the comparison starts
	check(own.measure(func() {
		m := own.manager(own.openSQLite(path), lock.Options{})
		g := get(m.TryAcquire(b.ctx, req))
		st := own.prepare(conn, `SELECT holder, policy, token, ttl, process, metadata, locks FROM requests WHERE id = ?`)
		check(st.BindText(1, g.ID))
		if st.Step() {
			row = sample{holder: st.ColumnText(0), policy: st.ColumnText(1), token: st.ColumnBlob(2, nil), ttl: st.ColumnInt64(3),
				process: st.ColumnText(4), metadata: st.ColumnText(5), locks: st.ColumnText(6)}
		}
		check(errors.Join(st.Reset(), g.Release(b.ctx)))
		events := get(m.Events(b.ctx, store.EventQuery{Latest: true, Limit: 1}))
		bodies := own.prepare(conn, `SELECT body FROM events WHERE seq IN (?, ?) ORDER BY seq`)
		check(errors.Join(bodies.BindInt64(1, int64(g.Fence)), bodies.BindInt64(2, int64(events[0].Seq))))
		for _, into := range []*string{&row.acquired, &row.released} {
			if bodies.Step() {
				*into = bodies.ColumnText(0)
			}
		}
		check(bodies.Err())
	}))
	return row
}

// within runs fn in a transaction with the next number.
func (s *minimalSQLite) within(body string, fn func(now int64) error) {
	check(s.begin.Exec())
	if s.read.Step() {
		s.seq = s.read.ColumnInt64(0) + 1
	}
	now := time.Now().UnixNano()
	check(errors.Join(s.read.Reset(), s.event.BindInt64(1, s.seq), s.event.BindInt64(2, now), s.event.BindText(3, body), s.event.Exec()))
	check(errors.Join(fn(now), s.count.BindInt64(1, s.seq), s.count.Exec()))
	check(s.commit.Exec())
}

func (s *minimalSQLite) acquireAndRelease() {
	var ticket int64
	s.within(s.row.acquired, func(now int64) error {
		ticket = s.seq
		r, until := s.request, now+s.row.ttl
		return errors.Join(r.BindInt64(1, ticket), r.BindInt64(6, ticket), r.BindInt64(8, until), r.BindInt64(9, now),
			r.BindInt64(10, now), r.BindInt64(11, until), r.BindInt64(12, now), r.Exec(),
			s.targets.BindInt64(1, ticket), s.targets.Exec())
	})
	s.within(s.row.released, func(int64) error {
		return errors.Join(s.noTargets.BindInt64(1, ticket), s.noTargets.Exec(), s.noRequest.BindInt64(1, ticket), s.noRequest.Exec())
	})
}

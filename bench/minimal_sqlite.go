package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/ncruces/go-sqlite3"

	"lockkeeper"
	"lockkeeper/lock"
	"lockkeeper/store"
	"lockkeeper/store/sqlstore"
)

// newSQLite makes a database with an empty space.
func newSQLite(ctx context.Context, b *bench, name string) (path string, err error) {
	path = filepath.Join(b.dir, name+".db")
	return path, sqlstore.CreateSQLite(ctx, path, "bench")
}

// openSQLite opens a manager on it; the function closes both.
func openSQLite(ctx context.Context, path string) (*lock.Manager, func() error, error) {
	s, err := sqlstore.OpenSQLite(ctx, path, "bench", sqlstore.Options{})
	if err != nil {
		return nil, nil, err
	}
	m := lock.New(s, lock.Options{})
	return m, func() error { return errors.Join(m.Close(), s.Close()) }, nil
}

// sample is what the product stored for one grant, read back, so that the
// minimal transactions write rows of exactly that size.
type sample struct {
	holder, policy, process, metadata, locks string
	token                                    []byte
	ttl                                      int64
	acquired, released                       string // bodies of the events
}

// minimalSQLite is what a developer would write by hand to have these rows in
// these tables and nothing else: no conflicts are looked for, no token is
// checked, nothing is encoded.
type minimalSQLite struct {
	conn  *sqlite3.Conn
	seq   int64
	row   sample
	id    string
	paths []string

	begin, commit, count, event, request, targets, noTargets, noRequest, read *sqlite3.Stmt
}

// openMinimalSQLite opens a database that the product made, and learns from it
// what a grant of req looks like. Several processes give different names, so
// that their ids differ.
func openMinimalSQLite(ctx context.Context, path, name string, req lockkeeper.Request) (*minimalSQLite, error) {
	conn, err := sqlite3.OpenContext(ctx, "file:"+path)
	if err != nil {
		return nil, err
	}
	conn.SetInterrupt(context.Background())
	s := &minimalSQLite{conn: conn, id: fmt.Sprintf("%-36s", name)}
	for _, l := range req.Locks {
		s.paths = append(s.paths, l.Path)
	}
	err = errors.Join(conn.BusyTimeout(30*time.Second), conn.Exec(`PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL`))
	if err == nil {
		err = s.learn(ctx, path, req)
	}
	if err == nil {
		err = s.prepare()
	}
	if err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	return s, nil
}

func (s *minimalSQLite) learn(ctx context.Context, path string, req lockkeeper.Request) error {
	m, closeAll, err := openSQLite(ctx, path)
	if err != nil {
		return err
	}
	defer closeAll()
	g, err := m.TryAcquire(ctx, req)
	if err != nil {
		return err
	}
	st, _, err := s.conn.Prepare(`SELECT holder, policy, token, ttl, process, metadata, locks FROM requests WHERE id = ?`)
	if err != nil {
		return err
	}
	defer st.Close()
	if err := st.BindText(1, g.ID); err != nil {
		return err
	}
	if st.Step() {
		s.row = sample{holder: st.ColumnText(0), policy: st.ColumnText(1), token: st.ColumnBlob(2, nil), ttl: st.ColumnInt64(3),
			process: st.ColumnText(4), metadata: st.ColumnText(5), locks: st.ColumnText(6)}
	}
	if err := errors.Join(st.Reset(), g.Release(ctx)); err != nil {
		return err
	}
	events, err := m.Events(ctx, store.EventQuery{Latest: true, Limit: 1})
	if err != nil {
		return err
	}
	bodies, _, err := s.conn.Prepare(`SELECT body FROM events WHERE seq IN (?, ?) ORDER BY seq`)
	if err != nil {
		return err
	}
	defer bodies.Close()
	if err := errors.Join(bodies.BindInt64(1, int64(g.Fence)), bodies.BindInt64(2, int64(events[0].Seq))); err != nil {
		return err
	}
	for _, into := range []*string{&s.row.acquired, &s.row.released} {
		if bodies.Step() {
			*into = bodies.ColumnText(0)
		}
	}
	return bodies.Err()
}

func (s *minimalSQLite) prepare() error {
	many := func(group string) string { return strings.Repeat(group+",", len(s.paths)-1) + group }
	for _, p := range []struct {
		into **sqlite3.Stmt
		sql  string
	}{
		{&s.begin, `BEGIN IMMEDIATE`},
		{&s.commit, `COMMIT`},
		{&s.read, `SELECT seq FROM spaces WHERE key = 1`},
		{&s.count, `UPDATE spaces SET seq = ? WHERE key = 1`},
		{&s.event, `INSERT INTO events (space, seq, at, body) VALUES (1, ?, ?, ?)`},
		{&s.request, `INSERT INTO requests (space, ticket, id, holder, policy, token, state, fence, ttl, expires, heartbeat, acquired_at,
 expires_at, heartbeat_at, parked_on, blockers, process, metadata, locks) VALUES (1,?,?,?,?,?,3,?,?,?,?,?,?,?,0,0,?,?,?)`},
		{&s.targets, `INSERT INTO targets (space, ticket, path, mode, kind) VALUES ` + many(`(1,?1,?,3,1)`)},
		{&s.noTargets, `DELETE FROM targets WHERE space = 1 AND ticket = ?1 AND path IN (` + many(`?`) + `)`},
		{&s.noRequest, `DELETE FROM requests WHERE ticket = ?`},
	} {
		st, _, err := s.conn.PrepareFlags(p.sql, sqlite3.PREPARE_PERSISTENT)
		if err != nil {
			return fmt.Errorf("%s: %w", p.sql, err)
		}
		*p.into = st
	}
	for i, path := range s.paths {
		if err := errors.Join(s.targets.BindText(i+2, path), s.noTargets.BindText(i+2, path)); err != nil {
			return err
		}
	}
	r := s.request
	return errors.Join(r.BindText(2, s.id), r.BindText(3, s.row.holder), r.BindText(4, s.row.policy), r.BindBlob(5, s.row.token),
		r.BindInt64(7, s.row.ttl), r.BindText(13, s.row.process), r.BindText(14, s.row.metadata), r.BindText(15, s.row.locks))
}

// within runs fn in a transaction, with the next number.
func (s *minimalSQLite) within(body string, fn func(now int64) error) error {
	if err := s.begin.Exec(); err != nil {
		return err
	}
	if s.read.Step() {
		s.seq = s.read.ColumnInt64(0) + 1
	}
	now := time.Now().UnixNano()
	if err := errors.Join(s.read.Reset(), s.event.BindInt64(1, s.seq), s.event.BindInt64(2, now), s.event.BindText(3, body), s.event.Exec()); err != nil {
		return err
	}
	if err := errors.Join(fn(now), s.count.BindInt64(1, s.seq), s.count.Exec()); err != nil {
		return err
	}
	return s.commit.Exec()
}

func (s *minimalSQLite) takeAndGive() error {
	var ticket int64
	err := s.within(s.row.acquired, func(now int64) error {
		ticket = s.seq
		r, until := s.request, now+s.row.ttl
		return errors.Join(r.BindInt64(1, ticket), r.BindInt64(6, ticket), r.BindInt64(8, until), r.BindInt64(9, now),
			r.BindInt64(10, now), r.BindInt64(11, until), r.BindInt64(12, now), r.Exec(),
			s.targets.BindInt64(1, ticket), s.targets.Exec())
	})
	if err != nil {
		return err
	}
	return s.within(s.row.released, func(int64) error {
		return errors.Join(s.noTargets.BindInt64(1, ticket), s.noTargets.Exec(), s.noRequest.BindInt64(1, ticket), s.noRequest.Exec())
	})
}

func (s *minimalSQLite) side(n int) error {
	for range n {
		if err := s.takeAndGive(); err != nil {
			return err
		}
	}
	return nil
}

func (s *minimalSQLite) close() error {
	for _, st := range []*sqlite3.Stmt{s.begin, s.commit, s.read, s.count, s.event, s.request, s.targets, s.noTargets, s.noRequest} {
		st.Close()
	}
	return s.conn.Close()
}

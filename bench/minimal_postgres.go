package main

import (
	"context"
	"errors"
	"fmt"
	"net/url"

	"github.com/jackc/pgx/v5"

	"lockkeeper"
	"lockkeeper/lock"
	"lockkeeper/store/sqlstore"
)

// database makes a database of its own on the server, with the product's
// schema and these spaces, and returns its URL and the function that drops it.
func (b *bench) database(ctx context.Context, name string, spaces ...string) (_ string, drop func() error, err error) {
	if b.url == "" {
		return "", nil, skipped("LOCKKEEPER_TEST_POSTGRES names no server; run it by `make bench`")
	}
	u, err := url.Parse(b.url)
	if err != nil {
		return "", nil, err
	}
	admin, err := pgx.Connect(ctx, b.url)
	if err != nil {
		return "", nil, err
	}
	id := pgx.Identifier{"lockkeeper_bench_" + name}.Sanitize()
	drop = func() error {
		_, err := admin.Exec(context.WithoutCancel(ctx), `DROP DATABASE IF EXISTS `+id+` WITH (FORCE)`)
		return errors.Join(err, admin.Close(context.WithoutCancel(ctx)))
	}
	if _, err := admin.Exec(ctx, `DROP DATABASE IF EXISTS `+id+` WITH (FORCE)`); err != nil {
		return "", nil, errors.Join(err, admin.Close(ctx))
	}
	if _, err := admin.Exec(ctx, `CREATE DATABASE `+id); err != nil {
		return "", nil, errors.Join(err, admin.Close(ctx))
	}
	u.Path = "/lockkeeper_bench_" + name
	for _, space := range spaces {
		if err := sqlstore.CreateSpace(ctx, u.String(), space); err != nil {
			return "", nil, errors.Join(err, drop())
		}
	}
	return u.String(), drop, nil
}

// openPostgres opens a manager on a space; the function closes both.
func openPostgres(ctx context.Context, url, space string) (*lock.Manager, func() error, error) {
	s, err := sqlstore.OpenPostgres(ctx, url, space, sqlstore.Options{})
	if err != nil {
		return nil, nil, err
	}
	m := lock.New(s, lock.Options{})
	return m, func() error { return errors.Join(m.Close(), s.Close()) }, nil
}

// minimalSchema has copies of the product's tables with their indexes, and the
// transactions that a developer would write by hand for these rows: each one
// function, so one round trip. The counter's row is the space's lock. Nothing
// is checked and nothing is encoded.
const minimalSchema = `
CREATE SCHEMA minimal;
SET search_path = minimal;
CREATE TABLE spaces (LIKE lockkeeper.spaces INCLUDING ALL);
CREATE TABLE requests (LIKE lockkeeper.requests INCLUDING ALL);
CREATE TABLE targets (LIKE lockkeeper.targets INCLUDING ALL);
CREATE TABLE events (LIKE lockkeeper.events INCLUDING ALL);
INSERT INTO spaces (id, seq, incarnation, created_at) SELECT 'minimal' || n, 0, '', 0 FROM generate_series(1, 16) AS n;

CREATE FUNCTION take(p_space BIGINT, p_now BIGINT, p_id TEXT, p_holder TEXT, p_policy TEXT, p_token BYTEA, p_ttl BIGINT,
  p_process TEXT, p_metadata TEXT, p_locks TEXT, p_event TEXT, p_paths TEXT[]) RETURNS BIGINT LANGUAGE plpgsql AS $$
DECLARE s BIGINT;
BEGIN
  UPDATE spaces SET seq = seq + 1 WHERE key = p_space RETURNING seq INTO s;
  INSERT INTO events VALUES (p_space, s, p_now, p_event);
  INSERT INTO requests (space, ticket, id, holder, policy, token, state, fence, ttl, expires, heartbeat, acquired_at,
    expires_at, heartbeat_at, parked_on, blockers, process, metadata, locks)
  VALUES (p_space, s, p_id, p_holder, p_policy, p_token, 3, s, p_ttl, p_now + p_ttl, p_now, p_now,
    p_now + p_ttl, p_now, 0, 0, p_process, p_metadata, p_locks);
  INSERT INTO targets (space, path, ticket, mode, kind) SELECT p_space, path, s, 3, 1 FROM unnest(p_paths) AS path;
  RETURN s;
END $$;

CREATE FUNCTION give(p_space BIGINT, p_now BIGINT, p_ticket BIGINT, p_event TEXT, p_paths TEXT[]) RETURNS BIGINT LANGUAGE plpgsql AS $$
DECLARE s BIGINT;
BEGIN
  UPDATE spaces SET seq = seq + 1 WHERE key = p_space RETURNING seq INTO s;
  INSERT INTO events VALUES (p_space, s, p_now, p_event);
  DELETE FROM targets WHERE ctid = ANY (ARRAY(SELECT t.ctid FROM unnest(p_paths) AS a (path) CROSS JOIN LATERAL (
    SELECT targets.ctid FROM targets WHERE targets.space = p_space AND targets.path = a.path AND targets.ticket = p_ticket OFFSET 0) AS t));
  DELETE FROM requests WHERE space = p_space AND ticket = p_ticket;
  PERFORM set_config('synchronous_commit', 'off', true);
  RETURN s;
END $$;`

// makeMinimal makes the copies, and reads back what a grant looks like.
func makeMinimal(ctx context.Context, url, space string, req lockkeeper.Request) (s sample, err error) {
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		return s, err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	if _, err := conn.Exec(ctx, minimalSchema); err != nil {
		return s, err
	}
	m, closeAll, err := openPostgres(ctx, url, space)
	if err != nil {
		return s, err
	}
	defer closeAll()
	g, err := m.TryAcquire(ctx, req)
	if err != nil {
		return s, err
	}
	err = conn.QueryRow(ctx, `SELECT holder, policy, token, ttl, process, metadata, locks FROM lockkeeper.requests WHERE id = $1`, g.ID).
		Scan(&s.holder, &s.policy, &s.token, &s.ttl, &s.process, &s.metadata, &s.locks)
	if err := errors.Join(err, g.Release(ctx)); err != nil {
		return s, err
	}
	const body = `SELECT body FROM lockkeeper.events JOIN lockkeeper.spaces ON key = space WHERE id = $1 ORDER BY events.seq DESC LIMIT 1 OFFSET $2`
	return s, errors.Join(conn.QueryRow(ctx, body, space, 1).Scan(&s.acquired), conn.QueryRow(ctx, body, space, 0).Scan(&s.released))
}

// minimalPostgres is one client of the copies.
type minimalPostgres struct {
	conn  *pgx.Conn
	row   sample
	space int64
	name  int
	given int // ids so far: an id used twice would have to skip its dead rows
	paths []string
}

func openMinimalPostgres(ctx context.Context, url string, row sample, client int, space int64) (*minimalPostgres, error) {
	cfg, err := pgx.ParseConfig(url)
	if err != nil {
		return nil, err
	}
	// As the product's own connections: index plans also while tables are small.
	for k, v := range map[string]string{"search_path": "minimal", "plan_cache_mode": "force_generic_plan", "jit": "off",
		"enable_seqscan": "off", "enable_hashjoin": "off", "enable_mergejoin": "off", "enable_bitmapscan": "off"} {
		cfg.RuntimeParams[k] = v
	}
	conn, err := pgx.ConnectConfig(ctx, cfg)
	if err != nil {
		return nil, err
	}
	return &minimalPostgres{conn: conn, row: row, space: space, name: client, paths: paths("asked", client)}, nil
}

func (p *minimalPostgres) takeAndGive(ctx context.Context, now int64) error {
	r := &p.row
	p.given++
	id := fmt.Sprintf("%08d-minimal-grant-%014d", p.name, p.given)
	var ticket int64
	err := p.conn.QueryRow(ctx, `SELECT take($1,$2,$3,$4,$5,$6,$7,$8,$9,$10,$11,$12)`, p.space, now, id, r.holder, r.policy, r.token, r.ttl,
		r.process, r.metadata, r.locks, r.acquired, p.paths).Scan(&ticket)
	if err != nil {
		return err
	}
	return p.conn.QueryRow(ctx, `SELECT give($1,$2,$3,$4,$5)`, p.space, now, ticket, r.released, p.paths).Scan(&ticket)
}

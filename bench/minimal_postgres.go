package main

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"time"

	"github.com/jackc/pgx/v5"

	"lockkeeper"
	"lockkeeper/lock"
	"lockkeeper/store/sqlstore"
)

// database creates a database with the product's schema and these spaces, and returns its
// URL. The database is dropped when the comparison has ended.
func (b *bench) database(name string, spaces ...string) string {
	if b.url == "" {
		check(skipped("LOCKKEEPER_TEST_POSTGRES names no server; run it by `make bench`"))
	}
	u := get(url.Parse(b.url))
	admin := b.connectPostgres(get(pgx.ParseConfig(b.url)))
	id := pgx.Identifier{"lockkeeper_bench_" + name}.Sanitize()
	drop := func() error {
		_, err := admin.Exec(context.WithoutCancel(b.ctx), `DROP DATABASE IF EXISTS `+id+` WITH (FORCE)`)
		return err
	}
	check(drop())
	get(admin.Exec(b.ctx, `CREATE DATABASE `+id))
	b.cleanup(drop)
	u.Path = "/lockkeeper_bench_" + name
	for _, space := range spaces {
		check(sqlstore.CreateSpace(b.ctx, u.String(), space))
	}
	return u.String()
}

func (b *bench) connectPostgres(cfg *pgx.ConnConfig) *pgx.Conn {
	conn := get(pgx.ConnectConfig(b.ctx, cfg))
	b.cleanup(func() error { return conn.Close(context.WithoutCancel(b.ctx)) })
	return conn
}

func (b *bench) openPostgres(url, space string) *lock.Manager {
	s := get(sqlstore.OpenPostgres(b.ctx, url, space, sqlstore.Options{}))
	b.cleanup(s.Close)
	return b.manager(s, lock.Options{})
}

// minimalSchema has copies of the product's tables with their indexes, and the
// transactions that a developer would write by hand to change their rows. Each is one
// function, so it takes one round trip. The row of the counter is the lock of the space. The
// functions check and encode nothing.
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

// makeMinimal creates the copies, and reads back what the product stores for a grant.
func makeMinimal(b *bench, url, space string, req lockkeeper.Request) (s sample) {
	own := &bench{ctx: b.ctx} // closes its connections before the comparison starts
	check(own.measure(func() {
		conn := own.connectPostgres(get(pgx.ParseConfig(url)))
		get(conn.Exec(b.ctx, minimalSchema))
		g := get(own.openPostgres(url, space).TryAcquire(b.ctx, req))
		check(conn.QueryRow(b.ctx, `SELECT holder, policy, token, ttl, process, metadata, locks FROM lockkeeper.requests WHERE id = $1`, g.ID).
			Scan(&s.holder, &s.policy, &s.token, &s.ttl, &s.process, &s.metadata, &s.locks))
		check(g.Release(b.ctx))
		const body = `SELECT body FROM lockkeeper.events JOIN lockkeeper.spaces ON key = space WHERE id = $1 ORDER BY events.seq DESC LIMIT 1 OFFSET $2`
		check(errors.Join(conn.QueryRow(b.ctx, body, space, 1).Scan(&s.acquired), conn.QueryRow(b.ctx, body, space, 0).Scan(&s.released)))
	}))
	return s
}

// minimalPostgres returns one client of the copies as a side.
func minimalPostgres(b *bench, url string, r sample, client int) side {
	cfg := get(pgx.ParseConfig(url))
	// The product's connections have the same settings: index plans also for small tables.
	for k, v := range map[string]string{"search_path": "minimal", "plan_cache_mode": "force_generic_plan", "jit": "off",
		"enable_seqscan": "off", "enable_hashjoin": "off", "enable_mergejoin": "off", "enable_bitmapscan": "off"} {
		cfg.RuntimeParams[k] = v
	}
	conn, paths := b.connectPostgres(cfg), paths("asked", client)
	const space = 1
	given := 0 // number of ids used so far; a reused id would be slower, because lookups skip its dead rows
	return times(func() {
		given++
		id, now := fmt.Sprintf("%08d-minimal-grant-%014d", client, given), time.Now().UnixNano()
		var ticket int64
		check(conn.QueryRow(b.ctx, `SELECT take($1,$2,$3,$4,$5,$6,$7,$8,$9,$10,$11,$12)`, space, now, id, r.holder, r.policy, r.token, r.ttl,
			r.process, r.metadata, r.locks, r.acquired, paths).Scan(&ticket))
		check(conn.QueryRow(b.ctx, `SELECT give($1,$2,$3,$4,$5)`, space, now, ticket, r.released, paths).Scan(&ticket))
	})
}

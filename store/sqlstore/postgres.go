//go:build !nopostgres

package sqlstore

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"lockkeeper"
	"lockkeeper/store"
)

// Postgres keeps one space in a PostgreSQL database. Other spaces and other machines may share
// the database.
type Postgres struct {
	name       string // name for messages, without a password
	space      string
	opt        Options
	pool       *pgxpool.Pool
	conns      int32 // maximum size of the pool
	key        int64
	last       atomic.Int64 // the last number that TryGrant or TryRelease got
	listen     *subscription
	locksCache locksCache
	listCache  listCache
}

// schemaName is the PostgreSQL schema that holds all our tables.
const schemaName = "lockkeeper"

// CreateSpace creates a space in a PostgreSQL database, and the tables if they are missing. It
// leaves an existing space unchanged.
func CreateSpace(ctx context.Context, url, space string) error {
	p, err := dial(ctx, url, space, Options{})
	if err != nil {
		return err
	}
	defer p.pool.Close()
	if err := p.migrate(ctx); err != nil {
		return p.explain(ctx, err)
	}
	_, err = p.pool.Exec(ctx, `INSERT INTO spaces (id, seq, incarnation, created_at) VALUES ($1, 0, `+incarnationSQL+`, $2) ON CONFLICT (id) DO NOTHING`,
		space, time.Now().UnixNano())
	return p.explain(ctx, err)
}

// OpenPostgres opens an existing space. It creates nothing and refuses a missing or newer
// schema and an unknown space.
func OpenPostgres(ctx context.Context, url, space string, opt Options) (*Postgres, error) {
	p, err := dial(ctx, url, space, opt)
	if err != nil {
		return nil, err
	}
	if err := p.open(ctx); err != nil {
		p.pool.Close()
		return nil, p.explain(ctx, err)
	}
	p.listen = newSubscription(p.pool.Config().ConnConfig, p.channel())
	return p, nil
}

func dial(ctx context.Context, url, space string, opt Options) (*Postgres, error) {
	cfg, err := pgxpool.ParseConfig(url)
	if err != nil { // err contains no password
		return nil, &lockkeeper.InputError{Field: "store", Value: "postgres://…", Reason: err.Error(), Next: "write it as postgres://user@host:port/database, with the password in PGPASSFILE"}
	}
	if opt.Busy <= 0 {
		opt.Busy = 10 * time.Second
	}
	c := cfg.ConnConfig
	params := map[string]string{
		"search_path":      schemaName,
		"application_name": "lockkeeper",
		// A stopped session must not keep the space locked. The server ends it before the
		// waiting sessions time out.
		"lock_timeout":                        fmt.Sprint(opt.Busy.Milliseconds()),
		"statement_timeout":                   "30000",
		"idle_in_transaction_session_timeout": fmt.Sprint(opt.Busy.Milliseconds() / 2),
		"tcp_keepalives_idle":                 "15",
		"tcp_keepalives_interval":             "5",
		"tcp_keepalives_count":                "3",
		"default_transaction_isolation":       "read committed",
		"synchronous_commit":                  "on",
		// Plans are cached while tables are empty but must also suit full tables.
		"plan_cache_mode":   "force_generic_plan",
		"enable_seqscan":    "off",
		"enable_hashjoin":   "off",
		"enable_mergejoin":  "off",
		"enable_bitmapscan": "off",
		"jit":               "off",
	}
	for k, v := range params {
		c.RuntimeParams[k] = v
	}
	if c.ConnectTimeout == 0 {
		c.ConnectTimeout = opt.Busy
	}
	p := &Postgres{name: fmt.Sprintf("postgres://%s:%d/%s", c.Host, c.Port, c.Database), space: space, opt: opt, conns: cfg.MaxConns}
	cfg.AfterConnect = p.checkServer
	if p.pool, err = pgxpool.NewWithConfig(ctx, cfg); err != nil {
		return nil, err
	}
	return p, nil
}

// checkServer checks whether a new connection leads to the same physical database as before. A
// standby that took over, or a restored server, may lack the latest numbers.
func (p *Postgres) checkServer(ctx context.Context, conn *pgx.Conn) error {
	if p.key == 0 {
		return nil // the store is being opened
	}
	var was, now string
	err := conn.QueryRow(ctx, `SELECT incarnation, `+incarnationSQL+` FROM spaces WHERE key = $1`, p.key).Scan(&was, &now)
	if errors.Is(err, pgx.ErrNoRows) {
		return p.spaceGone()
	}
	if err != nil || was == now {
		return err
	}
	_, err = p.update(ctx, conn, func(t store.Tx) error { return t.(*tx).newEpoch(now, 0) }, &commit{})
	return err
}

func (p *Postgres) spaceGone() error {
	return &lockkeeper.StoreError{Store: p.name, Reason: "its space " + p.space + " is gone", Next: "restore it; if the space is no longer in use, `lockkeeper init --new-world`"}
}

// incarnationSQL identifies the physical database. The value changes after a restore into
// another cluster, database or table, and after a point-in-time recovery.
const incarnationSQL = `(SELECT concat_ws(':', (SELECT system_identifier FROM pg_control_system()),
 (SELECT timeline_id FROM pg_control_checkpoint()), (SELECT oid FROM pg_database WHERE datname = current_database()), 'spaces'::regclass::oid))`

func (p *Postgres) open(ctx context.Context) error {
	known, err := migrations("postgres")
	if err != nil {
		return err
	}
	version, err := p.version(ctx)
	switch {
	case err != nil:
		return err
	case version == 0:
		return &lockkeeper.StoreError{Store: p.name, Reason: "there is no Lockkeeper schema in this database", Next: "lockkeeper init --store postgres://…"}
	case version > len(known):
		return &lockkeeper.StoreError{Store: p.name, Reason: fmt.Sprintf("its format %d is newer than this program knows (%d)", version, len(known)), Next: "use the newer lockkeeper everywhere"}
	case version < len(known):
		if err := p.migrate(ctx); err != nil {
			return err
		}
	}
	var was, now string
	err = p.pool.QueryRow(ctx, `SELECT key, incarnation, `+incarnationSQL+` FROM spaces WHERE id = $1`, p.space).Scan(&p.key, &was, &now)
	if errors.Is(err, pgx.ErrNoRows) {
		return &lockkeeper.StoreError{Store: p.name, Reason: "it has no space " + p.space, Next: "lockkeeper init --store postgres://…"}
	}
	if err != nil || was == now {
		return err
	}
	return p.Update(ctx, func(t store.Tx) error { return t.(*tx).newEpoch(now, 0) })
}

// version returns the number of schema steps that were applied.
func (p *Postgres) version(ctx context.Context) (version int, err error) {
	err = p.pool.QueryRow(ctx, `SELECT version FROM schema_version`).Scan(&version)
	var pg *pgconn.PgError
	if errors.As(err, &pg) && pg.Code == "42P01" || errors.Is(err, pgx.ErrNoRows) { // the table is undefined or empty
		return 0, nil
	}
	return version, err
}

// migrate applies the missing schema steps in one transaction. Only one process migrates at a
// time.
func (p *Postgres) migrate(ctx context.Context) error {
	steps, err := migrations("postgres")
	if err != nil {
		return err
	}
	return pgx.BeginFunc(ctx, p.pool, func(t pgx.Tx) error {
		if _, err := t.Exec(ctx, `SELECT pg_advisory_xact_lock(hashtext('lockkeeper schema'))`); err != nil {
			return err
		}
		if _, err := t.Exec(ctx, `CREATE SCHEMA IF NOT EXISTS `+schemaName); err != nil {
			return err
		}
		if _, err := t.Exec(ctx, `CREATE TABLE IF NOT EXISTS schema_version (version BIGINT NOT NULL)`); err != nil {
			return err
		}
		version := 0
		err := t.QueryRow(ctx, `SELECT version FROM schema_version`).Scan(&version)
		if errors.Is(err, pgx.ErrNoRows) {
			_, err = t.Exec(ctx, `INSERT INTO schema_version VALUES (0)`)
		}
		if err != nil {
			return err
		}
		for i := version; i < len(steps); i++ {
			if _, err := t.Exec(ctx, steps[i]); err != nil {
				return fmt.Errorf("migrating to format %d: %w", i+1, err)
			}
		}
		_, err = t.Exec(ctx, `UPDATE schema_version SET version = $1 WHERE version < $1`, len(steps))
		return err
	})
}

func (p *Postgres) Space() string { return p.space }

func (p *Postgres) Close() error {
	p.listen.close()
	p.pool.Close()
	return nil
}

// explain turns errors of PostgreSQL and the network into errors for a person.
func (p *Postgres) explain(ctx context.Context, err error) error {
	var ours interface{ Code() lockkeeper.Code }
	if err == nil || errors.As(err, &ours) {
		return err
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	e := &lockkeeper.StoreError{Store: p.name, Err: err, Reason: "cannot reach PostgreSQL", Next: "check that the server runs and is reachable from here; no lock was changed"}
	var pg *pgconn.PgError
	if !errors.As(err, &pg) {
		return e
	}
	switch {
	case pg.Code == "55P03":
		e.Reason, e.Next = "the space is locked by another session that does not end its transaction", "check pg_stat_activity and pg_locks; sessions of lockkeeper are ended after some seconds"
	case pg.Code == "LK404":
		return p.spaceGone()
	case strings.HasPrefix(pg.Code, "28"):
		e.Reason, e.Next = "PostgreSQL rejects this user", "check user, PGPASSFILE and pg_hba.conf"
	case strings.HasPrefix(pg.Code, "57P"), strings.HasPrefix(pg.Code, "08"):
		e.Reason = "PostgreSQL is shutting down or starting"
	case pg.Code == "25006":
		e.Reason, e.Next = "this PostgreSQL server is read-only", "connect to the primary"
	default:
		e.Reason, e.Next = "PostgreSQL refused a statement", "see the server's log"
	}
	return e
}

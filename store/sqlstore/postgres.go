//go:build !nopostgres

package sqlstore

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"lockkeeper"
)

// Postgres keeps one space in a PostgreSQL database. Other spaces and other machines may share
// the database.
type Postgres struct {
	name    string // name for messages, without a password
	space   string
	opt     Options
	pool    *pgxpool.Pool
	conns   int32 // maximum size of the pool
	pooled  bool  // the server's sessions are shared, as with PgBouncer in transaction mode: nothing may be left in one
	key     int64
	last    atomic.Int64 // the last number that the server gave
	crowded atomic.Int64 // until when this process keeps no idle connection; nanoseconds since 1970
	listen  *subscription

	spareMu  sync.Mutex
	spare    *pgxpool.Conn // see release
	spareEnd *time.Timer
	closed   bool

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
	path := ""
	if err := p.row(ctx, `SELECT current_setting('search_path')`, nil, &path); err != nil {
		return p.explain(ctx, err)
	}
	p.pooled = path != schemaName // a pooler refused or ignored our settings of the session
	if err := p.migrate(ctx); err != nil {
		return p.explain(ctx, err)
	}
	err = p.inTransaction(ctx, func(s *pgSession) error {
		made := false
		err := s.query(`INSERT INTO spaces (id, seq, incarnation, created_at) VALUES ($1, 0, '', $2) ON CONFLICT (id) DO NOTHING RETURNING true`,
			[]any{space, time.Now().UnixNano()}, func(scan func(...any) error) error { return scan(&made) })
		if err != nil || !made {
			return err
		}
		return s.exec(`UPDATE spaces SET incarnation = incarnation() WHERE id = $1`, space)
	})
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
	p.listen = newSubscription(p)
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
	p := &Postgres{name: fmt.Sprintf("postgres://%s:%d/%s", c.Host, c.Port, c.Database), space: space, opt: opt, conns: cfg.MaxConns,
		pooled: true} // until the first statement shows that the server has our settings
	c.RuntimeParams["application_name"] = "lockkeeper"
	if c.ConnectTimeout == 0 {
		c.ConnectTimeout = opt.Busy
	}
	raceHosts(c)
	// A process that waits or supervises a command holds no connection meanwhile: a server has few.
	cfg.MinConns, cfg.MaxConnIdleTime, cfg.HealthCheckPeriod = 0, idleConnection, idleConnection/2
	cfg.ShouldPing = func(context.Context, pgxpool.ShouldPingParams) bool { return false } // a dead connection is replaced when it is used
	settings := p.settings()
	for k, v := range settings {
		c.RuntimeParams[k] = v
	}
	if p.pool, err = pgxpool.NewWithConfig(ctx, cfg); err != nil {
		return nil, err
	}
	conn, err := p.acquire(ctx)
	if err == nil {
		conn.Release()
		return p, nil
	}
	p.pool.Close()
	if !isPooler(err) {
		return nil, p.explain(ctx, err)
	}
	for k := range settings {
		delete(c.RuntimeParams, k)
	}
	p.pool, err = pgxpool.NewWithConfig(ctx, cfg)
	return p, err
}

// idleConnection is how long a connection of the pool may be idle.
const idleConnection = 2 * time.Second

// isPooler reports whether a pooler such as PgBouncer refused to make settings of a session.
func isPooler(err error) bool {
	pg, ok := errors.AsType[*pgconn.PgError](err)
	return ok && pg.Code == "08P01" && strings.Contains(pg.Message, "startup parameter")
}

// settings returns the server's settings for our transactions.
func (p *Postgres) settings() map[string]string {
	return map[string]string{
		"search_path": schemaName,
		// A stopped session must not keep the space locked. The server ends it before the
		// waiting sessions time out.
		"lock_timeout":                        fmt.Sprint(p.opt.Busy.Milliseconds()),
		"statement_timeout":                   "30000",
		"idle_in_transaction_session_timeout": fmt.Sprint(p.opt.Busy.Milliseconds() / 2),
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
}

func (p *Postgres) spaceGone() error {
	return &lockkeeper.StoreError{Store: p.name, Reason: "its space " + p.space + " is gone", Next: "restore it; if the space is no longer in use, `lockkeeper init --new-world`"}
}

// open finds the space, in one round trip.
func (p *Postgres) open(ctx context.Context) error {
	known, err := migrations("postgres")
	if err != nil {
		return err
	}
	version, key, err := p.look(ctx)
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
	if key == 0 {
		return &lockkeeper.StoreError{Store: p.name, Reason: "it has no space " + p.space, Next: "lockkeeper init --store postgres://…"}
	}
	p.key = key
	return nil
}

// look returns the number of schema steps that were applied, and the key of the space or 0.
func (p *Postgres) look(ctx context.Context) (version int, key int64, err error) {
	err = p.with(ctx, func(conn *pgx.Conn) (bool, error) {
		s := p.session(ctx, conn)
		path, crowded := "", false
		err := s.query(`SELECT coalesce((SELECT version FROM lockkeeper.schema_version), 0),
 coalesce((SELECT key FROM lockkeeper.spaces WHERE id = $1), 0), current_setting('search_path'), `+crowdedSQL, []any{p.space},
			func(scan func(...any) error) error { return scan(&version, &key, &path, &crowded) })
		if crowded {
			p.noteCrowded()
		}
		if err == nil {
			p.pooled = path != schemaName // a pooler refused or ignored our settings of the session
		}
		return conn.IsClosed() && ctx.Err() == nil, err
	})
	if pg, ok := errors.AsType[*pgconn.PgError](err); ok && (pg.Code == "42P01" || pg.Code == "3F000") { // the table or the schema is undefined
		return 0, 0, nil
	}
	return version, key, err
}

// migrate applies the missing schema steps in one transaction. Only one process migrates at a
// time.
func (p *Postgres) migrate(ctx context.Context) error {
	steps, err := migrations("postgres")
	if err != nil {
		return err
	}
	return p.inTransaction(ctx, func(s *pgSession) error {
		err := errors.Join(
			s.exec(`SELECT pg_advisory_xact_lock(hashtext('lockkeeper schema'))`),
			s.exec(`CREATE SCHEMA IF NOT EXISTS `+schemaName),
			s.send(`CREATE TABLE IF NOT EXISTS schema_version (version BIGINT NOT NULL)`, nil, nil))
		if err != nil {
			return err
		}
		version := -1
		err = s.query(`SELECT version FROM schema_version`, nil, func(scan func(...any) error) error { return scan(&version) })
		if err != nil {
			return err
		}
		if version < 0 {
			version = 0
			err = s.exec(`INSERT INTO schema_version VALUES (0)`)
		}
		for i := version; i < len(steps) && err == nil; i++ {
			if err = s.script(steps[i]); err != nil {
				return fmt.Errorf("migrating to format %d: %w", i+1, err)
			}
		}
		return errors.Join(err, s.exec(`UPDATE schema_version SET version = $1 WHERE version < $1`, len(steps)))
	})
}

func (p *Postgres) Space() string { return p.space }

func (p *Postgres) Close() error {
	p.listen.close()
	p.spareMu.Lock()
	p.closed = true
	p.spareMu.Unlock()
	p.give(p.takeSpare())
	p.pool.Close()
	return nil
}

// isTemporary reports whether PostgreSQL or the network may accept the same call later: the server stops, starts,
// is not reachable, has no free connection, or another session blocks it.
func isTemporary(err error) bool {
	if pg, ok := errors.AsType[*pgconn.PgError](err); ok {
		switch pg.Code {
		case "53300", "55P03", "57014", "57P01", "57P02", "57P03", "40001", "40P01":
			return true
		}
		return strings.HasPrefix(pg.Code, "08") && !isPooler(err)
	}
	return pgconn.Timeout(err) || pgconn.SafeToRetry(err) || errors.As(err, new(net.Error)) || errors.As(err, new(*pgconn.ConnectError)) ||
		errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, net.ErrClosed)
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
	e := &lockkeeper.StoreError{Store: p.name, Err: err, Reason: "cannot reach PostgreSQL", Next: "check that the server runs and is reachable from here; no lock was changed", Temporary: isTemporary(err)}
	var pg *pgconn.PgError
	if !errors.As(err, &pg) {
		return e
	}
	switch {
	case pg.Code == "55P03":
		e.Reason, e.Next = "the space is locked by another session that does not end its transaction", "check pg_stat_activity and pg_locks; sessions of lockkeeper are ended after some seconds"
	case pg.Code == "LK404":
		return p.spaceGone()
	case isFull(err):
		e.Reason, e.Next = "PostgreSQL has no free connection", "raise max_connections, or use fewer processes at once"
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

//go:build !nopostgres

package sqlstore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"lockkeeper"
)

// A pgSession runs statements on one connection. It queues statements that return no rows and
// sends them with the next query or the commit. A round trip costs more than most statements.
type pgSession struct {
	ctx    context.Context
	conn   *pgx.Conn
	pooled bool // other connections of a pooler share the server's session, so nothing may be left in it
	queued []statement
	failed error // error of a statement or the connection; the transaction cannot be committed after it
}

type statement struct {
	sql  string
	args []any
	each func(scan func(dest ...any) error) error // gets the rows; nil: they are dropped
}

func (p *Postgres) session(ctx context.Context, conn *pgx.Conn) *pgSession {
	return &pgSession{ctx: ctx, conn: conn, pooled: p.pooled}
}

func (s *pgSession) exec(sql string, args ...any) error {
	s.queued = append(s.queued, statement{sql: sql, args: args})
	return nil
}

func (s *pgSession) query(sql string, args []any, each func(func(...any) error) error) error {
	return s.send(sql, args, each)
}

// send sends the queued statements and one more in one round trip. A statement that the connection
// does not know yet is prepared in the same round trip.
func (s *pgSession) send(sql string, args []any, each func(func(...any) error) error) error {
	_, err := s.sendAll(append(s.queued, statement{sql, args, each}))
	s.queued = s.queued[:0]
	var own *callerError
	if errors.As(err, &own) {
		return own.err
	}
	s.failed = cmp.Or(s.failed, err)
	return err
}

// commit commits the transaction and runs one more statement after it, in one round trip. An error of that
// statement is not one of the transaction.
func (s *pgSession) commit(after ...statement) error {
	list := append(append(s.queued, statement{sql: `COMMIT`}), after...)
	done, err := s.sendAll(list)
	if done >= len(list)-len(after) {
		return nil
	}
	s.failed = cmp.Or(s.failed, err)
	return err
}

// flush sends the queued statements.
func (s *pgSession) flush() error {
	if len(s.queued) == 0 {
		return nil
	}
	last := s.queued[len(s.queued)-1]
	s.queued = s.queued[:len(s.queued)-1]
	return s.send(last.sql, last.args, last.each)
}

// script runs a text of several statements without parameters.
func (s *pgSession) script(sql string) error {
	if err := s.flush(); err != nil {
		return err
	}
	return s.conn.PgConn().Exec(s.ctx, sql).Close()
}

// A callerError is an error of the function that gets the rows.
type callerError struct{ err error }

func (e *callerError) Error() string { return e.err.Error() }

// sendAll sends statements in one round trip. It returns how many succeeded, all of them if err is nil.
func (s *pgSession) sendAll(list []statement) (done int, err error) {
	known := preparedOn(s.conn)
	pipeline := s.conn.PgConn().StartPipeline(s.ctx)
	defer func() { err = cmp.Or(err, pipeline.Close()) }()
	viewing := known.viewing
	if known.viewing = false; viewing { // the end of an earlier View
		pipeline.SendQueryParams(`ROLLBACK`, nil, nil, nil, nil)
		pipeline.SendPipelineSync()
	}
	fresh := map[string]string{}     // names of statements that are prepared in this round trip
	added := make([]bool, len(list)) // which of the list prepare one
	var params pgx.ExtendedQueryBuilder
	for i, st := range list {
		sd, prepared := known.statements[st.sql]
		if err := params.Build(s.conn.TypeMap(), sd, st.args); err != nil {
			return 0, err
		}
		// The frontend encodes them before the next Build.
		switch {
		case s.pooled:
			pipeline.SendQueryParams(st.sql, params.ParamValues, nil, params.ParamFormats, params.ResultFormats)
		case prepared:
			pipeline.SendQueryStatement(sd, params.ParamValues, params.ParamFormats, slices.Clone(params.ResultFormats))
		default:
			if fresh[st.sql] == "" {
				known.count++
				fresh[st.sql], added[i] = fmt.Sprint("lockkeeper_", known.count), true
				pipeline.SendPrepare(fresh[st.sql], st.sql, nil)
			}
			pipeline.SendQueryPrepared(fresh[st.sql], params.ParamValues, params.ParamFormats, params.ResultFormats)
		}
	}
	if err := pipeline.Sync(); err != nil {
		return 0, err
	}
	if viewing {
		for range 2 { // the answer, and the end of its part of the pipeline
			result, err := pipeline.GetResults()
			if err != nil {
				return done, err
			}
			if r, ok := result.(*pgconn.ResultReader); ok {
				if _, err := r.Close(); err != nil {
					return done, err
				}
			}
		}
	}
	for i, st := range list {
		if added[i] {
			prepared, err := pipeline.GetResults()
			if err != nil {
				return done, err
			}
			sd := prepared.(*pgconn.StatementDescription)
			sd.Name = fresh[st.sql]
			known.statements[st.sql] = sd
		}
		result, err := pipeline.GetResults()
		if err != nil {
			return done, err
		}
		rows := pgx.RowsFromResultReader(s.conn.TypeMap(), result.(*pgconn.ResultReader))
		for st.each != nil && rows.Next() {
			if err := st.each(rows.Scan); err != nil {
				rows.Close()
				return done, &callerError{err}
			}
		}
		rows.Close()
		if err := rows.Err(); err != nil {
			return done, err
		}
		done++
	}
	return done, nil
}

// prepared is what a connection keeps between transactions.
type prepared struct {
	viewing    bool // in the transaction of a View that has ended
	statements map[string]*pgconn.StatementDescription
	count      int // for new names
}

func preparedOn(conn *pgx.Conn) *prepared {
	const key = "lockkeeper"
	data := conn.PgConn().CustomData()
	known, ok := data[key].(*prepared)
	if !ok {
		known = &prepared{statements: map[string]*pgconn.StatementDescription{}}
		data[key] = known
	}
	return known
}

// These statements look up one value after the other through an index. Without the LATERAL
// subqueries, the planner takes tables that are empty now for small ones and reads a whole
// space.
const (
	deleteTargetsSQL = `DELETE FROM targets WHERE ctid = ANY (ARRAY(SELECT t.ctid FROM unnest($3::text[]) AS a (path)
 CROSS JOIN LATERAL (SELECT targets.ctid FROM targets WHERE targets.space = $1 AND targets.path = a.path AND targets.ticket = $2 OFFSET 0) AS t))`

	targetsSQL = `SELECT t.path, t.kind, t.mode, t.ticket FROM unnest($2::text[]) AS a (path)
 CROSS JOIN LATERAL (SELECT * FROM targets WHERE targets.space = $1 AND targets.path = a.path OFFSET 0) AS t
 UNION ALL
 SELECT t.path, t.kind, t.mode, t.ticket FROM unnest($3::text[], $4::text[]) AS b (lo, hi)
 CROSS JOIN LATERAL (SELECT * FROM targets WHERE targets.space = $1 AND targets.path > b.lo AND targets.path < b.hi OFFSET 0) AS t`

	requestsSQL = `SELECT ` + recordColumns + ` FROM unnest($2::bigint[]) AS k (ticket)
 CROSS JOIN LATERAL (SELECT * FROM requests WHERE requests.space = $1 AND requests.ticket = k.ticket OFFSET 0) AS r`

	landingsByNumberSQL = `SELECT ` + landingColumns + ` FROM unnest($2::bigint[]) AS k (seq)
 CROSS JOIN LATERAL (SELECT * FROM landings WHERE landings.space = $1 AND landings.seq = k.seq OFFSET 0) AS l`

	changesSQL = `SELECT c.landing, c.path, c.old, c.new FROM unnest($2::bigint[]) AS k (landing)
 CROSS JOIN LATERAL (SELECT * FROM changes WHERE changes.space = $1 AND changes.landing = k.landing OFFSET 0) AS c ORDER BY c.landing, c.n`
)

func (s *pgSession) insertTargets(space int64, ticket uint64, locks []lockkeeper.Lock) error {
	paths, modes, kinds := columns(locks)
	return s.exec(`INSERT INTO targets (space, ticket, path, mode, kind)
 SELECT $1, $2, l.path, l.mode, l.kind FROM unnest($3::text[], $4::bigint[], $5::bigint[]) AS l (path, mode, kind)`,
		space, int64(ticket), paths, modes, kinds)
}

func columns(locks []lockkeeper.Lock) (paths []string, modes, kinds []int64) {
	paths, modes, kinds = make([]string, len(locks)), make([]int64, len(locks)), make([]int64, len(locks))
	for i, l := range locks {
		paths[i], modes[i], kinds[i] = l.Path, int64(l.Mode), int64(l.Kind)
	}
	return paths, modes, kinds
}

func (s *pgSession) deleteTargets(space int64, ticket uint64, locks []lockkeeper.Lock) error {
	paths, _, _ := columns(locks)
	return s.exec(deleteTargetsSQL, space, int64(ticket), paths)
}

func (s *pgSession) targets(space int64, p neighbors, each func(func(...any) error) error) error {
	lo, hi := make([]string, len(p.below)), make([]string, len(p.below))
	for i, sp := range p.below {
		lo[i], hi[i] = sp.lo, sp.hi
	}
	return s.query(targetsSQL, []any{space, p.at, lo, hi}, each)
}

func (s *pgSession) insertChanges(space int64, landing uint64, changes []lockkeeper.PathChange) error {
	paths, old, now := make([]string, len(changes)), make([]string, len(changes)), make([]string, len(changes))
	for i, a := range changes {
		paths[i], old[i], now[i] = a.Path, a.Old.String(), a.New.String()
	}
	return s.exec(`INSERT INTO changes (space, landing, n, path, old, new)
 SELECT $1, $2, c.n - 1, c.path, c.old, c.new FROM unnest($3::text[], $4::text[], $5::text[]) WITH ORDINALITY AS c (path, old, new, n)`,
		space, int64(landing), paths, old, now)
}

func (s *pgSession) landed(space int64, grantID string, paths []string, each func(func(...any) error) error) error {
	return s.query(`SELECT x.path, x.landing, x.new FROM unnest($2::text[]) AS p (path) CROSS JOIN LATERAL (`+
		strings.Replace(landedSQL, "c.path = $2", "c.path = p.path", 1)+`) AS x`, []any{space, paths, int64(lockkeeper.Undone), grantID}, each)
}

func (s *pgSession) numbered(what numberedRows, space int64, numbers []int64, each func(func(...any) error) error) error {
	return s.query(map[numberedRows]string{requestsByTicket: requestsSQL, landingsByNumber: landingsByNumberSQL, changesByLanding: changesSQL}[what],
		[]any{space, numbers}, each)
}

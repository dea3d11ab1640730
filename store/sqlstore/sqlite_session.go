package sqlstore

import (
	"fmt"
	"math/bits"
	"strings"

	"github.com/ncruces/go-sqlite3"

	"lockkeeper"
)

// A sqliteSession is one SQLite connection with its prepared statements. Only one goroutine may
// use it at a time.
type sqliteSession struct {
	conn   *sqlite3.Conn
	stmts  map[string]*sqlite3.Stmt
	listed map[listKey]*sqlite3.Stmt
	args   []any // arguments of a list; the slice is reused
}

// A listKey identifies a statement for n values. In its sql, {…} stands for a group that is
// repeated for each value.
type listKey struct {
	sql string
	n   int
}

// These statements take lists of values.
const (
	insertTargetsSQL = `INSERT INTO targets (space, ticket, path, mode, kind) VALUES {(?1,?2,?,?,?)}`
	insertChangesSQL = `INSERT INTO changes (space, landing, n, path, old, new) VALUES {(?1,?2,?,?,?,?)}`
	deleteInSQL      = `DELETE FROM targets WHERE space = ?1 AND ticket = ?2 AND path IN ({?})`

	// IN would first sort its list into a temporary table.
	targetsAtSQL = `WITH place(path) AS (VALUES {(?)})
 SELECT t.path, t.kind, t.mode, t.ticket FROM place CROSS JOIN targets t WHERE t.space = ? AND t.path = place.path`
	targetsBelowSQL = `WITH span(lo, hi) AS (VALUES {(?,?)})
 SELECT t.path, t.kind, t.mode, t.ticket FROM span CROSS JOIN targets t
 WHERE t.space = ? AND t.path > span.lo AND t.path < span.hi`
)

// numberedSQL has the statements that select the rows of a space with some numbers.
var numberedSQL = map[numberedRows]string{
	requestsByTicket: `SELECT ` + recordColumns + ` FROM requests r WHERE r.ticket IN ({?}) AND r.space = ?`,
	landingsByNumber: `SELECT ` + landingColumns + ` FROM landings l WHERE l.seq IN ({?}) AND l.space = ?`,
	changesByLanding: `SELECT landing, path, old, new FROM changes WHERE landing IN ({?}) AND space = ? ORDER BY landing, n`,
}

// listLimit is the maximum number of values in one statement.
const listLimit = 1024

func newSQLiteSession(conn *sqlite3.Conn) *sqliteSession {
	return &sqliteSession{conn: conn, stmts: map[string]*sqlite3.Stmt{}, listed: map[listKey]*sqlite3.Stmt{}}
}

func (s *sqliteSession) exec(sql string, args ...any) error {
	st, err := s.prepare(sql)
	if err != nil {
		return err
	}
	if err := bind(st, args); err != nil {
		return err
	}
	return st.Exec()
}

func (s *sqliteSession) query(sql string, args []any, each func(func(...any) error) error) error {
	st, err := s.prepare(sql)
	if err != nil {
		return err
	}
	return run(st, args, each)
}

func (s *sqliteSession) prepare(sql string) (*sqlite3.Stmt, error) {
	if st := s.stmts[sql]; st != nil {
		return st, nil
	}
	// SQLite numbers ?1 by its digit, but $1 by its first position.
	st, _, err := s.conn.PrepareFlags(strings.ReplaceAll(sql, "$", "?"), sqlite3.PREPARE_PERSISTENT)
	if err != nil {
		return nil, err
	}
	s.stmts[sql] = st
	return st, nil
}

func bind(st *sqlite3.Stmt, args []any) error {
	for i, arg := range args {
		var err error
		switch v := arg.(type) {
		case int64:
			err = st.BindInt64(i+1, v)
		case string:
			err = st.BindText(i+1, v)
		case []byte:
			err = st.BindBlob(i+1, v)
		case nil:
			err = st.BindNull(i + 1)
		default:
			err = fmt.Errorf("argument %d is a %T", i+1, arg)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// run steps through a statement and resets it, so that it keeps no snapshot open.
func run(st *sqlite3.Stmt, args []any, each func(func(...any) error) error) (err error) {
	if err := bind(st, args); err != nil {
		return err
	}
	defer func() {
		if reset := st.Reset(); err == nil {
			err = reset
		}
	}()
	scan := func(dest ...any) error {
		for i, d := range dest {
			switch d := d.(type) {
			case *int64:
				*d = st.ColumnInt64(i)
			case *string:
				if text := st.ColumnRawText(i); string(text) != *d { // the value often equals that of the previous row; then keep that string
					*d = string(text)
				}
			case *[]byte:
				*d = st.ColumnBlob(i, (*d)[:0])
			default:
				return fmt.Errorf("column %d into a %T", i, d)
			}
		}
		return nil
	}
	for st.Step() {
		if err := each(scan); err != nil {
			return err
		}
	}
	return st.Err()
}

// list returns the cached statement for n values, and prepares it on first use.
func (s *sqliteSession) list(sql string, n int) (*sqlite3.Stmt, error) {
	key := listKey{sql, n}
	if st := s.listed[key]; st != nil {
		return st, nil
	}
	before, rest, _ := strings.Cut(sql, "{")
	group, after, _ := strings.Cut(rest, "}")
	st, _, err := s.conn.PrepareFlags(before+strings.Repeat(group+",", n-1)+group+after, sqlite3.PREPARE_PERSISTENT)
	if err != nil {
		return nil, err
	}
	s.listed[key] = st
	return st, nil
}

// shortList is the longest list with a statement of exactly its length. Longer lists use
// statements for powers of two, so that few statements serve lists of any length.
const shortList = 16

// parts splits a list and calls fn with each part and the size to pad it to.
func parts[T any](list []T, fn func(part []T, size int) error) error {
	for len(list) > 0 {
		n := min(len(list), listLimit)
		size := n
		if n > shortList {
			size = 1 << bits.Len(uint(n-1))
		}
		if err := fn(list[:n], size); err != nil {
			return err
		}
		list = list[n:]
	}
	return nil
}

// pad appends n NULLs, which match nothing, and then the last arguments.
func (s *sqliteSession) pad(n int, last ...any) {
	for range n {
		s.args = append(s.args, nil)
	}
	s.args = append(s.args, last...)
}

func (s *sqliteSession) insertTargets(space int64, ticket uint64, locks []lockkeeper.Lock) error {
	return insertRows(s, insertTargetsSQL, space, int64(ticket), locks, func(args []any, _ int, l lockkeeper.Lock) []any {
		return append(args, l.Path, int64(l.Mode), int64(l.Kind))
	})
}

func (s *sqliteSession) insertChanges(space int64, landing uint64, changes []lockkeeper.PathChange) error {
	return insertRows(s, insertChangesSQL, space, int64(landing), changes, func(args []any, n int, a lockkeeper.PathChange) []any {
		return append(args, int64(n), a.Path, a.Old.String(), a.New.String())
	})
}

// insertRows inserts a row for each element of a list. add appends the arguments of the n-th
// row. Rows cannot be padded, so each statement uses the largest size that the rest of the list
// fills.
func insertRows[T any](s *sqliteSession, sql string, space, of int64, list []T, add func(args []any, n int, row T) []any) error {
	for done := 0; done < len(list); {
		size := min(len(list)-done, listLimit)
		if size > shortList {
			size = 1 << (bits.Len(uint(size)) - 1)
		}
		st, err := s.list(sql, size)
		if err != nil {
			return err
		}
		s.args = append(s.args[:0], space, of)
		for range size {
			s.args = add(s.args, done, list[done])
			done++
		}
		if err := bind(st, s.args); err != nil {
			return err
		}
		if err := st.Exec(); err != nil {
			return err
		}
	}
	return nil
}

func (s *sqliteSession) deleteTargets(space int64, ticket uint64, locks []lockkeeper.Lock) error {
	return parts(locks, func(part []lockkeeper.Lock, size int) error {
		st, err := s.list(deleteInSQL, size)
		if err != nil {
			return err
		}
		s.args = append(s.args[:0], space, int64(ticket))
		for _, l := range part {
			s.args = append(s.args, l.Path)
		}
		s.pad(size - len(part))
		if err := bind(st, s.args); err != nil {
			return err
		}
		return st.Exec()
	})
}

func (s *sqliteSession) targets(space int64, p neighbors, each func(func(...any) error) error) error {
	err := selectRows(s, targetsAtSQL, space, p.at, 1, func(args []any, path string) []any { return append(args, path) }, each)
	if err != nil {
		return err
	}
	return selectRows(s, targetsBelowSQL, space, p.below, 2, func(args []any, sp span) []any { return append(args, sp.lo, sp.hi) }, each)
}

func (s *sqliteSession) numbered(what numberedRows, space int64, numbers []int64, each func(func(...any) error) error) error {
	return selectRows(s, numberedSQL[what], space, numbers, 1, func(args []any, n int64) []any { return append(args, n) }, each)
}

// selectRows runs a statement for a list, in which each value has some arguments that add
// appends.
func selectRows[T any](s *sqliteSession, sql string, space int64, list []T, width int, add func([]any, T) []any, each func(func(...any) error) error) error {
	return parts(list, func(part []T, size int) error {
		st, err := s.list(sql, size)
		if err != nil {
			return err
		}
		s.args = s.args[:0]
		for _, value := range part {
			s.args = add(s.args, value)
		}
		s.pad(width*(size-len(part)), space)
		return run(st, s.args, each)
	})
}

func (s *sqliteSession) landed(space int64, grantID string, paths []string, each func(func(...any) error) error) error {
	for _, path := range paths {
		if err := s.query(landedSQL, []any{space, path, int64(lockkeeper.Undone), grantID}, each); err != nil {
			return err
		}
	}
	return nil
}

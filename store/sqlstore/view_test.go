package sqlstore

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/ncruces/go-sqlite3"

	"lockkeeper"
	"lockkeeper/lock"
	"lockkeeper/store/storetest"
)

// rows runs a query without going through the store. All values are returned as text, NULL as
// "NULL".
func rows(t *testing.T, s site, sql string) (columns []string, out [][]string) {
	t.Helper()
	if s.kind == "postgres" {
		conn := foreign(t)
		defer conn.Close(t.Context())
		res, err := conn.Query(t.Context(), sql, pgx.QueryExecModeSimpleProtocol) // all as text
		if err != nil {
			t.Fatal(err)
		}
		defer res.Close()
		for _, f := range res.FieldDescriptions() {
			columns = append(columns, f.Name)
		}
		for res.Next() {
			var line []string
			for _, v := range res.RawValues() {
				if v == nil {
					line = append(line, "NULL")
				} else {
					line = append(line, string(v))
				}
			}
			out = append(out, line)
		}
		if err := res.Err(); err != nil {
			t.Fatal(err)
		}
		return columns, out
	}
	conn, err := sqlite3.OpenFlags(s.where, sqlite3.OPEN_READONLY)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	st, _, err := conn.Prepare(sql)
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	for i := range st.ColumnCount() {
		columns = append(columns, st.ColumnName(i))
	}
	for st.Step() {
		var line []string
		for i := range st.ColumnCount() {
			if st.ColumnType(i) == sqlite3.NULL {
				line = append(line, "NULL")
			} else {
				line = append(line, st.ColumnText(i))
			}
		}
		out = append(out, line)
	}
	if err := st.Err(); err != nil {
		t.Fatal(err)
	}
	return columns, out
}

// of returns a condition that restricts a query to the site's space, because a PostgreSQL
// database has several spaces.
func (s site) of(column string) string {
	return fmt.Sprintf(`%s = (SELECT key FROM spaces WHERE id = '%s')`, column, s.space)
}

// shows: DL-9 DL-14
func TestLockTableOfTheSpecification(t *testing.T) {
	sites(t, func(t *testing.T, s site) {
		clock := storetest.NewClock()
		m := lock.New(s.store(t, Options{Clock: clock.Now}), lock.Options{})
		owner := fmt.Sprintf("Zoë 'of' \"job\" %s", s.space)
		g, err := m.TryAcquire(t.Context(), lockkeeper.Request{Holder: owner, Policy: "dal", Metadata: map[string]string{"why": "quote\" it"},
			Locks: append(write("a/b"), lockkeeper.Lock{Target: lockkeeper.Target{Path: "ü/'x'", Kind: lockkeeper.Tree}, Mode: lockkeeper.Upgradeable})})
		if err != nil {
			t.Fatal(err)
		}
		forever, err := m.TryAcquire(t.Context(), lockkeeper.Request{Holder: owner, Policy: "person", Locks: write("c")})
		if err != nil {
			t.Fatal(err)
		}
		waiter := "waiter " + s.space
		place, err := m.NewPosition(request(waiter, "c")) // a position in the wait list does not count as a lock
		if err != nil {
			t.Fatal(err)
		}
		if _, err := place.Poll(t.Context()); err != nil {
			t.Fatal(err)
		}
		defer place.Leave(t.Context())
		clock.Advance(1500 * time.Millisecond)
		if _, err := m.Renew(t.Context(), g.ID, g.Token); err != nil {
			t.Fatal(err)
		}
		columns, all := rows(t, s, fmt.Sprintf(`SELECT * FROM dal_locks WHERE lock_id IN ('%s', '%s') OR owner = '%s' ORDER BY lease_expires IS NULL`, g.ID, forever.ID, waiter))
		if !slices.Equal(columns, []string{"lock_id", "owner", "lease_expires", "heartbeat_ts", "metadata"}) {
			t.Errorf("columns %v", columns)
		}
		if len(all) != 2 {
			t.Fatalf("rows %v, want two", all)
		}
		row := all[0]
		want := []string{g.ID, owner, "2026-02-03T04:05:52.500Z", "2026-02-03T04:05:07.500Z"}
		if !slices.Equal(row[:4], want) {
			t.Errorf("got %v, want %v", row[:4], want)
		}
		var meta struct {
			Targets []lockkeeper.Lock
			Policy  string
			Fence   uint64
			Caller  map[string]string
		}
		if err := json.Unmarshal([]byte(row[4]), &meta); err != nil {
			t.Fatalf("%s: %v", row[4], err)
		}
		if !slices.Equal(meta.Targets, g.Locks) || meta.Policy != "dal" || meta.Fence != g.Fence || meta.Caller["why"] != "quote\" it" {
			t.Errorf("metadata %s", row[4])
		}
		if all[1][0] != forever.ID || all[1][2] != "NULL" {
			t.Errorf("a lock that never expires shows as %v", all[1])
		}
	})
}

// shows: DL-15
func TestHeartbeatTouchesOneRow(t *testing.T) {
	var paths []string
	for i := range 100 {
		paths = append(paths, fmt.Sprint("p", i))
	}
	t.Run("SQLite", func(t *testing.T) {
		s := sqliteSite(t)
		st := s.sqlite(t, Options{})
		m := lock.New(st, lock.Options{})
		g, err := m.TryAcquire(t.Context(), request("h", paths...))
		if err != nil {
			t.Fatal(err)
		}
		before := st.writer.conn.TotalChanges()
		if _, err := m.Renew(t.Context(), g.ID, g.Token); err != nil {
			t.Fatal(err)
		}
		if n := st.writer.conn.TotalChanges() - before; n != 1 {
			t.Errorf("%d rows changed, want 1", n)
		}
	})
	t.Run("PostgreSQL", func(t *testing.T) {
		s := postgresSite(t)
		m := lock.New(s.store(t, Options{}), lock.Options{})
		g, err := m.TryAcquire(t.Context(), request("h", paths...))
		if err != nil {
			t.Fatal(err)
		}
		// In PostgreSQL, xmin is the transaction that wrote a row.
		versions := func(table, where string) string {
			_, out := rows(t, s, fmt.Sprintf(`SELECT string_agg(xmin::text || ctid::text, ',' ORDER BY ctid) FROM %s WHERE %s`, table, where))
			return out[0][0]
		}
		look := func() []string {
			return []string{versions("targets", s.of("space")), versions("events", s.of("space")), versions("requests", s.of("space"))}
		}
		before := look()
		if _, err := m.Renew(t.Context(), g.ID, g.Token); err != nil {
			t.Fatal(err)
		}
		after := look()
		if before[0] != after[0] || before[1] != after[1] || before[2] == after[2] {
			t.Errorf("targets same %v, events same %v, request same %v; want only the request changed",
				before[0] == after[0], before[1] == after[1], before[2] == after[2])
		}
	})
}

// The two queries of every acquire use an index, whether the tables are empty or full.
func TestPlansUseIndexes(t *testing.T) {
	t.Run("SQLite", func(t *testing.T) {
		s := sqliteSite(t)
		st := s.sqlite(t, Options{})
		check := func(when string) {
			for sql, want := range map[string]string{
				targetsAtSQL:                  "t USING PRIMARY KEY (space=? AND path",
				targetsBelowSQL:               "t USING PRIMARY KEY (space=? AND path",
				deleteInSQL:                   "targets USING PRIMARY KEY (space=? AND path",
				numberedSQL[requestsByTicket]: "r USING INTEGER PRIMARY KEY",
			} {
				for n := range listLimit + 1 {
					if n == 0 || n > shortList && n&(n-1) != 0 {
						continue // no statement has this size
					}
					stmt, err := st.writer.list(sql, n)
					if err != nil {
						t.Fatal(err)
					}
					plan := ""
					err = st.writer.query(`EXPLAIN QUERY PLAN `+strings.ReplaceAll(stmt.SQL(), "?", "$"), nil, func(scan func(...any) error) error {
						var id, parent, unused int64
						var detail string
						err := scan(&id, &parent, &unused, &detail)
						plan += detail + "\n"
						return err
					})
					if err != nil {
						t.Fatal(err)
					}
					for line := range strings.Lines(plan) {
						if strings.HasPrefix(line, "SCAN") && !strings.Contains(line, "span") && !strings.Contains(line, "place") && !strings.Contains(line, "CONSTANT ROW") {
							t.Fatalf("%s, %s of %d:\n%s", when, sql, n, plan)
						}
					}
					if !strings.Contains(plan, "SEARCH "+want) {
						t.Fatalf("%s, %s of %d:\n%s", when, sql, n, plan)
					}
				}
			}
		}
		check("empty")
		if _, err := lock.New(st, lock.Options{}).TryAcquire(t.Context(), request("h", "a", "b", "c")); err != nil {
			t.Fatal(err)
		}
		raw(t, s.where, `ANALYZE`) // for tables this small, a scan would be cheap
		check("analyzed")
	})
	t.Run("PostgreSQL", func(t *testing.T) {
		s := site{kind: "postgres", where: freshDatabase(t), space: "s"}
		if err := CreateSpace(t.Context(), s.where, s.space); err != nil {
			t.Fatal(err)
		}
		p := s.postgres(t, Options{})
		if _, err := p.pool.Exec(t.Context(), `VACUUM ANALYZE`); err != nil { // the planner now knows that the tables are empty
			t.Fatal(err)
		}
		explain := func(sql string, args ...any) string {
			conn, err := p.pool.Acquire(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Release()
			res, err := conn.Query(t.Context(), "EXPLAIN "+sql, args...)
			if err != nil {
				t.Fatal(err)
			}
			defer res.Close()
			plan := ""
			for res.Next() {
				var line string
				if err := res.Scan(&line); err != nil {
					t.Fatal(err)
				}
				plan += line + "\n"
			}
			return plan
		}
		for what, c := range map[string]struct{ plan, want string }{
			"targets at":     {explain(targetsSQL, p.key, []string{"a", "b"}, []string{"a/"}, []string{"a0"}), "Index Cond: ((space = '1'::bigint) AND (path = a.path))"},
			"targets below":  {explain(targetsSQL, p.key, []string{"a", "b"}, []string{"a/"}, []string{"a0"}), "AND (path > b.lo) AND (path < b.hi))"},
			"delete targets": {explain(deleteTargetsSQL, p.key, 1, []string{"a", "b"}), "AND (path = a.path) AND (ticket = '1'::bigint))"},
			"requests":       {explain(requestsSQL, p.key, []int64{1, 2}), "AND (ticket = k.ticket))"},
			"get":            {explain(getSQL, p.key, "x"), "Index Cond: ((id = 'x'::text) AND ((space + 0) ="},
			"save":           {explain(`UPDATE requests SET state = 1 WHERE space = $1 AND ticket = $2`, p.key, 1), "AND (ticket = '1'::bigint))"},
			"waiters":        {explain(`SELECT 1 FROM requests r WHERE r.space = $1 AND r.parked_on = $2 AND r.parked_on > 0`, p.key, 1), "AND (parked_on = '1'::bigint))"},
		} {
			// The plan contains the key of the space in place of "1".
			want := strings.ReplaceAll(c.want, "space = '1'", fmt.Sprintf("space = '%d'", p.key))
			if strings.Contains(c.plan, "Seq Scan") || strings.Contains(c.plan, "Filter:") && what != "waiters" && what != "get" || !strings.Contains(c.plan, want) {
				t.Errorf("%s: want %s in\n%s", what, want, c.plan)
			}
		}
	})
}

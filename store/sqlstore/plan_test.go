package sqlstore

import (
	"strings"
	"testing"

	"lockkeeper/store"
)

// A plan is a query that must use an index, with the text that its plan must contain in SQLite
// and in PostgreSQL.
type plan struct {
	sql              string
	args             []any
	sqlite, postgres string
	inOrder          bool // the index gives the order, so nothing is sorted
}

// plansUseIndexes checks the plans while the tables are new, small, large, and emptied again.
// add adds the i-th row.
func plansUseIndexes(t *testing.T, tables []string, plans func(key int64) map[string]plan, add func(tx store.Tx, i int) error) {
	sites(t, func(t *testing.T, s site) {
		if s.kind == "postgres" { // a database of its own, so that no other test changes the planner's statistics
			s.where = freshDatabase(t)
			if err := CreateSpace(t.Context(), s.where, s.space); err != nil {
				t.Fatal(err)
			}
		}
		st := s.store(t, Options{})
		rows := 0
		fill := func(n int) {
			t.Helper()
			err := st.Update(t.Context(), func(tx store.Tx) error {
				for range n {
					if err := add(tx, rows); err != nil {
						return err
					}
					rows++
				}
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
			s.administer(t, `ANALYZE`)
		}
		check := func(when string) {
			t.Helper()
			err := st.View(t.Context(), func(r store.Reader) error {
				x := r.(*tx)
				for name, p := range plans(x.key) {
					is, want, err := s.explain(x, p)
					if err != nil {
						return err
					}
					sorts := strings.Contains(is, "Sort Key") || strings.Contains(is, "FOR ORDER BY")
					if !strings.Contains(is, want) || strings.Contains(is, "Seq Scan") || strings.Contains(is, "Join Filter") || p.inOrder && sorts {
						t.Errorf("%s, %s: want %s in\n%s", when, name, want, is)
					}
				}
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
		}
		check("new")
		fill(1)
		check("few")
		fill(300)
		check("many")
		for _, table := range tables {
			s.administer(t, `DELETE FROM `+table)
		}
		s.administer(t, `VACUUM`)
		s.administer(t, `ANALYZE`)
		check("emptied")
	})
}

// administer runs a statement without going through the store.
func (s site) administer(t *testing.T, sql string) {
	t.Helper()
	if s.kind == "sqlite" {
		raw(t, s.where, sql)
		return
	}
	conn := foreignTo(t, s.where)
	defer conn.Close(t.Context())
	if _, err := conn.Exec(t.Context(), sql); err != nil {
		t.Fatal(err)
	}
}

// explain returns the plan of a query and the text that it must contain.
func (s site) explain(x *tx, p plan) (is, want string, err error) {
	explain, want := `EXPLAIN `, p.postgres
	if s.kind == "sqlite" {
		explain, want = `EXPLAIN QUERY PLAN `, p.sqlite
	}
	err = x.query(explain+p.sql, p.args, func(scan func(...any) error) error {
		var id, parent, unused int64
		var detail string
		dest := []any{&detail}
		if s.kind == "sqlite" {
			dest = []any{&id, &parent, &unused, &detail}
		}
		err := scan(dest...)
		is += detail + "\n"
		return err
	})
	return is, want, err
}

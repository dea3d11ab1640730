package sqlstore

import (
	"strings"
	"testing"

	"lockkeeper"
)

// plan is a question that must go through an index, with what the plan says of
// it in SQLite and in PostgreSQL.
type plan struct {
	sql              string
	args             []any
	sqlite, postgres string
}

// plansUseIndexes looks at the plans while tables are new, hold little and hold
// much, and when all of that was deleted. add adds the i-th row.
func plansUseIndexes(t *testing.T, tables string, plans func(key int64) map[string]plan, add func(tx lockkeeper.Tx, i int) error) {
	sites(t, func(t *testing.T, s site) {
		st := s.store(t, Options{})
		rows := 0
		fill := func(n int) {
			t.Helper()
			err := st.Update(t.Context(), func(tx lockkeeper.Tx) error {
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
			s.analyze(t, tables)
		}
		check := func(when string) {
			t.Helper()
			err := st.View(t.Context(), func(r lockkeeper.Reader) error {
				x := r.(*tx)
				for name, p := range plans(x.key) {
					is, want, err := s.explain(x, p)
					if err != nil {
						return err
					}
					for _, bad := range []string{"Seq Scan", "Join Filter", "Sort Key", "FOR ORDER BY"} {
						if strings.Contains(is, bad) && !strings.Contains(want, bad) {
							t.Errorf("%s, %s: %s in\n%s", when, name, bad, is)
						}
					}
					if !strings.Contains(is, want) {
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
	})
}

// analyze lets the planner know what is in some tables.
func (s site) analyze(t *testing.T, tables string) {
	t.Helper()
	if s.kind == "sqlite" {
		raw(t, s.where, `ANALYZE`)
		return
	}
	conn := foreign(t)
	defer conn.Close(t.Context())
	if _, err := conn.Exec(t.Context(), `ANALYZE `+tables); err != nil {
		t.Fatal(err)
	}
}

// explain is how a question is answered, and what must be in that.
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

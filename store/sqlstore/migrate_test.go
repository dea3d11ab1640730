package sqlstore

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"lockkeeper"
	"lockkeeper/store"
)

// Rows that the first version of the schema stored: one holder with one path.
const (
	oldGrant = `INSERT INTO requests (space, ticket, id, holder, policy, token, state, fence, ttl, expires, heartbeat, acquired_at, expires_at,
 heartbeat_at, parked_on, blockers, process, metadata, locks)
 VALUES (1, 1, 'old', 'h', 'person', '', 3, 1, 0, 0, 1, 1, 0, 1, 0, 0, 'null', 'null', '[{"path":"a","kind":"file","mode":"write"}]');
INSERT INTO targets (space, path, ticket, mode, kind) VALUES (1, 'a', 1, %d, %d);
INSERT INTO events (space, seq, at, body) VALUES (1, 1, 1, '{"kind":"acquired","actor":{"name":"h","kind":"holder"}}');`

	oldSpace = `INSERT INTO spaces (id, seq, created_at, incarnation%s) VALUES ('s', 1, 1, %s%s);`
)

// older returns SQL that creates a database with only the first steps of the schema. The rows
// are inserted after the first step.
func older(steps []string, had int, space string) string {
	use := space + "\n" + fmt.Sprintf(oldGrant, lockkeeper.Write, lockkeeper.File)
	return strings.Join([]string{steps[0], use, strings.Join(steps[1:had], ";\n")}, ";\n")
}

func olderSQLite(t *testing.T, steps []string, had int) site {
	s := site{kind: "sqlite", where: filepath.Join(t.TempDir(), "state.db"), space: "s"}
	f, err := os.OpenFile(s.where, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	id, err := incarnation(f)
	if err = errors.Join(err, f.Close(), makeWriteTurn(s.where+"-turn")); err != nil {
		t.Fatal(err)
	}
	raw(t, s.where, fmt.Sprintf(`PRAGMA application_id = %d;`, applicationID)+
		older(steps, had, fmt.Sprintf(oldSpace, `, boot`, `'`+id+`'`, `, ''`))+
		fmt.Sprintf(`; PRAGMA user_version = %d; PRAGMA journal_mode = WAL`, had))
	return s
}

func olderPostgres(t *testing.T, steps []string, had int) site {
	s := site{kind: "postgres", where: freshDatabase(t), space: "s"}
	conn := foreignTo(t, s.where)
	defer conn.Close(t.Context())
	for _, sql := range []string{
		`CREATE SCHEMA ` + schemaName,
		fmt.Sprintf(`CREATE TABLE schema_version (version BIGINT NOT NULL); INSERT INTO schema_version VALUES (%d)`, had),
		older(steps, had, fmt.Sprintf(oldSpace, ``, `'an earlier one'`, ``)),
	} {
		if _, err := conn.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

// A database of every earlier format is migrated when it is opened, even by several processes
// at once, and keeps its content.
func TestMigratesEarlierFormats(t *testing.T) {
	for kind, old := range map[string]func(*testing.T, []string, int) site{"sqlite": olderSQLite, "postgres": olderPostgres} {
		steps, err := migrations(kind)
		if err != nil {
			t.Fatal(err)
		}
		for had := 1; had < len(steps); had++ {
			t.Run(fmt.Sprint(kind, " format ", had), func(t *testing.T) {
				s := old(t, steps, had)
				var wg sync.WaitGroup
				for range 4 {
					wg.Go(func() {
						st, err := s.open(t.Context(), Options{})
						if err == nil {
							err = st.Close()
						}
						if err != nil {
							t.Error(err)
						}
					})
				}
				wg.Wait()
				usable(t, s.store(t, Options{}))
			})
		}
	}
}

// usable checks that the old grant exists and that a landing under it and an item that waits on
// it can be stored.
func usable(t *testing.T, st store.Store) {
	t.Helper()
	err := st.Update(t.Context(), func(tx store.Tx) error {
		rec, err := tx.Get("old")
		if err != nil {
			return err
		}
		if rec == nil || rec.State != store.StateHeld || len(rec.Locks) != 1 {
			t.Errorf("the old grant is %+v", rec)
		}
		found, _, err := tx.Overlapping(store.Query{Locks: write("a"), Before: store.AnyTicket})
		if len(found) != 1 {
			t.Errorf("blockers of the old path: %v", found)
		}
		_, queued := enqueue(tx, lockkeeper.Item{Stage: lockkeeper.StageWaiting, WaitsOn: store.OnPath(lockkeeper.Write, "a")})
		return errors.Join(err, queued, land(tx, "old", "a"))
	})
	if err != nil {
		t.Fatal(err)
	}
	err = st.Update(t.Context(), func(tx store.Tx) error {
		woken, err := store.WakeFirst(tx, store.OnPath(lockkeeper.Write, "a"))
		if !woken || tx.AnyWaitsOnLock() {
			t.Errorf("woken %v, and others wait: %v", woken, tx.AnyWaitsOnLock())
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	err = st.View(t.Context(), func(r store.Reader) error {
		open, err := r.Landings(store.LandingQuery{GrantID: "old", Path: "a", Open: true})
		if len(open) != 1 || open[0].Seq <= 1 {
			t.Errorf("landings %v", open)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

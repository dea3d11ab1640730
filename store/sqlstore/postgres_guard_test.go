package sqlstore

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"lockkeeper/lock"
	"lockkeeper/store"
	"lockkeeper/store/storetest"
)

// freshDatabase creates a database owned by a role that is not a superuser, and returns its
// URL.
func freshDatabase(t *testing.T) string {
	t.Helper()
	u, err := url.Parse(postgresURL(t))
	if err != nil {
		t.Fatal(err)
	}
	name, password := "fresh_"+strings.ToLower(rand.Text()), rand.Text()
	for _, sql := range []string{
		fmt.Sprintf(`CREATE ROLE %s LOGIN PASSWORD '%s'`, name, password),
		fmt.Sprintf(`CREATE DATABASE %s OWNER %s`, name, name),
	} {
		if err := storetest.Administer(sql); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() {
		for _, sql := range []string{`DROP DATABASE ` + name + ` WITH (FORCE)`, `DROP ROLE ` + name} {
			if err := storetest.Administer(sql); err != nil {
				t.Error(err)
			}
		}
	})
	u.Path, u.User = "/"+name, url.UserPassword(name, password)
	return u.String()
}

func openRefused(t *testing.T, url, space, part string) {
	t.Helper()
	p, err := OpenPostgres(t.Context(), url, space, Options{Busy: hung})
	if err == nil {
		p.Close()
	}
	wantStore(t, err, part)
}

func TestPostgresRefusesWhatIsNotThere(t *testing.T) {
	where := freshDatabase(t)
	openRefused(t, where, "s", "no Lockkeeper schema")

	// Several processes migrate an empty database at once.
	var wg sync.WaitGroup
	for range 6 {
		wg.Go(func() {
			if err := CreateSpace(t.Context(), where, "s"); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	openRefused(t, where, "other", "no space other")

	p, err := OpenPostgres(t.Context(), where, "s", Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	m := lock.New(p, lock.Options{})
	g, err := m.TryAcquire(t.Context(), request("h", "a"))
	if err != nil {
		t.Fatal(err)
	}
	if err := CreateSpace(t.Context(), where, "s"); err != nil { // changes nothing
		t.Error(err)
	}
	if _, err := m.Renew(t.Context(), g.ID, g.Token); err != nil {
		t.Error(err)
	}

	alter := func(sql string) {
		t.Helper()
		conn, err := pgx.Connect(t.Context(), where)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close(context.Background())
		if _, err := conn.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	alter(`UPDATE lockkeeper.schema_version SET version = version + 99`)
	openRefused(t, where, "s", "is newer")
	alter(`UPDATE lockkeeper.schema_version SET version = version - 99`)

	wrong, err := url.Parse(where)
	if err != nil {
		t.Fatal(err)
	}
	wrong.User = url.UserPassword(wrong.User.Username(), "guess")
	openRefused(t, wrong.String(), "s", "rejects this user")

	alter(`DELETE FROM lockkeeper.spaces`)
	_, err = m.TryAcquire(t.Context(), request("h", "b"))
	wantStore(t, err, "space s is gone")
	wantStore(t, p.Update(t.Context(), func(store.Tx) error { return nil }), "space s is gone")
}

// If a session does not end its transaction, a writer waits for the Busy limit and its error
// names the session.
func TestPostgresBusy(t *testing.T) {
	s := postgresSite(t)
	st := s.store(t, Options{Busy: 2 * time.Second})
	conn := foreign(t)
	defer conn.Close(context.Background())
	if _, err := conn.Exec(t.Context(), `BEGIN; SELECT 1 FROM spaces WHERE id = '`+s.space+`' FOR UPDATE`); err != nil {
		t.Fatal(err)
	}
	within(t, 30*time.Second, func() {
		wantStore(t, st.Update(t.Context(), func(store.Tx) error { return nil }), "locked by another session")
		_, err := lock.New(st, lock.Options{}).TryAcquire(t.Context(), request("h", "a"))
		wantStore(t, err, "locked by another session")
	})
	if err := st.View(t.Context(), func(store.Reader) error { return nil }); err != nil {
		t.Errorf("a reader was blocked: %v", err)
	}
}

// The server ends the session of a process that was stopped during a transaction, while other
// writers still wait.
func TestPostgresStoppedWriter(t *testing.T) {
	s := postgresSite(t)
	st := s.store(t, Options{Busy: hung})
	t.Setenv(busyVariable, "5s")
	other := start(t, "write", s)
	other.expect("writing")
	if err := other.cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	mark(t, st, "past the stopped one")
}

// The gap between the numbers of two epochs does not count as events, so pruning drops nothing
// because of it.
func TestPruneAcrossEpochs(t *testing.T) {
	sites(t, func(t *testing.T, s site) {
		st := s.store(t, Options{})
		count := func() (n int) {
			err := st.View(t.Context(), func(r store.Reader) error {
				ev, err := r.Events(store.EventQuery{Limit: 100})
				n = len(ev)
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
			return n
		}
		prune := func(keep int) {
			t.Helper()
			err := st.Update(t.Context(), func(tx store.Tx) error { return tx.Prune(tx.Now().Wall.Add(-time.Hour), keep) })
			if err != nil {
				t.Fatal(err)
			}
		}
		for i := range 10 {
			mark(t, st, fmt.Sprint(i))
		}
		err := st.Update(t.Context(), func(lt store.Tx) error {
			x, is := lt.(*tx), ""
			err := x.query(`SELECT incarnation FROM spaces WHERE key = $1`, []any{x.key}, func(scan func(...any) error) error { return scan(&is) })
			return errors.Join(err, x.newEpoch(is, x.seq+1, false))
		})
		if err != nil {
			t.Fatal(err)
		}
		mark(t, st, "new")
		prune(12)
		if n := count(); n != 12 {
			t.Errorf("%d events, want all 12", n)
		}
		prune(1)
		prune(1) // each call deletes a bounded number of rows
		if n := count(); n != 1 {
			t.Errorf("%d events, want the newest", n)
		}
	})
}

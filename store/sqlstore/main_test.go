package sqlstore

import (
	"context"
	"crypto/rand"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"lockkeeper/store"
	"lockkeeper/store/storetest"
)

// helperArg makes the test binary run as a helper process.
const helperArg = "sqlstore-helper"

func TestMain(m *testing.M) {
	if len(os.Args) > 2 && os.Args[1] == helperArg {
		os.Exit(helper(os.Args[2], os.Args[3:]))
	}
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		database.Drop()
		os.Exit(code)
	}))
}

// database is shared by all tests of the run.
var database = &storetest.Database{Prefix: "sqlstore"}

func postgresURL(t testing.TB) string {
	t.Helper()
	u, err := database.URL()
	if err != nil {
		t.Fatal(err)
	}
	return u
}

// A site is a space that several stores in several processes can open.
type site struct {
	kind  string // sqlite or postgres
	where string // path or URL
	space string
}

func sqliteSite(t testing.TB) site {
	t.Helper()
	s := site{kind: "sqlite", where: filepath.Join(t.TempDir(), "state.db"), space: "space-" + rand.Text()}
	if err := CreateSQLite(t.Context(), s.where, s.space); err != nil {
		t.Fatal(err)
	}
	return s
}

func postgresSite(t testing.TB) site {
	t.Helper()
	s := site{kind: "postgres", where: postgresURL(t), space: "space-" + rand.Text()}
	if err := CreateSpace(t.Context(), s.where, s.space); err != nil {
		t.Fatal(err)
	}
	return s
}

// sites runs a test on a site of each kind.
func sites(t *testing.T, fn func(t *testing.T, s site)) {
	t.Run("SQLite", func(t *testing.T) { fn(t, sqliteSite(t)) })
	t.Run("PostgreSQL", func(t *testing.T) { fn(t, postgresSite(t)) })
}

func (s site) open(ctx context.Context, opt Options) (store.Store, error) {
	if s.kind == "postgres" {
		return OpenPostgres(ctx, s.where, s.space, opt)
	}
	return OpenSQLite(ctx, s.where, s.space, opt)
}

// store opens the site and closes it when the test ends.
func (s site) store(t testing.TB, opt Options) store.Store {
	t.Helper()
	st, err := s.open(t.Context(), opt)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := st.Close(); err != nil {
			t.Error(err)
		}
	})
	return st
}

func (s site) sqlite(t testing.TB, opt Options) *SQLite {
	t.Helper()
	return s.store(t, opt).(*SQLite)
}

func (s site) postgres(t testing.TB, opt Options) *Postgres {
	t.Helper()
	return s.store(t, opt).(*Postgres)
}

// conforms opens stores for the conformance suite, which closes them.
func conforms(t *testing.T, make func(testing.TB) site, opt Options, fix storetest.Fixture) {
	var mu sync.Mutex
	where := map[string]site{}
	fix.Open = func(t *testing.T, clock *storetest.Clock) store.Store {
		s := make(t)
		mu.Lock()
		where[s.space] = s
		mu.Unlock()
		return opened(t, s, opt, clock)
	}
	fix.Second = func(t *testing.T, first store.Store, clock *storetest.Clock) store.Store {
		mu.Lock()
		s := where[first.Space()]
		mu.Unlock()
		return opened(t, s, opt, clock)
	}
	storetest.Run(t, fix)
}

func opened(t *testing.T, s site, opt Options, clock *storetest.Clock) store.Store {
	t.Helper()
	opt.Clock = clock.Now
	st, err := s.open(t.Context(), opt)
	if err != nil {
		t.Fatal(err)
	}
	return st
}

func TestSQLiteConforms(t *testing.T) {
	t.Parallel()
	conforms(t, sqliteSite, Options{}, storetest.Fixture{Random: 300, Rounds: 12})
}

func TestOneConnectionConforms(t *testing.T) {
	t.Parallel()
	conforms(t, sqliteSite, Options{OneConnection: true}, storetest.Fixture{Random: 100, Rounds: 4})
}

// shows: DL-78
func TestPostgresConforms(t *testing.T) {
	t.Parallel()
	conforms(t, postgresSite, Options{}, storetest.Fixture{Random: 300, Rounds: 12})
}

package sqlstore

import (
	"context"
	"errors"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"

	"lockkeeper"
	"lockkeeper/lock"
	"lockkeeper/store"
)

// turns counts how often clients waited for an answer of the server, and how many connections they made.
func (p *proxy) turns() (trips, conns int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.trips, p.accepted
}

// opening returns the round trips that a connection takes before its first statement.
func opening(t *testing.T) int {
	t.Helper()
	px := newProxy(t)
	conn, err := pgx.Connect(t.Context(), px.through(site{where: postgresURL(t)}).where)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	trips, _ := px.turns()
	return trips
}

// Opening a space, acquiring, recording the process of a command and releasing take one round trip each, also for
// statements that the server sees for the first time.
func TestPostgresRoundTrips(t *testing.T) {
	s := postgresSite(t)
	px := newProxy(t)
	far := px.through(s)
	var m *lock.Manager
	var g *lock.Grant
	connect := opening(t)
	check := func(what string, want int, act func() error) {
		t.Helper()
		before, conns := px.turns()
		if err := act(); err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		after, all := px.turns()
		if got := after - before - connect*(all-conns); got > want {
			t.Errorf("%s takes %d round trips, want %d", what, got, want)
		}
	}
	check("opening", 1, func() error { m = lock.New(far.store(t, Options{}), lock.Options{}); return nil })
	check("acquiring", 1, func() (err error) { g, err = m.TryAcquire(t.Context(), request("h", "a/b/c", "d")); return err })
	check("recording the process", 1, func() error {
		g.Keep()
		_, err := m.SetProcess(t.Context(), g.ID, g.Token, lockkeeper.Process{Host: "h", PID: 17})
		return err
	})
	check("renewing", 1, func() error { _, err := m.Renew(t.Context(), g.ID, g.Token); return err })
	check("releasing", 1, func() error { return g.Release(t.Context()) })
	if err := m.Close(); err != nil {
		t.Error(err)
	}
}

// A process far away, whose answers take long, does not keep others from their files: no transaction of acquiring,
// renewing and releasing is open while a message is under way.
func TestPostgresHoldsNoLockAcrossRoundTrips(t *testing.T) {
	s := postgresSite(t)
	px := newProxy(t)
	m := lock.New(px.through(s).store(t, Options{}), lock.Options{})
	near := lock.New(s.store(t, Options{}), lock.Options{})
	px.pauses(func() {
		g, err := near.TryAcquire(t.Context(), request("near", "x"))
		if err == nil {
			err = g.Release(t.Context())
		}
		if err != nil {
			t.Error(err)
		}
		if n := ask[int](t, `SELECT count(*) FROM pg_locks l JOIN pg_class c ON c.oid = l.relation WHERE c.relname = 'spaces' AND l.mode LIKE '%Exclusive%' AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())`); n != 0 {
			t.Errorf("%d locks are held while an answer is under way", n)
		}
	})
	g, err := m.TryAcquire(t.Context(), request("far", "y"))
	if err != nil {
		t.Fatal(err)
	}
	g.Keep()
	_, err = m.SetProcess(t.Context(), g.ID, g.Token, lockkeeper.Process{Host: "h", PID: 17})
	_, renewed := m.Renew(t.Context(), g.ID, g.Token)
	if err := errors.Join(err, renewed, g.Release(t.Context())); err != nil {
		t.Error(err)
	}
	px.pauses(nil)
	if err := errors.Join(m.Close(), near.Close()); err != nil {
		t.Error(err)
	}
}

// Many processes at once share the few connections of a server, and none of their grants is lost.
func TestPostgresManyProcesses(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	c.kill()
	c.append("postgresql.auto.conf", "max_connections = 20\n")
	c.start()
	s := c.ordinary()
	var work sync.WaitGroup
	ready := make(chan struct{})
	var holding sync.WaitGroup
	const processes = 60
	holding.Add(processes)
	for i := range processes {
		work.Go(func() {
			began := false
			defer func() {
				if !began {
					holding.Done()
				}
			}()
			var st store.Store
			var err error
			for range 20 {
				if st, err = s.open(t.Context(), Options{}); err == nil {
					break
				}
			}
			if err != nil {
				t.Errorf("process %d: %v", i, err)
				return
			}
			defer st.Close()
			m := lock.New(st, lock.Options{})
			defer m.Close()
			req := request("h", string(rune('A'+i)))
			req.TTL = lock.ShortestKept * 10
			g, err := m.TryAcquire(t.Context(), req)
			if err != nil {
				t.Errorf("process %d: %v", i, err)
				return
			}
			g.Keep()
			began = true
			holding.Done()
			<-ready
			if err := context.Cause(g.Context()); err != nil {
				t.Errorf("process %d lost its grant: %v", i, err)
			}
			if err := g.Release(t.Context()); err != nil {
				t.Errorf("process %d: %v", i, err)
			}
		})
	}
	holding.Wait()
	close(ready)
	work.Wait()
}

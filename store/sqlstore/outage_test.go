package sqlstore

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"lockkeeper"
	"lockkeeper/lock"
	"lockkeeper/store"
)

func write(paths ...string) (out []lockkeeper.Lock) {
	for _, p := range paths {
		out = append(out, lockkeeper.Lock{Target: lockkeeper.Target{Path: p, Kind: lockkeeper.File}, Mode: lockkeeper.Write})
	}
	return out
}

func request(holder string, paths ...string) lockkeeper.Request {
	return lockkeeper.Request{Holder: holder, Locks: write(paths...)}
}

// wantStore checks that an error is a *StoreError that contains part.
func wantStore(t *testing.T, err error, part string) {
	t.Helper()
	var e *lockkeeper.StoreError
	if !errors.As(err, &e) {
		t.Fatalf("got %v, want a StoreError about %q", err, part)
	}
	if !strings.Contains(e.Error(), part) || e.Store == "" || e.Next == "" {
		t.Errorf("got %q, want it to name the store, say %q and what to do next", e.Error(), part)
	}
}

// outage returns a store behind a proxy. Its connections have already done each kind of work,
// so their next message is the one that the test breaks.
func outage(t *testing.T, busy time.Duration) (site, *Postgres, *lock.Manager, *proxy) {
	t.Helper()
	px := newProxy(t)
	s := postgresSite(t)
	p := px.through(s).postgres(t, Options{Busy: busy})
	m := lock.New(p, lock.Options{})
	t.Cleanup(func() { m.Close() })
	for i := range 3 {
		mark(t, p, fmt.Sprint("warm-up ", i))
		var g *lock.Grant
		eventually(t, func() (err error) { g, err = m.TryAcquire(t.Context(), request("warm-up", "warm/up")); return err })
		eventually(t, func() error { return g.Release(t.Context()) })
	}
	return s, p, m, px
}

// hung is the time limit of tests for the store, and of stores for a reachable server. It is
// reached only if something hangs.
const hung = 5 * time.Minute

// within reports an error if each of many tries takes longer than limit. On a busy machine some
// tries are slow, but with a bug all of them are.
func within(t *testing.T, limit time.Duration, act func()) {
	t.Helper()
	fastest := hung
	for range 20 {
		began := time.Now()
		act()
		if fastest = min(fastest, time.Since(began)); fastest <= limit {
			return
		}
	}
	t.Errorf("took %v at least, want %v at most", fastest, limit)
}

// eventually retries until try succeeds, because on a busy machine one try can exceed the
// store's own time limit.
func eventually(t *testing.T, try func() error) {
	t.Helper()
	for began := time.Now(); ; {
		err := try()
		if err == nil {
			return
		}
		if time.Since(began) > hung {
			t.Fatal(err)
		}
	}
}

func mark(t *testing.T, s store.Store, reason string) {
	t.Helper()
	eventually(t, func() error { return s.Update(t.Context(), marking(reason, nil)) })
}

// marking returns a function that appends one event and then calls then before the commit.
func marking(reason string, then func()) func(store.Tx) error {
	return func(tx store.Tx) error {
		_, err := tx.Append(lockkeeper.Event{Kind: lockkeeper.EventDenied, At: tx.Now().Wall, Reason: reason})
		if then != nil {
			then()
		}
		return err
	}
}

// marks counts the events with a reason by a direct query.
func marks(t *testing.T, s site, reason string) int {
	t.Helper()
	return ask[int](t, `SELECT count(*) FROM events JOIN spaces ON spaces.key = events.space WHERE spaces.id = $1 AND body::json->>'reason' = $2`, s.space, reason)
}

func kinds(t *testing.T, s site, kind lockkeeper.EventKind, holder string) int {
	t.Helper()
	return ask[int](t, `SELECT count(*) FROM events JOIN spaces ON spaces.key = events.space
 WHERE spaces.id = $1 AND body::json->>'kind' = $2 AND body::json->>'holder' = $3`, s.space, string(kind), holder)
}

func TestPostgresNotThere(t *testing.T) {
	s, p, m, px := outage(t, 3*time.Second)
	px.refuse(true)
	px.cut()
	wantStore(t, p.Update(t.Context(), marking("while down", nil)), "cannot reach")
	wantStore(t, p.View(t.Context(), func(store.Reader) error { return nil }), "cannot reach")
	_, err := m.TryAcquire(t.Context(), request("h", "a"))
	wantStore(t, err, "cannot reach")
	_, err = px.through(s).open(t.Context(), Options{})
	wantStore(t, err, "cannot reach")
	if strings.Contains(err.Error(), "@") {
		t.Errorf("the message has the URL's secrets: %v", err)
	}
	px.refuse(false)
	mark(t, p, "back")
	if n := marks(t, s, "while down"); n != 0 {
		t.Errorf("%d events of a transaction that was refused", n)
	}
}

func TestPostgresDeadConnectionsAreReplaced(t *testing.T) {
	s, p, _, px := outage(t, hung)
	for i := range 5 {
		px.cut()
		mark(t, p, fmt.Sprint("after cut ", i))
		if n := marks(t, s, fmt.Sprint("after cut ", i)); n != 1 {
			t.Errorf("cut %d: %d events, want 1", i, n)
		}
	}
}

// The commit succeeds but its answer is lost.
func TestPostgresCommitAnswerLost(t *testing.T) {
	s, p, _, px := outage(t, hung)
	woken, err := p.Listen(t.Context(), "some-id")
	if err != nil {
		t.Fatal(err)
	}
	defer woken.Close()
	runs := 0
	err = p.Update(t.Context(), func(tx store.Tx) error {
		runs++
		tx.Wake("some-id")
		return marking("lost", func() { px.arm(fault{forward: true}) })(tx)
	})
	if err != nil {
		t.Errorf("it was committed, and Update says %v", err)
	}
	if n := marks(t, s, "lost"); n != 1 || runs != 1 {
		t.Errorf("%d events after %d runs, want one of each", n, runs)
	}
	select {
	case <-woken.Woken():
	case <-time.After(hung):
		t.Error("a commit that was looked up woke no listener")
	}
}

// The commit never reached the server.
func TestPostgresCommitNotSent(t *testing.T) {
	s, p, _, px := outage(t, hung)
	runs := 0
	err := p.Update(t.Context(), marking("not sent", func() { runs++; px.arm(fault{}) }))
	wantStore(t, err, "nothing was changed")
	if n := marks(t, s, "not sent"); n != 0 || runs != 1 {
		t.Errorf("%d events after %d runs, want none after one", n, runs)
	}
	mark(t, p, "next")
}

// The server receives the commit long after the client was disconnected. Until the server has
// decided, the store must report neither success nor failure.
func TestPostgresCommitLate(t *testing.T) {
	s, p, _, px := outage(t, hung)
	late := make(chan struct{})
	time.AfterFunc(300*time.Millisecond, func() { close(late) })
	if err := p.Update(t.Context(), marking("late", func() { px.arm(fault{late: late}) })); err != nil {
		t.Errorf("it was committed, and Update says %v", err)
	}
	if n := marks(t, s, "late"); n != 1 {
		t.Errorf("%d events, want 1", n)
	}
}

// A caller that cancels during its commit gets the actual outcome.
func TestPostgresCanceledDuringCommit(t *testing.T) {
	s, p, _, px := outage(t, hung)
	ctx, cancel := context.WithCancel(t.Context())
	late := make(chan struct{})
	err := p.Update(ctx, marking("cancelled", func() {
		px.arm(fault{late: late})
		time.AfterFunc(100*time.Millisecond, cancel)
		time.AfterFunc(300*time.Millisecond, func() { close(late) })
	}))
	if n := marks(t, s, "cancelled"); (err == nil) != (n == 1) {
		t.Errorf("Update says %v, and %d events are there", err, n)
	}
}

func TestPostgresOutcomeUnknown(t *testing.T) {
	s, p, _, px := outage(t, 3*time.Second)
	err := p.Update(t.Context(), marking("unknown", func() {
		px.refuse(true)
		px.arm(fault{forward: true})
	}))
	wantStore(t, err, "is unknown")
	px.refuse(false)
	mark(t, p, "back")
	if n := marks(t, s, "unknown"); n != 1 {
		t.Errorf("%d events, want 1", n)
	}
}

func TestPostgresOutcomeFoundLater(t *testing.T) {
	_, p, _, px := outage(t, hung)
	px.refuse(true)
	time.AfterFunc(200*time.Millisecond, func() { px.refuse(false) })
	if err := p.Update(t.Context(), marking("found", func() { px.arm(fault{forward: true}) })); err != nil {
		t.Errorf("the server came back in time, and Update says %v", err)
	}
}

// More commits lose their connection at once than the pool has connections.
func TestPostgresManyOutcomesAtOnce(t *testing.T) {
	s, p, _, px := outage(t, hung)
	const n = 12
	began := time.Now()
	px.refuse(true)
	time.AfterFunc(300*time.Millisecond, func() { px.refuse(false) })
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() {
			err := p.Update(t.Context(), marking(fmt.Sprint("many ", i), func() { px.arm(fault{forward: true}) }))
			if got := marks(t, s, fmt.Sprint("many ", i)); (err == nil) != (got == 1) {
				t.Errorf("%d: Update says %v, and %d events are there", i, err, got)
			}
		})
	}
	wg.Wait()
	if took := time.Since(began); took > hung*4/5 {
		t.Errorf("took %v: the look-ups waited for each other's connections", took)
	}
}

// The server terminates the session while a transaction is open.
func TestPostgresSessionEnded(t *testing.T) {
	s, p, _, _ := outage(t, hung)
	err := p.Update(t.Context(), marking("ended", func() {
		ask[bool](t, `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'lockkeeper' AND state = 'idle in transaction' AND datname = current_database()`)
	}))
	wantStore(t, err, "")
	if n := marks(t, s, "ended"); n != 0 {
		t.Errorf("%d events, want none", n)
	}
	mark(t, p, "next")
}

func TestPostgresAdmitAnswerLost(t *testing.T) {
	s, _, m, px := outage(t, hung)
	px.arm(fault{forward: true})
	g, err := m.TryAcquire(t.Context(), request("h", "a"))
	if err != nil {
		t.Fatalf("it was granted, and TryAcquire says %v", err)
	}
	if n := kinds(t, s, lockkeeper.EventAcquired, "h"); n != 1 || g.Fence == 0 || g.ExpiresAt.Before(time.Now()) {
		t.Errorf("%d acquired events, grant %+v", n, g.Grant)
	}
	if _, err := m.Renew(t.Context(), g.ID, g.Token); err != nil {
		t.Error(err)
	}
}

func TestPostgresAdmitNotSent(t *testing.T) {
	s, _, m, px := outage(t, hung)
	px.arm(fault{})
	g, err := m.TryAcquire(t.Context(), request("h", "a"))
	if err != nil {
		t.Fatal(err)
	}
	if n := kinds(t, s, lockkeeper.EventAcquired, "h"); n != 1 {
		t.Errorf("%d acquired events, want 1", n)
	}
	if err := g.Release(t.Context()); err != nil {
		t.Error(err)
	}
}

// The server starts an admission after the lookup found none. The admission must have no effect,
// even if the same request was meanwhile granted and released by another call.
func TestPostgresAdmitLate(t *testing.T) {
	s, p, m, px := outage(t, hung)
	late := make(chan struct{})
	px.arm(fault{late: late})
	g, err := m.TryAcquire(t.Context(), request("h", "a"))
	if err != nil {
		t.Fatal(err)
	}
	if err := g.Release(t.Context()); err != nil {
		t.Fatal(err)
	}
	close(late)
	px.ended(1)
	if n := kinds(t, s, lockkeeper.EventAcquired, "h"); n != 1 {
		t.Errorf("%d acquired events, want 1: a grant came into being without a holder", n)
	}
	if _, err := m.TryAcquire(t.Context(), request("k", "a")); err != nil {
		t.Error(err)
	}
	mark(t, p, "next")
}

func TestPostgresAdmitUnknown(t *testing.T) {
	_, _, m, px := outage(t, 3*time.Second) // how long it asks for the outcome, and long enough for a slow server to open
	px.refuse(true)
	px.arm(fault{forward: true})
	_, err := m.TryAcquire(t.Context(), request("h", "a"))
	wantStore(t, err, "is unknown")
	px.refuse(false)
	eventually(t, func() error {
		_, err := m.TryAcquire(t.Context(), request("k", "a"))
		if lock.IsBlocked(err) {
			return nil
		}
		if err == nil {
			t.Fatal("the grant exists, and another got it, too")
		}
		return err
	})
}

func TestPostgresDismissBroken(t *testing.T) {
	for name, f := range map[string]fault{"answer lost": {forward: true}, "not sent": {}} {
		s, _, m, px := outage(t, hung)
		g, err := m.TryAcquire(t.Context(), request("h", "a"))
		if err != nil {
			t.Fatal(err)
		}
		px.arm(f)
		if err := g.Release(t.Context()); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if n := kinds(t, s, lockkeeper.EventReleased, "h"); n != 1 {
			t.Errorf("%s: %d released events, want 1", name, n)
		}
		if _, err := m.TryAcquire(t.Context(), request("k", "a")); err != nil {
			t.Errorf("%s: still held: %v", name, err)
		}
	}
}

// If another physical database takes over under the same name, numbers continue above all that
// the first may have given.
func TestPostgresTakenOver(t *testing.T) {
	s, p, m, px := outage(t, hung)
	before, err := m.TryAcquire(t.Context(), request("h", "a"))
	if err != nil {
		t.Fatal(err)
	}
	ask[int](t, `WITH u AS (UPDATE spaces SET incarnation = 'the one that was lost' WHERE id = $1 RETURNING 1) SELECT count(*) FROM u`, s.space)
	px.cut()
	after, err := m.TryAcquire(t.Context(), request("k", "b"))
	if err != nil {
		t.Fatal(err)
	}
	if after.Fence < before.Fence+epochGap/2 {
		t.Errorf("fence %d after %d is no new epoch", after.Fence, before.Fence)
	}
	px.cut()
	again, err := m.TryAcquire(t.Context(), request("l", "c"))
	if err != nil || again.Fence != after.Fence+1 {
		t.Errorf("fence %d after %d: one more epoch, %v", again.Fence, after.Fence, err)
	}
	mark(t, p, "next")
}

// A failed statement fails its transaction even if the caller ignores the error.
func TestPostgresErrorOverlooked(t *testing.T) {
	s := postgresSite(t)
	p := s.postgres(t, Options{})
	err := p.Update(t.Context(), func(tx store.Tx) error {
		for range 2 {
			if err := tx.Insert(&store.Record{Grant: lockkeeper.Grant{ID: "twice"}, Ticket: 1, State: store.StateHeld}); err != nil {
				return err
			}
		}
		if _, err := tx.Get("twice"); err == nil {
			t.Error("two records with one id")
		}
		return marking("overlooked", nil)(tx)
	})
	wantStore(t, err, "duplicate key")
	if n := marks(t, s, "overlooked"); n != 0 {
		t.Errorf("%d events, want none", n)
	}
}

// shows: GP-8
func TestCallersErrorComesBackAsItIs(t *testing.T) {
	sites(t, func(t *testing.T, s site) {
		st := s.store(t, Options{})
		own := errors.New("the caller's own")
		if err := st.Update(t.Context(), func(store.Tx) error { return own }); err != own {
			t.Errorf("Update: %v", err)
		}
		if err := st.View(t.Context(), func(store.Reader) error { return own }); err != own {
			t.Errorf("View: %v", err)
		}
	})
}

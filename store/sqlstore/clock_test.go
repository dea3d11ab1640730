package sqlstore

import (
	"testing"
	"time"

	"lockkeeper"
	"lockkeeper/lock"
	"lockkeeper/store"
	"lockkeeper/store/storetest"
)

// holds checks whether a path is held. when says at which point of the test.
func holds(t *testing.T, m *lock.Manager, path string, want bool, when string) {
	t.Helper()
	g, err := m.TryAcquire(t.Context(), request("asks", path))
	if err == nil {
		err = g.Release(t.Context())
	}
	if lock.IsBlocked(err) != want || err != nil && !want {
		t.Errorf("%s: held is %v, want %v (%v)", when, !want, want, err)
	}
}

// shows: DL-17 SW-71
func TestWallClockJumps(t *testing.T) {
	for _, jump := range []time.Duration{time.Hour, -time.Hour} {
		sites(t, func(t *testing.T, s site) {
			clock := storetest.NewClock()
			m := lock.New(s.store(t, Options{Clock: clock.Now}), lock.Options{})
			if _, err := m.TryAcquire(t.Context(), request("h", "a")); err != nil { // for 30 minutes
				t.Fatal(err)
			}
			clock.JumpWall(jump)
			holds(t, m, "a", true, "after the jump")
			if n, err := m.Recover(t.Context()); n != 0 || err != nil {
				t.Errorf("the jump freed %d, %v", n, err)
			}
			clock.Advance(30*time.Minute - time.Second)
			holds(t, m, "a", true, "before its time")
			clock.Advance(2 * time.Second)
			holds(t, m, "a", false, "after its time")
		})
	}
}

// A laptop that slept for a night: the wall clock ran, the lease clock did
// not, and no holder lost anything.
func TestSuspend(t *testing.T) {
	s := sqliteSite(t)
	clock := storetest.NewClock()
	m := lock.New(s.store(t, Options{Clock: clock.Now}), lock.Options{})
	g, err := m.TryAcquire(t.Context(), request("h", "a"))
	if err != nil {
		t.Fatal(err)
	}
	clock.Advance(29 * time.Minute)
	clock.JumpWall(9 * time.Hour)
	holds(t, m, "a", true, "awake again")
	if _, err := m.Renew(t.Context(), g.ID, g.Token); err != nil {
		t.Errorf("the holder, awake again: %v", err)
	}
}

// After a reboot of the host, its monotonic clock restarts at a value below or above the stored
// instants.
func TestReboot(t *testing.T) {
	for what, uptime := range map[string]time.Duration{"younger": time.Minute, "older": 1000 * time.Hour} {
		t.Run(what, func(t *testing.T) {
			s := sqliteSite(t)
			clock := storetest.NewClock()
			clock.Advance(10 * time.Hour)
			before, err := s.open(t.Context(), Options{Clock: clock.Now, Boot: "before"})
			if err != nil {
				t.Fatal(err)
			}
			m := lock.New(before, lock.Options{})
			g, err := m.TryAcquire(t.Context(), request("h", "a"))
			if err != nil {
				t.Fatal(err)
			}
			never, err := m.TryAcquire(t.Context(), lockkeeper.Request{Holder: "h", Policy: "person", Locks: write("b")})
			if err != nil {
				t.Fatal(err)
			}
			place, err := m.NewPosition(request("w", "a"))
			if err != nil {
				t.Fatal(err)
			}
			if _, err := place.Poll(t.Context()); err != nil {
				t.Fatal(err)
			}
			if err := before.Close(); err != nil {
				t.Fatal(err)
			}

			now := store.Moment{Lease: lockkeeper.Instant(uptime), Wall: clock.Now().Wall.Add(29 * time.Minute)}
			after := s.store(t, Options{Clock: func() store.Moment { return now }, Boot: "after"})
			m = lock.New(after, lock.Options{})
			grants, err := m.ActiveGrants(t.Context())
			if err != nil || len(grants) != 2 || grants[0].ID != g.ID || grants[1].ID != never.ID || grants[1].ExpiresAt != nil {
				t.Fatalf("grants %+v, %v", grants, err)
			}
			if want := now.Wall.Add(30 * time.Minute); !grants[0].ExpiresAt.Equal(want) {
				t.Errorf("shown as expiring at %v, want %v", grants[0].ExpiresAt, want)
			}
			if n, err := m.Recover(t.Context()); err != nil || n != 1 {
				t.Errorf("recovery freed %d, want the waiter alone, %v", n, err)
			}
			now.Lease = now.Lease.Add(30*time.Minute - time.Second)
			holds(t, m, "a", true, "within a whole lease from the restart on")
			now.Lease = now.Lease.Add(2 * time.Second)
			holds(t, m, "a", false, "after it")
			holds(t, m, "b", true, "what never expires")
		})
	}
}

// A container can open its host's database and see a different boot id. It must not restart
// the leases, or they would never end.
func TestOtherBootIDOfTheSameBoot(t *testing.T) {
	s, clock := sqliteSite(t), storetest.NewClock()
	for i, boot := range []string{"host@1800000000", "container@1800000001", "host@1800000000"} {
		st, err := s.open(t.Context(), Options{Clock: clock.Now, Boot: boot})
		if err != nil {
			t.Fatal(err)
		}
		m := lock.New(st, lock.Options{})
		if i == 0 {
			if _, err := m.TryAcquire(t.Context(), request("h", "a")); err != nil {
				t.Fatal(err)
			}
		}
		holds(t, m, "a", i < 2, boot)
		if err := st.Close(); err != nil {
			t.Fatal(err)
		}
		clock.Advance(16 * time.Minute) // of thirty
	}
}

package storetest

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"lockkeeper"
	"lockkeeper/store"
)

// draft inserts a record with a new ticket.
func draft(tx store.Tx, id string, state store.State, ls []lockkeeper.Lock) *store.Record {
	rec := &store.Record{
		Grant:  lockkeeper.Grant{ID: id, Holder: "h-" + id, Policy: "agent", Locks: lockkeeper.Normalize(ls), AcquiredAt: tx.Now().Wall},
		Ticket: get(tx.Append(lockkeeper.Event{Kind: lockkeeper.EventAcquired, At: tx.Now().Wall, GrantID: id})), State: state,
	}
	check(tx.Insert(rec))
	return rec
}

// ident returns a well-formed id for a number.
func ident(n int) string { return fmt.Sprintf("00000000-0000-4000-8000-%012x", n) }

func update(t *testing.T, s store.Store, fn func(store.Tx)) {
	t.Helper()
	must(t, s.Update(t.Context(), func(tx store.Tx) error { fn(tx); return nil }))
}

func view(t *testing.T, s store.Store, fn func(store.Reader)) {
	t.Helper()
	must(t, s.View(t.Context(), func(r store.Reader) error { fn(r); return nil }))
}

func fetch(t *testing.T, s store.Store, id string) (rec *store.Record) {
	t.Helper()
	view(t, s, func(r store.Reader) { rec = get(r.Get(id)) })
	return rec
}

// differ describes how two records differ, or returns "". It compares instants, because a store
// may use another time zone.
func differ(got, want *store.Record) string {
	if got == nil || want == nil {
		if got == want {
			return ""
		}
		return fmt.Sprintf("got %v, want %v", got, want)
	}
	g, w := *got, *want
	for _, c := range []struct {
		what string
		same bool
	}{
		{"id", g.ID == w.ID}, {"holder", g.Holder == w.Holder}, {"policy", g.Policy == w.Policy},
		{"locks", slices.Equal(g.Locks, w.Locks)}, {"fence", g.Fence == w.Fence},
		{"acquired at", g.AcquiredAt.Equal(w.AcquiredAt)}, {"expires at", g.ExpiresAt.Equal(w.ExpiresAt)},
		{"heartbeat at", g.HeartbeatAt.Equal(w.HeartbeatAt)},
		{"no expiry is the zero time", g.ExpiresAt.IsZero() == w.ExpiresAt.IsZero()},
		{"process", (g.Process == nil) == (w.Process == nil) && (g.Process == nil || *g.Process == *w.Process)},
		{"metadata", maps.Equal(g.Metadata, w.Metadata)}, {"token hash", g.TokenHash == w.TokenHash},
		{"ticket", g.Ticket == w.Ticket}, {"state", g.State == w.State}, {"ttl", g.TTL == w.TTL},
		{"expires", g.Expires == w.Expires}, {"heartbeat", g.Heartbeat == w.Heartbeat},
		{"waits on", g.WaitsOn == w.WaitsOn}, {"blockers", g.Blockers == w.Blockers},
		{"no token", g.Token == ""},
	} {
		if !c.same {
			return fmt.Sprintf("%s: got %+v, want %+v", c.what, g, w)
		}
	}
	return ""
}

// fullRecord returns a record with a value in every field.
func fullRecord(now store.Moment, id string) *store.Record {
	r := &store.Record{
		Grant: lockkeeper.Grant{
			ID: id, Space: "", Holder: `Zoë "quote" 'tick' 名前`, Policy: "dal",
			Locks: lockkeeper.Normalize([]lockkeeper.Lock{
				{Target: lockkeeper.Target{Path: lockkeeper.Root, Kind: lockkeeper.Node}, Mode: lockkeeper.Read},
				{Target: lockkeeper.Target{Path: "app/100%_done/it's.rb", Kind: lockkeeper.File}, Mode: lockkeeper.Write},
				{Target: lockkeeper.Target{Path: "project/p1", Kind: lockkeeper.Tree}, Mode: lockkeeper.Upgradeable},
				{Target: lockkeeper.Target{Path: "lib", Kind: lockkeeper.Dir}, Mode: lockkeeper.Read},
			}),
			Fence: 41, AcquiredAt: now.Wall, ExpiresAt: now.Wall.Add(time.Hour), HeartbeatAt: now.Wall.Add(time.Second),
			Process:  &lockkeeper.Process{Host: "h", Boot: "b", PIDNS: "pid:[1]", PID: 12, Start: 1 << 62, Group: 13},
			Metadata: map[string]string{"why": "because\nof \x01 \"this\"", "": "empty"},
		},
		State: store.StateWaiting, TTL: 90 * time.Minute, Expires: now.Lease.Add(time.Hour), Heartbeat: now.Lease.Add(1),
		WaitsOn: 7, Blockers: 1<<64 - 3,
	}
	for i := range r.TokenHash {
		r.TokenHash[i] = byte(255 - i)
	}
	return r
}

// shows: SW-49 PL-47 DL-14
func testRoundTrip(t *testing.T, f Fixture) {
	clock := NewClock()
	s := open(t, f, clock)
	if s.Space() == "" {
		t.Error("the space has no id")
	}
	rec := fullRecord(clock.Now(), ident(1))
	update(t, s, func(tx store.Tx) {
		if now := tx.Now(); now.Lease != clock.Now().Lease || !now.Wall.Equal(clock.Now().Wall) {
			t.Errorf("a transaction at %v, want %v", now, clock.Now())
		}
		rec.Ticket = get(tx.Append(lockkeeper.Event{Kind: lockkeeper.EventWaiting, At: tx.Now().Wall}))
		check(tx.Insert(rec))
		got := get(tx.Get(rec.ID))
		if d := differ(got, rec); d != "" {
			t.Errorf("inside the transaction: %s", d)
		}
	})
	if d := differ(fetch(t, s, rec.ID), rec); d != "" {
		t.Error(d)
	}
	if got := fetch(t, s, ident(2)); got != nil {
		t.Errorf("an unknown id finds %v", got)
	}
	if f.Second != nil {
		if d := differ(fetch(t, second(t, f, s, clock), rec.ID), rec); d != "" {
			t.Errorf("through a second handle: %s", d)
		}
	}
	for what, again := range map[string]func(*store.Record){
		"id":     func(r *store.Record) { r.Ticket += 1000 },
		"ticket": func(r *store.Record) { r.ID = ident(3) },
	} {
		err := s.Update(t.Context(), func(tx store.Tx) error {
			dup := *rec
			again(&dup)
			return tx.Insert(&dup)
		})
		if err == nil {
			t.Errorf("a second record with the same %s was kept", what)
		}
	}
}

func testSave(t *testing.T, f Fixture) {
	clock := NewClock()
	s := open(t, f, clock)
	var want *store.Record
	update(t, s, func(tx store.Tx) {
		rec := draft(tx, ident(1), store.StateHeld, read("a", "b"))
		next := fullRecord(tx.Now(), rec.ID)
		next.Ticket, next.Locks = rec.Ticket, rec.Locks
		want = next
		check(tx.Save(next))
	})
	if d := differ(fetch(t, s, ident(1)), want); d != "" {
		t.Errorf("saved: %s", d)
	}
	held := fetch(t, s, ident(1)) // must stay readable and unchanged after later transactions
	before := *held
	update(t, s, func(tx store.Tx) {
		cur := get(tx.Get(ident(1)))
		check(tx.SetLocks(cur, write("b", "c")))
		for path, taken := range map[string]bool{"a": false, "b": true, "c": true} {
			if found := overlapping(tx, path); (len(found) == 1) != taken {
				t.Errorf("after SetLocks %s finds %v", path, found)
			}
		}
	})
	if d := differ(held, &before); d != "" {
		t.Errorf("a record that was handed out changed: %s", d)
	}
	want.Locks = write("b", "c")
	if d := differ(fetch(t, s, ident(1)), want); d != "" {
		t.Errorf("with new locks: %s", d)
	}
}

func testDelete(t *testing.T, f Fixture) {
	s := open(t, f, NewClock())
	update(t, s, func(tx store.Tx) {
		for i := 1; i <= 2; i++ {
			draft(tx, ident(i), store.StateHeld, read("a/b", "c"))
		}
	})
	update(t, s, func(tx store.Tx) { check(tx.Delete(get(tx.Get(ident(1))))) })
	view(t, s, func(r store.Reader) {
		if found := overlapping(r, "a"); len(found) != 1 || found[0].Record.ID != ident(2) {
			t.Errorf("found %v, want the record that was not deleted", found)
		}
	})
	if fetch(t, s, ident(1)) != nil {
		t.Error("a deleted record is still there")
	}
	update(t, s, func(tx store.Tx) { // an id may be used again with a new ticket, even in one transaction
		check(tx.Delete(draft(tx, ident(1), store.StateHeld, write("x"))))
		draft(tx, ident(1), store.StateHeld, write("y"))
	})
	if got := fetch(t, s, ident(1)); got == nil || got.Locks[0].Path != "y" {
		t.Errorf("found %v, want the second record with this id", got)
	}
}

// shows: DL-52 DL-53
func testList(t *testing.T, f Fixture) {
	s := open(t, f, NewClock())
	var want []string
	update(t, s, func(tx store.Tx) {
		for i := range 25 {
			rec := draft(tx, ident(i), store.StateHeld, write(fmt.Sprintf("f%d", i)))
			if i%4 == 1 {
				check(tx.Delete(rec))
				continue
			}
			want = append(want, rec.ID)
		}
	})
	view(t, s, func(r store.Reader) {
		for _, limit := range []int{1, 3, 100} {
			var got []string
			for after := uint64(0); ; {
				page := get(r.List(after, limit))
				if len(page) > limit {
					t.Errorf("%d records on a page of %d", len(page), limit)
				}
				for _, rec := range page {
					if rec.Ticket <= after {
						t.Errorf("ticket %d after %d", rec.Ticket, after)
					}
					after = rec.Ticket
					got = append(got, rec.ID)
				}
				if len(page) == 0 {
					break
				}
			}
			if !slices.Equal(got, want) {
				t.Errorf("pages of %d list %v, want %v", limit, got, want)
			}
		}
	})
}

func testWaiters(t *testing.T, f Fixture) {
	s := open(t, f, NewClock())
	update(t, s, func(tx store.Tx) {
		on := draft(tx, ident(0), store.StateHeld, write("a"))
		for i := 1; i <= 5; i++ {
			w := draft(tx, ident(i), store.StateWaiting, write("a"))
			next := *w
			next.WaitsOn = on.Ticket
			if i == 2 {
				next.WaitsOn = w.Ticket - 1
			}
			check(tx.Save(&next))
		}
		w := get(tx.Get(ident(4)))
		next := *w
		next.WaitsOn, next.State = 0, store.StatePromoted
		check(tx.Save(&next))
		check(tx.Delete(get(tx.Get(ident(5)))))
		waiters := get(tx.Waiters(on.Ticket))
		var got []string
		for _, w := range waiters {
			got = append(got, w.ID)
		}
		if want := []string{ident(1), ident(3)}; !slices.Equal(got, want) {
			t.Errorf("waiters %v, want %v", got, want)
		}
	})
}

// testListedAgain lists after every change, in pages and through each handle. A store that
// caches its lists must not return stale records.
func testListedAgain(t *testing.T, f Fixture) {
	clock := NewClock()
	handles := openAll(t, f, clock)
	model := map[string]*store.Record{}
	seed := rand.Uint64()
	t.Log("seed", seed)
	chance := rand.New(rand.NewPCG(seed, 0))
	for step := range 60 * Torture() {
		update(t, handles[chance.IntN(len(handles))], func(tx store.Tx) {
			rec := model[ident(chance.IntN(12))]
			switch draw := chance.IntN(8); {
			case rec == nil:
				rec := draft(tx, ident(freeIdent(model)), store.StateHeld, write(fmt.Sprint("p", step)))
				model[rec.ID] = rec
			case draw == 0:
				delete(model, rec.ID)
				check(tx.Delete(rec))
			case draw == 1:
				next := *rec
				next.Locks = lockkeeper.Normalize(write(fmt.Sprint("q", step), "always"))
				model[rec.ID] = &next
				check(tx.SetLocks(rec, next.Locks))
			default: // change one field
				next := *rec
				other := fullRecord(tx.Now(), rec.ID)
				[]func(){
					func() { next.Holder = fmt.Sprint("h", step) }, func() { next.TokenHash[step%32]++ }, func() { next.Metadata = map[string]string{"n": fmt.Sprint(step)} },
					func() { next.Process = other.Process }, func() { next.Heartbeat++ }, func() { next.State = store.StateLanding }, func() { next.Fence += 1 << 40 },
				}[chance.IntN(7)]()
				model[rec.ID] = &next
				check(tx.Save(&next))
			}
		})
		for _, s := range handles {
			compareListed(t, s, model, 1+chance.IntN(14))
		}
	}
}

func freeIdent(model map[string]*store.Record) (n int) {
	for model[ident(n)] != nil {
		n++
	}
	return n
}

func compareListed(t *testing.T, s store.Store, model map[string]*store.Record, page int) {
	t.Helper()
	var got []*store.Record
	view(t, s, func(r store.Reader) {
		got = nil
		for after, more := uint64(0), true; more; {
			some := get(r.List(after, page))
			got = append(got, some...)
			if more = len(some) == page; more {
				after = some[page-1].Ticket
			}
		}
	})
	if len(got) != len(model) {
		t.Fatalf("%d records are listed, want %d", len(got), len(model))
	}
	for i, rec := range got {
		if d := differ(rec, model[rec.ID]); d != "" {
			t.Fatal(d)
		}
		if i > 0 && got[i-1].Ticket >= rec.Ticket {
			t.Fatalf("ticket %d is listed behind %d", rec.Ticket, got[i-1].Ticket)
		}
	}
}

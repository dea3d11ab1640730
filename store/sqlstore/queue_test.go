package sqlstore

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"lockkeeper"
	"lockkeeper/lock"
	"lockkeeper/store"
	"lockkeeper/store/storetest"
)

func enqueue(tx store.Tx, it lockkeeper.Item) (*lockkeeper.Item, error) {
	seq, err := tx.Append(lockkeeper.Event{Kind: lockkeeper.EventQueued, At: tx.Now().Wall})
	it.Seq = seq
	if it.ID == "" {
		it.ID = fmt.Sprint("item-", seq)
	}
	if it.Status == "" {
		it.Status = lockkeeper.ItemQueued
	}
	return &it, errors.Join(err, tx.InsertItem(&it))
}

// itemPlans returns the item queries that must use an index, so that they read few rows of a
// large table.
func itemPlans(key int64) map[string]plan {
	const pg = "Cond: (((space + 0) = '1'::bigint)"
	plans := map[string]plan{
		"id":           {itemSQL, []any{key, "i"}, "items USING INDEX items_id (id=? AND <expr>=?)", "Cond: ((id = 'i'::text) AND ((space + 0) = ", true},
		"key":          {itemWithKeySQL, []any{key, "k"}, "items USING INDEX items_key (key=? AND <expr>=?)", "Cond: ((key = 'k'::text) AND ((space + 0) = ", true},
		"ready":        {firstReadySQL, []any{key, "r"}, "items USING INDEX items_ready (<expr>=? AND root=?)", pg + " AND (root = 'r'::text))", true},
		"waiting":      {firstWaitingSQL, []any{key, "p"}, "items USING INDEX items_parked (<expr>=? AND parked_on=?)", pg + " AND (parked_on = 'p'::text))", true},
		"next ready":   {nextReadySQL, []any{key, "r", int64(3), int64(2)}, "items USING INDEX items_ready (<expr>=? AND (root,standing,rank)>(?,?,?))", pg + " AND (ROW(root, standing, rank) >= ROW('r'::text, '3'::bigint, '2'::bigint)))", true},
		"next waiting": {nextWaitingSQL, []any{key, "p", int64(3), int64(2)}, "items USING INDEX items_parked (<expr>=? AND (parked_on,standing,rank)>(?,?,?))", pg + " AND (ROW(parked_on, standing, rank) >= ROW('p'::text, '3'::bigint, '2'::bigint)))", true},
		"wait keys":    {waitKeysSQL, []any{key, "p"}, "i USING INDEX items_parked (<expr>=? AND parked_on>?)", pg + " AND (parked_on >= 'p'::text))", false},
		"next due":     {nextCheckSQL, []any{key}, "items USING COVERING INDEX items_due (<expr>=? AND due>?)", "using items_due", true},
		"due":          {itemsToCheckSQL, []any{key, int64(7), int64(2)}, "items USING INDEX items_due (<expr>=? AND due>? AND due<?)", pg + " AND (due <= '7'::bigint))", true},
		"old":          {oldItemsSQL, []any{key, int64(7), int64(2)}, "items USING INDEX items_status (<expr>=? AND status=?)", pg + " AND (status = 'completed'::text))", true},
	}
	add := func(name string, q store.ItemQuery, sqlite, postgres string) {
		sql, args := itemsSQL(key, q)
		plans[name] = plan{sql, args, sqlite, postgres, true}
	}
	add("page", store.ItemQuery{After: 7, Limit: 2}, "items USING INTEGER PRIMARY KEY (rowid>?)", "AND (seq > '7'::bigint))")
	add("last page", store.ItemQuery{After: 7, Limit: 2, Latest: true}, "items USING INTEGER PRIMARY KEY (rowid<?)", "AND (seq < '7'::bigint))")
	add("dispatched", store.ItemQuery{Status: lockkeeper.ItemDispatched, Limit: 2}, "items USING INDEX items_status (<expr>=? AND status=?)", pg+" AND (status = 'dispatched'::text))")
	add("page of dispatched", store.ItemQuery{Status: lockkeeper.ItemDispatched, After: 7, Limit: 2},
		"items USING INDEX items_status (<expr>=? AND status=? AND rowid>?)", pg+" AND (status = 'dispatched'::text) AND (seq > '7'::bigint))")
	add("last page of completed", store.ItemQuery{Status: lockkeeper.ItemCompleted, After: 7, Limit: 2, Latest: true},
		"items USING INDEX items_status (<expr>=? AND status=? AND rowid<?)", pg+" AND (status = 'completed'::text) AND (seq < '7'::bigint))")
	return plans
}

func TestItemPlansUseIndexes(t *testing.T) {
	plansUseIndexes(t, []string{"items"}, itemPlans, func(tx store.Tx, i int) error {
		it := lockkeeper.Item{Key: fmt.Sprint("k", i), Root: "r", Rank: i % 5, Stage: lockkeeper.StageReady}
		switch i % 10 {
		case 1, 2, 3:
			it.Stage, it.WaitsOn, it.CheckAt = lockkeeper.StageWaiting, fmt.Sprint("p", i%7), lockkeeper.Instant(i)
		case 4:
			it.Stage, it.Status = lockkeeper.StageRunning, lockkeeper.ItemDispatched
		case 5, 6, 7, 8, 9:
			it.Stage, it.Status = lockkeeper.StageEnded, lockkeeper.ItemCompleted
		}
		_, err := enqueue(tx, it)
		return err
	})
}

// Saving an item that the same transaction has read or queued costs no extra round trip.
func TestPostgresItemIsKeptBack(t *testing.T) {
	p := postgresSite(t).postgres(t, Options{})
	err := p.Update(t.Context(), func(lt store.Tx) error {
		queued := func() int { return len(lt.(*tx).session.(*pgSession).queued) }
		before := queued()
		it, err := enqueue(lt, lockkeeper.Item{Stage: lockkeeper.StageReady})
		if err != nil {
			return err
		}
		if err := errors.Join(lt.SaveItem(it), lt.TakeSlots("p", 1), lt.SetTurn("p", 1, 1), lt.PutWorker(lockkeeper.Worker{ID: "w"})); err != nil {
			return err
		}
		if n := queued() - before; n != 6 { // event, item, its change, slots, turn, worker
			t.Errorf("%d statements are kept back, want 6", n)
		}
		if it, err = lt.FirstReady(""); err != nil {
			return err
		}
		if err := lt.SaveItem(it); err != nil {
			return err
		}
		if n := queued(); n != 1 {
			t.Errorf("%d statements are kept back, want 1", n)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// While an item waits on any lock, the fast path leaves releases to the engine. Afterwards it
// handles them again.
func TestPostgresDismissLeavesParkedItemsToTheEngine(t *testing.T) {
	s := postgresSite(t)
	p := s.postgres(t, Options{})
	m := lock.New(p, lock.Options{})
	wait := func(id, on string) {
		t.Helper()
		err := p.Update(t.Context(), func(tx store.Tx) error {
			it, err := tx.Item(id)
			if err != nil {
				return err
			}
			if it == nil {
				_, err = enqueue(tx, lockkeeper.Item{ID: id, Stage: lockkeeper.StageWaiting, WaitsOn: on})
				return err
			}
			next := it.Clone()
			next.WaitsOn = on
			return tx.SaveItem(next)
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		on   string
		done bool
	}{{store.OnPool("p"), true}, {store.OnPath(lockkeeper.Write, "elsewhere"), false}, {store.OnGrant("g"), false}, {store.OnItem("i"), true}} {
		wait("it", c.on)
		g, err := m.TryAcquire(t.Context(), request("h", "a"))
		if err != nil {
			t.Fatal(err)
		}
		var hash [32]byte
		err = p.View(t.Context(), func(r store.Reader) error {
			rec, err := r.Get(g.ID)
			hash = rec.TokenHash
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		done, err := p.TryRelease(t.Context(), g.ID, hash)
		if err != nil || done != c.done {
			t.Errorf("waiting on %s: released %v, %v, want %v", c.on, done, err, c.done)
		}
		if !done {
			if err := g.Release(t.Context()); err != nil {
				t.Error(err)
			}
		}
		holds(t, m, "a", false, "released")
	}
}

// After a restart of the host no worker is alive, and every item that waited for a time is due
// now.
func TestRebootRestartsTheQueue(t *testing.T) {
	s := sqliteSite(t)
	clock := storetest.NewClock()
	before := s.store(t, Options{Clock: clock.Now, Boot: "before"})
	waiting := lockkeeper.Item{ID: "waiting", Stage: lockkeeper.StageWaiting, WaitsOn: store.OnPath(lockkeeper.Write, "a"), Since: 50, CheckAt: clock.Now().Lease.Add(time.Hour), Blocked: time.Minute}
	err := before.Update(t.Context(), func(tx store.Tx) error {
		_, err1 := enqueue(tx, waiting)
		_, err2 := enqueue(tx, lockkeeper.Item{ID: "ready", Stage: lockkeeper.StageReady, FirstSince: 50, Blocked: time.Second})
		return errors.Join(err1, err2, tx.PutWorker(lockkeeper.Worker{ID: "w", Node: "n", Expires: clock.Now().Lease.Add(time.Hour)}))
	})
	if err != nil {
		t.Fatal(err)
	}
	now := store.Moment{Lease: 1000, Wall: clock.Now().Wall.Add(24 * time.Hour)}
	after := s.store(t, Options{Clock: func() store.Moment { return now }, Boot: "after"})
	err = after.Update(t.Context(), func(tx store.Tx) error {
		for _, want := range []lockkeeper.Item{
			{ID: "waiting", Since: 1000, CheckAt: 1000, Blocked: time.Minute, WaitsOn: waiting.WaitsOn, Stage: lockkeeper.StageWaiting}, {ID: "ready", Stage: lockkeeper.StageReady, FirstSince: 1000, Blocked: time.Second},
		} {
			it, err := tx.Item(want.ID)
			if err != nil {
				return err
			}
			if it.Since != want.Since || it.FirstSince != want.FirstSince || it.CheckAt != want.CheckAt || it.Blocked != want.Blocked || it.WaitsOn != want.WaitsOn || it.Stage != want.Stage {
				t.Errorf("got %+v, want %+v", it, want)
			}
		}
		due, err := tx.NextCheck()
		workers, err2 := tx.Workers()
		if due != 1000 || len(workers) != 1 || workers[0].Expires != 1000 || workers[0].Node != "n" || !tx.AnyWaitsOnLock() {
			t.Errorf("due %d, workers %+v, waiting %v", due, workers, tx.AnyWaitsOnLock())
		}
		return errors.Join(err, err2)
	})
	if err != nil {
		t.Fatal(err)
	}
}

// The number of rows that a tick reads does not grow with the number of items waiting for slots.
func TestSlotLeadersReadFewRows(t *testing.T) {
	s := sqliteSite(t)
	st := s.store(t, Options{})
	took := func() time.Duration {
		t.Helper()
		best := time.Hour
		err := st.View(t.Context(), func(r store.Reader) error {
			for range 50 {
				began := time.Now()
				leaders, err := r.SlotLeaders()
				if err != nil || len(leaders) != 6 {
					t.Fatalf("%d leaders, %v", len(leaders), err)
				}
				best = min(best, time.Since(began))
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		return best
	}
	fill := func(n int) {
		t.Helper()
		err := st.Update(t.Context(), func(tx store.Tx) error {
			for i := range n {
				it := lockkeeper.Item{Rank: i % 3, Turn: uint64(i), Stage: lockkeeper.StageReady}
				if i%2 == 0 {
					it.Stage, it.WaitsOn = lockkeeper.StageWaiting, store.OnPool("claude")
				}
				if _, err := enqueue(tx, it); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	fill(12)
	few := took()
	fill(9_988)
	if many := took(); many > 5*few {
		t.Errorf("%s with 12 items, %s with 10,000", few, many)
	} else {
		t.Logf("%s with 12 items, %s with 10,000", few, many)
	}
}

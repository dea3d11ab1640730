package storetest

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"lockkeeper"
	"lockkeeper/store"
)

// someItem returns a random item.
func someItem(rnd *rand.Rand) lockkeeper.Item {
	return lockkeeper.Item{
		Status:    []lockkeeper.ItemStatus{lockkeeper.ItemQueued, lockkeeper.ItemDispatched}[rnd.IntN(2)],
		Escalated: rnd.IntN(3) == 0, Rank: rnd.IntN(4) - 1, Turn: uint64(rnd.IntN(5) * 40), Chain: time.Duration(rnd.IntN(4)) * time.Second, Root: []string{"", "a", "b"}[rnd.IntN(3)],
	}
}

// shows: SW-31 PL-51 CF-24
func testReadyLine(t *testing.T, f Fixture) {
	s := open(t, f, NewClock())
	rnd := rand.New(rand.NewPCG(seedOf(t), 1))
	lines := map[string][]*lockkeeper.Item{}
	for range 150 {
		it := queue(t, s, someItem(rnd))[0]
		lines[it.Root] = append(lines[it.Root], it)
	}
	for _, line := range lines {
		slices.SortFunc(line, lockkeeper.CompareItems)
	}
	update(t, s, func(tx store.Tx) {
		for root, line := range lines {
			for _, want := range line {
				finds(t, fmt.Sprintf("the first item of %q", root), get(tx.FirstReady(root)), want)
				next := want.Clone()
				next.Status, next.Stage = lockkeeper.ItemDispatched, lockkeeper.StageRunning
				check(tx.SaveItem(next))
			}
			finds(t, "after the last", get(tx.FirstReady(root)), nil)
		}
	})
}

// shows: SW-31 CF-24
func testWaitingOrder(t *testing.T, f Fixture) {
	s := open(t, f, NewClock())
	rnd := rand.New(rand.NewPCG(seedOf(t), 2))
	keys := []string{store.OnPath(lockkeeper.Write, "a"), store.OnPath(lockkeeper.Write, "a/b"), store.OnPool("p"), store.OnItem("i"), store.OnGrant("g")}
	lines := map[string][]*lockkeeper.Item{}
	for range 100 {
		it := someItem(rnd)
		it.Stage, it.WaitsOn = lockkeeper.StageWaiting, keys[rnd.IntN(len(keys))]
		lines[it.WaitsOn] = append(lines[it.WaitsOn], queue(t, s, it)...)
	}
	queue(t, s, someItem(rnd)) // a ready item waits on no key
	update(t, s, func(tx store.Tx) {
		for key, line := range lines {
			slices.SortFunc(line, lockkeeper.CompareItems)
			for i, want := range line {
				finds(t, "first on "+key, get(tx.FirstWaiting(key)), want)
				next := want.Clone()
				if i%2 == 0 {
					next.Stage = lockkeeper.StageEnded
				} else {
					next.WaitsOn = store.OnPool("elsewhere")
				}
				check(tx.SaveItem(next))
			}
			finds(t, "after the last", get(tx.FirstWaiting(key)), nil)
		}
	})
}

func testWaitKeys(t *testing.T, f Fixture) {
	s := open(t, f, NewClock())
	keys := []string{"path:", "path:a", "path:a%", "path:a/b", "path:a/b/c", "path:a/ü", "path:a0", "path:a_b", "path:b", "pool:a", "item:a"}
	for _, n := range hostile {
		keys = append(keys, store.OnPath(lockkeeper.Write, n))
	}
	for i := range 60 {
		queue(t, s, lockkeeper.Item{Stage: lockkeeper.StageWaiting, WaitsOn: keys[i%len(keys)]})
	}
	queue(t, s, lockkeeper.Item{Stage: lockkeeper.StageReady, WokenBy: "path:a/gone"})
	view(t, s, func(r store.Reader) {
		for _, prefix := range []string{"", "path:", "path:a", "path:a/", "path:a%", "path:a_", "p", "pool:a", "pool:ab", "q"} {
			var want []string
			for _, key := range keys {
				if strings.HasPrefix(key, prefix) {
					want = append(want, key)
				}
			}
			slices.Sort(want)
			if got, err := r.WaitKeys(prefix); err != nil || !slices.Equal(got, want) {
				t.Errorf("keys with %q: got %q, %v, want %q", prefix, got, err, want)
			}
		}
	})
}

// shows: GP-14
func testWake(t *testing.T, f Fixture) {
	clock := NewClock()
	s := open(t, f, clock)
	key := store.OnPath(lockkeeper.Write, "a")
	waits := lockkeeper.Item{Stage: lockkeeper.StageWaiting, WaitsOn: key, Since: clock.Now().Lease, FirstSince: clock.Now().Lease, Blocked: time.Second, CheckAt: clock.Now().Lease.Add(time.Hour)}
	urgent := waits
	urgent.Escalated = true
	items := queue(t, s, waits, urgent, waits)
	listener := get(s.Listen(t.Context(), store.QueueWakeID))
	defer listener.Close()
	clock.Advance(time.Minute)
	for _, want := range []*lockkeeper.Item{items[1], items[0]} {
		update(t, s, func(tx store.Tx) {
			woken := get(store.WakeFirst(tx, key))
			if !woken {
				t.Error("no item was woken")
			}
		})
		ready := want.Clone()
		ready.Stage, ready.WaitsOn, ready.WokenBy, ready.Since, ready.FirstSince, ready.CheckAt, ready.Blocked = lockkeeper.StageReady, "", key, 0, 0, 0, time.Minute+time.Second
		view(t, s, func(r store.Reader) { finds(t, "woken", get(r.Item(want.ID)), ready) })
		select {
		case <-listener.Woken():
		case <-time.After(wakeWithin):
			t.Fatal("the listener of the queue was not woken")
		}
	}
}

func testAnyWaitsOnLock(t *testing.T, f Fixture) {
	clock := NewClock()
	handles := openAll(t, f, clock)
	steps := 0
	// step makes a change through each handle in turn, and checks the result through all of
	// them.
	step := func(want bool, change func(store.Tx) error) {
		t.Helper()
		steps++
		err := handles[steps%len(handles)].Update(t.Context(), func(tx store.Tx) error {
			err := change(tx)
			if got := tx.AnyWaitsOnLock(); err == nil && got != want {
				t.Errorf("in the transaction: %v, want %v", got, want)
			}
			return err
		})
		if err != nil && !errors.Is(err, errUndo) {
			t.Fatal(err)
		}
		for _, h := range handles {
			update(t, h, func(tx store.Tx) {
				if got := tx.AnyWaitsOnLock(); got != want {
					t.Errorf("after it: %v, want %v", got, want)
				}
			})
		}
	}
	wait := func(id, on string) func(store.Tx) error {
		return func(tx store.Tx) error {
			stage := lockkeeper.StageWaiting
			if on == "" {
				stage = lockkeeper.StageReady
			}
			it := get(tx.Item(id))
			if it == nil {
				queued(tx, lockkeeper.Item{ID: id, Stage: stage, WaitsOn: on})
				return nil
			}
			next := it.Clone()
			next.Stage, next.WaitsOn = stage, on
			return tx.SaveItem(next)
		}
	}
	both := func(a, b func(store.Tx) error) func(store.Tx) error {
		return func(tx store.Tx) error { return errors.Join(a(tx), b(tx)) }
	}
	undone := func(tx store.Tx) error { return errUndo }
	path, grant := store.OnPath(lockkeeper.Write, "p"), store.OnGrant("g")
	step(false, wait("a", store.OnPool("p")))
	step(false, wait("b", ""))
	step(true, wait("a", path))
	step(true, wait("a", grant))
	step(true, wait("a", grant))
	step(true, wait("c", path))
	step(true, wait("a", store.OnItem("x")))
	step(true, both(wait("c", ""), undone))
	step(false, wait("c", ""))
	step(false, both(wait("d", path), undone))
	step(false, both(wait("a", path), wait("a", "")))
	step(true, both(wait("a", path), wait("b", path)))
	step(true, func(tx store.Tx) error { _, err := store.WakeFirst(tx, path); return err })
	step(false, func(tx store.Tx) error { _, err := store.WakeFirst(tx, path); return err })
}

func testDue(t *testing.T, f Fixture) {
	s := open(t, f, NewClock())
	var items []lockkeeper.Item
	for _, due := range []lockkeeper.Instant{0, 50, 20, 90, 20, 0, 70, 10} {
		items = append(items, lockkeeper.Item{CheckAt: due})
	}
	all := queue(t, s, items...)
	are := func(now lockkeeper.Instant, limit int, next lockkeeper.Instant, want ...int) {
		t.Helper()
		update(t, s, func(tx store.Tx) {
			got, err := tx.ItemsToCheck(now, limit)
			var due []*lockkeeper.Item
			for _, i := range want {
				due = append(due, all[i])
			}
			if !slices.Equal(numbers(got), numbers(due)) {
				t.Errorf("due at %d: %v, want %v", now, numbers(got), numbers(due))
			}
			first, err2 := tx.NextCheck()
			if first != next {
				t.Errorf("next is due %d, want %d", first, next)
			}
			check(errors.Join(err, err2))
		})
	}
	are(9, 10, 10)
	are(20, 10, 10, 7, 2, 4)
	are(20, 2, 10, 7, 2)
	are(1000, 10, 10, 7, 2, 4, 1, 6, 3)
	save(t, s, all[7], func(it *lockkeeper.Item) { it.CheckAt = 0 })
	save(t, s, all[0], func(it *lockkeeper.Item) { it.CheckAt = 15 })
	save(t, s, all[2], func(it *lockkeeper.Item) { it.CheckAt = 80 })
	are(70, 10, 15, 0, 4, 1, 6)
}

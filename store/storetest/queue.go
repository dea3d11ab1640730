package storetest

import (
	"cmp"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"lockkeeper"
	"lockkeeper/store"
)

var queueTests = []test{
	{"round trip of an item", testItem},
	{"names of every kind in an item", testItemNames},
	{"an item that is not new", testItemTwice},
	{"unknown items", testItemUnknown},
	{"stored items are copies", testItemShared},
	{"pages and a census of items", testItems},
	{"slots of pools", testSlots},
	{"turns of projects", testTurns},
	{"workers", testWorkers},
	{"pruning drops items that completed long ago", testPruneItems},
	{"the order of ready items", testReadyLine},
	{"queues of waiting items", testWaitingOrder},
	{"keys that items wait on", testWaitKeys},
	{"wake", testWake},
	{"whether any item waits on a lock", testAnyWaitsOnLock},
	{"items with a due check", testDue},
	{"random changes", testRandomQueue},
}

func queued(tx store.Tx, it lockkeeper.Item) *lockkeeper.Item {
	it.Seq = get(tx.Append(lockkeeper.Event{Kind: lockkeeper.EventQueued, At: tx.Now().Wall}))
	it.ID = cmp.Or(it.ID, fmt.Sprint("item-", it.Seq))
	it.Status = cmp.Or(it.Status, lockkeeper.ItemQueued)
	it.Stage = cmp.Or(it.Stage, lockkeeper.StageReady)
	check(tx.InsertItem(&it))
	return &it
}

func queue(t *testing.T, s store.Store, items ...lockkeeper.Item) (out []*lockkeeper.Item) {
	t.Helper()
	update(t, s, func(tx store.Tx) {
		for _, it := range items {
			out = append(out, queued(tx, it))
		}
	})
	return out
}

func save(t *testing.T, s store.Store, it *lockkeeper.Item, change func(*lockkeeper.Item)) *lockkeeper.Item {
	t.Helper()
	next := it.Clone()
	change(next)
	update(t, s, func(tx store.Tx) { check(tx.SaveItem(next)) })
	return next
}

// plain returns a normalized copy of an item, so that equal items compare equal: times in UTC,
// and nil for empty lists.
func plain(it *lockkeeper.Item) *lockkeeper.Item {
	if it == nil {
		return nil
	}
	p := it.Clone()
	p.QueuedAt, p.DispatchedAt, p.CompletedAt = p.QueuedAt.UTC(), p.DispatchedAt.UTC(), p.CompletedAt.UTC()
	if len(p.Locks) == 0 {
		p.Locks = nil
	}
	for _, list := range []*[]string{&p.Caps, &p.After, &p.Command, &p.Pools} {
		if len(*list) == 0 {
			*list = nil
		}
	}
	return p
}

func sameItem(t *testing.T, got, want *lockkeeper.Item) {
	t.Helper()
	if g, w := plain(got), plain(want); !reflect.DeepEqual(g, w) {
		t.Errorf("got  %+.2000v\nwant %+.2000v", g, w)
	}
}

// finds checks that a lookup returned an item, or nil.
func finds(t *testing.T, what string, got, want *lockkeeper.Item) {
	t.Helper()
	if g, w := plain(got), plain(want); !reflect.DeepEqual(g, w) {
		t.Fatalf("%s is %+.1000v\nwant %+.1000v", what, g, w)
	}
}

// fullItem returns an item with a value in every field.
func fullItem(now store.Moment) lockkeeper.Item {
	until := now.Wall.Add(time.Hour).UTC()
	return lockkeeper.Item{
		ID: ident(1), Key: "order 7, line 'a'", Workflow: `Zoë "quote"`, Unit: "unit\n1", Project: "名前", Class: "io",
		Locks:  lockkeeper.Normalize(append(write("app/it's.rb", "b"), read("c")...)),
		Policy: "agent", Caps: []string{"api", "two words"}, After: []string{ident(8), ident(9)}, Root: "/srv/a root",
		Command: []string{"sh", "-c", `echo "$1" '%s'`, ""}, Dir: "sub dir/ö", Estimate: time.Minute + 1, By: lockkeeper.Actor{Name: "p", Kind: lockkeeper.ActorPerson},
		Phase: "merge", Rank: -3, Pools: []string{"claude"}, Status: lockkeeper.ItemDispatched, Stage: lockkeeper.StageWaiting, Escalated: true,
		Turn: 1<<63 - 1, Chain: time.Hour + 7, WaitsOn: store.OnPath(lockkeeper.Write, "app/it's.rb"), WokenBy: store.OnPool("claude"), Since: now.Lease, FirstSince: now.Lease + 1, Blocked: time.Hour + 1,
		CheckAt: now.Lease.Add(time.Minute), Blockers: 1<<64 - 5, Retries: 2, Attempts: 3, GrantID: ident(2), Worker: "w 'x'", Slot: 4, AvoidNode: "node-1",
		QueuedAt: now.Wall.Add(-time.Hour - 1), DispatchedAt: now.Wall.Add(time.Nanosecond), CompletedAt: now.Wall.Add(time.Second), Note: "half\tdone",
		Failure: &lockkeeper.Failure{Phase: "merge", Reason: `because "so"`, Waited: time.Minute, Attempts: 4,
			Conflicts: []lockkeeper.ConflictInfo{{Path: "a", Mode: lockkeeper.Write, BlockingPath: "b", BlockingMode: lockkeeper.Read,
				Kind: lockkeeper.Waiting, Holder: "x", GrantID: ident(3), AcquiredAt: now.Wall.UTC(), ExpiresAt: &until}}},
	}
}

// changed returns an item that differs in every field, including those that SaveItem must not
// store.
func changed(it *lockkeeper.Item) lockkeeper.Item {
	c := lockkeeper.Item{ID: it.ID, Seq: it.Seq + 1000, Key: "other", Workflow: "other", Root: "other", Policy: "other", Locks: write("other"), After: []string{"x"},
		Phase: "verify", Rank: 7, Pools: []string{"api", "c p u"}, Status: lockkeeper.ItemError, Stage: lockkeeper.StageEnded, Turn: 5, Estimate: 3, Chain: 13, WaitsOn: store.OnItem("x"),
		WokenBy: "r", Since: 4, FirstSince: 5, Blocked: 6, CheckAt: 8, Blockers: 9, Retries: 10, Attempts: 11, GrantID: "g", Worker: "other", Slot: 12, AvoidNode: "s",
		DispatchedAt: it.DispatchedAt.Add(1), CompletedAt: it.CompletedAt.Add(1), Note: "n", Failure: &lockkeeper.Failure{Phase: "p", Reason: "r"}}
	return c
}

// overlaid returns the expected item after another version (changed) was saved over it.
func overlaid(it *lockkeeper.Item, c lockkeeper.Item) *lockkeeper.Item {
	c.Seq, c.Key, c.Workflow, c.Unit, c.Project, c.Class = it.Seq, it.Key, it.Workflow, it.Unit, it.Project, it.Class
	c.Locks, c.Policy, c.Caps, c.After, c.Root = it.Locks, it.Policy, it.Caps, it.After, it.Root
	c.Command, c.Dir, c.By, c.Estimate, c.QueuedAt = it.Command, it.Dir, it.By, it.Estimate, it.QueuedAt
	return &c
}

// shows: SW-57 SW-58 GP-13
func testItem(t *testing.T, f Fixture) {
	clock := NewClock()
	handles := openAll(t, f, clock)
	s := handles[0]
	full := queue(t, s, fullItem(clock.Now()))[0]
	for i, v := 0, reflect.ValueOf(*full); i < v.NumField(); i++ {
		if v.Field(i).IsZero() {
			t.Errorf("%s is not tried", v.Type().Field(i).Name)
		}
	}
	bare := &lockkeeper.Item{ID: "bare", Seq: full.Seq + 1}
	update(t, s, func(tx store.Tx) { check(tx.InsertItem(bare)) })
	are := func(want ...*lockkeeper.Item) {
		t.Helper()
		for _, h := range handles {
			view(t, h, func(r store.Reader) {
				for _, w := range want {
					finds(t, w.ID, get(r.Item(w.ID)), w)
					if w.Key != "" {
						finds(t, w.Key, get(r.ItemWithKey(w.Key)), w)
					}
				}
				got := get(r.Items(store.ItemQuery{Limit: 10}))
				if len(got) != len(want) {
					t.Fatalf("%d items, want %d", len(got), len(want))
				}
				for i := range got {
					sameItem(t, got[i], want[i])
				}
			})
		}
	}
	are(full, bare)
	other := changed(full)
	update(t, s, func(tx store.Tx) { // this transaction has not read the item
		check(tx.SaveItem(&other))
		finds(t, "in the transaction", get(tx.Item(full.ID)), overlaid(full, other))
	})
	are(overlaid(full, other), bare)
	empty := lockkeeper.Item{ID: full.ID} // resets every field
	update(t, s, func(tx store.Tx) {
		get(tx.Item(full.ID))
		check(tx.SaveItem(&empty))
	})
	are(overlaid(full, empty), bare)
}

func testItemNames(t *testing.T, f Fixture) {
	s := open(t, f, NewClock())
	for i, n := range append(slices.Clone(hostile), strings.Repeat("ö'\"\\\n ", 4096/7), "Robert'); DROP TABLE items;--") {
		in := lockkeeper.Item{ID: n, Key: n, Workflow: n, Unit: n, Project: n, Class: n, Locks: write(n), Policy: n, Caps: []string{n, n}, After: []string{n},
			Root: n, Command: []string{n, n}, Dir: n, By: lockkeeper.Actor{Name: n}, Phase: n, Pools: []string{n, ""}, Stage: lockkeeper.StageWaiting, WaitsOn: n,
			WokenBy: n, GrantID: n, Worker: n, AvoidNode: n, Note: n, Failure: &lockkeeper.Failure{Reason: n}, Rank: i}
		waiting := queue(t, s, in)[0]
		update(t, s, func(tx store.Tx) {
			finds(t, "by id", get(tx.Item(n)), waiting)
			finds(t, "by key", get(tx.ItemWithKey(n)), waiting)
			finds(t, "waiting", get(tx.FirstWaiting(n)), waiting)
			if keys, err := tx.WaitKeys(n); err != nil || !slices.Contains(keys, n) {
				t.Errorf("keys with %q are %q, %v", n, keys, err)
			}
			ready := waiting.Clone()
			check(store.WakeItem(tx, ready))
			finds(t, "ready", get(tx.FirstReady(n)), ready)
			check(errors.Join(tx.TakeSlots(n, i+1), tx.SetTurn(n, i, 9), tx.PutWorker(lockkeeper.Worker{ID: n, Node: n, Roots: []string{n}})))
		})
		view(t, s, func(r store.Reader) {
			taken, turn, workers := get(r.SlotsTaken(n)), get(r.Turn(n, i)), get(r.Workers())
			if taken != i+1 || turn != 9 || !slices.ContainsFunc(workers, func(w lockkeeper.Worker) bool { return w.ID == n && w.Node == n && w.Roots[0] == n }) {
				t.Errorf("%q: %d slots, turn %d, workers %+v", n, taken, turn, workers)
			}
		})
	}
}

func testItemTwice(t *testing.T, f Fixture) {
	s := open(t, f, NewClock())
	first := queue(t, s, lockkeeper.Item{Key: "k"}, lockkeeper.Item{}, lockkeeper.Item{})[0] // several items may have no key
	before := dump(t, s)
	for what, again := range map[string]func(*lockkeeper.Item){
		"id":     func(it *lockkeeper.Item) { it.Seq, it.Key = it.Seq+1000, "" },
		"number": func(it *lockkeeper.Item) { it.ID, it.Key = "another", "" },
		"key":    func(it *lockkeeper.Item) { it.ID, it.Seq = "another", it.Seq+1000 },
	} {
		err := s.Update(t.Context(), func(tx store.Tx) error {
			dup := first.Clone()
			dup.WaitsOn, dup.Stage = store.OnPath(lockkeeper.Write, "a"), lockkeeper.StageWaiting
			again(dup)
			return tx.InsertItem(dup)
		})
		if err == nil {
			t.Errorf("a second item with the same %s was kept", what)
		}
	}
	if after := dump(t, s); after != before {
		t.Errorf("left behind:\n%s\nwant:\n%s", after, before)
	}
	queue(t, s, lockkeeper.Item{Key: "l"})
}

func testItemUnknown(t *testing.T, f Fixture) {
	s := open(t, f, NewClock())
	for range 2 { // in an empty queue and in one with an item
		update(t, s, func(tx store.Tx) {
			for _, name := range []string{"", "unknown"} {
				finds(t, "item", get(tx.Item(name)), nil)
				finds(t, "key", get(tx.ItemWithKey(name)), nil)
				finds(t, "waiting", get(tx.FirstWaiting(name)), nil)
			}
			finds(t, "ready", get(tx.FirstReady("unknown")), nil)
			if woken, err := store.WakeFirst(tx, store.OnPool("unknown")); woken || err != nil {
				t.Errorf("woken %v, %v", woken, err)
			}
			keys, due, items := get(tx.WaitKeys("")), get(tx.NextCheck()), get(tx.ItemsToCheck(1<<62, 10))
			taken, turn, workers := get(tx.SlotsTaken("unknown")), get(tx.Turn("unknown", 1)), get(tx.Workers())
			if len(keys)+int(due)+len(items)+taken+int(turn)+len(workers) > 0 || tx.AnyWaitsOnLock() {
				t.Errorf("keys %v, due %d, %v, taken %d, turn %d, workers %v, waiting %v", keys, due, items, taken, turn, workers, tx.AnyWaitsOnLock())
			}
			check(tx.DeleteWorker("unknown"))
		})
		err := s.Update(t.Context(), func(tx store.Tx) error { return tx.SaveItem(&lockkeeper.Item{ID: "unknown"}) })
		if err == nil || !strings.Contains(err.Error(), "unknown") {
			t.Errorf("an unknown item was saved: %v", err)
		}
		queue(t, s, lockkeeper.Item{})
	}
}

func testItemShared(t *testing.T, f Fixture) {
	s := open(t, f, NewClock())
	it := lockkeeper.Item{ID: "a", Seq: 1, Stage: lockkeeper.StageReady}
	want := it
	spoil := func() { it.Stage, it.Seq, it.WaitsOn, it.Root = lockkeeper.StageWaiting, 99, "path:p", "elsewhere" }
	update(t, s, func(tx store.Tx) {
		check(tx.InsertItem(&it))
		spoil()
	})
	for range 2 {
		view(t, s, func(r store.Reader) { finds(t, "what was stored", get(r.FirstReady("")), &want) })
		want.Note = "saved"
		it = want
		update(t, s, func(tx store.Tx) {
			check(tx.SaveItem(&it))
			spoil()
		})
	}
}

package storetest

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"lockkeeper"
	"lockkeeper/store"
)

// A queueModel is the simplest implementation of a queue.
type queueModel struct {
	items   map[string]*lockkeeper.Item
	slots   map[string]int
	turns   map[int]uint64 // turns of one project by rank
	workers map[string]lockkeeper.Instant
}

func (m queueModel) clone() queueModel {
	return queueModel{maps.Clone(m.items), maps.Clone(m.slots), maps.Clone(m.turns), maps.Clone(m.workers)}
}

// of returns the items that the function some selects, in an order.
func (m queueModel) of(some func(*lockkeeper.Item) bool, order func(a, b *lockkeeper.Item) int) (out []*lockkeeper.Item) {
	for _, it := range m.items {
		if some(it) {
			out = append(out, it)
		}
	}
	slices.SortFunc(out, order)
	return out
}

func firstOf(items []*lockkeeper.Item) *lockkeeper.Item {
	if len(items) == 0 {
		return nil
	}
	return items[0]
}

var (
	modelRoots = []string{"", "a", "b"}
	modelKeys  = []string{store.OnPath(lockkeeper.Write, "a"), store.OnPath(lockkeeper.Write, "a/b"), store.OnPath(lockkeeper.Write, "b"), store.OnPool("p"), store.OnItem("i"), store.OnGrant("g")}
)

// move puts an item into a random state.
func move(rnd *rand.Rand, it *lockkeeper.Item) {
	it.Escalated, it.Rank, it.Turn, it.WaitsOn, it.CheckAt = rnd.IntN(3) == 0, rnd.IntN(3)-1, uint64(rnd.IntN(4)*40), "", 0
	it.Chain = time.Duration(rnd.IntN(4)) * time.Second
	it.Note = fmt.Sprint(rnd.IntN(1000))
	it.Status = []lockkeeper.ItemStatus{lockkeeper.ItemQueued, lockkeeper.ItemDispatched}[rnd.IntN(2)]
	switch rnd.IntN(5) {
	case 0, 1:
		it.Stage = lockkeeper.StageReady
	case 2, 3:
		it.Stage, it.WaitsOn = lockkeeper.StageWaiting, modelKeys[rnd.IntN(len(modelKeys))]
		it.CheckAt = lockkeeper.Instant(rnd.IntN(20))
	default:
		it.Stage, it.Status = lockkeeper.StageRunning, lockkeeper.ItemDispatched
		if rnd.IntN(2) == 0 {
			it.Stage, it.Status = lockkeeper.StageEnded, []lockkeeper.ItemStatus{lockkeeper.ItemCompleted, lockkeeper.ItemError}[rnd.IntN(2)]
		}
	}
}

// change makes one random change in a transaction and in the model, and describes it.
func (m queueModel) change(rnd *rand.Rand, tx store.Tx) (what string, err error) {
	ids := slices.Sorted(maps.Keys(m.items))
	switch n := rnd.IntN(20); {
	case n < 6 || len(ids) == 0:
		it := lockkeeper.Item{Root: modelRoots[rnd.IntN(len(modelRoots))]}
		if rnd.IntN(3) == 0 {
			it.Key = fmt.Sprint("key ", len(ids))
		}
		move(rnd, &it)
		in := queued(tx, it)
		m.items[in.ID] = in
		return "insert " + in.ID, nil
	case n < 14:
		next := m.items[ids[rnd.IntN(len(ids))]].Clone()
		move(rnd, next)
		m.items[next.ID] = next
		return "save " + next.ID, tx.SaveItem(next)
	case n < 16:
		key := modelKeys[rnd.IntN(len(modelKeys))]
		if it := firstOf(m.waitingOn(key)); it != nil {
			next := it.Clone()
			if store.IsOnLock(key) {
				next.StopFirst(tx.Now().Lease)
			}
			next.Stage, next.WokenBy, next.WaitsOn, next.Since, next.CheckAt = lockkeeper.StageReady, key, "", 0, 0
			m.items[next.ID] = next
			if first := firstOf(m.waitingOn(key)); store.IsOnLock(key) && it.FirstSince != 0 && first != nil && first.FirstSince == 0 {
				leader := first.Clone()
				leader.FirstSince, leader.CheckAt = tx.Now().Lease, tx.Now().Lease
				m.items[leader.ID] = leader
			}
		}
		_, err := store.WakeFirst(tx, key)
		return "wake " + key, err
	case n < 17:
		pool, n := fmt.Sprint("pool ", rnd.IntN(3)), rnd.IntN(5)-2
		m.slots[pool] += n
		return "slots of " + pool, tx.TakeSlots(pool, n)
	case n < 18:
		rank, turn := rnd.IntN(3), rnd.Uint64N(100)
		m.turns[rank] = turn
		return fmt.Sprint("turn in ", rank), tx.SetTurn("project", rank, turn)
	case n < 19:
		w := lockkeeper.Worker{ID: fmt.Sprint("w", rnd.IntN(4)), Expires: lockkeeper.Instant(rnd.IntN(100))}
		m.workers[w.ID] = w.Expires
		return "put worker " + w.ID, tx.PutWorker(w)
	default:
		id := fmt.Sprint("w", rnd.IntN(4))
		delete(m.workers, id)
		return "delete worker " + id, tx.DeleteWorker(id)
	}
}

func (m queueModel) waitingOn(key string) []*lockkeeper.Item {
	return m.of(func(it *lockkeeper.Item) bool { return it.Stage == lockkeeper.StageWaiting && it.WaitsOn == key }, lockkeeper.CompareItems)
}

// leaders returns the first item of each precedence and rank that waits for a slot.
func (m queueModel) leaders() (list []*lockkeeper.Item) {
	type leader struct {
		line             string
		precedence, rank int
	}
	add := func(line string, items []*lockkeeper.Item) {
		seen := map[leader]bool{}
		for _, it := range items {
			at := leader{line, it.Precedence(), it.Rank}
			if !seen[at] {
				list = append(list, it)
			}
			seen[at] = true
		}
	}
	for _, root := range modelRoots {
		add(root, m.of(func(it *lockkeeper.Item) bool { return it.Stage == lockkeeper.StageReady && it.Root == root }, lockkeeper.CompareItems))
	}
	for _, key := range modelKeys {
		if key == store.OnPool("p") {
			add(key, m.waitingOn(key))
		}
	}
	return list
}

// agrees compares the answers of all queries.
func (m queueModel) agrees(t *testing.T, r store.Reader) {
	t.Helper()
	bySeq := func(a, b *lockkeeper.Item) int { return cmp.Compare(a.Seq, b.Seq) }
	want := m.of(func(*lockkeeper.Item) bool { return true }, bySeq)
	got, err := r.Items(store.ItemQuery{Limit: 1 << 30})
	if err != nil || len(got) != len(want) {
		t.Fatalf("%d items, %v, want %d", len(got), err, len(want))
	}
	for i := range got {
		finds(t, "item", got[i], want[i])
	}
	if n, err := r.Census(); err != nil || n != census(want) {
		t.Fatalf("census %+v, %v, want %+v", n, err, census(want))
	}
	for _, root := range modelRoots {
		line := m.of(func(it *lockkeeper.Item) bool { return it.Stage == lockkeeper.StageReady && it.Root == root }, lockkeeper.CompareItems)
		finds(t, fmt.Sprintf("the first item of %q", root), get(r.FirstReady(root)), firstOf(line))
	}
	leaders, err := r.SlotLeaders()
	wanted := m.leaders()
	if err != nil || len(leaders) != len(wanted) {
		t.Fatalf("%d leaders, %v, want %d", len(leaders), err, len(wanted))
	}
	for i := range leaders {
		finds(t, "leader", leaders[i], wanted[i])
	}
	var keys []string
	for _, key := range modelKeys {
		line := m.waitingOn(key)
		finds(t, "first on "+key, get(r.FirstWaiting(key)), firstOf(line))
		if len(line) > 0 && strings.HasPrefix(key, "path:") {
			keys = append(keys, key)
		}
	}
	if got, err := r.WaitKeys("path:"); err != nil || !slices.Equal(got, keys) {
		t.Fatalf("keys %q, %v, want %q", got, err, keys)
	}
	due := m.of(func(it *lockkeeper.Item) bool { return it.CheckAt > 0 }, func(a, b *lockkeeper.Item) int { return cmp.Or(cmp.Compare(a.CheckAt, b.CheckAt), bySeq(a, b)) })
	next := lockkeeper.Instant(0)
	if len(due) > 0 {
		next = due[0].CheckAt
	}
	if got, err := r.NextCheck(); err != nil || got != next {
		t.Fatalf("next due %d, %v, want %d", got, err, next)
	}
	m.agreesBeside(t, r)
	if tx, ok := r.(store.Tx); ok {
		all, err := tx.ItemsToCheck(1<<60, 1<<30)
		if err != nil || !slices.Equal(numbers(all), numbers(due)) {
			t.Fatalf("due %v, %v, want %v", numbers(all), err, numbers(due))
		}
	}
}

// agreesBeside compares the state other than the items.
func (m queueModel) agreesBeside(t *testing.T, r store.Reader) {
	t.Helper()
	for pool, want := range m.slots {
		if n, err := r.SlotsTaken(pool); err != nil || n != want {
			t.Fatalf("%s: %d, %v, want %d", pool, n, err, want)
		}
	}
	for rank, want := range m.turns {
		if n, err := r.Turn("project", rank); err != nil || n != want {
			t.Fatalf("turn in %d: %d, %v, want %d", rank, n, err, want)
		}
	}
	workers, err := r.Workers()
	if err != nil || len(workers) != len(m.workers) {
		t.Fatalf("workers %+v, %v, want %v", workers, err, m.workers)
	}
	for _, w := range workers {
		if expires, there := m.workers[w.ID]; !there || expires != w.Expires {
			t.Fatalf("workers %+v, want %v", workers, m.workers)
		}
	}
}

// testRandomQueue compares random transactions, some of which fail, with the model, during each
// transaction and after it.
//
// shows: SW-31 PL-51 CF-24 DL-3
func testRandomQueue(t *testing.T, f Fixture) {
	rnd := rand.New(rand.NewPCG(seedOf(t), 3))
	for range Torture() {
		randomQueue(t, f, rnd)
	}
}

func randomQueue(t *testing.T, f Fixture, rnd *rand.Rand) {
	clock := NewClock()
	handles := openAll(t, f, clock)
	model := queueModel{map[string]*lockkeeper.Item{}, map[string]int{}, map[int]uint64{}, map[string]lockkeeper.Instant{}}
	for round := range min(f.Random, 800) {
		next, fails := model.clone(), rnd.IntN(4) == 0
		var did []string
		err := handles[rnd.IntN(len(handles))].Update(t.Context(), func(tx store.Tx) error {
			for range 1 + rnd.IntN(4) {
				what, err := next.change(rnd, tx)
				did = append(did, what)
				if err != nil {
					return err
				}
			}
			if round%8 == 0 {
				next.agrees(t, tx)
			}
			if fails {
				return errUndo
			}
			return nil
		})
		if err != nil && !errors.Is(err, errUndo) {
			t.Fatalf("round %d, %v: %v", round, did, err)
		}
		if !fails {
			model = next
		}
		h := handles[rnd.IntN(len(handles))]
		if round%4 == 0 {
			view(t, h, func(r store.Reader) { model.agrees(t, r) })
		}
		update(t, h, func(tx store.Tx) {
			waiting := firstOf(model.of(func(it *lockkeeper.Item) bool { return store.IsOnLock(it.WaitsOn) }, lockkeeper.CompareItems)) != nil
			if tx.AnyWaitsOnLock() != waiting {
				t.Fatalf("round %d, %v: an item waits on a lock: %v, want %v", round, did, tx.AnyWaitsOnLock(), waiting)
			}
		})
	}
}

package storetest

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"testing"
	"time"

	"lockkeeper"
	"lockkeeper/store"
)

// testItems compares each query with a filter over all items.
func testItems(t *testing.T, f Fixture) {
	s := open(t, f, NewClock())
	statuses := []lockkeeper.ItemStatus{lockkeeper.ItemQueued, lockkeeper.ItemDispatched, lockkeeper.ItemCompleted, lockkeeper.ItemError}
	stages := map[lockkeeper.ItemStatus][]lockkeeper.ItemStage{
		lockkeeper.ItemQueued:     {lockkeeper.StageReady, lockkeeper.StageWaiting},
		lockkeeper.ItemDispatched: {lockkeeper.StageReady, lockkeeper.StageWaiting, lockkeeper.StageRunning},
		lockkeeper.ItemCompleted:  {lockkeeper.StageEnded},
		lockkeeper.ItemError:      {lockkeeper.StageEnded},
	}
	var items []lockkeeper.Item
	for i := range 40 {
		status := statuses[i*i%7%4]
		items = append(items, lockkeeper.Item{Status: status, Stage: stages[status][i%len(stages[status])]})
	}
	all := queue(t, s, items...)
	want := census(all)
	view(t, s, func(r store.Reader) {
		for _, status := range append(statuses, "", "unknown") {
			for _, after := range []uint64{0, 1, all[3].Seq, all[17].Seq, all[39].Seq, all[39].Seq + 9} {
				for _, limit := range []int{1, 7, 1000} {
					for _, latest := range []bool{false, true} {
						q := store.ItemQuery{After: after, Status: status, Limit: limit, Latest: latest}
						got := get(r.Items(q))
						if got, want := numbers(got), numbers(selected(q, all)); !slices.Equal(got, want) {
							t.Errorf("%+v: got %v, want %v", q, got, want)
						}
					}
				}
			}
		}
		got := get(r.Census())
		if got != want || got.Queued() != want.Ready+want.Waiting {
			t.Errorf("census %+v, want %+v", got, want)
		}
	})
}

// selected answers an ItemQuery from items in numeric order.
func selected(q store.ItemQuery, all []*lockkeeper.Item) (out []*lockkeeper.Item) {
	for _, it := range all {
		past := it.Seq > q.After
		if q.Latest {
			past = q.After == 0 || it.Seq < q.After
		}
		if past && (q.Status == "" || q.Status == it.Status) {
			out = append(out, it)
		}
	}
	if q.Latest {
		slices.Reverse(out)
	}
	return out[:min(len(out), q.Limit)]
}

func numbers(items []*lockkeeper.Item) (out []uint64) {
	for _, it := range items {
		out = append(out, it.Seq)
	}
	return out
}

func census(all []*lockkeeper.Item) (c store.Census) {
	for _, it := range all {
		switch {
		case it.Status == lockkeeper.ItemDispatched:
			c.Running++
		case it.Stage == lockkeeper.StageReady:
			c.Ready++
		case it.Stage == lockkeeper.StageWaiting:
			c.Waiting++
		case it.Status == lockkeeper.ItemCompleted:
			c.Completed++
		default:
			c.Failed++
		}
	}
	return c
}

func testSlots(t *testing.T, f Fixture) {
	s := open(t, f, NewClock())
	taken := func(r store.Reader, pool string, want int) {
		t.Helper()
		if n, err := r.SlotsTaken(pool); n != want || err != nil {
			t.Errorf("%d slots of %q are taken, %v, want %d", n, pool, err, want)
		}
	}
	update(t, s, func(tx store.Tx) {
		check(errors.Join(tx.TakeSlots("a", 2), tx.TakeSlots("b", 1), tx.TakeSlots("a", 3)))
		taken(tx, "a", 5)
	})
	err := s.Update(t.Context(), func(tx store.Tx) error {
		return errors.Join(tx.TakeSlots("a", 9), tx.TakeSlots("c", 9), errUndo)
	})
	if !errors.Is(err, errUndo) {
		t.Error(err)
	}
	update(t, s, func(tx store.Tx) { check(errors.Join(tx.TakeSlots("a", -4), tx.TakeSlots("b", -1))) })
	view(t, s, func(r store.Reader) {
		taken(r, "a", 1)
		taken(r, "b", 0)
		taken(r, "c", 0)
		taken(r, "A", 0)
	})
}

// shows: CF-24
func testTurns(t *testing.T, f Fixture) {
	s := open(t, f, NewClock())
	update(t, s, func(tx store.Tx) {
		check(errors.Join(tx.SetTurn("p", 1, 4), tx.SetTurn("p", 2, 5), tx.SetTurn("q", 1, 6), tx.SetTurn("", 0, 7), tx.SetTurn("p", 1, 1<<63-1)))
	})
	view(t, s, func(r store.Reader) {
		for _, c := range []struct {
			project string
			rank    int
			want    uint64
		}{{"p", 1, 1<<63 - 1}, {"p", 2, 5}, {"q", 1, 6}, {"", 0, 7}, {"p", 3, 0}, {"", 1, 0}} {
			if n, err := r.Turn(c.project, c.rank); n != c.want || err != nil {
				t.Errorf("turn of %q in %d is %d, %v, want %d", c.project, c.rank, n, err, c.want)
			}
		}
	})
}

func testWorkers(t *testing.T, f Fixture) {
	clock := NewClock()
	s := open(t, f, clock)
	a := lockkeeper.Worker{ID: "a", Node: "node 'x'", Process: &lockkeeper.Process{Host: "h", Boot: "b", PIDNS: "n", PID: 7, Start: 1 << 62, Group: 8},
		Roots: []string{"/r", "two\nlines"}, Slots: 4, Began: clock.Now().Wall, Expires: clock.Now().Lease.Add(time.Minute)}
	b := lockkeeper.Worker{ID: "B", Node: "other"}
	are := func(r store.Reader, want ...lockkeeper.Worker) {
		t.Helper()
		got, err := r.Workers()
		if err != nil || len(got) != len(want) {
			t.Fatalf("workers %+v, %v, want %d", got, err, len(want))
		}
		for i := range got {
			got[i].Began = got[i].Began.UTC()
			if !reflect.DeepEqual(got[i], want[i]) {
				t.Errorf("got  %+v\nwant %+v", got[i], want[i])
			}
		}
	}
	update(t, s, func(tx store.Tx) {
		check(errors.Join(tx.PutWorker(a), tx.PutWorker(b)))
		are(tx, b, a)
	})
	err := s.Update(t.Context(), func(tx store.Tx) error {
		return errors.Join(tx.PutWorker(lockkeeper.Worker{ID: "a"}), tx.DeleteWorker("B"), tx.PutWorker(lockkeeper.Worker{ID: "c"}), errUndo)
	})
	if !errors.Is(err, errUndo) {
		t.Error(err)
	}
	view(t, s, func(r store.Reader) { are(r, b, a) })
	a.Expires, a.Process, a.Slots = 9, nil, 1
	update(t, s, func(tx store.Tx) { check(errors.Join(tx.PutWorker(a), tx.DeleteWorker("B"))) })
	view(t, s, func(r store.Reader) { are(r, a) })
}

func testPruneItems(t *testing.T, f Fixture) {
	clock := NewClock()
	s := open(t, f, clock)
	long, lately := clock.Now().Wall.Add(-time.Hour), clock.Now().Wall
	stay := []lockkeeper.Item{
		{ID: "queued", QueuedAt: long}, {ID: "dispatched", Status: lockkeeper.ItemDispatched, Stage: lockkeeper.StageRunning, DispatchedAt: long},
		{ID: "failed", Status: lockkeeper.ItemError, Stage: lockkeeper.StageEnded, CompletedAt: long},
		{ID: "young", Status: lockkeeper.ItemCompleted, Stage: lockkeeper.StageEnded, CompletedAt: lately},
	}
	var old []lockkeeper.Item
	for i := range 1_500 {
		old = append(old, lockkeeper.Item{ID: fmt.Sprint("old-", i), Key: fmt.Sprint("key-", i), Status: lockkeeper.ItemCompleted, Stage: lockkeeper.StageEnded, CompletedAt: long})
	}
	queue(t, s, old...)
	queue(t, s, stay...)
	left := func() (c store.Census) {
		t.Helper()
		view(t, s, func(r store.Reader) { c = get(r.Census()) })
		return c
	}
	for range 5 {
		prune(t, s, lately, 1_000_000)
	}
	if got, want := left(), (store.Census{Ready: 1, Running: 1, Failed: 1, Completed: 1}); got != want {
		t.Errorf("left are %+v, want %+v", got, want)
	}
	view(t, s, func(r store.Reader) {
		for _, it := range stay {
			if got, err := r.Item(it.ID); got == nil || err != nil {
				t.Errorf("item %s is %v, %v", it.ID, got, err)
			}
		}
		finds(t, "a dropped item", get(r.ItemWithKey("key-7")), nil)
	})
	queue(t, s, lockkeeper.Item{ID: "old-7", Key: "key-7"}) // the id and the key are free again
	prune(t, s, lately.Add(1), 1_000_000)
	if got := left(); got.Completed != 0 {
		t.Errorf("left are %+v", got)
	}
	queue(t, s, lockkeeper.Item{ID: "newest", Status: lockkeeper.ItemCompleted, Stage: lockkeeper.StageEnded, CompletedAt: long})
	prune(t, s, lately.Add(1), 1_000_000)
	if got := left(); got.Completed != 1 {
		t.Errorf("left are %+v, want the newest item, from which ids count", got)
	}
}

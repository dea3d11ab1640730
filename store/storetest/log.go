package storetest

import (
	"fmt"
	"math"
	"reflect"
	"slices"
	"testing"
	"time"

	"lockkeeper"
	"lockkeeper/store"
)

var logTests = []test{
	{"round trip of an event", testEvent},
	{"numbers rise, and pages go both ways", testEventPages},
	{"no page is larger than 50,000", testLargestPage},
	{"pruning is bounded and numbers continue", testPrune},
	{"pruning by age", testPruneByAge},
}

// shows: GP-44
func testEvent(t *testing.T, f Fixture) {
	clock := NewClock()
	s := open(t, f, clock)
	until := clock.Now().Wall.Add(time.Minute)
	ev := lockkeeper.Event{
		At: clock.Now().Wall, Kind: lockkeeper.EventRecovered, Actor: lockkeeper.Actor{Name: "Ünal 'x'", Kind: lockkeeper.ActorPerson},
		GrantID: ident(1), Holder: "holder", Locks: append(write("a/b"), read("c")...), Reason: "because \"so\"",
		Conflicts: []lockkeeper.ConflictInfo{{Path: "a", Mode: lockkeeper.Write, BlockingPath: "b", BlockingMode: lockkeeper.Read,
			Kind: lockkeeper.Waiting, Holder: "x", GrantID: ident(2), AcquiredAt: clock.Now().Wall, ExpiresAt: &until}},
		Conditions: []lockkeeper.Condition{{Name: "lease past", Held: true, Fact: "by 3s"}, {Name: "no"}},
		Data:       map[string]string{"k": "v"},
	}
	var seq uint64
	update(t, s, func(tx store.Tx) { seq = get(tx.Append(ev)) })
	view(t, s, func(r store.Reader) {
		got, err := r.Events(store.EventQuery{Limit: 10})
		if err != nil || len(got) != 1 {
			t.Fatalf("%d events, %v", len(got), err)
		}
		e := got[0]
		if e.Space != s.Space() {
			t.Errorf("space %q, want %q", e.Space, s.Space())
		}
		want := ev
		want.Space, want.Seq = e.Space, seq
		for _, p := range []*lockkeeper.Event{&e, &want} { // compare instants, not time zones
			p.At = p.At.UTC()
			p.Conflicts = slices.Clone(p.Conflicts)
			for i := range p.Conflicts {
				c := &p.Conflicts[i]
				c.AcquiredAt = c.AcquiredAt.UTC()
				at := c.ExpiresAt.UTC()
				c.ExpiresAt = &at
			}
		}
		if !reflect.DeepEqual(e, want) {
			t.Errorf("got  %+v\nwant %+v", e, want)
		}
	})
}

func appendEvents(t *testing.T, s store.Store, n int) (seqs []uint64) {
	t.Helper()
	update(t, s, func(tx store.Tx) {
		for i := range n {
			seq := get(tx.Append(lockkeeper.Event{Kind: lockkeeper.EventReleased, At: tx.Now().Wall, Reason: fmt.Sprint(i)}))
			seqs = append(seqs, seq)
		}
	})
	return seqs
}

func readEvents(t *testing.T, s store.Store, q store.EventQuery) (seqs []uint64) {
	t.Helper()
	view(t, s, func(r store.Reader) {
		evs := get(r.Events(q))
		for _, e := range evs {
			seqs = append(seqs, e.Seq)
		}
	})
	return seqs
}

// No query reads more than 50,000 events, whatever its limit.
//
// shows: DL-56
func testLargestPage(t *testing.T, f Fixture) {
	s := open(t, f, NewClock())
	const most = 50_000
	kept := 0 // number of events that the store still has; a store in memory forgets some
	all := appendEvents(t, s, most+1)
	for after := all[0] - 1; after < all[most]; {
		page := readEvents(t, s, store.EventQuery{After: after, Limit: 10_000})
		after, kept = page[len(page)-1], kept+len(page)
	}
	for limit, want := range map[int]int{most + 1: min(most, kept), math.MaxInt: min(most, kept), most: min(most, kept), 3: 3, 0: 0, -1: 0} {
		if got := len(readEvents(t, s, store.EventQuery{Limit: limit})); got != want {
			t.Errorf("a page of %d has %d events, want %d", limit, got, want)
		}
	}
}

// shows: DL-53
func testEventPages(t *testing.T, f Fixture) {
	s := open(t, f, NewClock())
	if got := readEvents(t, s, store.EventQuery{Limit: 5, Latest: true}); len(got) != 0 {
		t.Errorf("an empty log has %v", got)
	}
	var all []uint64
	for range 3 {
		all = append(all, appendEvents(t, s, 7)...)
	}
	for i := 1; i < len(all); i++ {
		if all[i] <= all[i-1] {
			t.Fatalf("numbers do not rise: %v", all)
		}
	}
	for _, q := range []store.EventQuery{
		{Limit: 100}, {Limit: 4}, {Limit: 4, Latest: true}, {Limit: 100, Latest: true},
		{After: all[5], Limit: 3}, {After: all[5], Limit: 3, Latest: true},
		{Before: all[9], Limit: 3}, {Before: all[9], Limit: 3, Latest: true},
		{After: all[3], Before: all[6], Limit: 100}, {After: all[3], Before: all[6], Limit: 100, Latest: true},
		{After: all[3], Before: all[4], Limit: 100}, {After: all[20], Limit: 9}, {Before: all[0], Limit: 9, Latest: true},
		{After: all[20] + 1000, Limit: 9}, {Before: all[20] + 1000, Limit: 2, Latest: true},
	} {
		var want []uint64
		for _, seq := range all {
			if seq > q.After && (q.Before == 0 || seq < q.Before) {
				want = append(want, seq)
			}
		}
		if q.Latest {
			slices.Reverse(want)
		}
		want = want[:min(len(want), q.Limit)]
		if got := readEvents(t, s, q); !slices.Equal(got, want) {
			t.Errorf("%+v: got %v, want %v", q, got, want)
		}
	}
}

func prune(t *testing.T, s store.Store, before time.Time, keep int) {
	t.Helper()
	update(t, s, func(tx store.Tx) { check(tx.Prune(before, keep)) })
}

// testPrune allows a store to keep somewhat more than it must, and to need several calls, but
// never to drop what it must keep.
func testPrune(t *testing.T, f Fixture) {
	clock := NewClock()
	s := open(t, f, clock)
	const slack = 1_100
	var all []uint64
	for range 6 {
		all = append(all, appendEvents(t, s, 500)...)
	}
	for range 50 {
		prune(t, s, time.Unix(0, 0), 10)
	}
	left := readEvents(t, s, store.EventQuery{Limit: 10_000})
	if len(left) < 10 || len(left) > 10+slack {
		t.Errorf("%d events are left, want about 10", len(left))
	}
	if !slices.Equal(left, all[len(all)-len(left):]) {
		t.Error("those that are left are not the newest")
	}
	if next := appendEvents(t, s, 1)[0]; next <= all[len(all)-1] {
		t.Errorf("number %d was used before", next)
	}
	// An emptied log still continues its numbers.
	clock.Advance(time.Hour)
	for range 50 {
		prune(t, s, clock.Now().Wall, 0)
	}
	last := all[len(all)-1] + 1
	if next := appendEvents(t, s, 1)[0]; next <= last {
		t.Errorf("after pruning everything, number %d was used before", next)
	}
}

func testPruneByAge(t *testing.T, f Fixture) {
	clock := NewClock()
	s := open(t, f, clock)
	old := appendEvents(t, s, 3_000)
	clock.Advance(48 * time.Hour)
	fresh := appendEvents(t, s, 20)
	for range 50 {
		prune(t, s, clock.Now().Wall.Add(-time.Hour), 1_000_000)
	}
	left := readEvents(t, s, store.EventQuery{Limit: 10_000})
	if len(left) < len(fresh) || !slices.Equal(left[len(left)-len(fresh):], fresh) {
		t.Error("a young event was forgotten")
	}
	if len(left) > len(old)/2 {
		t.Errorf("%d events are left, most of them old", len(left))
	}
}

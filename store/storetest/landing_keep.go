package storetest

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"lockkeeper"
	"lockkeeper/store"
)

// A failed transaction also undoes its landings and their state changes, even if it pruned
// landings.
//
// shows: DL-3
func testLandingUndone(t *testing.T, f Fixture) {
	clock := NewClock()
	s := open(t, f, clock)
	was := landed(t, s, lockkeeper.Landing{GrantID: "g", Changes: altered("x", "a", "b")})
	clock.Advance(time.Hour)
	for range 2 {
		err := s.Update(t.Context(), func(tx store.Tx) error {
			l := land(tx, lockkeeper.Landing{GrantID: "g", Changes: altered("y", "a", "c")})
			return errors.Join(tx.EndLanding(store.TakenLanding{Seq: was.Seq}, lockkeeper.Committed), tx.EndLanding(store.TakenLanding{Seq: l.Seq}, lockkeeper.Undone),
				tx.Prune(clock.Now().Wall, 1_000), errUndo)
		})
		if !errors.Is(err, errUndo) {
			t.Fatal(err)
		}
		for _, q := range []store.LandingQuery{{}, {Open: true}, {GrantID: "g"}, {Path: "a"}, {Commit: was.Commit}} {
			got := landings(t, s, q)
			if len(got) != 1 {
				t.Fatalf("%+v finds %d landings, want the one that was there", q, len(got))
			}
			sameLanding(t, got[0], was)
		}
		view(t, s, func(r store.Reader) {
			lastAt(t, r, "a", "", was.Seq, version("x"))
			lastAt(t, r, "c", "", 0, lockkeeper.Version{})
		})
	}
}

func testPruneLandings(t *testing.T, f Fixture) {
	clock := NewClock()
	s := open(t, f, clock)
	var stay []uint64
	for i := range 30 {
		state := lockkeeper.LandingState(1 + i%3)
		l := landed(t, s, lockkeeper.Landing{GrantID: "g", State: state, Changes: altered("x", "a", fmt.Sprint("b", i))})
		if state == lockkeeper.Decided {
			stay = append(stay, l.Seq)
		}
	}
	old := stay[0]
	clock.Advance(48 * time.Hour)
	young := landed(t, s, lockkeeper.Landing{State: lockkeeper.Committed, Changes: altered("young", "c")})
	stay = append(stay, young.Seq)
	backwards := landed(t, s, lockkeeper.Landing{State: lockkeeper.Committed, At: clock.Now().Wall.Add(-40 * time.Hour), Changes: altered("x", "d")})
	for range 3 { // each call deletes a bounded number of rows
		prune(t, s, clock.Now().Wall.Add(-time.Hour), 1_000)
	}
	numbers := func(q store.LandingQuery) (out []uint64) {
		for _, l := range landings(t, s, q) {
			out = append(out, l.Seq)
			if len(l.Changes) == 0 {
				t.Errorf("landing %d lost its changes", l.Seq)
			}
		}
		return out
	}
	if got := numbers(store.LandingQuery{}); !slices.Equal(got, stay) {
		t.Errorf("landings %v are left, want %v; %d is older than its number", got, stay, backwards.Seq)
	}
	if got := numbers(store.LandingQuery{Path: "a"}); !slices.Equal(got, stay[:len(stay)-1]) {
		t.Errorf("landings %v are left at the path, want %v", got, stay)
	}
	view(t, s, func(r store.Reader) {
		lastAt(t, r, "b1", "", 0, lockkeeper.Version{})
		lastAt(t, r, "b0", "", old, version("x"))
		lastAt(t, r, "c", "", young.Seq, version("young"))
	})
	update(t, s, func(tx store.Tx) { check(tx.EndLanding(store.TakenLanding{Seq: old}, lockkeeper.Committed)) })
	prune(t, s, clock.Now().Wall.Add(-time.Hour), 1_000)
	if got := numbers(store.LandingQuery{Seq: old}); len(got) != 0 {
		t.Error("a landing that was committed late is never dropped")
	}
}

func testManyChanges(t *testing.T, f Fixture) {
	clock := NewClock()
	s := open(t, f, clock)
	l := lockkeeper.Landing{GrantID: "g", State: lockkeeper.Committed}
	for i := range 10_000 {
		l.Changes = append(l.Changes, altered(fmt.Sprint(i), fmt.Sprintf("some/directory/%d/file-%d.rb", i%100, 9_999-i))...)
	}
	began := time.Now()
	took := func(what string) {
		t.Helper()
		d := time.Since(began)
		t.Logf("%s: %v", what, d)
		if d > time.Minute { // a busy machine needs seconds
			t.Errorf("%s took %v", what, d)
		}
		began = time.Now()
	}
	want := landed(t, s, l)
	took("landing 10,000 changes")
	got := landings(t, s, store.LandingQuery{Path: l.Changes[5_000].Path})
	took("reading them")
	if len(got) != 1 {
		t.Fatalf("%d landings, want 1", len(got))
	}
	sameLanding(t, got[0], want)
	began = time.Now()
	view(t, s, func(r store.Reader) {
		for i := range 1_000 {
			a := l.Changes[i*10]
			lastAt(t, r, a.Path, "g", want.Seq, a.New)
		}
	})
	took("asking for 1,000 of the paths")
	clock.Advance(time.Hour)
	began = time.Now()
	prune(t, s, clock.Now().Wall, 1_000)
	took("pruning")
	if got := landings(t, s, store.LandingQuery{}); len(got) != 0 {
		t.Errorf("%d landings after pruning", len(got))
	}
}

// Grants in the states Landing and Revoking block requests like a held grant.
func testLandingRecord(t *testing.T, f Fixture) {
	s := open(t, f, NewClock())
	for i, state := range []store.State{store.StateLanding, store.StateRevoking} {
		id, path := ident(i), fmt.Sprint("path", i)
		if !state.Confirmed() {
			t.Errorf("state %d is not confirmed", state)
		}
		var want *store.Record
		update(t, s, func(tx store.Tx) {
			rec := draft(tx, id, store.StateHeld, write(path))
			next := *rec
			next.State, next.Fence = state, rec.Ticket
			want = &next
			check(tx.Save(want))
		})
		if d := differ(fetch(t, s, id), want); d != "" {
			t.Error(d)
		}
		view(t, s, func(r store.Reader) {
			for _, before := range []uint64{store.HeldOnly, store.AnyTicket} {
				found, _, err := r.Overlapping(store.Query{Locks: write(path), Before: before})
				check(err)
				if len(found) != 1 || found[0].Record.State != state {
					t.Errorf("in state %d it blocks as %+v", state, found)
				}
			}
		})
		x, ok := s.(store.FastPath)
		if !ok {
			continue
		}
		if done, err := x.TryRelease(t.Context(), id, want.TokenHash); done || err != nil {
			t.Errorf("a release that ignores open landings: %v, %v", done, err)
		}
		rec := &store.Record{Grant: lockkeeper.Grant{ID: ident(100 + i), Holder: "h", Locks: write(path)}}
		if granted, err := x.TryGrant(t.Context(), rec, lockkeeper.Event{Kind: lockkeeper.EventAcquired}); granted || err != nil {
			t.Errorf("a grant past it: %v, %v", granted, err)
		}
	}
}

package storetest

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"lockkeeper"
	"lockkeeper/lock"
)

var ruleTests = []test{
	{"modes that go together", testModes},
	{"all or nothing", testAllOrNothing},
	{"one path has one lock", testOnePathOneLock},
	{"an empty request", testEmptyRequest},
	{"fences rise", testFences},
	{"release", testRelease},
	{"conflicts are facts", testConflictFacts},
	{"reading acquires nothing", testLooking},
	{"a request is copied", testRequestCopied},
	{"directories are not written", testOverLock},
	{"the largest request", testLargest},
}

// shows: SW-13 SW-16 DL-11 DL-12 DL-13 PL-39
func testModes(t *testing.T, f Fixture) {
	b := newBench(t, f, lock.Options{})
	for held := lockkeeper.Read; held <= lockkeeper.Write; held++ {
		for asked := lockkeeper.Read; asked <= lockkeeper.Write; asked++ {
			for _, paths := range [][2]string{{"a", "a"}, {"a", "a/b"}, {"a/b", "a"}} {
				g := b.takes(asks("h", "dal", locks(held, lockkeeper.File, paths[:1])))
				r := asks("k", "dal", locks(asked, lockkeeper.File, paths[1:]))
				if goTogether[[2]lockkeeper.Mode{held, asked}] {
					b.release(b.takes(r))
				} else {
					b.blocked(r)
				}
				b.release(g)
			}
		}
	}
	b.takes(asks("h", "dal", write("a/b")))
	b.takes(asks("k", "dal", write("a/c", "a.b", "ab")))
	b.sound()
}

// shows: SW-39 PL-42 PL-82
func testAllOrNothing(t *testing.T, f Fixture) {
	b := newBench(t, f, lock.Options{})
	b.takes(asks("first", "", write("b")))
	b.blocked(asks("second", "", write("a", "b", "c")))
	b.takes(asks("third", "", write("a", "c")))
}

// shows: GP-6
func testOnePathOneLock(t *testing.T, f Fixture) {
	b := newBench(t, f, lock.Options{})
	g := b.takes(asks("h", "", read("a"), write("a"), read("a", "a/b")))
	if want := append(write("a"), read("a/b")...); !slices.Equal(g.Locks, want) {
		t.Errorf("holds %v, want %v", g.Locks, want)
	}
	b.blocked(asks("h", "", read("a"))) // a second grant of the same holder
}

// shows: GP-7
func testEmptyRequest(t *testing.T, f Fixture) {
	b := newBench(t, f, lock.Options{})
	b.takes(asks("h", "person", locks(lockkeeper.Write, lockkeeper.Tree, []string{"."})))
	b.release(b.takes(asks("k", "")))
}

// shows: GP-4
func testFences(t *testing.T, f Fixture) {
	b := newBench(t, f, lock.Options{})
	last := uint64(0)
	for range 20 {
		g := b.takes(asks("h", "", write("a")))
		if g.Fence <= last {
			t.Fatalf("fence %d after %d", g.Fence, last)
		}
		last = g.Fence
		w := b.waits(asks("w", "", write("a")))
		b.release(g)
		next := b.isServed(w)
		if next.Fence <= last {
			t.Fatalf("fence %d of a promoted request after %d", next.Fence, last)
		}
		last = next.Fence
		b.release(next)
	}
}

// shows: SW-46 PL-46
func testRelease(t *testing.T, f Fixture) {
	b := newBench(t, f, lock.Options{})
	g := b.takes(asks("h", "", write("a")))
	if _, err := b.m.Release(b.ctx, g.ID, "guess"); lockkeeper.CodeOf(err) != lockkeeper.CodeNotHeld {
		t.Errorf("with a wrong token: %v", err)
	}
	b.blocked(asks("k", "", write("a")))
	for _, want := range []bool{true, false, false} {
		if released, err := b.m.Release(b.ctx, g.ID, g.Token); released != want || err != nil {
			t.Errorf("released %v, %v, want %v", released, err, want)
		}
	}
	if released, err := b.m.Release(b.ctx, ident(77), "x"); released || err != nil {
		t.Errorf("of an unknown id: %v, %v", released, err)
	}
	b.release(g)
	b.takes(asks("k", "", write("a")))
	if n := len(b.events(lockkeeper.EventReleased)); n != 1 {
		t.Errorf("%d release events, want 1", n)
	}
}

// shows: GP-8 SW-44
func testConflictFacts(t *testing.T, f Fixture) {
	b := newBench(t, f, lock.Options{})
	one := b.takes(asks("one", "person", read("a/x")))
	b.clock.Advance(time.Second)
	two := b.takes(asks("two", "", write("b")))
	b.clock.Advance(time.Second)
	got := b.blocked(asks("three", "", write("a", "b", "c"))).Conflicts
	if len(got) != 2 {
		t.Fatalf("got %v, want both conflicts", got)
	}
	b.wantConflict(got[0], lockkeeper.ConflictInfo{Path: "b", Mode: lockkeeper.Write, BlockingPath: "b", BlockingMode: lockkeeper.Write,
		Kind: lockkeeper.Held, Holder: "two", GrantID: two.ID, AcquiredAt: two.AcquiredAt, ExpiresAt: &two.ExpiresAt})
	b.wantConflict(got[1], lockkeeper.ConflictInfo{Path: "a", Mode: lockkeeper.Write, BlockingPath: "a/x", BlockingMode: lockkeeper.Read,
		Kind: lockkeeper.Held, Holder: "one", GrantID: one.ID, AcquiredAt: one.AcquiredAt})
}

func (b *bench) wantConflict(got, want lockkeeper.ConflictInfo) {
	b.Helper()
	same := got.AcquiredAt.Equal(want.AcquiredAt) && (got.ExpiresAt == nil) == (want.ExpiresAt == nil) &&
		(got.ExpiresAt == nil || got.ExpiresAt.Equal(*want.ExpiresAt))
	got.AcquiredAt, got.ExpiresAt, want.AcquiredAt, want.ExpiresAt = time.Time{}, nil, time.Time{}, nil
	if !same || got != want {
		b.Errorf("got %+v, want %+v", got, want)
	}
}

// shows: SW-47 SW-48
func testLooking(t *testing.T, f Fixture) {
	b := newBench(t, f, lock.Options{})
	g := b.takes(lockkeeper.Request{Holder: "h", Locks: append(write("a"), read("b")...), Metadata: map[string]string{"k": "v"}})
	for range 2 {
		got, err := b.m.CheckConflicts(b.ctx, append(write("c"), read("a/x")...))
		if err != nil || len(got) != 1 || got[0].GrantID != g.ID {
			t.Errorf("conflicts %v, %v", got, err)
		}
		if got, err := b.m.CheckConflicts(b.ctx, write("c", "d")); err != nil || len(got) != 0 {
			t.Errorf("conflicts of free paths %v, %v", got, err)
		}
	}
	b.release(b.takes(asks("k", "", write("c", "d"))))
	b.waits(asks("w", "", write("a")))
	grants, err := b.m.ActiveGrants(b.ctx)
	if err != nil || len(grants) != 1 || grants[0].ID != g.ID || grants[0].Fence != g.Fence || grants[0].Metadata["k"] != "v" ||
		!slices.Equal(grants[0].WritePaths, []string{"a"}) || !slices.Equal(grants[0].ReadPaths, []string{"b"}) {
		t.Errorf("active grants %+v, %v", grants, err)
	}
	entries, err := b.m.Requests(b.ctx)
	if err != nil || len(entries) != 2 || entries[0].State != "held" || entries[1].State != "waiting" {
		t.Errorf("entries %+v, %v", entries, err)
	}
	entry, err := b.m.Request(b.ctx, entries[1].ID)
	if err != nil || entry == nil || len(entry.Conflicts) != 1 || entry.Conflicts[0].GrantID != g.ID {
		t.Errorf("entry %+v, %v", entry, err)
	}
}

// A caller may reuse the slice of its request without changing the held locks.
func testRequestCopied(t *testing.T, f Fixture) {
	b := newBench(t, f, lock.Options{})
	ls := write("a", "b")
	proc := &lockkeeper.Process{Host: "h", PID: 1}
	meta := map[string]string{"k": "v"}
	g := b.takes(lockkeeper.Request{Holder: "h", Locks: ls, Process: proc, Metadata: meta})
	ls[0].Path, proc.PID, meta["k"] = "z", 2, "w"
	rec := b.get(g.ID)
	if rec.Locks[0].Path != "a" || rec.Process.PID != 1 || rec.Metadata["k"] != "v" {
		t.Errorf("the stored grant changed with the request: %+v", rec)
	}
	b.blocked(asks("k", "", write("a")))
	b.release(g)
	b.takes(asks("k", "", write("a", "b", "z")))
}

// shows: SW-15 SW-19 SW-81 PL-41 CF-1
func testOverLock(t *testing.T, f Fixture) {
	b := newBench(t, f, lock.Options{})
	dir := func(m lockkeeper.Mode) []lockkeeper.Lock { return locks(m, lockkeeper.Dir, []string{"app"}) }
	for what, r := range map[string]lockkeeper.Request{
		"a directory":                        asks("h", "", write("x"), dir(lockkeeper.Write)),
		"a tree":                             asks("h", "", locks(lockkeeper.Write, lockkeeper.Tree, []string{"p"})),
		"a file that is also read as a tree": asks("h", "", write("app"), dir(lockkeeper.Read)),
	} {
		var over *lockkeeper.OverLockError
		if _, err := b.m.TryAcquire(b.ctx, r); !errors.As(err, &over) {
			t.Errorf("%s: %v", what, err)
		}
	}
	b.release(b.takes(asks("h", "", dir(lockkeeper.Read))))
	b.takes(asks("h", "tidy", dir(lockkeeper.Write)))
	b.blocked(asks("k", "", read("app/x")))
}

func testLargest(t *testing.T, f Fixture) {
	b := newBench(t, f, lock.Options{})
	var ls []lockkeeper.Lock
	for i := range lockkeeper.MaxTargets {
		ls = append(ls, write(fmt.Sprintf("d%03d/f%05d", i%200, i))...)
	}
	r := asks("h", "", ls)
	g := b.takes(r)
	b.blocked(asks("k", "", write("d007/f00007")))
	b.release(g)
	r.Locks = append(r.Locks, write("one/more")...)
	var in *lockkeeper.InputError
	if _, err := b.m.TryAcquire(b.ctx, r); !errors.As(err, &in) || in.Field != "targets" {
		t.Errorf("%d targets: %v", len(r.Locks), err)
	}
}

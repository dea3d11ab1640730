package storetest

import (
	"errors"
	"slices"
	"testing"

	"lockkeeper"
	"lockkeeper/lock"
)

var growTests = []test{
	{"upgrade", testUpgrade},
	{"upgrade is one transaction", testUpgradeAtOnce},
	{"upgrade is refused beside readers", testUpgradeRefused},
	{"two upgradeables", testTwoUpgradeables},
	{"upgrade against waiters", testUpgradeAgainstWaiters},
	{"extend in order", testExtendInOrder},
	{"extend by try", testExtendByTry},
	{"extend against a waiter", testExtendAgainstWaiter},
	{"extend does not starve a waiter", testExtendBehindWaiter},
	{"policies with a fixed set of locks", testFixedSet},
}

func isRefused(err error) bool { return errors.As(err, new(*lockkeeper.RefusedError)) }

// shows: DL-13 DL-19
func testUpgrade(t *testing.T, f Fixture) {
	b := newBench(t, f, lock.Options{})
	g := b.takes(asks("h", "dal", upgradeable("a", "b"), read("c")))
	got, err := b.m.Upgrade(b.ctx, g.ID, g.Token, "a")
	if err != nil || !got.Covers("a") || got.Covers("b") || got.Fence != g.Fence {
		t.Fatalf("upgraded %+v, %v", got, err)
	}
	b.blocked(asks("k", "dal", read("a")))
	b.release(b.takes(asks("k", "dal", read("b"))))
	b.wants("", b.upgrade(g, "a"), "the upgrade of a write lock changes nothing")
	for _, path := range []string{"c", "d"} {
		b.wants(lockkeeper.CodeRefused, b.upgrade(g, "b", path), "upgrade of a lock that is not upgradeable: "+path)
	}
	if rec := b.get(g.ID); slices.Contains(rec.Paths(lockkeeper.Write), "b") {
		t.Error("a refused upgrade changed part of the grant")
	}
	if ev := b.events(lockkeeper.EventUpgraded); len(ev) != 1 || ev[0].GrantID != g.ID || !slices.Equal(ev[0].Locks, write("a")) {
		t.Errorf("upgrade events %+v", ev)
	}
}

// After each transaction of an upgrade the holder still has the lock.
//
// shows: DL-20
func testUpgradeAtOnce(t *testing.T, f Fixture) {
	b := newBench(t, f, lock.Options{})
	g := b.takes(asks("h", "dal", upgradeable("a", "b")))
	reader := b.takes(asks("reader", "dal", read("b")))
	holds := func() {
		for _, path := range []string{"a", "b"} {
			b.blocked(asks("k", "dal", upgradeable(path)))
		}
	}
	m := b.manager(following{b.store, holds}, lock.Options{})
	_, err := m.Upgrade(b.ctx, g.ID, g.Token, "a", "b")
	b.wants(lockkeeper.CodeBlocked, err, "beside a reader")
	b.release(reader)
	_, err = m.Upgrade(b.ctx, g.ID, g.Token, "a", "b")
	b.wants("", err, "upgrade")
	b.blocked(asks("k", "dal", read("a")))
}

// shows: DL-19
func testUpgradeRefused(t *testing.T, f Fixture) {
	b := newBench(t, f, lock.Options{})
	g := b.takes(asks("h", "dal", upgradeable("a", "b")))
	reader := b.takes(asks("reader", "dal", read("a/x")))
	err := b.upgrade(g, "b", "a")
	blocked, ok := errors.AsType[*lockkeeper.BlockedError](err)
	if !ok || len(blocked.Conflicts) != 1 || blocked.Conflicts[0].GrantID != reader.ID {
		t.Fatalf("got %v, want blocked by the reader", err)
	}
	if rec := b.get(g.ID); !slices.Equal(rec.Locks, upgradeable("a", "b")) {
		t.Errorf("the hold changed to %v", rec.Locks)
	}
	if ev := b.events(lockkeeper.EventUpgradeDenied); len(ev) != 1 || len(ev[0].Conflicts) != 1 {
		t.Errorf("denials %+v", ev)
	}
	b.release(reader)
	must(b, b.upgrade(g, "a", "b"))
}

// shows: CF-3
func testTwoUpgradeables(t *testing.T, f Fixture) {
	b := newBench(t, f, lock.Options{})
	b.takes(asks("h", "dal", upgradeable("a")))
	b.blocked(asks("k", "dal", upgradeable("a/x")))
	b.takes(asks("r", "dal", read("a/x")))
}

// shows: SW-73
func testUpgradeAgainstWaiters(t *testing.T, f Fixture) {
	b := newBench(t, f, lock.Options{})
	g := b.takes(asks("h", "dal", upgradeable("a")))
	other := b.takes(asks("other", "dal", write("b")))
	writer := b.waits(asks("writer", "dal", write("a")))
	mixed := b.waits(asks("mixed", "dal", read("a"), read("b")))
	b.wants("", b.upgrade(g, "a"), "waiters refuse an upgrade")
	b.sound()
	b.release(other)
	b.stillWaits(mixed)
	b.sound()
	b.release(g)
	b.release(b.isServed(writer))
	b.isServed(mixed)
	b.sound()
}

// shows: DL-66 DL-70 CF-4
func testExtendInOrder(t *testing.T, f Fixture) {
	b := newBench(t, f, lock.Options{})
	node := func(p string) lockkeeper.Lock { return locks(lockkeeper.Write, lockkeeper.Node, []string{p})[0] }
	g := b.takes(asks("h", "dal", []lockkeeper.Lock{node("project/p2")}))
	for _, p := range []string{"project/p3", "project/p1/map/m5", "project/p0/map/m6"} {
		b.wants("", b.extend(g, node(p)), "extend by "+p)
	}
	for _, p := range []string{"project/p9", "project/p9/map/m1"} {
		b.wants(lockkeeper.CodeRefused, b.extend(g, node(p)), "extend out of order by "+p)
	}
	b.wants("", b.extend(g, node("project/p2")), "extend by a held lock")
	b.takes(asks("k", "dal", []lockkeeper.Lock{node("project/p9/map/m9")}))
	b.wants(lockkeeper.CodeBlocked, b.extend(g, node("project/p8/map/m8"), node("project/p9/map/m9")), "extend by a lock of another holder")
	if n := len(b.get(g.ID).Locks); n != 4 {
		t.Errorf("holds %d locks, want 4: extending is all or nothing", n)
	}
	b.blocked(asks("k", "dal", []lockkeeper.Lock{node("project/p0/map/m6")}))
	if a, d := len(b.events(lockkeeper.EventExtended)), len(b.events(lockkeeper.EventExtendDenied)); a != 3 || d != 1 {
		t.Errorf("%d extensions and %d denials recorded", a, d)
	}
	b.release(g)
	b.takes(asks("k", "dal", []lockkeeper.Lock{node("project/p0/map/m6"), node("project/p2"), node("project/p3")}))
}

func testExtendByTry(t *testing.T, f Fixture) {
	b := newBench(t, f, lock.Options{})
	g := b.takes(asks("h", "session", write("m")))
	for _, p := range []string{"z", "a"} { // any order
		b.wants("", b.extend(g, write(p)...), "extend by "+p)
	}
	if got := b.get(g.ID).Paths(lockkeeper.Write); !slices.Equal(got, []string{"a", "m", "z"}) {
		t.Errorf("holds %v", got)
	}
}

// shows: SW-73
func testExtendAgainstWaiter(t *testing.T, f Fixture) {
	b := newBench(t, f, lock.Options{})
	g := b.takes(asks("h", "dal", write("a")))
	w := b.waits(asks("w", "dal", write("a", "b")))
	b.wants("", b.extend(g, write("b")...), "a waiter refuses an extension")
	b.sound()
	b.release(g)
	b.isServed(w)
	b.sound()
}

// A grant that was requested after another request began to wait cannot grow past that request.
//
// shows: SW-73
func testExtendBehindWaiter(t *testing.T, f Fixture) {
	b := newBench(t, f, lock.Options{})
	reader := b.takes(asks("r", "session", read("y")))
	w := b.waits(asks("w", "agent", write("y")))
	late := b.takes(asks("l", "session", read("x")))
	b.wants(lockkeeper.CodeBlocked, b.extend(late, read("y")...), "a late reader grows past a waiting writer")
	b.sound()
	b.release(reader)
	b.isServed(w)
}

// shows: SW-42 PL-44
func testFixedSet(t *testing.T, f Fixture) {
	b := newBench(t, f, lock.Options{})
	g := b.takes(asks("h", "agent", write("a")))
	b.wants(lockkeeper.CodeRefused, b.extend(g, write("b")...), "extend")
	b.wants(lockkeeper.CodeRefused, b.upgrade(g, "a"), "upgrade")
	_, err := b.m.TryAcquire(b.ctx, asks("k", "agent", upgradeable("c")))
	b.wants(lockkeeper.CodeRefused, err, "upgradeable")
}

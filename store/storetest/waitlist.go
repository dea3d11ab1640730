package storetest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"lockkeeper"
	"lockkeeper/lock"
	"lockkeeper/store"
)

var lineTests = []test{
	{"requests are granted in ticket order", testTicketOrder},
	{"a request that does not wait counts as the latest", testTryIsLatest},
	{"only disjoint requests overtake", testDisjointOvertakes},
	{"readers cannot starve a writer", testNoStarvation},
	{"a wide request comes after its predecessors", testWide},
	{"leaving unblocks others", testLeaving},
	{"an unconfirmed promotion expires", testUnconfirmed},
	{"a lapsed request loses its position", testLapsedPlace},
	{"polling keeps the position", testAttending},
	{"a waiter is woken when it is granted", testWakesWaiter},
	{"acquire waits and wakes", testAcquireWakes},
	{"acquire times out", testAcquireTimesOut},
	{"acquire is canceled", testAcquireCanceled},
	{"a failed commit is no grant", testFailedCommit},
}

func testTicketOrder(t *testing.T, f Fixture) {
	b := newBench(t, f, lock.Options{})
	g := b.takes(asks("holder", "", write("a")))
	var line []*lock.Position
	for i := range 5 {
		line = append(line, b.waits(asks(fmt.Sprint("waiter ", i), "", write("a"))))
	}
	b.sound()
	for i, p := range line {
		b.release(g)
		for _, later := range line[i+1:] {
			b.stillWaits(later)
		}
		g = b.isServed(p)
		b.sound()
	}
}

func testTryIsLatest(t *testing.T, f Fixture) {
	b := newBench(t, f, lock.Options{})
	b.takes(asks("reader", "", read("a")))
	w := b.waits(asks("writer", "", write("a")))
	got := b.blocked(asks("late reader", "", read("a"))).Conflicts
	if len(got) != 1 || got[0].Kind != lockkeeper.Waiting || got[0].GrantID != w.ID() || got[0].Holder != "writer" {
		t.Errorf("conflicts %+v, want the waiting writer", got)
	}
}

func testDisjointOvertakes(t *testing.T, f Fixture) {
	b := newBench(t, f, lock.Options{})
	g := b.takes(asks("holder", "", write("a")))
	first := b.waits(asks("first", "", write("a", "b")))
	b.waits(asks("second", "", write("b", "c")))
	b.takes(asks("disjoint", "", write("d")))
	b.blocked(asks("not disjoint", "", read("c/x")))
	b.release(g)
	b.isServed(first)
	b.sound()
}

// shows: SW-73
func testNoStarvation(t *testing.T, f Fixture) {
	b := newBench(t, f, lock.Options{})
	old := b.takes(asks("reader 0", "", read("a")))
	writer := b.waits(asks("writer", "", write("a")))
	var later []*lock.Position
	for i := range 10 {
		b.blocked(asks(fmt.Sprint("trying reader ", i), "", read("a")))
		later = append(later, b.waits(asks(fmt.Sprint("waiting reader ", i), "", read("a"))))
	}
	b.release(old)
	g := b.isServed(writer)
	b.stillWaits(later[0])
	b.release(g)
	for _, p := range later { // all readers at once
		b.isServed(p)
	}
	b.sound()
}

func testWide(t *testing.T, f Fixture) {
	b := newBench(t, f, lock.Options{})
	var held []*lock.Grant
	var paths []string
	for i := range 8 {
		p := fmt.Sprintf("f%d", i)
		paths = append(paths, p)
		held = append(held, b.takes(asks("h"+p, "", write(p))))
	}
	before := b.waits(asks("before", "", write("f0")))
	wide := b.waits(asks("wide", "", write(paths...)))
	after := b.waits(asks("after", "", write("f7")))
	for _, g := range held {
		b.stillWaits(wide)
		b.release(g)
	}
	b.stillWaits(wide)
	b.release(b.isServed(before))
	b.stillWaits(after)
	b.release(b.isServed(wide))
	b.isServed(after)
	b.sound()
}

func testLeaving(t *testing.T, f Fixture) {
	b := newBench(t, f, lock.Options{})
	b.takes(asks("reader", "", read("a")))
	writer := b.waits(asks("writer", "", write("a")))
	reader := b.waits(asks("second reader", "", read("a")))
	must(t, writer.Leave(b.ctx))
	b.isServed(reader)
	if b.get(writer.ID()) != nil {
		t.Error("a request that left is still in the wait list")
	}
	// Withdrawing a request after its grant came releases the grant.
	g := b.takes(asks("h", "", write("b")))
	one, two := b.waits(asks("one", "", write("b"))), b.waits(asks("two", "", write("b")))
	b.release(g)
	if rec := b.get(one.ID()); rec.State != store.StatePromoted {
		t.Fatalf("state %d, want promoted", rec.State)
	}
	must(t, one.Leave(b.ctx))
	b.isServed(two)
	b.sound()
}

func testUnconfirmed(t *testing.T, f Fixture) {
	b := newBench(t, f, lock.Options{WaitLease: 10 * time.Second})
	g := b.takes(asks("h", "person", write("a")))
	dead := b.waits(asks("dead", "person", write("a")))
	b.clock.Advance(5 * time.Second)
	next := b.waits(asks("next", "person", write("a")))
	b.release(g)
	if rec := b.get(dead.ID()); rec.State != store.StatePromoted {
		t.Fatalf("state %d, want promoted", rec.State)
	}
	b.blocked(asks("k", "", read("a"))) // until the promotion lapses, it blocks like a held grant
	b.clock.Advance(4 * time.Second)
	b.stillWaits(next)
	b.clock.Advance(1 * time.Second)
	b.isServed(next)
	if rec := b.get(dead.ID()); rec != nil {
		t.Errorf("an unconfirmed promotion is still there: %+v", rec)
	}
	b.stillWaits(dead) // the waiter was only slow: it joins the queue again, at the end
	b.sound()
}

func testLapsedPlace(t *testing.T, f Fixture) {
	b := newBench(t, f, lock.Options{WaitLease: 10 * time.Second})
	g := b.takes(asks("h", "person", write("a")))
	slept := b.waits(asks("slept", "", write("a")))
	b.clock.Advance(9 * time.Second)
	awake := b.waits(asks("awake", "", write("a")))
	b.clock.Advance(1 * time.Second)
	ticket := b.get(slept.ID()).Ticket
	b.stillWaits(slept) // the request finds its position lost and enters the list again
	if rec := b.get(slept.ID()); rec.Ticket <= ticket || rec.Ticket <= b.get(awake.ID()).Ticket {
		t.Errorf("ticket %d, was %d: not at the end of the wait list", rec.Ticket, ticket)
	}
	b.release(g)
	b.stillWaits(slept)
	b.release(b.isServed(awake))
	b.isServed(slept)
	b.sound()
}

func testAttending(t *testing.T, f Fixture) {
	b := newBench(t, f, lock.Options{WaitLease: 10 * time.Second})
	g := b.takes(asks("h", "person", write("a")))
	w := b.waits(asks("w", "", write("a")))
	ticket := b.get(w.ID()).Ticket
	for range 5 {
		b.clock.Advance(9 * time.Second)
		b.stillWaits(w)
	}
	if got := b.get(w.ID()).Ticket; got != ticket {
		t.Errorf("ticket %d became %d", ticket, got)
	}
	b.release(g)
	if got := b.isServed(w); !got.ExpiresAt.Equal(b.clock.Now().Wall.Add(30 * time.Minute)) {
		t.Errorf("expires at %v: the lease of the grant begins with its confirmation", got.ExpiresAt)
	}
}

// shows: GP-14
func testWakesWaiter(t *testing.T, f Fixture) {
	b := newBench(t, f, lock.Options{})
	g := b.takes(asks("h", "", write("a")))
	w := b.waits(asks("w", "", write("a")))
	if c := w.Conflicts(); len(c) != 1 || c[0].GrantID != g.ID {
		t.Errorf("conflicts %+v", c)
	}
	select {
	case <-w.Woken():
		t.Error("the waiter is woken although nothing has changed")
	default:
	}
	b.release(g)
	select {
	case <-w.Woken():
	case <-time.After(wakeWithin):
		t.Error("the waiter was not woken")
	}
	b.isServed(w)
}

// shows: GP-14 SW-45
func testAcquireWakes(t *testing.T, f Fixture) {
	// A waiter that is not woken polls after a third of WaitLease, which is too late for this test.
	opt := lock.Options{WaitLease: 10 * wakeWithin}
	b := newBench(t, f, opt)
	waiter := b.m
	if f.Second != nil {
		waiter = b.manager(second(t, f, b.store, b.clock), opt)
	}
	g := b.takes(asks("h", "", write("a")))
	var wg sync.WaitGroup
	wg.Go(func() {
		got, err := waiter.Acquire(b.ctx, asks("w", "", write("a")), wakeWithin)
		if err != nil {
			t.Error(err)
		} else if got.Fence <= g.Fence {
			t.Errorf("fence %d after %d", got.Fence, g.Fence)
		}
	})
	b.until("the waiter is in the wait list", func() bool { return len(b.events(lockkeeper.EventWaiting)) > 0 })
	b.release(g)
	wg.Wait()
	b.sound()
}

// until polls for a state that another goroutine reaches.
func (b *bench) until(what string, ok func() bool) {
	b.Helper()
	for began := time.Now(); !ok(); time.Sleep(time.Millisecond) {
		if time.Since(began) > wakeWithin {
			b.Fatalf("waited too long until %s", what)
		}
	}
}

// shows: SW-45 DL-75 CF-18
func testAcquireTimesOut(t *testing.T, f Fixture) {
	b := newBench(t, f, lock.Options{})
	g := b.takes(asks("h", "", write("a")))
	for _, wait := range []time.Duration{0, 20 * time.Millisecond} {
		_, err := b.m.Acquire(b.ctx, asks("w", "", write("a", "b")), wait)
		var late *lockkeeper.LockTimeoutError
		if !errors.As(err, &late) || len(late.Conflicts) != 1 || late.Conflicts[0].GrantID != g.ID || late.Attempts == 0 || late.Waited < wait {
			t.Errorf("after %v: %+v", wait, err)
		}
	}
	b.takes(asks("k", "", write("b")))
	if n := len(b.events(lockkeeper.EventTimedOut)); n != 2 {
		t.Errorf("%d timeout events, want 2", n)
	}
}

func testAcquireCanceled(t *testing.T, f Fixture) {
	b := newBench(t, f, lock.Options{})
	b.takes(asks("h", "", write("a")))
	why := errors.New("changed my mind")
	ctx, cancel := context.WithCancelCause(b.ctx)
	var wg sync.WaitGroup
	wg.Go(func() {
		if _, err := b.m.Acquire(ctx, asks("w", "", write("a", "b")), wakeWithin); !errors.Is(err, why) {
			t.Errorf("got %v, want the cause", err)
		}
	})
	b.until("the waiter is in the wait list", func() bool { return len(b.events(lockkeeper.EventWaiting)) > 0 })
	cancel(why)
	wg.Wait()
	b.takes(asks("k", "", write("b")))
	if ev := b.events(lockkeeper.EventWithdrawn); len(ev) != 1 || ev[0].Reason != why.Error() {
		t.Errorf("withdrawn events %+v", ev)
	}
}

// A failing store rolls back one transaction.
type failing struct {
	store.Store
	after int // number of transactions before that transaction
}

func (s *failing) Update(ctx context.Context, fn func(store.Tx) error) error {
	s.after--
	return s.Store.Update(ctx, func(tx store.Tx) error {
		if err := fn(tx); err != nil || s.after != -1 {
			return err
		}
		return errUndo
	})
}

// shows: SW-71
func testFailedCommit(t *testing.T, f Fixture) {
	b := newBench(t, f, lock.Options{})
	m := b.manager(&failing{Store: b.store}, lock.Options{})
	if g, err := m.Acquire(b.ctx, asks("w", "", write("a")), time.Second); g != nil || !errors.Is(err, errUndo) {
		t.Errorf("got %+v, %v for a transaction that did not commit", g, err)
	}
	m = b.manager(&failing{Store: b.store}, lock.Options{})
	if g, err := m.TryAcquire(b.ctx, asks("w", "", write("a"))); g != nil || !errors.Is(err, errUndo) {
		t.Errorf("got %+v, %v for a transaction that did not commit", g, err)
	}
	m = b.manager(&failing{Store: b.store, after: 1}, lock.Options{})
	h := b.takes(asks("h", "", write("a")))
	p := get(m.NewPosition(asks("w", "", write("a"))))
	b.stillWaits(p)
	b.release(h)
	if g, err := p.Poll(b.ctx); g != nil || !errors.Is(err, errUndo) {
		t.Errorf("got %+v, %v for a confirmation that did not commit", g, err)
	}
	b.isServed(p)
	b.sound()
}

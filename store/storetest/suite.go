package storetest

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"lockkeeper"
	"lockkeeper/lock"
	"lockkeeper/store"
)

// A Fixture says how to open the store under test.
type Fixture struct {
	// Open creates a store with an empty space that reads its clocks from clock. The suite
	// closes it.
	Open func(t *testing.T, clock *Clock) store.Store

	// Second opens another handle on the space of the store first, as another process would. It is
	// nil for a store that one process uses. The suite closes the handle.
	Second func(t *testing.T, first store.Store, clock *Clock) store.Store

	// Random is the number of random operations to compare with the model.
	Random int

	// Drawn adds random operations that rapid draws and can shorten. It needs a store that
	// opens quickly.
	Drawn bool

	// Rounds is how often each race runs. The default is 100.
	Rounds int
}

// Run runs the whole suite.
func Run(t *testing.T, f Fixture) {
	if f.Rounds == 0 {
		f.Rounds = 100
	}
	groups := []struct {
		name  string
		tests []test
	}{
		{"Tx", txTests}, {"Fields", fieldTests}, {"Log", logTests}, {"Landing", landingTests}, {"Queue", queueTests}, {"Overlap", overlapTests}, {"Listen", listenTests},
		{"Rules", ruleTests}, {"Line", lineTests}, {"Grow", growTests}, {"Leases", leaseTests}, {"Revoking", revokeTests}, {"Audit", auditTests},
		{"Races", raceTests}, {"Input", inputTests},
	}
	for _, g := range groups {
		t.Run(g.name, func(t *testing.T) {
			for _, c := range g.tests {
				t.Run(c.name, func(t *testing.T) {
					defer stop(t)
					c.run(t, f)
				})
			}
		})
	}
	t.Run("Random", func(t *testing.T) { random(t, f) })
	if f.Drawn {
		t.Run("Drawn", func(t *testing.T) { drawn(t, f) })
	}
	t.Run("Linearizable", func(t *testing.T) {
		clock := NewClock()
		handles := openAll(t, f, clock)
		Linearizable(t, 6, 40, func(client int) store.Store { return handles[client%len(handles)] })
	})
}

type test struct {
	name string
	run  func(*testing.T, Fixture)
}

// A Clock is a pair of clocks that only tests advance.
type Clock struct {
	mu  sync.Mutex
	now store.Moment
}

// NewClock returns a clock at a fixed time.
func NewClock() *Clock {
	return &Clock{now: store.Moment{
		Lease: lockkeeper.Instant(time.Hour),
		Wall:  time.Date(2026, 2, 3, 4, 5, 6, 0, time.UTC),
	}}
}

// Now reads both clocks.
func (c *Clock) Now() store.Moment {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.now
	now.Skew = time.Since(now.Wall)
	return now
}

// Advance advances both clocks.
func (c *Clock) Advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now.Lease = c.now.Lease.Add(d)
	c.now.Wall = c.now.Wall.Add(d)
}

// JumpWall moves only the wall clock, forward or back.
func (c *Clock) JumpWall(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now.Wall = c.now.Wall.Add(d)
}

// Torture returns the factor by which random tests run longer than usual.
func Torture() int {
	n, err := strconv.Atoi(os.Getenv("LOCKKEEPER_TORTURE"))
	if err != nil {
		return 1
	}
	return max(1, n)
}

// Times returns the number of rounds of a random test: usual in an ordinary run, and tortured
// times Torture in a torture run.
func Times(usual, tortured int) int {
	if n := Torture(); n > 1 {
		return n * tortured
	}
	return usual
}

// A failure is an unexpected error. check and get raise it as a panic, so that it also rolls
// back the transaction around them, and stop ends the test with it.
type failure struct {
	err error
	at  string
}

func check(err error) { raise(err) }

func get[T any](v T, err error) T {
	raise(err)
	return v
}

// raise reports the line that called its caller.
func raise(err error) {
	if err != nil {
		_, file, line, _ := runtime.Caller(2)
		panic(failure{err, fmt.Sprintf("%s:%d", filepath.Base(file), line)})
	}
}

// stop must be deferred by the function that runs a test.
func stop(t *testing.T) {
	switch v := recover().(type) {
	case nil:
	case failure:
		t.Fatalf("%s: %v", v.at, v.err)
	default:
		panic(v)
	}
}

// must fails the test if err is not nil.
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func open(t *testing.T, f Fixture, clock *Clock) store.Store {
	t.Helper()
	s := f.Open(t, clock)
	t.Cleanup(func() { s.Close() })
	return s
}

// openAll opens a store, and a second handle on its space if the store has several.
func openAll(t *testing.T, f Fixture, clock *Clock) []store.Store {
	t.Helper()
	handles := []store.Store{open(t, f, clock)}
	if f.Second != nil {
		handles = append(handles, second(t, f, handles[0], clock))
	}
	return handles
}

func second(t *testing.T, f Fixture, first store.Store, clock *Clock) store.Store {
	t.Helper()
	s := f.Second(t, first, clock)
	t.Cleanup(func() { s.Close() })
	return s
}

// A bench is a store with a manager, for tests of the engine's rules.
type bench struct {
	*testing.T
	ctx   context.Context
	clock *Clock
	store store.Store
	m     *lock.Manager
}

func newBench(t *testing.T, f Fixture, opt lock.Options) *bench {
	t.Helper()
	clock := NewClock()
	b := &bench{T: t, ctx: t.Context(), clock: clock, store: open(t, f, clock)}
	b.m = b.manager(b.store, opt)
	return b
}

// manager returns a manager that polls rarely, so that tests depend on wake-ups.
func (b *bench) manager(s store.Store, opt lock.Options) *lock.Manager {
	if opt.WaitLease == 0 {
		opt.WaitLease = time.Minute
	}
	m := lock.New(s, opt)
	b.Cleanup(func() { m.Close() })
	return m
}

// read, write and upgradeable return locks of kind File.
func read(paths ...string) []lockkeeper.Lock  { return locks(lockkeeper.Read, lockkeeper.File, paths) }
func write(paths ...string) []lockkeeper.Lock { return locks(lockkeeper.Write, lockkeeper.File, paths) }
func upgradeable(paths ...string) []lockkeeper.Lock {
	return locks(lockkeeper.Upgradeable, lockkeeper.File, paths)
}

func locks(m lockkeeper.Mode, k lockkeeper.Kind, paths []string) []lockkeeper.Lock {
	var out []lockkeeper.Lock
	for _, p := range paths {
		out = append(out, lockkeeper.Lock{Target: lockkeeper.Target{Path: p, Kind: k}, Mode: m})
	}
	return out
}

func asks(holder, policy string, locks ...[]lockkeeper.Lock) lockkeeper.Request {
	r := lockkeeper.Request{Holder: holder, Policy: policy}
	for _, l := range locks {
		r.Locks = append(r.Locks, l...)
	}
	return r
}

// takes acquires a request, which must be granted.
func (b *bench) takes(r lockkeeper.Request) *lock.Grant {
	b.Helper()
	g, err := b.m.TryAcquire(b.ctx, r)
	if err != nil {
		b.Fatalf("%s %v: %v", r.Holder, r.Locks, err)
	}
	return g
}

// shown checks the flags that people see for a grant. A stale grant blocks the next request, a
// free one does not.
func (b *bench) shown(id string, stale, free bool) {
	b.Helper()
	e, err := b.m.Request(b.ctx, id)
	if err != nil || e == nil {
		b.Fatalf("%s: %v, %v", id, e, err)
	}
	if e.Stale != stale || e.Free != free {
		b.Errorf("shown as stale %v, free %v; want %v, %v", e.Stale, e.Free, stale, free)
	}
}

// blocked tries a request, which must be refused, and returns the error.
func (b *bench) blocked(r lockkeeper.Request) *lockkeeper.BlockedError {
	b.Helper()
	g, err := b.m.TryAcquire(b.ctx, r)
	e, ok := err.(*lockkeeper.BlockedError)
	if !ok {
		b.Fatalf("%s %v: got %+v, %v, want blocked", r.Holder, r.Locks, g, err)
	}
	return e
}

// waits adds a request, which must be blocked, to the wait list.
func (b *bench) waits(r lockkeeper.Request) *lock.Position {
	b.Helper()
	p, err := b.m.NewPosition(r)
	if err != nil {
		b.Fatal(err)
	}
	b.stillWaits(p)
	return p
}

func (b *bench) stillWaits(p *lock.Position) {
	b.Helper()
	switch g, err := p.Poll(b.ctx); {
	case err != nil:
		b.Fatal(err)
	case g != nil:
		b.Fatalf("%s was granted %v, want it to wait", g.Holder, g.Locks)
	}
}

// isServed polls a position, which must have its grant, and returns it.
func (b *bench) isServed(p *lock.Position) *lock.Grant {
	b.Helper()
	g, err := p.Poll(b.ctx)
	if err != nil {
		b.Fatal(err)
	}
	if g == nil {
		b.Fatalf("still waits for %v", p.Conflicts())
	}
	return g
}

// wants checks the code of an error; "" wants no error.
func (b *bench) wants(code lockkeeper.Code, err error, what string) {
	b.Helper()
	if (err == nil) != (code == "") || err != nil && lockkeeper.CodeOf(err) != code {
		b.Errorf("%s: %v, want code %q", what, err, code)
	}
}

func (b *bench) renew(g *lock.Grant) error {
	_, err := b.m.Renew(b.ctx, g.ID, g.Token)
	return err
}

func (b *bench) upgrade(g *lock.Grant, paths ...string) error {
	_, err := b.m.Upgrade(b.ctx, g.ID, g.Token, paths...)
	return err
}

func (b *bench) extend(g *lock.Grant, locks ...lockkeeper.Lock) error {
	_, err := b.m.Extend(b.ctx, g.ID, g.Token, locks...)
	return err
}

func (b *bench) release(g *lock.Grant) {
	b.Helper()
	must(b, g.Release(b.ctx))
}

// get returns the stored record with an id, or nil.
func (b *bench) get(id string) (rec *store.Record) {
	b.Helper()
	b.view(func(r store.Reader) { rec = get(r.Get(id)) })
	return rec
}

func (b *bench) view(fn func(store.Reader)) {
	b.Helper()
	view(b.T, b.store, fn)
}

// events returns the events of some kinds, oldest first.
func (b *bench) events(kinds ...lockkeeper.EventKind) (out []lockkeeper.Event) {
	b.Helper()
	b.view(func(r store.Reader) {
		all := get(r.Events(store.EventQuery{Limit: 10_000}))
		for _, e := range all {
			if slices.Contains(kinds, e.Kind) {
				out = append(out, e)
			}
		}
	})
	return out
}

// sound checks the invariants of the space.
func (b *bench) sound() {
	b.Helper()
	b.view(func(r store.Reader) { check(Check(r)) })
}

package storetest

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"lockkeeper"
	"lockkeeper/lock"
)

var leaseTests = []test{
	{"agent: an expired grant blocks no request", testAgentExpires},
	{"renewing", testRenew},
	{"a jump of the wall clock frees nothing", testWallJump},
	{"an expired grant goes to the next waiter", testExpiryHandsOver},
	{"dal: four conditions", testFourConditions},
	{"dal: a live process is a claim", testLiveProcess},
	{"tidy: the next acquirer breaks", testBreak},
	{"author and person: only a person frees an expired grant", testAsk},
	{"a heartbeat does not stop a force-release", testOverruled},
	{"a holder that loses its grant at work releases nothing", testOverruledAtWork},
	{"a dead holder is recovered at once", testDeadHolder},
	{"the processes of a dead holder must end first", testLeftovers},
}

// processes is a fake of lock.Processes with preset answers.
type processes struct {
	mu       sync.Mutex
	liveness map[int]lockkeeper.Liveness // by pid
	ended    []string                    // grants whose leftover processes were ended
	stuck    error
	asked    func() // called by Liveness
	busy     func() // called by EndWork
}

func (p *processes) set(pid int, l lockkeeper.Liveness) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.liveness == nil {
		p.liveness = map[int]lockkeeper.Liveness{}
	}
	p.liveness[pid] = l
}

func (p *processes) Liveness(q lockkeeper.Process) lockkeeper.Liveness {
	if p.asked != nil {
		p.asked()
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.liveness[q.PID]
}

func (p *processes) Exited(context.Context, lockkeeper.Process) <-chan struct{} { return nil }

func (p *processes) EndLeftovers(_ context.Context, _ lockkeeper.Process, id string) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.stuck == nil {
		p.ended = append(p.ended, id)
	}
	return p.stuck
}

func (p *processes) EndWork(ctx context.Context, q lockkeeper.Process, id string) error {
	if p.busy != nil {
		p.busy()
	}
	return p.EndLeftovers(ctx, q, id)
}

func asksBy(p lockkeeper.Process, holder, policy string, ls []lockkeeper.Lock) lockkeeper.Request {
	r := asks(holder, policy, ls)
	r.Process = &p
	return r
}

func (b *bench) recover(want int) {
	b.Helper()
	if n, err := b.m.Recover(b.ctx); n != want || err != nil {
		b.Fatalf("recovered %d, %v, want %d", n, err, want)
	}
}

// shows: GP-15 SW-72 PL-45
func testAgentExpires(t *testing.T, f Fixture) {
	b := newBench(t, f, lock.Options{})
	g := b.takes(asks("h", "", write("a")))
	b.clock.Advance(30*time.Minute - 1)
	b.blocked(asks("k", "", write("a")))
	b.clock.Advance(1)
	if got, err := b.m.CheckConflicts(b.ctx, write("a")); err != nil || len(got) != 0 {
		t.Errorf("conflicts with an expired grant: %v, %v", got, err)
	}
	next := b.takes(asks("k", "", write("a"))) // the request frees the expired grant without a reaper
	if next.Fence <= g.Fence {
		t.Errorf("fence %d after %d", next.Fence, g.Fence)
	}
	b.wants(lockkeeper.CodeNotHeld, b.renew(g), "renewing an expired grant")
	b.release(g) // has no effect on the next holder's grant
	b.blocked(asks("l", "", write("a")))
	// The reaper frees grants that no request has found.
	b.clock.Advance(time.Hour)
	b.recover(1)
	b.recover(0)
	if ev := b.events(lockkeeper.EventExpired); len(ev) != 2 || len(ev[0].Conditions) == 0 || ev[0].Reason == "" || ev[0].Actor.Kind != lockkeeper.ActorSystem {
		t.Errorf("expiry events %+v", ev)
	}
	b.sound()
}

// shows: GP-15 GP-33 CF-10
func testRenew(t *testing.T, f Fixture) {
	b := newBench(t, f, lock.Options{})
	r := asks("h", "", read("a"))
	r.TTL = time.Minute
	g := b.takes(r)
	for range 5 {
		b.clock.Advance(50 * time.Second)
		got, err := b.m.Renew(b.ctx, g.ID, g.Token)
		if err != nil || !got.ExpiresAt.Equal(b.clock.Now().Wall.Add(time.Minute)) || !got.HeartbeatAt.Equal(b.clock.Now().Wall) {
			t.Fatalf("renewed %+v, %v", got, err)
		}
	}
	_, err := b.m.Renew(b.ctx, g.ID, "guess")
	b.wants(lockkeeper.CodeNotHeld, err, "with a wrong token")
	b.clock.Advance(time.Minute) // an expired grant is not revived, even if it is not freed yet
	b.wants(lockkeeper.CodeNotHeld, b.renew(g), "after expiry")
	if n := len(b.events(lockkeeper.EventRenewFailed)); n != 2 {
		t.Errorf("%d failures recorded, want 2", n)
	}
}

func testWallJump(t *testing.T, f Fixture) {
	b := newBench(t, f, lock.Options{WaitLease: time.Minute})
	g := b.takes(asks("h", "", write("a")))
	w := b.waits(asks("w", "", write("a")))
	ticket := b.get(w.ID()).Ticket
	for _, jump := range []time.Duration{time.Hour, -3 * time.Hour, 100 * 24 * time.Hour} {
		b.clock.JumpWall(jump)
		b.recover(0)
		b.blocked(asks("k", "", write("a")))
		b.stillWaits(w)
		b.wants("", b.renew(g), "after a jump of "+jump.String())
	}
	if got := b.get(w.ID()).Ticket; got != ticket {
		t.Error("a jump of the wall clock cost a request its position in the wait list")
	}
}

func testExpiryHandsOver(t *testing.T, f Fixture) {
	b := newBench(t, f, lock.Options{WaitLease: time.Hour})
	b.takes(asks("h", "", write("a", "b")))
	first := b.waits(asks("first", "", write("a")))
	second := b.waits(asks("second", "", write("a")))
	other := b.waits(asks("other", "", write("b")))
	b.clock.Advance(30 * time.Minute)
	b.stillWaits(second) // the poll of second finds the expired grant, and the first waiter gets the lock
	b.isServed(first)
	b.isServed(other)
	b.stillWaits(second)
	b.sound()
}

// shows: DL-6 DL-17 DL-18 DL-71 DL-76 GP-32
func testFourConditions(t *testing.T, f Fixture) {
	type want struct{ lease, quiet, unclaimed bool }
	for name, c := range map[string]struct {
		ttl    time.Duration // lease of the grant
		silent time.Duration // time since the last heartbeat of the grant
		alive  bool
		want   want
	}{
		"all hold":             {45 * time.Second, 75 * time.Second, false, want{true, true, true}},
		"the lease runs":       {2 * time.Minute, 75 * time.Second, false, want{false, true, true}},
		"the heartbeat is new": {10 * time.Second, 20 * time.Second, false, want{true, false, true}},
		"its process is alive": {45 * time.Second, 75 * time.Second, true, want{true, true, false}},
	} {
		t.Run(name, func(t *testing.T) {
			ps := &processes{}
			b := newBench(t, f, lock.Options{Processes: ps})
			r := asks("job", "dal", write("a"))
			r.TTL = c.ttl
			if c.alive {
				r.Process = &lockkeeper.Process{PID: 1}
				ps.set(1, lockkeeper.ProcessAlive)
			}
			g := b.takes(r)
			b.clock.Advance(c.silent)
			admin := lockkeeper.Actor{Name: "root", Kind: lockkeeper.ActorAdmin}
			if c.want == (want{true, true, true}) {
				b.shown(g.ID, false, true)
				b.takes(asks("next", "dal", write("a")))
				ev := b.events(lockkeeper.EventRecovered)
				if len(ev) != 1 || ev[0].GrantID != g.ID || ev[0].Actor.Name == "" || ev[0].Reason == "" || len(ev[0].Conditions) != 4 {
					t.Fatalf("recovery events %+v", ev)
				}
				if slices.ContainsFunc(ev[0].Conditions, func(c lockkeeper.Condition) bool { return !c.Held }) {
					t.Errorf("recovered under %+v", ev[0].Conditions)
				}
				return
			}
			b.recover(0)
			b.shown(g.ID, c.want.lease, false)
			b.blocked(asks("next", "dal", write("a")))
			told, wouldRefuse, err := b.m.Conditions(b.ctx, g.ID)
			if err != nil || !wouldRefuse {
				t.Errorf("asked beforehand: %v, refused %v, %v", told, wouldRefuse, err)
			}
			err = b.m.ForceRelease(b.ctx, g.ID, admin, "in a hurry")
			var refused *lockkeeper.RefusedError
			if !errors.As(err, &refused) || len(refused.Conditions) != 4 {
				t.Fatalf("forced: %v", err)
			}
			got := want{refused.Conditions[0].Held, refused.Conditions[1].Held, refused.Conditions[2].Held}
			if got != c.want || !slices.Equal(refused.Conditions, told) {
				t.Errorf("conditions %+v, want %+v, told %+v", refused.Conditions, c.want, told)
			}
			if ev := b.events(lockkeeper.EventRefused); len(ev) != 1 || len(ev[0].Conditions) != 4 {
				t.Errorf("refusals recorded: %+v", ev)
			}
			b.wants("", b.renew(g), "a stale grant that was not recovered cannot be renewed")
		})
	}
}

// shows: GP-32
func testLiveProcess(t *testing.T, f Fixture) {
	ps := &processes{}
	b := newBench(t, f, lock.Options{Processes: ps})
	ps.set(1, lockkeeper.ProcessAlive)
	b.takes(asksBy(lockkeeper.Process{PID: 1}, "job", "dal", write("a")))
	b.clock.Advance(2 * time.Minute)
	b.recover(0) // the holder is alive
	ps.set(1, lockkeeper.ProcessDead)
	b.recover(1)
	b.sound()
}

// shows: CF-9
func testBreak(t *testing.T, f Fixture) {
	b := newBench(t, f, lock.Options{})
	g := b.takes(asks("h", "tidy", write("a")))
	b.clock.Advance(1920*time.Second - 1)
	b.blocked(asks("k", "tidy", write("a")))
	b.wants("", b.renew(g), "renewing within the grace")
	b.clock.Advance(1920 * time.Second)
	b.takes(asks("k", "tidy", write("a")))
}

// shows: CF-9
func testAsk(t *testing.T, f Fixture) {
	ps := &processes{}
	b := newBench(t, f, lock.Options{Processes: ps})
	for i, policy := range []string{"author", "person"} {
		r := asks("h", policy, write(policy))
		r.Process = &lockkeeper.Process{PID: i + 1}
		g := b.takes(r)
		ps.set(i+1, lockkeeper.ProcessDead)
		b.clock.Advance(100 * time.Hour)
		b.recover(0)
		b.shown(g.ID, policy == "author", false)
		b.blocked(asks("k", "", write(policy)))
		b.wants("", b.m.ForceRelease(b.ctx, g.ID, lockkeeper.Actor{Name: "Ada", Kind: lockkeeper.ActorPerson}, "she left"), "a person may")
		b.release(b.takes(asks("k", "", write(policy))))
	}
	if ev := b.events(lockkeeper.EventForceReleased); len(ev) != 2 || ev[0].Actor.Name != "Ada" || ev[0].Reason != "she left" || len(ev[0].Conditions) == 0 {
		t.Errorf("force events %+v", ev)
	}
}

// If a holder renews its grant while a person force-releases it, the person wins.
//
// shows: CF-9
func testOverruled(t *testing.T, f Fixture) {
	ps := &processes{}
	b := newBench(t, f, lock.Options{Processes: ps})
	ps.set(1, lockkeeper.ProcessAlive)
	g := b.takes(asksBy(lockkeeper.Process{PID: 1}, "h", "", write("a")))
	beats := 3
	ps.asked = func() { // after the grant was read, before it is freed
		if beats--; beats < 0 {
			return
		}
		b.clock.Advance(time.Second)
		must(b, b.renew(g))
	}
	b.wants("", b.m.ForceRelease(b.ctx, g.ID, lockkeeper.Actor{Name: "Ada", Kind: lockkeeper.ActorPerson}, "it is due"), "a person may")
	b.takes(asks("k", "", write("a")))
}

// If a person force-releases a grant while its holder works, the holder notices at once and its
// own release has no effect. The log names the person.
//
// shows: CF-9 CF-14
func testOverruledAtWork(t *testing.T, f Fixture) {
	ps := &processes{}
	b := newBench(t, f, lock.Options{Processes: ps, RecoverLandings: func(context.Context, string) error { return nil }})
	ps.set(1, lockkeeper.ProcessAlive)
	g := b.takes(asksBy(lockkeeper.Process{PID: 1, Group: 5}, "h", "", write("a")))
	ps.busy = func() {
		if err := g.Live(b.ctx); lockkeeper.CodeOf(err) != lockkeeper.CodeNotHeld {
			t.Errorf("its holder is not told: %v", err)
		}
		if given, err := b.m.Release(b.ctx, g.ID, g.Token); given || err == nil || !strings.Contains(err.Error(), "revoked") {
			t.Errorf("the release of a grant that is being revoked: %v, %v", given, err)
		}
	}
	b.wants("", b.m.ForceRelease(b.ctx, g.ID, lockkeeper.Actor{Name: "Ada", Kind: lockkeeper.ActorPerson}, "it is due"), "a person may")
	if ev := b.events(lockkeeper.EventForceReleased); len(ev) != 1 || ev[0].Actor.Name != "Ada" || ev[0].Reason != "it is due" {
		t.Errorf("force events %+v", ev)
	}
	if err := g.Live(b.ctx); lockkeeper.CodeOf(err) != lockkeeper.CodeNotHeld || len(ps.ended) != 1 {
		t.Errorf("live: %v, ended %v", err, ps.ended)
	}
	b.takes(asks("k", "", write("a")))
}

// shows: SW-71
func testDeadHolder(t *testing.T, f Fixture) {
	ps := &processes{}
	b := newBench(t, f, lock.Options{Processes: ps})
	g := b.takes(asksBy(lockkeeper.Process{PID: 1, Group: 5}, "h", "", write("a")))
	ps.set(1, lockkeeper.ProcessAlive)
	ps.set(2, lockkeeper.ProcessAlive)
	b.waits(asksBy(lockkeeper.Process{PID: 2}, "dead waiter", "", write("a")))
	b.blocked(asks("k", "", write("a")))
	ps.set(1, lockkeeper.ProcessDead)
	ps.set(2, lockkeeper.ProcessDead)
	b.takes(asks("k", "", write("a")))
	if !slices.Equal(ps.ended, []string{g.ID}) {
		t.Errorf("leftovers of %v were ended, want those of %s alone", ps.ended, g.ID)
	}
	if ev := b.events(lockkeeper.EventRecovered); len(ev) != 2 || len(ev[0].Conditions) == 0 {
		t.Errorf("recovery events %+v", ev)
	}
	b.sound()
}

func testLeftovers(t *testing.T, f Fixture) {
	ps := &processes{stuck: errors.New("pid 6 is in uninterruptible sleep")}
	b := newBench(t, f, lock.Options{Processes: ps})
	b.takes(asksBy(lockkeeper.Process{PID: 1, Group: 5}, "h", "", write("a")))
	ps.set(1, lockkeeper.ProcessDead)
	for range 3 {
		b.recover(0)
		b.clock.Advance(30 * time.Minute) // the grant blocks others even after its lease has expired
		b.blocked(asks("k", "", write("a")))
	}
	if ev := b.events(lockkeeper.EventRecoverFailed); len(ev) != 1 || !strings.HasSuffix(ev[0].Reason, ps.stuck.Error()) {
		t.Errorf("failures recorded: %+v, want one", ev)
	}
	ps.mu.Lock()
	ps.stuck = nil
	ps.mu.Unlock()
	b.takes(asks("k", "", write("a")))
}

package storetest

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"lockkeeper"
	"lockkeeper/lock"
	"lockkeeper/store"
)

var revokeTests = []test{
	{"a grant stays in the state Landing until its landing ends", testLandingGrant},
	{"landing needs a live grant", testLandingNeedsGrant},
	{"release recovers first", testReleaseRecovers},
	{"an expired grant is revoked, recovered and only then handed on", testRevoking},
	{"a landing that cannot be recovered blocks", testRevokingBlocks},
}

// A recoverer counts its calls and recovers landings with a preset result.
type recoverer struct {
	do    func(context.Context, string) error
	calls atomic.Int32
}

func (r *recoverer) recover(ctx context.Context, id string) error {
	if r.do == nil {
		return &lockkeeper.RefusedError{Act: "recovery", Reason: "no way to the tree"}
	}
	r.calls.Add(1)
	return r.do(ctx, id)
}

// lands records a decided landing under a grant, as the gate does.
func (b *bench) lands(g *lock.Grant, commit string) (*lockkeeper.Landing, error) {
	l := &lockkeeper.Landing{Commit: commit, Taker: commit, State: lockkeeper.Decided, Changes: altered("x", "a")}
	return l, b.m.Update(b.ctx, func(a *lock.Tx) error {
		rec, err := a.Writable(g.ID, g.Token)
		if err != nil {
			return err
		}
		l.GrantID, l.Holder, l.Fence = rec.ID, rec.Holder, rec.Fence
		if l.Seq, err = a.Append(lockkeeper.Event{Kind: lockkeeper.EventLanded, GrantID: g.ID}); err != nil {
			return err
		}
		return errors.Join(a.InsertLanding(l), a.LandingOpened(rec))
	})
}

// ends sets the end state of a landing, unless another process has taken the landing over.
func (b *bench) ends(l *lockkeeper.Landing, taker string, state lockkeeper.LandingState) {
	b.Helper()
	must(b, b.endLanding(b.ctx, l, taker, state))
}

func (b *bench) endLanding(ctx context.Context, l *lockkeeper.Landing, taker string, state lockkeeper.LandingState) error {
	return b.m.Update(ctx, func(a *lock.Tx) error {
		return errors.Join(a.EndLanding(store.TakenLanding{Seq: l.Seq, Taker: taker}, state), a.LandingEnded(l.GrantID))
	})
}

// takesOver changes the taker of a landing unless the landing has ended.
func (b *bench) takesOver(l *lockkeeper.Landing, taker string) {
	b.Helper()
	must(b, b.store.Update(b.ctx, func(tx store.Tx) error { return tx.TakeLanding(store.TakenLanding{Seq: l.Seq, Taker: taker}) }))
}

func (b *bench) state(id, want string) {
	b.Helper()
	e, err := b.m.Request(b.ctx, id)
	switch {
	case err != nil:
		b.Fatal(err)
	case e == nil && want != "":
		b.Fatalf("grant %s is gone, want it %s", id, want)
	case e != nil && e.State != want:
		b.Fatalf("grant %s is %s, want %q", id, e.State, want)
	}
}

func testLandingGrant(t *testing.T, f Fixture) {
	b := newBench(t, f, lock.Options{})
	g := b.takes(asks("h", "", write("a")))
	first := get(b.lands(g, "c1"))
	if first.Seq == 0 || first.Fence != g.Fence || first.Holder != "h" || first.State != lockkeeper.Decided {
		t.Errorf("landing %+v", first)
	}
	b.state(g.ID, "landing")
	b.wants("", b.renew(g), "a landing grant cannot be renewed")
	second := get(b.lands(g, "c2"))
	b.ends(first, first.Taker, lockkeeper.Committed)
	b.state(g.ID, "landing")
	b.takesOver(second, "recovery")
	b.ends(second, second.Commit, lockkeeper.Committed) // no effect: another process took the landing over
	b.state(g.ID, "landing")
	b.ends(second, "recovery", lockkeeper.Undone)
	b.state(g.ID, "held")
	b.takesOver(second, "too late")
	b.ends(second, "too late", lockkeeper.Committed)
	for seq, want := range map[uint64]lockkeeper.LandingState{first.Seq: lockkeeper.Committed, second.Seq: lockkeeper.Undone} {
		if got := landings(t, b.store, store.LandingQuery{Seq: seq}); len(got) != 1 || got[0].State != want {
			t.Errorf("landing %d: %v, want it %s", seq, got, want)
		}
	}
}

// shows: SW-36 SW-37 GP-4 CF-11
func testLandingNeedsGrant(t *testing.T, f Fixture) {
	b := newBench(t, f, lock.Options{})
	refused := func(why string, g *lock.Grant) {
		t.Helper()
		if _, err := b.lands(g, why); lockkeeper.CodeOf(err) != lockkeeper.CodeNotHeld {
			t.Errorf("%s: %v, want it refused", why, err)
		}
	}
	for _, policy := range []string{"agent", "tidy", "dal"} {
		g := b.takes(asks("h", policy, write("a")))
		b.clock.Advance(24 * time.Hour)
		refused("expired "+policy, g)
		b.release(g)
	}
	g := b.takes(asks("h", "", write("a")))
	token := g.Token
	g.Token = "wrong"
	refused("wrong token", g)
	g.Token = token
	b.release(g)
	refused("released", g)
	if got := landings(t, b.store, store.LandingQuery{}); len(got) != 0 {
		t.Errorf("%d landings were kept", len(got))
	}
}

func testReleaseRecovers(t *testing.T, f Fixture) {
	r := &recoverer{}
	b := newBench(t, f, lock.Options{RecoverLandings: r.recover})
	g := b.takes(asks("h", "", write("a")))
	l := get(b.lands(g, "c1"))
	if err := g.Release(b.ctx); lockkeeper.CodeOf(err) != lockkeeper.CodeRefused {
		t.Fatalf("released with no way to recover: %v", err)
	}
	b.blocked(asks("k", "", write("a")))
	r.do = func(ctx context.Context, _ string) error { return b.endLanding(ctx, l, l.Taker, lockkeeper.Committed) }
	if err := g.Release(b.ctx); err != nil || r.calls.Load() != 1 {
		t.Fatalf("release %v after %d recoveries, want one", err, r.calls.Load())
	}
	b.state(g.ID, "")
	b.takes(asks("k", "", write("a")))
}

func testRevoking(t *testing.T, f Fixture) {
	r := &recoverer{}
	b := newBench(t, f, lock.Options{RecoverLandings: r.recover})
	g := b.takes(asks("h", "", write("a")))
	l := get(b.lands(g, "c1"))
	b.clock.Advance(time.Hour)
	r.do = func(ctx context.Context, _ string) error {
		b.state(g.ID, "revoking")
		if _, err := b.lands(g, "late"); lockkeeper.CodeOf(err) != lockkeeper.CodeNotHeld {
			t.Errorf("a revoked grant decided: %v", err)
		}
		b.wants(lockkeeper.CodeNotHeld, b.renew(g), "a revoked grant was renewed")
		return b.endLanding(ctx, l, l.Taker, lockkeeper.Committed)
	}
	k := b.takes(asks("k", "", write("a")))
	b.state(g.ID, "")
	if k.Fence <= l.Seq {
		t.Errorf("fence %d is not above landing %d", k.Fence, l.Seq)
	}
}

func testRevokingBlocks(t *testing.T, f Fixture) {
	r := &recoverer{}
	b := newBench(t, f, lock.Options{RecoverLandings: r.recover})
	g := b.takes(asks("h", "", write("a")))
	l := get(b.lands(g, "c1"))
	b.clock.Advance(time.Hour)
	away := errors.New("its files are elsewhere")
	r.do = func(context.Context, string) error { return away }
	b.blocked(asks("k", "", write("a")))
	b.recover(0)
	b.state(g.ID, "revoking")
	b.clock.Advance(1000 * time.Hour)
	b.blocked(asks("k", "", write("a")))
	r.do = func(ctx context.Context, _ string) error { return b.endLanding(ctx, l, l.Taker, lockkeeper.Committed) }
	b.recover(1)
	b.takes(asks("k", "", write("a")))
}

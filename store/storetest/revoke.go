package storetest

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"lockkeeper"
	"lockkeeper/lock"
)

var revokeTests = []test{
	{"a grant is landing until what it decided is done", testLandingGrant},
	{"landing needs a live grant", testLandingNeedsGrant},
	{"release settles first", testReleaseSettles},
	{"an expired grant is revoked, settled and only then handed on", testRevoking},
	{"what cannot be settled blocks on", testRevokingBlocks},
}

// settler counts, and settles as it is told.
type settler struct {
	settle func(context.Context, string) error
	calls  atomic.Int32
}

func (s *settler) Settle(ctx context.Context, id string) error {
	s.calls.Add(1)
	return s.settle(ctx, id)
}

// lands decides a landing under a grant.
func (b *bench) lands(g *lock.Grant, commit string) (*lockkeeper.Landing, error) {
	l := &lockkeeper.Landing{Commit: commit, Changes: altered("x", "a")}
	return l, b.m.Land(b.ctx, g.ID, g.Token, l, func(_ lockkeeper.Reader, rec *lockkeeper.Record) error {
		if !rec.Covers("a") {
			return errors.New("not covered")
		}
		return nil
	})
}

func (b *bench) state(id, want string) {
	b.Helper()
	e, err := b.m.Entry(b.ctx, id)
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
	first, err := b.lands(g, "c1")
	if err != nil {
		t.Fatal(err)
	}
	if first.Seq == 0 || first.Fence != g.Fence || first.Holder != "h" || first.State != lockkeeper.Decided {
		t.Errorf("landing %+v", first)
	}
	b.state(g.ID, "landing")
	if _, err := b.m.Renew(b.ctx, g.ID, g.Token); err != nil {
		t.Errorf("a landing grant cannot be renewed: %v", err)
	}
	second, err := b.lands(g, "c2")
	if err != nil {
		t.Fatal(err)
	}
	if err := b.m.Committed(b.ctx, g.ID, lockkeeper.Ending{Seq: first.Seq, Taker: first.Taker}); err != nil {
		t.Fatal(err)
	}
	b.state(g.ID, "landing")
	if taken, err := b.m.TakeLanding(b.ctx, lockkeeper.Ending{Seq: second.Seq, Taker: "recovery"}); err != nil || taken == nil {
		t.Fatalf("taken over: %v, %v", taken, err)
	}
	if ended, err := b.m.EndLanding(b.ctx, lockkeeper.Ending{Seq: second.Seq, Taker: second.Commit}, lockkeeper.Committed, ""); ended || err != nil {
		t.Fatalf("ended by a writer that was overtaken: %v, %v", ended, err)
	}
	if ended, err := b.m.EndLanding(b.ctx, lockkeeper.Ending{Seq: second.Seq, Taker: "recovery"}, lockkeeper.Undone, "an edit"); !ended || err != nil {
		t.Fatalf("ended: %v, %v", ended, err)
	}
	if taken, err := b.m.TakeLanding(b.ctx, lockkeeper.Ending{Seq: second.Seq, Taker: "too late"}); err != nil || taken != nil {
		t.Fatalf("taken over when it had ended: %v, %v", taken, err)
	}
	b.state(g.ID, "held")
	if err := b.m.Committed(b.ctx, g.ID, lockkeeper.Ending{Seq: second.Seq, Taker: second.Taker}); err != nil { // too late: it was taken back
		t.Fatal(err)
	}
	for seq, want := range map[uint64]lockkeeper.LandingState{first.Seq: lockkeeper.Committed, second.Seq: lockkeeper.Undone} {
		if got := landings(t, b.store, lockkeeper.LandingQuery{Seq: seq}); len(got) != 1 || got[0].State != want {
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
	if got := landings(t, b.store, lockkeeper.LandingQuery{}); len(got) != 0 {
		t.Errorf("%d landings were kept", len(got))
	}
}

func testReleaseSettles(t *testing.T, f Fixture) {
	b := newBench(t, f, lock.Options{})
	g := b.takes(asks("h", "", write("a")))
	l, err := b.lands(g, "c1")
	if err != nil {
		t.Fatal(err)
	}
	if err := g.Release(b.ctx); lockkeeper.CodeOf(err) != lockkeeper.CodeRefused {
		t.Fatalf("released with nobody to settle: %v", err)
	}
	b.blocked(asks("k", "", write("a")))
	s := &settler{settle: func(ctx context.Context, id string) error {
		return b.m.Committed(ctx, id, lockkeeper.Ending{Seq: l.Seq, Taker: l.Taker})
	}}
	b.m.SettleWith(s)
	if err := g.Release(b.ctx); err != nil || s.calls.Load() != 1 {
		t.Fatalf("release %v after %d settlings, want one", err, s.calls.Load())
	}
	b.state(g.ID, "")
	b.takes(asks("k", "", write("a")))
}

func testRevoking(t *testing.T, f Fixture) {
	b := newBench(t, f, lock.Options{})
	g := b.takes(asks("h", "", write("a")))
	l, err := b.lands(g, "c1")
	if err != nil {
		t.Fatal(err)
	}
	b.clock.Advance(time.Hour)
	b.m.SettleWith(&settler{settle: func(ctx context.Context, id string) error {
		b.state(g.ID, "revoking")
		if _, err := b.lands(g, "late"); lockkeeper.CodeOf(err) != lockkeeper.CodeNotHeld {
			t.Errorf("a revoked grant decided: %v", err)
		}
		if _, err := b.m.Renew(ctx, g.ID, g.Token); lockkeeper.CodeOf(err) != lockkeeper.CodeNotHeld {
			t.Errorf("a revoked grant was renewed: %v", err)
		}
		return b.m.Committed(ctx, id, lockkeeper.Ending{Seq: l.Seq, Taker: l.Taker})
	}})
	k := b.takes(asks("k", "", write("a")))
	b.state(g.ID, "")
	if k.Fence <= l.Seq {
		t.Errorf("fence %d is not above landing %d", k.Fence, l.Seq)
	}
}

func testRevokingBlocks(t *testing.T, f Fixture) {
	b := newBench(t, f, lock.Options{})
	g := b.takes(asks("h", "", write("a")))
	l, err := b.lands(g, "c1")
	if err != nil {
		t.Fatal(err)
	}
	b.clock.Advance(time.Hour)
	away := errors.New("its files are elsewhere")
	s := &settler{settle: func(context.Context, string) error { return away }}
	b.m.SettleWith(s)
	b.blocked(asks("k", "", write("a")))
	b.recover(0)
	b.state(g.ID, "revoking")
	b.clock.Advance(1000 * time.Hour)
	b.blocked(asks("k", "", write("a")))
	s.settle = func(ctx context.Context, id string) error {
		return b.m.Committed(ctx, id, lockkeeper.Ending{Seq: l.Seq, Taker: l.Taker})
	}
	b.recover(1)
	b.takes(asks("k", "", write("a")))
}

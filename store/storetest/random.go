package storetest

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"lockkeeper"
	"lockkeeper/lock"
	"lockkeeper/store"
)

// segment is the number of operations per space. Short segments make failures readable.
const segment = 2_500

// seedOf returns the given seed of a test, or a new one that a failure prints.
func seedOf(t *testing.T) uint64 {
	t.Helper()
	seed := rand.Uint64()
	if s := os.Getenv("LOCKKEEPER_SEED"); s != "" {
		n, err := strconv.ParseUint(s, 10, 64)
		if err != nil {
			t.Fatalf("LOCKKEEPER_SEED: %v", err)
		}
		seed = n
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("repeat with LOCKKEEPER_SEED=%d", seed)
		}
	})
	return seed
}

// random runs random operations and compares each with the model.
//
// shows: DL-3 DL-4 SW-39 SW-73
func random(t *testing.T, f Fixture) {
	seed := seedOf(t)
	for done, n := 0, f.Random*Torture(); done < n; done += segment {
		t.Run(fmt.Sprint(done/segment), func(t *testing.T) {
			r := newRun(t, f, rand.New(rand.NewPCG(seed, uint64(done))))
			for range min(segment, n-done) {
				r.step()
			}
		})
		if t.Failed() {
			return
		}
	}
}

// drawn does what random does, with operations that rapid draws. There are fewer, but rapid reduces a
// failure to its shortest form.
//
// shows: DL-3 DL-4 SW-39 SW-73
func drawn(t *testing.T, f Fixture) {
	rapid.Check(t, func(rt *rapid.T) {
		r := newRun(t, f, rand.New(drawSource{rt}))
		r.fatalf = rt.Fatalf
		for range rapid.IntRange(1, 200).Draw(rt, "operations") {
			r.step()
		}
	})
}

// drawSource is a random source that draws from rapid.
type drawSource struct{ t *rapid.T }

func (s drawSource) Uint64() uint64 { return rapid.Uint64().Draw(s.t, "chance") }

// A run is one random run on one space.
type run struct {
	*bench
	rnd    *rand.Rand
	model  model
	grants []*lock.Grant
	places []*lock.Position
	wants  map[string][]lockkeeper.Lock // requests of the places, by place
	trace  []string                     // latest operations
	fatalf func(format string, args ...any)
}

func newRun(t *testing.T, f Fixture, rnd *rand.Rand) *run {
	r := &run{bench: newBench(t, f, lock.Options{WaitLease: 20 * time.Second}), rnd: rnd, wants: map[string][]lockkeeper.Lock{}, fatalf: t.Fatalf}
	r.model = model{policies: lockkeeper.Policies(), now: r.clock.Now().Lease}
	return r
}

func (r *run) step() {
	r.Helper()
	ops := []struct {
		weight int
		do     func() touched
	}{
		{20, r.try}, {15, r.enter}, {20, r.attend}, {3, r.leave}, {20, r.release}, {6, r.renew}, {7, r.upgrade}, {6, r.extend},
		{6, r.advance}, {2, r.recover}, {2, r.force},
	}
	total := 0
	for _, o := range ops {
		total += o.weight
	}
	n := r.rnd.IntN(total)
	for _, o := range ops {
		if n -= o.weight; n < 0 {
			r.checkModel(o.do())
			return
		}
	}
}

// checkModel reads the space and lets the model check it.
func (r *run) checkModel(op touched) {
	r.Helper()
	var recs []*store.Record
	var events []lockkeeper.Event
	r.view(func(rd store.Reader) {
		recs = get(all(rd))
		events = get(rd.Events(store.EventQuery{After: r.model.seq, Limit: 1_000}))
	})
	if err := r.model.judge(recs, events, op); err != nil {
		r.fail("%v", err)
	}
}

func (r *run) note(format string, args ...any) {
	if len(r.trace) > 60 {
		r.trace = slices.Delete(r.trace, 0, 30)
	}
	r.trace = append(r.trace, fmt.Sprintf(format, args...))
}

func (r *run) fail(format string, args ...any) {
	r.Helper()
	r.fatalf("after\n  %s\n%s", strings.Join(r.trace, "\n  "), fmt.Sprintf(format, args...))
}

// answers compares the result of an operation with the prediction of the model.
func (r *run) answers(err error, want lockkeeper.Code) {
	r.Helper()
	got := lockkeeper.Code("")
	if err != nil {
		got = lockkeeper.CodeOf(err)
	}
	r.trace[len(r.trace)-1] += fmt.Sprintf(" → %q", got)
	if got != want {
		r.fail("answered %v, want code %q", err, want)
	}
}

var (
	runPaths    = []string{"a", "a/x", "a/x/1", "a.b", "a/y", "b", "b/x", "c", "c/x/y/z", "."}
	runPolicies = []string{"agent", "agent", "dal", "dal", "session", "tidy", "person"}
)

func (r *run) lock(p lockkeeper.Policy) lockkeeper.Lock {
	n := len(runPaths)
	if r.rnd.IntN(8) > 0 {
		n-- // choose the root rarely
	}
	l := lockkeeper.Lock{Target: lockkeeper.Target{Path: runPaths[r.rnd.IntN(n)], Kind: lockkeeper.File}, Mode: lockkeeper.Read}
	switch r.rnd.IntN(5) {
	case 0, 1:
		l.Mode = lockkeeper.Write
	case 2:
		if p.Upgrade {
			l.Mode = lockkeeper.Upgradeable
		}
	}
	if p.TreeWrites || l.Mode == lockkeeper.Read {
		l.Kind = lockkeeper.File + lockkeeper.Kind(r.rnd.IntN(4))
	} else if r.rnd.IntN(3) == 0 {
		l.Kind = lockkeeper.Node
	}
	return l
}

func (r *run) request() lockkeeper.Request {
	p := r.model.policies[runPolicies[r.rnd.IntN(len(runPolicies))]]
	req := lockkeeper.Request{Holder: fmt.Sprint("h", r.rnd.IntN(5)), Policy: p.Name,
		TTL: []time.Duration{0, 0, 5 * time.Second, time.Minute}[r.rnd.IntN(4)]}
	for range r.rnd.IntN(4) {
		l := r.lock(p)
		if !slices.ContainsFunc(req.Locks, func(m lockkeeper.Lock) bool { return m.Path == l.Path }) {
			req.Locks = append(req.Locks, l)
		}
	}
	return req
}

func (r *run) try() touched {
	req := r.request()
	r.note("try %s %s %v", req.Holder, req.Policy, req.Locks)
	want := lockkeeper.Code("")
	if !r.model.free(req.Locks, "", math.MaxUint64) {
		want = lockkeeper.CodeBlocked
	}
	g, err := r.m.TryAcquire(r.ctx, req)
	r.answers(err, want)
	if err != nil {
		return touched{}
	}
	r.grants = append(r.grants, g)
	return touched{id: g.ID, entered: true}
}

func (r *run) enter() touched {
	req := r.request()
	p, err := r.m.NewPosition(req)
	if err != nil {
		r.fail("%v", err)
	}
	r.places, r.wants[p.ID()] = append(r.places, p), req.Locks
	return r.visit("enter "+req.Holder+" "+req.Policy, p)
}

func (r *run) attend() touched {
	if len(r.places) == 0 {
		return r.enter()
	}
	return r.visit("attend", r.places[r.rnd.IntN(len(r.places))])
}

func (r *run) visit(what string, p *lock.Position) touched {
	ls := r.wants[p.ID()]
	r.note("%s %v", what, ls)
	cur, ticket := r.model.find(p.ID()), uint64(math.MaxUint64)
	promoted := false
	if cur != nil && !r.model.lapsed(cur) {
		ticket, promoted = cur.Ticket, cur.State == store.StatePromoted
	}
	want := promoted || r.model.free(ls, p.ID(), ticket)
	g, err := p.Poll(r.ctx)
	r.answers(err, "")
	if (g != nil) != want {
		r.fail("granted: %v, want %v; conflicts %v", g != nil, want, p.Conflicts())
	}
	if g != nil {
		r.grants = append(r.grants, g)
		r.forget(p)
	}
	return touched{id: p.ID(), entered: true}
}

func (r *run) forget(p *lock.Position) {
	delete(r.wants, p.ID())
	r.places = slices.DeleteFunc(r.places, func(q *lock.Position) bool { return p == q })
}

func (r *run) leave() touched {
	if len(r.places) == 0 {
		return touched{}
	}
	p := r.places[r.rnd.IntN(len(r.places))]
	r.note("leave %v", r.wants[p.ID()])
	r.answers(p.Leave(r.ctx), "")
	r.forget(p)
	return touched{id: p.ID(), freed: true}
}

// grant returns a random grant that was not released, live or not.
func (r *run) grant() *lock.Grant {
	if len(r.grants) == 0 {
		return nil
	}
	return r.grants[r.rnd.IntN(len(r.grants))]
}

func (r *run) release() touched {
	g := r.grant()
	if g == nil {
		return touched{}
	}
	r.note("release %s %v", g.Holder, g.Locks)
	there := r.model.find(g.ID) != nil
	released, err := r.m.Release(r.ctx, g.ID, g.Token)
	r.answers(err, "")
	if released != there {
		r.fail("released: %v, want %v", released, there)
	}
	r.grants = slices.DeleteFunc(r.grants, func(h *lock.Grant) bool { return h == g })
	return touched{id: g.ID, freed: true}
}

// live predicts whether the holder can still change a grant.
func (r *run) live(g *lock.Grant) bool {
	rec := r.model.find(g.ID)
	return rec != nil && !r.model.lapsed(rec)
}

func (r *run) renew() touched {
	g := r.grant()
	if g == nil {
		return touched{}
	}
	r.note("renew %s %v", g.Holder, g.Locks)
	want := lockkeeper.Code("")
	if !r.live(g) {
		want = lockkeeper.CodeNotHeld
	}
	_, err := r.m.Renew(r.ctx, g.ID, g.Token)
	r.answers(err, want)
	return touched{id: g.ID, leased: want == ""}
}

func (r *run) upgrade() touched {
	g := r.grant()
	if g == nil || len(g.Locks) == 0 {
		return touched{}
	}
	path := g.Locks[r.rnd.IntN(len(g.Locks))].Path
	r.note("upgrade %s %s %v: %s", g.Holder, g.Policy, g.Locks, path)
	want := lockkeeper.Code("")
	if rec := r.model.find(g.ID); !r.live(g) {
		want = lockkeeper.CodeNotHeld
	} else {
		i := slices.IndexFunc(rec.Locks, func(l lockkeeper.Lock) bool { return l.Path == path })
		asked := rec.Locks[i]
		asked.Mode = lockkeeper.Write
		switch {
		case !r.model.policies[g.Policy].Upgrade || rec.Locks[i].Mode == lockkeeper.Read:
			want = lockkeeper.CodeRefused
		case rec.Locks[i].Mode == lockkeeper.Upgradeable && !r.model.mayGrow([]lockkeeper.Lock{asked}, g.ID, 0):
			want = lockkeeper.CodeBlocked
		}
	}
	_, err := r.m.Upgrade(r.ctx, g.ID, g.Token, path)
	r.answers(err, want)
	return touched{id: g.ID, grown: want == ""}
}

func (r *run) extend() touched {
	g := r.grant()
	if g == nil {
		return touched{}
	}
	policy := r.model.policies[g.Policy]
	l := r.lock(policy)
	r.note("extend %s %s %v by %v %v", g.Holder, g.Policy, g.Locks, l, l.Kind)
	_, err := r.m.Extend(r.ctx, g.ID, g.Token, l)
	r.answers(err, r.extension(g, policy, l))
	return touched{id: g.ID, grown: err == nil}
}

// extension predicts the result of extending a grant by a lock.
func (r *run) extension(g *lock.Grant, policy lockkeeper.Policy, l lockkeeper.Lock) lockkeeper.Code {
	rec := r.model.find(g.ID)
	switch {
	case !r.live(g):
		return lockkeeper.CodeNotHeld
	case policy.Extend == lockkeeper.ExtendNever:
		return lockkeeper.CodeRefused
	}
	for _, h := range rec.Locks {
		if h.Path == l.Path {
			if h.Mode >= l.Mode && (h.Kind == l.Kind || h.Kind != lockkeeper.Node) {
				return ""
			}
			return lockkeeper.CodeRefused
		}
	}
	for _, h := range rec.Locks {
		if policy.Extend == lockkeeper.ExtendInOrder && l.Compare(h.Target) < 0 {
			return lockkeeper.CodeRefused
		}
	}
	if !r.model.mayGrow([]lockkeeper.Lock{l}, g.ID, rec.Ticket) {
		return lockkeeper.CodeBlocked
	}
	return ""
}

package storetest

import (
	"math"
	"strings"
	"testing"
	"time"

	"lockkeeper"
	"lockkeeper/lock"
	"lockkeeper/store"
)

var inputTests = []test{
	{"bad requests", testBadRequests},
	{"bad ids", testBadIDs},
	{"hostile names", testHostileNames},
}

func testBadRequests(t *testing.T, f Fixture) {
	b := newBench(t, f, lock.Options{})
	path := func(p string) lockkeeper.Request { return asks("h", "", write("good", p)) }
	with := func(change func(*lockkeeper.Request)) lockkeeper.Request {
		r := asks("h", "", write("good"))
		change(&r)
		return r
	}
	for what, r := range map[string]lockkeeper.Request{
		"empty path":        path(""),
		"parent":            path("a/../b"),
		"leaving":           path("../b"),
		"absolute":          path("/etc/passwd"),
		"NUL":               path("a\x00b"),
		"too long":          path(strings.Repeat("a/", 2048) + "b"),
		"trailing slash":    path("a/"),
		"double slash":      path("a//b"),
		"dot":               path("a/./b"),
		"not UTF-8":         path("a\xff"),
		"after every path":  path("\U0010FFFF"),
		"no holder":         with(func(r *lockkeeper.Request) { r.Holder = "" }),
		"blank holder":      with(func(r *lockkeeper.Request) { r.Holder = " \t" }),
		"newline in holder": with(func(r *lockkeeper.Request) { r.Holder = "a\nb" }),
		"holder not UTF-8":  with(func(r *lockkeeper.Request) { r.Holder = "a\xff" }),
		"long holder":       with(func(r *lockkeeper.Request) { r.Holder = strings.Repeat("x", 201) }),
		"unknown policy":    with(func(r *lockkeeper.Request) { r.Policy = "root" }),
		"negative ttl":      with(func(r *lockkeeper.Request) { r.TTL = -1 }),
		"endless ttl":       with(func(r *lockkeeper.Request) { r.TTL = math.MaxInt64 }),
		"mode 0":            with(func(r *lockkeeper.Request) { r.Locks[0].Mode = 0 }),
		"mode 9":            with(func(r *lockkeeper.Request) { r.Locks[0].Mode = 9 }),
		"kind 0":            with(func(r *lockkeeper.Request) { r.Locks[0].Kind = 0 }),
		"kind 9":            with(func(r *lockkeeper.Request) { r.Locks[0].Kind = 9 }),
	} {
		if _, err := b.m.TryAcquire(b.ctx, r); lockkeeper.CodeOf(err) != lockkeeper.CodeInput {
			t.Errorf("try, %s: %v", what, err)
		}
		if _, err := b.m.Acquire(b.ctx, r, time.Second); lockkeeper.CodeOf(err) != lockkeeper.CodeInput {
			t.Errorf("acquire, %s: %v", what, err)
		}
	}
	if _, err := b.m.Acquire(b.ctx, asks("h", "", write("a")), -1); lockkeeper.CodeOf(err) != lockkeeper.CodeInput {
		t.Errorf("negative wait: %v", err)
	}
	bad := write("a")
	bad[0].Mode = 0
	if _, err := b.m.CheckConflicts(b.ctx, bad); lockkeeper.CodeOf(err) != lockkeeper.CodeInput {
		t.Errorf("check of a bad mode: %v", err)
	}
	b.unchanged()
}

// unchanged checks that the space has no records and no events.
func (b *bench) unchanged() {
	b.Helper()
	b.view(func(r store.Reader) {
		recs := get(all(r))
		evs := get(r.Events(store.EventQuery{Limit: 10}))
		if len(recs)+len(evs) > 0 {
			b.Errorf("bad input left records %v and events %v", recs, evs)
		}
	})
}

func testBadIDs(t *testing.T, f Fixture) {
	b := newBench(t, f, lock.Options{})
	person := lockkeeper.Actor{Name: "p", Kind: lockkeeper.ActorPerson}
	for _, id := range []string{"", "x", "../../etc", strings.ToUpper("00000000-0000-4000-8000-00000000000a"), ident(1) + "'", strings.Repeat("a", 36), "'; DROP TABLE dal_locks; --"} {
		if released, err := b.m.Release(b.ctx, id, "t"); released || err != nil {
			t.Errorf("release of %q: %v, %v", id, released, err)
		}
		_, renew := b.m.Renew(b.ctx, id, "t")
		_, upgrade := b.m.Upgrade(b.ctx, id, "t", "a")
		_, extend := b.m.Extend(b.ctx, id, "t", write("a")...)
		_, entry := b.m.Request(b.ctx, id)
		for what, err := range map[string]error{"renew": renew, "upgrade": upgrade, "extend": extend, "entry": entry,
			"force": b.m.ForceRelease(b.ctx, id, person, "why")} {
			if lockkeeper.CodeOf(err) != lockkeeper.CodeInput {
				t.Errorf("%s of %q: %v", what, id, err)
			}
		}
	}
	b.unchanged()
}

func testHostileNames(t *testing.T, f Fixture) {
	b := newBench(t, f, lock.Options{})
	for _, n := range append(names, "a\nb", "\x01", "\t", strings.Repeat("x", lockkeeper.MaxPathSize), "Robert'); DROP TABLE targets;--", "$1", "?1", ":a") {
		g := b.takes(asks("h", "", write(n)))
		got := b.blocked(asks("k", "", read(n))).Conflicts
		if len(got) != 1 || got[0].BlockingPath != n {
			t.Errorf("%q: conflicts %+v", n, got)
		}
		b.release(g)
	}
}

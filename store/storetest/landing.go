package storetest

import (
	"cmp"
	"crypto/sha256"
	"fmt"
	"io/fs"
	"reflect"
	"slices"
	"testing"

	"lockkeeper"
	"lockkeeper/store"
)

var landingTests = []test{
	{"round trip of a landing", testLanding},
	{"landings by every field", testLandingQueries},
	{"the last landing at a path", testLanded},
	{"states of a landing", testLandingStates},
	{"a landing that is not new", testLandingTwice},
	{"returned landings are copies", testLandingShared},
	{"landings are undone with their transaction", testLandingUndone},
	{"pruning keeps decided and young landings", testPruneLandings},
	{"ten thousand changes", testManyChanges},
	{"states of a record that lands", testLandingRecord},
}

// version returns a file version with the given content.
func version(content string) lockkeeper.Version {
	return lockkeeper.Version{Kind: lockkeeper.File, Mode: 0o644, Sum: sha256.Sum256([]byte(content))}
}

func altered(content string, paths ...string) (out []lockkeeper.PathChange) {
	for _, p := range paths {
		out = append(out, lockkeeper.PathChange{Path: p, New: version(content)})
	}
	return out
}

// land records a decided landing with the number of an event.
func land(tx store.Tx, l lockkeeper.Landing) *lockkeeper.Landing {
	l.Seq = get(tx.Append(lockkeeper.Event{Kind: lockkeeper.EventLanded, At: tx.Now().Wall, GrantID: l.GrantID}))
	l.Commit = cmp.Or(l.Commit, fmt.Sprint("commit-", l.Seq))
	l.State = cmp.Or(l.State, lockkeeper.Decided)
	if l.At.IsZero() {
		l.At = tx.Now().Wall
	}
	check(tx.InsertLanding(&l))
	return &l
}

func landed(t *testing.T, s store.Store, l lockkeeper.Landing) (out *lockkeeper.Landing) {
	t.Helper()
	update(t, s, func(tx store.Tx) { out = land(tx, l) })
	return out
}

func landings(t *testing.T, s store.Store, q store.LandingQuery) (out []*lockkeeper.Landing) {
	t.Helper()
	view(t, s, func(r store.Reader) { out = get(r.Landings(q)) })
	return out
}

// lastAt checks which landing was the last at a path, and the version it left.
func lastAt(t *testing.T, r store.Reader, path, grantID string, want uint64, left lockkeeper.Version) {
	t.Helper()
	got := get(r.Landed(grantID, "unheard of", path))
	if got := got[path]; got.Seq != want || got.Version != left {
		t.Errorf("at %q under %q landed %d and left %v, want %d and %v", path, grantID, got.Seq, got.Version, want, left)
	}
}

func sameLanding(t *testing.T, got, want *lockkeeper.Landing) {
	t.Helper()
	g, w := got.Clone(), want.Clone()
	g.At, w.At = g.At.UTC(), w.At.UTC() // compare instants, not time zones
	if !reflect.DeepEqual(g, w) {
		t.Errorf("got  %+.500v\nwant %+.500v", g, w)
	}
}

// hostile lists names that a store must keep unchanged.
var hostile = []string{`it's.rb`, `"double"`, "two\nlines", "tab\there", `back\slash`, "ünïcode/名前/🔒", "%s_%d", "$1", "?1", "{a,b}", "NULL", " ", "a;--", "<&>", "\u2028"}

func testLanding(t *testing.T, f Fixture) {
	handles := openAll(t, f, NewClock())
	s := handles[0]
	full := lockkeeper.Landing{
		GrantID: ident(1), Holder: `Zoë "quote" 'tick'` + "\n名前", Fence: 1<<63 - 1, Site: "host:/a dir/it's", Draft: "app/.new 'x'",
		Undoes: 1<<63 - 2, Commit: "c'1\"", Made: hostile, Clears: []string{"z/y", "z"},
		Changes: []lockkeeper.PathChange{
			{Path: "z/last first", Old: version("old")},
			{Path: "a", Old: version("old"), New: lockkeeper.Version{Kind: lockkeeper.File, Mode: fs.ModePerm, Sum: version("new").Sum}},
			{Path: "dir", New: lockkeeper.Version{Kind: lockkeeper.Dir, Mode: 0o700, Sum: [32]byte{31: 1}}},
		},
	}
	for _, name := range hostile {
		full.Changes = append(full.Changes, lockkeeper.PathChange{Path: name, Old: version(name), New: version("new " + name)})
	}
	want := landed(t, s, full)
	bare := landed(t, s, lockkeeper.Landing{})
	for _, h := range handles {
		got := landings(t, h, store.LandingQuery{})
		if len(got) != 2 {
			t.Fatalf("%d landings, want 2", len(got))
		}
		sameLanding(t, got[0], want)
		sameLanding(t, got[1], bare)
		view(t, h, func(r store.Reader) {
			for _, a := range full.Changes {
				lastAt(t, r, a.Path, "", want.Seq, a.New)
				got, err := r.Landings(store.LandingQuery{Path: a.Path})
				if err != nil || len(got) != 1 {
					t.Errorf("%d landings changed %q, %v", len(got), a.Path, err)
				}
			}
			lastAt(t, r, "never", "", 0, lockkeeper.Version{})
		})
	}
}

// testLandingQueries compares each query with a filter over all landings.
func testLandingQueries(t *testing.T, f Fixture) {
	s := open(t, f, NewClock())
	var all []*lockkeeper.Landing
	for i := range 24 {
		all = append(all, landed(t, s, lockkeeper.Landing{GrantID: ident(i % 3), State: lockkeeper.LandingState(1 + i%4%3),
			Changes: altered(fmt.Sprint(i), fmt.Sprint("p", i%5), fmt.Sprint("q", i), "always")}))
	}
	queries := []store.LandingQuery{{}, {Path: "always", Limit: 3}, {Path: "always", Limit: 3, Latest: true, After: all[9].Seq}}
	for _, seq := range []uint64{0, all[6].Seq, all[6].Seq + 1000} {
		for _, commit := range []string{"", all[6].Commit, "unknown"} {
			for _, grant := range []string{"", ident(0), ident(2), "unknown"} {
				for _, path := range []string{"", "p1", "q6", "always", "unknown"} {
					queries = append(queries, store.LandingQuery{Seq: seq, Commit: commit, GrantID: grant, Path: path})
				}
			}
		}
	}
	for _, q := range slices.Clone(queries) {
		for _, at := range []uint64{all[5].Seq, all[6].Seq, all[23].Seq} {
			before := q
			q.After, before.Before = at, at
			queries = append(queries, q, before)
		}
	}
	view(t, s, func(r store.Reader) {
		for _, q := range queries {
			for _, q.Open = range []bool{false, true} {
				for _, q.Latest = range []bool{false, true} {
					for _, q.Limit = range []int{q.Limit, 1} {
						got := get(r.Landings(q))
						compareLandings(t, q, got, all)
					}
				}
			}
		}
	})
}

func compareLandings(t *testing.T, q store.LandingQuery, got, all []*lockkeeper.Landing) {
	t.Helper()
	var want []*lockkeeper.Landing
	for _, l := range all {
		if q.Selects(l) {
			want = append(want, l)
		}
	}
	if q.Latest {
		slices.Reverse(want)
	}
	if q.Limit > 0 {
		want = want[:min(len(want), q.Limit)]
	}
	if len(got) != len(want) {
		t.Fatalf("%+v finds %d landings, want %d", q, len(got), len(want))
	}
	for i := range got {
		sameLanding(t, got[i], want[i])
	}
}

func testLanded(t *testing.T, f Fixture) {
	s := open(t, f, NewClock())
	decide := func(grant, content string, paths ...string) uint64 {
		t.Helper()
		return landed(t, s, lockkeeper.Landing{GrantID: grant, Changes: altered(content, paths...)}).Seq
	}
	first := decide("g", "1", "a", "b")
	other := decide("k", "2", "a", "c")
	third := decide("g", "3", "a", "a/b", "aa")
	gone := landed(t, s, lockkeeper.Landing{GrantID: "k", Changes: []lockkeeper.PathChange{{Path: "b", Old: version("1")}}}).Seq
	none := lockkeeper.Version{}
	update(t, s, func(tx store.Tx) {
		lastAt(t, tx, "a", "", third, version("3"))
		lastAt(t, tx, "a", "g", third, version("3"))
		lastAt(t, tx, "a", "k", other, version("2"))
		lastAt(t, tx, "a", "unknown", 0, none)
		lastAt(t, tx, "b", "", gone, none) // a deletion also counts as a landing
		lastAt(t, tx, "b", "g", first, version("1"))
		lastAt(t, tx, "", "", 0, none)
		check(tx.EndLanding(store.TakenLanding{Seq: third}, lockkeeper.Undone))
		lastAt(t, tx, "a", "", other, version("2"))
		lastAt(t, tx, "a", "g", first, version("1"))
		lastAt(t, tx, "aa", "", 0, none)
		check(tx.EndLanding(store.TakenLanding{Seq: other}, lockkeeper.Committed))
		lastAt(t, tx, "a", "", other, version("2"))
	})
	view(t, s, func(r store.Reader) {
		lastAt(t, r, "a", "", other, version("2"))
		lastAt(t, r, "a/b", "", 0, none)
	})
}

func testLandingStates(t *testing.T, f Fixture) {
	s := open(t, f, NewClock())
	l := landed(t, s, lockkeeper.Landing{GrantID: "g", Changes: altered("x", "a")})
	landed(t, s, lockkeeper.Landing{GrantID: "k", Changes: altered("x", "b")})
	open := func(grantID string, want int) {
		t.Helper()
		if got := landings(t, s, store.LandingQuery{GrantID: grantID, Open: true}); len(got) != want {
			t.Errorf("%d open landings of %q, want %d", len(got), grantID, want)
		}
	}
	open("g", 1)
	open("", 2)
	l.State = lockkeeper.Committed
	for _, state := range []lockkeeper.LandingState{lockkeeper.Committed, lockkeeper.Undone} { // a landing ends only once
		update(t, s, func(tx store.Tx) { check(tx.EndLanding(store.TakenLanding{Seq: l.Seq}, state)) })
		sameLanding(t, landings(t, s, store.LandingQuery{Seq: l.Seq})[0], l)
		open("g", 0)
		open("", 1)
	}
	update(t, s, func(tx store.Tx) {
		check(tx.EndLanding(store.TakenLanding{Seq: l.Seq + 1000}, lockkeeper.Undone)) // an unknown landing is ignored
	})
	taken := landed(t, s, lockkeeper.Landing{GrantID: "g", Taker: "writer", Changes: altered("x", "c")})
	for _, e := range []store.TakenLanding{{Seq: taken.Seq, Taker: "first"}, {Seq: taken.Seq, Taker: "last"}} {
		update(t, s, func(tx store.Tx) { check(tx.TakeLanding(e)) })
	}
	for _, taker := range []string{"", "writer", "first"} {
		update(t, s, func(tx store.Tx) {
			check(tx.EndLanding(store.TakenLanding{Seq: taken.Seq, Taker: taker}, lockkeeper.Undone))
		})
		open("g", 1)
	}
	update(t, s, func(tx store.Tx) {
		check(tx.EndLanding(store.TakenLanding{Seq: taken.Seq, Taker: "last"}, lockkeeper.Committed))
	})
	open("g", 0)
}

func testLandingTwice(t *testing.T, f Fixture) {
	s := open(t, f, NewClock())
	first := landed(t, s, lockkeeper.Landing{Changes: altered("x", "a")})
	for what, again := range map[string]func(*lockkeeper.Landing){
		"number": func(l *lockkeeper.Landing) { l.Commit = "another" },
		"commit": func(l *lockkeeper.Landing) { l.Seq += 1000 },
		"path": func(l *lockkeeper.Landing) {
			l.Seq, l.Commit, l.Changes = l.Seq+1000, "another", altered("y", "a", "b", "a")
		},
	} {
		err := s.Update(t.Context(), func(tx store.Tx) error {
			dup := first.Clone()
			again(dup)
			return tx.InsertLanding(dup)
		})
		if err == nil {
			t.Errorf("a second landing with the same %s was kept", what)
		}
	}
	if got := landings(t, s, store.LandingQuery{Path: "a"}); len(got) != 1 {
		t.Errorf("%d landings, want the first alone", len(got))
	}
	landed(t, s, lockkeeper.Landing{Changes: altered("y", "a", "b")})
}

func testLandingShared(t *testing.T, f Fixture) {
	s := open(t, f, NewClock())
	l := landed(t, s, lockkeeper.Landing{Made: []string{"m"}, Changes: altered("x", "a")})
	want := l.Clone()
	spoil := func(l *lockkeeper.Landing) {
		l.State, l.Made[0], l.Changes[0] = lockkeeper.Undone, "spoilt", lockkeeper.PathChange{Path: "spoilt"}
	}
	spoil(l)
	for range 2 {
		got := landings(t, s, store.LandingQuery{})[0]
		sameLanding(t, got, want)
		spoil(got)
	}
}

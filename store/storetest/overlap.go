package storetest

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"lockkeeper"
	"lockkeeper/store"
)

var overlapTests = []test{
	{"names beside each other", testNeighbours},
	{"root", testRoot},
	{"against the plain rule", testOverlapOracle},
	{"many requested locks at once", testOverlapMany},
}

// names are chosen to sort between a path and the paths below it, to have a meaning in SQL, or
// to look alike.
var names = []string{
	"a", "a.b", "a-b", "a0", "a!", "a b", "A", "ä", "a\u0308", "b", "%", "_", "a%", "a_", "'", `"`, `\`, `a\`, "*", "名", "😀", "..a", ".git", "~", "a\u00a0",
}

func randomPath(r *rand.Rand) string {
	if r.IntN(25) == 0 {
		return lockkeeper.Root
	}
	depth := 1 + r.IntN(4)
	if r.IntN(20) == 0 {
		depth = 30
	}
	path := ""
	for i := range depth {
		if i > 0 {
			path += "/"
		}
		n := len(names)
		if i > 0 || r.IntN(3) > 0 {
			n = 4 // few names, so that deep paths overlap
		}
		path += names[r.IntN(n)]
	}
	return path
}

func randomLock(r *rand.Rand) lockkeeper.Lock {
	return lockkeeper.Lock{
		Target: lockkeeper.Target{Path: randomPath(r), Kind: lockkeeper.File + lockkeeper.Kind(r.IntN(4))},
		Mode:   lockkeeper.Read + lockkeeper.Mode(r.IntN(3)),
	}
}

func randomLocks(r *rand.Rand, most int) []lockkeeper.Lock {
	var ls []lockkeeper.Lock
	for range 1 + r.IntN(most) {
		ls = append(ls, randomLock(r))
	}
	return lockkeeper.Normalize(ls)
}

// A row is a comparable form of an Overlap.
type row struct {
	asked, lock lockkeeper.Lock
	ticket      uint64
}

// excludes states the rule of lockkeeper.Lock.Conflicts a second time, in another way.
func excludes(a, b lockkeeper.Lock) bool {
	covers := func(up, down lockkeeper.Target) bool {
		return up.Kind != lockkeeper.Node && (up.Path == lockkeeper.Root || strings.HasPrefix(down.Path, up.Path+"/"))
	}
	if a.Path != b.Path && !covers(a.Target, b.Target) && !covers(b.Target, a.Target) {
		return false
	}
	return !goTogether[[2]lockkeeper.Mode{a.Mode, b.Mode}]
}

// goTogether lists the compatible pairs of modes.
var goTogether = map[[2]lockkeeper.Mode]bool{
	{lockkeeper.Read, lockkeeper.Read}:        true,
	{lockkeeper.Read, lockkeeper.Upgradeable}: true,
	{lockkeeper.Upgradeable, lockkeeper.Read}: true,
}

// plainly answers a query by checking every record.
func plainly(recs []*store.Record, q store.Query) (rows []row) {
	for _, rec := range recs {
		if rec.Ticket == q.Except || rec.State == store.StateWaiting && rec.Ticket >= q.Before {
			continue
		}
		for _, asked := range q.Locks {
			for _, l := range rec.Locks {
				if excludes(asked, l) {
					rows = append(rows, row{asked, l, rec.Ticket})
				}
			}
		}
	}
	sortRows(rows)
	return rows
}

func sortRows(rows []row) {
	slices.SortFunc(rows, func(a, b row) int {
		return cmp.Or(cmp.Compare(b.ticket, a.ticket), cmp.Compare(a.asked.Path, b.asked.Path), cmp.Compare(a.lock.Path, b.lock.Path))
	})
}

// overlapping returns the locks of any request that conflict with a write lock on a path.
func overlapping(r store.Reader, path string) []store.Overlap {
	found, _, err := r.Overlapping(store.Query{Locks: write(path), Before: store.AnyTicket})
	check(err)
	return found
}

// compare queries the store and plainly, and describes any difference.
func compare(r store.Reader, recs []*store.Record, q store.Query) error {
	found, more, err := r.Overlapping(q)
	if err != nil {
		return err
	}
	want := plainly(recs, q)
	var got []row
	for i, o := range found {
		if i > 0 && found[i-1].Record.Ticket < o.Record.Ticket {
			return fmt.Errorf("%+v: ticket %d after %d", q, o.Record.Ticket, found[i-1].Record.Ticket)
		}
		j, ok := slices.BinarySearchFunc(recs, o.Record.Ticket, func(r *store.Record, n uint64) int { return cmp.Compare(r.Ticket, n) })
		if !ok {
			return fmt.Errorf("%+v: found ticket %d, which does not exist", q, o.Record.Ticket)
		}
		if d := differ(o.Record, recs[j]); d != "" {
			return fmt.Errorf("%+v: found a record that is not the stored one: %s", q, d)
		}
		got = append(got, row{o.Asked, o.Lock, o.Record.Ticket})
	}
	sortRows(got)
	if q.Limit > 0 && len(want) > q.Limit {
		if !more || len(got) != q.Limit {
			return fmt.Errorf("%+v: %d found, more=%v, want %d of %d", q, len(got), more, q.Limit, len(want))
		}
		for _, g := range got { // the store may return the locks of one ticket in any order
			if !slices.Contains(want, g) || g.ticket < want[q.Limit-1].ticket {
				return fmt.Errorf("%+v: %v is not among the latest %d of %v", q, g, q.Limit, want)
			}
		}
		return nil
	}
	if more || !slices.Equal(got, want) {
		return fmt.Errorf("%+v:\ngot  %v (more=%v)\nwant %v", q, got, more, want)
	}
	return nil
}

// shows: SW-17 SW-18 PL-40 GP-1
func testNeighbours(t *testing.T, f Fixture) {
	s := open(t, f, NewClock())
	kinds := []lockkeeper.Kind{lockkeeper.File, lockkeeper.Dir, lockkeeper.Node, lockkeeper.Tree}
	update(t, s, func(tx store.Tx) {
		i := 0
		for _, n := range names {
			for _, path := range []string{n, n + "/a", n + "/a/b", "a/" + n} {
				i++
				draft(tx, ident(i), store.StateHeld, locks(lockkeeper.Write, kinds[i%4], []string{path}))
			}
		}
	})
	view(t, s, func(r store.Reader) {
		recs := get(all(r))
		for _, n := range names {
			for _, path := range []string{n, n + "/a", n + "/" + n, "a/" + n} {
				for _, k := range kinds {
					q := store.Query{Locks: locks(lockkeeper.Read, k, []string{path}), Before: store.AnyTicket}
					must(t, compare(r, recs, q))
				}
			}
		}
	})
}

func testRoot(t *testing.T, f Fixture) {
	s := open(t, f, NewClock())
	update(t, s, func(tx store.Tx) {
		for i, l := range []struct {
			kind lockkeeper.Kind
			path string
		}{{lockkeeper.Node, "."}, {lockkeeper.Tree, "."}, {lockkeeper.File, "\u007f"}, {lockkeeper.File, "!"}, {lockkeeper.Node, "😀/x"}} {
			draft(tx, ident(i), store.StateHeld, locks(lockkeeper.Write, l.kind, []string{l.path}))
		}
	})
	view(t, s, func(r store.Reader) {
		recs := get(all(r))
		for k := lockkeeper.File; k <= lockkeeper.Tree; k++ {
			for _, path := range []string{".", "x", "😀", "!/y"} {
				must(t, compare(r, recs, store.Query{Locks: locks(lockkeeper.Read, k, []string{path})}))
			}
		}
	})
}

// shows: SW-16 SW-17 DL-11 DL-12 PL-39
func testOverlapOracle(t *testing.T, f Fixture) {
	seed := seedOf(t)
	r := rand.New(rand.NewPCG(seed, 1))
	s := open(t, f, NewClock())
	var live []string
	next := 0
	for range 12 {
		update(t, s, func(tx store.Tx) {
			for range 15 {
				next++
				state := store.StateWaiting + store.State(r.IntN(3))
				draft(tx, ident(next), state, randomLocks(r, 4))
				live = append(live, ident(next))
			}
			for range 10 {
				i := r.IntN(len(live))
				rec := get(tx.Get(live[i]))
				if r.IntN(3) == 0 {
					check(tx.SetLocks(rec, randomLocks(r, 5)))
					continue
				}
				check(tx.Delete(rec))
				live = slices.Delete(live, i, i+1)
			}
		})
		view(t, s, func(rd store.Reader) {
			recs := get(all(rd))
			for range 40 {
				q := store.Query{Locks: randomLocks(r, 4), Before: store.AnyTicket, Limit: r.IntN(4) * r.IntN(6)}
				one := recs[r.IntN(len(recs))]
				switch r.IntN(4) {
				case 0:
					q.Before = store.HeldOnly
				case 1:
					q.Before = one.Ticket
				}
				if r.IntN(2) == 0 {
					q.Except = one.Ticket
				}
				check(compare(rd, recs, q))
			}
		})
	}
}

func testOverlapMany(t *testing.T, f Fixture) {
	s := open(t, f, NewClock())
	var asked []lockkeeper.Lock
	for i := range 700 {
		asked = append(asked, write(fmt.Sprintf("deep/er/and/deep/er/f%04d", i))...)
	}
	update(t, s, func(tx store.Tx) { draft(tx, ident(1), store.StateHeld, asked) })
	view(t, s, func(r store.Reader) {
		recs := get(all(r))
		check(compare(r, recs, store.Query{Locks: asked, Limit: 500}))
		found, more, err := r.Overlapping(store.Query{Locks: asked})
		if len(found) != len(asked) || more {
			t.Errorf("%d of %d found, more=%v, %v", len(found), len(asked), more, err)
		}
	})
}

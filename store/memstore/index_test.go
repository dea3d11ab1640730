package memstore

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"testing"

	"lockkeeper"
)

// An index of several runs answers like a sorted list.
func TestIndexIsASortedList(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rnd := rand.New(rand.NewPCG(seed, 0))
	bySeq := func(a, b *lockkeeper.Item) int { return cmp.Compare(a.Seq, b.Seq) }
	x := index{has: func(it *lockkeeper.Item) bool { return it.Seq%7 != 0 }, compare: bySeq}
	seats := map[uint64]*seat{}
	for round := range 12_000 {
		seq := rnd.Uint64N(4 * runSize)
		if s := seats[seq]; s != nil {
			x.remove(s)
			delete(seats, seq)
		} else {
			seats[seq] = &seat{&lockkeeper.Item{Seq: seq}}
			x.add(seats[seq])
		}
		if round%50 != 0 {
			continue
		}
		var want []*lockkeeper.Item
		for _, s := range seats {
			if x.has(s.Item) {
				want = append(want, s.Item)
			}
		}
		slices.SortFunc(want, bySeq)
		from := rnd.Uint64N(5 * runSize)
		before := func(it *lockkeeper.Item) bool { return it.Seq < from }
		i, _ := slices.BinarySearchFunc(want, from, func(it *lockkeeper.Item, seq uint64) int { return cmp.Compare(it.Seq, seq) })
		if got := slices.Collect(x.from(before)); !slices.Equal(got, want[i:]) {
			t.Fatalf("round %d: %d from %d on, want %d", round, len(got), from, len(want)-i)
		}
		got := slices.Collect(x.downFrom(before))
		slices.Reverse(got)
		if !slices.Equal(got, want[:i]) {
			t.Fatalf("round %d: %d down from %d, want %d", round, len(got), from, i)
		}
	}
	for _, s := range seats {
		x.remove(s)
	}
	if len(x.runs) != 0 {
		t.Errorf("%d runs are left of nothing", len(x.runs))
	}
}

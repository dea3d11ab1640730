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
	x := index{position: func(it *lockkeeper.Item) (position, bool) { return bySeqIn("", it), it.Seq%7 != 0 }}
	cells := map[uint64]*itemCell{}
	for round := range 12_000 {
		seq := rnd.Uint64N(4 * runSize)
		if s := cells[seq]; s != nil {
			x.move(s, s.Item, nil)
			delete(cells, seq)
		} else {
			cells[seq] = &itemCell{&lockkeeper.Item{Seq: seq}}
			x.move(cells[seq], nil, cells[seq].Item)
		}
		if round%50 != 0 {
			continue
		}
		var want []*lockkeeper.Item
		for _, s := range cells {
			if _, in := x.position(s.Item); in {
				want = append(want, s.Item)
			}
		}
		slices.SortFunc(want, bySeq)
		from := rnd.Uint64N(5 * runSize)
		before := func(p *position) bool { return p.Seq < from }
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
	for _, s := range cells {
		x.move(s, s.Item, nil)
	}
	if len(x.runs) != 0 {
		t.Errorf("%d runs are left of nothing", len(x.runs))
	}
}

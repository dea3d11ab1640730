package memstore

import (
	"cmp"
	"iter"
	"math"
	"slices"
	"sort"
	"strings"

	"lockkeeper"
)

// runSize is the maximum number of entries in a run. It is small enough to move a run
// quickly, and large enough that there are few runs.
const runSize = 128

// An index is a sorted list of items, stored in runs, so that adding or removing an item
// moves few others.
type index struct {
	// position returns the position of an item, and whether it is in the index. No two
	// items have the same position.
	position func(*lockkeeper.Item) (p position, in bool)
	runs     [][]indexEntry // no run is empty
}

// A position is where an item is in an index: in one of its lists, by QueueKey. It is stored
// beside the item, because following the pointers to many items costs more than comparing.
type position struct {
	list string
	lockkeeper.QueueKey
}

type indexEntry struct {
	position
	cell *itemCell
}

// An itemCell holds the current version of an item. Items are replaced, never changed.
type itemCell struct{ *lockkeeper.Item }

func (p *position) compare(q *position) int {
	if p.list != q.list {
		return cmp.Compare(p.list, q.list)
	}
	return p.QueueKey.Compare(q.QueueKey)
}

// find returns the first entry that does not come before the searched one, or the end.
func (x *index) find(before func(*position) bool) (run, i int) {
	run = sort.Search(len(x.runs), func(n int) bool { return !before(&x.runs[n][len(x.runs[n])-1].position) })
	if run == len(x.runs) {
		return run, 0
	}
	return run, sort.Search(len(x.runs[run]), func(n int) bool { return !before(&x.runs[run][n].position) })
}

func (x *index) search(p position) (run, i int) {
	return x.find(func(other *position) bool { return other.compare(&p) < 0 })
}

func (x *index) add(p position, s *itemCell) {
	run, i := x.search(p)
	if run == len(x.runs) { // the key belongs after all runs
		if run == 0 {
			x.runs = append(x.runs, nil)
		} else {
			run--
		}
		i = len(x.runs[run])
	}
	x.runs[run] = slices.Insert(x.runs[run], i, indexEntry{p, s})
	if entries := x.runs[run]; len(entries) > runSize {
		second := append(make([]indexEntry, 0, runSize), entries[runSize/2:]...)
		clear(entries[runSize/2:])
		x.runs[run] = entries[:runSize/2]
		x.runs = slices.Insert(x.runs, run+1, second)
	}
}

func (x *index) remove(p position) {
	run, i := x.search(p)
	x.runs[run] = slices.Delete(x.runs[run], i, i+1)
	if len(x.runs[run]) == 0 {
		x.runs = slices.Delete(x.runs, run, run+1)
	}
}

// move moves a cell from the position of the old item to that of the next one; nil: none.
func (x *index) move(s *itemCell, old, next *lockkeeper.Item) {
	var from, to position
	var is, will bool
	if old != nil {
		from, is = x.position(old)
	}
	if next != nil {
		to, will = x.position(next)
	}
	if is && will && from == to {
		return
	}
	if is {
		x.remove(from)
	}
	if will {
		x.add(to, s)
	}
}

// first returns the first item that does not come before the searched one; nil: none.
func (x *index) first(before func(*position) bool) *lockkeeper.Item {
	for it := range x.from(before) {
		return it
	}
	return nil
}

// firstIn returns the first item of a list; nil: none.
func (x *index) firstIn(line string) *lockkeeper.Item {
	run, i := x.find(func(p *position) bool { return p.list < line })
	if run == len(x.runs) || x.runs[run][i].list != line {
		return nil
	}
	return x.runs[run][i].cell.Item
}

// leaders returns the first item of each list, precedence and rank, in lists with a prefix.
func (x *index) leaders(prefix string) (list []*lockkeeper.Item) {
	at := position{prefix, lockkeeper.QueueKey{Rank: math.MinInt}} // a position before all others
	before := func(p *position) bool { return p.compare(&at) < 0 }
	for it := x.first(before); it != nil; it = x.first(before) {
		p, _ := x.position(it)
		if !strings.HasPrefix(p.list, prefix) {
			break
		}
		list = append(list, it)
		p.Place, p.Turn, p.Seq = math.MaxInt64, math.MaxUint64, math.MaxUint64
		at = p
	}
	return list
}

// from returns the items that do not come before the searched one.
func (x *index) from(before func(*position) bool) iter.Seq[*lockkeeper.Item] {
	return func(yield func(*lockkeeper.Item) bool) {
		run, i := x.find(before)
		for ; run < len(x.runs); run, i = run+1, 0 {
			for ; i < len(x.runs[run]); i++ {
				if !yield(x.runs[run][i].cell.Item) {
					return
				}
			}
		}
	}
}

// downFrom returns the items that come before the searched one, the last of them first.
func (x *index) downFrom(before func(*position) bool) iter.Seq[*lockkeeper.Item] {
	return func(yield func(*lockkeeper.Item) bool) {
		run, i := x.find(before)
		for {
			for i--; i >= 0; i-- {
				if !yield(x.runs[run][i].cell.Item) {
					return
				}
			}
			if run--; run < 0 {
				return
			}
			i = len(x.runs[run])
		}
	}
}

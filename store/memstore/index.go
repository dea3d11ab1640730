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

// runSize is how many entries a run holds at most: few enough to be moved in no
// time, many enough that there are few runs.
const runSize = 128

// index is a sorted list of some of the items, in runs, so that adding and
// removing one moves few others, whatever their number.
type index struct {
	// position says where an item stands, and whether it does at all. No two
	// items stand in the same place.
	position func(*lockkeeper.Item) (p position, in bool)
	runs     [][]placed // none is empty
}

// position is a place in an index: in one of its lines, and there in the order of
// CompareItems. It is kept beside the items because looking through many of them
// costs more than comparing does.
type position struct {
	line     string
	standing uint8
	rank     int64
	tag      uint64
	seq      uint64
}

type placed struct {
	position
	seat *seat
}

// seat is the place of an item. The item in it is replaced, never changed.
type seat struct{ *lockkeeper.Item }

func (p *position) compare(q *position) int {
	if p.line != q.line {
		return cmp.Compare(p.line, q.line)
	}
	return cmp.Or(cmp.Compare(p.standing, q.standing), cmp.Compare(p.rank, q.rank), cmp.Compare(p.tag, q.tag), cmp.Compare(p.seq, q.seq))
}

// find is the place of the first that does not come before what is sought, or else
// the one after the last of all.
func (x *index) find(before func(*position) bool) (run, i int) {
	run = sort.Search(len(x.runs), func(n int) bool { return !before(&x.runs[n][len(x.runs[n])-1].position) })
	if run == len(x.runs) {
		return run, 0
	}
	return run, sort.Search(len(x.runs[run]), func(n int) bool { return !before(&x.runs[run][n].position) })
}

func (x *index) place(p position) (run, i int) {
	return x.find(func(other *position) bool { return other.compare(&p) < 0 })
}

func (x *index) add(p position, s *seat) {
	run, i := x.place(p)
	if run == len(x.runs) { // the last of all
		if run == 0 {
			x.runs = append(x.runs, nil)
		} else {
			run--
		}
		i = len(x.runs[run])
	}
	x.runs[run] = slices.Insert(x.runs[run], i, placed{p, s})
	if places := x.runs[run]; len(places) > runSize {
		second := append(make([]placed, 0, runSize), places[runSize/2:]...)
		clear(places[runSize/2:])
		x.runs[run] = places[:runSize/2]
		x.runs = slices.Insert(x.runs, run+1, second)
	}
}

func (x *index) remove(p position) {
	run, i := x.place(p)
	x.runs[run] = slices.Delete(x.runs[run], i, i+1)
	if len(x.runs[run]) == 0 {
		x.runs = slices.Delete(x.runs, run, run+1)
	}
}

// exchange moves a seat from where the old item stands to where the next one
// does; nil stands for none.
func (x *index) exchange(s *seat, old, next *lockkeeper.Item) {
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

// first is the first item that does not come before what is sought; nil: none.
func (x *index) first(before func(*position) bool) *lockkeeper.Item {
	for it := range x.from(before) {
		return it
	}
	return nil
}

// firstOf is the first item of a line; nil: none.
func (x *index) firstOf(line string) *lockkeeper.Item {
	run, i := x.find(func(p *position) bool { return p.line < line })
	if run == len(x.runs) || x.runs[run][i].line != line {
		return nil
	}
	return x.runs[run][i].seat.Item
}

// leaders lists the first item of each line, standing and rank, in lines with a prefix.
func (x *index) leaders(prefix string) (list []*lockkeeper.Item) {
	at := position{line: prefix, rank: math.MinInt64} // before all
	before := func(p *position) bool { return p.compare(&at) < 0 }
	for it := x.first(before); it != nil; it = x.first(before) {
		p, _ := x.position(it)
		if !strings.HasPrefix(p.line, prefix) {
			break
		}
		list = append(list, it)
		p.tag, p.seq = math.MaxUint64, math.MaxUint64
		at = p
	}
	return list
}

// from lists all that do not come before what is sought.
func (x *index) from(before func(*position) bool) iter.Seq[*lockkeeper.Item] {
	return func(yield func(*lockkeeper.Item) bool) {
		run, i := x.find(before)
		for ; run < len(x.runs); run, i = run+1, 0 {
			for ; i < len(x.runs[run]); i++ {
				if !yield(x.runs[run][i].seat.Item) {
					return
				}
			}
		}
	}
}

// downFrom lists all that come before what is sought, the last of them first.
func (x *index) downFrom(before func(*position) bool) iter.Seq[*lockkeeper.Item] {
	return func(yield func(*lockkeeper.Item) bool) {
		run, i := x.find(before)
		for {
			for i--; i >= 0; i-- {
				if !yield(x.runs[run][i].seat.Item) {
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

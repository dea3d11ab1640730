package memstore

import (
	"iter"
	"slices"
	"sort"

	"lockkeeper"
)

// runSize is how many seats a run holds at most: few enough to be moved in no
// time, many enough that there are few runs.
const runSize = 128

// index is a sorted list of some of the seats, in runs, so that adding and
// removing one moves few others, whatever their number.
type index struct {
	has     func(*lockkeeper.Item) bool
	compare func(a, b *lockkeeper.Item) int // never 0 for the items of two seats
	runs    [][]*seat                       // none is empty
}

// seat is the place of an item. The item in it is replaced, never changed.
type seat struct{ *lockkeeper.Item }

// moves reports whether a seat stands elsewhere with the next item in it.
func (x *index) moves(old, next *lockkeeper.Item) bool {
	is, will := x.has(old), x.has(next)
	return is != will || is && x.compare(old, next) != 0
}

// find is the place of the first item that does not come before what is sought,
// or else the one after the last of all.
func (x *index) find(before func(*lockkeeper.Item) bool) (run, i int) {
	run = sort.Search(len(x.runs), func(n int) bool { return !before(x.runs[n][len(x.runs[n])-1].Item) })
	if run == len(x.runs) {
		return run, 0
	}
	return run, sort.Search(len(x.runs[run]), func(n int) bool { return !before(x.runs[run][n].Item) })
}

func (x *index) place(it *lockkeeper.Item) (run, i int) {
	return x.find(func(other *lockkeeper.Item) bool { return x.compare(other, it) < 0 })
}

// add takes a seat up if its item belongs here.
func (x *index) add(s *seat) {
	if !x.has(s.Item) {
		return
	}
	run, i := x.place(s.Item)
	if run == len(x.runs) { // the last of all
		if run == 0 {
			x.runs = append(x.runs, nil)
		} else {
			run--
		}
		i = len(x.runs[run])
	}
	x.runs[run] = slices.Insert(x.runs[run], i, s)
	if seats := x.runs[run]; len(seats) > runSize {
		second := append(make([]*seat, 0, runSize), seats[runSize/2:]...)
		clear(seats[runSize/2:])
		x.runs[run] = seats[:runSize/2]
		x.runs = slices.Insert(x.runs, run+1, second)
	}
}

// remove forgets a seat if its item belongs here.
func (x *index) remove(s *seat) {
	if !x.has(s.Item) {
		return
	}
	run, i := x.place(s.Item)
	x.runs[run] = slices.Delete(x.runs[run], i, i+1)
	if len(x.runs[run]) == 0 {
		x.runs = slices.Delete(x.runs, run, run+1)
	}
}

// first is the first item that does not come before what is sought; nil: none.
func (x *index) first(before func(*lockkeeper.Item) bool) *lockkeeper.Item {
	for it := range x.from(before) {
		return it
	}
	return nil
}

// from lists all that do not come before what is sought.
func (x *index) from(before func(*lockkeeper.Item) bool) iter.Seq[*lockkeeper.Item] {
	return func(yield func(*lockkeeper.Item) bool) {
		run, i := x.find(before)
		for ; run < len(x.runs); run, i = run+1, 0 {
			for ; i < len(x.runs[run]); i++ {
				if !yield(x.runs[run][i].Item) {
					return
				}
			}
		}
	}
}

// downFrom lists all that come before what is sought, the last of them first.
func (x *index) downFrom(before func(*lockkeeper.Item) bool) iter.Seq[*lockkeeper.Item] {
	return func(yield func(*lockkeeper.Item) bool) {
		run, i := x.find(before)
		for {
			for i--; i >= 0; i-- {
				if !yield(x.runs[run][i].Item) {
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

package simulate

import (
	"cmp"
	"slices"
	"time"

	"lockkeeper"
)

// A Bound is a time before which no schedule can finish a plan. It is the largest of three
// bounds.
type Bound struct {
	Finish Span   `json:"finish_seconds"`
	By     string `json:"by"`             // "work", "chain" or "file"
	Path   string `json:"path,omitempty"` // the file, if By is "file"
	Items  int    `json:"items"`          // number of all items, of those in the chain, or of those at the file

	Work  Span `json:"work_seconds"`  // the work of all items, divided by the slots
	Chain Span `json:"chain_seconds"` // the longest chain of dependent items
	File  Span `json:"file_seconds"`  // time that the items at one file need one after the other, with the chains before and after them
}

// bound finds the lower bound of a plan. Each part holds for every schedule:
//
//   - An item cannot begin before the longest chain of its predecessors (its head) ends, and the
//     longest chain of its successors (its tail) comes after its end.
//   - A set of items does all its work after the smallest of their heads and before the smallest of
//     their tails. At most one item is in a slot at a time, and only one runs in all if every two of
//     them conflict.
//   - Items that write a path, or a directory above it, conflict with each other and with every item
//     that reads above or below it. Readers do not conflict with each other, so they need at least
//     the longest of them, and at least their work divided by the slots.
func (m *model) bound() Bound {
	heads, tails := m.chains()
	b := Bound{}
	all := make([]int, len(m.tasks))
	longest := 0
	for i := range m.tasks {
		all[i] = i
		if chain := heads[i] + m.tasks[i].duration + tails[i]; chain > time.Duration(b.Chain) {
			b.Chain, longest = Span(chain), i
		}
	}
	b.Work = Span(m.atLeast(all, 0, heads, tails))
	b.Finish, b.By, b.Items = b.Work, "work", len(all)
	if b.Chain > b.Finish {
		b.Finish, b.By, b.Items = b.Chain, "chain", m.chainLength(longest, heads, tails)
	}
	for _, path := range m.paths.sorted {
		writers, readers := m.rivals(path)
		if len(writers) == 0 || len(writers)+len(readers) < 2 {
			continue
		}
		one := slices.Concat(writers, readers[:min(1, len(readers))])
		b.atFile(path, m.atLeast(one, len(one), heads, tails), len(one))
		all := slices.Concat(writers, readers)
		b.atFile(path, m.atLeast(all, len(writers), heads, tails), len(all))
	}
	return b
}

// atFile raises the bound to that of some items at a file.
func (b *Bound) atFile(path string, least time.Duration, items int) {
	b.File = max(b.File, Span(least))
	if b.File > b.Finish {
		b.Finish, b.By, b.Items, b.Path = b.File, "file", items, path
	}
}

// chains returns for each item the length of the longest chain before and after it.
func (m *model) chains() (heads, tails []time.Duration) {
	order := m.order()
	heads, tails = make([]time.Duration, len(m.tasks)), make([]time.Duration, len(m.tasks))
	for _, i := range order {
		for _, next := range m.tasks[i].before {
			heads[next] = max(heads[next], heads[i]+m.tasks[i].duration)
		}
	}
	for _, i := range slices.Backward(order) {
		for _, first := range m.tasks[i].after {
			tails[first] = max(tails[first], tails[i]+m.tasks[i].duration)
		}
	}
	return heads, tails
}

// order lists the items so that each comes after its predecessors.
func (m *model) order() []int {
	open := make([]int, len(m.tasks))
	var order []int
	for i := range m.tasks {
		if open[i] = len(m.tasks[i].after); open[i] == 0 {
			order = append(order, i)
		}
	}
	for n := 0; n < len(order); n++ {
		for _, next := range m.tasks[order[n]].before {
			if open[next]--; open[next] == 0 {
				order = append(order, next)
			}
		}
	}
	return order
}

// chainLength counts the items in the longest chain through an item.
func (m *model) chainLength(i int, heads, tails []time.Duration) int {
	n := 1
	for at := i; heads[at] > 0; n++ {
		at = m.tasks[at].after[slices.IndexFunc(m.tasks[at].after, func(first int) bool { return heads[first]+m.tasks[first].duration == heads[at] })]
	}
	for at := i; tails[at] > 0; n++ {
		at = m.tasks[at].before[slices.IndexFunc(m.tasks[at].before, func(next int) bool { return tails[next]+m.tasks[next].duration == tails[at] })]
	}
	return n
}

// atLeast returns a lower bound for items of which the first ones, alone in number, run while no
// other of the items runs. For each minimum head and each minimum tail it bounds the items with at
// least these, and returns the largest bound.
func (m *model) atLeast(items []int, alone int, heads, tails []time.Duration) (least time.Duration) {
	begin := make([]time.Duration, len(items))
	byTail := make([]int, len(items)) // positions in items
	for k, i := range items {
		begin[k], byTail[k] = heads[i], k
	}
	slices.SortFunc(byTail, func(j, k int) int {
		return cmp.Or(cmp.Compare(tails[items[k]], tails[items[j]]), cmp.Compare(j, k))
	})
	slices.Sort(begin)
	for _, head := range slices.Compact(begin) {
		var single, together time.Duration
		for _, k := range byTail {
			i := items[k]
			switch {
			case heads[i] < head:
				continue
			case k < alone:
				single += m.tasks[i].duration
			default:
				together += m.tasks[i].slot
			}
			least = max(least, head+single+ceil(together, m.slots)+tails[i])
		}
	}
	return least
}

// ceil divides work among workers and rounds up.
func ceil(work time.Duration, among int) time.Duration {
	return (work + time.Duration(among) - 1) / time.Duration(among)
}

// rivals lists the items that conflict at one path: its writers and those of paths above it, each
// of which conflicts with all others, and the items that read it or a path above or below it, the
// longest first.
func (m *model) rivals(path string) (writers, readers []int) {
	m.paths.upTo(path, func(u use) {
		if u.lock.Mode == lockkeeper.Write && !slices.Contains(writers, u.item) {
			writers = append(writers, u.item)
		}
	})
	if len(writers) == 0 {
		return nil, nil
	}
	m.paths.around(path, func(u use) {
		if u.lock.Mode == lockkeeper.Read && !slices.Contains(writers, u.item) && !slices.Contains(readers, u.item) {
			readers = append(readers, u.item)
		}
	})
	slices.SortStableFunc(readers, func(i, j int) int { return cmp.Compare(m.tasks[j].duration, m.tasks[i].duration) })
	return writers, readers
}

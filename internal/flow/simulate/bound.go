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
//     their tails. At most one item runs per slot at a time, and only one in all if every two of
//     them conflict.
//   - Items that write a path, or a directory above it, conflict with each other and with every item
//     that reads above or below it. Readers do not conflict with each other, so the set has only
//     one reader.
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
	byTail := func(i, j int) int { return cmp.Or(cmp.Compare(tails[j], tails[i]), cmp.Compare(i, j)) }
	slices.SortFunc(all, byTail)
	b.Work = Span(m.atLeast(all, m.slots, heads, tails))
	b.Finish, b.By, b.Items = b.Work, "work", len(all)
	if b.Chain > b.Finish {
		b.Finish, b.By, b.Items = b.Chain, "chain", m.chainLength(longest, heads, tails)
	}
	for _, path := range m.paths.sorted {
		rivals := m.rivals(path)
		if len(rivals) < 2 {
			continue
		}
		slices.SortFunc(rivals, byTail)
		if least := Span(m.atLeast(rivals, 1, heads, tails)); least > b.File {
			b.File = least
			if least > b.Finish {
				b.Finish, b.By, b.Items, b.Path = least, "file", len(rivals), path
			}
		}
	}
	return b
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

// atLeast returns a lower bound for items of which atOnce can run concurrently. For each minimum
// head and each minimum tail it bounds the items with at least these, and returns the largest
// bound. The items are sorted by tail, the largest first.
func (m *model) atLeast(items []int, atOnce int, heads, tails []time.Duration) (least time.Duration) {
	begin := make([]time.Duration, len(items))
	for k, i := range items {
		begin[k] = heads[i]
	}
	slices.Sort(begin)
	for _, head := range slices.Compact(begin) {
		var work time.Duration
		for _, i := range items {
			if heads[i] >= head {
				work += m.tasks[i].duration
				least = max(least, head+ceil(work, atOnce)+tails[i])
			}
		}
	}
	return least
}

// ceil divides work among workers and rounds up.
func ceil(work time.Duration, among int) time.Duration {
	return (work + time.Duration(among) - 1) / time.Duration(among)
}

// rivals lists items that all conflict with each other at one path: its writers, the writers of
// paths above it, and the longest item that reads it or a path above or below it.
func (m *model) rivals(path string) (items []int) {
	m.paths.upTo(path, func(u use) {
		if u.lock.Mode == lockkeeper.Write && !slices.Contains(items, u.item) {
			items = append(items, u.item)
		}
	})
	if len(items) == 0 {
		return nil
	}
	reader := -1
	m.paths.around(path, func(u use) {
		if u.lock.Mode == lockkeeper.Read && !slices.Contains(items, u.item) && (reader < 0 || m.tasks[u.item].duration > m.tasks[reader].duration) {
			reader = u.item
		}
	})
	if reader >= 0 {
		items = append(items, reader)
	}
	return items
}

package simulate

import (
	"cmp"
	"slices"
	"time"

	"lockkeeper"
)

// Bound is a time before which nobody can be done with a plan: the largest of three.
type Bound struct {
	Finish Span   `json:"finish_seconds"`
	By     string `json:"by"`             // "work", "chain" or "file"
	Path   string `json:"path,omitempty"` // of the file
	Items  int    `json:"items"`          // how many it is about: all, those in the chain, those around the file

	Work  Span `json:"work_seconds"`  // all items over all slots
	Chain Span `json:"chain_seconds"` // the longest chain of items that wait for each other
	File  Span `json:"file_seconds"`  // the longest line at one file, with what comes before and after it
}

// bound finds the lower bound of a plan. Each part holds for every schedule:
//
//   - An item cannot begin before the longest chain of those it waits for (its head),
//     and after its end comes the longest chain of those that wait for it (its tail).
//   - Some items do all their work between the smallest of their heads and, from the
//     finish backwards, the smallest of their tails: not faster than so many at once as
//     there are slots, and one at a time if each of them is in the way of all others.
//   - Those who write a path or one above it are in each other's way, and so is one
//     reader around it; two readers are not.
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
	for _, path := range m.places.paths {
		line := m.line(path)
		if len(line) < 2 {
			continue
		}
		slices.SortFunc(line, byTail)
		if least := Span(m.atLeast(line, 1, heads, tails)); least > b.File {
			b.File = least
			if least > b.Finish {
				b.Finish, b.By, b.Items, b.Path = least, "file", len(line), path
			}
		}
	}
	return b
}

// chains is, by item, how long the longest chain before it takes and the one after it.
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

// order lists the items so that each comes behind those it waits for.
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

// chainLength counts the items in the longest chain through one.
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

// atLeast is how long some items take that can do so many at once: the largest bound of
// all sets of them with no smaller head than some and no smaller tail than some. They
// come with the largest tail first.
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

// ceil divides work among so many, the last of whom is done then.
func ceil(work time.Duration, among int) time.Duration {
	return (work + time.Duration(among) - 1) / time.Duration(among)
}

// line lists items of which each is in the way of all others, at one path: whoever
// writes it or a path above it, and the longest of those who read something around it.
func (m *model) line(path string) (items []int) {
	m.places.upTo(path, func(u use) {
		if u.lock.Mode == lockkeeper.Write && !slices.Contains(items, u.item) {
			items = append(items, u.item)
		}
	})
	if len(items) == 0 {
		return nil
	}
	reader := -1
	m.places.around(path, func(u use) {
		if u.lock.Mode == lockkeeper.Read && !slices.Contains(items, u.item) && (reader < 0 || m.tasks[u.item].duration > m.tasks[reader].duration) {
			reader = u.item
		}
	})
	if reader >= 0 {
		items = append(items, reader)
	}
	return items
}

package links

import "slices"

// components finds the sets of two and more nodes that all lead to each other, each
// sorted, by their first.
func components(next [][]int) [][]int {
	t := &tarjan{next: next, index: make([]int, len(next)), low: make([]int, len(next)), open: make([]bool, len(next))}
	for n := range next {
		if t.index[n] == 0 {
			t.visit(n)
		}
	}
	slices.SortFunc(t.found, func(a, b []int) int { return a[0] - b[0] })
	return t.found
}

// tarjan is Tarjan's algorithm: one walk through the graph, in which a node that no
// later one leads back behind ends a set.
type tarjan struct {
	next  [][]int
	count int
	index []int // when a node was reached, from 1
	low   []int // the earliest open node that it leads to
	open  []bool
	stack []int // the open nodes
	found [][]int
}

func (t *tarjan) visit(n int) {
	t.count++
	t.index[n], t.low[n], t.open[n] = t.count, t.count, true
	mine := len(t.stack)
	t.stack = append(t.stack, n)
	for _, to := range t.next[n] {
		if t.index[to] == 0 {
			t.visit(to)
			t.low[n] = min(t.low[n], t.low[to])
		} else if t.open[to] {
			t.low[n] = min(t.low[n], t.index[to])
		}
	}
	if t.low[n] < t.index[n] {
		return
	}
	set := slices.Sorted(slices.Values(t.stack[mine:]))
	t.stack = t.stack[:mine]
	for _, m := range set {
		t.open[m] = false
	}
	if len(set) > 1 {
		t.found = append(t.found, set)
	}
}

// around is a shortest way from the first of a set through the set and back to it.
func around(next [][]int, set []int) []int {
	begin := set[0]
	from := map[int]int{}
	for queue := []int{begin}; len(queue) > 0; queue = queue[1:] {
		n := queue[0]
		for _, to := range next[n] {
			if to == begin {
				way := []int{begin}
				for at := n; at != begin; at = from[at] {
					way = append(way, at)
				}
				way = append(way, begin)
				slices.Reverse(way)
				return way
			}
			if _, seen := from[to]; !seen {
				if _, in := slices.BinarySearch(set, to); in {
					from[to] = n
					queue = append(queue, to)
				}
			}
		}
	}
	return nil // not for a set whose nodes all lead to each other
}

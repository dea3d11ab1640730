package links

import "slices"

// components returns the strongly connected components of two or more nodes, each sorted,
// ordered by their first node.
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

// tarjan is Tarjan's algorithm. A node that reaches no earlier open node completes a
// component.
type tarjan struct {
	next  [][]int
	count int
	index []int // when a node was reached, from 1
	low   []int // the earliest open node that it reaches
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

// shortestCycle returns a shortest path from the first node of a component back to it.
func shortestCycle(next [][]int, set []int) []int {
	begin := set[0]
	from := map[int]int{}
	for queue := []int{begin}; len(queue) > 0; queue = queue[1:] {
		n := queue[0]
		for _, to := range next[n] {
			if to == begin {
				path := []int{begin}
				for at := n; at != begin; at = from[at] {
					path = append(path, at)
				}
				path = append(path, begin)
				slices.Reverse(path)
				return path
			}
			if _, seen := from[to]; !seen {
				if _, in := slices.BinarySearch(set, to); in {
					from[to] = n
					queue = append(queue, to)
				}
			}
		}
	}
	return nil // unreachable for a strongly connected component
}

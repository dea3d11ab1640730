package view

import (
	"slices"

	"lockkeeper/lock"
)

// graphOf returns which requests and items wait for which. An item and its grant are one
// node.
func graphOf(entries []lock.RequestInfo, queued []QueuedWait, known names) Graph {
	g := Graph{Nodes: []GraphNode{}, Edges: []GraphEdge{}}
	seen := map[[2]string]bool{}
	edge := func(from, to, path string) {
		if ends := [2]string{from, to}; from != "" && to != "" && from != to && !seen[ends] {
			seen[ends] = true
			g.Edges = append(g.Edges, GraphEdge{From: from, To: to, Path: path})
		}
	}
	byID := map[string]GraphNode{}
	id := map[string]string{} // id of the node, by grant
	for _, e := range entries {
		n := GraphNode{ID: e.ID, Name: known.holder(e), State: "held", Item: e.Metadata[lock.ItemKey], Since: e.AcquiredAt}
		if n.Item != "" {
			n.ID = n.Item
		}
		switch {
		case e.State == waitingState:
			n.State = waitingState
		case e.Stale:
			n.State = "stale"
		}
		byID[n.ID], id[e.ID] = n, n.ID
	}
	for _, q := range queued {
		byID[q.Item] = GraphNode{ID: q.Item, Name: q.Name, State: "queued", Item: q.Item, Since: q.Since}
		for _, b := range q.Behind {
			edge(q.Item, id[b.GrantID], b.Path)
		}
	}
	for _, e := range entries {
		for _, c := range e.Conflicts {
			edge(id[e.ID], id[c.GrantID], c.BlockingPath)
		}
	}
	for _, e := range g.Edges { // nodes without an edge are left out
		for _, end := range []string{e.To, e.From} {
			if n, ok := byID[end]; ok {
				g.Nodes = append(g.Nodes, n)
				delete(byID, end)
			}
		}
	}
	return g
}

// tree returns the graph as trees. Their roots wait for nothing.
func (g Graph) tree() []WaitNode {
	nodes := map[string]GraphNode{}
	for _, n := range g.Nodes {
		nodes[n.ID] = n
	}
	waits, behind := map[string]bool{}, map[string][]GraphEdge{}
	for _, e := range g.Edges {
		waits[e.From] = true
		behind[e.To] = append(behind[e.To], e)
	}
	told := map[string]bool{}
	var below func(id, path string) WaitNode
	below = func(id, path string) WaitNode {
		n := WaitNode{ID: id, Name: nodes[id].Name, State: nodes[id].State, Path: path, Since: nodes[id].Since, Again: told[id], Behind: []WaitNode{}}
		if told[id] {
			return n
		}
		told[id] = true
		for _, e := range behind[id] {
			n.Behind = append(n.Behind, below(e.From, e.Path))
		}
		slices.SortStableFunc(n.Behind, func(a, b WaitNode) int { return a.Since.Compare(b.Since) })
		return n
	}
	tree := []WaitNode{}
	for _, n := range g.Nodes {
		if !waits[n.ID] {
			tree = append(tree, below(n.ID, ""))
		}
	}
	slices.SortStableFunc(tree, func(a, b WaitNode) int { return a.Since.Compare(b.Since) })
	return tree
}

package web

import (
	"cmp"
	"fmt"
	"slices"

	"lockkeeper/internal/surface/view"
)

// These constants are the measures of the wait graph, in pixels.
const (
	nodeWidth, nodeHeight    = 176, 36
	columnWidth, rowHeight   = nodeWidth + 64, nodeHeight + 16
	nodesDrawn, lettersDrawn = 60, 23
)

// A picture is the drawn wait graph: holders that wait for nothing on the left, and the waiters
// of each node to its right.
type picture struct {
	Width, Height int
	Nodes         []drawnNode
	Edges         []drawnEdge
	Left          int // how many nodes are not drawn
}

type drawnNode struct {
	view.GraphNode
	X, Y  int
	Label string
}

type drawnEdge struct {
	view.GraphEdge
	Path  string // SVG path
	Title string
}

// draw places the nodes that wait and the nodes they wait for. It leaves out nodes without edges.
func draw(g view.Graph) picture {
	var p picture
	column := columns(g)
	names := map[string]string{}
	var nodes []view.GraphNode
	for _, n := range g.Nodes {
		names[n.ID] = n.Name
		if _, in := column[n.ID]; in {
			nodes = append(nodes, n)
		}
	}
	slices.SortStableFunc(nodes, func(a, b view.GraphNode) int { return cmp.Compare(column[a.ID], column[b.ID]) })
	if len(nodes) > nodesDrawn {
		p.Left = len(nodes) - nodesDrawn
		nodes = nodes[:nodesDrawn]
	}
	row := rows(nodes, column, g.Edges)
	drawn := map[string]drawnNode{}
	for _, n := range nodes {
		at := drawnNode{GraphNode: n, X: 4 + column[n.ID]*columnWidth, Y: 4 + row[n.ID]*rowHeight, Label: shortened(n.Name, lettersDrawn)}
		drawn[n.ID] = at
		p.Nodes = append(p.Nodes, at)
		p.Width, p.Height = max(p.Width, at.X+nodeWidth+4), max(p.Height, at.Y+nodeHeight+4)
	}
	for _, e := range g.Edges {
		from, ok := drawn[e.From]
		to, also := drawn[e.To]
		if !ok || !also {
			continue
		}
		x1, y1, x2, y2 := from.X, from.Y+nodeHeight/2, to.X+nodeWidth+7, to.Y+nodeHeight/2
		bend := max(26, (x1-x2)/2)
		p.Edges = append(p.Edges, drawnEdge{GraphEdge: e, Path: fmt.Sprintf("M%d %dC%d %d %d %d %d %d", x1, y1, x1-bend, y1, x2+bend, y2, x2, y2),
			Title: names[e.From] + " waits for " + names[e.To] + ": " + e.Path})
	}
	return p
}

// columns returns the column of each node: the length of the longest chain of nodes it waits for.
func columns(g view.Graph) map[string]int {
	column := map[string]int{}
	for _, e := range g.Edges {
		column[e.From], column[e.To] = 0, 0
	}
	for range column { // the bound also ends a cycle, which should not occur
		moved := false
		for _, e := range g.Edges {
			if next := column[e.To] + 1; e.From != e.To && column[e.From] < next && next < len(column) {
				column[e.From], moved = next, true
			}
		}
		if !moved {
			break
		}
	}
	return column
}

// rows places the nodes of each column beside the nodes they wait for.
func rows(nodes []view.GraphNode, column map[string]int, edges []view.GraphEdge) map[string]int {
	row := map[string]int{}
	next := map[int]int{} // the first free row of a column
	wish := func(id string) int {
		sum, n := 0, 0
		for _, e := range edges {
			if at, placed := row[e.To]; e.From == id && placed {
				sum, n = sum+at, n+1
			}
		}
		if n == 0 {
			return 0
		}
		return sum / n
	}
	for from := 0; from < len(nodes); {
		to := from
		for to < len(nodes) && column[nodes[to].ID] == column[nodes[from].ID] {
			to++
		}
		group := slices.Clone(nodes[from:to])
		wishes := map[string]int{}
		for _, n := range group {
			wishes[n.ID] = wish(n.ID)
		}
		slices.SortStableFunc(group, func(a, b view.GraphNode) int { return cmp.Compare(wishes[a.ID], wishes[b.ID]) })
		for _, n := range group {
			c := column[n.ID]
			row[n.ID] = max(next[c], wishes[n.ID])
			next[c] = row[n.ID] + 1
		}
		from = to
	}
	return row
}

func shortened(name string, letters int) string {
	runes := []rune(name)
	if len(runes) <= letters {
		return name
	}
	return string(runes[:letters-1]) + "…"
}

// ending returns the end of a name, which distinguishes the parts of a unit.
func ending(name string, letters int) string {
	runes := []rune(name)
	if len(runes) <= letters {
		return name
	}
	return "…" + string(runes[len(runes)-letters+1:])
}

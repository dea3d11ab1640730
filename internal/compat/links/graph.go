package links

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// A Graph is the references between the documents of a repository.
type Graph struct {
	Documents []string `json:"documents"` // sorted
	Edges     []Edge   `json:"edges"`     // sorted, each once
	Orphans   []string `json:"orphans"`   // documents that no other document refers to, except the start documents
	Cycles    []Cycle  `json:"cycles"`
}

// An Edge is a reference from one document to another.
type Edge struct {
	From string `json:"from"`
	To   string `json:"to"`
}

// A Cycle is a set of documents that all reach each other.
type Cycle struct {
	Documents []string `json:"documents"` // sorted
	Path      []string `json:"way"`       // a shortest path from the first document back to itself
}

func (c *checker) graph() *Graph {
	g := &Graph{Documents: []string{}, Edges: []Edge{}, Orphans: []string{}, Cycles: []Cycle{}}
	number := map[string]int{}
	for i, s := range c.scans {
		number[s.path] = i
		g.Documents = append(g.Documents, s.path)
	}
	next := make([][]int, len(c.scans))
	referred := make([]bool, len(c.scans))
	for i, s := range c.scans {
		for _, r := range s.references {
			if r.loose || r.to.url != "" || r.problem != "" && r.problem != NoAnchor {
				continue
			}
			to, ok := number[r.at]
			if !ok { // a link to a directory shows its README
				to, ok = number[path.Join(r.at, "README.md")]
			}
			if ok && to != i {
				next[i] = append(next[i], to)
				referred[to] = true
			}
		}
		slices.Sort(next[i])
		next[i] = slices.Compact(next[i])
		for _, to := range next[i] {
			g.Edges = append(g.Edges, Edge{From: s.path, To: c.scans[to].path})
		}
	}
	begin := slices.Concat(c.Documents, c.Optional)
	for i, s := range c.scans {
		if !referred[i] && !slices.Contains(begin, s.path) {
			g.Orphans = append(g.Orphans, s.path)
		}
	}
	for _, part := range components(next) {
		cycle := Cycle{}
		for _, n := range part {
			cycle.Documents = append(cycle.Documents, g.Documents[n])
		}
		for _, n := range shortestCycle(next, part) {
			cycle.Path = append(cycle.Path, g.Documents[n])
		}
		g.Cycles = append(g.Cycles, cycle)
	}
	return g
}

// Dot returns the graph for Graphviz: orphans dashed, cycles red.
func (g *Graph) Dot() string {
	var b strings.Builder
	b.WriteString("digraph links {\n  rankdir=LR;\n  node [shape=box];\n")
	cycle := map[string]int{} // number of the cycle of each document, from 1
	for i, c := range g.Cycles {
		for _, name := range c.Documents {
			cycle[name] = i + 1
		}
	}
	for _, name := range g.Documents {
		style := ""
		switch {
		case slices.Contains(g.Orphans, name):
			style = " [style=dashed]"
		case cycle[name] > 0:
			style = " [color=red]"
		}
		fmt.Fprintf(&b, "  %s%s;\n", quoted(name), style)
	}
	for _, e := range g.Edges {
		style := ""
		if cycle[e.From] > 0 && cycle[e.From] == cycle[e.To] {
			style = " [color=red]"
		}
		fmt.Fprintf(&b, "  %s -> %s%s;\n", quoted(e.From), quoted(e.To), style)
	}
	b.WriteString("}\n")
	return b.String()
}

// quoted quotes a name for Graphviz. Invalid and control characters become question marks.
func quoted(name string) string {
	name = strings.Map(func(r rune) rune {
		if r == utf8.RuneError || !unicode.IsGraphic(r) || unicode.Is(unicode.Bidi_Control, r) {
			return '?'
		}
		return r
	}, name)
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(name) + `"`
}

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
	low   []int // for each document, the earliest open node that it reaches
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
	return nil // cannot happen in a strongly connected component
}

// A Kind is how a reference is written.
type Kind string

const (
	Link       Kind = "link"       // [text](target), <https://…>, <a href=…>
	Image      Kind = "image"      // ![text](target), <img src=…>
	Definition Kind = "definition" // [label]: target, and [text][label]
	Code       Kind = "code"       // `path/to/file`
	Mention    Kind = "mention"    // file.md or https://… in the text
	Document   Kind = "document"   // the document itself, not a reference
)

// A Problem is the reason why a reference is broken.
type Problem string

const (
	Missing    Problem = "missing"    // there is no such file
	NoAnchor   Problem = "anchor"     // the file has no such heading
	Outside    Problem = "outside"    // the path is outside the repository
	Undefined  Problem = "undefined"  // the label is not defined
	Empty      Problem = "empty"      // the link is empty
	Unreadable Problem = "unreadable" // the document could not be checked
	Dead       Problem = "dead"       // a URL that returns an error
	Refused    Problem = "refused"    // a URL that was not requested
)

type Reference struct {
	File   string `json:"file"` // path from the root
	Line   int    `json:"line"` // from 1
	Kind   Kind   `json:"kind"`
	Target string `json:"target"` // target as a reader of the rendered document gets it
}

// A Finding is a broken reference.
type Finding struct {
	Reference
	Problem Problem `json:"problem"`
	Reason  string  `json:"reason"`
	Nearest string  `json:"nearest,omitempty"` // a suggestion: a path from the root, or #anchor
	Fix     *Fix    `json:"fix,omitempty"`     // nil if a person must decide
}

// A Report is the result of a check.
type Report struct {
	Documents  int       `json:"documents"`
	References int       `json:"references"`
	Asked      int       `json:"urls_asked"`
	Findings   []Finding `json:"findings"` // enforced: the check fails; by file and line

	// Informational findings do not make the check fail.
	Informational []Finding `json:"informational"`

	Valid []Reference `json:"valid,omitempty"` // valid references; only if requested
	Graph *Graph      `json:"-"`               // graph of all documents; only after a deep check
}

// Fixes returns the possible fixes, by file and line.
func (r *Report) Fixes() (list []Fix) {
	for _, f := range r.Findings {
		if f.Fix != nil {
			list = append(list, *f.Fix)
		}
	}
	return list
}

func byPosition(a, b Reference) int {
	return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line))
}

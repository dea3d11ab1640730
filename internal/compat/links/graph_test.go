package links

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// Orphans and cycles are found and drawn.
//
// shows: LE-46
func TestGraph(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"README.md": "[a](docs/a.md) [self](README.md) [web](https://example.com/docs/orphan.md)",
		"docs/a.md": "[b](b.md) [again](b.md#x)\n", "docs/b.md": "# x\n[c](c.md)", "docs/c.md": "[a](a.md) [d](../d.md) [lost](lost.md)",
		"d.md": "`docs/e.md`", "docs/e.md": "see d.md", "docs/orphan.md": "[a](a.md)", "docs/\"odd\".md": "", "leaf/README.md": "", "to-leaf.md": "[x](leaf)",
	} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	rep, err := Check(t.Context(), dir, Options{Documents: []string{"README.md"}, Deep: true})
	if err != nil {
		t.Fatal(err)
	}
	g := rep.Graph
	if want := []string{"docs/\"odd\".md", "docs/orphan.md", "to-leaf.md"}; !slices.Equal(g.Orphans, want) {
		t.Errorf("orphans %q", g.Orphans)
	}
	if len(g.Cycles) != 2 || !slices.Equal(g.Cycles[0].Path, []string{"d.md", "docs/e.md", "d.md"}) || !slices.Equal(g.Cycles[1].Path, []string{"docs/a.md", "docs/b.md", "docs/c.md", "docs/a.md"}) {
		t.Errorf("cycles %v", g.Cycles)
	}
	dot := g.Dot()
	for _, line := range []string{`  "docs/orphan.md" [style=dashed];`, `  "docs/\"odd\".md" [style=dashed];`, `  "docs/a.md" -> "docs/b.md" [color=red];`, `  "docs/c.md" -> "d.md";`, `  "README.md" -> "docs/a.md";`} {
		if !strings.Contains(dot, line+"\n") {
			t.Errorf("no %s in\n%s", line, dot)
		}
	}
	if strings.Count(dot, "->") != len(g.Edges) || len(g.Edges) != 9 {
		t.Errorf("%d edges\n%s", len(g.Edges), dot)
	}
}

// The components match a naive search, and each cycle is a shortest one.
func TestCyclesAgainstPlainSearch(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	for range 300 {
		n := 1 + random.IntN(12)
		next := make([][]int, n)
		for range random.IntN(2 * n) {
			from, to := random.IntN(n), random.IntN(n)
			if from != to && !slices.Contains(next[from], to) {
				next[from] = append(next[from], to)
			}
		}
		far := distances(next)
		var want [][]int
		seen := make([]bool, n)
		for i := range n {
			set := []int{i}
			for j := i + 1; j < n && !seen[i]; j++ {
				if far[i][j] > 0 && far[j][i] > 0 {
					set, seen[j] = append(set, j), true
				}
			}
			if len(set) > 1 {
				want = append(want, set)
			}
		}
		got := components(next)
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Fatalf("%v: %v, want %v", next, got, want)
		}
		for _, set := range got {
			cycle := shortestCycle(next, set)
			shortest := n + 1
			for _, to := range set[1:] {
				shortest = min(shortest, far[set[0]][to]+far[to][set[0]])
			}
			if len(cycle)-1 != shortest || cycle[0] != set[0] || cycle[len(cycle)-1] != set[0] {
				t.Fatalf("%v: cycle %v, shortest is %d", next, cycle, shortest)
			}
			for i := range cycle[1:] {
				if !slices.Contains(next[cycle[i]], cycle[i+1]) {
					t.Fatalf("%v: not a path: %v", next, cycle)
				}
			}
		}
	}
}

// distances returns the number of steps between all nodes, 0 if unreachable.
func distances(next [][]int) [][]int {
	far := make([][]int, len(next))
	for from := range next {
		far[from] = make([]int, len(next))
		for queue := []int{from}; len(queue) > 0; queue = queue[1:] {
			for _, to := range next[queue[0]] {
				if to != from && far[from][to] == 0 {
					far[from][to] = far[from][queue[0]] + 1
					queue = append(queue, to)
				}
			}
		}
	}
	return far
}

// A chain of documents may be as long as there are files.
func TestLongChain(t *testing.T) {
	const n = 100_000
	next := make([][]int, n)
	for i := range next {
		next[i] = []int{(i + 1) % n}
	}
	if sets := components(next); len(sets) != 1 || len(sets[0]) != n || len(shortestCycle(next, sets[0])) != n+1 {
		t.Errorf("%d sets", len(sets))
	}
}

package memstore

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"lockkeeper"
	"lockkeeper/store"
)

// counted computes the counts of a node by visiting everything below it.
func counted(n *node) (own, wide, below counts) {
	for _, e := range n.entries {
		own[e.mode]++
		if e.kind.Below() {
			wide[e.mode]++
		}
	}
	n.eachChild(func(k *node) {
		o, _, b := counted(k)
		for m := range below {
			below[m] += o[m] + b[m]
		}
	})
	return own, wide, below
}

// consistent checks invariant 2 of the package for a node and all nodes below it.
func consistent(t *testing.T, n *node) {
	t.Helper()
	own, wide, below := counted(n)
	if own != n.own || wide != n.wide || below != n.below {
		t.Fatalf("%s counts %v %v %v, has %v %v %v", n.path(), n.own, n.wide, n.below, own, wide, below)
	}
	if n.parent != nil && len(n.entries) == 0 && below.zero() {
		t.Fatalf("%s has nothing at or below it and exists", n.path())
	}
	if n.childMap != nil && n.children != nil {
		t.Fatalf("%s keeps its children twice", n.path())
	}
	n.eachChild(func(k *node) {
		if k.parent != n || n.child(k.name) != k {
			t.Fatalf("%s does not find its child %s", n.path(), k.name)
		}
		consistent(t, k)
	})
}

func TestTrieCounts(t *testing.T) {
	seed := rand.Uint64()
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("seed %d", seed)
		}
	})
	r := rand.New(rand.NewPCG(seed, 0))
	lock := func() lockkeeper.Lock {
		segments := []string{}
		for range r.IntN(4) {
			segments = append(segments, fmt.Sprint(r.IntN(25)))
		}
		path := strings.Join(segments, "/")
		if path == "" {
			path = lockkeeper.Root
		}
		return lockkeeper.Lock{
			Target: lockkeeper.Target{Path: path, Kind: lockkeeper.File + lockkeeper.Kind(r.IntN(4))},
			Mode:   lockkeeper.Read + lockkeeper.Mode(r.IntN(3))}
	}
	var tr trie
	var at lockNodes
	var held []*recordCell
	for i := range 4_000 {
		// Enough children to exceed maxChildList and return below it. The size varies, so that
		// nodes are recycled and renamed.
		grow := 60
		if i/500%2 == 1 {
			grow = 35
		}
		if len(held) == 0 || r.IntN(100) < grow {
			var locks []lockkeeper.Lock
			for range 1 + r.IntN(6) {
				locks = append(locks, lock())
			}
			s := &recordCell{}
			tr.locate(lockkeeper.Normalize(locks), &at)
			tr.add(&at, s)
			held = append(held, s)
		} else {
			j := r.IntN(len(held))
			tr.remove(held[j])
			held[j] = held[len(held)-1]
			held = held[:len(held)-1]
		}
		if i%20 == 0 {
			consistent(t, &tr.root)
		}
	}
	for _, s := range held {
		tr.remove(s)
	}
	consistent(t, &tr.root)
	if !tr.root.below.zero() || !tr.root.own.zero() || len(tr.root.children)+len(tr.root.childMap) > 0 {
		t.Error("an emptied trie is not empty")
	}
}

func TestLogForgetsAndTakesBack(t *testing.T) {
	var l eventLog
	for i := range 5 * chunk {
		if seq := l.push(&lockkeeper.Event{}, 2*chunk); seq != uint64(i+1) {
			t.Fatalf("numbered %d, want %d", seq, i+1)
		}
		if i%7 == 0 { // removed, and appended again under the same number
			l.pop()
			l.push(&lockkeeper.Event{Reason: "again"}, 2*chunk)
		}
	}
	if n := l.len(); n < 2*chunk-chunk || n > 3*chunk {
		t.Errorf("keeps %d events, told to keep %d", n, 2*chunk)
	}
	for _, e := range l.page(store.EventQuery{Limit: 5 * chunk}) {
		if again := (e.Seq-1)%7 == 0; again != (e.Reason == "again") {
			t.Fatalf("event %d: %q", e.Seq, e.Reason)
		}
	}
}

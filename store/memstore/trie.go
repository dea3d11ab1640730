package memstore

import (
	"strings"

	"lockkeeper"
)

// fewKids is how many children a node searches one by one before it keeps them
// in a map.
const fewKids = 16

// counts is a number of locks by mode.
type counts [lockkeeper.Write + 1]int32

func (c *counts) any(mask uint8) bool {
	for m := lockkeeper.Read; m <= lockkeeper.Write; m++ {
		if mask&(1<<m) != 0 && c[m] > 0 {
			return true
		}
	}
	return false
}

func (c *counts) zero() bool { return *c == counts{} }

// entry is one lock at a node.
type entry struct {
	slot *slot
	mode lockkeeper.Mode
	kind lockkeeper.Kind
}

type node struct {
	name    string
	parent  *node
	few     []*node
	many    map[string]*node // instead of few, when there are more
	entries []entry
	own     counts // entries here
	wide    counts // entries here that cover what is below
	below   counts // entries strictly below
}

func (n *node) kid(name string) *node {
	if n.many != nil {
		return n.many[name]
	}
	for _, k := range n.few {
		if k.name == name {
			return k
		}
	}
	return nil
}

func (n *node) addKid(k *node) {
	k.parent = n
	if n.many != nil {
		n.many[k.name] = k
		return
	}
	if len(n.few) < fewKids {
		n.few = append(n.few, k)
		return
	}
	n.many = make(map[string]*node, 2*fewKids)
	for _, old := range n.few {
		n.many[old.name] = old
	}
	n.many[k.name], n.few = k, nil
}

func (n *node) dropKid(k *node) {
	if n.many != nil {
		delete(n.many, k.name)
		return
	}
	for i := range n.few {
		if n.few[i] == k {
			last := len(n.few) - 1
			n.few[i], n.few[last] = n.few[last], nil
			n.few = n.few[:last]
			return
		}
	}
}

func (n *node) eachKid(visit func(*node)) {
	for _, k := range n.few {
		visit(k)
	}
	for _, k := range n.many {
		visit(k)
	}
}

// trie holds the locks of a space by path. It remembers the directory it was at
// last, because the paths of a request are sorted and mostly neighbours.
type trie struct {
	root    node
	free    []*node // recycled
	lastDir string
	last    *node
}

// walk goes from the root towards path and returns the deepest node there is
// and the rest of the path below it.
func (t *trie) walk(path string) (n *node, rest string) {
	if path == lockkeeper.Root {
		return &t.root, ""
	}
	n, rest = &t.root, path
	if t.last != nil && lockkeeper.IsAncestor(t.lastDir, path) {
		n, rest = t.last, path[len(t.lastDir)+1:]
	}
	for rest != "" {
		name, tail := cut(rest)
		k := n.kid(name)
		if k == nil {
			return n, rest
		}
		n, rest = k, tail
	}
	return n, ""
}

// resume walks towards a path again. When all that was missing is the last
// name, there is nothing to walk: a lock has its path to itself in a request.
func (t *trie) resume(path string, from *spot) (n *node, rest string) {
	if from == nil || from.rest == "" || strings.IndexByte(from.rest, '/') >= 0 {
		return t.walk(path)
	}
	return from.node, from.rest
}

// cut takes the first segment off a path.
func cut(path string) (name, rest string) {
	for i := range len(path) { // segments are short
		if path[i] == '/' {
			return path[:i], path[i+1:]
		}
	}
	return path, ""
}

// spot is how far a walk towards a path got: the deepest node there is, and the
// rest of the path below it.
type spot struct {
	node *node
	rest string
}

// add puts a lock into the trie and returns its node, which stays where it is
// until the lock is removed. It goes on from the spot that a walk towards the
// same path got to, if nothing was removed since.
func (t *trie) add(l lockkeeper.Lock, s *slot, from *spot) *node {
	n, rest := t.resume(l.Path, from)
	for rest != "" {
		name, tail := cut(rest)
		k := t.newNode(name)
		n.addKid(k)
		n, rest = k, tail
	}
	n.entries = append(n.entries, entry{slot: s, mode: l.Mode, kind: l.Kind})
	n.count(entry{mode: l.Mode, kind: l.Kind}, 1)
	if n.parent != nil && n.parent != &t.root && n.parent != t.last {
		t.last, t.lastDir = n.parent, l.Path[:len(l.Path)-len(n.name)-1]
	}
	return n
}

// remove takes the lock of a slot at a node out of the trie.
func (t *trie) remove(n *node, s *slot) {
	for i, e := range n.entries {
		if e.slot != s {
			continue
		}
		last := len(n.entries) - 1
		n.entries[i], n.entries[last] = n.entries[last], entry{}
		n.entries = n.entries[:last]
		n.count(e, -1)
		break
	}
	for n != &t.root && len(n.entries) == 0 && n.below.zero() {
		parent := n.parent
		parent.dropKid(n)
		t.recycle(n)
		n = parent
	}
}

func (n *node) count(e entry, d int32) {
	n.own[e.mode] += d
	if e.kind.Below() {
		n.wide[e.mode] += d
	}
	for up := n.parent; up != nil; up = up.parent {
		up.below[e.mode] += d
	}
}

func (t *trie) newNode(name string) *node {
	last := len(t.free) - 1
	if last < 0 {
		return &node{name: name}
	}
	n := t.free[last]
	t.free = t.free[:last]
	n.name = name
	return n
}

// recycle keeps a removed node for reuse. It must not stay the remembered
// directory, and must not pin the path it was named after.
func (t *trie) recycle(n *node) {
	if n == t.last {
		t.last, t.lastDir = nil, ""
	}
	if len(t.free) < 4096 {
		*n = node{few: n.few[:0], entries: n.entries[:0]}
		t.free = append(t.free, n)
	}
}

// conflicting visits every entry whose lock conflicts with l, whatever its
// state. It looks only where the counts say there is something.
func (t *trie) conflicting(l lockkeeper.Lock, visit func(path string, e entry)) spot {
	mask := lockkeeper.ConflictMask(l.Mode)
	n, rest := t.walk(l.Path)
	got := spot{n, rest}
	if rest == "" {
		if n.own.any(mask) {
			n.report(l.Path, mask, false, visit)
		}
		if l.Kind.Below() && n.below.any(mask) {
			n.reportBelow(l.Path, mask, visit)
		}
		n = n.parent
	}
	for ; n != nil; n = n.parent {
		if n.wide.any(mask) {
			n.report(n.path(), mask, true, visit)
		}
	}
	return got
}

func (n *node) report(path string, mask uint8, wideOnly bool, visit func(string, entry)) {
	for _, e := range n.entries {
		if mask&(1<<e.mode) != 0 && (!wideOnly || e.kind.Below()) {
			visit(path, e)
		}
	}
}

func (n *node) reportBelow(path string, mask uint8, visit func(string, entry)) {
	n.eachKid(func(k *node) {
		p := k.name
		if path != lockkeeper.Root {
			p = path + "/" + k.name
		}
		if k.own.any(mask) {
			k.report(p, mask, false, visit)
		}
		if k.below.any(mask) {
			k.reportBelow(p, mask, visit)
		}
	})
}

func (n *node) path() string {
	if n.parent == nil {
		return lockkeeper.Root
	}
	if n.parent.parent == nil {
		return n.name
	}
	return n.parent.path() + "/" + n.name
}

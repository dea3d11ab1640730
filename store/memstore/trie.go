package memstore

import (
	"slices"
	"strings"

	"lockkeeper"
)

// fewKids is how many children a node searches one by one before it keeps them
// in a map.
const fewKids = 16

// counts is a number of locks by mode.
type counts [lockkeeper.Write + 1]int32

// modes is the set of modes that are counted at all, as bits 1<<mode.
func (c *counts) modes() (mask uint8) {
	for m := lockkeeper.Read; m <= lockkeeper.Write; m++ {
		if c[m] > 0 {
			mask |= 1 << m
		}
	}
	return mask
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
	few     []*node          // behind the last one there may be spare ones, nameless
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

func (n *node) eachKid(visit func(*node)) {
	for _, k := range n.few {
		visit(k)
	}
	for _, k := range n.many {
		visit(k)
	}
}

// trie holds the locks of a space by path.
type trie struct {
	root node
	free []*node // recycled
}

// run is a stretch of neighbours among the locks of a request, which are sorted
// by path. They share the way to their directory, and all that is above them.
type run struct {
	dir  string // the path of the directory, with its slash; "" is the top
	node *node  // the deepest there is on the way to it; nil above the root
	rest string // what is missing of it below node
	wide uint8  // modes of the locks at node and above it that cover what is below
	end  int    // where in the locks the next run begins
}

// places are where locks are in the trie, or would be. They hold until a lock is
// removed or another one added.
type places struct {
	locks []lockkeeper.Lock
	runs  []run
	nodes []*node // of each lock; nil where there is none yet
}

// of reports whether these are the places of exactly this slice of locks.
func (p *places) of(locks []lockkeeper.Lock) bool {
	return len(locks) > 0 && len(locks) == len(p.locks) && &locks[0] == &p.locks[0]
}

// locate finds the places of locks, which are sorted by path.
func (t *trie) locate(locks []lockkeeper.Lock, p *places) {
	p.locks, p.runs, p.nodes = locks, p.runs[:0], p.nodes[:0]
	var r *run
	for i := range locks {
		path := locks[i].Path
		if r == nil || !r.has(path) {
			p.runs = append(p.runs, t.approach(path))
			r = &p.runs[len(p.runs)-1]
		}
		r.end = i + 1
		p.nodes = append(p.nodes, t.at(r, path))
	}
}

// approach walks to the directory of a path.
func (t *trie) approach(path string) run {
	if path == lockkeeper.Root {
		return run{} // in no directory
	}
	dir := path[:strings.LastIndexByte(path, '/')+1]
	r := run{dir: dir, node: &t.root, rest: dir}
	for r.rest != "" {
		name, rest := cut(r.rest)
		k := r.node.kid(name)
		if k == nil {
			break
		}
		r.node, r.rest = k, rest
	}
	for n := r.node; n != nil; n = n.parent {
		r.wide |= n.wide.modes()
	}
	return r
}

// has reports whether a path lies directly in the directory of the run.
func (r *run) has(path string) bool {
	name, in := strings.CutPrefix(path, r.dir)
	return in && strings.IndexByte(name, '/') < 0 && path != lockkeeper.Root && r.node != nil
}

// at is the node of a path of the run, nil when there is none.
func (t *trie) at(r *run, path string) *node {
	switch {
	case r.node == nil:
		return &t.root
	case r.rest != "":
		return nil
	}
	return r.node.kid(path[len(r.dir):])
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

// add puts the locks of a slot into the trie, at their places, and tells the
// slot their nodes, which stay where they are until the locks are removed.
func (t *trie) add(p *places, s *slot) {
	s.nodes = append(s.nodes[:0], p.nodes...)
	i := 0
	for _, r := range p.runs {
		dir := t.grow(r.node, r.rest)
		var added counts
		for ; i < r.end; i++ {
			l, n := &p.locks[i], s.nodes[i]
			if n == nil { // still: only what comes later in the order can lie below it
				n = t.addKid(dir, l.Path[len(r.dir):])
				s.nodes[i] = n
			}
			n.put(entry{slot: s, mode: l.Mode, kind: l.Kind})
			added[l.Mode]++
		}
		dir.countBelow(&added)
	}
}

// grow makes the directories on the way from n that are missing. Some may have
// come since the way was walked, with the runs before.
func (t *trie) grow(n *node, way string) *node {
	for way != "" {
		name, rest := cut(way)
		k := n.kid(name)
		if k == nil {
			k = t.addKid(n, name)
		}
		n, way = k, rest
	}
	return n
}

// remove takes the locks of a slot out of the trie, the last one first: what is
// below a node goes before it.
func (t *trie) remove(s *slot) {
	var removed counts // of neighbours, until those above are told
	for i := len(s.nodes) - 1; i >= 0; i-- {
		n := s.nodes[i]
		removed[n.take(s)]--
		if i == 0 || s.nodes[i-1].parent != n.parent {
			n.parent.countBelow(&removed)
			removed = counts{}
		}
		t.prune(n)
	}
	s.nodes = s.nodes[:0]
}

// prune removes a node with no locks at or below it, and so those above it.
func (t *trie) prune(n *node) {
	for n != &t.root && len(n.entries) == 0 && n.below.zero() {
		parent := n.parent
		t.dropKid(n)
		n = parent
	}
}

// put adds a lock at the node.
func (n *node) put(e entry) {
	n.entries = append(n.entries, e)
	n.count(e, 1)
}

// take removes the lock of a slot at the node, and tells its mode.
func (n *node) take(s *slot) lockkeeper.Mode {
	i := slices.IndexFunc(n.entries, func(e entry) bool { return e.slot == s })
	e, last := n.entries[i], len(n.entries)-1
	if i != last {
		n.entries[i] = n.entries[last]
	}
	n.entries[last] = entry{}
	n.entries = n.entries[:last]
	n.count(e, -1)
	return e.mode
}

func (n *node) count(e entry, d int32) {
	n.own[e.mode] += d
	if e.kind.Below() {
		n.wide[e.mode] += d
	}
}

// countBelow adds what changed directly below n, which is nil above the root.
func (n *node) countBelow(change *counts) {
	for ; n != nil; n = n.parent {
		for m, d := range change {
			n.below[m] += d
		}
	}
}

// addKid makes a child of n.
func (t *trie) addKid(n *node, name string) *node {
	last := len(n.few)
	switch {
	case n.many != nil:
	case last == fewKids:
		n.many = make(map[string]*node, 2*fewKids)
		for _, k := range n.few {
			n.many[k.name] = k
		}
		n.few = nil
	case last < cap(n.few) && n.few[:last+1][last] != nil: // a spare one
		n.few = n.few[:last+1]
		n.few[last].name = name
		return n.few[last]
	}
	k := t.newNode(name)
	k.parent = n
	if n.many != nil {
		n.many[name] = k
	} else {
		n.few = append(n.few, k)
	}
	return k
}

// dropKid removes a node, which counts nothing and has no children, from its
// parent. One that never had any stays there as a spare; the others, with their
// own spares, are recycled. None pins the path it was named after.
func (t *trie) dropKid(k *node) {
	n := k.parent
	if n.many != nil {
		delete(n.many, k.name)
		t.recycle(k)
		return
	}
	last := len(n.few) - 1
	i := last // the newest go first
	for n.few[i] != k {
		i--
	}
	if i != last {
		n.few[i], n.few[last] = n.few[last], k
	}
	if cap(k.few) == 0 && k.many == nil {
		k.name = ""
	} else {
		n.few[last] = nil
		t.recycle(k)
	}
	n.few = n.few[:last]
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

func (t *trie) recycle(n *node) {
	if len(t.free) < 1024 {
		n.name, n.parent, n.many = "", nil, nil
		t.free = append(t.free, n)
	}
}

// visitor is shown a lock at a path that conflicts with an asked one.
type visitor func(asked *lockkeeper.Lock, path string, e entry)

// conflicting visits every entry whose lock conflicts with one of these,
// whatever its state. It looks only where the counts say there is something.
func (p *places) conflicting(visit visitor) {
	begin := 0
	for i := range p.runs {
		r := &p.runs[i]
		if r.wide != 0 || r.rest == "" { // else nothing covers the run, nor is there anything in it
			for j := begin; j < r.end; j++ {
				r.conflicting(&p.locks[j], p.nodes[j], visit)
			}
		}
		begin = r.end
	}
}

// conflicting does that for a lock of the run at node n.
func (r *run) conflicting(l *lockkeeper.Lock, n *node, visit visitor) {
	mask := lockkeeper.ConflictMask(l.Mode)
	if n != nil {
		n.conflicting(l, l.Path, mask, l.Kind.Below(), visit)
	}
	if r.wide&mask == 0 {
		return
	}
	for up := r.node; up != nil; up = up.parent {
		if up.wide.modes()&mask != 0 {
			up.report(l, up.path(), mask, true, visit)
		}
	}
}

// conflicting does it at a node and, if told so, below it.
func (n *node) conflicting(l *lockkeeper.Lock, path string, mask uint8, below bool, visit visitor) {
	if n.own.modes()&mask != 0 {
		n.report(l, path, mask, false, visit)
	}
	if !below || n.below.modes()&mask == 0 {
		return
	}
	n.eachKid(func(k *node) {
		p := k.name
		if path != lockkeeper.Root {
			p = path + "/" + k.name
		}
		k.conflicting(l, p, mask, true, visit)
	})
}

func (n *node) report(l *lockkeeper.Lock, path string, mask uint8, wideOnly bool, visit visitor) {
	for _, e := range n.entries {
		if mask&(1<<e.mode) != 0 && (!wideOnly || e.kind.Below()) {
			visit(l, path, e)
		}
	}
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

package memstore

import (
	"slices"
	"strings"

	"lockkeeper"
)

// maxChildList is how many children a node keeps in a list before it uses a map.
const maxChildList = 16

// counts counts locks by mode.
type counts [lockkeeper.Write + 1]int32

// modes returns the modes with a count, as bits 1<<mode.
func (c *counts) modes() (mask uint8) {
	for m := lockkeeper.Read; m <= lockkeeper.Write; m++ {
		if c[m] > 0 {
			mask |= 1 << m
		}
	}
	return mask
}

func (c *counts) zero() bool { return *c == counts{} }

// An entry is one lock at a node.
type entry struct {
	cell *recordCell
	mode lockkeeper.Mode
	kind lockkeeper.Kind
}

type node struct {
	name     string
	parent   *node
	children []*node          // after the last one there may be spare nodes without a name
	childMap map[string]*node // used instead of children if there are more
	entries  []entry
	own      counts // entries at this node
	wide     counts // entries at this node that cover the paths below it
	below    counts // entries strictly below this node
}

func (n *node) child(name string) *node {
	if n.childMap != nil {
		return n.childMap[name]
	}
	for _, k := range n.children {
		if k.name == name {
			return k
		}
	}
	return nil
}

func (n *node) eachChild(visit func(*node)) {
	for _, k := range n.children {
		visit(k)
	}
	for _, k := range n.childMap {
		visit(k)
	}
}

// A trie holds the locks of a space by path. It reuses nodes: an acquire and a release of
// the same paths allocate none.
type trie struct {
	root node
	free []*node // removed nodes, for reuse
}

// A run is a sequence of locks of a request, which are sorted by path, in one directory.
// They share the walk to that directory.
type run struct {
	dir  string // the path of the directory, with its slash; "" is the root
	node *node  // the deepest existing node on the way to dir; nil above the root
	rest string // the part of dir below node that does not exist
	wide uint8  // modes of the locks at node and above it that cover the paths below
	end  int    // index of the lock at which the next run begins
}

// lockNodes are the nodes of locks in the trie. They are valid until a lock is added or
// removed.
type lockNodes struct {
	locks []lockkeeper.Lock
	runs  []run
	nodes []*node // node of each lock; nil if it does not exist
}

// of reports whether these are the nodes of exactly this slice of locks.
func (p *lockNodes) of(locks []lockkeeper.Lock) bool {
	return len(locks) > 0 && len(locks) == len(p.locks) && &locks[0] == &p.locks[0]
}

// locate finds the nodes of locks, which are sorted by path.
func (t *trie) locate(locks []lockkeeper.Lock, p *lockNodes) {
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
		return run{} // the path is in no directory
	}
	dir := path[:strings.LastIndexByte(path, '/')+1]
	r := run{dir: dir, node: &t.root, rest: dir}
	for r.rest != "" {
		name, rest := cut(r.rest)
		k := r.node.child(name)
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

// has reports whether a path is directly in the directory of the run.
func (r *run) has(path string) bool {
	name, in := strings.CutPrefix(path, r.dir)
	return in && strings.IndexByte(name, '/') < 0 && path != lockkeeper.Root && r.node != nil
}

// at returns the node of a path of the run; nil: none.
func (t *trie) at(r *run, path string) *node {
	switch {
	case r.node == nil:
		return &t.root
	case r.rest != "":
		return nil
	}
	return r.node.child(path[len(r.dir):])
}

// cut splits off the first segment of a path.
func cut(path string) (name, rest string) {
	for i := range len(path) { // a plain loop, because segments are short
		if path[i] == '/' {
			return path[:i], path[i+1:]
		}
	}
	return path, ""
}

// add puts the locks of a cell into the trie and stores their nodes in the cell. The nodes
// stay the same until the locks are removed.
func (t *trie) add(p *lockNodes, s *recordCell) {
	s.nodes = append(s.nodes[:0], p.nodes...)
	i := 0
	for _, r := range p.runs {
		dir := t.grow(r.node, r.rest)
		var added counts
		for ; i < r.end; i++ {
			l, n := &p.locks[i], s.nodes[i]
			if n == nil { // no earlier run has made the node: only locks below this path would, and they come later
				n = t.addChild(dir, l.Path[len(r.dir):])
				s.nodes[i] = n
			}
			n.put(entry{cell: s, mode: l.Mode, kind: l.Kind})
			added[l.Mode]++
		}
		dir.countBelow(&added)
	}
}

// grow makes the missing directories on the way from n. Earlier runs may have made some.
func (t *trie) grow(n *node, way string) *node {
	for way != "" {
		name, rest := cut(way)
		k := n.child(name)
		if k == nil {
			k = t.addChild(n, name)
		}
		n, way = k, rest
	}
	return n
}

// remove removes the locks of a cell from the trie, the last one first, so that nodes below
// go before those above.
func (t *trie) remove(s *recordCell) {
	var removed counts // locks removed from the current directory, not yet subtracted from the counts above it
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

// prune removes a node without locks at or below it, and then each parent without such locks.
func (t *trie) prune(n *node) {
	for n != &t.root && len(n.entries) == 0 && n.below.zero() {
		parent := n.parent
		t.dropChild(n)
		n = parent
	}
}

func (n *node) put(e entry) {
	n.entries = append(n.entries, e)
	n.count(e, 1)
}

// take removes the lock of a cell and returns its mode.
func (n *node) take(s *recordCell) lockkeeper.Mode {
	i := slices.IndexFunc(n.entries, func(e entry) bool { return e.cell == s })
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

// countBelow adds a change of counts below n, to n and all nodes above it.
func (n *node) countBelow(change *counts) {
	for ; n != nil; n = n.parent {
		for m, d := range change {
			n.below[m] += d
		}
	}
}

func (t *trie) addChild(n *node, name string) *node {
	last := len(n.children)
	switch {
	case n.childMap != nil:
	case last == maxChildList:
		n.childMap = make(map[string]*node, 2*maxChildList)
		for _, k := range n.children {
			n.childMap[k.name] = k
		}
		n.children = nil
	case last < cap(n.children) && n.children[:last+1][last] != nil: // reuses a spare node
		n.children = n.children[:last+1]
		n.children[last].name = name
		return n.children[last]
	}
	k := t.newNode(name)
	k.parent = n
	if n.childMap != nil {
		n.childMap[name] = k
	} else {
		n.children = append(n.children, k)
	}
	return k
}

// dropChild removes a node without locks and children from its parent. A node that never had
// children stays there as a spare. Others are recycled with their own spares. Names are
// cleared, so that no node keeps the text of a path in memory.
func (t *trie) dropChild(k *node) {
	n := k.parent
	if n.childMap != nil {
		delete(n.childMap, k.name)
		t.recycle(k)
		return
	}
	last := len(n.children) - 1
	i := last // the newest child is usually removed first
	for n.children[i] != k {
		i--
	}
	if i != last {
		n.children[i], n.children[last] = n.children[last], k
	}
	if cap(k.children) == 0 && k.childMap == nil {
		k.name = ""
	} else {
		n.children[last] = nil
		t.recycle(k)
	}
	n.children = n.children[:last]
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
		n.name, n.parent, n.childMap = "", nil, nil
		t.free = append(t.free, n)
	}
}

// A visitor is called with each lock that conflicts with a requested one.
type visitor func(asked *lockkeeper.Lock, path string, e entry)

// conflicting visits every entry whose lock conflicts with one of these, in any state. It skips
// subtrees whose counts rule out a conflict.
func (p *lockNodes) conflicting(visit visitor) {
	begin := 0
	for i := range p.runs {
		r := &p.runs[i]
		if r.wide != 0 || r.rest == "" { // otherwise no lock covers the run or is in it
			for j := begin; j < r.end; j++ {
				r.conflicting(&p.locks[j], p.nodes[j], visit)
			}
		}
		begin = r.end
	}
}

// conflicting visits the entries that conflict with a lock of the run at node n.
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

// conflicting visits the entries at a node and, if below is set, below it.
func (n *node) conflicting(l *lockkeeper.Lock, path string, mask uint8, below bool, visit visitor) {
	if n.own.modes()&mask != 0 {
		n.report(l, path, mask, false, visit)
	}
	if !below || n.below.modes()&mask == 0 {
		return
	}
	n.eachChild(func(k *node) {
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

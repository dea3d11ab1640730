package sqlstore

import (
	"slices"

	"lockkeeper"
	"lockkeeper/store"
)

// neighbors are the paths and ranges where locks can overlap the requested ones. at contains the
// requested paths and all paths above them. below contains the ranges strictly below them.
type neighbors struct {
	at    []string
	below []span
}

type span struct{ lo, hi string }

// neighborsOf returns the neighbors of locks, which must be normalized by lockkeeper.Normalize.
func neighborsOf(locks []lockkeeper.Lock) neighbors {
	p := neighbors{at: make([]string, 0, len(locks)+8), below: make([]span, 0, len(locks))}
	above := map[string]struct{}{}
	covered, dir := "", ""
	for _, l := range locks {
		p.at = append(p.at, l.Path)
		parent, ok := lockkeeper.Parent(l.Path)
		if parent != dir { // siblings have the same parents
			for path := parent; ok; path, ok = lockkeeper.Parent(path) {
				if _, dup := above[path]; dup {
					break // the list already has the parents of this path
				}
				above[path] = struct{}{}
				p.at = append(p.at, path)
			}
		}
		dir = parent
		if !l.Kind.Below() || covered != "" && lockkeeper.IsAncestor(covered, l.Path) {
			continue
		}
		covered = l.Path
		lo, hi := lockkeeper.Range(l.Path)
		p.below = append(p.below, span{lo, hi})
	}
	return p
}

// A collector turns rows of targets into overlaps. Its query must have normalized locks.
type collector struct {
	query store.Query
	seen  map[seenRow]struct{}
	found []store.Overlap
}

type seenRow struct {
	path   string
	ticket uint64
}

// row adds one target of a record. A row can come twice, once from a path and once from a range.
func (c *collector) row(held lockkeeper.Lock, rec *store.Record) {
	if !c.query.Counts(rec) {
		return
	}
	key := seenRow{held.Path, rec.Ticket}
	if _, dup := c.seen[key]; dup {
		return
	}
	if c.seen == nil {
		c.seen = map[seenRow]struct{}{}
	}
	c.seen[key] = struct{}{}
	c.match(held, func(asked lockkeeper.Lock) {
		if asked.Conflicts(held) {
			c.found = append(c.found, store.Overlap{Asked: asked, Lock: held, Record: rec})
		}
	})
}

// match visits the requested locks at, below and above a held one. Requested locks are sorted
// by path, but the paths below a path need not follow it directly: a-b sorts between a and a/b.
func (c *collector) match(held lockkeeper.Lock, visit func(lockkeeper.Lock)) {
	asked := c.query.Locks
	for path, ok := held.Path, true; ok; path, ok = lockkeeper.Parent(path) {
		if i, found := lockkeeper.Find(asked, path); found {
			visit(asked[i])
		}
	}
	lo, hi := lockkeeper.Range(held.Path)
	for i, _ := lockkeeper.Find(asked, lo); i < len(asked) && asked[i].Path < hi; i++ {
		if asked[i].Path != held.Path {
			visit(asked[i])
		}
	}
}

// answer returns the overlaps, latest ticket first.
func (c *collector) answer() (found []store.Overlap, more bool) {
	slices.SortFunc(c.found, store.Overlap.Compare)
	if n := c.query.Limit; n > 0 && len(c.found) > n {
		return c.found[:n], true
	}
	return c.found, false
}

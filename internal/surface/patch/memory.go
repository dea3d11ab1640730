package patch

import "sync"

// remembered is how many renderings a Memory has: several for each page that is open in a few dozen
// tabs.
const remembered = 512

// A Memory has the trees of the latest renderings, which browsers may still show. It is safe for
// concurrent use.
type Memory struct {
	mu    sync.Mutex
	trees map[string]*Tree
	order []string // the hashes, the oldest first
}

// Keep remembers a part, and forgets the oldest one if there are too many.
func (m *Memory) Keep(p *Part) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.trees == nil {
		m.trees = map[string]*Tree{}
	}
	if _, known := m.trees[p.Hash]; known {
		return
	}
	m.trees[p.Hash] = p.Tree()
	if m.order = append(m.order, p.Hash); len(m.order) > remembered {
		delete(m.trees, m.order[0])
		m.order = append(m.order[:0:0], m.order[1:]...)
	}
}

// Find returns the tree of a rendering, or nil if it is forgotten.
func (m *Memory) Find(hash string) *Tree {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.trees[hash]
}

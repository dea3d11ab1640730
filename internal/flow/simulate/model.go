package simulate

import (
	"slices"
	"time"

	"lockkeeper"
)

type model struct {
	items []*Item
	slots int
	tests int // slots for tests; 0: no limit
	tasks []task
	paths pathUses
}

type task struct {
	duration time.Duration
	slot     time.Duration // the part of duration in the slot of an agent
	rank     int
	after    []int // predecessors of the item
	before   []int // successors of the item
	rivals   []int // items that conflict with the item
}

func newModel(items []*Item, slots, tests int) *model {
	m := &model{items: items, slots: slots, tests: tests, tasks: make([]task, len(items)), paths: newPathUses(items)}
	number := map[string]int{}
	for i, it := range items {
		number[it.Name] = i
	}
	for i, it := range items {
		t := &m.tasks[i]
		t.duration, t.slot = it.Duration, it.takes(inSlot)
		t.rank, _ = phases().Rank(it.phase()) // a checked plan has only known phases
		t.rivals = m.paths.conflicting(i)
		for _, name := range it.After {
			if first := number[name]; !slices.Contains(t.after, first) {
				t.after = append(t.after, first)
				m.tasks[first].before = append(m.tasks[first].before, i)
			}
		}
	}
	return m
}

// work returns the time of all items in slots.
func (m *model) work() (sum time.Duration) {
	for i := range m.tasks {
		sum += m.tasks[i].slot
	}
	return sum
}

type use struct {
	item int
	lock lockkeeper.Lock
}

// A pathUses has the items that lock each path.
type pathUses struct {
	locks  [][]lockkeeper.Lock // by item
	uses   map[string][]use    // by path
	sorted []string            // the paths
}

func newPathUses(items []*Item) pathUses {
	p := pathUses{locks: make([][]lockkeeper.Lock, len(items)), uses: map[string][]use{}}
	for i, it := range items {
		p.locks[i] = it.locks()
		for _, l := range p.locks[i] {
			if p.uses[l.Path] == nil {
				p.sorted = append(p.sorted, l.Path)
			}
			p.uses[l.Path] = append(p.uses[l.Path], use{i, l})
		}
	}
	slices.Sort(p.sorted)
	return p
}

// upTo visits the uses of a path and of all directories above it.
func (p *pathUses) upTo(path string, visit func(use)) {
	for ok := true; ok; path, ok = lockkeeper.Parent(path) {
		for _, u := range p.uses[path] {
			visit(u)
		}
	}
}

// around visits the uses of a path and of all paths above or below it.
func (p *pathUses) around(path string, visit func(use)) {
	p.upTo(path, visit)
	lo, hi := lockkeeper.Range(path)
	first, _ := slices.BinarySearch(p.sorted, lo)
	for _, below := range p.sorted[first:] {
		if below >= hi {
			return
		}
		if below == path { // the root is in its own range
			continue
		}
		for _, u := range p.uses[below] {
			visit(u)
		}
	}
}

// conflicting lists the items that conflict with the given one, in order.
func (p *pathUses) conflicting(item int) (list []int) {
	for _, l := range p.locks[item] {
		p.around(l.Path, func(u use) {
			if u.item != item && l.Conflicts(u.lock) {
				list = append(list, u.item)
			}
		})
	}
	slices.Sort(list)
	return slices.Compact(list)
}

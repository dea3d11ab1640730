package simulate

import (
	"slices"
	"time"

	"lockkeeper"
	"lockkeeper/sched"
)

// model is a plan in numbers: an item is its place in the plan.
type model struct {
	items  []*Item
	slots  int
	tasks  []task
	places places
}

// task is what a schedule has to know of an item.
type task struct {
	duration time.Duration
	rank     int
	after    []int // what it waits for
	before   []int // what waits for it
	clash    []int // what cannot run beside it
}

func newModel(items []*Item, slots int) *model {
	m := &model{items: items, slots: slots, tasks: make([]task, len(items)), places: newPlaces(items)}
	number := map[string]int{}
	for i, it := range items {
		number[it.Name] = i
	}
	for i, it := range items {
		t := &m.tasks[i]
		t.duration = it.Duration
		t.rank, _ = sched.RankOf(it.phase()) // which a checked plan knows
		t.clash = m.places.inTheWay(i)
		for _, name := range it.After {
			if first := number[name]; !slices.Contains(t.after, first) {
				t.after = append(t.after, first)
				m.tasks[first].before = append(m.tasks[first].before, i)
			}
		}
	}
	return m
}

// work is how long all items take one after the other.
func (m *model) work() (sum time.Duration) {
	for i := range m.tasks {
		sum += m.tasks[i].duration
	}
	return sum
}

// use is one lock of one item.
type use struct {
	item int
	lock lockkeeper.Lock
}

// places is who uses which path.
type places struct {
	locks [][]lockkeeper.Lock // by item
	uses  map[string][]use    // by path
	paths []string            // in order
}

func newPlaces(items []*Item) places {
	p := places{locks: make([][]lockkeeper.Lock, len(items)), uses: map[string][]use{}}
	for i, it := range items {
		p.locks[i] = it.locks()
		for _, l := range p.locks[i] {
			if p.uses[l.Path] == nil {
				p.paths = append(p.paths, l.Path)
			}
			p.uses[l.Path] = append(p.uses[l.Path], use{i, l})
		}
	}
	slices.Sort(p.paths)
	return p
}

// upTo calls visit with the uses of a path and of all directories above it.
func (p *places) upTo(path string, visit func(use)) {
	for ok := true; ok; path, ok = lockkeeper.Parent(path) {
		for _, u := range p.uses[path] {
			visit(u)
		}
	}
}

// around calls visit with the uses of a path, of what is above it and of what is below.
func (p *places) around(path string, visit func(use)) {
	p.upTo(path, visit)
	lo, hi := lockkeeper.Range(path)
	first, _ := slices.BinarySearch(p.paths, lo)
	for _, below := range p.paths[first:] {
		if below >= hi {
			return
		}
		if below == path { // the root is inside of its own range
			continue
		}
		for _, u := range p.uses[below] {
			visit(u)
		}
	}
}

// inTheWay lists the items that cannot run beside one, in order.
func (p *places) inTheWay(item int) (list []int) {
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

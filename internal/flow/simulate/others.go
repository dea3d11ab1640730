package simulate

import (
	"cmp"
	"container/heap"
	"math/rand/v2"
	"slices"
	"time"
)

// rule is another way to schedule, for comparison: a line of items whose dependencies
// are completed, and a walk along it that starts what can start.
type rule struct {
	place      func(item, joined int) int // lower comes first; joined counts those who joined the line before
	headOfLine bool                       // nobody overtakes who cannot start
	every      time.Duration              // walks are so far apart; 0: one at each end
}

// poll is how long the loop of the documents sleeps between two walks.
const poll = 500 * time.Millisecond

// firstComeFirstServed lets nobody overtake.
func (m *model) firstComeFirstServed() rule {
	return rule{place: func(_, joined int) int { return joined }, headOfLine: true}
}

// polling walks the line in the order of ranks, passes over what is blocked, and sleeps.
func (m *model) polling() rule {
	return rule{place: func(item, joined int) int { return m.tasks[item].rank*(len(m.tasks)+1) + joined }, every: poll}
}

// randomly gives each item a place by lot, and passes over what is blocked.
func (m *model) randomly(r *rand.Rand) rule {
	lot := r.Perm(len(m.tasks))
	return rule{place: func(item, _ int) int { return lot[item] }}
}

// finish is when the last item is done under a rule.
func (m *model) finish(r rule) time.Duration {
	s := &schedule{model: m, rule: r, free: m.slots, open: make([]int, len(m.tasks)), blocked: make([]int, len(m.tasks))}
	for i := range m.tasks {
		if s.open[i] = len(m.tasks[i].after); s.open[i] == 0 {
			s.join(i)
		}
	}
	for {
		s.walk()
		if len(s.ends) == 0 {
			return s.last
		}
		s.now = s.ends[0].at
		if r.every > 0 {
			s.now = ceil(s.now, int(r.every)) * r.every
		}
		for len(s.ends) > 0 && s.ends[0].at <= s.now {
			s.end(heap.Pop(&s.ends).(ending))
		}
	}
}

// schedule is a model under way.
type schedule struct {
	*model
	rule    rule
	now     time.Duration
	last    time.Duration // the latest end so far
	free    int           // slots
	joined  int
	open    []int // by item: how many it waits for
	blocked []int // by item: how many that run are in its way
	line    []waiting
	ends    endings
}

// waiting is an item in the line.
type waiting struct{ place, item int }

func (s *schedule) join(item int) {
	w := waiting{s.rule.place(item, s.joined), item}
	s.joined++
	at, _ := slices.BinarySearchFunc(s.line, w, func(a, b waiting) int { return cmp.Compare(a.place, b.place) })
	s.line = slices.Insert(s.line, at, w)
}

func (s *schedule) walk() {
	kept := 0
	for k, w := range s.line {
		if s.free == 0 || s.rule.headOfLine && kept > 0 {
			s.line = append(s.line[:kept], s.line[k:]...)
			return
		}
		if s.blocked[w.item] > 0 {
			s.line[kept] = w
			kept++
			continue
		}
		s.start(w.item)
	}
	s.line = s.line[:kept]
}

func (s *schedule) start(item int) {
	s.free--
	for _, other := range s.tasks[item].clash {
		s.blocked[other]++
	}
	heap.Push(&s.ends, ending{s.now + s.tasks[item].duration, item})
}

func (s *schedule) end(e ending) {
	s.free++
	s.last = e.at
	for _, other := range s.tasks[e.item].clash {
		s.blocked[other]--
	}
	for _, next := range s.tasks[e.item].before {
		if s.open[next]--; s.open[next] == 0 {
			s.join(next)
		}
	}
}

// ending is when an item is done.
type ending struct {
	at   time.Duration
	item int
}

// endings is a heap, the earliest first; of those at one time, as the plan has them.
type endings []ending

func (h endings) Len() int { return len(h) }
func (h endings) Less(i, j int) bool {
	return cmp.Or(cmp.Compare(h[i].at, h[j].at), cmp.Compare(h[i].item, h[j].item)) < 0
}
func (h endings) Swap(i, j int) { h[i], h[j] = h[j], h[i] }
func (h *endings) Push(e any)   { *h = append(*h, e.(ending)) }
func (h *endings) Pop() any {
	last := len(*h) - 1
	e := (*h)[last]
	*h = (*h)[:last]
	return e
}

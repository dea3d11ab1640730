package simulate

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"time"
)

// A rule is a scheduling strategy for comparison. Items join a queue when their dependencies are
// complete. Each walk over the queue starts every item that can start.
type rule struct {
	order      func(item, joined int) int // items start by the lowest value; joined is the number of items queued before
	headOfLine bool                       // no item overtakes a blocked one
	every      time.Duration              // time between two walks; 0: walk when an item ends
}

// poll is the time between two walks of a polling loop.
const poll = 500 * time.Millisecond

// firstComeFirstServed returns a rule in which no item overtakes another.
func (m *model) firstComeFirstServed() rule {
	return rule{order: func(_, joined int) int { return joined }, headOfLine: true}
}

// polling returns a rule that walks the queue by rank, skips blocked items, and then sleeps for
// poll.
func (m *model) polling() rule {
	return rule{order: func(item, joined int) int { return m.tasks[item].rank*(len(m.tasks)+1) + joined }, every: poll}
}

// randomly returns a rule that walks the queue in a random order and skips blocked items.
func (m *model) randomly(r *rand.Rand) rule {
	order := r.Perm(len(m.tasks))
	return rule{order: func(item, _ int) int { return order[item] }}
}

// finish returns when the last item ends under a rule.
func (m *model) finish(r rule) time.Duration {
	s := &schedule{model: m, rule: r, free: m.slots, tests: testSlots[int]{limit: m.tests}, open: make([]int, len(m.tasks)), blocked: make([]int, len(m.tasks))}
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
			next := s.ends[0]
			s.ends = s.ends[1:]
			s.leave(next)
		}
	}
}

type schedule struct {
	*model
	rule    rule
	now     time.Duration
	last    time.Duration // the latest end so far
	free    int           // number of free slots
	tests   testSlots[int]
	joined  int
	open    []int // number of incomplete predecessors, by item
	blocked []int // number of running items that the item conflicts with, by item
	queue   []waiting
	ends    []ending // ends of the running items, the earliest first, then in the order of the plan
}

type waiting struct{ order, item int }

func (s *schedule) join(item int) {
	w := waiting{s.rule.order(item, s.joined), item}
	s.joined++
	at, _ := slices.BinarySearchFunc(s.queue, w, func(a, b waiting) int { return cmp.Compare(a.order, b.order) })
	s.queue = slices.Insert(s.queue, at, w)
}

func (s *schedule) walk() {
	kept := 0
	for k, w := range s.queue {
		if s.free == 0 || s.rule.headOfLine && kept > 0 {
			s.queue = append(s.queue[:kept], s.queue[k:]...)
			return
		}
		if s.blocked[w.item] > 0 {
			s.queue[kept] = w
			kept++
			continue
		}
		s.start(w.item)
	}
	s.queue = s.queue[:kept]
}

func (s *schedule) start(item int) {
	s.free--
	for _, other := range s.tasks[item].rivals {
		s.blocked[other]++
	}
	s.await(ending{s.now + s.tasks[item].slot, item, inSlot})
}

// leave ends a stage of an item and begins its next one.
func (s *schedule) leave(e ending) {
	switch e.stage {
	case inSlot:
		s.free++
	case inTests:
		if next, ok := s.tests.leave(); ok {
			s.await(ending{e.at + s.items[next].Tests, next, inTests})
		}
	}
	at := s.items[e.item].next(e.stage)
	switch {
	case at == ended:
		s.end(e)
	case at != inTests || s.tests.enter(e.item):
		s.await(ending{e.at + s.items[e.item].takes(at), e.item, at})
	}
}

func (s *schedule) await(e ending) {
	at, _ := slices.BinarySearchFunc(s.ends, e, func(a, b ending) int {
		return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.item, b.item))
	})
	s.ends = slices.Insert(s.ends, at, e)
}

func (s *schedule) end(e ending) {
	s.last = e.at
	for _, other := range s.tasks[e.item].rivals {
		s.blocked[other]--
	}
	for _, next := range s.tasks[e.item].before {
		if s.open[next]--; s.open[next] == 0 {
			s.join(next)
		}
	}
}

// An ending is the end of a stage of an item.
type ending struct {
	at    time.Duration
	item  int
	stage stage
}

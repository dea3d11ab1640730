package simulate

import "time"

// A stage is a part of an item. The item keeps its locks in all of them.
type stage int

const (
	inSlot stage = iota // in the slot of an agent
	inTests
	outside
	ended
)

// takes returns how long a stage of an item takes.
func (it *Item) takes(at stage) time.Duration {
	switch at {
	case inSlot:
		return it.Duration - it.Tests - it.Outside
	case inTests:
		return it.Tests
	case outside:
		return it.Outside
	}
	return 0
}

// next returns the stage of an item after another one. Only the first can take no time.
func (it *Item) next(at stage) stage {
	for at++; at < ended && it.takes(at) == 0; at++ {
	}
	return at
}

// testSlots has the slots for tests. Stages that wait for one are served in turn.
type testSlots[T any] struct {
	limit, taken int // limit 0: none
	queue        []T
}

// enter reports whether a slot is free, and takes it. If not, v waits.
func (s *testSlots[T]) enter(v T) bool {
	if s.limit > 0 && s.taken == s.limit {
		s.queue = append(s.queue, v)
		return false
	}
	s.taken++
	return true
}

// leave frees a slot. The first item that waits for one takes it.
func (s *testSlots[T]) leave() (next T, ok bool) {
	if len(s.queue) == 0 {
		s.taken--
		return next, false
	}
	next, s.queue = s.queue[0], s.queue[1:]
	return next, true
}

package memstore

import (
	"time"

	"lockkeeper"
	"lockkeeper/store"
)

// chunk is how many events are allocated, and dropped, together.
const chunk = 1024

// An eventLog holds the newest events of a space. Their numbers are consecutive.
type eventLog struct {
	chunks [][]lockkeeper.Event
	spare  []lockkeeper.Event // a dropped chunk, for reuse
	first  uint64             // number of the oldest event kept
	next   uint64             // number of the latest event; the next event gets the number after it
}

func (l *eventLog) push(ev *lockkeeper.Event, keep int) uint64 {
	l.next++
	ev.Seq = l.next
	last := len(l.chunks) - 1
	if last < 0 || len(l.chunks[last]) == chunk {
		if last < 0 {
			l.first = ev.Seq
		}
		l.drop(func() bool { return l.len() > keep })
		fresh := l.spare
		if fresh == nil {
			fresh = make([]lockkeeper.Event, 0, chunk)
		}
		l.spare = nil
		l.chunks = append(l.chunks, fresh)
		last = len(l.chunks) - 1
	}
	l.chunks[last] = append(l.chunks[last], *ev)
	return ev.Seq
}

// pop removes the newest event. Its number can be used again, because no reader saw it.
func (l *eventLog) pop() {
	last := len(l.chunks) - 1
	n := len(l.chunks[last]) - 1
	l.chunks[last][n] = lockkeeper.Event{}
	l.chunks[last] = l.chunks[last][:n]
	l.next--
	if n == 0 {
		l.chunks = l.chunks[:last]
	}
}

func (l *eventLog) len() int {
	if len(l.chunks) == 0 {
		return 0
	}
	return int(l.next - l.first + 1)
}

// drop drops the oldest full chunks while a condition holds.
func (l *eventLog) drop(while func() bool) {
	for len(l.chunks) > 1 && while() {
		oldest := l.chunks[0]
		l.first += uint64(len(oldest))
		l.chunks = l.chunks[1:]
		l.spare = oldest[:0] // the events of this part are overwritten
	}
}

func (l *eventLog) prune(before time.Time, keep int) {
	l.drop(func() bool {
		oldest := l.chunks[0]
		return l.len()-len(oldest) >= keep || oldest[len(oldest)-1].At.Before(before)
	})
}

func (l *eventLog) at(seq uint64) lockkeeper.Event {
	i := seq - l.first
	head := uint64(len(l.chunks[0]))
	if i < head {
		return l.chunks[0][i]
	}
	i -= head
	return l.chunks[1+i/chunk][i%chunk]
}

func (l *eventLog) page(q store.EventQuery) []lockkeeper.Event {
	if l.len() == 0 {
		return nil
	}
	lo, hi := max(q.After+1, l.first), l.next
	if q.Before > 0 {
		hi = min(hi, q.Before-1)
	}
	var out []lockkeeper.Event
	for n := uint64(0); lo+n <= hi && len(out) < store.Page(q.Limit); n++ {
		seq := lo + n
		if q.Latest {
			seq = hi - n
		}
		out = append(out, l.at(seq))
	}
	return out
}

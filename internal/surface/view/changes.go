package view

import (
	"slices"
	"sync"

	"lockkeeper"
	"lockkeeper/store"
)

// These constants limit how many events are read and shown.
const (
	changesRead   = 20_000 // how far back the first read goes
	changesLatest = 12
)

// notable lists the events that matter to a person who returns, grouped as they are
// counted, in the order of display.
var notable = []struct {
	what  string
	kinds []lockkeeper.EventKind
}{
	{"landed", []lockkeeper.EventKind{lockkeeper.EventLanded}},
	{"undone", []lockkeeper.EventKind{lockkeeper.EventUndone}},
	{"gap", []lockkeeper.EventKind{lockkeeper.EventGap}},
	{"failed", []lockkeeper.EventKind{lockkeeper.EventFailed}},
	{"recovered", []lockkeeper.EventKind{lockkeeper.EventRecovered, lockkeeper.EventExpired}},
	{"forced", []lockkeeper.EventKind{lockkeeper.EventForceReleased}},
	{"refused", []lockkeeper.EventKind{lockkeeper.EventRefused, lockkeeper.EventRecoverFailed}},
	{"escalated", []lockkeeper.EventKind{lockkeeper.EventEscalated}},
	{"decided", []lockkeeper.EventKind{lockkeeper.EventDecided}},
	{"epoch", []lockkeeper.EventKind{lockkeeper.EventEpoch}},
}

// notableAs returns the group of an event, or "" if the event is not notable.
func notableAs(kind lockkeeper.EventKind) string {
	for _, m := range notable {
		if slices.Contains(m.kinds, kind) {
			return m.what
		}
	}
	return ""
}

// changes holds the notable events read so far. Each read continues where the last one
// ended.
type changes struct {
	mu     sync.Mutex
	from   uint64 // the first event that was read
	to     uint64 // the last event that was read
	seen   []change
	latest []lockkeeper.Event // the newest first
}

// A change is a notable event with its group.
type change struct {
	seq  uint64
	what string
}

// since returns what happened after event last. For 0, a first visit, it returns only the
// latest events.
func (c *changes) since(r store.Reader, last uint64) (Changes, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	v := Changes{After: last, Counts: []Count{}}
	if err := c.read(r); err != nil {
		return v, err
	}
	latest := slices.DeleteFunc(slices.Clone(c.latest), func(ev lockkeeper.Event) bool { return ev.Seq <= last })
	var err error
	if v.Latest, err = linesOf(r, latest); err != nil || last == 0 {
		return v, err
	}
	v.Cut = last+1 < c.from
	count := map[string]int{}
	for _, s := range slices.Backward(c.seen) {
		if s.seq <= last {
			break
		}
		count[s.what]++
	}
	for _, m := range notable {
		if count[m.what] > 0 {
			v.Counts = append(v.Counts, Count{What: m.what, Count: count[m.what]})
		}
	}
	first, err := r.Events(store.EventQuery{After: last - 1, Limit: 1})
	if err != nil || len(first) == 0 {
		return v, err
	}
	v.Since, v.Forgotten = first[0].At, first[0].Seq > last
	return v, nil
}

// read reads the events since the last call. The caller holds the mutex.
func (c *changes) read(r store.Reader) error {
	last, err := r.Events(store.EventQuery{Limit: 1, Latest: true})
	if err != nil || len(last) == 0 {
		return err
	}
	if newest := last[0].Seq; newest > c.to+changesRead { // too many to read them all
		c.from, c.to, c.seen = newest-changesRead+1, newest-changesRead, nil
	} else if c.from == 0 {
		c.from = 1
	}
	for ev, err := range eachEvent(r, store.EventQuery{After: c.to}) {
		if err != nil {
			return err
		}
		c.to = ev.Seq
		if what := notableAs(ev.Kind); what != "" {
			c.seen = append(c.seen, change{ev.Seq, what})
			c.latest = append([]lockkeeper.Event{ev}, c.latest[:min(len(c.latest), changesLatest-1)]...)
		}
	}
	return nil
}

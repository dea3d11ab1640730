package view

import (
	"cmp"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync"

	"lockkeeper"
	"lockkeeper/sched"
	"lockkeeper/store"
)

func EventKinds() []lockkeeper.EventKind {
	return []lockkeeper.EventKind{
		lockkeeper.EventAcquired, lockkeeper.EventDenied, lockkeeper.EventWaiting, lockkeeper.EventWithdrawn, lockkeeper.EventTimedOut,
		lockkeeper.EventRenewFailed, lockkeeper.EventUpgraded, lockkeeper.EventUpgradeDenied, lockkeeper.EventExtended, lockkeeper.EventExtendDenied,
		lockkeeper.EventReleased, lockkeeper.EventExpired, lockkeeper.EventRecovered, lockkeeper.EventForceReleased, lockkeeper.EventRecoverFailed,
		lockkeeper.EventRevoking, lockkeeper.EventLanded, lockkeeper.EventReplaced, lockkeeper.EventUndone, lockkeeper.EventGap, lockkeeper.EventFinished,
		lockkeeper.EventQueued, lockkeeper.EventBlocked, lockkeeper.EventEscalated, lockkeeper.EventFailed, lockkeeper.EventRequeued,
		lockkeeper.EventCleared, lockkeeper.EventRefused, lockkeeper.EventEpoch, lockkeeper.EventDecided, lockkeeper.EventAsked,
	}
}

// eventPage is how many events one query reads.
const eventPage = 1_000

// eachEvent yields the events that q selects, page by page: the newest first if q.Latest,
// otherwise the oldest first. It ends after an error.
func eachEvent(r store.Reader, q store.EventQuery) iter.Seq2[lockkeeper.Event, error] {
	return func(yield func(lockkeeper.Event, error) bool) {
		q.Limit = eventPage
		for full := true; full; {
			page, err := r.Events(q)
			if err != nil {
				yield(lockkeeper.Event{}, err)
				return
			}
			for _, ev := range page {
				if !yield(ev, nil) {
					return
				}
			}
			if full = len(page) == eventPage; full && q.Latest {
				q.Before = page[len(page)-1].Seq
			} else if full {
				q.After = page[len(page)-1].Seq
			}
		}
	}
}

// latest returns the newest events that match. most is the largest number of events to return, and
// read the largest number to read.
func latest(r store.Reader, q store.EventQuery, most, read int, matches func(lockkeeper.Event) bool) (list []lockkeeper.Event, err error) {
	q.Latest = true
	for ev, err := range eachEvent(r, q) {
		if err != nil || len(list) == most || read == 0 {
			return list, err
		}
		if read--; matches(ev) {
			list = append(list, ev)
		}
	}
	return list, nil
}

// Concerns reports whether an event is about a target.
func Concerns(ev lockkeeper.Event, t lockkeeper.Target) bool {
	return slices.ContainsFunc(ev.Locks, func(l lockkeeper.Lock) bool { return l.Overlaps(t) }) ||
		ev.Kind == lockkeeper.EventGap && t.Overlaps(lockkeeper.Target{Path: ev.Data["path"], Kind: lockkeeper.File})
}

// eventName returns the subject of an event: the item's name, the holder, or the actor.
func eventName(ev lockkeeper.Event) string {
	if ev.Kind == lockkeeper.EventQueued {
		return ev.Holder
	}
	return cmp.Or(ev.Data["workflow"], ev.Holder, ev.Actor.Name)
}

// GapText returns the path of a refused write, if the event has one, and where its content
// is kept.
func GapText(ev lockkeeper.Event) string {
	words := "not kept"
	if id := ev.Data["rescue"]; id != "" {
		words = "kept as " + id
	}
	if path := ev.Data["path"]; path != "" {
		words = "write " + path + ", " + words
	}
	return words
}

// pathsInLine limits the paths and holders that a line names.
const pathsInLine = 3

func lineOf(ev lockkeeper.Event, known names) Line {
	line := Line{Event: ev, Item: sched.ItemID(ev), What: strings.ReplaceAll(string(ev.Kind), "_", " ")}
	line.Name = eventName(ev)
	if line.Item == "" && known[ev.Holder] != "" {
		line.Item = ev.Holder
	}
	if name := known.of(ev.Holder, line.Item); name != "" && ev.Data["workflow"] == "" {
		line.Name = name
	}
	parts := []string{line.What}
	add := func(format string, args ...any) { parts = append(parts, fmt.Sprintf(format, args...)) }
	if len(ev.Locks) > 0 {
		var locks []string
		for _, l := range ev.Locks {
			locks = append(locks, l.String())
		}
		add("%s", few(locks))
	}
	switch ev.Kind {
	case lockkeeper.EventLanded:
		add("landing %d", ev.Seq)
		if undoes := ev.Data["undoes"]; undoes != "" {
			add("which undoes landing %s", undoes)
		}
	case lockkeeper.EventReplaced, lockkeeper.EventUndone, lockkeeper.EventFinished:
		if landing := ev.Data["landing"]; landing != "" {
			add("landing %s", landing)
		}
	case lockkeeper.EventGap:
		add("%s", GapText(ev))
	}
	if len(ev.Conflicts) > 0 {
		var holders []string
		for _, c := range ev.Conflicts {
			if name := known.of(c.Holder, c.Holder); !slices.Contains(holders, name) {
				holders = append(holders, name)
			}
		}
		add("because of %s", few(holders))
	}
	if ev.Actor.Kind != lockkeeper.ActorHolder && ev.Actor.Name != "" {
		add("by %s (%s)", ev.Actor.Name, ev.Actor.Kind)
	}
	if ev.Reason != "" {
		parts = append(parts, ev.Reason)
	}
	line.Text = strings.Join(parts, ", ")
	return line
}

// few joins the first elements of a list and counts the rest.
func few(list []string) string {
	if len(list) > pathsInLine {
		return fmt.Sprintf("%s and %d more", strings.Join(list[:pathsInLine], ", "), len(list)-pathsInLine)
	}
	return strings.Join(list, ", ")
}

// in looks up the names of the items and holders in an event.
func (n names) in(r store.Reader, ev lockkeeper.Event) error {
	ids := []string{sched.ItemID(ev), ev.Holder}
	for _, c := range ev.Conflicts {
		ids = append(ids, c.Holder)
	}
	return n.look(r, ids...)
}

func linesOf(r store.Reader, events []lockkeeper.Event) ([]Line, error) {
	known, lines := names{}, []Line{}
	for _, ev := range events {
		if err := known.in(r, ev); err != nil {
			return nil, err
		}
		lines = append(lines, lineOf(ev, known))
	}
	return lines, nil
}

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

// since returns what happened after the event with the number last. For 0, a first visit, it
// returns only the latest events.
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

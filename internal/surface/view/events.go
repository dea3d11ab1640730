package view

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"math"
	"slices"
	"strings"
	"sync"

	"lockkeeper"
	"lockkeeper/internal/project"
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

// Recent returns the latest matching events among the last thousand, the newest first. A line names up to
// limit paths and holders.
func (rd *Reader) Recent(ctx context.Context, most, limit int, matches func(lockkeeper.Event) bool) (lines []Line, err error) {
	_, err = rd.at(ctx, func(r store.Reader) error {
		events, err := latest(r, store.EventQuery{}, most, eventPage, matches)
		if err == nil {
			lines, err = linesOf(r, events, limit, nil)
		}
		return err
	})
	return lines, err
}

// Events yields the events that q selects, in its order, and reads them page by page, each page in
// its own transaction. It ends after an error.
func Events(ctx context.Context, a *project.Project, q store.EventQuery) iter.Seq2[lockkeeper.Event, error] {
	return pages(func(q store.EventQuery) ([]lockkeeper.Event, error) { return a.Locks.Events(ctx, q) }, q)
}

// eachEvent yields the events that q selects in one transaction.
func eachEvent(r store.Reader, q store.EventQuery) iter.Seq2[lockkeeper.Event, error] {
	return pages(r.Events, q)
}

func pages(read func(store.EventQuery) ([]lockkeeper.Event, error), q store.EventQuery) iter.Seq2[lockkeeper.Event, error] {
	return func(yield func(lockkeeper.Event, error) bool) {
		q.Limit = eventPage
		for full := true; full; {
			page, err := read(q)
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

// maxPaths is a limit above the number of paths in any line.
const maxPaths = math.MaxInt

// lineOf returns an event with its text, which names up to limit paths and holders. It counts the
// locks of the paths in without.
func lineOf(ev lockkeeper.Event, known names, limit int, without internalPaths) Line {
	line := Line{Event: ev, Item: sched.ItemID(ev), What: strings.ReplaceAll(string(ev.Kind), "_", " ")}
	line.Name = eventName(ev)
	if line.Item == "" && known[ev.Holder] != "" {
		line.Item = ev.Holder
	}
	if name := known.of(ev.Holder, line.Item); name != "" && ev.Data["workflow"] == "" {
		line.Name = name
	}
	add := func(format string, args ...any) { line.Details = append(line.Details, fmt.Sprintf(format, args...)) }
	line.Shown = without.others(ev.Locks)
	if len(line.Shown) > 0 {
		var locks []string
		for _, l := range line.Shown {
			locks = append(locks, l.String())
		}
		add("%s", few(locks, limit))
	}
	switch internal := len(ev.Locks) - len(line.Shown); internal {
	case 0:
	case 1:
		add("1 internal lock")
	default:
		add("%d internal locks", internal)
	}
	switch ev.Kind {
	case lockkeeper.EventLanded:
		text := fmt.Sprintf("landing %d", ev.Seq)
		if undoes := ev.Data["undoes"]; undoes != "" {
			text += ", undoes landing " + undoes
		}
		add("%s", text)
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
		add("because of %s", few(holders, limit))
	}
	if ev.Actor.Kind != lockkeeper.ActorHolder && ev.Actor.Name != "" {
		add("by %s (%s)", ev.Actor.Name, ev.Actor.Kind)
	}
	if ev.Reason != "" {
		line.Details = append(line.Details, ev.Reason)
	}
	line.Text = strings.Join(append([]string{line.What}, line.Details...), ", ")
	return line
}

// few joins the first elements of a list and counts the rest.
func few(list []string, limit int) string {
	if len(list) > limit {
		return fmt.Sprintf("%s and %d more", strings.Join(list[:limit], ", "), len(list)-limit)
	}
	return strings.Join(list, ", ")
}

// in looks up the names of the items and holders in an event.
func (n names) in(r store.Reader, ev lockkeeper.Event) error { return n.look(r, idsOf(ev)...) }

// lacks reports whether in would read an item.
func (n names) lacks(ev lockkeeper.Event) bool {
	return slices.ContainsFunc(idsOf(ev), func(id string) bool {
		_, known := n[id]
		return !known && sched.IsItemID(id)
	})
}

func idsOf(ev lockkeeper.Event) []string {
	ids := []string{sched.ItemID(ev), ev.Holder}
	for _, c := range ev.Conflicts {
		ids = append(ids, c.Holder)
	}
	return ids
}

func linesOf(r store.Reader, events []lockkeeper.Event, limit int, without internalPaths) ([]Line, error) {
	known, lines := names{}, []Line{}
	for _, ev := range events {
		if err := known.in(r, ev); err != nil {
			return nil, err
		}
		lines = append(lines, lineOf(ev, known, limit, without))
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
	if v.Latest, err = linesOf(r, latest, pathsInLine, nil); err != nil || last == 0 {
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

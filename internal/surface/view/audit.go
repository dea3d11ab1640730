package view

import (
	"context"
	"iter"
	"slices"
	"strings"
	"time"

	"lockkeeper"
	"lockkeeper/store"
)

// AuditQuery selects events. An empty field matches every event.
type AuditQuery struct {
	Since, Until time.Time
	Who          string // a holder, an actor, an item, or an item's name
	Path         string
	Kinds        []string // kinds of events
	Text         string   // text to find in the line, ignoring case
	Internal     bool     // also locks of Lockkeeper's own files; a query by Who or Path always has them
	Before       uint64   // the Next of the previous page; 0: the newest
	Limit        int      // default 100
}

// hides reports whether the query leaves out routine events of internal locks.
func (q AuditQuery) hides() bool { return !q.Internal && q.Who == "" && q.Path == "" }

// Audit is one page of the event log.
type Audit struct {
	Moment
	Lines     []Line   `json:"lines"`          // the newest first
	Next      uint64   `json:"next,omitempty"` // Before of the next page; 0: this page is the last
	Oldest    uint64   `json:"oldest"`         // oldest event in the log
	Kinds     []string `json:"kinds"`          // every kind of event
	Forgotten bool     `json:"forgotten"`      // the log does not reach back to Since
	Hidden    bool     `json:"hidden"`         // events of internal locks are left out
}

// Line is an event with its text.
type Line struct {
	lockkeeper.Event
	Name string `json:"name"` // name of the work, or the holder
	Item string `json:"item,omitempty"`
	What string `json:"what"` // what happened
	Text string `json:"text"` // the whole event in one line, without the time

	Details []string          `json:"-"` // the parts of Text after What
	Shown   []lockkeeper.Lock `json:"-"` // the locks of the event, without internal ones if the reader did not ask for them
}

// auditRead limits the events that one page reads. A search for rare events continues with
// the next page.
const auditRead = 50_000

// Audit searches the event log.
func (rd *Reader) Audit(ctx context.Context, q AuditQuery) (*Audit, error) {
	v := &Audit{Lines: []Line{}, Hidden: q.hides()}
	for _, k := range EventKinds() {
		v.Kinds = append(v.Kinds, string(k))
	}
	want, err := rd.wanted(q)
	if err != nil {
		return nil, err
	}
	v.Moment, err = rd.at(ctx, func(r store.Reader) error {
		oldest, err := r.Events(store.EventQuery{Limit: 1})
		if err != nil || len(oldest) == 0 {
			return err
		}
		v.Oldest = oldest[0].Seq
		v.Forgotten = !q.Since.IsZero() && oldest[0].Seq > 1 && oldest[0].At.After(q.Since)
		v.Lines, v.Next, err = search(r, q, rd.leftOut(q), want)
		return err
	})
	return v, err
}

// search reads the log backwards. It returns the matching lines and the start of the next
// page.
func search(r store.Reader, q AuditQuery, without internalPaths, want func(Line) bool) (lines []Line, next uint64, err error) {
	limit, known, read, before := pageLimit(q.Limit), names{}, 0, q.Before
	lines = []Line{}
	for ev, err := range eachEvent(r, store.EventQuery{Before: q.Before, Latest: true}) {
		if err == nil {
			err = known.in(r, ev)
		}
		if err != nil || ev.At.Before(q.Since) {
			return lines, 0, err
		}
		if read++; read > auditRead {
			return lines, before, nil
		}
		if line := lineOf(ev, known, pathsInLine, without); want(line) {
			if len(lines) == limit {
				return lines, before, nil
			}
			lines = append(lines, line)
		}
		before = ev.Seq
	}
	return lines, 0, nil
}

// wanted returns a function that reports whether a line matches q.
func (rd *Reader) wanted(q AuditQuery) (func(Line) bool, error) {
	concerns := func(lockkeeper.Event) bool { return true }
	if q.Path != "" {
		t, err := rd.project.Resolve(lockkeeper.Read, q.Path)
		if err != nil {
			return nil, err
		}
		concerns = func(ev lockkeeper.Event) bool { return Concerns(ev, t.Target) }
	}
	for _, k := range q.Kinds {
		if !slices.Contains(EventKinds(), lockkeeper.EventKind(k)) {
			return nil, &lockkeeper.InputError{Field: "kind", Value: k, Reason: "unknown kind of event", Next: "lockkeeper audit --help"}
		}
	}
	text := strings.ToLower(q.Text)
	without := rd.leftOut(q)
	return func(line Line) bool {
		ev := line.Event
		return !without.isRoutine(ev) && (q.Until.IsZero() || !ev.At.After(q.Until)) &&
			(q.Who == "" || slices.Contains([]string{ev.Holder, ev.Actor.Name, line.Item, line.Name}, q.Who)) &&
			(len(q.Kinds) == 0 || slices.Contains(q.Kinds, string(ev.Kind))) && concerns(ev) &&
			(text == "" || strings.Contains(strings.ToLower(line.Name+" "+line.Text+" "+ev.GrantID), text))
	}, nil
}

// leftOut returns the paths whose locks a query leaves out.
func (rd *Reader) leftOut(q AuditQuery) internalPaths {
	if !q.hides() {
		return nil
	}
	return rd.internalPaths()
}

// Lines yields the events since q.Since that match q, the oldest first; with a limit only the latest. A
// line names up to limit paths and holders. At most one page of events is in memory.
func (rd *Reader) Lines(ctx context.Context, q AuditQuery, limit int) iter.Seq2[Line, error] {
	return func(yield func(Line, error) bool) {
		want, err := rd.wanted(q)
		without := rd.leftOut(q)
		after, found := uint64(0), 0
		if err == nil && (q.Limit > 0 || !q.Since.IsZero()) {
			for line, failed := range rd.eachLine(ctx, store.EventQuery{Latest: true}, limit, without) {
				if failed != nil || line.At.Before(q.Since) || q.Limit > 0 && found == q.Limit {
					after, err = line.Seq, failed
					break
				}
				if want(line) {
					found++
				}
			}
		}
		if err != nil {
			yield(Line{}, err)
			return
		}
		for line, err := range rd.eachLine(ctx, store.EventQuery{After: after}, limit, without) {
			if (err != nil || want(line)) && !yield(line, err) {
				return
			}
		}
	}
}

func (rd *Reader) eachLine(ctx context.Context, q store.EventQuery, limit int, without internalPaths) iter.Seq2[Line, error] {
	return func(yield func(Line, error) bool) {
		known := names{}
		for ev, err := range Events(ctx, rd.project, q) {
			if err == nil && known.lacks(ev) {
				err = rd.project.Store.View(ctx, func(r store.Reader) error { return known.in(r, ev) })
			}
			if !yield(lineOf(ev, known, limit, without), err) || err != nil {
				return
			}
		}
	}
}

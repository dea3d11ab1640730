package view

import (
	"context"
	"slices"
	"strings"

	"lockkeeper"
	"lockkeeper/store"
)

// auditRead is how many events one page looks through at most: a search for what is rare
// goes on from there with the next page.
const auditRead = 50_000

// Audit searches the record of what happened.
func (l *Look) Audit(ctx context.Context, q AuditQuery) (*Audit, error) {
	v := &Audit{Lines: []Line{}}
	for _, k := range EventKinds() {
		v.Kinds = append(v.Kinds, string(k))
	}
	want, err := l.wanted(q)
	if err != nil {
		return nil, err
	}
	v.Moment, err = l.at(ctx, func(r store.Reader) error {
		oldest, err := r.Events(store.EventQuery{Limit: 1})
		if err != nil || len(oldest) == 0 {
			return err
		}
		v.Oldest = oldest[0].Seq
		v.Forgotten = !q.Since.IsZero() && oldest[0].Seq > 1 && oldest[0].At.After(q.Since)
		v.Lines, v.Next, err = search(r, q, want)
		return err
	})
	return v, err
}

// search goes back through the log, and says where the next page begins.
func search(r store.Reader, q AuditQuery, want func(Line) bool) (lines []Line, next uint64, err error) {
	limit := pageLimit(q.Limit)
	lines = []Line{}
	for before, read := q.Before, 0; ; {
		page, err := r.Events(store.EventQuery{Before: before, Limit: eventPage, Latest: true})
		if err != nil {
			return nil, 0, err
		}
		known, err := namesIn(r, page)
		if err != nil {
			return nil, 0, err
		}
		for _, ev := range page {
			if ev.At.Before(q.Since) {
				return lines, 0, nil
			}
			if line := lineOf(ev, known); want(line) {
				if len(lines) == limit {
					return lines, before, nil
				}
				lines = append(lines, line)
			}
			before = ev.Seq
		}
		if read += len(page); len(page) < eventPage {
			return lines, 0, nil
		}
		if read >= auditRead {
			return lines, before, nil
		}
	}
}

// wanted makes the question whether an event is asked for.
func (l *Look) wanted(q AuditQuery) (func(Line) bool, error) {
	concerns := func(lockkeeper.Event) bool { return true }
	if q.Path != "" {
		t, err := l.app.Resolve(lockkeeper.Read, q.Path)
		if err != nil {
			return nil, err
		}
		concerns = func(ev lockkeeper.Event) bool { return Concerns(ev, t.Target) }
	}
	for _, k := range q.Kinds {
		if !slices.Contains(EventKinds(), lockkeeper.EventKind(k)) {
			return nil, &lockkeeper.InputError{Field: "kind", Value: k, Reason: "no kind of event", Next: "lockkeeper audit --help"}
		}
	}
	text := strings.ToLower(q.Text)
	return func(line Line) bool {
		ev := line.Event
		return (q.Until.IsZero() || !ev.At.After(q.Until)) &&
			(q.Who == "" || slices.Contains([]string{ev.Holder, ev.Actor.Name, line.Item, line.Name}, q.Who)) &&
			(len(q.Kinds) == 0 || slices.Contains(q.Kinds, string(ev.Kind))) && concerns(ev) &&
			(text == "" || strings.Contains(strings.ToLower(line.Name+" "+line.Text+" "+ev.GrantID), text))
	}, nil
}

package view

import (
	"context"
	"errors"

	"lockkeeper"
	"lockkeeper/internal/flow/conduct"
	"lockkeeper/internal/flow/fleet"
	"lockkeeper/internal/job"
	"lockkeeper/internal/session"
	"lockkeeper/internal/surface/acts"
	"lockkeeper/lock"
	"lockkeeper/rescue"
	"lockkeeper/store"
)

// Status is who is working, who holds what, who waits for whom, what is kept, and the queue.
type Status struct {
	Root  string `json:"root"`
	Space string `json:"space"`
	Holdings

	Gaps        []KeptChange          `json:"gaps"`        // writes that were refused, or made without a lock
	Displaced   []KeptChange          `json:"displaced"`   // edits that others replaced
	Unlanded    []KeptChange          `json:"unlanded"`    // work that failed to land
	Damaged     []KeptChange          `json:"damaged"`     // kept changes whose content is damaged
	Uncommitted []KeptChange          `json:"uncommitted"` // files that commands of sessions removed or overwrote
	Unfinished  []*lockkeeper.Landing `json:"unfinished"`  // landings that are neither complete nor rolled back

	Sessions []OpenSession `json:"sessions"`

	Unchecked []session.Unchecked `json:"unchecked,omitempty"` // running agents whose hooks have not reported
	Pause     *session.Pause      `json:"off,omitempty"`       // write checks are off
	Needs     int                 `json:"needs_you"`           // open decisions of a run
	Machines  []fleet.Machine     `json:"machines,omitempty"`  // those that share the calls of a run
	Elsewhere *fleet.Run          `json:"elsewhere,omitempty"` // the run that another clone conducts
	Crash     string              `json:"error,omitempty"`     // why conducting the run ended early; the queue is kept

	Baseline string `json:"baseline,omitempty"` // the tests that failed on the tree with which the unfinished run started

	Depth  int                `json:"queue_depth"`
	Ready  int                `json:"queue_ready"` // queued items that are not blocked
	Waits  QueueWaits         `json:"queue_waits"` // what the queued items wait for
	Failed int                `json:"queue_failed"`
	Active []*lockkeeper.Item `json:"active_items"`

	Open     []OpenDecision `json:"-"` // the decisions that Needs counts
	Workers  int            `json:"-"` // number of running workers
	Problems []string       `json:"-"` // what could not be read
}

// Holdings is every grant and waiting request, in ticket order.
type Holdings struct {
	Held    []Holding `json:"held"`
	Stale   []Holding `json:"stale"`
	Gone    []Holding `json:"gone"` // the next request for their paths frees them
	Waiting []Holding `json:"waiting"`
}

// OpenSession is a session and the paths that it holds.
type OpenSession struct {
	session.Info
	Holds []string `json:"holds"`
}

// Status returns the status of the codebase. Unreadable changes, landings and decisions are
// problems.
func (rd *Reader) Status(ctx context.Context) (*Status, error) {
	s := &Status{Root: rd.project.Root.Dir(), Space: rd.project.Space, Sessions: []OpenSession{}}
	q, err := job.Open(rd.project)
	if err != nil {
		return nil, err
	}
	var entries []lock.RequestInfo
	_, err = rd.at(ctx, func(r store.Reader) (err error) {
		if entries, err = rd.project.Locks.RequestsIn(r); err != nil {
			return err
		}
		census, err := r.Census()
		if err != nil {
			return err
		}
		s.Depth, s.Ready = census.Queued(), census.Ready
		if s.Waits, err = countWaits(r); err != nil {
			return err
		}
		if s.Failed, _, err = failedItems(r, census); err != nil {
			return err
		}
		if s.Active, err = r.Items(store.ItemQuery{Status: lockkeeper.ItemDispatched, Limit: maxActive}); err != nil {
			return err
		}
		workers, err := q.WorkersIn(r)
		s.Workers = len(workers)
		return err
	})
	if err != nil {
		return nil, err
	}
	s.Holdings = rd.Holdings(entries)
	problem := func(what string, err error) {
		if err != nil {
			s.Problems = append(s.Problems, what+": "+err.Error())
		}
	}
	s.Unfinished, err = rd.project.Unfinished(ctx)
	problem("unfinished landings", err)
	problem("kept changes", s.addKept(ctx, rd))
	problem("the decisions of the run", s.addNeeds(ctx, rd))
	problem("the run", s.addRun(ctx, rd))
	s.Unfinished, s.Active = acts.OrEmpty(s.Unfinished), acts.OrEmpty(s.Active)
	return s, s.addSessions(ctx, rd)
}

// addRun adds what failed before the unfinished run, and why it ended early, unless a process
// conducts it again.
func (s *Status) addRun(ctx context.Context, rd *Reader) (err error) {
	if s.Elsewhere, err = conduct.Elsewhere(ctx, rd.project); err != nil {
		return err
	}
	if s.Machines, err = conduct.Machines(ctx, rd.project); err != nil {
		return err
	}
	last, err := conduct.CurrentRun(rd.project)
	if err != nil || last == nil || !last.Ended.IsZero() {
		return err
	}
	if s.Baseline, err = last.FailedBefore(rd.project); err != nil {
		return err
	}
	holder, err := conduct.Holder(ctx, rd.project)
	if err != nil || holder != "" {
		return err
	}
	s.Crash = last.Crash(rd.project)
	return nil
}

// Holdings sorts grants and waiting requests by their state.
func (rd *Reader) Holdings(entries []lock.RequestInfo) Holdings {
	s := Holdings{Held: []Holding{}, Stale: []Holding{}, Gone: []Holding{}, Waiting: []Holding{}}
	for _, e := range entries {
		list := &s.Held
		switch {
		case e.State == waitingState:
			list = &s.Waiting
		case e.Free:
			list = &s.Gone
		case e.Stale:
			list = &s.Stale
		}
		*list = append(*list, rd.Holding(e))
	}
	return s
}

func (s *Status) addKept(ctx context.Context, rd *Reader) error {
	s.Gaps, s.Displaced, s.Unlanded, s.Damaged, s.Uncommitted = []KeptChange{}, []KeptChange{}, []KeptChange{}, []KeptChange{}, []KeptChange{}
	kept, err := rd.rescued(ctx)
	done, failed := rd.resolved(ctx)
	for _, e := range kept {
		if done(e) {
			continue
		}
		list := &s.Damaged
		switch e.Kind {
		case rescue.Gap, rescue.Archive, rescue.Noted:
			list = &s.Gaps
		case rescue.Unlanded:
			list = &s.Unlanded
		case rescue.Displaced, rescue.Whole:
			list = &s.Displaced
		case rescue.Uncommitted:
			list = &s.Uncommitted
		}
		*list = append(*list, KeptOf(e))
	}
	return errors.Join(err, failed)
}

// addNeeds adds the open decisions of the current or last run.
func (s *Status) addNeeds(ctx context.Context, rd *Reader) error {
	if run, err := conduct.CurrentRun(rd.project); err != nil || run == nil {
		return err
	}
	q, err := rd.Decisions(ctx, "")
	if err == nil {
		s.Needs, s.Open = len(q.Open), q.Open
	}
	return err
}

// addSessions adds the open sessions, and what they hold.
func (s *Status) addSessions(ctx context.Context, rd *Reader) error {
	registry := session.Open(rd.project)
	live, err := registry.Live(ctx)
	if err != nil {
		return err
	}
	for _, one := range live {
		open := OpenSession{Info: one, Holds: []string{}}
		for _, h := range s.Held {
			if h.ID == one.GrantID {
				open.Holds = append(open.Holds, h.WritePaths...)
			}
		}
		s.Sessions = append(s.Sessions, open)
	}
	if s.Unchecked, err = registry.Unchecked(ctx); err != nil {
		return err
	}
	s.Pause, err = registry.Off(ctx)
	return err
}

// headcountLimit is how many grants Headcount reads, because a shell prompt must be fast.
const headcountLimit = 500

// Headcount is the status in numbers. It does not count grants of processes that are gone, because
// they block no request.
type Headcount struct {
	Sessions int  `json:"sessions"` // number of open sessions
	Held     int  `json:"held"`
	Waiting  int  `json:"waiting"`
	Stale    int  `json:"stale"`
	More     bool `json:"more"` // there are more grants than headcountLimit
	Off      bool `json:"off"`
}

// Headcount counts the sessions, grants and waiting requests.
func (rd *Reader) Headcount(ctx context.Context) (*Headcount, error) {
	t, registry := &Headcount{}, session.Open(rd.project)
	pause, err := registry.Off(ctx)
	if err != nil {
		return nil, err
	}
	err = rd.project.Store.View(ctx, func(r store.Reader) error {
		*t = Headcount{Off: pause != nil}
		list, more, err := rd.project.Locks.FirstIn(r, headcountLimit)
		if err != nil {
			return err
		}
		t.More = more
		for _, rec := range list {
			free, err := rd.project.Locks.IsFree(r, rec)
			if err != nil {
				return err
			}
			switch {
			case rec.State == store.StateWaiting:
				t.Waiting++
			case t.Off && rec.ID == pause.GrantID:
			case free:
			case rec.Expires != 0 && rec.Expires <= r.Now().Lease:
				t.Stale++
			default:
				t.Held++
			}
		}
		live, err := registry.LiveAmong(list)
		t.Sessions = len(live)
		return err
	})
	return t, err
}

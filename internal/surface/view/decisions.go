package view

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"lockkeeper/internal/flow"
	"lockkeeper/internal/flow/progress"
	"lockkeeper/internal/flow/run"
	"lockkeeper/internal/surface/acts"
)

// Decisions is the open decisions of a flow, the most useful ones first.
type Decisions struct {
	Moment
	Flow      string         `json:"flow"`
	Conductor string         `json:"conductor"` // the holder that runs the flow now; empty: no process runs it
	Open      []OpenDecision `json:"gates"`
	Clusters  []Cluster      `json:"clusters"` // equal items, which one answer can decide
	Progress  Progress       `json:"progress"`
	Failed    []run.Failure  `json:"failed"`
	Unread    []UnreadUnit   `json:"unread"`
	Problems  []string       `json:"problems"` // what could not be read
}

// OpenDecision is a decision that a person must make.
type OpenDecision struct {
	acts.Weighed
	Prior    string    `json:"prior,omitempty"`    // for an item: the earlier decision about it or a similar item
	Asked    bool      `json:"asked,omitempty"`    // for a topic: the next run asks the Messages API
	Estimate *Estimate `json:"estimate,omitempty"` // for a plan: what its approval starts
}

// Cluster is a set of items with the same text.
type Cluster struct {
	Title string         `json:"title"`
	Refs  []progress.Ref `json:"refs"`
}

// Progress is the number of answers, and an estimate for the rest.
type Progress struct {
	Answered int       `json:"answered"` // decisions answered in this flow
	Open     int       `json:"open"`
	Pace     Seconds   `json:"pace_seconds"` // time between recent answers; 0: unknown
	Left     Seconds   `json:"left_seconds"` // estimate at that pace; 0: unknown
	Last     time.Time `json:"last,omitzero"`
}

// UnreadUnit is a unit whose documents cannot be read.
type UnreadUnit struct {
	Unit   string `json:"unit"`
	Reason string `json:"reason"`
}

// Decisions lists the open decisions of a flow; "": the current or last flow.
func (rd *Reader) Decisions(ctx context.Context, flowName string) (*Decisions, error) {
	s, p, err := rd.flowState(ctx, flowName, nil)
	if err != nil {
		return nil, err
	}
	open := p.open()
	q := &Decisions{Moment: s.Moment, Flow: s.flow, Open: []OpenDecision{}, Clusters: clusters(open), Progress: p.progress(len(open)),
		Failed: p.failures(s.items), Unread: []UnreadUnit{}, Problems: problems(p.problem)}
	if s.conductor != nil {
		q.Conductor = s.conductor.Holder
	}
	w, err := rd.weigher(ctx, p)
	q.Problems = append(q.Problems, problems(problemOf(err))...)
	for _, g := range open {
		q.Open = append(q.Open, w.weigh(g))
	}
	for _, u := range p.units {
		if u.Unit == nil {
			q.Unread = append(q.Unread, UnreadUnit{Unit: u.name, Reason: u.err.Error()})
		}
	}
	return q, nil
}

// asked returns the topics that the next run asks the Messages API about.
func (rd *Reader) asked(ctx context.Context, p *documents) (map[progress.Ref]bool, error) {
	asked := map[progress.Ref]bool{}
	for _, u := range p.units {
		if !slices.ContainsFunc(u.open, func(g progress.Decision) bool { return g.Ref.Kind == progress.TopicKind }) {
			continue
		}
		slugs, err := p.tracker.ByAPI(ctx, u.Unit)
		if err != nil {
			return asked, err
		}
		for _, slug := range slugs {
			asked[progress.Ref{Kind: progress.TopicKind, Unit: u.name, Topic: slug}] = true
		}
	}
	return asked, nil
}

// A weigher adds to decisions what a person weighs.
type weigher struct {
	p     *documents
	asked map[progress.Ref]bool
	mean  perBatch
}

// weigher reads what weighing the decisions of a flow needs. With an error it knows less.
func (rd *Reader) weigher(ctx context.Context, p *documents) (w weigher, err error) {
	w.p = p
	if w.asked, err = rd.asked(ctx, p); err != nil {
		err = fmt.Errorf("topics for the Messages API: %w", err)
	}
	entries, unread := rd.journal.All(p.flow.Name)
	if unread != nil {
		err = errors.Join(err, fmt.Errorf("calls of agents: %w", unread))
	}
	w.mean = meanBatch(p.flow, entries)
	return w, err
}

func (w weigher) weigh(g progress.Decision) OpenDecision {
	o := OpenDecision{Weighed: acts.Weighed{Decision: g}, Asked: w.asked[g.Ref]}
	if u, ok := w.p.find(g.Ref.Unit); ok && u.Unit != nil {
		o.Weighed = acts.Weigh(w.p.flow, u.Unit, g)
	}
	if g.Ref.Kind == progress.PlanKind {
		o.Estimate = new(w.mean.of(o.Batches))
	}
	for _, f := range g.Facts {
		if g.Ref.Kind == progress.ItemKind && (f.Name == "decided before" || f.Name == "similar item decided before") {
			o.Prior = f.Value
		}
	}
	return o
}

func problemOf(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// clusters groups items that one answer can decide. Each item is in one cluster.
func clusters(open []progress.Decision) []Cluster {
	list := []Cluster{}
	seen := map[progress.Ref]bool{}
	for _, g := range open {
		if len(g.Same) == 0 || seen[g.Ref] {
			continue
		}
		c := Cluster{Title: g.Title, Refs: append([]progress.Ref{g.Ref}, g.Same...)}
		for _, r := range c.Refs {
			seen[r] = true
		}
		list = append(list, c)
	}
	return list
}

// paceOf is how many recent answers the pace is computed from. A pause of more than
// longPause between two of them does not count.
const (
	paceOf    = 20
	longPause = 10 * time.Minute
)

// progress counts the answers and estimates the time for the open decisions.
func (p *documents) progress(open int) Progress {
	var at []time.Time
	for _, u := range p.units {
		if u.Unit != nil {
			at = append(at, answers(u.Unit)...)
		}
	}
	slices.SortFunc(at, time.Time.Compare)
	pr := Progress{Answered: len(at), Open: open}
	if len(at) == 0 {
		return pr
	}
	pr.Last = at[len(at)-1]
	var pauses []time.Duration
	for i := max(1, len(at)-paceOf); i < len(at); i++ {
		if d := at[i].Sub(at[i-1]); d <= longPause {
			pauses = append(pauses, d)
		}
	}
	if len(pauses) >= 3 { // fewer answers are no basis for an estimate
		var sum time.Duration
		for _, d := range pauses {
			sum += d
		}
		pr.Pace = seconds(sum / time.Duration(len(pauses)))
		pr.Left = pr.Pace * Seconds(open)
	}
	return pr
}

// answers returns the times of a unit's answers. Documents written by hand have no time.
func answers(u *progress.Unit) (at []time.Time) {
	add := func(t time.Time, by string) {
		if !t.IsZero() && by != "" {
			at = append(at, t)
		}
	}
	for _, t := range u.Topics {
		if t.State != progress.Pending {
			add(t.At, t.By)
		}
	}
	for _, i := range u.Items {
		if i.Decision != "" {
			add(i.At, i.By)
		}
	}
	if u.Plan != nil && u.Plan.Approved != nil {
		add(u.Plan.Approved.At, u.Plan.Approved.By)
	}
	for i := range u.Batches {
		if r := u.Batches[i].Review; r != nil && r.State != progress.Wanted {
			add(r.At, r.By)
		}
	}
	return at
}

func batchOf(u *progress.Unit, item string) (b *progress.Batch, ok bool) {
	for i := range u.Batches {
		if slices.Contains(u.Batches[i].Items, item) {
			return &u.Batches[i], true
		}
	}
	return nil, false
}

func itemsOf(u *progress.Unit, b *progress.Batch) []progress.Item {
	list := []progress.Item{}
	for _, id := range b.Items {
		if it, ok := u.Item(id); ok {
			list = append(list, it)
		} else {
			list = append(list, progress.Item{Audited: flow.Audited{Ready: flow.Ready{ID: id}}})
		}
	}
	return list
}

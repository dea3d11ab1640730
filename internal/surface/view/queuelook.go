package view

import (
	"context"
	"slices"
	"time"

	"lockkeeper/internal/flow"
	"lockkeeper/internal/flow/progress"
	"lockkeeper/store"
)

// Queue lists what waits for a person in a flow; "": the one under way, or last.
func (l *Look) Queue(ctx context.Context, flowName string) (*Queue, error) {
	s, err := l.scene(ctx, flowName, func(*scene, store.Reader) error { return nil })
	if err != nil {
		return nil, err
	}
	p, err := l.papers(ctx, s.flow)
	if err != nil {
		return nil, err
	}
	gates := p.gates()
	q := &Queue{Moment: s.Moment, Flow: s.flow, Gates: []Waiting{}, Clusters: clusters(gates), Progress: p.progress(len(gates)),
		Failed: p.failures(s.items), Unread: []UnreadUnit{}, Problems: problems(p.problem)}
	if s.conductor != nil {
		q.Conductor = s.conductor.Holder
	}
	asked, err := l.asked(ctx, p)
	if err != nil {
		q.Problems = append(q.Problems, "what the API is asked: "+err.Error())
	}
	for _, g := range gates {
		q.Gates = append(q.Gates, waitingOf(g, asked))
	}
	for _, u := range p.units {
		if u.Unit == nil {
			q.Unread = append(q.Unread, UnreadUnit{Unit: u.name, Reason: u.unread.Error()})
		}
	}
	return q, nil
}

// asked lists the topics that the next run asks the Messages API about.
func (l *Look) asked(ctx context.Context, p *papers) (map[progress.Ref]bool, error) {
	asked := map[progress.Ref]bool{}
	for _, u := range p.units {
		if !slices.ContainsFunc(u.gates, func(g progress.Decision) bool { return g.Ref.Kind == progress.TopicKind }) {
			continue
		}
		slugs, err := p.book.ByAPI(ctx, u.Unit)
		if err != nil {
			return asked, err
		}
		for _, slug := range slugs {
			asked[progress.Ref{Kind: progress.TopicKind, Unit: u.name, Topic: slug}] = true
		}
	}
	return asked, nil
}

func waitingOf(g progress.Decision, asked map[progress.Ref]bool) Waiting {
	w := Waiting{Decision: g, Asked: asked[g.Ref]}
	if g.Ref.Kind != progress.ItemKind {
		return w
	}
	for _, f := range g.Facts {
		switch f.Name {
		case "impact":
			w.Impact = f.Value
		case "effort":
			w.Effort = f.Value
		case "decided before", "decided before of a similar one":
			w.Prior = f.Value
		}
	}
	return w
}

// clusters are the items that one answer can be given to, each named once.
func clusters(gates []progress.Decision) []Cluster {
	list := []Cluster{}
	seen := map[progress.Ref]bool{}
	for _, g := range gates {
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

// paceOf bounds how many of the last answers tell how fast somebody answers, and how long
// a pause between two of them may be: after that they did something else.
const (
	paceOf    = 20
	longPause = 10 * time.Minute
)

// progress is how much was answered, and how long the rest may take at the pace of late.
func (p *papers) progress(open int) Progress {
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
	if len(pauses) >= 3 { // of fewer nobody can tell
		var sum time.Duration
		for _, d := range pauses {
			sum += d
		}
		pr.Pace = seconds(sum / time.Duration(len(pauses)))
		pr.Left = pr.Pace * Seconds(open)
	}
	return pr
}

// answers are when people answered what a unit waited for. Of what was put there by hand
// the time is not known.
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

// batchOf is the batch that an item is in.
func batchOf(u *progress.Unit, item string) (b *progress.Batch, ok bool) {
	for i := range u.Batches {
		if slices.Contains(u.Batches[i].Items, item) {
			return &u.Batches[i], true
		}
	}
	return nil, false
}

// itemsOf are the items of a batch.
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

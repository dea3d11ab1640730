package view

import (
	"context"
	"errors"

	"lockkeeper"
	"lockkeeper/gate"
	"lockkeeper/internal/flow/conduct"
	"lockkeeper/internal/flow/progress"
	"lockkeeper/internal/flow/report"
	"lockkeeper/store"
)

// Bounds of what the page of a run shows.
const (
	landingsShown = 50
	refusedShown  = 100
	refusedLook   = 20_000 // events among which they are looked for
)

// Run tells what a flow did; "": the one under way, or last.
func (l *Look) Run(ctx context.Context, flowName string) (*Run, error) {
	return share(ctx, &l.flights, "run "+flowName, func(ctx context.Context) (*Run, error) { return l.run(ctx, flowName) })
}

func (l *Look) run(ctx context.Context, flowName string) (*Run, error) {
	v := &Run{}
	s, err := l.scene(ctx, flowName, func(_ *scene, r store.Reader) (err error) {
		v.Refused, err = refusedIn(r)
		return err
	})
	if err != nil {
		return nil, err
	}
	p, err := l.papers(ctx, s.flow)
	if err != nil {
		return nil, err
	}
	states := p.states(s.items)
	v.Moment, v.Line = s.Moment, s.line(states, len(p.gates()))
	v.Problems = problems(p.problem)
	if v.Cost, err = l.cost(s, p, states); err != nil {
		v.Problems = append(v.Problems, "what it cost: "+err.Error())
	}
	if err := l.report(ctx, v, p); err != nil {
		return nil, err
	}
	if err := l.markKept(ctx, v.Refused); err != nil {
		v.Problems = append(v.Problems, "what is kept: "+err.Error())
	}
	page, err := l.Landings(ctx, LandingsQuery{Limit: landingsShown})
	if err != nil {
		return nil, err
	}
	v.Landings, v.More = page.Landings, page.Next != 0
	return v, nil
}

// report adds what the units did. One that cannot be read is left out, and named.
func (l *Look) report(ctx context.Context, v *Run, p *papers) error {
	calls, err := l.journal.Calls(p.flow.Name)
	if err != nil {
		v.Problems = append(v.Problems, "what units cost: "+err.Error())
	}
	var units []string
	for _, u := range p.units {
		switch {
		case u.Unit == nil:
			v.Problems = append(v.Problems, u.unread.Error())
		case len(u.Documents)+len(u.Malformed)+len(u.Batches) > 0:
			units = append(units, u.name)
		}
	}
	v.Report, err = report.Of(ctx, l.app, p.flow, units, calls, func(name string) (*progress.Unit, error) {
		if u, known := p.find(name); known && u.Unit != nil {
			return u.Unit, nil
		}
		return &progress.Unit{Name: name}, nil
	})
	return err
}

// refusedIn lists the writes that were refused of late, the newest first.
func refusedIn(r store.Reader) ([]RefusedWrite, error) {
	var events []lockkeeper.Event
	for before, read := uint64(0), 0; read < refusedLook && len(events) < refusedShown; {
		page, err := r.Events(store.EventQuery{Before: before, Limit: eventPage, Latest: true})
		if err != nil {
			return nil, err
		}
		for _, ev := range page {
			if before = ev.Seq; ev.Kind == lockkeeper.EventGap && len(events) < refusedShown {
				events = append(events, ev)
			}
		}
		if read += len(page); len(page) < eventPage {
			break
		}
	}
	known, err := namesIn(r, events)
	list := []RefusedWrite{}
	for _, ev := range events {
		list = append(list, RefusedWrite{At: ev.At, Path: ev.Data["path"], Name: known.of(ev.Holder, ItemOf(ev)), Reason: ev.Reason, Rescue: ev.Data["rescue"]})
	}
	return list, err
}

// markKept says which of the refused writes are still on the shelf.
func (l *Look) markKept(ctx context.Context, list []RefusedWrite) error {
	entries, err := l.kept(ctx)
	there := map[string]bool{}
	for _, e := range entries {
		there[e.ID] = true
	}
	for i := range list {
		list[i].Kept = there[list[i].Rescue]
	}
	return err
}

// Landings lists what reached the tree.
func (l *Look) Landings(ctx context.Context, q LandingsQuery) (*Landings, error) {
	v := &Landings{}
	limit := pageLimit(q.Limit)
	var found []*lockkeeper.Landing
	known := names{}
	var err error
	v.Moment, err = l.at(ctx, func(r store.Reader) (err error) {
		if found, err = r.Landings(store.LandingQuery{Path: q.Path, Before: q.Before, Limit: limit + 1, Latest: true}); err != nil {
			return err
		}
		if v.Next = 0; len(found) > limit {
			found, v.Next = found[:limit], found[limit-1].Seq
		}
		return known.landers(r, found)
	})
	if err != nil {
		return nil, err
	}
	v.Landings, err = l.landings(ctx, found, known)
	return v, err
}

// landers looks up what those are called who landed something.
func (n names) landers(r store.Reader, found []*lockkeeper.Landing) error {
	for _, ln := range found {
		if err := n.look(r, ln.Holder); err != nil {
			return err
		}
	}
	return nil
}

// landingsOf are landings by their numbers.
func (l *Look) landingsOf(ctx context.Context, seqs []uint64) ([]Landing, error) {
	var found []*lockkeeper.Landing
	known := names{}
	_, err := l.at(ctx, func(r store.Reader) error {
		found = nil
		for _, seq := range seqs {
			list, err := r.Landings(store.LandingQuery{Seq: seq, Limit: 1})
			if err != nil {
				return err
			}
			found = append(found, list...)
		}
		return known.landers(r, found)
	})
	if err != nil {
		return nil, err
	}
	return l.landings(ctx, found, known)
}

// landings are landings as they are shown, with whether they can be undone.
func (l *Look) landings(ctx context.Context, found []*lockkeeper.Landing, known names) ([]Landing, error) {
	batches, err := l.landedBatches(ctx)
	if err != nil {
		return nil, err
	}
	door, closed := l.app.Gate() // without which nothing can be undone
	list := []Landing{}
	for _, ln := range found {
		v := Landing{Seq: ln.Seq, At: ln.At, Holder: ln.Holder, Name: known.of(ln.Holder, ln.Holder), State: ln.State.String(), Paths: []string{}, Undoes: ln.Undoes,
			Undo: Act{Name: "undo", Target: itoa(ln.Seq), Command: "lockkeeper undo " + itoa(ln.Seq)}}
		for _, c := range ln.Changes {
			v.Paths = append(v.Paths, c.Path)
		}
		if b, ok := batches[ln.Seq]; ok {
			v.Unit, v.Batch, v.Commit = b.unit, b.batch, b.commit
		}
		if closed != nil {
			v.Undo.Refused = closed.Error()
		} else if err := v.judge(ctx, door); err != nil {
			return nil, err
		}
		list = append(list, v)
	}
	return list, nil
}

// judge says whether a landing can be undone as things are.
func (v *Landing) judge(ctx context.Context, door *gate.Gate) (err error) {
	if v.UndoneBy, err = door.UndoneBy(ctx, v.Seq); err != nil {
		return err
	}
	var refused *lockkeeper.RefusedError
	switch err := door.CanUndo(ctx, v.Seq); {
	case err == nil:
	case errors.As(err, &refused):
		v.Undo.Refused = refused.Reason
	default:
		v.Undo.Refused = err.Error()
	}
	return nil
}

// landedBatch is a batch of which something landed.
type landedBatch struct{ unit, batch, commit string }

// landedBatches are the batches of the last flow by the landings that brought them into
// the tree.
func (l *Look) landedBatches(ctx context.Context) (map[uint64]landedBatch, error) {
	name, err := conduct.LastFlow(l.app, "")
	if err != nil {
		return nil, err
	}
	p, err := l.papers(ctx, name)
	if err != nil {
		return nil, err
	}
	batches := map[uint64]landedBatch{}
	for _, u := range p.units {
		if u.Unit == nil {
			continue
		}
		for _, b := range u.Batches {
			if b.Landed == nil {
				continue
			}
			for _, seq := range b.Landed.Landings {
				batches[seq] = landedBatch{u.name, b.ID, b.Landed.Commit}
			}
		}
	}
	return batches, nil
}

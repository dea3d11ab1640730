package view

import (
	"context"
	"slices"

	"lockkeeper"
	"lockkeeper/internal/flow"
	"lockkeeper/internal/flow/progress"
	"lockkeeper/internal/flow/run"
	"lockkeeper/rescue"
	"lockkeeper/store"
)

// State gathers everything at once.
func (l *Look) State(ctx context.Context) (*State, error) {
	return share(ctx, &l.flights, "state", l.state)
}

func (l *Look) state(ctx context.Context) (*State, error) {
	st := &State{}
	s, err := l.scene(ctx, "", func(s *scene, r store.Reader) error {
		if err := s.addBlocked(r); err != nil {
			return err
		}
		records, err := l.app.Locks.GrantsIn(r)
		st.Locks.ActiveGrants, st.spelled = l.grants.show(records, r.Now().Wall)
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
	st.Moment, st.Flow, st.Phase = s.Moment, s.flow, s.phase()
	st.Controllers, st.Workflows = []Controller{}, map[string]Workflow{}
	for i, u := range p.units {
		st.Controllers = append(st.Controllers, Controller{Name: u.name, Status: states[i].Status})
		st.Workflows[u.name] = workflowOf(u, states[i])
	}
	st.Problems = problems(p.problem)
	if st.Cost, err = l.cost(s, p, states); err != nil {
		st.Problems = append(st.Problems, "what it cost: "+err.Error())
	}
	st.Locks.ActiveItems = listOf(s.active)
	st.Locks.QueueDepth, st.Locks.BlockedCount, st.Locks.BlockedItems = s.census.Queued(), s.census.Waiting, s.blockedItems()
	if st.Locks.Gaps, err = l.gaps(ctx, p); err != nil {
		st.Problems = append(st.Problems, "what is kept: "+err.Error())
	}
	return st, nil
}

// problems are those that there are.
func problems(texts ...string) []string {
	return slices.DeleteFunc(listOf(texts), func(text string) bool { return text == "" })
}

func workflowOf(u *unit, at run.UnitState) Workflow {
	w := Workflow{Status: at.Status, Pending: at.Pending, Since: at.Since, Item: at.Item, Note: at.Note, Error: at.Error,
		Batches: map[string]BatchStatus{}, Gates: kindsOf(u.gates)}
	if u.Unit != nil {
		w.Malformed = u.Malformed
	}
	for _, b := range at.Batches {
		w.Batches[b.ID] = BatchStatus{Status: b.Status, Pending: b.Pending, Since: b.Since, Item: b.Item, Note: b.Note, Error: b.Error, Blocked: b.Blocked}
	}
	return w
}

// kindsOf counts gates by their kinds.
func kindsOf(gates []progress.Decision) map[progress.Kind]int {
	count := map[progress.Kind]int{}
	for _, g := range gates {
		count[g.Ref.Kind]++
	}
	return count
}

func (s *scene) blockedItems() []BlockedItem {
	list := []BlockedItem{}
	for _, e := range s.blocked {
		b := BlockedItem{Item: &e.Item, Waiting: seconds(max(0, s.At.Sub(e.Item.QueuedAt))), Retries: e.Item.Retries, Blockers: []lockkeeper.ConflictInfo{}, For: waitsFor(e)}
		for _, w := range e.Locks {
			b.Blockers = append(b.Blockers, w.ConflictInfo)
		}
		list = append(list, b)
	}
	return list
}

// gaps lists the refused writes that nobody has answered: those of batches, and those that
// are on the shelf and no batch knows of.
func (l *Look) gaps(ctx context.Context, p *papers) ([]Gap, error) {
	list := []Gap{}
	known := map[string]bool{}
	for _, u := range p.units {
		if u.Unit == nil {
			continue
		}
		for i := range u.Batches {
			b := &u.Batches[i]
			for _, g := range b.Gaps() {
				known[g.Rescue] = true
				if g.Answer == "" {
					list = append(list, Gap{Ref: &progress.Ref{Kind: progress.GapKind, Unit: u.name, Batch: b.ID, Gap: g.Number}, Unit: u.name, Batch: b.ID, Gap: g.Gap})
				}
			}
		}
	}
	kept, err := l.kept(ctx)
	for _, e := range kept {
		if e.Kind == rescue.Gap && !known[e.ID] {
			list = append(list, Gap{Holder: e.Holder, Gap: flow.Gap{Path: e.Path, Reason: e.Reason, Rescue: e.ID, At: e.At}})
		}
	}
	slices.SortStableFunc(list, func(a, b Gap) int { return a.At.Compare(b.At) })
	return list, err
}

package pipeline

import (
	"context"
	"slices"
	"strings"
	"time"

	"lockkeeper"
	"lockkeeper/internal/agent"
	"lockkeeper/internal/dossier"
	"lockkeeper/internal/flow"
)

// State is where a run is, for whoever looks at it.
type State struct {
	Flow    string      `json:"flow"`
	Phase   string      `json:"phase"` // of the whole: ready, once the units are known
	Units   []UnitState `json:"units"`
	Spent   agent.Spent `json:"spent"`
	Rest    float64     `json:"rest_usd"` // what the rest may cost, by what such phases have cost so far
	Sandbox string      `json:"sandbox"`
}

// UnitState is where a unit is.
type UnitState struct {
	Name    string       `json:"name"`
	Status  string       `json:"status"`
	Pending string       `json:"pending,omitempty"` // of one that is queued: the phase it waits for
	Item    string       `json:"item,omitempty"`
	Since   time.Time    `json:"since,omitzero"`
	Error   string       `json:"error,omitempty"`
	Note    string       `json:"note,omitempty"`
	Batches []BatchState `json:"batches,omitempty"`
}

// BatchState is where a batch, or a screen, is.
type BatchState struct {
	ID      string    `json:"id"`
	Status  string    `json:"status"`
	Pending string    `json:"pending,omitempty"`
	Item    string    `json:"item,omitempty"`
	Since   time.Time `json:"since,omitzero"`
	Error   string    `json:"error,omitempty"`
	Note    string    `json:"note,omitempty"`
	Blocked []string  `json:"blocked,omitempty"`
}

// Look says where everything is: by the documents, and by the queue where work on them is
// under way.
func (p *Pipeline) Look(ctx context.Context) (*State, error) {
	var list []*lockkeeper.Item
	if p.opt.Locks != nil {
		var err error
		if list, err = p.items(ctx); err != nil {
			return nil, err
		}
	}
	st := &State{Flow: p.opt.Flow.Name, Phase: flow.Discovered, Spent: p.Spent(), Sandbox: p.opt.Sandbox.String()}
	for _, name := range p.units {
		u, err := p.opt.Book.Unit(ctx, name)
		if err != nil {
			return nil, err
		}
		items := map[string]*lockkeeper.Item{} // by what they work on
		for _, it := range list {
			if d, err := workOf(it); err == nil && d.unit == name && isCurrent(u, it, d) {
				items[u.Name+"\x00"+d.kind+"\x00"+d.batch] = it
			}
		}
		st.Units = append(st.Units, p.lookAt(u, items))
	}
	st.Rest = p.rest(st)
	return st, nil
}

func (p *Pipeline) lookAt(u *dossier.Unit, items map[string]*lockkeeper.Item) UnitState {
	s := UnitState{Name: u.Name, Status: u.Status()}
	p.overlay(items[u.Name+"\x00controller\x00"], p.failureOf(u.Name, ""), &s.Status, &s.Pending, &s.Item, &s.Since, &s.Error, &s.Note)
	for _, b := range u.Batches {
		at := BatchState{ID: b.ID, Status: b.Status, Blocked: b.Blocked}
		p.overlay(items[u.Name+"\x00batch\x00"+b.ID], p.failureOf(u.Name, b.ID), &at.Status, &at.Pending, &at.Item, &at.Since, &at.Error, &at.Note)
		s.Batches = append(s.Batches, at)
	}
	if u.Plan == nil {
		for _, screen := range p.groups[u.Name].Screens {
			at := BatchState{ID: screen.Name, Status: s.Status}
			p.overlay(items[u.Name+"\x00screen\x00"+screen.Name], p.failureOf(u.Name, screen.Name), &at.Status, &at.Pending, &at.Item, &at.Since, &at.Error, &at.Note)
			s.Batches = append(s.Batches, at)
		}
	}
	// A unit whose batches stand still because of errors is in the error state; one that
	// still has something to do is where that is.
	if failed := slices.IndexFunc(s.Batches, func(b BatchState) bool { return b.Status == flow.Failed }); failed >= 0 && s.Status != flow.Failed {
		busy := slices.ContainsFunc(s.Batches, func(b BatchState) bool {
			return b.Status != flow.Failed && b.Status != flow.Complete && len(b.Blocked) == 0
		})
		if !busy {
			s.Status, s.Error = flow.Failed, s.Batches[failed].ID+": "+s.Batches[failed].Error
		}
	}
	return s
}

// failureOf finds why something failed in the legacy mode.
func (p *Pipeline) failureOf(unit, batch string) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	for key, err := range p.failed {
		d, bad := workOf(&lockkeeper.Item{Key: key})
		if bad == nil && d.unit == unit && d.batch == batch {
			return err
		}
	}
	return nil
}

// overlay lays what the queue knows over what the documents say.
func (p *Pipeline) overlay(it *lockkeeper.Item, failure error, status, pending, id *string, since *time.Time, reason, note *string) {
	if failure != nil {
		*status, *reason = flow.Failed, failure.Error()
	}
	if it == nil {
		return
	}
	*id, *since, *note = it.ID, it.StatusSince(), it.Note
	switch it.Status {
	case lockkeeper.ItemQueued:
		*pending, *status = it.Phase, flow.Queued
	case lockkeeper.ItemDispatched:
		*status = p.statusOf(it.Phase)
	case lockkeeper.ItemError:
		*status = flow.Failed
		if it.Failure != nil {
			*reason = it.Failure.Phase + ": " + it.Failure.Reason
		}
	}
}

// statusOf is the status of something that is in a phase of the scheduler.
func (p *Pipeline) statusOf(phase string) string {
	switch phase {
	case "fix":
		return "fixing_tests"
	case "ci_fix":
		return "fixing_ci"
	}
	for _, known := range p.opt.Flow.Phases {
		if known.Name == phase {
			return known.Status
		}
	}
	return phase
}

// rest estimates what is left to be paid: for each phase of each unit that is still to
// come, what such a phase has cost on average.
func (p *Pipeline) rest(st *State) float64 {
	calls, err := p.ledger.all()
	if err != nil {
		return 0
	}
	sum, count := map[string]float64{}, map[string]int{}
	for _, c := range calls {
		if c.Run == p.ledger.run {
			sum[c.Phase] += c.USD
			count[c.Phase]++
		}
	}
	left := 0.0
	for _, u := range st.Units {
		behind := u.Status == flow.Complete
		for _, phase := range p.opt.Flow.Phases {
			if phase.Executor != flow.Agent || count[phase.Name] == 0 || behind {
				continue
			}
			if p.isDone(u, phase) {
				continue
			}
			left += sum[phase.Name] / float64(count[phase.Name])
		}
	}
	return left
}

// isDone reports whether a unit has a phase behind it.
func (p *Pipeline) isDone(u UnitState, phase flow.Phase) bool {
	order := p.opt.Flow.Statuses()
	at := u.Status
	if at == flow.Queued {
		at = p.statusOf(u.Pending)
	}
	return slices.Index(order, at) > slices.Index(order, phase.Status) && !strings.HasPrefix(at, flow.Failed)
}

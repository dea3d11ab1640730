package run

import (
	"context"
	"time"

	"lockkeeper"
	"lockkeeper/internal/agent"
	"lockkeeper/internal/flow"
	"lockkeeper/store"
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

	next string // the phase that comes next by its documents; empty: none
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

	kind flow.Unit // BatchUnit or Screen
	next string    // the phase that comes next by its documents; empty: none
}

// State says where everything is: by the documents, and by the queue where work on them is
// under way.
func (p *Pipeline) State(ctx context.Context) (*State, error) {
	items := map[string][]*lockkeeper.Item{}
	if p.opt.Locks != nil {
		err := p.opt.Store.View(ctx, func(r store.Reader) (err error) {
			items, err = OpenItems(r, p.opt.Flow.Name)
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	st := &State{Flow: p.opt.Flow.Name, Phase: flow.Discovered, Spent: p.Spent(), Sandbox: p.opt.Sandbox.String()}
	sight := p.overlay()
	for _, name := range p.units {
		u, err := p.opt.Progress.Unit(ctx, name)
		if err != nil {
			return nil, err
		}
		at := sight.Unit(u, items[name])
		if err := p.narrow(ctx, u, &at); err != nil {
			return nil, err
		}
		st.Units = append(st.Units, at)
	}
	var err error
	st.Rest, err = p.rest(st.Units)
	return st, err
}

// overlay is what this pipeline knows besides the queue.
func (p *Pipeline) overlay() Overlay {
	s := Overlay{Flow: p.opt.Flow, Screens: map[string][]flow.ManifestScreen{}, failed: p.failureOf}
	for unit, group := range p.groups {
		s.Screens[unit] = group.Screens
	}
	return s
}

// failureOf finds why something failed in the legacy mode.
func (p *Pipeline) failureOf(unit, part string) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	for key, err := range p.failed {
		d, bad := workOf(&lockkeeper.Item{Key: key})
		if bad == nil && d.unit == unit && d.part == part {
			return err
		}
	}
	return nil
}

// rest estimates what is left to be paid, by the calls of this run.
func (p *Pipeline) rest(units []UnitState) (float64, error) {
	all, err := p.ledger.all()
	var calls []flow.Call
	for _, c := range all {
		if c.Run == p.ledger.run {
			calls = append(calls, c.Call)
		}
	}
	return Rest(p.opt.Flow, calls, units), err
}

package run

import (
	"context"
	"time"

	"lockkeeper"
	"lockkeeper/internal/agent"
	"lockkeeper/internal/flow"
	"lockkeeper/store"
)

// A State describes a run for viewers.
type State struct {
	Flow    string      `json:"flow"`
	Phase   string      `json:"phase"` // ready once the units are known
	Units   []UnitState `json:"units"`
	Spent   agent.Spent `json:"spent"`
	Rest    float64     `json:"rest_usd"` // the estimate of Rest
	Sandbox string      `json:"sandbox"`
}

// A UnitState describes a unit.
type UnitState struct {
	Name    string       `json:"name"`
	Status  string       `json:"status"`
	Pending string       `json:"pending,omitempty"` // the phase it waits for, if it is queued
	Item    string       `json:"item,omitempty"`
	Since   time.Time    `json:"since,omitzero"`
	Error   string       `json:"error,omitempty"`
	Note    string       `json:"note,omitempty"`
	Batches []BatchState `json:"batches,omitempty"`

	next string // the next phase by its documents; empty: none
}

// A BatchState describes a batch or a screen.
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
	next string    // the next phase by its documents; empty: none
}

// State returns the state of the run, from its documents and the queue.
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
	overlay := p.overlay()
	for _, name := range p.units {
		u, err := p.opt.Progress.Unit(ctx, name)
		if err != nil {
			return nil, err
		}
		at := overlay.Unit(u, items[name])
		if err := p.narrow(ctx, u, &at); err != nil {
			return nil, err
		}
		st.Units = append(st.Units, at)
	}
	var err error
	st.Rest, err = p.rest(st.Units)
	return st, err
}

// overlay returns an Overlay with the failures in this process.
func (p *Pipeline) overlay() Overlay {
	s := Overlay{Flow: p.opt.Flow, Screens: map[string][]flow.ManifestScreen{}, failed: p.failureOf}
	for unit, group := range p.groups {
		s.Screens[unit] = group.Screens
	}
	return s
}

// failureOf returns why work failed in the legacy mode, or why a unit is blocked.
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

// rest returns Rest for the calls of this run.
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

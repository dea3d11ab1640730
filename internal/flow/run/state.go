package run

import (
	"context"
	"slices"
	"time"

	"lockkeeper"
	"lockkeeper/internal/agent"
	"lockkeeper/internal/flow"
	"lockkeeper/internal/flow/fleet"
	"lockkeeper/internal/flow/progress"
	"lockkeeper/store"
)

// A State describes a run for viewers.
type State struct {
	Flow    string      `json:"flow"`
	Phase   string      `json:"phase"` // ready once the units are known
	Units   []UnitState `json:"units"`
	Spent   agent.Spent `json:"spent"`
	Rest    float64     `json:"rest_usd"` // estimated cost in dollars of the calls that are left
	Sandbox string      `json:"sandbox"`

	Machines []fleet.Machine `json:"machines,omitempty"` // those that share the calls, the conductor first; empty: all run here
}

type UnitState struct {
	Name string `json:"name"`
	WorkState
	Batches []BatchState `json:"batches,omitempty"`
}

// A BatchState describes a batch or a screen.
type BatchState struct {
	ID string `json:"id"`
	WorkState
	Blocked []string `json:"blocked,omitempty"`

	kind flow.Unit // BatchUnit or Screen
}

// A WorkState is the state of a piece of work, from its documents and the queue.
type WorkState struct {
	Status  string    `json:"status"`
	Pending string    `json:"pending,omitempty"` // the phase that a queued unit waits for
	Item    string    `json:"item,omitempty"`
	Since   time.Time `json:"since,omitzero"`
	Error   string    `json:"error,omitempty"`
	Note    string    `json:"note,omitempty"`

	next string // the next phase according to the documents; empty: none
}

// State returns the state of the run, from its documents and the queue.
func (p *Pipeline) State(ctx context.Context) (*State, error) {
	st, _, err := p.read(ctx)
	return st, err
}

// read returns the state of the run and the units from which it was read.
func (p *Pipeline) read(ctx context.Context) (st *State, units []*progress.Unit, err error) {
	items := map[string][]*lockkeeper.Item{}
	if p.opt.Locks != nil {
		err := p.opt.Store.View(ctx, func(r store.Reader) (err error) {
			items, err = OpenItems(r, p.opt.Flow.Name)
			return err
		})
		if err != nil {
			return nil, nil, err
		}
	}
	st = &State{Flow: p.opt.Flow.Name, Phase: flow.Discovered, Spent: p.Spent(), Sandbox: p.opt.Sandbox.String()}
	overlay := p.overlay()
	for _, name := range p.units {
		u, err := p.opt.Progress.Unit(ctx, name)
		if err != nil {
			return nil, nil, err
		}
		units = append(units, u)
		at := overlay.Unit(u, items[name])
		if err := p.narrow(ctx, u, &at); err != nil {
			return nil, nil, err
		}
		st.Units = append(st.Units, at)
	}
	if st.Rest, err = p.rest(st.Units); err == nil && p.opt.Crew != nil {
		st.Machines, err = p.opt.Crew.Fleet.Machines(ctx)
	}
	return st, units, err
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
		if bad == nil && d.Unit == unit && d.Part == part {
			return err
		}
	}
	return nil
}

// rest estimates the cost of the remaining work (see Rest) from the calls of this run.
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

// Outcome returns the result of the run so far. A pipeline that only shows the run reads the cost
// again each time, because the conductor may spend in another process.
func (p *Pipeline) Outcome(ctx context.Context) (_ *Outcome, err error) {
	if _, err := p.Refresh(); err != nil {
		return nil, err
	}
	return p.outcome(ctx, false)
}

// Refresh returns the cost of the run so far. A pipeline that only shows the run reads new calls.
func (p *Pipeline) Refresh() (_ agent.Spent, err error) {
	if p.opt.Gate == nil {
		if p.ledger, err = p.ledger.of(p.opt.Run, p.opt.Budget); err != nil {
			return agent.Spent{}, err
		}
	}
	return p.Spent(), nil
}

// Sandbox describes the sandbox of agents and commands.
func (p *Pipeline) Sandbox() string { return p.opt.Sandbox.String() }

// A DryRun describes what a run would do.
type DryRun struct {
	*Outcome
	Batches []UpcomingBatch   `json:"batches"` // the planned batches that have not landed
	Shared  []flow.SharedRead `json:"shared"`  // files that several screens read, where their merges may conflict
}

// An UpcomingBatch is a batch that is not complete.
type UpcomingBatch struct {
	Unit     string       `json:"unit"`
	ID       string       `json:"id"`
	Title    string       `json:"title,omitempty"`
	Next     string       `json:"next"` // the current or the first phase
	Approved bool         `json:"approved"`
	Writes   []string     `json:"write_targets"`
	After    []string     `json:"after,omitempty"`
	Contends []Contention `json:"contends,omitempty"`

	Locks []lockkeeper.Lock `json:"-"` // the locks that the batch will request
}

// A Contention is a path that two batches need, and only one can hold at a time.
type Contention struct {
	With string `json:"with"` // unit/batch
	Path string `json:"path"`
}

// DryRun finds out what a run would do, and changes nothing.
func (p *Pipeline) DryRun(ctx context.Context) (*DryRun, error) {
	out, err := p.Outcome(ctx)
	if err != nil {
		return nil, err
	}
	f := &DryRun{Outcome: out, Batches: []UpcomingBatch{}, Shared: []flow.SharedRead{}}
	if p.opt.Manifest != nil {
		f.Shared = append(f.Shared, p.opt.Manifest.Shared()...)
	}
	for _, name := range p.units {
		u, err := p.opt.Progress.Unit(ctx, name)
		if err != nil {
			return nil, err
		}
		for _, b := range p.upcoming(u) {
			d := workItem{Work: Work{Unit: name, Kind: string(flow.BatchUnit), Part: b.ID}, targets: b.WriteTargets, reads: b.Reads}
			if !p.wants(d.Work) {
				continue
			}
			locks, err := p.locksOf(d)
			if err != nil {
				return nil, err
			}
			f.Batches = append(f.Batches, UpcomingBatch{Unit: name, ID: b.ID, Title: b.Title, Next: b.Next, Approved: b.Approved, Writes: b.WriteTargets, After: b.After, Locks: locks})
		}
	}
	f.contend()
	f.queue(p.opt.Flow.FirstOfBatch())
	return f, nil
}

// KnowsPlan reports whether the stored plan has the tasks of the plan file.
func (p *Pipeline) KnowsPlan(ctx context.Context) (bool, error) {
	u, err := p.opt.Progress.Unit(ctx, p.opt.Flow.OneUnit)
	if err != nil || p.opt.Tasks == nil {
		return false, err
	}
	return !slices.ContainsFunc(p.opt.Tasks.Batches("", time.Time{}).Batches, func(def flow.Batch) bool {
		known, ok := u.Batch(def.ID)
		return !ok || known.Digest != flow.Digest(def)
	}), nil
}

// upcoming lists the batches of a unit that are not complete, including those of a plan file that
// is not stored yet.
func (p *Pipeline) upcoming(u *progress.Unit) []progress.Batch {
	batches := slices.Clone(u.Batches)
	if p.opt.Tasks != nil {
		batches = nil
		for _, def := range p.opt.Tasks.Batches("", time.Time{}).Batches {
			known, ok := u.Batch(def.ID)
			if ok && known.Digest == flow.Digest(def) {
				batches = append(batches, *known)
			} else {
				batches = append(batches, progress.Batch{Batch: def, Approved: true, Next: p.opt.Flow.FirstOfBatch()})
			}
		}
	}
	return slices.DeleteFunc(batches, func(b progress.Batch) bool { return b.Next == "" })
}

// queue marks units as queued if their documents are complete but a new plan has batches for
// them.
func (f *DryRun) queue(first string) {
	for i := range f.State.Units {
		u := &f.State.Units[i]
		if u.Status == flow.Complete && slices.ContainsFunc(f.Batches, func(b UpcomingBatch) bool { return b.Unit == u.Name }) {
			u.Status, u.Pending = flow.Queued, first
			f.Complete--
		}
	}
}

// contend finds the batches that will wait for each other.
func (f *DryRun) contend() {
	for i := range f.Batches {
		for j := range f.Batches {
			a, b := &f.Batches[i], &f.Batches[j]
			if i == j {
				continue
			}
			for _, l := range a.Locks {
				if slices.ContainsFunc(b.Locks, l.Conflicts) {
					a.Contends = append(a.Contends, Contention{With: b.Unit + "/" + b.ID, Path: l.Path})
				}
			}
		}
	}
}

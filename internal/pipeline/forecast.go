package pipeline

import (
	"context"
	"slices"
	"time"

	"lockkeeper"
	"lockkeeper/internal/dossier"
	"lockkeeper/internal/flow"
)

// Glance says how far a flow has come, to somebody who does not conduct it: what was spent
// is read anew. It comes after Survey.
func (p *Pipeline) Glance(ctx context.Context) (*Outcome, error) {
	l, err := openLedger(p.opt.Calls, p.opt.Run, p.opt.Budget)
	if err != nil {
		return nil, err
	}
	p.ledger = l
	return p.outcome(ctx, false)
}

// Forecast is what a run would do.
type Forecast struct {
	*Outcome
	Batches []Planned         `json:"batches"` // that are known and not in the tree
	Shared  []flow.SharedRead `json:"shared"`  // of the screens flow: where merges will meet
}

// Planned is a batch that is to come.
type Planned struct {
	Unit     string       `json:"unit"`
	ID       string       `json:"id"`
	Title    string       `json:"title,omitempty"`
	Next     string       `json:"next"` // the phase it is in, or begins with
	Approved bool         `json:"approved"`
	Writes   []string     `json:"write_targets"`
	After    []string     `json:"after,omitempty"`
	Contends []Contention `json:"contends,omitempty"`

	Locks []lockkeeper.Lock `json:"-"` // that it will ask for
}

// Contention is something that two want, of which only one can have it at a time.
type Contention struct {
	With string `json:"with"` // unit/batch
	Path string `json:"path"`
}

// Forecast says what a run would do, and changes nothing. It comes after Survey.
func (p *Pipeline) Forecast(ctx context.Context) (*Forecast, error) {
	out, err := p.Glance(ctx)
	if err != nil {
		return nil, err
	}
	f := &Forecast{Outcome: out, Batches: []Planned{}, Shared: []flow.SharedRead{}}
	if p.opt.Manifest != nil {
		f.Shared = append(f.Shared, p.opt.Manifest.Shared()...)
	}
	for _, name := range p.units {
		u, err := p.opt.Book.Unit(ctx, name)
		if err != nil {
			return nil, err
		}
		for _, b := range p.toCome(u) {
			d := due{unit: name, kind: string(flow.BatchUnit), batch: b.ID, targets: b.WriteTargets, reads: b.Reads}
			if !p.wants(d) {
				continue
			}
			locks, err := p.locksOf(d)
			if err != nil {
				return nil, err
			}
			f.Batches = append(f.Batches, Planned{Unit: name, ID: b.ID, Title: b.Title, Next: b.Next, Approved: b.Approved, Writes: b.WriteTargets, After: b.After, Locks: locks})
		}
	}
	f.contend()
	f.queue(firstOf(p.opt.Flow))
	return f, nil
}

// KnowsPlan reports whether the tasks of the plan file are those that were taken up last.
func (p *Pipeline) KnowsPlan(ctx context.Context) (bool, error) {
	u, err := p.opt.Book.Unit(ctx, TasksUnit)
	if err != nil || p.opt.Plan == nil {
		return false, err
	}
	for _, def := range p.opt.Plan.Plan("", time.Time{}).Batches {
		if known, ok := u.Batch(def.ID); !ok || known.Digest != flow.Digest(def) {
			return false, nil
		}
	}
	return true, nil
}

// toCome are the batches of a unit that are not complete. Those of a plan file count
// before it is taken up.
func (p *Pipeline) toCome(u *dossier.Unit) []dossier.Batch {
	batches := slices.Clone(u.Batches)
	if p.opt.Plan != nil {
		batches = nil
		for _, def := range p.opt.Plan.Plan("", time.Time{}).Batches {
			known, ok := u.Batch(def.ID)
			if ok && known.Digest == flow.Digest(def) {
				batches = append(batches, *known)
			} else {
				batches = append(batches, dossier.Batch{Batch: def, Approved: true, Next: firstOf(p.opt.Flow)})
			}
		}
	}
	return slices.DeleteFunc(batches, func(b dossier.Batch) bool { return b.Next == "" })
}

// queue says of units that are complete by their documents, and will have batches of a
// new plan, that these are to come.
func (f *Forecast) queue(first string) {
	for i := range f.State.Units {
		u := &f.State.Units[i]
		if u.Status == flow.Complete && slices.ContainsFunc(f.Batches, func(b Planned) bool { return b.Unit == u.Name }) {
			u.Status, u.Pending = flow.Queued, first
			f.Complete--
		}
	}
}

// contend finds who will wait for whom.
func (f *Forecast) contend() {
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

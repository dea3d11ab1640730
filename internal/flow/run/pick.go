package run

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"lockkeeper"
	"lockkeeper/internal/flow"
	"lockkeeper/internal/flow/progress"
)

// pick keeps only the named units and parts of units. Without names it keeps all.
func (p *Pipeline) pick(ctx context.Context, names []string) error {
	p.parts = map[string][]string{}
	if len(names) == 0 {
		return nil
	}
	var whole []string
	for _, name := range names {
		unit, part, err := p.named(ctx, name)
		if err != nil {
			return err
		}
		if part == "" {
			whole = append(whole, unit)
		} else {
			p.parts[unit] = append(p.parts[unit], part)
		}
	}
	for _, unit := range whole {
		delete(p.parts, unit)
	}
	p.units = slices.DeleteFunc(p.units, func(unit string) bool { return !slices.Contains(whole, unit) && p.parts[unit] == nil })
	return p.checkOrder(ctx)
}

// named resolves the name of a unit, or of a part of one.
func (p *Pipeline) named(ctx context.Context, name string) (unit, part string, err error) {
	if slices.Contains(p.units, name) {
		return name, "", nil
	}
	known := slices.Clone(p.units)
	for _, unit := range p.units {
		parts, err := p.partsOf(ctx, unit)
		if err != nil {
			return "", "", err
		}
		part, below := strings.CutPrefix(name, unit+"/")
		if below = below || unit == p.opt.Flow.OneUnit; below && slices.Contains(parts, part) {
			return unit, part, nil
		}
		if below {
			known = nil
			for _, part := range parts {
				known = append(known, workItem{unit: unit, part: part}.name())
			}
			break
		}
	}
	return "", "", &lockkeeper.InputError{Field: "only", Value: name, Reason: "the flow " + p.opt.Flow.Name + " has no such unit, batch, screen or task", Next: "use one of " + strings.Join(known, ", ")}
}

// partsOf lists the known batches and screens of a unit.
func (p *Pipeline) partsOf(ctx context.Context, unit string) (parts []string, err error) {
	for _, s := range p.groups[unit].Screens {
		parts = append(parts, s.Name)
	}
	if p.opt.Tasks != nil {
		for _, t := range p.opt.Tasks.Tasks {
			parts = append(parts, t.Name)
		}
		return parts, nil
	}
	u, err := p.opt.Progress.Unit(ctx, unit)
	if err != nil {
		return nil, err
	}
	for _, b := range u.Batches {
		parts = append(parts, b.ID)
	}
	return parts, nil
}

// checkOrder refuses a part if an earlier part is neither complete nor named, because the run
// would do nothing.
func (p *Pipeline) checkOrder(ctx context.Context) error {
	for unit, parts := range p.parts {
		u, err := p.opt.Progress.Unit(ctx, unit)
		if err != nil {
			return err
		}
		open := p.upcoming(u)
		isOpen := func(id string) bool {
			return slices.ContainsFunc(open, func(b progress.Batch) bool { return b.ID == id })
		}
		for _, b := range open {
			for _, before := range b.After {
				if slices.Contains(parts, b.ID) && isOpen(before) && !slices.Contains(parts, before) {
					name := workItem{unit: unit, part: before}.name()
					return &lockkeeper.InputError{Field: "only", Value: workItem{unit: unit, part: b.ID}.name(), Reason: fmt.Sprintf("it comes after %s, which is not complete", name), Next: "add --only " + name}
				}
			}
		}
	}
	return nil
}

// Agents lists the agents that the run needs; "" is the default agent.
func (p *Pipeline) Agents() []string {
	if p.opt.Tasks == nil {
		return []string{""}
	}
	var names []string
	for _, b := range p.opt.Tasks.Batches("", time.Time{}).Batches {
		if p.wants(workItem{unit: p.opt.Flow.OneUnit, part: b.ID}) && !slices.Contains(names, b.Agent) {
			names = append(names, b.Agent)
		}
	}
	return names
}

// wants reports whether the run includes a piece of work.
func (p *Pipeline) wants(d workItem) bool {
	if p.opt.Wants != nil && !p.opt.Wants(d.unit, d.part) {
		return false
	}
	parts, limited := p.parts[d.unit]
	return slices.Contains(p.units, d.unit) && (!limited || slices.Contains(parts, d.part))
}

// narrow reduces the state of a unit to the parts in the run, and reads the state of its
// screens, which have their own documents.
func (p *Pipeline) narrow(ctx context.Context, u *progress.Unit, s *UnitState) error {
	for _, screen := range p.groups[u.Name].Screens {
		at := slices.IndexFunc(s.Batches, func(b BatchState) bool { return u.Plan == nil && b.ID == screen.Name && b.Item == "" })
		if at < 0 {
			continue
		}
		state, err := p.opt.Progress.Screen(ctx, screen.Module, screen.Controller, screen.Name)
		if err != nil {
			return err
		}
		s.Batches[at].Status = state.Status
	}
	if _, limited := p.parts[u.Name]; limited {
		s.Batches = slices.DeleteFunc(s.Batches, func(b BatchState) bool { return !p.wants(workItem{unit: u.Name, part: b.ID}) })
		if !slices.ContainsFunc(s.Batches, func(b BatchState) bool { return !flow.IsDone(b.Status) }) {
			s.Status, s.Pending = flow.Complete, ""
		}
	}
	s.fail()
	return nil
}

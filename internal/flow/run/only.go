package run

import (
	"context"
	"slices"
	"strings"

	"lockkeeper"
	"lockkeeper/internal/flow"
	"lockkeeper/internal/project/config"
)

// pick keeps only the units and parts of units that are named or match a pattern. Without names it
// keeps all.
func (p *Pipeline) pick(ctx context.Context, names []string) error {
	p.parts = map[string][]string{}
	if len(names) == 0 {
		return nil
	}
	var whole []string
	for _, name := range names {
		matches, err := p.matching(ctx, name)
		if err != nil {
			return err
		}
		for _, w := range matches {
			if w.Part == "" {
				whole = append(whole, w.Unit)
			} else if !slices.Contains(p.parts[w.Unit], w.Part) {
				p.parts[w.Unit] = append(p.parts[w.Unit], w.Part)
			}
		}
	}
	for _, unit := range whole {
		delete(p.parts, unit)
	}
	p.units = slices.DeleteFunc(p.units, func(unit string) bool { return !slices.Contains(whole, unit) && p.parts[unit] == nil })
	return p.checkOrder(ctx)
}

// matching resolves a name, or a pattern such as admin/*, which matches units, or if there is none,
// parts of units.
func (p *Pipeline) matching(ctx context.Context, name string) (list []Work, err error) {
	if !flow.IsPattern(name) || slices.Contains(p.units, name) {
		unit, part, err := p.named(ctx, name)
		return []Work{{Unit: unit, Part: part}}, err
	}
	for _, unit := range p.units {
		if flow.MatchName(name, unit) {
			list = append(list, Work{Unit: unit})
		}
	}
	if len(list) > 0 {
		return list, nil
	}
	for _, unit := range p.units {
		parts, err := p.partsOf(ctx, unit)
		if err != nil {
			return nil, err
		}
		for _, part := range parts {
			w := Work{Unit: unit, Part: part}
			if flow.MatchName(name, w.Name()) || unit == p.opt.Flow.OneUnit && flow.MatchName(name, part) {
				list = append(list, w)
			}
		}
	}
	if len(list) == 0 {
		return nil, &lockkeeper.InputError{Field: "only", Value: name, Reason: "no unit, batch, screen or task of the flow " + p.opt.Flow.Name + " matches this pattern", Next: config.Suggest(strings.Trim(name, "*/"), p.units)}
	}
	return list, nil
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
				known = append(known, Work{Unit: unit, Part: part}.Name())
			}
			break
		}
	}
	return "", "", &lockkeeper.InputError{Field: "only", Value: name, Reason: "the flow " + p.opt.Flow.Name + " has no such unit, batch, screen or task", Next: config.Suggest(name, known)}
}

// partsOf lists the known batches, screens and questions of a unit.
func (p *Pipeline) partsOf(ctx context.Context, unit string) (parts []string, err error) {
	for _, s := range p.groups[unit].Screens {
		parts = append(parts, s.Name)
	}
	u, err := p.opt.Progress.Unit(ctx, unit)
	if err != nil {
		return nil, err
	}
	for _, q := range u.Questions() {
		parts = append(parts, q.ID)
	}
	if p.opt.Tasks != nil {
		for _, t := range p.opt.Tasks.Tasks {
			parts = append(parts, t.Name)
		}
		return parts, nil
	}
	for _, b := range u.Batches {
		parts = append(parts, b.ID)
	}
	return parts, nil
}

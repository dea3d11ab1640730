package flow

import (
	"fmt"
	"slices"
	"strings"
)

// Every edit returns a new, checked plan that is not approved.

// Move moves an item into another batch. The files of a single item are unknown, so the other
// batch gets all targets. An empty batch is removed.
func (p Plan) Move(todo []Decided, item, to string) (Plan, []string, error) {
	from := slices.IndexFunc(p.Batches, func(b Batch) bool { return slices.Contains(b.Items, item) })
	if from < 0 {
		return Plan{}, nil, wrong(item, "in no batch of the plan", "name an item of one of its batches")
	}
	into, err := p.batch(to)
	if err != nil {
		return Plan{}, nil, err
	}
	if from == into {
		return Plan{}, nil, wrong(item, "in batch "+to+" already", "")
	}
	next := p.edited()
	a, b := &next.Batches[from], &next.Batches[into]
	a.Items = slices.DeleteFunc(a.Items, func(id string) bool { return id == item })
	b.Items = append(b.Items, item)
	b.WriteTargets, b.Reads = Targets(b.WriteTargets, a.WriteTargets), joined(b.Reads, a.Reads)
	b.Effort = higher(b.Effort, effortOf(todo, item))
	doubts := p.doubts(p.Batches[from], p.Batches[into], item)
	if len(a.Items) == 0 {
		next.replace(a.ID, to)
		doubts = nil
	}
	next, warnings, err := next.checked(todo)
	return next, append(doubts, warnings...), err
}

// doubts warns about dependencies that may belong to a moved item.
func (p Plan) doubts(from, into Batch, item string) (warnings []string) {
	for _, b := range p.Batches {
		if slices.Contains(b.After, from.ID) && b.ID != into.ID && !slices.Contains(b.After, into.ID) {
			warnings = append(warnings, fmt.Sprintf("batch %[1]s comes after %[2]s; if %[1]s needs item %[3]s, %[1]s must come after %[4]s", b.ID, from.ID, item, into.ID))
		}
	}
	for _, id := range from.After {
		if id != into.ID && !slices.Contains(into.After, id) {
			warnings = append(warnings, fmt.Sprintf("batch %[1]s comes after %[2]s; if item %[3]s needs %[2]s, %[4]s must come after %[2]s", from.ID, id, item, into.ID))
		}
	}
	return warnings
}

// Split moves items of a batch into a new batch after it, with the same targets.
func (p Plan) Split(todo []Decided, batch string, items ...string) (Plan, []string, error) {
	i, err := p.batch(batch)
	if err != nil {
		return Plan{}, nil, err
	}
	for _, item := range items {
		if !slices.Contains(p.Batches[i].Items, item) {
			return Plan{}, nil, wrong(item, "not in batch "+batch, "use one of "+strings.Join(p.Batches[i].Items, ", "))
		}
	}
	next := p.edited()
	rest := slices.DeleteFunc(slices.Clone(p.Batches[i].Items), func(id string) bool { return slices.Contains(items, id) })
	if len(items) == 0 || len(rest) == 0 {
		return Plan{}, nil, wrong(batch, fmt.Sprintf("splitting %d of its %d items off would leave one side empty", len(items), len(p.Batches[i].Items)), "name some of its items, not all")
	}
	taken := copied(p.Batches[i])
	taken.ID = p.freeID()
	taken.Items = slices.DeleteFunc(slices.Clone(p.Batches[i].Items), func(id string) bool { return slices.Contains(rest, id) })
	next.Batches[i].Items = rest
	for _, b := range []*Batch{&next.Batches[i], &taken} {
		b.Effort = effortOf(todo, b.Items...)
		b.Title = strings.Join(descriptions(todo, b.Items), "; ")
	}
	for n := range next.Batches { // batches after the original come after both parts
		if b := &next.Batches[n]; slices.Contains(b.After, batch) {
			b.After = append(b.After, taken.ID)
		}
	}
	next.Batches = slices.Insert(next.Batches, i+1, taken)
	return next.checked(todo)
}

// Merge moves all items and targets of batch b into batch a.
func (p Plan) Merge(todo []Decided, a, b string) (Plan, []string, error) {
	into, err := p.batch(a)
	if err != nil {
		return Plan{}, nil, err
	}
	from, err := p.batch(b)
	if err != nil {
		return Plan{}, nil, err
	}
	if into == from {
		return Plan{}, nil, wrong(a, "cannot be merged with itself", "name another batch")
	}
	next := p.edited()
	to, gone := &next.Batches[into], next.Batches[from]
	to.Title += "; " + gone.Title
	to.Items = append(to.Items, gone.Items...)
	to.WriteTargets, to.Reads = Targets(to.WriteTargets, gone.WriteTargets), joined(to.Reads, gone.Reads)
	to.After = joined(to.After, gone.After)
	to.Effort = higher(to.Effort, gone.Effort)
	next.replace(b, a)
	return next.checked(todo)
}

func (p Plan) batch(id string) (int, error) {
	i := slices.IndexFunc(p.Batches, func(b Batch) bool { return b.ID == id })
	if i < 0 {
		ids := make([]string, len(p.Batches))
		for n, b := range p.Batches {
			ids[n] = b.ID
		}
		return 0, wrong(id, "no batch of the plan", "name one of "+strings.Join(ids, ", "))
	}
	return i, nil
}

func (p Plan) edited() Plan {
	batches := make([]Batch, len(p.Batches))
	for i, b := range p.Batches {
		batches[i] = copied(b)
	}
	return Plan{Batches: batches}
}

// replace removes a batch. The batches that came after it now come after the other one.
func (p *Plan) replace(gone, by string) {
	p.Batches = slices.DeleteFunc(p.Batches, func(b Batch) bool { return b.ID == gone })
	for i := range p.Batches {
		b := &p.Batches[i]
		for n, id := range b.After {
			if id == gone {
				b.After[n] = by
			}
		}
		b.After = slices.DeleteFunc(joined(b.After), func(id string) bool { return id == b.ID })
	}
}

// checked sorts and checks an edited plan.
func (p Plan) checked(todo []Decided) (Plan, []string, error) {
	ordered, err := inOrder(p.Batches)
	if err != nil {
		return Plan{}, nil, err
	}
	p.Batches = ordered
	warnings, err := CheckPlan(p, todo)
	if err != nil {
		return Plan{}, nil, err
	}
	return p, warnings, nil
}

func (p Plan) freeID() string {
	for n := len(p.Batches) + 1; ; n++ {
		if id := fmt.Sprintf("b%d", n); !slices.ContainsFunc(p.Batches, func(b Batch) bool { return b.ID == id }) {
			return id
		}
	}
}

// joined concatenates lists without duplicates.
func joined(lists ...[]string) (all []string) {
	for _, list := range lists {
		for _, s := range list {
			if !slices.Contains(all, s) {
				all = append(all, s)
			}
		}
	}
	return all
}

func higher(a, b Level) Level {
	order := []Level{"", Low, Medium, High}
	return order[max(slices.Index(order, a), slices.Index(order, b), 0)]
}

func effortOf(todo []Decided, items ...string) (effort Level) {
	for _, it := range todo {
		if slices.Contains(items, it.ID) {
			effort = higher(effort, it.Effort)
		}
	}
	return effort
}

func descriptions(todo []Decided, items []string) (texts []string) {
	for _, it := range todo {
		if slices.Contains(items, it.ID) {
			texts = append(texts, it.Description)
		}
	}
	return texts
}

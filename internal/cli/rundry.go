package cli

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"lockkeeper"
	"lockkeeper/internal/dossier"
	"lockkeeper/internal/flow"
	"lockkeeper/internal/pipeline"
)

// foreseen is what a run would do, for a program.
type foreseen struct {
	*pipeline.Forecast
	Held     []heldBatch `json:"held"`
	Untested string      `json:"untested,omitempty"` // what nothing will test
	Refusal  string      `json:"refusal,omitempty"`  // why it would not begin
	Next     string      `json:"next,omitempty"`
}

// heldBatch is a batch that would have to wait now.
type heldBatch struct {
	Batch     string                    `json:"batch"`
	Conflicts []lockkeeper.ConflictInfo `json:"conflicts"`
}

// foresee shows what a run would do.
func (r *flowRun) foresee(ctx context.Context, seen *pipeline.Pipeline) error {
	f, err := seen.Forecast(ctx)
	if err != nil {
		return err
	}
	all := foreseen{Forecast: f, Held: []heldBatch{}}
	for _, b := range f.Batches {
		found, err := r.a.Locks.CheckConflicts(ctx, b.Locks)
		if err != nil {
			return err
		}
		if len(found) > 0 {
			all.Held = append(all.Held, heldBatch{workName(b.Unit, b.ID), found})
		}
	}
	if all.Untested, err = seen.Untested(); err != nil {
		return err
	}
	refusal := r.a.CheckRun(ctx, r.options(), seen)
	if all.Next = r.afterForecast(f); refusal != nil {
		all.Refusal, all.Next = refusal.Error(), ""
	}
	if r.json {
		if err := r.printJSON(all); err != nil || refusal == nil {
			return err
		}
		return &codedError{exit: exitCode(refusal)}
	}
	r.foreseeUnits(f)
	r.foreseeBatches(&all)
	r.foreseeShared(f.Shared)
	rest := "what the rest will cost is not known before the first calls"
	if f.State.Rest > 0 {
		rest = fmt.Sprintf("the rest will cost about $%.2f, by what such phases have cost so far", f.State.Rest)
	}
	fmt.Fprintf(r.Out, "$%.2f spent so far; %s\n", f.State.Spent.USD(), rest)
	if all.Untested != "" {
		fmt.Fprintln(r.Out, "warning: "+clean(all.Untested))
	}
	fmt.Fprintln(r.Out, "nothing was changed")
	if f.Complete == len(f.State.Units) {
		fmt.Fprintln(r.Out, "all is complete: a run would do nothing")
	}
	r.advise(all.Next)
	return refusal
}

// afterForecast is what somebody does next: run it, unless nothing in it would go on by
// itself.
func (r *flowRun) afterForecast(f *pipeline.Forecast) string {
	for _, u := range f.State.Units {
		asked := slices.ContainsFunc(f.Waiting, func(g dossier.Gate) bool { return g.Ref.Unit == u.Name })
		if u.Status != flow.Complete && u.Status != flow.Failed && !asked {
			return r.again()
		}
	}
	return r.nextStep(f.Outcome, false)
}

func (r *flowRun) foreseeUnits(f *pipeline.Forecast) {
	fmt.Fprintf(r.Out, "flow %s: %s; agent %s; sandbox: %s\n", r.flow.Name, counted(len(f.State.Units), "unit"), clean(r.a.AgentTitle()), clean(f.State.Sandbox))
	t := &table{heads: []string{"UNIT", "STATUS", "NEXT"}}
	for _, u := range f.State.Units {
		t.add(clean(u.Name), clean(u.Status), clean(cmp.Or(u.Pending, r.phaseOf(u.Status), "-")))
		if r.flow.Name == flow.Screens().Name {
			for _, b := range u.Batches {
				t.add("  "+clean(b.ID), clean(b.Status), clean(cmp.Or(b.Pending, r.phaseOf(b.Status), "-")))
			}
		}
	}
	t.print(r.Out, r.painter(r.Out))
}

// phaseOf is the phase that a status belongs to; empty: none.
func (r *flowRun) phaseOf(status string) string {
	i := slices.IndexFunc(r.flow.Phases, func(p flow.Phase) bool { return p.Status == status })
	if i < 0 {
		return ""
	}
	return r.flow.Phases[i].Name
}

func (r *flowRun) foreseeBatches(all *foreseen) {
	if len(all.Batches) == 0 {
		return
	}
	t := &table{heads: []string{"BATCH", "NEXT", "WRITES", "CONTENDS WITH"}, wide: 2}
	for _, b := range all.Batches {
		next := b.Next
		if !b.Approved {
			next += ", once approved"
		}
		if len(b.After) > 0 {
			next += ", after " + strings.Join(b.After, ", ")
		}
		t.add(clean(workName(b.Unit, b.ID)), clean(next), clean(strings.Join(b.Writes, ", ")), clean(contenders(b.Contends)))
	}
	t.print(r.Out, r.painter(r.Out))
	for _, h := range all.Held {
		c := h.Conflicts[0]
		fmt.Fprintf(r.Out, "  %s would wait now: %s %s is held by %s since %s\n", clean(h.Batch), c.Mode, clean(c.Path), clean(c.Holder), stamp(c.AcquiredAt))
	}
}

// contenders names each once.
func contenders(list []pipeline.Contention) string {
	var names []string
	for _, c := range list {
		if !slices.Contains(names, c.With) {
			names = append(names, c.With)
		}
	}
	if names == nil {
		return "-"
	}
	return strings.Join(names, ", ")
}

// foreseeShared lists where merges will meet.
func (r *flowRun) foreseeShared(shared []flow.SharedRead) {
	if len(shared) == 0 {
		return
	}
	fmt.Fprintln(r.Out, "files that several screens depend on, where merges will meet:")
	t := &table{heads: []string{"PATH", "SCOPE", "SCREENS"}, wide: 2}
	for _, s := range shared {
		t.add(clean(s.Path), s.Scope, clean(strings.Join(s.Screens, ", ")))
	}
	t.print(r.Out, r.painter(r.Out))
}

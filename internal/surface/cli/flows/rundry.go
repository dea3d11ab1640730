package flows

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"lockkeeper"
	"lockkeeper/internal/flow"
	"lockkeeper/internal/flow/conduct"
	"lockkeeper/internal/flow/progress"
	"lockkeeper/internal/flow/run"
	"lockkeeper/internal/surface/cli/command"
	"lockkeeper/internal/surface/cli/term"
)

type plannedRun struct {
	*run.DryRun
	Held     []heldBatch `json:"held"`
	Untested string      `json:"untested,omitempty"` // the work that has no tests
	Tests    *run.Trial  `json:"tests,omitempty"`    // the tests on the unchanged tree
	Refusal  string      `json:"refusal,omitempty"`  // why the run would not start
	Next     string      `json:"next,omitempty"`
}

// heldBatch is a batch that would have to wait.
type heldBatch struct {
	Batch     string                    `json:"batch"`
	Conflicts []lockkeeper.ConflictInfo `json:"conflicts"`
}

func (r *flowRun) dryRun(ctx context.Context, seen *run.Pipeline) error {
	if warning, err := r.c.Legacy(); err != nil {
		return err
	} else if warning != "" {
		r.Say(warning)
	}
	f, err := seen.DryRun(ctx)
	if err != nil {
		return err
	}
	all := plannedRun{DryRun: f, Held: []heldBatch{}}
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
	refusal := r.c.Check(ctx, seen)
	if all.Next = r.afterDryRun(f); refusal != nil {
		all.Refusal, all.Next = refusal.Error(), ""
	}
	if r.JSON {
		if all.Tests, err = r.tryTests(ctx, f); err != nil {
			return err
		}
		if err := r.PrintJSON(all); err != nil || refusal == nil {
			return err
		}
		return &command.ExitError{Code: command.ExitCode(refusal)}
	}
	r.showUnits(f)
	r.showBatches(&all)
	r.showShared(f.Shared)
	fmt.Fprintf(r.Out, "$%.2f spent so far; %s\n", f.State.Spent.USD(), restText(f.State.Rest))
	if all.Untested != "" {
		fmt.Fprintln(r.Out, "warning: "+term.Clean(all.Untested))
	}
	if all.Tests, err = r.tryTests(ctx, f); err != nil {
		return err
	}
	r.showTrial(all.Tests)
	fmt.Fprintln(r.Out, "nothing changed")
	if f.Complete == len(f.State.Units) {
		fmt.Fprintln(r.Out, "everything is complete: a run would do nothing")
	}
	r.Advise(all.Next)
	return refusal
}

// tryTests runs the tests on the unchanged tree, unless the run would do nothing.
func (r *flowRun) tryTests(ctx context.Context, f *run.DryRun) (t *run.Trial, err error) {
	if r.o.untried || f.Complete == len(f.State.Units) {
		return nil, nil
	}
	err = r.WhileTesting(ctx, func(ctx context.Context, began func([]string)) (err error) {
		t, err = r.c.TryTests(ctx, began)
		return err
	})
	return t, err
}

func (r *flowRun) showTrial(t *run.Trial) {
	if t == nil {
		return
	}
	fmt.Fprintln(r.Out, "tests: "+term.Clean(t.String()))
	for _, line := range t.Last {
		fmt.Fprint(r.Out, "  | "+command.CleanLines(line+"\n"))
	}
	if t.Next != "" {
		fmt.Fprintln(r.Out, "  next: "+term.Clean(t.Next))
	}
	if len(t.ReadOnly) > 0 {
		fmt.Fprintln(r.Out, "warning: commands in the sandbox cannot write "+term.Clean(strings.Join(t.ReadOnly, ", ")))
	}
}

// afterDryRun returns the next step: the run, unless every remaining step needs a decision.
func (r *flowRun) afterDryRun(f *run.DryRun) string {
	for _, u := range f.State.Units {
		asked := slices.ContainsFunc(f.Waiting, func(g progress.Decision) bool { return g.Ref.Unit == u.Name })
		if u.Status != flow.Complete && u.Status != flow.Failed && !asked {
			return r.again()
		}
	}
	return r.nextStep(f.Outcome, false)
}

func (r *flowRun) showUnits(f *run.DryRun) {
	fmt.Fprintf(r.Out, "flow %s: %s; agent %s; sandbox: %s\n", r.flow.Name, term.Counted(len(f.State.Units), "unit"), term.Clean(conduct.AgentTitle(r.a)), term.Clean(f.State.Sandbox))
	t := &term.Table{Heads: []string{"UNIT", "STATUS", "NEXT"}}
	for _, u := range f.State.Units {
		t.Add(term.Clean(u.Name), term.Clean(u.Status), term.Clean(cmp.Or(u.Pending, r.phaseOf(u.Status), "-")))
		if r.flow.HasScreens() {
			for _, b := range u.Batches {
				t.Add("  "+term.Clean(b.ID), term.Clean(b.Status), term.Clean(cmp.Or(b.Pending, r.phaseOf(b.Status), "-")))
			}
		}
	}
	t.Print(r.Out, r.Painter(r.Out))
}

func (r *flowRun) phaseOf(status string) string {
	i := slices.IndexFunc(r.flow.Phases, func(p flow.Phase) bool { return p.Status == status })
	if i < 0 {
		return ""
	}
	return r.flow.Phases[i].Name
}

func (r *flowRun) showBatches(all *plannedRun) {
	if len(all.Batches) == 0 {
		return
	}
	t := &term.Table{Heads: []string{"BATCH", "NEXT", "WRITES", "CONTENDS WITH"}, Wide: 2}
	for _, b := range all.Batches {
		next := b.Next
		if !b.Approved {
			next += ", once approved"
		}
		if len(b.After) > 0 {
			next += ", after " + strings.Join(b.After, ", ")
		}
		t.Add(term.Clean(workName(b.Unit, b.ID)), term.Clean(next), term.Clean(strings.Join(b.Writes, ", ")), term.Clean(contenders(b.Contends)))
	}
	t.Print(r.Out, r.Painter(r.Out))
	for _, h := range all.Held {
		c := h.Conflicts[0]
		fmt.Fprintf(r.Out, "  %s would wait now: %s %s is held by %s since %s\n", term.Clean(h.Batch), c.Mode, term.Clean(c.Path), term.Clean(c.Holder), term.Stamp(c.AcquiredAt))
	}
}

// contenders returns the names of contending batches, each once.
func contenders(list []run.Contention) string {
	var names []string
	for _, c := range list {
		if !slices.Contains(names, c.With) {
			names = append(names, c.With)
		}
	}
	return cmp.Or(strings.Join(names, ", "), "-")
}

// showShared lists the files on which merges will conflict.
func (r *flowRun) showShared(shared []flow.SharedRead) {
	if len(shared) == 0 {
		return
	}
	fmt.Fprintln(r.Out, "files that several screens depend on, where merges can conflict:")
	t := &term.Table{Heads: []string{"PATH", "SCOPE", "SCREENS"}, Wide: 2}
	for _, s := range shared {
		t.Add(term.Clean(s.Path), s.Scope, term.Clean(strings.Join(s.Screens, ", ")))
	}
	t.Print(r.Out, r.Painter(r.Out))
}

package flows

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"syscall"

	"lockkeeper"
	"lockkeeper/internal/flow"
	"lockkeeper/internal/flow/conduct"
	"lockkeeper/internal/flow/progress"
	"lockkeeper/internal/flow/report"
	"lockkeeper/internal/flow/run"
	"lockkeeper/internal/surface/acts"
	"lockkeeper/internal/surface/cli/command"
	"lockkeeper/internal/surface/cli/term"
)

type foreseen struct {
	*run.Forecast
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

func (r *flowRun) foresee(ctx context.Context, seen *run.Pipeline) error {
	if warning, err := r.c.Legacy(); err != nil {
		return err
	} else if warning != "" {
		r.Say(warning)
	}
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
	refusal := r.c.Check(ctx, seen)
	if all.Next = r.afterForecast(f); refusal != nil {
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
	r.foreseeUnits(f)
	r.foreseeBatches(&all)
	r.foreseeShared(f.Shared)
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
func (r *flowRun) tryTests(ctx context.Context, f *run.Forecast) (t *run.Trial, err error) {
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

// afterForecast returns the next step: the run, unless every remaining step needs a decision.
func (r *flowRun) afterForecast(f *run.Forecast) string {
	for _, u := range f.State.Units {
		asked := slices.ContainsFunc(f.Waiting, func(g progress.Decision) bool { return g.Ref.Unit == u.Name })
		if u.Status != flow.Complete && u.Status != flow.Failed && !asked {
			return r.again()
		}
	}
	return r.nextStep(f.Outcome, false)
}

func (r *flowRun) foreseeUnits(f *run.Forecast) {
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

func (r *flowRun) foreseeBatches(all *foreseen) {
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

// foreseeShared lists the files on which merges will conflict.
func (r *flowRun) foreseeShared(shared []flow.SharedRead) {
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

type introduction struct {
	Kind      string   `json:"kind"`
	Flow      string   `json:"flow"`
	Units     []string `json:"units"`
	Agent     string   `json:"agent"`
	Slots     int      `json:"slots"`
	Sandbox   string   `json:"sandbox"`
	BudgetUSD float64  `json:"budget_usd,omitempty"`
	Tokens    int64    `json:"budget_tokens,omitempty"`
	SpentUSD  float64  `json:"spent_usd"`
	Branch    string   `json:"branch,omitempty"`
	Documents string   `json:"documents"`
	Untested  string   `json:"untested,omitempty"`  // the work that has no tests
	Conductor string   `json:"conductor,omitempty"` // another process that runs the flow
}

const unitsNamed = 8

func (r *flowRun) introduce(ctx context.Context, seen *run.Pipeline, conductor string) error {
	spent, err := seen.Refresh()
	if err != nil {
		return err
	}
	c := r.a.Config
	i := introduction{Kind: "begin", Flow: r.flow.Name, Units: seen.Units(), Agent: conduct.AgentTitle(r.a), Slots: r.limits()["claude"], Sandbox: seen.Sandbox(),
		BudgetUSD: r.budget(), Tokens: cmp.Or(r.o.Tokens, int64(c.Run.BudgetTokens)), SpentUSD: spent.USD(),
		Branch: cmp.Or(r.o.Branch, c.Run.Branch), Documents: conduct.DocumentsDir(r.a, r.flow), Conductor: conductor}
	if i.Untested, err = seen.Untested(); err != nil {
		return err
	}
	if r.JSON {
		return r.PrintLine(i)
	}
	fmt.Fprintf(r.Out, "flow %s: %s: %s\n", i.Flow, term.Counted(len(i.Units), "unit"), term.JoinFew(i.Units, unitsNamed, term.Clean))
	fmt.Fprintf(r.Out, "agent %s, %d at once; sandbox: %s\n", term.Clean(i.Agent), i.Slots, term.Clean(i.Sandbox))
	var limits []string
	if i.BudgetUSD > 0 {
		limits = append(limits, fmt.Sprintf("$%.2f", i.BudgetUSD))
	}
	if i.Tokens > 0 {
		limits = append(limits, fmt.Sprintf("%d tokens", i.Tokens))
	}
	budget := cmp.Or(strings.Join(limits, ", "), "no limit")
	fmt.Fprintf(r.Out, "budget: %s, $%.2f spent so far; branch: %s; documents: %s\n", budget, i.SpentUSD, term.Clean(cmp.Or(i.Branch, "current")), term.Clean(i.Documents))
	if i.Untested != "" {
		fmt.Fprintln(r.Out, "warning: "+term.Clean(i.Untested))
	}
	return nil
}

type runOutcome struct {
	Kind string `json:"kind"`
	*run.Outcome
	Landed  int     `json:"landed_files"`
	Batches int     `json:"landed_batches"`
	Gaps    int     `json:"gaps"`
	Bare    int     `json:"untested_batches"`  // landed batches without a test
	Before  int     `json:"as_before_batches"` // landed batches whose tests fail as before the run
	Seconds float64 `json:"seconds"`
	Next    string  `json:"next,omitempty"`

	Prediction *conduct.Prediction `json:"prediction,omitempty"`

	why  string // why the last of these batches was not tested
	what string // what fails in the last batch whose tests fail as before
}

// conclude prints how the run ended and what is next, and returns its exit code. by is the
// signal that ended it, or 0.
func (r *flowRun) conclude(ctx context.Context, out *run.Outcome, by syscall.Signal) error {
	stopped := out.Stopped && out.Complete < len(out.State.Units)
	if err := r.sumUp(ctx, out, r.nextStep(out, stopped)); err != nil {
		return err
	}
	switch {
	case out.Budget != "":
		return &command.ExitError{Code: command.ExitBudget}
	case stopped && by != 0:
		return command.KilledBy(by, nil)
	case out.Failed > 0 || out.Unpushed != "" || out.Baseline != nil && out.Baseline.Stopped:
		return &command.ExitError{Code: command.ExitFailed}
	}
	return nil
}

// nextStep returns the next step after a run, or "" if nothing is left.
func (r *flowRun) nextStep(out *run.Outcome, stopped bool) string {
	switch {
	case out.Budget != "" && strings.Contains(out.Budget, "tokens"):
		return r.again("--tokens", fmt.Sprint(2*out.State.Spent.Tokens))
	case out.Budget != "":
		return r.again("--budget", fmt.Sprintf("%.0f", math.Ceil(out.State.Spent.USD()+max(out.State.Rest, 0.5*out.State.Spent.USD()))))
	case stopped:
		return r.again()
	case slices.ContainsFunc(out.Waiting, func(g progress.Decision) bool { return g.Ref.Kind == progress.FailureKind }):
		return "lockkeeper decide"
	case out.Failed > 0:
		return r.again("--retry")
	case out.Unpushed != "":
		return "git push"
	case len(out.Waiting) > 0:
		return "lockkeeper decide"
	case out.Complete < len(out.State.Units):
		return r.again()
	case len(r.o.Only) > 0:
		return r.command(nil) // the command continues with the rest
	}
	return ""
}

// countGaps counts all gaps of the flow, and the open ones if some have an answer.
func countGaps(all int, open []progress.Decision) string {
	left := 0
	for _, d := range open {
		if d.Ref.Kind == progress.GapKind {
			left++
		}
	}
	if left == all {
		return term.Counted(all, "gap")
	}
	return fmt.Sprintf("%s (%d open)", term.Counted(all, "gap"), left)
}

func (r *flowRun) sumUp(ctx context.Context, out *run.Outcome, next string) error {
	report, err := report.Read(ctx, r.a, r.flow.Name)
	if err != nil {
		return err
	}
	out.Waiting = acts.OrEmpty(out.Waiting)
	sum := runOutcome{Kind: "outcome", Outcome: out, Gaps: len(report.Gaps), Seconds: r.Now().Sub(r.board.began).Seconds(), Next: next}
	sum.count(report)
	if report.Run != nil {
		sum.Prediction = report.Run.Prediction
	}
	if r.JSON {
		return r.PrintLine(sum)
	}
	st := out.State
	complete, failed, all, what := countUnits(out, r.flow)
	fmt.Fprintf(r.Out, "%s: %d of %s complete, %d failed; %s in %s landed, %s; $%.2f, %d tokens, %s; %s\n", r.flow.Name,
		complete, term.Counted(all, what), failed, term.Counted(sum.Landed, "file"), fmt.Sprintf("%d %s", sum.Batches, term.Plural(sum.Batches, "batch", "batches")),
		countGaps(sum.Gaps, out.Waiting), st.Spent.USD(), st.Spent.Tokens, term.Counted(st.Spent.Calls, "call"), term.Span(r.Now().Sub(r.board.began)))
	if sum.Prediction != nil {
		fmt.Fprintln(r.Out, sum.Prediction)
	}
	if sum.Bare > 0 {
		fmt.Fprintln(r.Out, term.Clean(untestedLine(sum.Bare, sum.Batches, sum.why)))
	}
	if b := out.Baseline; b != nil && len(b.Failures) > 0 {
		fmt.Fprintln(r.Out, term.Clean("the tests failed on the unchanged tree, before the first batch: "+b.What()))
	}
	if sum.Before > 0 {
		fmt.Fprintln(r.Out, term.Clean(asBeforeLine(sum.Before, sum.Batches, sum.what)))
	}
	r.failures(ctx, st)
	if out.Budget != "" {
		r.broke(out)
	}
	if out.Unpushed != "" {
		fmt.Fprintln(r.Out, term.Clean("everything is committed here, but not all of it is at the git server: "+out.Unpushed))
	}
	if asked := countDecisions(out.Waiting); asked != "" {
		fmt.Fprintf(r.Out, "%s\n", asked)
	}
	if out.Stopped && next != "" {
		fmt.Fprintln(r.Out, "stopped: nothing is lost, and unfinished work is queued again")
	}
	r.Advise(next)
	return nil
}

func (o *runOutcome) count(report *report.Report) {
	for b := range landedBatches(report) {
		o.Landed += len(b.Files)
		o.Batches++
		if b.LandedUntested() {
			o.Bare, o.why = o.Bare+1, b.Untested
		}
		if b.LandedAsBefore() {
			o.Before, o.what = o.Before+1, b.AsBefore
		}
	}
}

// broke prints what an exceeded budget means.
func (r *flowRun) broke(out *run.Outcome) {
	fmt.Fprintf(r.Out, "the budget is %s\n", term.Clean(out.Budget))
	finished := "no agent was running then"
	if names := r.board.finished; len(names) > 0 {
		finished = "finished since then: " + term.Clean(strings.Join(names, ", "))
	}
	fmt.Fprintf(r.Out, "  %s\n", finished)
	fmt.Fprintf(r.Out, "  %s; queued work stays queued\n", restText(out.State.Rest))
}

// restText describes the estimated dollars that a run still needs; 0: unknown.
func restText(usd float64) string {
	if usd == 0 {
		return "the remaining cost is unknown"
	}
	return fmt.Sprintf("the rest will cost about $%.2f, estimated from earlier phases", usd)
}

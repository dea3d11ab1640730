package flows

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"syscall"

	"lockkeeper/internal/flow"
	"lockkeeper/internal/flow/conduct"
	"lockkeeper/internal/flow/progress"
	"lockkeeper/internal/flow/report"
	"lockkeeper/internal/flow/run"
	"lockkeeper/internal/surface/acts"
	"lockkeeper/internal/surface/cli/command"
	"lockkeeper/internal/surface/cli/term"
)

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

func (r *flowRun) introduce(seen *run.Pipeline, conductor string) error {
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

// countUnits counts tasks in a flow of tasks, and units otherwise. All tasks are one unit,
// which is complete only at the end.
func countUnits(out *run.Outcome, of flow.Flow) (complete, failed, all int, what string) {
	if of.OneUnit == "" {
		return out.Complete, out.Failed, len(out.State.Units), of.Counted
	}
	for _, u := range out.State.Units {
		all += len(u.Batches)
		for _, b := range u.Batches {
			switch b.Status {
			case flow.Complete, flow.NoChange:
				complete++
			case flow.Failed:
				failed++
			}
		}
	}
	return complete, failed, all, of.Counted
}

package flows

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"strings"
	"syscall"

	"lockkeeper/internal/flow"
	"lockkeeper/internal/flow/conduct"
	"lockkeeper/internal/flow/report"
	"lockkeeper/internal/flow/run"
	"lockkeeper/internal/surface/cli/command"
	"lockkeeper/internal/surface/cli/term"
)

// introduction describes a run at its start.
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
	Untested  string   `json:"untested,omitempty"`  // what has no tests
	Conductor string   `json:"conductor,omitempty"` // another process that runs it
}

// unitsNamed is how many units the first lines name.
const unitsNamed = 8

// introduce prints what runs, and with which settings.
func (r *flowRun) introduce(ctx context.Context, seen *run.Pipeline, conductor string) error {
	at, err := seen.Outcome(ctx)
	if err != nil {
		return err
	}
	c := r.a.Config
	i := introduction{Kind: "begin", Flow: r.flow.Name, Units: seen.Units(), Agent: conduct.AgentTitle(r.a), Slots: r.limits()["claude"], Sandbox: at.State.Sandbox,
		BudgetUSD: r.budget(), Tokens: cmp.Or(r.o.Tokens, int64(c.Run.BudgetTokens)), SpentUSD: at.State.Spent.USD(),
		Branch: cmp.Or(r.o.Branch, c.Run.Branch), Documents: conduct.DocumentsDir(r.a, r.flow), Conductor: conductor}
	if i.Untested, err = seen.Untested(); err != nil {
		return err
	}
	if r.JSON {
		return r.PrintLine(i)
	}
	units := i.Units[:min(len(i.Units), unitsNamed)]
	names := term.Clean(strings.Join(units, ", "))
	if more := len(i.Units) - len(units); more > 0 {
		names += fmt.Sprintf(" and %d more", more)
	}
	fmt.Fprintf(r.Out, "flow %s: %s: %s\n", i.Flow, term.Counted(len(i.Units), "unit"), names)
	fmt.Fprintf(r.Out, "agent %s, %d at once; sandbox: %s\n", term.Clean(i.Agent), i.Slots, term.Clean(i.Sandbox))
	budget := "no limit"
	var limits []string
	if i.BudgetUSD > 0 {
		limits = append(limits, fmt.Sprintf("$%.2f", i.BudgetUSD))
	}
	if i.Tokens > 0 {
		limits = append(limits, fmt.Sprintf("%d tokens", i.Tokens))
	}
	if limits != nil {
		budget = strings.Join(limits, ", ")
	}
	fmt.Fprintf(r.Out, "budget: %s, $%.2f spent so far; branch: %s; documents: %s\n", budget, i.SpentUSD, term.Clean(cmp.Or(i.Branch, "current")), term.Clean(i.Documents))
	if i.Untested != "" {
		fmt.Fprintln(r.Out, "warning: "+term.Clean(i.Untested))
	}
	return nil
}

// runOutcome is how a run ended, as JSON.
type runOutcome struct {
	Kind string `json:"kind"`
	*run.Outcome
	Landed  int     `json:"landed_files"`
	Batches int     `json:"landed_batches"`
	Gaps    int     `json:"gaps"`
	Bare    int     `json:"untested_batches"` // landed batches without a test
	Seconds float64 `json:"seconds"`
	Next    string  `json:"next,omitempty"`

	why string // the last untested batch was not tested
}

// untestedLine reports batches that landed without a test.
func untestedLine(untested, landed int, why string) string {
	if untested == landed {
		return "nothing was tested: " + why
	}
	return fmt.Sprintf("%d of %d %s not tested: %s", untested, landed, term.Plural(untested, "batch was", "batches were"), why)
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
	case out.Failed > 0:
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
	case out.Failed > 0:
		return r.again("--retry")
	case len(out.Waiting) > 0:
		return "lockkeeper decide"
	case out.Complete < len(out.State.Units):
		return r.again()
	case len(r.o.Only) > 0:
		return r.command(nil) // continue with the rest
	}
	return ""
}

// sumUp prints the end of a run.
func (r *flowRun) sumUp(ctx context.Context, out *run.Outcome, next string) error {
	report, err := report.Read(ctx, r.a, r.flow.Name)
	if err != nil {
		return err
	}
	out.Waiting = command.ListOf(out.Waiting)
	sum := runOutcome{Kind: "outcome", Outcome: out, Gaps: len(report.Gaps), Seconds: r.Now().Sub(r.board.began).Seconds(), Next: next}
	sum.count(report)
	if r.JSON {
		return r.PrintLine(sum)
	}
	st := out.State
	complete, failed, all, what := countUnits(out, r.flow)
	fmt.Fprintf(r.Out, "%s: %d of %s complete, %d failed; %s in %s landed, %s; $%.2f, %d tokens, %s; %s\n", r.flow.Name,
		complete, term.Counted(all, what), failed, term.Counted(sum.Landed, "file"), fmt.Sprintf("%d %s", sum.Batches, term.Plural(sum.Batches, "batch", "batches")),
		term.Counted(sum.Gaps, "gap"), st.Spent.USD(), st.Spent.Tokens, term.Counted(st.Spent.Calls, "call"), term.Span(r.Now().Sub(r.board.began)))
	if sum.Bare > 0 {
		fmt.Fprintln(r.Out, term.Clean(untestedLine(sum.Bare, sum.Batches, sum.why)))
	}
	r.failures(st)
	if out.Budget != "" {
		r.broke(out)
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

// count counts the landed files and batches.
func (o *runOutcome) count(report *report.Report) {
	for _, u := range report.Units {
		for _, b := range u.Batches {
			if b.Landed != nil && b.Landed.Undone == nil && b.Status != flow.NoChange {
				o.Landed += len(b.Files)
				o.Batches++
				if b.LandedUntested() {
					o.Bare, o.why = o.Bare+1, b.Untested
				}
			}
		}
	}
}

// failures prints the failed work with the reasons.
func (r *flowRun) failures(st *run.State) {
	for _, u := range st.Units {
		inBatch := false
		for _, b := range u.Batches {
			if b.Status == flow.Failed {
				inBatch = true
				r.failure(workName(u.Name, b.ID), b.Item, b.Error)
			}
		}
		if u.Status == flow.Failed && !inBatch {
			r.failure(u.Name, u.Item, u.Error)
		}
	}
}

func (r *flowRun) failure(name, item, reason string) {
	reason, _, _ = command.CutNext(firstLine(reason))
	if item != "" {
		name += " (" + item + ")"
	}
	fmt.Fprintf(r.Out, "  %s %s: %s\n", r.Painter(r.Out)(term.Red, "failed"), term.Clean(name), term.Clean(reason))
}

// broke prints what an exceeded budget means.
func (r *flowRun) broke(out *run.Outcome) {
	fmt.Fprintf(r.Out, "the budget is %s\n", term.Clean(out.Budget))
	finished := "no agent was running then"
	if names := r.board.finished; len(names) > 0 {
		finished = "finished since then: " + term.Clean(strings.Join(names, ", "))
	}
	fmt.Fprintf(r.Out, "  %s\n", finished)
	rest := "the remaining cost is unknown"
	if out.State.Rest > 0 {
		rest = fmt.Sprintf("the rest will cost about $%.2f, estimated from earlier phases", out.State.Rest)
	}
	fmt.Fprintf(r.Out, "  %s; queued work stays queued\n", rest)
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

package demo

import (
	"context"
	"fmt"
	"math"
	"os/exec"

	"lockkeeper"
	"lockkeeper/internal/agent"
	"lockkeeper/internal/encoding/shellword"
	"lockkeeper/internal/flow"
	"lockkeeper/internal/flow/report"
	"lockkeeper/internal/job"
	"lockkeeper/internal/project"
	"lockkeeper/internal/surface/cli/command"
	"lockkeeper/internal/surface/cli/term"
)

// paidPolicy leaves no question to anybody.
const paidPolicy = demoPolicy + ",topics=reject"

// mayPay asks before money is spent.
func (p *program) mayPay(o demoOptions) error {
	if _, err := exec.LookPath("claude"); err != nil {
		return &lockkeeper.InputError{Field: "claude", Reason: "there is no program claude in PATH", Next: "install Claude Code and sign in, or leave --claude out"}
	}
	if o.yes {
		return nil
	}
	if !p.Attended() {
		return &lockkeeper.InputError{Field: "yes", Reason: fmt.Sprintf("claude may spend up to $%g, and nobody can be asked here", o.budget), Next: "lockkeeper demo --claude --yes"}
	}
	return p.Confirm("demo --claude", fmt.Sprintf("claude works on a sample application, on your account, and may spend up to $%g.", o.budget), "yes")
}

// payRun lets claude do the work, as far as the budget goes. When it does not come to its
// end, what came of it is shown all the same.
func (w *walk) payRun(ctx context.Context) error {
	w.chapter("claude hardens four controllers at once.",
		"Each is analysed, its changes are planned, and each batch of changes is made in a copy of",
		"the application, tested, verified and landed, under locks on the files that it writes.")
	run, err := w.through(ctx, "--auto-decide", paidPolicy, "--budget", w.opt.budget.String())
	if err != nil {
		return err
	}
	var done *report.Report
	err = w.inside(ctx, func(a *project.Project) (err error) {
		done, err = report.Read(ctx, a, flow.Controllers().Name)
		return err
	})
	if err != nil {
		return err
	}
	w.paid = &done.Cost
	if run.err != nil {
		w.short = w.shortfall(run, done)
	}
	return nil
}

// shortfall is why a run of claude did not come to its end. What was paid for is left, and
// the next step goes on there.
func (w *walk) shortfall(run *conductor, done *report.Report) error {
	complete := 0
	for _, u := range done.Units {
		if u.Status == flow.Complete {
			complete++
		}
	}
	spent := done.Cost.USD
	w.opt.keep = w.opt.keep || spent > 0
	reached := fmt.Sprintf("%s complete, $%.2f of $%g spent", term.Counted(complete, "controller"), spent, w.opt.budget)
	switch {
	case run.cmd.ProcessState.ExitCode() == command.ExitBudget:
		more := math.Ceil(2 * max(spent, float64(w.opt.budget)))
		return &agent.BudgetError{Reason: "used up: " + reached, Next: w.goOnWith("--budget", fmt.Sprint(more))}
	case len(done.Failures) == 0:
		return run.failure("it failed")
	}
	first := done.Failures[0]
	reason, next, _ := command.CutNext(first.Reason)
	if !w.opt.keep {
		reason, _, _ = command.CutLast(reason, job.OutputSep) // which is removed with the rest
	} else {
		next = w.goOnWith("--budget", w.opt.budget.String(), "--retry")
	}
	return lockkeeper.WithNext(fmt.Errorf("%s failed, first %s: %s; %s", term.Counted(len(done.Failures), "item"), first.Work, reason, reached), next)
}

// goOnWith is the command that goes on with a run in the directory that is left.
func (w *walk) goOnWith(flags ...string) string {
	run := shellword.Join(append([]string{"lockkeeper", "run", "--auto-decide", paidPolicy}, flags...))
	return fmt.Sprintf("cd %s && XDG_STATE_HOME=%s %s", shellword.Join([]string{w.dir}), shellword.Join([]string{w.base}), run)
}

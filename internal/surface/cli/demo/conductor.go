package demo

import (
	"context"
	"fmt"
	"math"
	"os/exec"
	"strings"

	"github.com/spf13/cobra"

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

type program struct{ *command.Program }

func Commands(core *command.Program) []*cobra.Command {
	p := &program{core}
	return []*cobra.Command{p.demoCommand()}
}

// conductor is a run in the background, shown line by line.
type conductor struct {
	cmd   *exec.Cmd
	ended chan struct{}
	// These fields are set after the run has ended.
	err  error
	last []string // last lines of output
}

// failure returns why a run ended too early.
func (c *conductor) failure(reason string) error {
	return fmt.Errorf("%s: %s (%v): %s", shellword.Join(c.cmd.Args), reason, c.cmd.ProcessState, strings.Join(c.last, "; "))
}

// paidPolicy leaves no decision to a person.
const paidPolicy = demoPolicy + ",topics=reject"

// mayPay asks before money is spent.
func (p *program) mayPay(o demoOptions) error {
	if _, err := exec.LookPath("claude"); err != nil {
		return &lockkeeper.InputError{Field: "claude", Reason: "no program claude in PATH", Next: "install Claude Code and log in, or omit --claude"}
	}
	if o.yes {
		return nil
	}
	if !p.Attended() {
		return &lockkeeper.InputError{Field: "yes", Reason: fmt.Sprintf("claude may spend up to $%g, and this is not a terminal", o.budget), Next: "lockkeeper demo --claude --yes"}
	}
	return p.Agree("demo --claude", fmt.Sprintf("claude works on a sample application, on your account, and may spend up to $%g.", o.budget))
}

// payRun lets claude do the work, up to the budget. If it does not finish, the result is shown
// anyway.
func (w *walk) payRun(ctx context.Context) error {
	w.chapter("claude hardens four controllers at once.",
		"Each is analyzed and its changes are planned. Each batch of changes is made in a private",
		"workspace, tested, verified and landed, under locks on the files that it writes.")
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

// shortfall returns why a run of claude did not finish. The directory is kept, and the next
// step resumes there.
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
		return &agent.BudgetError{Reason: "used up: " + reached, Next: w.resumeWith("--budget", fmt.Sprint(more))}
	case len(done.Failures) == 0:
		return run.failure("it failed")
	}
	first := done.Failures[0]
	reason, next, _ := command.CutNext(first.Reason)
	if !w.opt.keep {
		reason, _, _ = command.CutLast(reason, job.OutputSep) // the output is removed with the directory
	} else {
		next = w.resumeWith("--budget", w.opt.budget.String(), "--retry")
	}
	return lockkeeper.WithNext(fmt.Errorf("%s failed, first %s: %s; %s", term.Counted(len(done.Failures), "item"), first.Work, reason, reached), next)
}

// resumeWith returns the command that resumes the run in the kept directory.
func (w *walk) resumeWith(flags ...string) string {
	run := shellword.Join(append([]string{"lockkeeper", "run", "--auto-decide", paidPolicy}, flags...))
	return fmt.Sprintf("cd %s && XDG_STATE_HOME=%s %s", shellword.Join([]string{w.dir}), shellword.Join([]string{w.base}), run)
}

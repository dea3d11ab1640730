package locks

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"lockkeeper"
	"lockkeeper/internal/job"
	"lockkeeper/internal/machine/process"
	"lockkeeper/internal/project"
	"lockkeeper/internal/surface/cli/command"
	"lockkeeper/internal/surface/cli/term"
	"lockkeeper/lock"
	"lockkeeper/store"
)

func (p *program) execCommand() *cobra.Command {
	var r request
	cmd := &cobra.Command{
		Use:   "exec -- COMMAND…",
		Short: "Run a command under locks",
		Long: `Acquire locks, run a command, and release the locks when it ends. While it runs,
the grant is renewed and signals are passed on to the command. Its exit code
becomes the exit code. If the grant is lost, the command is stopped and the exit code
is 125, as it is if the locks cannot be released. It is 126 if the command cannot be
executed, and 127 if it is not found. No process that the command started outlives the
locks. LOCKKEEPER_GRANT in its environment is the id of the grant.

Exit codes 3, 4 and 6 mean blocked, timed out and over-lock only if lockkeeper itself
prints such a line. The command was then never started.`,
		Example: `  lockkeeper lock exec --write app/user.rb --wait 5m -- claude -p "fix the user model"
  lockkeeper lock exec --holder ci --read . -- make test`,
		Args: p.AfterDashes,
		RunE: func(cmd *cobra.Command, argv []string) error {
			return p.With(cmd.Context(), func(a *project.Project) error { return p.exec(cmd, a, r, argv) })
		},
	}
	r.flags(cmd.Flags())
	cmd.Flags().SetInterspersed(false) // flags after the command are the command's
	return cmd
}

func (p *program) exec(cmd *cobra.Command, a *project.Project, r request, argv []string) error {
	req, err := r.build(p, cmd, a, "nothing was run")
	if err != nil {
		return err
	}
	return p.execUnder(cmd.Context(), a, req, time.Duration(r.wait), argv)
}

// execUnder acquires the request, runs a command under the grant, and releases it.
func (p *program) execUnder(ctx context.Context, a *project.Project, req lockkeeper.Request, wait time.Duration, argv []string) error {
	self, err := process.Self()
	if err != nil {
		return err
	}
	req.Process = &self
	// Signals end the wait. Once the command runs, it gets them, and listening here keeps
	// them from ending this process before the release.
	waiting, stop := command.Interruptible(ctx)
	defer stop()
	g, err := p.Take(waiting, a, req, wait, a.Hold)
	if err != nil {
		return err
	}
	return p.runUnder(ctx, waiting, a, g, argv)
}

// runUnder runs a command under a grant that this process holds, and releases it. A signal
// that ended waiting before the command started ends both.
func (p *program) runUnder(ctx, waiting context.Context, a *project.Project, g *lock.Grant, argv []string) error {
	g.Keep()
	p.reap(a)
	var end Ending
	end.Code, end.Err = a.Host.Run(g.Context(), process.Command{
		Argv: argv, Dir: p.Base(), Env: p.Env, Stdin: p.In, Stdout: p.Out.File, Stderr: p.Err,
		Grant: g.ID, Foreground: true, KillAfter: job.KillAfter(g),
		Killed: func(by syscall.Signal) { end.By = by },
		Started: func(group lockkeeper.Process) error {
			if waiting.Err() != nil { // the signal came after the wait and before the command
				return context.Cause(waiting)
			}
			_, err := a.Locks.SetProcess(ctx, g.ID, g.Token, group)
			return err
		},
	})
	return p.finish(ctx, a, g, end)
}

// Ending is how a command ended: with a code, by a signal, or with an error of the
// supervisor.
type Ending struct {
	Code int
	By   syscall.Signal
	Err  error
}

// reap releases abandoned locks while the command runs.
func (p *program) reap(a *project.Project) {
	var once sync.Once
	a.Locks.StartReaper(a.Config.ReaperInterval, func(err error) {
		once.Do(func() { p.Say("cannot look for abandoned locks: " + err.Error()) })
	})
}

// finish releases the grant and returns how the command ended.
func (p *program) finish(ctx context.Context, a *project.Project, g *lock.Grant, end Ending) error {
	code, err := end.Code, end.Err
	lost := context.Cause(g.Context())
	if lost == nil && end.By == syscall.SIGKILL { // a force-release also kills the command
		lost = g.Live(ctx)
	}
	var left *process.LeftoversError
	var early *command.InterruptedError // before the command started
	if errors.As(err, &left) {
		// The grant stays held until a recovery, after this process, finds the command's processes gone.
		return &command.ExitError{Code: command.ExitFailed, Err: err}
	}
	released := g.Release(ctx)
	if released == nil {
		p.landDue(ctx, a)
	}
	switch {
	case lost != nil:
		return &command.ExitError{Code: command.ExitLost, Err: p.whyLost(ctx, a, g, lost)}
	case lockkeeper.CodeOf(err) == lockkeeper.CodeNotHeld:
		return &command.ExitError{Code: command.ExitLost, Err: p.whyLost(ctx, a, g, err)}
	case errors.As(err, &early):
		return command.KilledBy(early.Signal, early)
	case err != nil && (code == process.ExitNotFound || code == process.ExitNotExecutable):
		return &command.ExitError{Code: code, Err: err}
	case err != nil:
		return &command.ExitError{Code: command.ExitFailed, Err: err}
	case released != nil:
		return &command.ExitError{Code: command.ExitLost, Err: fmt.Errorf("the command ended with %d, but its grant could not be released: %w", code, released)}
	}
	switch {
	case code == 0:
		return nil
	case end.By == syscall.SIGINT || end.By == syscall.SIGTERM:
		return command.KilledBy(end.By, nil)
	}
	return &command.ExitError{Code: code}
}

// whyLost adds to the loss of a grant who released it, if the audit trail has that.
func (p *program) whyLost(ctx context.Context, a *project.Project, g *lock.Grant, cause error) error {
	message := fmt.Sprintf("the grant of %s was lost while the command ran, so the command was stopped: %v", g.Holder, cause)
	events, err := a.Locks.Events(ctx, store.EventQuery{Latest: true, Limit: command.PageSize})
	if err != nil {
		return errors.New(message)
	}
	for _, ev := range events {
		switch ev.Kind {
		case lockkeeper.EventRevoking, lockkeeper.EventForceReleased, lockkeeper.EventExpired, lockkeeper.EventRecovered, lockkeeper.EventReleased:
			if ev.GrantID == g.ID {
				did := command.Words(ev.Kind)
				if ev.Kind == lockkeeper.EventRevoking {
					did = "revoked"
				}
				return lockkeeper.WithNext(fmt.Errorf("%s; it was %s by %s at %s: %s", message, did, ev.Actor.Name, term.Stamp(ev.At), ev.Reason), "lockkeeper why "+g.ID)
			}
		}
	}
	return errors.New(message)
}

package locks

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"lockkeeper"
	"lockkeeper/internal/machine/process"
	"lockkeeper/internal/project"
	"lockkeeper/internal/session"
	"lockkeeper/internal/surface/cli/command"
	"lockkeeper/internal/surface/cli/term"
	"lockkeeper/internal/surface/view"
	"lockkeeper/lock"
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
		RunE: p.OnProject(func(cmd *cobra.Command, a *project.Project, argv []string) error { return p.exec(cmd, a, r, argv) }),
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
	return ExecUnder(cmd.Context(), p.Program, a, req, time.Duration(r.wait), argv)
}

// ExecUnder acquires the request, runs a command under the grant, and releases it.
func ExecUnder(ctx context.Context, p *command.Program, a *project.Project, req lockkeeper.Request, wait time.Duration, argv []string) error {
	self, err := process.Self()
	if err != nil {
		return err
	}
	req.Process, req.Kept = &self, true
	// Signals end the wait. Once the command runs, it gets them, and listening here keeps
	// them from ending this process before the release.
	waiting, stop := command.Interruptible(ctx)
	defer stop()
	g, err := p.Take(waiting, a, req, wait, a.Hold)
	if err != nil {
		return err
	}
	return RunUnder(ctx, waiting, p, a, g, argv)
}

// RunUnder runs a command under a grant that this process holds, and releases it. A signal
// that ended waiting before the command started ends both.
func RunUnder(ctx, waiting context.Context, p *command.Program, a *project.Project, g *lock.Grant, argv []string) error {
	g.Keep()
	var once sync.Once
	a.Locks.StartReaper(a.Config.ReaperInterval, func(err error) {
		once.Do(func() { p.Say("cannot look for abandoned locks: " + err.Error()) })
	})
	var end Ending
	unshare, err := a.ShareOperation(ctx, g)
	if err != nil {
		return errors.Join(err, g.Release(context.WithoutCancel(ctx)))
	}
	end.Err = session.Open(a).Watched(ctx, watcher(p, g), func(context.Context) (err error) {
		end.Code, err = a.Host.Run(g.Context(), process.Command{
			Argv: argv, Dir: p.Base(), Env: p.Env, Stdin: p.In, Stdout: p.Out.File, Stderr: p.Err,
			Grant: g.ID, Foreground: true, KillAfter: g.KillAfter(),
			Killed: func(by syscall.Signal) { end.By = by },
			Started: func(group lockkeeper.Process) error {
				if waiting.Err() != nil { // the signal came after the wait and before the command
					return context.Cause(waiting)
				}
				return g.SetProcess(ctx, group)
			},
		})
		return err
	})
	if err := unshare(); err != nil {
		p.Say("cannot remove the token of the ended grant: " + err.Error())
	}
	return finish(ctx, p, a, g, end)
}

// watcher tells the person at the terminal that another program changed a file of the grant.
func watcher(p *command.Program, g *lock.Grant) session.Watcher {
	return session.Watcher{
		Failed: func(err error) { p.Say("cannot compare the files that are held: " + lockkeeper.Message(err)) },
		Changed: func(c session.HeldChange) {
			if c.GrantID == g.ID && c.Doubt == "" {
				p.Say(c.String())
			}
		},
	}
}

// Ending is how a command ended: with a code, by a signal, or with an error of the
// supervisor.
type Ending struct {
	Code int
	By   syscall.Signal
	Err  error
}

// Result returns the error that ends the program like the command. name names the lock of the
// command, lost says that the lock was lost meanwhile, and released is the error of its release.
func (e Ending) Result(name string, lost, released error) error {
	early, interrupted := errors.AsType[*command.InterruptedError](e.Err) // the signal came before the command started
	switch {
	case lost != nil:
		return &command.ExitError{Code: command.ExitLost, Err: lost}
	case interrupted:
		return command.KilledBy(early.Signal, early)
	case e.Err != nil && (e.Code == process.ExitNotFound || e.Code == process.ExitNotExecutable):
		return &command.ExitError{Code: e.Code, Err: e.Err}
	case e.Err != nil:
		return &command.ExitError{Code: command.ExitFailed, Err: e.Err}
	case released != nil:
		return &command.ExitError{Code: command.ExitLost, Err: fmt.Errorf("the command ended with %d, but its %s could not be released: %w", e.Code, name, released)}
	case e.Code == 0:
		return nil
	case e.By == syscall.SIGINT || e.By == syscall.SIGTERM:
		return command.KilledBy(e.By, nil)
	}
	return &command.ExitError{Code: e.Code}
}

// finish releases the grant and returns how the command ended.
func finish(ctx context.Context, p *command.Program, a *project.Project, g *lock.Grant, end Ending) error {
	lost := context.Cause(g.Context())
	if lost == nil && end.By == syscall.SIGKILL { // a force-release also kills the command
		lost = g.Live(ctx)
	}
	if _, left := errors.AsType[*process.LeftoversError](end.Err); left {
		// The grant stays held. After this process exits, a recovery releases it once the command's processes are gone.
		return &command.ExitError{Code: command.ExitFailed, Err: end.Err}
	}
	released := g.Release(ctx)
	if released == nil {
		landDue(ctx, p, a)
	}
	if lost == nil && lockkeeper.CodeOf(end.Err) == lockkeeper.CodeNotHeld {
		lost = end.Err
	}
	if lost != nil {
		lost = whyLost(ctx, a, g, lost)
	}
	return end.Result("grant", lost, released)
}

// whyLost adds to the loss of a grant who released it, if the audit trail has that.
func whyLost(ctx context.Context, a *project.Project, g *lock.Grant, cause error) error {
	message := fmt.Sprintf("the grant of %s was lost while the command ran, so the command was stopped: %v", g.Holder, cause)
	ends := []lockkeeper.EventKind{lockkeeper.EventRevoking, lockkeeper.EventForceReleased, lockkeeper.EventExpired, lockkeeper.EventRecovered, lockkeeper.EventReleased}
	lines, err := view.New(a).Recent(ctx, 1, 0, func(ev lockkeeper.Event) bool { return ev.GrantID == g.ID && slices.Contains(ends, ev.Kind) })
	if err != nil || len(lines) == 0 {
		return errors.New(message)
	}
	ev, did := lines[0].Event, lines[0].What
	if ev.Kind == lockkeeper.EventRevoking {
		did = "revoked"
	}
	message = fmt.Sprintf("%s; it was %s by %s at %s", message, did, ev.Actor.Name, term.Stamp(ev.At))
	if ev.Reason != "" {
		message += ": " + ev.Reason
	}
	return lockkeeper.WithNext(errors.New(message), "lockkeeper why "+lockkeeper.ShortID(g.ID))
}

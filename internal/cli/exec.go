package cli

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
	"lockkeeper/internal/app"
	"lockkeeper/internal/process"
	"lockkeeper/lock"
)

func (p *program) execCommand() *cobra.Command {
	var r request
	cmd := &cobra.Command{
		Use:   "exec -- COMMAND…",
		Short: "Run a command under locks",
		Long: `Take locks, run a command, and give the locks back however it ends. While it
runs the grant is kept alive; signals are passed on to it; its exit code is the
exit code. When the grant is lost, the command is ended and the exit code is
125, as when the locks cannot be given back. A command that cannot be executed is 126, one that is not found 127.
Nothing the command started outlives the locks. LOCKKEEPER_GRANT in its
environment is the id of the grant.

Exit codes 3, 4 and 6 mean blocked, timed out and over-lock only when a line of
lockkeeper itself says so: then the command was never started.`,
		Example: `  lockkeeper lock exec --write app/user.rb --wait 5m -- claude -p "fix the user model"
  lockkeeper lock exec --holder ci --read . -- make test`,
		Args: p.afterDashes,
		RunE: func(cmd *cobra.Command, argv []string) error {
			return p.with(cmd.Context(), func(a *app.App) error { return p.exec(cmd, a, r, argv) })
		},
	}
	r.flags(cmd.Flags())
	cmd.Flags().SetInterspersed(false) // what follows the command's name is its own
	return cmd
}

// afterDashes takes a command to run, which must stand after --.
func (p *program) afterDashes(cmd *cobra.Command, args []string) error {
	switch {
	case len(args) == 0 || args[0] == "":
		return usage(cmd, "needs a command to run, after --")
	case cmd.ArgsLenAtDash() != 0:
		own := p.args[:len(p.args)-len(args)]
		return &lockkeeper.InputError{Field: "command", Value: args[0], Reason: "not preceded by --, so flags of lockkeeper and of the command cannot be told apart",
			Next: typed(slices.Concat([]string{"lockkeeper"}, own, []string{"--"}, args))}
	}
	return nil
}

func (p *program) exec(cmd *cobra.Command, a *app.App, r request, argv []string) error {
	req, err := r.build(p, cmd, a, "nothing was run")
	if err != nil {
		return err
	}
	return p.execUnder(cmd.Context(), a, req, time.Duration(r.wait), argv)
}

// execUnder takes what is asked for, runs a command under it, and gives it back.
func (p *program) execUnder(ctx context.Context, a *app.App, req lockkeeper.Request, wait time.Duration, argv []string) error {
	self, err := process.Self()
	if err != nil {
		return err
	}
	req.Process = &self
	// Signals end the waiting. Once the command runs it is the one that gets
	// them, while this listening keeps them from ending us before the release.
	waiting, stop := interruptible(ctx)
	defer stop()
	g, err := p.take(waiting, a, req, wait, a.Hold)
	if err != nil {
		return err
	}
	return p.runUnder(ctx, waiting, a, g, argv)
}

// runUnder runs a command under a grant that this process holds, and gives it back.
// A signal that ended waiting before the command began ends all of it.
func (p *program) runUnder(ctx, waiting context.Context, a *app.App, g *lock.Grant, argv []string) error {
	g.Keep()
	p.reap(a)
	var end ending
	end.code, end.err = a.Host.Run(g.Context(), process.Command{
		Argv: argv, Dir: p.base(), Env: p.Env, Stdin: p.In, Stdout: p.Out.file, Stderr: p.Err,
		Grant: g.ID, Foreground: true, KillAfter: app.KillAfter(g),
		Killed: func(by syscall.Signal) { end.by = by },
		Started: func(group lockkeeper.Process) error {
			if waiting.Err() != nil { // it came too late for the wait and too early for the command
				return context.Cause(waiting)
			}
			_, err := a.Locks.SetProcess(ctx, g.ID, g.Token, group)
			return err
		},
	})
	return p.finish(ctx, a, g, end)
}

// ending is how a command ended: with a code, which stands for a signal where
// one killed it, or not as it should.
type ending struct {
	code int
	by   syscall.Signal
	err  error
}

// reap looks for what others left behind while the command runs.
func (p *program) reap(a *app.App) {
	var once sync.Once
	a.Locks.StartReaper(a.Config.ReaperInterval, func(err error) {
		once.Do(func() { p.say("looking for abandoned locks failed: " + err.Error()) })
	})
}

// finish gives the grant back and says how the command ended.
func (p *program) finish(ctx context.Context, a *app.App, g *lock.Grant, end ending) error {
	code, err := end.code, end.err
	lost := context.Cause(g.Context())
	if lost == nil && end.by == syscall.SIGKILL { // whoever takes a grant away also ends what runs under it
		lost = g.Live(ctx)
	}
	var left *process.LeftoversError
	var early *interruptedError // before the command had begun
	if errors.As(err, &left) {
		// The grant stays until recovery, once we are gone, has seen them gone.
		return &codedError{exit: exitFailed, err: err}
	}
	released := g.Release(ctx)
	if released == nil {
		p.landDue(ctx, a)
	}
	switch {
	case lost != nil:
		return &codedError{exit: exitLost, err: p.whyLost(ctx, a, g, lost)}
	case lockkeeper.CodeOf(err) == lockkeeper.CodeNotHeld:
		return &codedError{exit: exitLost, err: p.whyLost(ctx, a, g, err)}
	case errors.As(err, &early):
		return killedBy(early.signal, early)
	case err != nil && (code == process.ExitNotFound || code == process.ExitNotExecutable):
		return &codedError{exit: code, err: err}
	case err != nil:
		return &codedError{exit: exitFailed, err: err}
	case released != nil:
		return &codedError{exit: exitLost, err: fmt.Errorf("the command ended with %d, but its grant could not be given back: %w", code, released)}
	}
	switch {
	case code == 0:
		return nil
	case end.by == syscall.SIGINT || end.by == syscall.SIGTERM:
		return killedBy(end.by, nil)
	}
	return &codedError{exit: code}
}

// whyLost adds to the loss of a grant who took it, as far as the record tells.
func (p *program) whyLost(ctx context.Context, a *app.App, g *lock.Grant, cause error) error {
	message := fmt.Sprintf("the grant of %s was lost while the command ran, so the command was ended: %v", g.Holder, cause)
	events, err := a.Locks.Events(ctx, lockkeeper.EventQuery{Latest: true, Limit: pageSize})
	if err != nil {
		return errors.New(message)
	}
	for _, ev := range events {
		switch ev.Kind {
		case lockkeeper.EventRevoking, lockkeeper.EventForceReleased, lockkeeper.EventExpired, lockkeeper.EventRecovered, lockkeeper.EventReleased:
			if ev.GrantID == g.ID {
				did := words(ev.Kind)
				if ev.Kind == lockkeeper.EventRevoking {
					did = "taken away"
				}
				return fmt.Errorf("%s; it was %s by %s at %s: %s; next: lockkeeper why %s", message,
					did, ev.Actor.Name, stamp(ev.At), ev.Reason, g.ID)
			}
		}
	}
	return errors.New(message)
}

// announce tells a person on a terminal whom the wait is for.
func (p *program) announce(ctx context.Context, a *app.App, req lockkeeper.Request, wait time.Duration) {
	if wait <= 0 || p.json || !isTerminal(p.Err) {
		return
	}
	found, err := a.Locks.CheckConflicts(ctx, req.Locks)
	if err != nil || len(found) == 0 {
		return // the request itself will say more
	}
	p.purpose(ctx, a, &lockkeeper.BlockedError{Conflicts: found})
	fmt.Fprintf(p.Err, "waiting up to %s:\n", span(wait))
	p.conflicts(req.Holder, found, false)
}

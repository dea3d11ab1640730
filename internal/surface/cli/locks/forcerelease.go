package locks

import (
	"context"

	"github.com/spf13/cobra"

	"lockkeeper"
	"lockkeeper/internal/project"
	"lockkeeper/internal/surface/acts"
	"lockkeeper/internal/surface/cli/command"
	"lockkeeper/internal/surface/cli/term"
	"lockkeeper/internal/surface/view"
)

func (p *program) forceCommand() *cobra.Command {
	var reason string
	cmd := &cobra.Command{
		Use:   "force-release GRANT --reason WHY",
		Short: "Release a grant of another holder",
		Long: `Release a grant of another holder. It shows the grant and asks you to type the
holder's name, so it needs a terminal; agents cannot run it. The supervisor stops
the command that runs under the grant. The audit trail records your reason.`,
		Example: `  lockkeeper lock force-release 1b4e28ba-2fa1-41d2-883f-0016d3cca427 --reason "laptop is in the repair shop"`,
		Args:    command.Exactly(1, "the id of a grant"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := command.RequireReason(reason); err != nil {
				return err
			}
			return p.With(cmd.Context(), func(a *project.Project) error { return p.force(cmd.Context(), a, args[0], reason) })
		},
	}
	cmd.Flags().StringVar(&reason, "reason", "", "why, for the audit trail")
	return cmd
}

func (p *program) force(ctx context.Context, a *project.Project, id, reason string) error {
	if _, inside := p.Agent(); inside {
		// The engine refuses, and records the attempt.
		return a.Locks.ForceRelease(ctx, id, p.Actor(), reason)
	}
	e, err := a.Locks.Request(ctx, id)
	if err != nil {
		return err
	}
	if e == nil {
		return &lockkeeper.NotHeldError{GrantID: id, Reason: "no such grant: it was released, has expired, or never existed", Next: "lockkeeper status"}
	}
	if err := p.MayForce("force-release"); err != nil {
		return err
	}
	Show(p.Program, p.Err, view.New(a).Holding(*e))
	if err := p.Confirm("force-release", "The holder loses these locks, and the command that runs under them is stopped.", e.Holder); err != nil {
		return err
	}
	if err := acts.ForceRelease(ctx, a, e, e.Holder, reason, p.Person()); err != nil {
		return err
	}
	return p.Answer(map[string]any{"id": id, "holder": e.Holder, "released": true}, "released %s of %s", id, term.Clean(e.Holder))
}

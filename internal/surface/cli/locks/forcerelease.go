package locks

import (
	"context"
	"fmt"
	"slices"

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
the command that runs under the grant; on a machine that cannot be reached, it does so
before the lease ends. The audit trail records your reason.`,
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

func (p *program) force(ctx context.Context, a *project.Project, name, reason string) error {
	id, err := a.GrantID(ctx, name)
	if err != nil {
		return err
	}
	if _, inside := p.Agent(); inside {
		// The engine refuses the release, and records the attempt.
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
	warning, unreached := "The holder loses these locks, and the command that runs under them is stopped.", acts.Unreached(a, e)
	if unreached != "" {
		warning = "The holder loses these locks; " + unreached + "."
	}
	if err := p.Confirm("force-release", warning, e.Holder); err != nil {
		return err
	}
	if err := acts.ForceRelease(ctx, a, e, e.Holder, reason, p.Person()); err != nil {
		return err
	}
	answer := map[string]any{"id": id, "holder": e.Holder, "released": true}
	if unreached != "" {
		answer["unreached"] = unreached
		p.Say(unreached)
	}
	return p.Answer(answer, "released %s of %s", id, term.Clean(e.Holder))
}

func (p *program) clearCommand() *cobra.Command {
	var reason string
	cmd := &cobra.Command{
		Use:   "clear",
		Short: "Release all locks of all holders",
		Long: `Release all locks of all holders, stale and active. It shows them and asks you to
type an answer, so it needs a terminal; agents cannot run it. Grants whose policy
requires proof that they are abandoned stay until there is proof. Waiting requests
then get their turn.`,
		Example: `  lockkeeper lock clear --reason "the machine room lost power"`,
		RunE: p.OnProject(func(cmd *cobra.Command, a *project.Project, _ []string) error {
			return p.clear(cmd.Context(), a, reason)
		}),
	}
	cmd.Flags().StringVar(&reason, "reason", "all locks were cleared", "why, for the audit trail")
	return cmd
}

type kept struct {
	ID     string `json:"id"`
	Holder string `json:"holder"`
	Reason string `json:"reason"`
}

func (p *program) clear(ctx context.Context, a *project.Project, reason string) error {
	if err := p.MayForce("clear"); err != nil {
		return err
	}
	entries, err := a.Locks.Requests(ctx)
	if err != nil {
		return err
	}
	s := view.New(a).Holdings(entries)
	grants := slices.Concat(s.Stale, s.Held)
	if len(grants) == 0 {
		return p.Answer(map[string]any{"freed": []string{}, "kept": []kept{}}, "nothing is locked")
	}
	Holdings(grants, p.Now(), term.Few(p.Err, PathsShown)).Print(p.Err, p.Painter(p.Err))
	warning := fmt.Sprintf("This releases %s: %d stale and %d active.\nIt is safe only if no other holder is working here.",
		term.Counted(len(grants), "grant"), len(s.Stale), len(s.Held))
	if err := p.Confirm("clear", warning, "clear"); err != nil {
		return err
	}
	shown := make([]lockkeeper.GrantSnapshot, len(grants))
	for i, g := range grants {
		shown[i] = g.GrantSnapshot
	}
	cleared := acts.Clear(ctx, a, shown, reason, p.Person())
	if err := p.showCleared(cleared); err != nil {
		return err
	}
	if len(cleared.Kept) > 0 {
		return &command.ExitError{Code: command.ExitFailed}
	}
	return nil
}

func (p *program) showCleared(c acts.Cleared) error {
	left := []kept{}
	for _, k := range c.Kept {
		left = append(left, kept{ID: k.ID, Holder: k.Holder, Reason: k.Err.Error()})
		if !p.JSON {
			p.Say(fmt.Sprintf("cannot release %s of %s: %s", k.ID, k.Holder, k.Err))
		}
	}
	what := "all locks are cleared"
	if len(c.Kept) > 0 {
		what = term.Counted(len(c.Kept), "grant") + " not released"
	}
	return p.Answer(map[string]any{"freed": acts.OrEmpty(c.Freed), "kept": left}, "%s released; %s", term.Counted(len(c.Freed), "grant"), what)
}

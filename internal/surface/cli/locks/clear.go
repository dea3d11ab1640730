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
		Args:    command.Exactly(0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return p.With(cmd.Context(), func(a *project.Project) error { return p.clear(cmd.Context(), a, reason) })
		},
	}
	cmd.Flags().StringVar(&reason, "reason", "all locks were cleared", "why, for the audit trail")
	return cmd
}

// kept is a grant that could not be released.
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
	return p.Answer(map[string]any{"freed": command.ListOf(c.Freed), "kept": left}, "%s released; %s", term.Counted(len(c.Freed), "grant"), what)
}

package cli

import (
	"context"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"lockkeeper"
	"lockkeeper/internal/acts"
	"lockkeeper/internal/app"
)

func (p *program) clearCommand() *cobra.Command {
	var reason string
	cmd := &cobra.Command{
		Use:   "clear",
		Short: "Take away all locks, after a crash nobody can sort out",
		Long: `Take away all locks, stale and active ones, of everybody. It shows them and asks
you to type an answer, on a terminal; agents may not do it. Grants whose policy
wants proof that they are abandoned stay until there is that proof. Requests
that wait are served from what became free.`,
		Example: `  lockkeeper lock clear --reason "the machine room lost power"`,
		Args:    exactly(0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return p.with(cmd.Context(), func(a *app.App) error { return p.clear(cmd.Context(), a, reason) })
		},
	}
	cmd.Flags().StringVar(&reason, "reason", "all locks were cleared", "why, for the audit trail")
	return cmd
}

// kept is a grant that could not be freed.
type kept struct {
	ID     string `json:"id"`
	Holder string `json:"holder"`
	Reason string `json:"reason"`
}

func (p *program) clear(ctx context.Context, a *app.App, reason string) error {
	if err := p.mayForce("clear"); err != nil {
		return err
	}
	s, err := gather(ctx, a)
	if err != nil {
		return err
	}
	grants := slices.Concat(s.Stale, s.Held)
	if len(grants) == 0 {
		if p.json {
			return p.showCleared(acts.Cleared{})
		}
		_, err := fmt.Fprintln(p.Out, "nothing is locked")
		return err
	}
	holdings(grants, p.Now(), few(p.Err, pathsShown)).print(p.Err, p.painter(p.Err))
	warning := fmt.Sprintf("This frees %s: %d stale, and %d active ones of others as well.\nIt is safe only when nobody else is working here.",
		counted(len(grants), "grant"), len(s.Stale), len(s.Held))
	if err := p.confirm("clear", warning, "clear"); err != nil {
		return err
	}
	shown := make([]lockkeeper.GrantSnapshot, len(grants))
	for i, g := range grants {
		shown[i] = g.GrantSnapshot
	}
	cleared := acts.Clear(ctx, a, shown, reason, p.person())
	if err := p.showCleared(cleared); err != nil {
		return err
	}
	if len(cleared.Kept) > 0 {
		return &codedError{exit: exitFailed}
	}
	return nil
}

func (p *program) showCleared(c acts.Cleared) error {
	if p.json {
		left := []kept{}
		for _, k := range c.Kept {
			left = append(left, kept{ID: k.ID, Holder: k.Holder, Reason: k.Err.Error()})
		}
		return p.printJSON(map[string]any{"freed": listOf(c.Freed), "kept": left})
	}
	for _, k := range c.Kept {
		p.say(fmt.Sprintf("%s of %s could not be freed: %s", k.ID, k.Holder, k.Err))
	}
	what := "all locks are cleared"
	if len(c.Kept) > 0 {
		what = counted(len(c.Kept), "grant") + " stayed"
	}
	_, err := fmt.Fprintf(p.Out, "%s freed; %s\n", counted(len(c.Freed), "grant"), what)
	return err
}

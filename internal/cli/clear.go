package cli

import (
	"context"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

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
			return p.printJSON(map[string]any{"freed": []string{}, "kept": []kept{}})
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
	freed, left := []string{}, []kept{}
	for _, g := range grants {
		if err := a.Locks.ForceRelease(ctx, g.ID, p.person(), reason); err != nil {
			left = append(left, kept{ID: g.ID, Holder: g.Holder, Reason: err.Error()})
			continue
		}
		freed = append(freed, g.ID)
	}
	if err := p.showCleared(freed, left); err != nil {
		return err
	}
	if len(left) > 0 {
		return &codedError{exit: exitFailed}
	}
	return nil
}

func (p *program) showCleared(freed []string, left []kept) error {
	if p.json {
		return p.printJSON(map[string]any{"freed": freed, "kept": left})
	}
	for _, k := range left {
		p.say(fmt.Sprintf("%s of %s could not be freed: %s", k.ID, k.Holder, k.Reason))
	}
	what := "all locks are cleared"
	if len(left) > 0 {
		what = counted(len(left), "grant") + " stayed"
	}
	_, err := fmt.Fprintf(p.Out, "%s freed; %s\n", counted(len(freed), "grant"), what)
	return err
}

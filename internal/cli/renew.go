package cli

import (
	"fmt"

	"github.com/spf13/cobra"

	"lockkeeper"
	"lockkeeper/internal/app"
)

func (p *program) renewCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "renew GRANT",
		Short: "Give a sign of life for a grant",
		Long: `Give a sign of life for a grant of yours: it gets its whole time to live again.
A grant that is gone cannot be revived; acquire again.`,
		Example: `  lockkeeper lock renew 1b4e28ba-2fa1-41d2-883f-0016d3cca427`,
		Args:    exactly(1, "the id of a grant"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return p.onGrant(cmd, args[0], func(a *app.App, token string) (lockkeeper.Grant, error) {
				return a.Locks.Renew(cmd.Context(), args[0], token)
			})
		},
	}
}

// onGrant changes a grant of this user and shows what it is now.
func (p *program) onGrant(cmd *cobra.Command, id string, change func(a *app.App, token string) (lockkeeper.Grant, error)) error {
	return p.with(cmd.Context(), func(a *app.App) error {
		token, err := a.Tokens.Get(id)
		if err != nil {
			return err
		}
		g, err := change(a, token)
		if err != nil {
			return err
		}
		shown := g.Snapshot(p.Now())
		if p.json {
			return p.printJSON(shown)
		}
		_, err = fmt.Fprintf(p.Out, "%s: %s for %s, expires %s\n", g.ID, counted(len(g.Locks), "lock"), clean(g.Holder), until(shown.ExpiresAt, p.Now()))
		return err
	})
}

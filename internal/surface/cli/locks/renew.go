package locks

import (
	"fmt"

	"github.com/spf13/cobra"

	"lockkeeper"
	"lockkeeper/internal/project"
	"lockkeeper/internal/surface/cli/command"
	"lockkeeper/internal/surface/cli/term"
)

func (p *program) renewCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "renew GRANT",
		Short: "Renew the lease of a grant",
		Long: `Renew the lease of one of your grants: the full time starts again. A grant that
was released or has expired cannot be renewed; acquire again.`,
		Example: `  lockkeeper lock renew 1b4e28ba-2fa1-41d2-883f-0016d3cca427`,
		Args:    command.Exactly(1, "the id of a grant"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return p.onGrant(cmd, args[0], func(a *project.Project, token string) (lockkeeper.Grant, error) {
				return a.Locks.Renew(cmd.Context(), args[0], token)
			})
		},
	}
}

// onGrant changes a grant of this user and shows the result.
func (p *program) onGrant(cmd *cobra.Command, id string, change func(a *project.Project, token string) (lockkeeper.Grant, error)) error {
	return p.With(cmd.Context(), func(a *project.Project) error {
		token, err := a.Tokens.Get(id)
		if err != nil {
			return err
		}
		g, err := change(a, token)
		if err != nil {
			return err
		}
		shown := g.Snapshot(p.Now())
		if p.JSON {
			return p.PrintJSON(shown)
		}
		_, err = fmt.Fprintf(p.Out, "%s: %s for %s, expires %s\n", g.ID, term.Counted(len(g.Locks), "lock"), term.Clean(g.Holder), term.Until(shown.ExpiresAt, p.Now()))
		return err
	})
}

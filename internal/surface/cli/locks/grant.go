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
		return p.Answer(shown, "%s: %s for %s, expires %s", g.ID, term.Counted(len(g.Locks), "lock"), term.Clean(g.Holder), term.Until(shown.ExpiresAt, p.Now()))
	})
}

func (p *program) extendCommand() *cobra.Command {
	var t command.Targets
	cmd := &cobra.Command{
		Use:   "extend GRANT",
		Short: "Add paths to a grant, if its policy allows it",
		Long: `Add paths to a grant, all of them or none. It never waits. With policy session a
grant can add any free path, with policy dal only paths that sort after those it
holds. Grants of other policies cannot be extended.`,
		Example: `  lockkeeper lock extend "$grant" --write app/second.rb`,
		Args:    command.Exactly(1, "the id of a grant"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return p.onGrant(cmd, args[0], func(a *project.Project, token string) (lockkeeper.Grant, error) {
				locks, err := t.Resolve(p.Program, a)
				if err != nil {
					return lockkeeper.Grant{}, err
				}
				if len(locks) == 0 {
					return lockkeeper.Grant{}, command.Usage(cmd, "needs a path to add")
				}
				return a.Locks.Extend(cmd.Context(), args[0], token, locks...)
			})
		},
	}
	t.Flags(cmd.Flags())
	return cmd
}

func (p *program) upgradeCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "upgrade GRANT PATH…",
		Short: "Upgrade locks to write locks",
		Long: `Upgrade the upgradeable locks of a grant to write locks, all the paths or none,
without releasing them in between. It never waits: if another holder reads there,
it is blocked and the locks stay upgradeable.`,
		Example: `  grant=$(lockkeeper lock acquire --policy dal --upgradeable data/index)
  lockkeeper lock upgrade "$grant" data/index`,
		Args: command.AtLeast(2, "the id of a grant and one path or more"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return p.onGrant(cmd, args[0], func(a *project.Project, token string) (lockkeeper.Grant, error) {
				paths := make([]string, len(args)-1)
				for i, path := range args[1:] {
					l, err := a.Resolve(lockkeeper.Write, path)
					if err != nil {
						return lockkeeper.Grant{}, err
					}
					paths[i] = l.Path
				}
				return a.Locks.Upgrade(cmd.Context(), args[0], token, paths...)
			})
		},
	}
}

func (p *program) releaseCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "release GRANT",
		Short: "Release locks",
		Long: `Release a grant. The next request in the queue gets it at once. Releasing an id
that is unknown, or was released before, is harmless: exit code 0 and a note.`,
		Example: `  lockkeeper lock release 1b4e28ba-2fa1-41d2-883f-0016d3cca427`,
		Args:    command.Exactly(1, "the id of a grant"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return p.With(cmd.Context(), func(a *project.Project) error {
				released, err := a.Release(cmd.Context(), args[0])
				if err != nil {
					return err
				}
				p.landDue(cmd.Context(), a)
				if !released {
					fmt.Fprintf(p.Err, "note: nothing to release: no grant has the id %q; it may have been released or have expired\n", args[0])
				}
				if p.JSON {
					return p.PrintJSON(map[string]any{"id": args[0], "released": released})
				}
				return nil
			})
		},
	}
}

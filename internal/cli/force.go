package cli

import (
	"context"
	"fmt"
	"os"
	"os/user"
	"strings"

	"github.com/spf13/cobra"

	"lockkeeper"
	"lockkeeper/internal/acts"
	"lockkeeper/internal/app"
	"lockkeeper/internal/process"
)

func (p *program) forceCommand() *cobra.Command {
	var reason string
	cmd := &cobra.Command{
		Use:   "force-release GRANT --reason WHY",
		Short: "Take a grant away from its holder",
		Long: `Take a grant away from its holder. It shows what is known of the grant and asks
you to type the holder's name, on a terminal; agents may not do it. What runs
under the grant is ended by its supervisor. It is recorded with the reason.`,
		Example: `  lockkeeper lock force-release 1b4e28ba-2fa1-41d2-883f-0016d3cca427 --reason "laptop is in the repair shop"`,
		Args:    exactly(1, "the id of a grant"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if strings.TrimSpace(reason) == "" {
				return &lockkeeper.InputError{Field: "reason", Value: reason, Reason: "empty", Next: "say why with --reason, for the audit trail"}
			}
			return p.with(cmd.Context(), func(a *app.App) error { return p.force(cmd.Context(), a, args[0], reason) })
		},
	}
	cmd.Flags().StringVar(&reason, "reason", "", "why, for the audit trail")
	return cmd
}

func (p *program) force(ctx context.Context, a *app.App, id, reason string) error {
	if _, inside := p.agent(); inside {
		// The engine refuses, and records that it was tried.
		return a.Locks.ForceRelease(ctx, id, p.actor(), reason)
	}
	e, err := a.Locks.Entry(ctx, id)
	if err != nil {
		return err
	}
	if e == nil {
		return &lockkeeper.NotHeldError{GrantID: id, Reason: "it is unknown here: released, expired or never granted", Next: "lockkeeper status"}
	}
	if err := p.mayForce("force-release"); err != nil {
		return err
	}
	p.showEntry(p.Err, stand(a, *e))
	if err := p.confirm("force-release", "Its holder loses these locks, and what runs under them is ended.", e.Holder); err != nil {
		return err
	}
	if err := acts.ForceRelease(ctx, a, e, e.Holder, reason, p.person()); err != nil {
		return err
	}
	if p.json {
		return p.printJSON(map[string]any{"id": id, "holder": e.Holder, "released": true})
	}
	_, err = fmt.Fprintf(p.Out, "%s of %s is released\n", id, clean(e.Holder))
	return err
}

// person is who sits at the terminal, by the name they are logged in with.
func (p *program) person() lockkeeper.Actor {
	name := fmt.Sprintf("uid %d", os.Getuid())
	if account, err := user.Current(); err == nil && account.Username != "" {
		name = account.Username
	}
	for _, variable := range []string{"USER", "LOGNAME"} {
		if login, _ := p.lookup(variable); login != "" {
			name = login
		}
	}
	if tty := process.Terminal(); tty != "" {
		name += " on " + tty
	}
	return lockkeeper.Actor{Name: name, Kind: lockkeeper.ActorPerson}
}

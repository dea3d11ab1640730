package cli

import (
	"fmt"

	"github.com/spf13/cobra"

	"lockkeeper/internal/app"
)

func (p *program) releaseCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "release GRANT",
		Short: "Release locks",
		Long: `Release a grant. The next request in the queue gets it at once. Releasing an id
that is unknown, or was released before, is harmless: exit code 0 and a note.`,
		Example: `  lockkeeper lock release 1b4e28ba-2fa1-41d2-883f-0016d3cca427`,
		Args:    exactly(1, "the id of a grant"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return p.with(cmd.Context(), func(a *app.App) error {
				released, err := a.Release(cmd.Context(), args[0])
				if err != nil {
					return err
				}
				p.landDue(cmd.Context(), a)
				if !released {
					fmt.Fprintf(p.Err, "note: nothing to release: no grant has the id %q; it may have been released or have expired\n", args[0])
				}
				if p.json {
					return p.printJSON(map[string]any{"id": args[0], "released": released})
				}
				return nil
			})
		},
	}
}

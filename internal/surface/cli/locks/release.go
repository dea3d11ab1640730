package locks

import (
	"fmt"

	"github.com/spf13/cobra"

	"lockkeeper/internal/project"
	"lockkeeper/internal/surface/cli/command"
)

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

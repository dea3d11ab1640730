package cli

import (
	"fmt"

	"github.com/spf13/cobra"

	"lockkeeper/internal/app"
)

func (p *program) rescueDropCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "drop ID",
		Short: "Forget it",
		Long: `Drop something that is kept, for good. It asks nothing and says what it dropped;
agents may not do it.`,
		Example: `  lockkeeper rescue drop 20260131T090000.123-1b4e28ba`,
		Args:    exactly(1, "the id of something that is kept"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := p.noAgent("rescue drop"); err != nil {
				return err
			}
			return p.with(cmd.Context(), func(a *app.App) error {
				g, err := a.Gate()
				if err != nil {
					return err
				}
				e, err := g.Rescue().Get(args[0])
				if err != nil {
					return err
				}
				if err := g.Rescue().Drop(e.ID); err != nil {
					return err
				}
				if p.json {
					return p.printJSON(map[string]any{"dropped": e})
				}
				_, err = fmt.Fprintf(p.Out, "dropped %s: %s of %s, %s, wanted by %s\n", e.ID, wanted(e), clean(e.Path), size(e), clean(e.Holder))
				return err
			})
		},
	}
}

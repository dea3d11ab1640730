package cli

import (
	"fmt"

	"github.com/spf13/cobra"

	"lockkeeper/internal/app"
	"lockkeeper/internal/view"
	"lockkeeper/rescue"
)

func (p *program) rescueDropCommand() *cobra.Command {
	var yes bool
	cmd := &cobra.Command{
		Use:   "drop ID",
		Short: "Forget it",
		Long: `Drop something that is kept, for good. It says what that is and asks on a
terminal; where there is none it needs --yes. Agents may not do it.`,
		Example: `  lockkeeper rescue drop 20260131T090000.123-1b4e28ba
  lockkeeper rescue drop --yes 20260131T090000.123-1b4e28ba`,
		Args: exactly(1, "the id of something that is kept"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return p.asPerson(cmd.Context(), "rescue drop", func(a *app.App) error { return p.rescueDrop(a.Shelf(), args[0], yes) })
		},
	}
	cmd.Flags().BoolVar(&yes, "yes", false, "do not ask")
	return cmd
}

func (p *program) rescueDrop(shelf *rescue.Shelf, id string, yes bool) error {
	e, err := shelf.Get(id)
	if err != nil {
		return err
	}
	what := fmt.Sprintf("%s: %s of %s, %s, wanted by %s", e.ID, view.WhatIsKept(e), clean(e.Path), size(e), clean(e.Holder))
	if err := p.confirmUnlessYes(yes, "rescue drop", "This drops "+what+", for good.", "drop"); err != nil {
		return err
	}
	if err := shelf.Drop(e.ID); err != nil {
		return err
	}
	if p.json {
		return p.printJSON(map[string]any{"dropped": entryOf(e)})
	}
	_, err = fmt.Fprintf(p.Out, "dropped %s\n", what)
	return err
}

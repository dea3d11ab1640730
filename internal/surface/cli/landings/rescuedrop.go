package landings

import (
	"fmt"

	"github.com/spf13/cobra"

	"lockkeeper/internal/project"
	"lockkeeper/internal/surface/cli/command"
	"lockkeeper/internal/surface/cli/term"
	"lockkeeper/internal/surface/view"
	"lockkeeper/rescue"
)

func (p *program) rescueDropCommand() *cobra.Command {
	var yes bool
	cmd := &cobra.Command{
		Use:   "drop ID",
		Short: "Delete a kept change",
		Long: `Delete a kept change for good. It shows the change and asks on a terminal; without a
terminal it needs --yes. Agents cannot run it.`,
		Example: `  lockkeeper rescue drop 20260131T090000.123-1b4e28ba
  lockkeeper rescue drop --yes 20260131T090000.123-1b4e28ba`,
		Args: command.Exactly(1, "the id of something that is kept"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return p.AsPerson(cmd.Context(), "rescue drop", func(a *project.Project) error { return p.rescueDrop(a.Shelf(), args[0], yes) })
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
	what := fmt.Sprintf("%s: %s of %s, %s, wanted by %s", e.ID, view.WhatIsKept(e), term.Clean(e.Path), size(e), term.Clean(e.Holder))
	if err := p.ConfirmUnlessYes(yes, "rescue drop", "This drops "+what+", for good.", "drop"); err != nil {
		return err
	}
	if err := shelf.Drop(e.ID); err != nil {
		return err
	}
	if p.JSON {
		return p.PrintJSON(map[string]any{"dropped": EntryOf(e)})
	}
	_, err = fmt.Fprintf(p.Out, "dropped %s\n", what)
	return err
}

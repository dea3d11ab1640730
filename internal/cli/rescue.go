package cli

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"lockkeeper/internal/app"
	"lockkeeper/internal/view"
	"lockkeeper/rescue"
)

func (p *program) rescueCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "rescue",
		Short: "What could not land, and is kept",
		Long: `Look at what could not land, land it after all, or drop it: gaps, which are writes
that were refused or made without a lock, edits that gave way to others, and
uncommitted files that commands of sessions removed or overwrote. All of it is
kept for as long as gate.keep says, 14 days where lockkeeper.yaml says nothing.`,
		Example: `  lockkeeper rescue list
  lockkeeper rescue show 20260131T090000.123-1b4e28ba
  lockkeeper rescue land 20260131T090000.123-1b4e28ba`,
		Args: subcommand,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(p.rescueListCommand(), p.rescueShowCommand(), p.rescueLandCommand(), p.rescueDropCommand())
	return cmd
}

func (p *program) rescueListCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "list",
		Short: "Everything that is kept, newest last",
		Long: `List everything that is kept, newest last: what it is, where it was to go, who
wanted it there, and why it did not get there.`,
		Example: `  lockkeeper rescue list
  lockkeeper rescue list --json | jq -r '.[].path'`,
		Args: exactly(0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return p.with(cmd.Context(), func(a *app.App) error {
				list, err := a.Rescued(cmd.Context())
				switch {
				case err != nil:
					return err
				case p.json:
					return p.printJSON(entriesOf(list))
				case len(list) == 0:
					_, err = fmt.Fprintln(p.Out, "nothing is kept: everything that was written got to its place")
					return err
				}
				rescued(entriesOf(list), p.Now()).print(p.Out, p.painter(p.Out))
				p.advise("lockkeeper rescue show ID, then lockkeeper rescue land ID or lockkeeper rescue drop ID")
				return nil
			})
		},
	}
}

// entry is something that is kept, as JSON, with its permissions as people write
// them.
type entry struct {
	rescue.Entry
	Mode string `json:"mode"` // empty: those that are there
}

func entryOf(e rescue.Entry) entry { return entry{e, view.ModeOf(e)} }

func entriesOf(list []rescue.Entry) []entry {
	out := make([]entry, len(list))
	for i, e := range list {
		out[i] = entryOf(e)
	}
	return out
}

// rescued is a table of what is kept.
func rescued(list []entry, now time.Time) *table {
	t := &table{heads: []string{"ID", "AGE", "WHAT", "PATH", "BY", "SIZE", "WHY"}, wide: 6, sentences: true}
	for _, e := range list {
		t.add(e.ID, span(now.Sub(e.At)), view.WhatIsKept(e.Entry), clean(e.Path), clean(e.Holder), size(e.Entry), clean(e.Reason))
	}
	return t
}

// size is how much content an entry has.
func size(e rescue.Entry) string {
	if e.Delete || e.Sum == "" {
		return "-"
	}
	return view.Bytes(e.Size)
}

package landings

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"lockkeeper/internal/project"
	"lockkeeper/internal/session"
	"lockkeeper/internal/surface/cli/command"
	"lockkeeper/internal/surface/cli/term"
	"lockkeeper/internal/surface/view"
	"lockkeeper/rescue"
)

func (p *program) rescueCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "rescue",
		Short: "Review changes that could not land",
		Long: `Review changes that could not land, and land or delete them: gaps (writes that were
refused or made without a lock), edits that gave way to others, and uncommitted files
that commands of sessions removed or overwrote. They are kept for the time in gate.keep,
by default 14 days.`,
		Example: `  lockkeeper rescue list
  lockkeeper rescue show 20260131T090000.123-1b4e28ba
  lockkeeper rescue land 20260131T090000.123-1b4e28ba`,
		Args: command.Subcommand,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(p.rescueListCommand(), p.rescueShowCommand(), p.rescueLandCommand(), p.rescueDropCommand())
	return cmd
}

func (p *program) rescueListCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "list",
		Short: "List kept changes, newest last",
		Long: `List the kept changes, newest last: what each is, its path, who made it, and why it
did not land.`,
		Example: `  lockkeeper rescue list
  lockkeeper rescue list --json | jq -r '.[].path'`,
		Args: command.Exactly(0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return p.With(cmd.Context(), func(a *project.Project) error {
				list, err := session.Rescued(cmd.Context(), a)
				switch {
				case err != nil:
					return err
				case p.JSON:
					return p.PrintJSON(entriesOf(list))
				case len(list) == 0:
					_, err = fmt.Fprintln(p.Out, "nothing is kept: every write has landed")
					return err
				}
				Rescued(entriesOf(list), p.Now()).Print(p.Out, p.Painter(p.Out))
				p.Advise("lockkeeper rescue show ID, then lockkeeper rescue land ID or lockkeeper rescue drop ID")
				return nil
			})
		},
	}
}

// Entry is something that is kept, as JSON, with its permissions as people write
// them.
type Entry struct {
	rescue.Entry
	Mode string `json:"mode"` // empty: those that are there
}

func EntryOf(e rescue.Entry) Entry { return Entry{e, view.ModeOf(e)} }

func entriesOf(list []rescue.Entry) []Entry {
	out := make([]Entry, len(list))
	for i, e := range list {
		out[i] = EntryOf(e)
	}
	return out
}

// Rescued is a table of what is kept.
func Rescued(list []Entry, now time.Time) *term.Table {
	t := &term.Table{Heads: []string{"ID", "AGE", "WHAT", "PATH", "BY", "SIZE", "WHY"}, Wide: 6, Sentences: true}
	for _, e := range list {
		t.Add(e.ID, term.Span(now.Sub(e.At)), view.WhatIsKept(e.Entry), term.Clean(e.Path), term.Clean(e.Holder), size(e.Entry), term.Clean(e.Reason))
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

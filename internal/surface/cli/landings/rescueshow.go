package landings

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"lockkeeper/internal/project"
	"lockkeeper/internal/surface/acts"
	"lockkeeper/internal/surface/cli/command"
	"lockkeeper/internal/surface/cli/term"
	"lockkeeper/internal/surface/view"
	"lockkeeper/rescue"
)

func (p *program) rescueShowCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "show ID",
		Short: "Show a kept change as a diff",
		Long: `Show a kept change: its facts, and a diff against the file as it is now. If the change is
in the tree already, the diff is against the file before it, if that is known. For binary
content, a directory that was moved aside, and damaged content it prints where it is.`,
		Example: `  lockkeeper rescue show 20260131T090000.123-1b4e28ba
  lockkeeper rescue show 20260131T090000.123-1b4e28ba --json | jq -r .diff`,
		Args: command.Exactly(1, "the id of something that is kept"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return p.With(cmd.Context(), func(a *project.Project) error {
				e, err := a.Shelf().Get(args[0])
				if err != nil {
					return err
				}
				return p.showRescue(cmd.Context(), a, e)
			})
		},
	}
}

// shown is an entry with what it would change, as JSON.
type shown struct {
	Entry
	Diff string `json:"diff"`
	Note string `json:"note,omitempty"` // instead of a diff, or about it
}

func (p *program) showRescue(ctx context.Context, a *project.Project, e rescue.Entry) error {
	s := shown{Entry: EntryOf(e)}
	var err error
	if s.Diff, s.Note, err = acts.Difference(a, e); err != nil {
		return err
	}
	if p.JSON {
		return p.PrintJSON(s)
	}
	fmt.Fprintf(p.Out, "%s: %s of %s, %s\n", e.ID, view.WhatIsKept(e), term.Clean(e.Path), size(e))
	fmt.Fprintf(p.Out, "  kept %s ago, at %s; wanted by %s", term.Span(p.Now().Sub(e.At)), term.Stamp(e.At), term.Clean(e.Holder))
	if e.GrantID != "" {
		fmt.Fprintf(p.Out, ", grant %s", term.Clean(e.GrantID))
	}
	fmt.Fprintf(p.Out, "\n  why: %s\n  there then: %s\n", term.Clean(e.Reason), term.Clean(e.Base.String()))
	if s.Note != "" {
		fmt.Fprintln(p.Out, "  "+term.Clean(s.Note))
	}
	fmt.Fprint(p.Out, p.Legible(s.Diff))
	first, err := view.WayOut(ctx, a, e)
	p.Advise(first + ", or lockkeeper rescue drop " + e.ID)
	return err
}

package cli

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"lockkeeper/internal/acts"
	"lockkeeper/internal/app"
	"lockkeeper/internal/view"
	"lockkeeper/rescue"
)

func (p *program) rescueShowCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "show ID",
		Short: "What it would change, as a diff",
		Long: `Show all that is known of something that is kept, and what it would change where
it was to go, as a diff against what is there now; of a change that is there
already, against what was there before, where that is known. Of content that is no text,
of a directory that was moved aside, and of what is damaged or cannot land, it says
where it is.`,
		Example: `  lockkeeper rescue show 20260131T090000.123-1b4e28ba
  lockkeeper rescue show 20260131T090000.123-1b4e28ba --json | jq -r .diff`,
		Args: exactly(1, "the id of something that is kept"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return p.with(cmd.Context(), func(a *app.App) error {
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
	entry
	Diff string `json:"diff"`
	Note string `json:"note,omitempty"` // instead of a diff, or about it
}

func (p *program) showRescue(ctx context.Context, a *app.App, e rescue.Entry) error {
	s := shown{entry: entryOf(e)}
	var err error
	if s.Diff, s.Note, err = acts.Difference(a, e); err != nil {
		return err
	}
	if p.json {
		return p.printJSON(s)
	}
	fmt.Fprintf(p.Out, "%s: %s of %s, %s\n", e.ID, view.WhatIsKept(e), clean(e.Path), size(e))
	fmt.Fprintf(p.Out, "  kept %s ago, at %s; wanted by %s", span(p.Now().Sub(e.At)), stamp(e.At), clean(e.Holder))
	if e.GrantID != "" {
		fmt.Fprintf(p.Out, ", grant %s", clean(e.GrantID))
	}
	fmt.Fprintf(p.Out, "\n  why: %s\n  there then: %s\n", clean(e.Reason), clean(e.Base.String()))
	if s.Note != "" {
		fmt.Fprintln(p.Out, "  "+clean(s.Note))
	}
	fmt.Fprint(p.Out, p.legible(s.Diff))
	first, err := view.WayOut(ctx, a, e)
	p.advise(first + ", or lockkeeper rescue drop " + e.ID)
	return err
}

// legible is text from a file: as it is for a program, fit for the terminal for a
// person.
func (p *program) legible(text string) string {
	if !isTerminal(p.Out) {
		return text
	}
	var b strings.Builder
	for line := range strings.Lines(text) {
		for i, part := range strings.Split(strings.TrimSuffix(line, "\n"), "\t") {
			if i > 0 {
				b.WriteByte('\t')
			}
			b.WriteString(clean(part))
		}
		b.WriteByte('\n')
	}
	return b.String()
}

package flows

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"lockkeeper/internal/flow/conduct"
	"lockkeeper/internal/surface/acts"
	"lockkeeper/internal/surface/cli/command"
	"lockkeeper/internal/surface/cli/term"
)

// namesShown is how many names of a cause decide failed prints.
const namesShown = 10

func (d *decider) failedCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "failed",
		Short: "List failed work by cause",
		Long: `List failed work by cause: failures of the same test, and others with the same message,
without paths, numbers and ids. Each cause has an id for decide retry --cause and
decide exclude --cause.`,
		Example: `  lockkeeper decide failed
  lockkeeper decide failed --json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return d.open(cmd.Context(), func() error {
				list, err := d.flow.Causes(cmd.Context())
				if err != nil {
					return err
				}
				if d.JSON {
					return d.PrintJSON(map[string]any{"causes": list})
				}
				d.causes(list)
				return nil
			})
		},
	}
}

// causes prints causes of failures.
func (d *decider) causes(list []conduct.Cause) {
	if len(list) == 0 {
		fmt.Fprintln(d.Out, "nothing failed")
	}
	for _, c := range list {
		fmt.Fprintf(d.Out, "%s  %s: %s\n", c.ID, term.Counted(len(c.Failures), "failure"), term.Clean(c.Title))
		names := c.Names()
		more := ""
		if n := len(names) - namesShown; n > 0 {
			names, more = names[:namesShown], fmt.Sprintf(", and %d more", n)
		}
		fmt.Fprintf(d.Out, "  %s%s\n", term.Clean(strings.Join(names, ", ")), more)
		for _, line := range c.Lines {
			fmt.Fprint(d.Out, "  | "+command.CleanLines(line+"\n"))
		}
	}
	if len(list) > 0 {
		fmt.Fprintf(d.Out, "next: %s, or %s\n", d.flow.Command("decide", "retry", "--cause", list[0].ID), d.flow.Command("decide", "exclude", "--cause", list[0].ID))
	}
}

func (d *decider) excludeCommand() *cobra.Command {
	var undo bool
	var note, cause string
	cmd := &cobra.Command{
		Use:   "exclude UNIT[/BATCH]… | --cause ID | UNIT SCREEN",
		Short: "Exclude units, batches or screens from runs",
		Long: `Exclude units or batches from this run and later ones: they are no longer attempted, and
the run can end without them. Batches that come after an excluded one are excluded with
it. With --undo they are included again. With --cause, exclude everything that failed for
one cause of decide failed.

In the flow screens, a unit and the name of a screen exclude that screen from the merge of
the controller, for example if its analysis keeps failing.`,
		Example: `  lockkeeper decide exclude blog/posts blog/users/b2 --note "done by hand"
  lockkeeper decide exclude --cause 5f1c0a2e
  lockkeeper decide exclude blog/posts --undo
  lockkeeper decide exclude blog/posts "Post Editor" --flow screens --note "it is being rewritten"`,
		RunE: func(cmd *cobra.Command, args []string) error {
			switch {
			case cause != "" && (undo || len(args) > 0):
				return command.Usage(cmd, "--cause excludes all failures of one cause, without names and --undo")
			case cause == "" && len(args) == 0:
				return command.Usage(cmd, "needs units or batches, or --cause")
			}
			return d.act(cmd, func(ctx context.Context) (acts.Verdict, error) {
				screen := len(args) == 2 && !slices.Contains(d.flow.Units, args[1]) && !strings.Contains(args[1], "/")
				switch {
				case cause != "":
					return acts.ExcludeCause{OfCause: acts.OfCause{Cause: cause}, Why: note}.Do(ctx, d.flow)
				case screen && undo:
					return acts.Include{Screen: args[1]}.Do(ctx, d.flow, args[0])
				case screen:
					return acts.Exclude{Screen: args[1], Why: note}.Do(ctx, d.flow, args[0])
				case undo:
					return d.flow.IncludeAll(ctx, args)
				}
				return d.flow.ExcludeAll(ctx, args, note)
			})
		},
	}
	cmd.Args = cobra.ArbitraryArgs
	cmd.Flags().BoolVar(&undo, "undo", false, "include it again")
	cmd.Flags().StringVar(&note, "note", "", "why")
	cmd.Flags().StringVar(&cause, "cause", "", "exclude all failures of this cause (see decide failed)")
	return cmd
}

func (d *decider) retryCommand() *cobra.Command {
	var note, cause string
	cmd := &cobra.Command{
		Use:   "retry UNIT[/BATCH]… | --cause ID",
		Short: "Retry failed units",
		Long: `Return failed work to the queue, at the phase in which it failed: a batch, a screen or a
topic by its name, everything of a unit, or with --cause everything that failed for one
cause of decide failed. The agent of that phase gets the text of --note.`,
		Example: `  lockkeeper decide retry blog/posts/b1 --note "the fixtures are in test/fixtures"
  lockkeeper decide retry blog/posts
  lockkeeper decide retry --cause 5f1c0a2e`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if (cause == "") == (len(args) == 0) {
				return command.Usage(cmd, "needs either what to retry, or --cause")
			}
			return d.act(cmd, func(ctx context.Context) (acts.Verdict, error) {
				if cause != "" {
					return acts.RetryCause{OfCause: acts.OfCause{Cause: cause}, Note: note}.Do(ctx, d.flow)
				}
				return d.flow.Retry(ctx, args, note)
			})
		},
	}
	cmd.Args = cobra.ArbitraryArgs
	cmd.Flags().StringVar(&note, "note", "", "what the agent should know")
	cmd.Flags().StringVar(&cause, "cause", "", "retry all failures of this cause (see decide failed)")
	return cmd
}

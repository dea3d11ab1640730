package flows

import (
	"context"
	"slices"

	"github.com/spf13/cobra"

	"lockkeeper/internal/flow/progress"
	"lockkeeper/internal/surface/acts"
	"lockkeeper/internal/surface/cli/command"
)

func (d *decider) reenableCommand() *cobra.Command {
	var act acts.Reenable
	cmd := &cobra.Command{
		Use:   "reenable UNIT DESCRIPTION | UNIT/ITEM",
		Short: "Allow a rejected item to be proposed again",
		Long: `Allow an item that was rejected in an earlier run to be proposed again. Name it by its
description, or by the id that decide show UNIT lists. It is proposed at once if no
batches are planned yet, otherwise in the next run.`,
		Example: `  lockkeeper decide reenable blog/posts/i4
  lockkeeper decide reenable blog/posts "Replace the lists with a single-page front end" --undo`,
		Args: command.AtLeast(1, "a unit and an item"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 2 {
				return command.Usage(cmd, "needs a unit and a description in quotes, or one name like blog/posts/i4")
			}
			return d.act(cmd, func(ctx context.Context) (v acts.Verdict, err error) {
				unit := args[0]
				if len(args) == 2 {
					act.Description = args[1]
				} else if unit, act.Item, err = command.SplitPart(unit); err != nil {
					return v, err
				}
				return act.Do(ctx, d.flow, unit)
			})
		},
	}
	cmd.Flags().BoolVar(&act.Undo, "undo", false, "reject it again")
	return cmd
}

func (d *decider) redoCommand() *cobra.Command {
	var note string
	var comments []string
	cmd := &cobra.Command{
		Use:   "redo UNIT[/BATCH] PHASE",
		Short: "Redo a phase and every phase after it",
		Long: `Redo a phase of a unit or of a batch, and every phase after it. Their documents are moved
to the folder earlier, and the agents run and cost again. Undo landings first, with
lockkeeper undo. The agent of the phase gets the text of --note, and the comments on lines of
the diff of the batch: those of --comment, and those that were not sent yet.`,
		Example: `  lockkeeper decide redo blog/posts batch_plan --note "one batch for each screen"
  lockkeeper decide redo blog/posts/b1 apply`,
		Args: command.Exactly(2, "a unit or a batch, and a phase"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return d.act(cmd, func(ctx context.Context) (acts.Verdict, error) {
				if slices.Contains(d.flow.Units, args[0]) {
					return acts.Redo{Phase: args[1], Note: note}.Do(ctx, d.flow, args[0])
				}
				ref, _, err := d.ref(ctx, args[:1], progress.ReviewKind)
				if err != nil {
					return acts.Verdict{}, err
				}
				if err := d.comment(ctx, comments, ref); err != nil {
					return acts.Verdict{}, err
				}
				return acts.Redo{Batch: ref.Batch, Phase: args[1], Note: note}.Do(ctx, d.flow, ref.Unit)
			})
		},
	}
	cmd.Flags().StringVar(&note, "note", "", "what the agent of the phase should know")
	commentFlag(cmd, &comments)
	return cmd
}

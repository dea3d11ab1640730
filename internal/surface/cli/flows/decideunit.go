package flows

import (
	"context"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"lockkeeper/internal/flow"
	"lockkeeper/internal/flow/progress"
	"lockkeeper/internal/surface/acts"
	"lockkeeper/internal/surface/cli/command"
)

func (d *decider) addCommand() *cobra.Command {
	var item flow.Ready
	var impact, effort string
	cmd := &cobra.Command{
		Use:   "add UNIT DESCRIPTION",
		Short: "Add an item of your own",
		Long: `Add an accepted item of your own, before the batches of the unit are planned. decide undo
removes it.`,
		Example: `  lockkeeper decide add blog/posts "Show the reading time" --impact low --effort low`,
		Args:    command.Exactly(2, "a unit and a description"),
		RunE: func(cmd *cobra.Command, args []string) error {
			item.Description, item.Impact, item.Effort = args[1], flow.Level(impact), flow.Level(effort)
			return d.act(cmd, func(ctx context.Context) (acts.Verdict, error) { return d.flow.AddItem(ctx, args[0], item) })
		},
	}
	cmd.Flags().StringVar(&impact, "impact", "", "low, medium or high (default medium)")
	cmd.Flags().StringVar(&effort, "effort", "", "low, medium or high (default medium)")
	cmd.Flags().StringVar(&item.Rationale, "note", "", "the rationale")
	return cmd
}

func (d *decider) reenableCommand() *cobra.Command {
	var undo bool
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
				unit, description := args[0], strings.Join(args[1:], "")
				if len(args) == 1 {
					var item string
					if unit, item, err = command.SplitPart(args[0]); err != nil {
						return v, err
					}
					if description, err = d.flow.Words(ctx, unit, item); err != nil {
						return v, err
					}
				}
				return d.flow.Reenable(ctx, unit, description, undo)
			})
		},
	}
	cmd.Flags().BoolVar(&undo, "undo", false, "reject it again")
	return cmd
}

func (d *decider) excludeCommand() *cobra.Command {
	var undo bool
	var note string
	cmd := &cobra.Command{
		Use:     "exclude UNIT SCREEN",
		Short:   "Exclude a screen from the merge of a controller",
		Long:    "Exclude a screen from the merge of a controller, in the flow screens, for example if its\nanalysis keeps failing.",
		Example: `  lockkeeper decide exclude blog/posts "Post Editor" --note "it is being rewritten"`,
		Args:    command.Exactly(2, "a controller and a screen"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return d.act(cmd, func(ctx context.Context) (acts.Verdict, error) {
				if undo {
					return d.flow.Include(ctx, args[0], args[1])
				}
				return d.flow.Exclude(ctx, args[0], args[1], note)
			})
		},
	}
	cmd.Flags().BoolVar(&undo, "undo", false, "include it again")
	cmd.Flags().StringVar(&note, "note", "", "why")
	return cmd
}

func (d *decider) redoCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "redo UNIT[/BATCH] PHASE",
		Short: "Redo a phase and every phase after it",
		Long: `Redo a phase of a unit or of a batch, and every phase after it. Their documents are moved
to the folder earlier, and the agents run and cost again. Undo landings first, with
lockkeeper undo.`,
		Example: `  lockkeeper decide redo blog/posts batch_plan
  lockkeeper decide redo blog/posts/b1 apply`,
		Args: command.Exactly(2, "a unit or a batch, and a phase"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return d.act(cmd, func(ctx context.Context) (acts.Verdict, error) {
				if slices.Contains(d.flow.Units, args[0]) {
					return d.flow.Redo(ctx, args[0], args[1])
				}
				ref, _, err := d.ref(ctx, args[:1], progress.ReviewKind)
				if err != nil {
					return acts.Verdict{}, err
				}
				return d.flow.RedoBatch(ctx, ref.Unit, ref.Batch, args[1])
			})
		},
	}
}

func (d *decider) retryCommand() *cobra.Command {
	var note string
	cmd := &cobra.Command{
		Use:   "retry UNIT[/BATCH]…",
		Short: "Retry failed units",
		Long: `Return failed work to the queue, at the phase in which it failed: a batch, a screen or a
topic by its name, or everything of a unit. The agent of that phase gets the text of
--note.`,
		Example: `  lockkeeper decide retry blog/posts/b1 --note "the fixtures are in test/fixtures"
  lockkeeper decide retry blog/posts`,
		Args: command.AtLeast(1, "what to retry"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return d.act(cmd, func(ctx context.Context) (acts.Verdict, error) { return d.flow.Retry(ctx, args, note) })
		},
	}
	cmd.Flags().StringVar(&note, "note", "", "what the agent should know")
	return cmd
}

// planEdit makes cmd a command that changes the batches of a unit. The first argument names
// what it changes, like blog/posts/b1.
func (d *decider) planEdit(cmd *cobra.Command, change func(ctx context.Context, unit, what string, args []string) (acts.Verdict, error)) *cobra.Command {
	cmd.Long += `

It is possible until the first batch starts, and revokes an approval of the plan.`
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		unit, what, err := command.SplitPart(args[0])
		if err != nil {
			return err
		}
		return d.act(cmd, func(ctx context.Context) (acts.Verdict, error) { return change(ctx, unit, what, args[1:]) })
	}
	return cmd
}

func (d *decider) moveCommand() *cobra.Command {
	return d.planEdit(&cobra.Command{
		Use:     "move UNIT/ITEM BATCH",
		Short:   "Move an item to another batch",
		Long:    "Move an item to another batch, which may then also change its files.",
		Example: "  lockkeeper decide move blog/posts/i3 b2",
		Args:    command.Exactly(2, "an item and a batch"),
	}, func(ctx context.Context, unit, item string, args []string) (acts.Verdict, error) {
		return d.flow.MoveItem(ctx, unit, item, args[0], nil)
	})
}

func (d *decider) splitCommand() *cobra.Command {
	return d.planEdit(&cobra.Command{
		Use:     "split UNIT/BATCH ITEM…",
		Short:   "Split items off into a new batch",
		Long:    "Move items of a batch to a new batch after it, with the same files.",
		Example: "  lockkeeper decide split blog/posts/b1 i3 i4",
		Args:    command.AtLeast(2, "a batch and items of it"),
	}, func(ctx context.Context, unit, batch string, items []string) (acts.Verdict, error) {
		return d.flow.Split(ctx, unit, batch, items, nil)
	})
}

func (d *decider) mergeCommand() *cobra.Command {
	return d.planEdit(&cobra.Command{
		Use:     "merge UNIT/BATCH BATCH",
		Short:   "Merge a batch into another",
		Long:    "Move all items of the second batch to the first.",
		Example: "  lockkeeper decide merge blog/posts/b1 b2",
		Args:    command.Exactly(2, "two batches"),
	}, func(ctx context.Context, unit, into string, args []string) (acts.Verdict, error) {
		return d.flow.Merge(ctx, unit, into, args[0], nil)
	})
}

func (d *decider) targetsCommand() *cobra.Command {
	return d.planEdit(&cobra.Command{
		Use:     "targets UNIT/BATCH PATH…",
		Short:   "Set which files a batch may change",
		Long:    "Set which files a batch may change, instead of the planned ones: exact paths from the\nroot, no directories.",
		Example: "  lockkeeper decide targets blog/posts/b1 app/models/blog/post.rb test/models/blog/post_test.rb",
		Args:    command.AtLeast(2, "a batch and the files that it may change"),
	}, func(ctx context.Context, unit, batch string, paths []string) (acts.Verdict, error) {
		return d.flow.SetTargets(ctx, unit, batch, paths, nil)
	})
}

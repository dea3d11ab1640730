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
		Long: `Add an item of your own, which is to be done, until the batches of the unit are
planned. decide undo takes it away again.`,
		Example: `  lockkeeper decide add blog/posts "Show the reading time" --impact low --effort low`,
		Args:    command.Exactly(2, "a unit and what is to be done"),
		RunE: func(cmd *cobra.Command, args []string) error {
			item.Description, item.Impact, item.Effort = args[1], flow.Level(impact), flow.Level(effort)
			return d.act(cmd, func(ctx context.Context) (acts.Verdict, error) { return d.desk.AddItem(ctx, args[0], item) })
		},
	}
	cmd.Flags().StringVar(&impact, "impact", "", "low, medium or high (default medium)")
	cmd.Flags().StringVar(&effort, "effort", "", "low, medium or high (default medium)")
	cmd.Flags().StringVar(&item.Rationale, "note", "", "why it is worth it")
	return cmd
}

func (d *decider) reenableCommand() *cobra.Command {
	var undo bool
	cmd := &cobra.Command{
		Use:   "reenable UNIT DESCRIPTION | UNIT/ITEM",
		Short: "Allow a rejected item to be proposed again",
		Long: `Let an item come up again that was rejected in an earlier run: by its description,
or by the id under which decide show UNIT lists it as dropped. It comes up at once
while no batches are planned, else in the next run.`,
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
					if description, err = d.desk.Words(ctx, unit, item); err != nil {
						return v, err
					}
				}
				return d.desk.Reenable(ctx, unit, description, undo)
			})
		},
	}
	cmd.Flags().BoolVar(&undo, "undo", false, "let it not come up again after all")
	return cmd
}

func (d *decider) excludeCommand() *cobra.Command {
	var undo bool
	var note string
	cmd := &cobra.Command{
		Use:     "exclude UNIT SCREEN",
		Short:   "Exclude a screen from the merge of a controller",
		Long:    "Have the merge of a controller do without a screen, in the flow screens, as when its\nanalysis fails again and again. --note says why.",
		Example: `  lockkeeper decide exclude blog/posts "Post Editor" --note "it is being rewritten"`,
		Args:    command.Exactly(2, "a controller and a screen"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return d.act(cmd, func(ctx context.Context) (acts.Verdict, error) {
				if undo {
					return d.desk.Include(ctx, args[0], args[1])
				}
				return d.desk.Exclude(ctx, args[0], args[1], note)
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
		Long: `Have a phase of a unit, or of a batch, done anew with all that come behind it. What
they left is moved aside, in the folder earlier beside it, and costs what agents
cost once more. What landed is undone first, by lockkeeper undo.`,
		Example: `  lockkeeper decide redo blog/posts batch_plan
  lockkeeper decide redo blog/posts/b1 apply`,
		Args: command.Exactly(2, "a unit or a batch, and a phase"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return d.act(cmd, func(ctx context.Context) (acts.Verdict, error) {
				if slices.Contains(d.desk.Units, args[0]) {
					return d.desk.Redo(ctx, args[0], args[1])
				}
				ref, _, err := d.ref(ctx, args[:1], progress.ReviewKind)
				if err != nil {
					return acts.Verdict{}, err
				}
				return d.desk.RedoBatch(ctx, ref.Unit, ref.Batch, args[1])
			})
		},
	}
}

func (d *decider) retryCommand() *cobra.Command {
	var note string
	cmd := &cobra.Command{
		Use:   "retry UNIT[/BATCH]…",
		Short: "Retry failed units",
		Long: `Put what failed back into the queue, at the phase in which it failed: a batch, a
screen or a topic by its name, or all of a unit. What --note says is told to the
agent of that phase.`,
		Example: `  lockkeeper decide retry blog/posts/b1 --note "the fixtures are in test/fixtures"
  lockkeeper decide retry blog/posts`,
		Args: command.AtLeast(1, "what is to be tried again"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return d.act(cmd, func(ctx context.Context) (acts.Verdict, error) { return d.desk.Retry(ctx, args, note) })
		},
	}
	cmd.Flags().StringVar(&note, "note", "", "what the agent should know")
	return cmd
}

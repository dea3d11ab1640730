package flows

import (
	"context"

	"github.com/spf13/cobra"

	"lockkeeper/internal/surface/acts"
	"lockkeeper/internal/surface/cli/command"
)

// planEdit makes a command one that changes the batches of a unit. The first word names
// what it changes, like blog/posts/b1.
func (d *decider) planEdit(cmd *cobra.Command, change func(ctx context.Context, unit, what string, args []string) (acts.Verdict, error)) *cobra.Command {
	cmd.Long += `

It is possible until the first batch begins, and takes back an approval: the plan
then waits for a new one.`
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
		Long:    "Put an item into another batch, which may then change the same files as well.",
		Example: "  lockkeeper decide move blog/posts/i3 b2",
		Args:    command.Exactly(2, "an item and a batch"),
	}, func(ctx context.Context, unit, item string, args []string) (acts.Verdict, error) {
		return d.desk.MoveItem(ctx, unit, item, args[0], nil)
	})
}

func (d *decider) splitCommand() *cobra.Command {
	return d.planEdit(&cobra.Command{
		Use:     "split UNIT/BATCH ITEM…",
		Short:   "Split items off into a new batch",
		Long:    "Take items out of a batch into a new one behind it, with the same files.",
		Example: "  lockkeeper decide split blog/posts/b1 i3 i4",
		Args:    command.AtLeast(2, "a batch and items of it"),
	}, func(ctx context.Context, unit, batch string, items []string) (acts.Verdict, error) {
		return d.desk.Split(ctx, unit, batch, items, nil)
	})
}

func (d *decider) mergeCommand() *cobra.Command {
	return d.planEdit(&cobra.Command{
		Use:     "merge UNIT/BATCH BATCH",
		Short:   "Merge a batch into another",
		Long:    "Put all of the second batch into the first.",
		Example: "  lockkeeper decide merge blog/posts/b1 b2",
		Args:    command.Exactly(2, "two batches"),
	}, func(ctx context.Context, unit, into string, args []string) (acts.Verdict, error) {
		return d.desk.Merge(ctx, unit, into, args[0], nil)
	})
}

func (d *decider) targetsCommand() *cobra.Command {
	return d.planEdit(&cobra.Command{
		Use:     "targets UNIT/BATCH PATH…",
		Short:   "Set which files a batch may change",
		Long:    "Say which files a batch may change, in place of those that were planned: exact\npaths from the root, no directories.",
		Example: "  lockkeeper decide targets blog/posts/b1 app/models/blog/post.rb test/models/blog/post_test.rb",
		Args:    command.AtLeast(2, "a batch and the files that it may change"),
	}, func(ctx context.Context, unit, batch string, paths []string) (acts.Verdict, error) {
		return d.desk.SetTargets(ctx, unit, batch, paths, nil)
	})
}

package cli

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"lockkeeper"
	"lockkeeper/internal/app"
	"lockkeeper/internal/dossier"
	"lockkeeper/internal/flow"
	"lockkeeper/internal/pipeline"
)

func (d *decider) addCommand() *cobra.Command {
	var item flow.Ready
	var impact, effort string
	cmd := &cobra.Command{
		Use:   "add UNIT DESCRIPTION",
		Short: "Add an item that no phase came up with",
		Long: `Add an item of your own, which is to be done, until the batches of the unit are
planned. decide undo takes it away again.`,
		Example: `  lockkeeper decide add blog/posts "Show the reading time" --impact low --effort low`,
		Args:    exactly(2, "a unit and what is to be done"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return d.deciding(cmd, func(ctx context.Context) error {
				if _, err := d.unit(ctx, args[0]); err != nil {
					return err
				}
				item.Description, item.Impact, item.Effort = args[1], flow.Level(impact), flow.Level(effort)
				var v verdict
				id, err := d.book.AddItem(ctx, args[0], item, d.by.Name)
				v.take(d.program, err, dossier.Ref{Kind: dossier.ItemKind, Unit: args[0], Item: id}, "is added, and to be done")
				return d.finish(ctx, v)
			})
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
		Short: "Let a rejected item come up again",
		Long: `Let an item come up again that was rejected in an earlier run: by its description,
or by the id under which decide show UNIT lists it as dropped. It comes up at once
while no batches are planned, else in the next run.`,
		Example: `  lockkeeper decide reenable blog/posts/i4
  lockkeeper decide reenable blog/posts "Replace the lists with a single-page front end" --undo`,
		Args: atLeast(1, "a unit and an item"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 2 {
				return usage(cmd, "needs a unit and a description in quotes, or one name like blog/posts/i4")
			}
			return d.deciding(cmd, func(ctx context.Context) error { return d.reenable(ctx, args, undo) })
		},
	}
	cmd.Flags().BoolVar(&undo, "undo", false, "let it not come up again after all")
	return cmd
}

func (d *decider) reenable(ctx context.Context, args []string, undo bool) error {
	unit, description := args[0], strings.Join(args[1:], "")
	if len(args) == 1 {
		name, item, err := part(args[0])
		if err != nil {
			return err
		}
		u, err := d.unit(ctx, name)
		if err != nil {
			return err
		}
		unit = name
		for _, g := range u.Gone() {
			if g.ID == item {
				description = g.Description
			}
		}
		if known, ok := u.Item(item); ok {
			description = known.Description
		}
		if description == "" {
			return &lockkeeper.InputError{Field: "item", Value: args[0], Reason: "nothing that was dropped has this id", Next: "lockkeeper decide show plan " + unit}
		}
	}
	if _, err := d.unit(ctx, unit); err != nil {
		return err
	}
	act, what := d.book.Reenable, "lets come up again"
	if undo {
		act, what = d.book.UndoReenable, "does not let come up again"
	}
	var v verdict
	again, err := act(ctx, unit, description, d.by.Name)
	what += fmt.Sprintf(" %q", description)
	if !again {
		what += ", in the next run"
	}
	v.take(d.program, err, dossier.Ref{Kind: dossier.PlanKind, Unit: unit}, what)
	return d.finish(ctx, v)
}

func (d *decider) excludeCommand() *cobra.Command {
	var undo bool
	var note string
	cmd := &cobra.Command{
		Use:     "exclude UNIT SCREEN",
		Short:   "Have the merge of a controller do without a screen",
		Long:    "Have the merge of a controller do without a screen, in the flow screens, as when its\nanalysis fails again and again. --note says why.",
		Example: `  lockkeeper decide exclude blog/posts "Post Editor" --note "it is being rewritten"`,
		Args:    exactly(2, "a controller and a screen"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if d.name == "" {
				d.name = flow.Screens().Name // no other has screens
			}
			return d.deciding(cmd, func(ctx context.Context) error {
				s, err := d.screen(args[0], args[1])
				if err != nil {
					return err
				}
				var v verdict
				what := "does without screen " + s.Name
				if undo {
					what = "does not do without screen " + s.Name + " any more"
					err = d.book.IncludeScreen(ctx, s.Module, s.Controller, s.Name, d.by.Name)
				} else {
					err = d.book.ExcludeScreen(ctx, s.Module, s.Controller, s.Name, note, d.by.Name)
				}
				v.take(d.program, err, dossier.Ref{Kind: dossier.PlanKind, Unit: args[0]}, what)
				return d.finish(ctx, v)
			})
		},
	}
	cmd.Flags().BoolVar(&undo, "undo", false, "include it again")
	cmd.Flags().StringVar(&note, "note", "", "why")
	return cmd
}

// screen finds a screen in the manifest.
func (d *decider) screen(unit, name string) (s flow.ScreenEntry, err error) {
	if d.flow.Name != flow.Screens().Name {
		return s, &lockkeeper.InputError{Field: "flow", Value: d.flow.Name, Reason: "it has no screens", Next: "--flow screens"}
	}
	m, err := d.a.Manifest()
	if err != nil {
		return s, err
	}
	var known []string
	for _, s := range m.Screens {
		if s.Unit() == unit && s.Name == name {
			return s, nil
		}
		known = append(known, s.ID())
	}
	return s, &lockkeeper.InputError{Field: "screen", Value: unit + "/" + name, Reason: "the manifest does not have it", Next: didYouMean(unit+"/"+name, known)}
}

func (d *decider) redoCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "redo UNIT[/BATCH] PHASE",
		Short: "Have a phase done anew, with all behind it",
		Long: `Have a phase of a unit, or of a batch, done anew with all that come behind it. What
they left is moved aside, in the folder earlier beside it, and costs what agents
cost once more. What landed is undone first, by lockkeeper undo.`,
		Example: `  lockkeeper decide redo blog/posts batch_plan
  lockkeeper decide redo blog/posts/b1 apply`,
		Args: exactly(2, "a unit or a batch, and a phase"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return d.deciding(cmd, func(ctx context.Context) error {
				var v verdict
				ref := dossier.Ref{Kind: dossier.PlanKind, Unit: args[0]}
				var err error
				if slices.Contains(d.units, args[0]) {
					err = d.book.Redo(ctx, args[0], args[1], d.by.Name)
				} else if ref, _, err = d.ref(ctx, args[:1], dossier.ReviewKind); err == nil {
					err = d.book.RedoBatch(ctx, ref.Unit, ref.Batch, args[1], d.by.Name)
				}
				v.take(d.program, err, ref, "does the phase "+args[1]+" anew")
				return d.finish(ctx, v)
			})
		},
	}
}

func (d *decider) retryCommand() *cobra.Command {
	var note string
	cmd := &cobra.Command{
		Use:   "retry UNIT[/BATCH]…",
		Short: "Try again what failed",
		Long: `Put what failed back into the queue, at the phase in which it failed: a batch, a
screen or a topic by its name, or all of a unit. What --note says is told to the
agent of that phase.`,
		Example: `  lockkeeper decide retry blog/posts/b1 --note "the fixtures are in test/fixtures"
  lockkeeper decide retry blog/posts`,
		Args: atLeast(1, "what is to be tried again"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return d.deciding(cmd, func(ctx context.Context) error {
				failed, err := d.failed(ctx, args)
				if err != nil {
					return err
				}
				q, err := d.a.Queue()
				if err != nil {
					return err
				}
				return d.retry(ctx, q, failed, note)
			})
		},
	}
	cmd.Flags().StringVar(&note, "note", "", "what the agent should know")
	return cmd
}

// failed finds what failed by names of units, or of parts of them.
func (d *decider) failed(ctx context.Context, args []string) (list []pipeline.Failure, err error) {
	all, err := d.a.Failures(ctx, d.flow.Name)
	if err != nil {
		return nil, err
	}
	var known []string
	for _, f := range all {
		known = append(known, f.Name())
	}
	for _, name := range args {
		matches := slices.DeleteFunc(slices.Clone(all), func(f pipeline.Failure) bool { return f.Name() != name && f.Unit != name })
		if len(matches) == 0 {
			next := "lockkeeper decide"
			if len(known) > 0 {
				next = didYouMean(name, known)
			}
			return nil, &lockkeeper.InputError{Field: "name", Value: name, Reason: "nothing of this name has failed", Next: next}
		}
		list = append(list, matches...)
	}
	return list, nil
}

// retry puts failed work back into the queue. The note is left first, so that whoever
// takes it up finds it.
func (d *decider) retry(ctx context.Context, q *app.Queue, failed []pipeline.Failure, note string) error {
	var v verdict
	for _, f := range failed {
		ref := dossier.Ref{Kind: dossier.PlanKind, Unit: f.Unit}
		var err error
		if note != "" {
			n := dossier.Note{Phase: f.Phase, Text: note, By: d.by.Name}
			if f.Kind == string(flow.BatchUnit) {
				n.Batch = f.Part
			}
			err = d.book.AddNote(ctx, f.Unit, n)
		}
		if err == nil {
			_, err = q.Retry(ctx, f.Item, d.actor())
		}
		v.take(d.program, err, ref, fmt.Sprintf("tries %s again, in the phase %s", f.Name(), f.Phase))
	}
	return d.finish(ctx, v)
}

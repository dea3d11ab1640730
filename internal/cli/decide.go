package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"lockkeeper/internal/acts"
	"lockkeeper/internal/app"
	"lockkeeper/internal/dossier"
)

func (p *program) decideCommand() *cobra.Command {
	d := &decider{program: p}
	edit := false
	cmd := &cobra.Command{
		Use:   "decide",
		Short: "Answer what a run waits for",
		Long: `Show what a run waits for, in one queue, and answer it: topics to research, items
to do or not, plans to approve, diffs to review, and gaps. What lets most work go
on comes first. Everything has a reference, which the list shows and answers take:

  topic blog/posts/pagination   item blog/posts/i3   plan blog/posts
  review blog/posts/b1          gap blog/posts/b1/1

The kind can be left out where the name alone is clear. A run that waits goes on
at once. Only people decide: inside an agent's environment answers are refused.`,
		Example: `  lockkeeper decide
  lockkeeper decide show item blog/posts/i3
  lockkeeper decide todo blog/posts/i3 blog/posts/i4 --note "before the release"
  lockkeeper decide defer --where 'impact<=low'
  lockkeeper decide answer topic blog/posts/pagination notes.md
  lockkeeper decide approve plan blog/posts
  lockkeeper decide undo item blog/posts/i3
  lockkeeper decide walk`,
		Args: subcommand,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if edit { // the same as the command, for those who know it from git
				return d.editCommand().RunE(cmd, nil)
			}
			return d.open(cmd.Context(), func() error { return d.list(cmd.Context()) })
		},
	}
	cmd.Flags().BoolVar(&edit, "edit", false, "open an editor with one line for each open item, as decide edit does")
	cmd.PersistentFlags().StringVar(&d.name, "flow", "", "the `flow` that is meant: controllers, screens or tasks (default: the one under way)")
	const answers, plans, other = "answers", "plans", "other"
	cmd.AddGroup(&cobra.Group{ID: answers, Title: "Answers:"}, &cobra.Group{ID: plans, Title: "Edits of a plan, until it has begun:"}, &cobra.Group{ID: other, Title: "Looking, and all else:"})
	for id, list := range map[string][]*cobra.Command{
		answers: {d.todoCommand(), d.deferCommand(), d.rejectCommand(), d.answerCommand(), d.approveCommand(), d.returnCommand(),
			d.followUpCommand(), d.dismissCommand(), d.undoCommand(), d.addCommand(), d.editCommand(), d.walkCommand()},
		plans: {d.moveCommand(), d.splitCommand(), d.mergeCommand(), d.targetsCommand()},
		other: {d.showCommand(), d.retryCommand(), d.redoCommand(), d.reenableCommand(), d.excludeCommand()},
	} {
		for _, sub := range list {
			sub.GroupID = id
			cmd.AddCommand(sub)
		}
	}
	return cmd
}

// decider is a person in front of what waits in one flow.
type decider struct {
	*program
	name string // of the flow, as it was typed
	desk *acts.Desk
}

// open runs a command on the documents of the flow.
func (d *decider) open(ctx context.Context, run func() error) error {
	return d.with(ctx, func(a *app.App) (err error) {
		if d.desk, err = acts.Open(ctx, a, d.name, d.person()); err != nil {
			return err
		}
		return run()
	})
}

// deciding is open for an act, which agents may not do.
func (d *decider) deciding(cmd *cobra.Command, run func(ctx context.Context) error) error {
	return d.open(cmd.Context(), func() error {
		if err := d.noAgent(strings.TrimPrefix(cmd.CommandPath(), "lockkeeper ")); err != nil {
			return err
		}
		return run(cmd.Context())
	})
}

// act is deciding for an act with a verdict, which is told.
func (d *decider) act(cmd *cobra.Command, act func(ctx context.Context) (acts.Verdict, error)) error {
	return d.deciding(cmd, func(ctx context.Context) error { return d.tell(act(ctx)) })
}

// tell tells what came of an act, and what goes on now.
func (d *decider) tell(v acts.Verdict, failure error) error {
	if failure != nil {
		return errors.Join(append(v.Refused, failure)...)
	}
	err := v.Err()
	if d.json {
		refused := []map[string]any{}
		for _, one := range v.Refused {
			refused = append(refused, d.facts(one))
		}
		printed := d.printJSON(struct {
			acts.Verdict
			Refused []map[string]any `json:"refused"`
		}{v, refused})
		if printed != nil || err == nil {
			return printed
		}
		return &codedError{exit: exitCode(err)}
	}
	for _, one := range v.Done {
		fmt.Fprintln(d.Out, sentence(one))
	}
	for _, w := range v.Warnings {
		fmt.Fprintln(d.Err, d.painter(d.Err)(yellow, "warning:")+" "+clean(w))
	}
	for _, u := range v.Units {
		fmt.Fprintln(d.Out, goesOn(u))
	}
	if len(v.Done) > 0 {
		d.advise(d.next(v))
	}
	return err
}

// sentence says what was done.
func sentence(one acts.Done) string {
	text := clean(one.Ref.String()) + " " + clean(one.What)
	if one.Like != (dossier.Ref{}) {
		text += " (--only-this leaves it)"
	}
	return text
}

func goesOn(p acts.Progress) string {
	switch {
	case p.Waits > 0:
		return fmt.Sprintf("%s waits for %s", clean(p.Unit), counted(p.Waits, "more answer"))
	case p.Next == "":
		return clean(p.Unit) + " is complete"
	}
	return fmt.Sprintf("%s goes on with %s", clean(p.Unit), p.Next)
}

// next is what somebody does after an act.
func (d *decider) next(v acts.Verdict) string {
	run := d.desk.Command("run")
	if v.Failed > 0 { // which a run leaves alone unless it is told
		run = d.desk.Command("run", "--retry")
	}
	more := ""
	if v.Waiting > 0 {
		more = fmt.Sprintf("%s (%d more %s)", d.desk.Command("decide"), v.Waiting, plural(v.Waiting, "waits", "wait"))
	}
	switch {
	case v.Conductor != "" && more != "":
		return more + "; the run of " + v.Conductor + " goes on meanwhile"
	case v.Conductor != "":
		return "lockkeeper status; the run of " + v.Conductor + " goes on"
	case more != "":
		return more + ", then " + run
	}
	return run
}

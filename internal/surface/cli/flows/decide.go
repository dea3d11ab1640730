package flows

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"lockkeeper/internal/flow/progress"
	"lockkeeper/internal/project"
	"lockkeeper/internal/surface/acts"
	"lockkeeper/internal/surface/cli/command"
	"lockkeeper/internal/surface/cli/term"
)

func (p *program) decideCommand() *cobra.Command {
	d := &decider{program: p}
	edit := false
	cmd := &cobra.Command{
		Use:   "decide",
		Short: "Show and answer the decisions a run needs from you",
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
		Args: command.Subcommand,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if edit { // the same as the command, for those who know it from git
				return d.editCommand().RunE(cmd, nil)
			}
			return d.open(cmd.Context(), func() error { return d.list(cmd.Context()) })
		},
	}
	cmd.Flags().BoolVar(&edit, "edit", false, "open an editor with one line for each open item, as decide edit does")
	cmd.PersistentFlags().StringVar(&d.name, "flow", "", "the `flow` that is meant: controllers, screens or tasks (default: the one under way)")
	for _, group := range []struct {
		title    string
		commands []*cobra.Command
	}{
		{"Answer", []*cobra.Command{d.todoCommand(), d.deferCommand(), d.rejectCommand(), d.answerCommand(), d.approveCommand(), d.returnCommand(),
			d.followUpCommand(), d.dismissCommand(), d.undoCommand(), d.addCommand(), d.editCommand(), d.walkCommand()}},
		{"Edit a plan before it starts", []*cobra.Command{d.moveCommand(), d.splitCommand(), d.mergeCommand(), d.targetsCommand()}},
		{"Other commands", []*cobra.Command{d.showCommand(), d.retryCommand(), d.redoCommand(), d.reenableCommand(), d.excludeCommand()}},
	} {
		cmd.AddGroup(&cobra.Group{ID: group.title, Title: group.title + ":"})
		for _, sub := range group.commands {
			sub.GroupID = group.title
			cmd.AddCommand(sub)
		}
	}
	return cmd
}

// decider is a person in front of what waits in one flow.
type decider struct {
	*program
	name string // of the flow, as it was typed
	desk *acts.Decider
}

// open runs a command on the documents of the flow.
func (d *decider) open(ctx context.Context, run func() error) error {
	return d.With(ctx, func(a *project.Project) (err error) {
		if d.desk, err = acts.Open(ctx, a, d.name, d.Person()); err != nil {
			return err
		}
		return run()
	})
}

// deciding is open for an act, which agents may not do.
func (d *decider) deciding(cmd *cobra.Command, run func(ctx context.Context) error) error {
	return d.open(cmd.Context(), func() error {
		if err := d.NoAgent(strings.TrimPrefix(cmd.CommandPath(), "lockkeeper ")); err != nil {
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
	if d.JSON {
		refused := []map[string]any{}
		for _, one := range v.Refused {
			refused = append(refused, d.Facts(one))
		}
		printed := d.PrintJSON(struct {
			acts.Verdict
			Refused []map[string]any `json:"refused"`
		}{v, refused})
		if printed != nil || err == nil {
			return printed
		}
		return &command.ExitError{Code: command.ExitCode(err)}
	}
	for _, one := range v.Done {
		fmt.Fprintln(d.Out, sentence(one))
	}
	for _, w := range v.Warnings {
		fmt.Fprintln(d.Err, d.Painter(d.Err)(term.Yellow, "warning:")+" "+term.Clean(w))
	}
	for _, u := range v.Units {
		fmt.Fprintln(d.Out, goesOn(u))
	}
	if len(v.Done) > 0 {
		d.Advise(d.next(v))
	}
	return err
}

// sentence says what was done.
func sentence(one acts.Done) string {
	text := term.Clean(one.Ref.String()) + " " + term.Clean(one.What)
	if one.Like != (progress.Ref{}) {
		text += " (--only-this leaves it)"
	}
	return text
}

func goesOn(p acts.Progress) string {
	switch {
	case p.Waits > 0:
		return fmt.Sprintf("%s waits for %s", term.Clean(p.Unit), term.Counted(p.Waits, "more answer"))
	case p.Next == "":
		return term.Clean(p.Unit) + " is complete"
	}
	return fmt.Sprintf("%s goes on with %s", term.Clean(p.Unit), p.Next)
}

// next is what somebody does after an act.
func (d *decider) next(v acts.Verdict) string {
	run := d.desk.Command("run")
	if v.Failed > 0 { // which a run leaves alone unless it is told
		run = d.desk.Command("run", "--retry")
	}
	more := ""
	if v.Waiting > 0 {
		more = fmt.Sprintf("%s (%d more %s)", d.desk.Command("decide"), v.Waiting, term.Plural(v.Waiting, "waits", "wait"))
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

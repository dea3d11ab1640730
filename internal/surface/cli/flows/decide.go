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
		Long: `Show the decisions that a run needs, in one list, and answer them: topics to research,
items to accept or reject, plans to approve, diffs to review, and gaps. Decisions that
unblock the most work come first. Each has a reference, which answers take:

  topic blog/posts/pagination   item blog/posts/i3   plan blog/posts
  review blog/posts/b1          gap blog/posts/b1/1

You can omit the kind if the name is unambiguous. A waiting run resumes at once. Only
people decide: inside an agent's environment answers are refused.`,
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
			if edit { // the same as decide edit
				return d.editCommand().RunE(cmd, nil)
			}
			return d.open(cmd.Context(), func() error { return d.list(cmd.Context()) })
		},
	}
	cmd.Flags().BoolVar(&edit, "edit", false, "open an editor with one line for each open item, like decide edit")
	cmd.PersistentFlags().StringVar(&d.name, "flow", "", "the `flow`: controllers, screens or tasks (default: the current one)")
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

// decider has the commands of decide on one flow.
type decider struct {
	*program
	name string // the value of --flow
	flow *acts.Decider
}

// open runs a command on the decisions of the flow.
func (d *decider) open(ctx context.Context, run func() error) error {
	return d.With(ctx, func(a *project.Project) (err error) {
		if d.flow, err = acts.Open(ctx, a, d.name, d.Person()); err != nil {
			return err
		}
		return run()
	})
}

// deciding is like open, and refuses to run inside an agent.
func (d *decider) deciding(cmd *cobra.Command, run func(ctx context.Context) error) error {
	return d.open(cmd.Context(), func() error {
		if err := d.NoAgent(strings.TrimPrefix(cmd.CommandPath(), "lockkeeper ")); err != nil {
			return err
		}
		return run(cmd.Context())
	})
}

// act is like deciding, and prints the verdict of the act.
func (d *decider) act(cmd *cobra.Command, act func(ctx context.Context) (acts.Verdict, error)) error {
	return d.deciding(cmd, func(ctx context.Context) error { return d.tell(act(ctx)) })
}

// tell prints the outcome of an act, and what runs next.
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
		fmt.Fprintln(d.Out, nextPhase(u))
	}
	if len(v.Done) > 0 {
		d.Advise(d.next(v))
	}
	return err
}

// sentence describes one outcome.
func sentence(one acts.Done) string {
	text := term.Clean(one.Ref.String()) + " " + term.Clean(one.What)
	if one.Like != (progress.Ref{}) {
		text += " (--only-this leaves it open)"
	}
	return text
}

// nextPhase describes what a unit does next.
func nextPhase(p acts.Progress) string {
	switch {
	case p.Waits > 0:
		return fmt.Sprintf("%s waits for %s", term.Clean(p.Unit), term.Counted(p.Waits, "more answer"))
	case p.Next == "":
		return term.Clean(p.Unit) + " is complete"
	}
	return fmt.Sprintf("%s continues with %s", term.Clean(p.Unit), p.Next)
}

// next returns the next step after an act.
func (d *decider) next(v acts.Verdict) string {
	run := d.flow.Command("run")
	if v.Failed > 0 { // a run retries failed work only with --retry
		run = d.flow.Command("run", "--retry")
	}
	more := ""
	if v.Waiting > 0 {
		more = fmt.Sprintf("%s (%d more %s)", d.flow.Command("decide"), v.Waiting, term.Plural(v.Waiting, "waits", "wait"))
	}
	switch {
	case v.Conductor != "" && more != "":
		return more + "; the run of " + v.Conductor + " continues meanwhile"
	case v.Conductor != "":
		return "lockkeeper status; the run of " + v.Conductor + " continues"
	case more != "":
		return more + ", then " + run
	}
	return run
}

package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"lockkeeper"
	"lockkeeper/internal/app"
	"lockkeeper/internal/dossier"
	"lockkeeper/internal/flow"
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

	a     *app.App
	flow  flow.Flow
	book  *dossier.Book
	units []string
	by    lockkeeper.Actor
}

// open runs a command on the documents of the flow.
func (d *decider) open(ctx context.Context, run func() error) error {
	return d.with(ctx, func(a *app.App) error {
		name, err := a.LastFlow(d.name)
		if err != nil {
			return err
		}
		book, f, docs, err := a.Book(name)
		if err != nil {
			return err
		}
		d.a, d.book, d.flow, d.by = a, book, f, d.person()
		if d.units, err = a.UnitsOf(ctx, f, docs); err != nil {
			return err
		}
		return run()
	})
}

// deciding is open for an act, which agents may not do.
func (d *decider) deciding(cmd *cobra.Command, run func(ctx context.Context) error) error {
	if err := d.noAgent(strings.TrimPrefix(cmd.CommandPath(), "lockkeeper ")); err != nil {
		return err
	}
	return d.open(cmd.Context(), func() error { return run(cmd.Context()) })
}

// unit reads a unit that must be there.
func (d *decider) unit(ctx context.Context, name string) (*dossier.Unit, error) {
	if !slices.Contains(d.units, name) {
		return nil, &lockkeeper.InputError{Field: "unit", Value: name, Reason: "the flow " + d.flow.Name + " has no documents of it", Next: didYouMean(name, d.units)}
	}
	return d.book.Unit(ctx, name)
}

// done is an answer that was given.
type done struct {
	Ref  dossier.Ref `json:"ref"`
	What string      `json:"what"` // in words: what becomes of it
}

// progress is how far a unit is after an answer.
type progress struct {
	Unit  string `json:"unit"`
	Next  string `json:"next"`  // the phase; empty: it is complete
	Waits int    `json:"waits"` // for so many more answers before it goes on
}

// verdict is what came of a command that decides.
type verdict struct {
	Done      []done           `json:"done"`
	Refused   []map[string]any `json:"refused"`
	Warnings  []string         `json:"warnings"`
	Units     []progress       `json:"units"`
	Waiting   int              `json:"waiting"`   // answers that are still wanted, in all
	Conductor string           `json:"conductor"` // who goes on with it now; empty: nobody

	errs []error
}

func (v *verdict) add(ref dossier.Ref, what string) { v.Done = append(v.Done, done{ref, what}) }

// take takes up how one act went.
func (v *verdict) take(p *program, err error, ref dossier.Ref, what string) {
	if err != nil {
		v.errs, v.Refused = append(v.errs, err), append(v.Refused, p.facts(err))
		return
	}
	v.add(ref, what)
}

// finish tells a run that waits, and the person: what happened, and what goes on now.
func (d *decider) finish(ctx context.Context, v verdict) error {
	err := errors.Join(v.errs...)
	if len(v.Done) > 0 {
		if told := d.tell(ctx, v.Done); told != nil {
			return told
		}
	}
	if look := d.lookAfter(ctx, &v); look != nil {
		return errors.Join(append(v.errs, look)...)
	}
	if d.json {
		v.Done, v.Refused, v.Warnings, v.Units = listOf(v.Done), listOf(v.Refused), listOf(v.Warnings), listOf(v.Units)
		if printed := d.printJSON(v); printed != nil || err == nil {
			return printed
		}
		return &codedError{exit: exitCode(err)}
	}
	for _, one := range v.Done {
		fmt.Fprintf(d.Out, "%s %s\n", clean(one.Ref.String()), clean(one.What))
	}
	for _, w := range v.Warnings {
		fmt.Fprintln(d.Err, d.painter(d.Err)(yellow, "warning:")+" "+clean(w))
	}
	for _, u := range v.Units {
		fmt.Fprintln(d.Out, u.sentence())
	}
	if len(v.Done) > 0 {
		d.advise(v.next())
	}
	return err
}

// tell has whoever conducts the flow look at what was decided.
func (d *decider) tell(ctx context.Context, list []done) error {
	var words []string
	for _, one := range list {
		words = append(words, one.Ref.String()+" "+one.What)
	}
	if err := d.a.Decided(ctx, d.by, strings.Join(words, "; ")); err != nil {
		return fmt.Errorf("it is stored (%s), and a run that waits could not be told: %w", strings.Join(words, "; "), err)
	}
	return nil
}

// lookAfter sees where the units are that something was decided of.
func (d *decider) lookAfter(ctx context.Context, v *verdict) error {
	for _, one := range v.Done {
		if slices.ContainsFunc(v.Units, func(s progress) bool { return s.Unit == one.Ref.Unit }) {
			continue
		}
		u, err := d.book.Unit(ctx, one.Ref.Unit)
		if err != nil {
			return err
		}
		s := progress{Unit: u.Name, Next: u.Phase()}
		for _, g := range u.Gates() {
			if g.Frees > 0 {
				s.Waits++
			}
		}
		v.Units = append(v.Units, s)
	}
	queue, err := d.book.Waiting(ctx, d.units)
	if err != nil {
		return err
	}
	v.Waiting = len(queue)
	v.Conductor, err = d.a.Conductor(ctx)
	return err
}

func (s progress) sentence() string {
	switch {
	case s.Waits > 0:
		return fmt.Sprintf("%s waits for %s", clean(s.Unit), counted(s.Waits, "more answer"))
	case s.Next == "":
		return clean(s.Unit) + " is complete"
	}
	return fmt.Sprintf("%s goes on with %s", clean(s.Unit), s.Next)
}

func (v verdict) next() string {
	more := ""
	if v.Waiting > 0 {
		more = fmt.Sprintf("lockkeeper decide (%d more %s)", v.Waiting, plural(v.Waiting, "waits", "wait"))
	}
	switch {
	case v.Conductor != "" && more != "":
		return more + "; the run of " + v.Conductor + " goes on meanwhile"
	case v.Conductor != "":
		return "lockkeeper status; the run of " + v.Conductor + " goes on"
	case more != "":
		return more + ", then lockkeeper run"
	}
	return "lockkeeper run"
}

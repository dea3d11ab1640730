package flows

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"lockkeeper/internal/encoding/shellword"
	"lockkeeper/internal/flow"
	"lockkeeper/internal/flow/conduct"
	"lockkeeper/internal/flow/progress"
	"lockkeeper/internal/flow/run"
	"lockkeeper/internal/project"
	"lockkeeper/internal/surface/acts"
	"lockkeeper/internal/surface/cli/command"
	"lockkeeper/internal/surface/cli/term"
	"lockkeeper/internal/surface/view"
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
			if edit { // does the same as decide edit
				return d.editCommand().RunE(cmd, nil)
			}
			return d.open(cmd.Context(), func() error { return d.list(cmd.Context()) })
		},
	}
	cmd.Flags().BoolVar(&edit, "edit", false, "open an editor with one line for each open item, like decide edit")
	cmd.PersistentFlags().StringVar(&d.name, "flow", "", "the `flow`: "+strings.Join(flow.Names(), ", ")+" (default: the current one)")
	for _, group := range []struct {
		title    string
		commands []*cobra.Command
	}{
		{"Answer", append(d.answerCommands(), d.addCommand(), d.editCommand(), d.walkCommand())},
		{"Edit a plan before it starts", d.planCommands()},
		{"Other commands", []*cobra.Command{d.showCommand(), d.failedCommand(), d.questionCommand(), d.retryCommand(), d.redoCommand(), d.reenableCommand(), d.excludeCommand()}},
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

func (d *decider) next(v acts.Verdict) string {
	run := d.flow.Command("run")
	switch {
	case v.Failed > 0: // a run retries failed work only with --retry
		run = d.flow.Command("run", "--retry")
	case !slices.ContainsFunc(v.Units, func(u acts.Progress) bool { return u.Next != "" }):
		run = d.continuation()
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

// continuation returns the command that continues the flow, starts its first run, or shows what its
// completed run changed.
func (d *decider) continuation() string {
	last, err := conduct.CurrentRun(d.flow.App)
	switch {
	case err != nil: // the run reports it
	case last == nil && d.name == "":
		return conduct.FirstRun(d.flow.App)
	case last != nil && last.Flow == d.flow.Flow.Name && !last.Ended.IsZero():
		return d.flow.Command("report")
	}
	return d.flow.Command("run")
}

// waitingList is the list of open decisions, as JSON.
type waitingList struct {
	Flow      string              `json:"flow"`
	Conductor string              `json:"conductor"` // the holder that runs the flow; empty: no process runs it
	Waiting   []progress.Decision `json:"waiting"`
	Asked     []progress.Ref      `json:"asked"` // topics that the API will answer
	Failed    []run.Failure       `json:"failed"`
}

// list prints the open decisions, grouped by kind. The decision that unblocks the most comes first.
func (d *decider) list(ctx context.Context) error {
	l, err := d.read(ctx)
	if err != nil {
		return err
	}
	if d.JSON {
		return d.PrintJSON(l)
	}
	if len(l.Waiting)+len(l.Failed) == 0 {
		fmt.Fprintf(d.Out, "no decision of the flow %s waits for you\n", l.Flow)
		if l.Conductor == "" {
			d.Advise(d.continuation())
		}
		return nil
	}
	paint := d.Painter(d.Out)
	for i, group := range grouped(l.Waiting) {
		if i > 0 {
			fmt.Fprintln(d.Out)
		}
		fmt.Fprintln(d.Out, paint(term.Bold, term.Counted(len(group), string(group[0].Ref.Kind))+" "+term.Plural(len(group), "waits", "wait")))
		d.table(group, l.Asked).Print(d.Out, paint)
	}
	if len(l.Failed) > 0 {
		if len(l.Waiting) > 0 {
			fmt.Fprintln(d.Out)
		}
		fmt.Fprintln(d.Out, paint(term.Red, fmt.Sprintf("%d failed", len(l.Failed))))
		t := term.Table{Heads: []string{"WHAT", "PHASE", "SINCE", "WHY"}, Wide: 3, Sentences: true}
		for _, f := range l.Failed {
			reason, _, _ := command.CutNext(f.Reason)
			t.Add(term.Clean(f.Name()), f.Phase, d.ago(f.At), errorLine(reason))
		}
		t.Print(d.Out, paint)
	}
	d.Advise(d.answerFirst(ctx, l))
	return nil
}

func (d *decider) read(ctx context.Context) (*waitingList, error) {
	v, err := view.New(d.flow.App).Decisions(ctx, d.flow.Flow.Name)
	if err != nil {
		return nil, err
	}
	if len(v.Unread) > 0 {
		return nil, fmt.Errorf("cannot read the documents of %s: %s", v.Unread[0].Unit, v.Unread[0].Reason)
	}
	failed, err := conduct.Failures(ctx, d.flow.App, v.Flow) // includes units that have no documents
	if err != nil {
		return nil, err
	}
	l := &waitingList{Flow: v.Flow, Conductor: v.Conductor, Waiting: []progress.Decision{}, Asked: []progress.Ref{}, Failed: acts.OrEmpty(failed)}
	for _, g := range v.Open {
		l.Waiting = append(l.Waiting, g.Decision)
		if g.Asked {
			l.Asked = append(l.Asked, g.Ref)
		}
	}
	return l, nil
}

// grouped groups decisions by kind, in the order of their first decisions.
func grouped(queue []progress.Decision) (groups [][]progress.Decision) {
	for _, g := range queue {
		at := slices.IndexFunc(groups, func(group []progress.Decision) bool { return group[0].Ref.Kind == g.Ref.Kind })
		if at < 0 {
			groups = append(groups, nil)
			at = len(groups) - 1
		}
		groups[at] = append(groups[at], g)
	}
	return groups
}

func (d *decider) table(group []progress.Decision, asked []progress.Ref) *term.Table {
	t := &term.Table{Heads: []string{"REFERENCE", "SINCE", "UNBLOCKS", "WHAT"}, Wide: 3, Sentences: true}
	for _, g := range group {
		t.Add(term.Clean(g.Ref.String()), d.ago(g.Since), frees(g.Frees, g.Left), gist(g, asked))
	}
	return t
}

// frees returns how many steps an answer unblocks, and after how many answers.
func frees(n, left int) string {
	if left > 1 {
		return fmt.Sprintf("%d after %d answers", n, left)
	}
	return fmt.Sprint(n)
}

// gist returns the facts of a decision in one line.
func gist(g progress.Decision, asked []progress.Ref) string {
	switch g.Ref.Kind {
	case progress.TopicKind:
		if slices.Contains(asked, g.Ref) {
			return "(the API will answer) " + oneLine(g.Title)
		}
	case progress.ItemKind:
		text := fmt.Sprintf("%s/%s  %s", fact(g, "impact"), fact(g, "effort"), oneLine(g.Title))
		for _, f := range g.Facts {
			if strings.HasPrefix(f.Name, "decided before") {
				text = "(" + f.Name + ") " + text
			}
		}
		if len(g.Same) > 0 {
			text += " (equal: " + names(g.Same) + ")"
		}
		return text
	case progress.ReviewKind:
		return oneLine(g.Title) + ": " + oneLine(fact(g, "files"))
	case progress.GapKind:
		return oneLine(g.Title) + ": " + oneLine(fact(g, "reason"))
	}
	return oneLine(g.Title)
}

func fact(g progress.Decision, name string) string {
	for _, f := range g.Facts {
		if f.Name == name {
			return f.Value
		}
	}
	return ""
}

func names(refs []progress.Ref) string {
	return term.Join(refs, func(r progress.Ref) string { return term.Clean(r.String()) })
}

// ago returns how long a decision waits, or "-" if the document was created by hand.
func (d *decider) ago(since time.Time) string {
	if since.IsZero() {
		return "-"
	}
	return term.Span(d.Now().Sub(since))
}

// oneLine returns untrusted text as part of a line.
func oneLine(text string) string {
	return unfold(term.Clean(unfold(text)))
}

// errorLine returns the message of an error as part of a line. Joined errors are separated by
// semicolons.
func errorLine(text string) string {
	var said []string
	for line := range strings.Lines(text) {
		if words := oneLine(line); words != "" {
			said = append(said, words)
		}
	}
	return strings.Join(said, "; ")
}

// answerFirst returns the commands that answer the first decision.
func (d *decider) answerFirst(ctx context.Context, l *waitingList) string {
	if len(l.Waiting) == 0 {
		return d.flow.Command("decide", "retry", shellword.Join([]string{l.Failed[0].Name()}))
	}
	first := l.Waiting[0].Ref
	next := d.flow.Command("decide", "show", first.String())
	for _, a := range acts.Answers() {
		if a.Kind == first.Kind && d.flow.Gives(ctx, a.Word, first) {
			next += ", " + d.flow.Command("decide", a.Word, first.String())
			break
		}
	}
	if len(l.Waiting) > 1 {
		next += ", or " + d.flow.Command("decide", "walk")
	}
	return next
}

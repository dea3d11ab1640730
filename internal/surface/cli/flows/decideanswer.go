package flows

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"lockkeeper"
	"lockkeeper/internal/flow"
	"lockkeeper/internal/flow/progress"
	"lockkeeper/internal/surface/acts"
	"lockkeeper/internal/surface/cli/command"
	"lockkeeper/internal/surface/cli/term"
)

func (d *decider) answerCommands() []*cobra.Command {
	return []*cobra.Command{
		d.itemVerb("todo", "Accept items", `Accept items. After the last decision on a unit its batches are planned.`, `  lockkeeper decide todo blog/posts/i3 blog/comments/i1
  lockkeeper decide todo --where 'impact>=medium,effort<=low'
  lockkeeper decide todo blog/posts/i4 --was defer`),
		d.itemVerb("defer", "Defer items to a later run", `Defer items: the next run proposes them again, marked as deferred.`, `  lockkeeper decide defer blog/posts/i3 --note "after the release"
  lockkeeper decide defer --where all`),
		d.itemVerb("reject", "Reject items, or skip research topics", `Reject items: they are not proposed again unless you re-enable them. A rejected topic
needs no answer; --note says why.`, `  lockkeeper decide reject blog/posts/i4
  lockkeeper decide reject topic blog/posts/pagination --note "we know"`),
		d.answerCommand(),
		d.verb("approve", "Approve a plan or a diff", `Approve the batches of a plan, which are then applied, or a diff under review, which then
lands as shown. See it first with decide show.`, `  lockkeeper decide approve plan blog/posts
  lockkeeper decide approve review blog/posts/b1`, &acts.AnswerInput{}),
		d.returnCommand(),
		d.verb(progress.Again, "Test batches with a common failure again", `After several batches failed in the same way, test them again. Agents fix what still fails.`,
			`  lockkeeper decide again failure blog/posts/1a2b3c4d`, &acts.AnswerInput{}),
		d.verb(progress.Without, "Continue without batches with a common failure", `After several batches failed in the same way, continue without them. They fail without a
fix, and so does every later batch that fails in this way. decide again
changes this answer.`,
			`  lockkeeper decide without failure blog/posts/1a2b3c4d`, &acts.AnswerInput{}),
		d.verb(progress.Stop, "Stop the run because of a common failure", `After several batches failed in the same way, stop the run. The same run can be resumed later.`,
			`  lockkeeper decide stop failure blog/posts/1a2b3c4d`, &acts.AnswerInput{}),
		d.verb("follow-up", "Make the change of a gap in a new batch", `Make a change that no grant covered, in a new batch. The batch waits for approval and does
not affect other batches.`, `  lockkeeper decide follow-up gap blog/posts/b1/1`, &acts.AnswerInput{}),
		d.dismissCommand(),
		d.undoCommand(),
	}
}

// returnCommand returns the verb that returns diffs, with comments on their lines.
func (d *decider) returnCommand() *cobra.Command {
	var s acts.AnswerInput
	var comments []string
	cmd := d.verb("return", "Return a diff for changes", `Return a diff under review. An agent changes it as --note says, and as the comments on its
lines say: those of --comment, and those that people wrote on the dashboard and that were
not sent yet. Then it is tested, verified and shown to you again.`, `  lockkeeper decide return review blog/posts/b1 --note "keep the old route" --note "add a test"
  lockkeeper decide return review blog/posts/b1 --comment "app/post.rb:12: use the scope"`, &s)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return d.act(cmd, func(ctx context.Context) (acts.Verdict, error) {
			refs, err := d.refs(ctx, args, progress.ReviewKind)
			if err != nil {
				return acts.Verdict{}, err
			}
			if err := d.comment(ctx, comments, refs...); err != nil {
				return acts.Verdict{}, err
			}
			return d.flow.Give(ctx, "return", refs, s)
		})
	}
	commentFlag(cmd, &comments)
	return cmd
}

func commentFlag(cmd *cobra.Command, comments *[]string) {
	cmd.Flags().StringArrayVar(comments, "comment", nil, "a comment on a line of the diff, as `PATH:LINE: TEXT`; repeatable")
}

// comment stores comments on lines of the only named batch.
func (d *decider) comment(ctx context.Context, comments []string, refs ...progress.Ref) error {
	if len(comments) > 0 && len(refs) != 1 {
		return &lockkeeper.InputError{Field: "comment", Value: comments[0], Reason: fmt.Sprintf("%d batches are named", len(refs)), Next: "name one batch"}
	}
	var list []acts.Comment
	for _, text := range comments {
		c, err := acts.ParseComment(refs[0].Batch, text)
		if err != nil {
			return err
		}
		list = append(list, c)
	}
	for _, c := range list {
		v, err := c.Do(ctx, d.flow, refs[0].Unit)
		if err == nil {
			err = v.Err()
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// verb returns a command that gives one answer to decisions.
func (d *decider) verb(word, short, long, example string, s *acts.AnswerInput) *cobra.Command {
	var where string
	var preview bool
	cmd := &cobra.Command{
		Use: word + " REF… | --where CONDITIONS", Short: short, Example: example,
		Long: long + `

With --where it answers every open decision that meets all conditions, and skips what
changes meanwhile: unit, batch and path match patterns, text what contains a text, impact
and effort with >=, <= or =, risk=yes or no, kind; all means every one. --preview only
lists them.`,
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			switch {
			case (len(args) > 0) == (where != ""):
				return command.Usage(cmd, "needs references, as lockkeeper decide lists them, or --where")
			case preview && where == "":
				return command.Usage(cmd, "--preview needs --where")
			case preview:
				return d.preview(cmd.Context(), word, where)
			}
			return d.act(cmd, func(ctx context.Context) (acts.Verdict, error) {
				if where != "" {
					return d.flow.GiveWhere(ctx, word, where, *s)
				}
				refs, err := d.refs(ctx, args, acts.KindsOf(word)...)
				if err != nil {
					return acts.Verdict{}, err
				}
				return d.flow.Give(ctx, word, refs, *s)
			})
		},
	}
	cmd.Flags().StringArrayVar(&s.Notes, "note", nil, "a note for the agent; repeatable")
	cmd.Flags().StringVar(&where, "where", "", "instead of references: every open decision that meets these `conditions`")
	cmd.Flags().BoolVar(&preview, "preview", false, "with --where: only list what would be answered")
	return cmd
}

// preview lists the decisions that an answer with conditions would answer.
func (d *decider) preview(ctx context.Context, word, where string) error {
	return d.open(ctx, func() error {
		list, err := d.flow.Matching(ctx, where, acts.KindsOf(word)...)
		if err != nil {
			return err
		}
		return d.Show(map[string]any{"matches": acts.OrEmpty(list)}, func() {
			fmt.Fprintf(d.Out, "%s would be answered %s\n", term.Counted(len(list), "decision"), word)
			t := &term.Table{Heads: []string{"REFERENCE", "IMPACT/EFFORT", "WHAT", "RISK"}, Wide: 3, Sentences: true}
			for _, g := range list {
				t.Add(term.Clean(g.Ref.String()), cmp.Or(g.Impact, "-")+"/"+cmp.Or(g.Effort, "-"), oneLine(g.Title), oneLine(cmp.Or(strings.Join(g.Risks, "; "), "-")))
			}
			t.Print(d.Out, d.Painter(d.Out))
		})
	})
}

// dismissCommand returns the verb for gaps, which has --all as well and asks at a terminal.
func (d *decider) dismissCommand() *cobra.Command {
	var s acts.AnswerInput
	var all, yes bool
	cmd := d.verb("dismiss", "Dismiss gaps", `Dismiss changes that no grant covered. They stay kept: see lockkeeper rescue list. --all
dismisses every open gap. At a terminal --all and --where show the gaps and ask. decide
undo opens a gap again.`, `  lockkeeper decide dismiss gap blog/posts/b1/1
  lockkeeper decide dismiss --all
  lockkeeper decide dismiss --where 'path=build/**'`, &s)
	cmd.Use = "dismiss REF… | --all | --where CONDITIONS"
	usual := cmd.RunE
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		where, preview := cmd.Flag("where").Value.String(), cmd.Flag("preview").Changed
		switch {
		case all && (where != "" || len(args) > 0):
			return command.Usage(cmd, "needs references, as lockkeeper decide lists them, --all, or --where")
		case all:
			where = "all"
		case preview || where == "":
			return usual(cmd, args)
		}
		return d.act(cmd, func(ctx context.Context) (acts.Verdict, error) {
			list, err := d.flow.Matching(ctx, where, progress.GapKind)
			if err != nil {
				return acts.Verdict{}, err
			}
			facts, refs, seen := "", []progress.Ref{}, acts.Seen{}
			for _, g := range list {
				refs, seen[g.Ref] = append(refs, g.Ref), g.Version
				facts += fmt.Sprintf("\n  %s: %s", g.Ref, term.Clean(g.Title))
			}
			if len(refs) == 0 {
				return acts.Verdict{}, &lockkeeper.RefusedError{Act: "dismiss", Reason: "no open gap matches", Next: d.flow.Command("decide")}
			}
			if term.IsTerminal(d.In) {
				if err := d.AgreeUnlessYes(yes, "decide dismiss", "This dismisses "+term.Counted(len(refs), "gap")+":"+facts); err != nil {
					return acts.Verdict{}, err
				}
			}
			s.Seen = seen
			return d.flow.GiveMany(ctx, "dismiss", refs, s)
		})
	}
	cmd.Flags().BoolVar(&yes, "yes", false, "do not ask")
	cmd.Flags().BoolVar(&all, "all", false, "dismiss every open gap")
	return cmd
}

// itemVerb returns a verb for items.
func (d *decider) itemVerb(word, short, long, example string) *cobra.Command {
	var s acts.AnswerInput
	cmd := d.verb(word, short, long+`

Equal items of other units are decided with it, and listed; --only-this leaves them open,
and so does --where.`, example, &s)
	cmd.Flags().StringVar(&s.Was, "was", "", "change a `decision`: its present value (todo, defer or reject)")
	cmd.Flags().BoolVar(&s.Only, "only-this", false, "leave equal items of other units open")
	return cmd
}

func (d *decider) undoCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "undo REF…",
		Short: "Undo answers",
		Long: `Undo answers. The decision on an item can be undone until the batches are planned, and
the answer to a topic until it is used. The approval of a plan can be undone until its
first batch starts, and the answer to a gap until its batch is approved. Undo landings
with lockkeeper undo.`,
		Example: `  lockkeeper decide undo item blog/posts/i3
  lockkeeper decide undo plan blog/posts`,
		Args: command.AtLeast(1, "references"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return d.act(cmd, func(ctx context.Context) (acts.Verdict, error) {
				refs, err := d.refs(ctx, args, progress.Kinds()...)
				if err != nil {
					return acts.Verdict{}, err
				}
				return d.flow.Withdraw(ctx, refs)
			})
		},
	}
}

func (d *decider) answerCommand() *cobra.Command {
	var api bool
	cmd := &cobra.Command{
		Use:   "answer TOPIC [FILE] | --api",
		Short: "Answer a research topic",
		Long: `Store your answer to a research topic, from a file or standard input. With --api the next
run asks the Messages API about this topic; that needs ANTHROPIC_API_KEY.`,
		Example: `  lockkeeper decide answer topic blog/posts/pagination notes.md
  xclip -o | lockkeeper decide answer topic blog/posts/pagination
  lockkeeper decide answer topic blog/posts/caching --api`,
		Args: command.AtLeast(1, "a topic"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return d.act(cmd, func(ctx context.Context) (v acts.Verdict, err error) {
				topic, rest, err := d.ref(ctx, args, progress.TopicKind)
				switch {
				case err != nil:
					return v, err
				case len(rest) > 1 || api && len(rest) > 0:
					return v, command.Usage(cmd, "takes one topic, and either a file or --api")
				case api:
					return d.flow.Give(ctx, "api", []progress.Ref{topic}, acts.AnswerInput{})
				}
				text, err := d.pasted(topic, rest)
				if err != nil {
					return v, err
				}
				return d.flow.Give(ctx, "answer", []progress.Ref{topic}, acts.AnswerInput{Text: text})
			})
		},
	}
	cmd.Flags().BoolVar(&api, "api", false, "let the Messages API answer")
	return cmd
}

const answerLimit = 4 << 20

// pasted reads an answer from the named file or standard input.
func (d *decider) pasted(topic progress.Ref, file []string) (text string, err error) {
	from := d.In
	if len(file) == 1 && file[0] != "-" {
		if from, err = os.Open(d.Path(file[0])); err != nil {
			return "", &lockkeeper.InputError{Field: "file", Value: file[0], Reason: err.Error(), Next: "name a file with the answer, or - for standard input"}
		}
		defer func() { err = errors.Join(err, from.Close()) }()
	} else if term.IsTerminal(d.In) {
		fmt.Fprintf(d.Err, "Type or paste the answer to %s, and end it with Ctrl-D on a line of its own.\n", term.Clean(topic.String()))
	}
	read, err := io.ReadAll(io.LimitReader(from, answerLimit+1))
	switch {
	case err != nil:
		return "", err
	case len(read) > answerLimit:
		return "", &lockkeeper.InputError{Field: "text", Value: strings.Join(file, ""), Reason: "larger than 4 MiB", Next: "shorten it to what the agent needs"}
	}
	return string(read), nil
}

func (d *decider) addCommand() *cobra.Command {
	var item acts.AddItem
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
			return d.act(cmd, func(ctx context.Context) (acts.Verdict, error) { return item.Do(ctx, d.flow, args[0]) })
		},
	}
	cmd.Flags().StringVar(&impact, "impact", "", "low, medium or high (default medium)")
	cmd.Flags().StringVar(&effort, "effort", "", "low, medium or high (default medium)")
	cmd.Flags().StringVar(&item.Rationale, "note", "", "the rationale")
	return cmd
}

// planCommands returns the commands that change the batches of a unit.
func (d *decider) planCommands() []*cobra.Command {
	return []*cobra.Command{
		d.planEdit(&cobra.Command{
			Use:     "move UNIT/ITEM BATCH",
			Short:   "Move an item to another batch",
			Long:    "Move an item to another batch, which may then also change its files.",
			Example: "  lockkeeper decide move blog/posts/i3 b2",
			Args:    command.Exactly(2, "an item and a batch"),
		}, func(item string, args []string) acts.UnitAct { return acts.MoveItem{Item: item, To: args[0]} }),
		d.planEdit(&cobra.Command{
			Use:     "split UNIT/BATCH ITEM…",
			Short:   "Split items off into a new batch",
			Long:    "Move items of a batch to a new batch after it, with the same files.",
			Example: "  lockkeeper decide split blog/posts/b1 i3 i4",
			Args:    command.AtLeast(2, "a batch and items of it"),
		}, func(batch string, items []string) acts.UnitAct { return acts.Split{Batch: batch, Items: items} }),
		d.planEdit(&cobra.Command{
			Use:     "merge UNIT/BATCH BATCH",
			Short:   "Merge a batch into another",
			Long:    "Move all items of the second batch to the first.",
			Example: "  lockkeeper decide merge blog/posts/b1 b2",
			Args:    command.Exactly(2, "two batches"),
		}, func(into string, args []string) acts.UnitAct { return acts.Merge{Into: into, From: args[0]} }),
		d.planEdit(&cobra.Command{
			Use:     "targets UNIT/BATCH PATH…",
			Short:   "Set which files a batch may change",
			Long:    "Set which files a batch may change, instead of the planned ones: exact paths from the\nroot, no directories.",
			Example: "  lockkeeper decide targets blog/posts/b1 app/models/blog/post.rb test/models/blog/post_test.rb",
			Args:    command.AtLeast(2, "a batch and the files that it may change"),
		}, func(batch string, paths []string) acts.UnitAct { return acts.SetTargets{Batch: batch, Paths: paths} }),
	}
}

// planEdit completes a command whose first argument names a part of a unit, like blog/posts/b1.
func (d *decider) planEdit(cmd *cobra.Command, change func(what string, args []string) acts.UnitAct) *cobra.Command {
	cmd.Long += `

It is possible until the first batch starts, and revokes an approval of the plan.`
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		unit, what, err := command.SplitPart(args[0])
		if err != nil {
			return err
		}
		return d.act(cmd, func(ctx context.Context) (acts.Verdict, error) { return change(what, args[1:]).Do(ctx, d.flow, unit) })
	}
	return cmd
}

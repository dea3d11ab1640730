package flows

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"lockkeeper"
	"lockkeeper/internal/flow/progress"
	"lockkeeper/internal/surface/acts"
	"lockkeeper/internal/surface/cli/command"
	"lockkeeper/internal/surface/cli/term"
)

// verb is a command that gives one answer to what is referred to.
func (d *decider) verb(word, short, long, example string) (*cobra.Command, *acts.Saying) {
	var s acts.Saying
	cmd := &cobra.Command{
		Use: word + " REF…", Short: short, Long: long, Example: example,
		Args: command.AtLeast(1, "references, as lockkeeper decide lists them"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return d.act(cmd, func(ctx context.Context) (acts.Verdict, error) {
				refs, err := d.refs(ctx, args, acts.KindsOf(word)...)
				if err != nil {
					return acts.Verdict{}, err
				}
				return d.desk.Give(ctx, word, refs, s)
			})
		},
	}
	cmd.Flags().StringArrayVar(&s.Notes, "note", nil, "what you want to say; can be repeated")
	return cmd, &s
}

// itemVerb is a verb for items, which can also be chosen by their ratings.
func (d *decider) itemVerb(word, short, long, example string) *cobra.Command {
	cmd, s := d.verb(word, short, long+`

Items of other units that say the same are decided with it, and named; --only-this
leaves them. With --where it is the answer to every open item that meets all the
conditions: impact and effort, with >=, <= or =; all is every open item.`, example)
	cmd.Use = word + " REF… | --where CONDITIONS"
	var where string
	named := cmd.RunE
	cmd.Args = cobra.ArbitraryArgs
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		switch {
		case where == "" && len(args) > 0:
			return named(cmd, args)
		case where == "" || len(args) > 0:
			return command.Usage(cmd, "needs references, as lockkeeper decide lists them, or --where")
		}
		policy, err := progress.ParsePolicy(where)
		if err == nil && (!policy.All && policy.Where == nil || policy.Topics || policy.Reviews) {
			err = &lockkeeper.InputError{Field: "where", Value: where, Reason: "not conditions for items", Next: "write all, or conditions such as impact>=medium,effort<=low"}
		}
		if err != nil {
			return err
		}
		return d.act(cmd, func(ctx context.Context) (acts.Verdict, error) {
			refs, err := d.desk.Matching(ctx, policy)
			if err == nil && len(refs) == 0 {
				err = &lockkeeper.RefusedError{Act: word, Reason: "no open item meets " + policy.String(), Next: d.desk.Command("decide")}
			}
			if err != nil {
				return acts.Verdict{}, err
			}
			only := *s
			only.Only = true // those that meet the conditions, and no others
			return d.desk.Give(ctx, word, refs, only)
		})
	}
	cmd.Flags().StringVar(&where, "where", "", "instead of references: open items that meet these `conditions`")
	cmd.Flags().StringVar(&s.Was, "was", "", "change a `decision` that was made: what it is now (todo, defer or reject)")
	cmd.Flags().BoolVar(&s.Only, "only-this", false, "leave items of other units that say the same")
	return cmd
}

func (d *decider) todoCommand() *cobra.Command {
	return d.itemVerb("todo", "Accept items", `Say that items are to be done. With the last decision on a unit its batches are
planned.`, `  lockkeeper decide todo blog/posts/i3 blog/comments/i1
  lockkeeper decide todo --where 'impact>=medium,effort<=low'
  lockkeeper decide todo blog/posts/i4 --was defer`)
}

func (d *decider) deferCommand() *cobra.Command {
	return d.itemVerb("defer", "Defer items to a later run", `Say that items are for later: they come up again in the next run, marked as deferred.`, `  lockkeeper decide defer blog/posts/i3 --note "after the release"
  lockkeeper decide defer --where all`)
}

func (d *decider) rejectCommand() *cobra.Command {
	return d.itemVerb("reject", "Reject items, or skip research topics", `Say that items are not wanted: they do not come up again unless you re-enable
them. Of a topic it says that it needs no answer, and --note why.`, `  lockkeeper decide reject blog/posts/i4
  lockkeeper decide reject topic blog/posts/pagination --note "we know"`)
}

func (d *decider) approveCommand() *cobra.Command {
	cmd, _ := d.verb("approve", "Approve a plan or a diff", `Agree to the batches of a plan, which then are applied, or to a diff that was to be
reviewed, which then lands as it was shown. Look at it first: decide show.`, `  lockkeeper decide approve plan blog/posts
  lockkeeper decide approve review blog/posts/b1`)
	return cmd
}

func (d *decider) returnCommand() *cobra.Command {
	cmd, _ := d.verb("return", "Return a diff for changes", `Return a diff that was to be reviewed: an agent changes it as --note says, and it is
tested, verified and shown to you anew.`, `  lockkeeper decide return review blog/posts/b1 --note "keep the old route" --note "add a test"`)
	return cmd
}

func (d *decider) followUpCommand() *cobra.Command {
	cmd, _ := d.verb("follow-up", "Make the change of a gap in a new batch", `Have a batch of its own make a change that no grant covered. It waits for approval,
and disturbs no other batch.`, `  lockkeeper decide follow-up gap blog/posts/b1/1`)
	return cmd
}

func (d *decider) dismissCommand() *cobra.Command {
	cmd, _ := d.verb("dismiss", "Dismiss a gap", `Say that nothing is to be made of a change that no grant covered. What the agent
wrote is still kept: lockkeeper rescue list.`, `  lockkeeper decide dismiss gap blog/posts/b1/1`)
	return cmd
}

func (d *decider) undoCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "undo REF…",
		Short: "Undo answers",
		Long: `Take answers back: the decision on an item until the batches are planned, the
answer to a topic until something was made of it, the approval of a plan until its
first batch begins, and what was said of a gap until its batch is approved. What
landed is taken back by lockkeeper undo.`,
		Example: `  lockkeeper decide undo item blog/posts/i3
  lockkeeper decide undo plan blog/posts`,
		Args: command.AtLeast(1, "references"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return d.act(cmd, func(ctx context.Context) (acts.Verdict, error) {
				refs, err := d.refs(ctx, args, kinds()...)
				if err != nil {
					return acts.Verdict{}, err
				}
				return d.desk.TakeBack(ctx, refs)
			})
		},
	}
}

func (d *decider) answerCommand() *cobra.Command {
	var api bool
	cmd := &cobra.Command{
		Use:   "answer TOPIC [FILE] | --api",
		Short: "Answer a research topic",
		Long: `Store what you found out about a topic elsewhere: from a file, or from standard
input. With --api the next run asks the Messages API about this one topic; that
needs ANTHROPIC_API_KEY. Each topic has its own way.`,
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
					return d.desk.Give(ctx, "api", []progress.Ref{topic}, acts.Saying{})
				}
				text, err := d.pasted(topic, rest)
				if err != nil {
					return v, err
				}
				return d.desk.Give(ctx, "answer", []progress.Ref{topic}, acts.Saying{Text: text})
			})
		},
	}
	cmd.Flags().BoolVar(&api, "api", false, "have the Messages API asked")
	return cmd
}

// answerLimit is more than anybody reads, and less than what harms.
const answerLimit = 4 << 20

// pasted reads what a person found, from the file they name or standard input.
func (d *decider) pasted(topic progress.Ref, file []string) (text string, err error) {
	from := d.In
	if len(file) == 1 && file[0] != "-" {
		name := file[0]
		if !filepath.IsAbs(name) {
			name = filepath.Join(d.Base(), name)
		}
		if from, err = os.Open(name); err != nil {
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
		return "", &lockkeeper.InputError{Field: "text", Value: strings.Join(file, ""), Reason: "larger than 4 MiB", Next: "keep to what an agent needs to know"}
	}
	return string(read), nil
}

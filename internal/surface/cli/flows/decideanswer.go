package flows

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"lockkeeper"
	"lockkeeper/internal/flow/progress"
	"lockkeeper/internal/surface/acts"
	"lockkeeper/internal/surface/cli/command"
	"lockkeeper/internal/surface/cli/term"
)

// verb returns a command that gives one answer to decisions.
func (d *decider) verb(word, short, long, example string) (*cobra.Command, *acts.AnswerInput) {
	var s acts.AnswerInput
	cmd := &cobra.Command{
		Use: word + " REF…", Short: short, Long: long, Example: example,
		Args: command.AtLeast(1, "references, as lockkeeper decide lists them"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return d.act(cmd, func(ctx context.Context) (acts.Verdict, error) {
				refs, err := d.refs(ctx, args, acts.KindsOf(word)...)
				if err != nil {
					return acts.Verdict{}, err
				}
				return d.flow.Give(ctx, word, refs, s)
			})
		},
	}
	cmd.Flags().StringArrayVar(&s.Notes, "note", nil, "a note for the agent; repeatable")
	return cmd, &s
}

// itemVerb returns a verb for items, which can also be selected by rating.
func (d *decider) itemVerb(word, short, long, example string) *cobra.Command {
	cmd, s := d.verb(word, short, long+`

Equal items of other units are decided with it, and listed; --only-this leaves them open.
With --where it answers every open item that meets all conditions: impact and effort,
with >=, <= or =; all means every open item.`, example)
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
			refs, err := d.flow.Matching(ctx, policy)
			if err == nil && len(refs) == 0 {
				err = &lockkeeper.RefusedError{Act: word, Reason: "no open item meets " + policy.String(), Next: d.flow.Command("decide")}
			}
			if err != nil {
				return acts.Verdict{}, err
			}
			only := *s
			only.Only = true // only items that meet the conditions
			return d.flow.Give(ctx, word, refs, only)
		})
	}
	cmd.Flags().StringVar(&where, "where", "", "instead of references: every open item that meets these `conditions`")
	cmd.Flags().StringVar(&s.Was, "was", "", "change a `decision`: its present value (todo, defer or reject)")
	cmd.Flags().BoolVar(&s.Only, "only-this", false, "leave equal items of other units open")
	return cmd
}

func (d *decider) todoCommand() *cobra.Command {
	return d.itemVerb("todo", "Accept items", `Accept items. After the last decision on a unit its batches are planned.`, `  lockkeeper decide todo blog/posts/i3 blog/comments/i1
  lockkeeper decide todo --where 'impact>=medium,effort<=low'
  lockkeeper decide todo blog/posts/i4 --was defer`)
}

func (d *decider) deferCommand() *cobra.Command {
	return d.itemVerb("defer", "Defer items to a later run", `Defer items: the next run proposes them again, marked as deferred.`, `  lockkeeper decide defer blog/posts/i3 --note "after the release"
  lockkeeper decide defer --where all`)
}

func (d *decider) rejectCommand() *cobra.Command {
	return d.itemVerb("reject", "Reject items, or skip research topics", `Reject items: they are not proposed again unless you re-enable them. A rejected topic
needs no answer; --note says why.`, `  lockkeeper decide reject blog/posts/i4
  lockkeeper decide reject topic blog/posts/pagination --note "we know"`)
}

func (d *decider) approveCommand() *cobra.Command {
	cmd, _ := d.verb("approve", "Approve a plan or a diff", `Approve the batches of a plan, which are then applied, or a diff under review, which then
lands as shown. See it first with decide show.`, `  lockkeeper decide approve plan blog/posts
  lockkeeper decide approve review blog/posts/b1`)
	return cmd
}

func (d *decider) returnCommand() *cobra.Command {
	cmd, _ := d.verb("return", "Return a diff for changes", `Return a diff under review. An agent changes it as --note says; then it is tested,
verified and shown to you again.`, `  lockkeeper decide return review blog/posts/b1 --note "keep the old route" --note "add a test"`)
	return cmd
}

func (d *decider) followUpCommand() *cobra.Command {
	cmd, _ := d.verb("follow-up", "Make the change of a gap in a new batch", `Make a change that no grant covered, in a new batch. The batch waits for approval and does
not affect other batches.`, `  lockkeeper decide follow-up gap blog/posts/b1/1`)
	return cmd
}

func (d *decider) dismissCommand() *cobra.Command {
	cmd, _ := d.verb("dismiss", "Dismiss a gap", `Dismiss a change that no grant covered. It stays kept: see lockkeeper rescue list.`, `  lockkeeper decide dismiss gap blog/posts/b1/1`)
	return cmd
}

func (d *decider) undoCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "undo REF…",
		Short: "Undo answers",
		Long: `Undo answers: the decision on an item until the batches are planned, the answer to a
topic until it is used, the approval of a plan until its first batch starts, and the
answer to a gap until its batch is approved. Undo landings with lockkeeper undo.`,
		Example: `  lockkeeper decide undo item blog/posts/i3
  lockkeeper decide undo plan blog/posts`,
		Args: command.AtLeast(1, "references"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return d.act(cmd, func(ctx context.Context) (acts.Verdict, error) {
				refs, err := d.refs(ctx, args, kinds()...)
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

// answerLimit is the largest answer, in bytes.
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

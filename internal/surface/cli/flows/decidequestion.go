package flows

import (
	"context"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"lockkeeper/internal/flow/progress"
	"lockkeeper/internal/surface/acts"
	"lockkeeper/internal/surface/cli/command"
)

func (d *decider) questionCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "question UNIT[/ITEM] [TEXT]",
		Short: "Ask an agent about a unit, or let it explain an item",
		Long: `Ask an agent about a unit or about one of its items, before you decide. Without a text, the
agent explains the item. An agent that only reads answers in the next run; questions come
first in the queue and hold up no phase. decide show UNIT prints the answers.`,
		Example: `  lockkeeper decide question blog/posts "Who calls the export, and how often?"
  lockkeeper decide question blog/posts/i3
  lockkeeper run --only blog/posts/question-1
  lockkeeper decide show blog/posts`,
		Args: command.AtLeast(1, "a unit or an item, and a question"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 2 {
				return command.Usage(cmd, "needs a unit or an item, and a question in quotes")
			}
			return d.act(cmd, func(ctx context.Context) (v acts.Verdict, err error) {
				unit, ask := args[0], acts.Ask{Text: strings.Join(args[1:], "")}
				if !slices.Contains(d.flow.Units, unit) {
					if unit, ask.Item, err = command.SplitPart(unit); err != nil {
						return v, err
					}
				}
				return ask.Do(ctx, d.flow, unit)
			})
		},
	}
}

func (s *factSheet) question(q progress.Question) {
	about := ""
	if q.Item != "" {
		about = " about item " + q.Item
	}
	s.add(q.ID+about, q.Text+s.by(q.By, q.At))
	answer := q.Answer
	if answer == "" {
		answer = "open: the next run answers it"
	}
	s.add("answer to "+q.ID, answer)
}

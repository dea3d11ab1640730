package jobs

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	"lockkeeper"
	"lockkeeper/internal/job"
	"lockkeeper/internal/surface/cli/command"
	"lockkeeper/internal/surface/cli/term"
	"lockkeeper/internal/surface/view"
)

func (p *program) jobCommand() *cobra.Command {
	return command.Group(&cobra.Command{
		Use:   "job",
		Short: "Queue commands and run them when their locks are free",
		Long: `Queue commands and run them when their locks are free. A submitted command waits until
it can acquire all its locks, a slot of each of its pools is free, and the items it comes
after are completed. It runs once, and returns to the queue if its worker dies. The queue
is stored with the locks, so it outlives every process.`,
		Example: `  lockkeeper job submit --write app/user.rb -- claude -p "fix the user model"
  lockkeeper job submit --read . --pool test --phase test --after j12 -- make test
  lockkeeper job work --slots 4 --until-empty
  lockkeeper job list
  lockkeeper why j12`,
	}, p.submitCommand(), p.workCommand(), p.listCommand(), p.retryCommand(), p.cancelCommand(), p.jobOutputCommand())
}

// item returns the item with an id, key or name.
func (p *program) item(ctx context.Context, q *job.Queue, name string) (*lockkeeper.Item, error) {
	it, err := q.Find(ctx, name)
	if err == nil && it == nil {
		err = &lockkeeper.InputError{Field: "item", Value: name, Reason: "no item has this id, key or name", Next: "lockkeeper job list"}
	}
	return it, err
}

// NameWidth is how many columns of an item's name a line or a table shows.
const NameWidth = 40

// Title returns the name of an item, for a line or a table.
func Title(it *lockkeeper.Item) string { return term.Ellipsis(fullTitle(it), NameWidth) }

func fullTitle(it *lockkeeper.Item) string {
	if it.Unit == "" {
		return term.Clean(it.Workflow)
	}
	return term.Clean(it.Workflow + "/" + it.Unit)
}

// StateOf returns the state of an item for a line or a table.
func StateOf(it *lockkeeper.Item) string { return term.Clean(view.ItemSituation(it)) }

// noteOf returns the progress of an item, or why it failed.
func noteOf(it *lockkeeper.Item) string {
	if it.Failure == nil {
		return term.Clean(it.Note)
	}
	reason, _, _ := strings.Cut(it.Failure.Reason, "\n")
	reason, _, _ = command.CutNext(reason)
	reason, _, _ = command.CutLast(reason, job.OutputSep) // job output has it
	return term.Clean(reason)
}

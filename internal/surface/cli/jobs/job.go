package jobs

import (
	"context"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"lockkeeper"
	"lockkeeper/internal/job"
	"lockkeeper/internal/surface/cli/command"
	"lockkeeper/internal/surface/cli/term"
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

// tookOf returns how long the last attempt of an ended item took, or 0 if it never ran.
func tookOf(it *lockkeeper.Item) time.Duration {
	if it.Attempts == 0 || it.DispatchedAt.IsZero() || it.CompletedAt.Before(it.DispatchedAt) {
		return 0
	}
	return it.CompletedAt.Sub(it.DispatchedAt)
}

// StateOf returns the state of an item in a few words for people.
func StateOf(it *lockkeeper.Item) string {
	switch {
	case it.Status == lockkeeper.ItemError:
		return "failed"
	case it.Status == lockkeeper.ItemCompleted:
		return "completed"
	case it.IsHolding() && it.Stage == lockkeeper.StageRunning:
		return "running"
	case it.IsHolding():
		return "running, waits for " + waitedFor(it)
	case it.Stage == lockkeeper.StageReady:
		return "ready"
	}
	return "blocked by " + waitedFor(it)
}

// waitedFor describes the lock, the slot, the other item or the turn that an item waits for.
func waitedFor(it *lockkeeper.Item) string {
	kind, what, _ := strings.Cut(it.WaitsOn, ":")
	switch kind {
	case "path": // followed by the requested mode
		path, _, _ := strings.Cut(what, "//")
		return "lock " + term.Clean(path)
	case "pool":
		return "slot " + term.Clean(what)
	case "item":
		return "item " + term.Clean(what)
	case "grant":
		return "locks it has reserved"
	case "":
		return "its turn"
	}
	return term.Clean(it.WaitsOn)
}

// sinceOf returns when an item entered its status.
func sinceOf(it *lockkeeper.Item) time.Time {
	switch it.Status {
	case lockkeeper.ItemQueued:
		return it.QueuedAt
	case lockkeeper.ItemDispatched:
		return it.DispatchedAt
	}
	return it.CompletedAt
}

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

package cli

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"lockkeeper"
	"lockkeeper/internal/app"
)

func (p *program) jobCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "job",
		Short: "Queue commands, and run them when their locks are free",
		Long: `Queue commands, and run them when their locks are free. A submitted command
waits until all its locks, all its slots and all it is to come after are there,
runs once, and is put back when its worker dies. The queue is kept with the
locks, so it outlives every process.`,
		Example: `  lockkeeper job submit --write app/user.rb -- claude -p "fix the user model"
  lockkeeper job submit --read . --pool test --phase test --after j12 -- make test
  lockkeeper job work --slots 4 --until-empty
  lockkeeper job list
  lockkeeper why j12`,
		Args: subcommand,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(p.submitCommand(), p.workCommand(), p.listCommand(), p.retryCommand(), p.cancelCommand(), p.jobOutputCommand())
	return cmd
}

// withQueue runs a command on the open queue of the codebase.
func (p *program) withQueue(ctx context.Context, s app.Settings, run func(*app.App, *app.Queue) error) error {
	return p.withSettings(ctx, s, func(a *app.App) error {
		q, err := a.Queue()
		if err != nil {
			return err
		}
		return run(a, q)
	})
}

// atLeast takes so many arguments or more, which what names.
func atLeast(n int, what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) >= n {
			return nil
		}
		return usage(cmd, fmt.Sprintf("needs %s, got %d arguments", what, len(args)))
	}
}

// item finds an item that must be there.
func (p *program) item(ctx context.Context, q *app.Queue, name string) (*lockkeeper.Item, error) {
	it, err := q.Find(ctx, name)
	if err == nil && it == nil {
		err = &lockkeeper.InputError{Field: "item", Value: name, Reason: "there is no item with this id, key or name", Next: "lockkeeper job list"}
	}
	return it, err
}

// actor is who gives this command: an agent, or the person whose account it is, who
// may only be taken for present at a terminal.
func (p *program) actor() lockkeeper.Actor {
	if agent, inside := p.agent(); inside {
		return lockkeeper.Actor{Name: agent, Kind: lockkeeper.ActorAgent}
	}
	by := p.person()
	if !p.attended() {
		by.Kind = lockkeeper.ActorHolder
	}
	return by
}

// nameWidth is how many columns of an item's name a line or a table shows.
const nameWidth = 40

// title is what an item is called, in a line or a table.
func title(it *lockkeeper.Item) string { return ellipsis(fullTitle(it), nameWidth) }

func fullTitle(it *lockkeeper.Item) string {
	if it.Unit == "" {
		return clean(it.Workflow)
	}
	return clean(it.Workflow + "/" + it.Unit)
}

// tookOf is how long the last attempt of an ended item took; 0: it never ran.
func tookOf(it *lockkeeper.Item) time.Duration {
	if it.Attempts == 0 || it.DispatchedAt.IsZero() || it.CompletedAt.Before(it.DispatchedAt) {
		return 0
	}
	return it.CompletedAt.Sub(it.DispatchedAt)
}

// stateOf says where an item has got to, in a few words.
func stateOf(it *lockkeeper.Item) string {
	switch {
	case it.Status == lockkeeper.ItemError, it.Status == lockkeeper.ItemCompleted:
		return string(it.Status)
	case it.IsHolding() && it.Stage == lockkeeper.StageRunning:
		return "running"
	case it.IsHolding():
		return "running, waits for " + waitedFor(it)
	case it.Stage == lockkeeper.StageReady:
		return "ready"
	}
	return "blocked by " + waitedFor(it)
}

// waitedFor is what an item is parked on.
func waitedFor(it *lockkeeper.Item) string {
	kind, what, _ := strings.Cut(it.ParkedOn, ":")
	switch kind {
	case "path": // the mode in which it is asked for stands behind
		path, _, _ := strings.Cut(what, "//")
		return "lock " + clean(path)
	case "pool":
		return "slot " + clean(what)
	case "item":
		return "item " + clean(what)
	case "grant":
		return "locks it has reserved"
	case "":
		return "its turn"
	}
	return clean(it.ParkedOn)
}

// sinceOf is since when an item is what it is.
func sinceOf(it *lockkeeper.Item) time.Time {
	switch it.Status {
	case lockkeeper.ItemQueued:
		return it.QueuedAt
	case lockkeeper.ItemDispatched:
		return it.DispatchedAt
	}
	return it.CompletedAt
}

// noteOf is what there is to say of an item: how far it has got, or why it failed.
func noteOf(it *lockkeeper.Item) string {
	if it.Failure == nil {
		return clean(it.Note)
	}
	reason, _, _ := strings.Cut(it.Failure.Reason, "\n")
	reason, _, _ = cutLast(reason, nextSep)
	reason, _, _ = cutLast(reason, app.OutputSep) // job output has it
	return clean(reason)
}

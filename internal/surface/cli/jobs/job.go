package jobs

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"lockkeeper"
	"lockkeeper/internal/job"
	"lockkeeper/internal/project"
	"lockkeeper/internal/surface/cli/command"
	"lockkeeper/internal/surface/cli/term"
	"lockkeeper/internal/surface/view"
)

// program is one call of the program. The commands of this package are its methods.
type program struct{ *command.Program }

// Commands returns the commands of this package.
func Commands(core *command.Program) []*cobra.Command {
	p := &program{core}
	return []*cobra.Command{p.jobCommand()}
}

// ItemNamed returns the item that a name given to why means, or nil if it means
// something else. A holder and an existing path take precedence over an item's name.
func ItemNamed(ctx context.Context, p *command.Program, a *project.Project, q *job.Queue, name string) (*lockkeeper.Item, error) {
	return (&program{p}).itemNamed(ctx, a, q, name)
}

// WhyItem shows why an item is in its state.
func WhyItem(ctx context.Context, p *command.Program, a *project.Project, q *job.Queue, id string) error {
	return (&program{p}).whyItem(ctx, a, q, id)
}

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

// activeShown is how many running items status names.
const activeShown = 5

// ShowQueue prints the queue in a line, unless it is empty, and returns the next step.
func ShowQueue(p *command.Program, s *view.Status) (next string) {
	if s.Depth+len(s.Active)+s.Failed == 0 {
		return ""
	}
	line := fmt.Sprintf("queue: %d queued (%d ready), %d failed, %d running", s.Depth, s.Ready, s.Failed, len(s.Active))
	var names []string
	for _, it := range s.Active[:min(len(s.Active), activeShown)] {
		names = append(names, fmt.Sprintf("%s (%s) %s", it.ID, Title(it), term.Clean(it.Phase)))
	}
	if more := len(s.Active) - len(names); more > 0 {
		names = append(names, fmt.Sprintf("and %d more", more))
	}
	if names != nil {
		line += ": " + strings.Join(names, ", ")
	}
	fmt.Fprintln(p.Out, p.Painter(p.Out)(term.Bold, line))
	switch {
	case s.Failed > 0:
		return "lockkeeper job list --status failed"
	case s.Depth > 0 && s.Workers == 0:
		return startWorker
	}
	return ""
}

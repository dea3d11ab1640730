package jobs

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"lockkeeper"
	"lockkeeper/internal/job"
	"lockkeeper/internal/project"
	"lockkeeper/internal/surface/cli/command"
	"lockkeeper/internal/surface/cli/term"
	"lockkeeper/internal/surface/view"
)

type program struct{ *command.Program }

func Commands(core *command.Program) []*cobra.Command {
	p := &program{core}
	return []*cobra.Command{p.jobCommand()}
}

func WhyItem(ctx context.Context, p *command.Program, a *project.Project, q *job.Queue, id string) error {
	return (&program{p}).whyItem(ctx, a, q, id)
}

func (p *program) jobCommand() *cobra.Command {
	return command.Group(&cobra.Command{
		Use:   "job",
		Short: "Queue commands and run them when their locks are free",
		Long: `Queue commands and run them when their locks are free. A submitted command waits for
the items it comes after, for a slot of each of its pools, and for all its locks. It runs
once, and returns to the queue if its worker dies. The
queue is stored with the locks, so it outlives every process.`,
		Example: `  lockkeeper job submit --write app/user.rb -- claude -p "fix the user model"
  lockkeeper job submit --read . --pool test --phase test --after j12 -- make test
  lockkeeper job work --slots 4 --until-empty
  lockkeeper job list
  lockkeeper why j12`,
	}, p.submitCommand(), p.workCommand(), p.listCommand(), p.retryCommand(), p.cancelCommand(), p.jobOutputCommand())
}

func item(ctx context.Context, q *job.Queue, name string) (*lockkeeper.Item, error) {
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

func fullTitle(it *lockkeeper.Item) string { return term.Clean(view.ItemName(it)) }

func StateOf(it *lockkeeper.Item) string { return term.Clean(view.ItemSituation(it)) }

// noteOf returns the progress of an item, or why it failed.
func noteOf(it *lockkeeper.Item) string {
	if it.Failure == nil {
		return term.Clean(it.Note)
	}
	reason, _, _ := strings.Cut(it.Failure.Reason, "\n")
	reason, _, _ = command.CutNext(reason)
	reason, _, _ = command.CutLast(reason, job.OutputSep) // `job output` prints this part
	return term.Clean(reason)
}

const activeShown = 5

// ShowQueue prints the queue in a line, unless it is empty, and returns the next step.
func ShowQueue(p *command.Program, s *view.Status) (next string) {
	if s.Depth+len(s.Active)+s.Failed == 0 {
		return ""
	}
	line := fmt.Sprintf("queue: %d queued (%d ready%s), %d failed, %d running", s.Depth, s.Ready, waitsIn(s), s.Failed, len(s.Active))
	if len(s.Active) > 0 {
		line += ": " + term.JoinFew(s.Active, activeShown, func(it *lockkeeper.Item) string { return it.ID + " (" + Title(it) + ") " + term.Clean(it.Phase) })
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

// waitsIn says what queued items wait for that are not ready.
func waitsIn(s *view.Status) (text string) {
	for _, of := range []struct {
		n    int
		what string
	}{{s.Waits.Slot - s.Ready, "waiting for a slot"}, {s.Waits.Locks, "blocked by locks"}, {s.Waits.After, "waiting for other work"}} {
		if of.n > 0 {
			text += fmt.Sprintf(", %d %s", of.n, of.what)
		}
	}
	return text
}

type listOptions struct {
	status string
	limit  int
	watch  bool
}

func (p *program) listCommand() *cobra.Command {
	var o listOptions
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List queued, running, failed and completed items, newest last",
		Long: `List the items of the queue, newest last: ready items, blocked items and what blocks them,
running items and their progress, failed items and why, canceled items, and completed
items. With --watch it keeps running: a terminal shows running, next and last items as
far as there is room, and a pipe gets a line for each item that changes.`,
		Example: `  lockkeeper job list
  lockkeeper job list --status failed
  lockkeeper job list --watch
  lockkeeper job list --json | jq -r '.[] | select(.state == "ready") | .id'`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := o.parse(); err != nil {
				return err
			}
			return p.WithQueue(cmd.Context(), p.Settings(), func(a *project.Project, q *job.Queue) error {
				if o.watch {
					return p.watch(cmd.Context(), a, q, o)
				}
				return p.list(cmd.Context(), a, o)
			})
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.status, "status", "", "only items of this `status`: "+strings.Join(statuses, ", "))
	f.IntVar(&o.limit, "limit", 100, "how many items of each status: the next to start, the last to end; 0: all")
	f.BoolVar(&o.watch, "watch", false, "keep running, and show changes")
	return cmd
}

const (
	runningStatus  = "running"
	failedStatus   = "failed"
	canceledStatus = "canceled"
)

var statuses = []string{"queued", runningStatus, "completed", failedStatus, canceledStatus}

// parse checks the options. It also accepts the stored names of a status.
func (o *listOptions) parse() error {
	if err := command.NotNegative(o.limit); err != nil {
		return err
	}
	switch o.status {
	case "", string(lockkeeper.ItemQueued), string(lockkeeper.ItemDispatched), string(lockkeeper.ItemCompleted), string(lockkeeper.ItemError):
		return nil
	case runningStatus, failedStatus, canceledStatus:
		return nil
	}
	return command.OneOf("status", o.status, statuses)
}

// items returns the listed items, the most interesting first, and whether some were omitted.
func (o *listOptions) items(ctx context.Context, a *project.Project) ([]view.FirstItem, bool, error) {
	wanted := []lockkeeper.ItemStatus{lockkeeper.ItemDispatched, lockkeeper.ItemQueued, lockkeeper.ItemError, lockkeeper.ItemCompleted}
	switch o.status {
	case "":
	case runningStatus:
		wanted = wanted[:1]
	case failedStatus, canceledStatus:
		wanted = []lockkeeper.ItemStatus{lockkeeper.ItemError}
	default:
		wanted = []lockkeeper.ItemStatus{lockkeeper.ItemStatus(o.status)}
	}
	list, cut, err := view.New(a).FirstItems(ctx, o.limit, wanted...)
	if o.status == failedStatus || o.status == canceledStatus {
		list = slices.DeleteFunc(list, func(it view.FirstItem) bool { return it.IsCanceled() != (o.status == canceledStatus) })
	}
	return list, cut, err
}

func (p *program) list(ctx context.Context, a *project.Project, o listOptions) error {
	list, cut, err := o.items(ctx, a)
	if err != nil {
		return err
	}
	slices.SortFunc(list, func(a, b view.FirstItem) int { return cmp.Compare(a.Seq, b.Seq) })
	if p.JSON {
		return p.PrintJSON(list)
	}
	if len(list) == 0 {
		fmt.Fprintln(p.Err, "no items match")
		if o.status == "" {
			p.Advise("lockkeeper job submit --write PATH -- COMMAND")
		}
		return nil
	}
	p.showItems(list)
	if cut {
		p.Note("shows up to %d items of each status; all: --limit 0", o.limit)
	}
	return nil
}

const stateWidth = 40

func (p *program) showItems(list []view.FirstItem) {
	t := &term.Table{Heads: []string{"ITEM", "NAME", "PHASE", "PROJECT", "STATUS", "FOR", "TOOK", "ATTEMPTS", "NOTE"}, Wide: 8, Sentences: true}
	now := p.Now()
	for _, it := range list {
		project := "-"
		if it.Project != "" {
			project = term.Clean(it.Project)
		}
		ran := "-"
		if took := view.ItemTook(it.Item); took > 0 {
			ran = term.Span(took)
		}
		t.Add(it.ID, Title(it.Item), term.Clean(it.Phase), project, term.Shorten(StateOf(it.Item), stateWidth), term.Span(now.Sub(it.StatusSince())), ran, fmt.Sprint(it.Attempts), noteOf(it.Item))
	}
	t.Print(p.Out, p.Painter(p.Out))
}

// watch shows the list as it changes, until a signal ends it.
func (p *program) watch(ctx context.Context, a *project.Project, q *job.Queue, o listOptions) error {
	shown := map[string]string{}
	return command.Follow(ctx, q.Feed, func(ctx context.Context) error {
		list, _, err := o.items(ctx, a)
		if err != nil {
			return err
		}
		return p.showChanged(list, shown)
	})
}

// showChanged shows the whole list on a terminal, and otherwise only the items that changed.
func (p *program) showChanged(list []view.FirstItem, shown map[string]string) error {
	if !p.JSON && p.HandlesEscapes(p.Out) {
		_, rows := term.Window(p.Out)
		room := max(1, rows-3) // leaves room for the headings, "and more", and the cursor
		fmt.Fprint(p.Out, term.ClearScreen)
		p.showItems(list[:min(room, len(list))])
		if more := len(list) - room; more > 0 {
			fmt.Fprintf(p.Out, "  and %d more\n", more)
		}
		return p.Out.Err
	}
	for _, it := range list {
		line := fmt.Sprintf("%s  %s %s  %s", it.ID, Title(it.Item), term.Clean(it.Phase), StateOf(it.Item))
		if it.Attempts > 0 {
			line += fmt.Sprintf("  attempt %d", it.Attempts)
		}
		if note := noteOf(it.Item); note != "" {
			line += "  " + note
		}
		if shown[it.ID] == line {
			continue
		}
		shown[it.ID] = line
		if !p.JSON {
			fmt.Fprintln(p.Out, line)
		} else if err := p.PrintLine(it); err != nil {
			return err
		}
	}
	return p.Out.Err
}

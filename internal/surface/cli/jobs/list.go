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
running items and their progress, failed items and why, and completed items. Numbers have
gaps, because other events share them. With --watch it keeps running: a terminal shows
running, next and last items as far as there is room, and a pipe gets a line for each
item that changes.`,
		Example: `  lockkeeper job list
  lockkeeper job list --status failed
  lockkeeper job list --watch
  lockkeeper job list --json | jq -r '.[] | select(.state == "ready") | .id'`,
		Args: command.Exactly(0, "no arguments"),
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

// statuses are the words for --status.
var statuses = []string{"queued", "running", "completed", "failed"}

// parse checks the options. It also accepts the stored names of a status.
func (o *listOptions) parse() error {
	if err := command.NotNegative(o.limit); err != nil {
		return err
	}
	switch o.status {
	case "", string(lockkeeper.ItemQueued), string(lockkeeper.ItemDispatched), string(lockkeeper.ItemCompleted), string(lockkeeper.ItemError):
		return nil
	case "running":
		o.status = string(lockkeeper.ItemDispatched)
		return nil
	case "failed":
		o.status = string(lockkeeper.ItemError)
		return nil
	}
	return command.OneOf("status", o.status, statuses)
}

// items returns the listed items, the most interesting first, and whether some were omitted.
func (o *listOptions) items(ctx context.Context, a *project.Project) ([]view.FirstItem, bool, error) {
	wanted := []lockkeeper.ItemStatus{lockkeeper.ItemDispatched, lockkeeper.ItemQueued, lockkeeper.ItemError, lockkeeper.ItemCompleted}
	if o.status != "" {
		wanted = []lockkeeper.ItemStatus{lockkeeper.ItemStatus(o.status)}
	}
	return view.New(a).FirstItems(ctx, o.limit, wanted...)
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
		fmt.Fprintf(p.Err, "note: shows up to %d items of each status; all: --limit 0\n", o.limit)
	}
	return nil
}

// stateWidth is how many columns of an item's state a table shows.
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
		room := max(1, rows-3) // minus the heads, "and more", and the cursor
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

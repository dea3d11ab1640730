package jobs

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"lockkeeper"
	"lockkeeper/internal/job"
	"lockkeeper/internal/project"
	"lockkeeper/internal/project/config"
	"lockkeeper/internal/surface/cli/command"
	"lockkeeper/internal/surface/cli/term"
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
		Long: `Show the items of the queue, newest last: those that are ready or say what they
are blocked by, those that run and how far they say they are, those that failed
and why, and those that are completed. Numbers may be missing: items are numbered
together with other events. With --watch it goes on: a terminal shows what runs,
then what starts next, then what ended last, as far as it has room, and a program
gets a line for each item that changes.`,
		Example: `  lockkeeper job list
  lockkeeper job list --status failed
  lockkeeper job list --watch
  lockkeeper job list --json | jq -r '.[] | select(.state == "ready") | .id'`,
		Args: command.Exactly(0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := o.parse(); err != nil {
				return err
			}
			return p.WithQueue(cmd.Context(), p.Settings(), func(_ *project.Project, q *job.Queue) error {
				if o.watch {
					return p.watch(cmd.Context(), q, o)
				}
				return p.list(cmd.Context(), q, o)
			})
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.status, "status", "", "only items of this `status`: "+strings.Join(statuses, ", "))
	f.IntVar(&o.limit, "limit", 100, "of each status at most so many: what starts next, and what ended last; 0: all")
	f.BoolVar(&o.watch, "watch", false, "go on, and show what changes")
	return cmd
}

// statuses are the words for --status.
var statuses = []string{"queued", "running", "completed", "failed"}

// parse checks the options. It also accepts the stored names of a status.
func (o *listOptions) parse() error {
	if o.limit < 0 {
		return &lockkeeper.InputError{Field: "limit", Value: fmt.Sprint(o.limit), Reason: "negative", Next: "give 0 for no limit"}
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
	next := "one of " + strings.Join(statuses, ", ")
	if near, ok := config.Nearest(o.status, statuses); ok {
		next = "did you mean " + near + "? It is " + next
	}
	return &lockkeeper.InputError{Field: "status", Value: o.status, Reason: "no status of an item", Next: next}
}

// jsonState is StateOf for programs, for which a failed item is in the state error.
func jsonState(it *lockkeeper.Item) string {
	if it.Status == lockkeeper.ItemError {
		return string(it.Status)
	}
	return StateOf(it)
}

// listedItem is an item as a list shows it.
type listedItem struct {
	*lockkeeper.Item
	State string `json:"state"`
}

// items gathers what a list shows, that first which a person wants to see first, and
// says whether some were left out.
func (o *listOptions) items(ctx context.Context, q *job.Queue) (list []listedItem, cut bool, err error) {
	wanted := []string{string(lockkeeper.ItemDispatched), string(lockkeeper.ItemQueued), string(lockkeeper.ItemError), string(lockkeeper.ItemCompleted)}
	if o.status != "" {
		wanted = []string{o.status}
	}
	list = []listedItem{}
	seen := map[string]bool{} // one may change its status between two looks
	for _, status := range wanted {
		some, more, err := q.First(ctx, lockkeeper.ItemStatus(status), o.limit)
		if err != nil {
			return nil, false, err
		}
		cut = cut || more
		for _, it := range some {
			if !seen[it.ID] {
				seen[it.ID] = true
				list = append(list, listedItem{it, jsonState(it)})
			}
		}
	}
	return list, cut, nil
}

func (p *program) list(ctx context.Context, q *job.Queue, o listOptions) error {
	list, cut, err := o.items(ctx, q)
	if err != nil {
		return err
	}
	slices.SortFunc(list, func(a, b listedItem) int { return cmp.Compare(a.Seq, b.Seq) })
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
		fmt.Fprintf(p.Err, "note: of each status %d at most; all: --limit 0\n", o.limit)
	}
	return nil
}

// stateWidth is how many columns of an item's state a table shows.
const stateWidth = 40

func (p *program) showItems(list []listedItem) {
	t := &term.Table{Heads: []string{"ITEM", "NAME", "PHASE", "PROJECT", "STATUS", "FOR", "TOOK", "ATTEMPTS", "NOTE"}, Wide: 8, Sentences: true}
	now := p.Now()
	for _, it := range list {
		project := "-"
		if it.Project != "" {
			project = term.Clean(it.Project)
		}
		ran := "-"
		if took := tookOf(it.Item); took > 0 {
			ran = term.Span(took)
		}
		t.Add(it.ID, Title(it.Item), term.Clean(it.Phase), project, term.Shorten(StateOf(it.Item), stateWidth), term.Span(now.Sub(sinceOf(it.Item))), ran, fmt.Sprint(it.Attempts), noteOf(it.Item))
	}
	t.Print(p.Out, p.Painter(p.Out))
}

// watch shows the list as it changes, until somebody has seen enough.
func (p *program) watch(ctx context.Context, q *job.Queue, o listOptions) error {
	shown := map[string]string{}
	return command.Follow(ctx, q.Feed, func(ctx context.Context) error {
		list, _, err := o.items(ctx, q)
		if err != nil {
			return err
		}
		return p.showChanged(list, shown)
	})
}

// showChanged shows the list anew to a person, and to a program what was not shown so
// before.
func (p *program) showChanged(list []listedItem, shown map[string]string) error {
	if !p.JSON && p.HandlesEscapes(p.Out) {
		_, rows := term.Window(p.Out)
		room := max(1, rows-3) // but for the heads, what is left out, and the cursor
		fmt.Fprint(p.Out, term.ClearScreen)
		p.showItems(list[:min(room, len(list))])
		if more := len(list) - room; more > 0 {
			fmt.Fprintf(p.Out, "  and %d more\n", more)
		}
		return p.Out.Err
	}
	enc := json.NewEncoder(p.Out)
	enc.SetEscapeHTML(false)
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
		} else if err := enc.Encode(it); err != nil {
			return err
		}
	}
	return p.Out.Err
}

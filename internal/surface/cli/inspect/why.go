package inspect

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"lockkeeper"
	"lockkeeper/internal/compat/resource"
	"lockkeeper/internal/job"
	"lockkeeper/internal/project"
	"lockkeeper/internal/surface/cli/command"
	"lockkeeper/internal/surface/cli/jobs"
	"lockkeeper/internal/surface/cli/locks"
	"lockkeeper/internal/surface/cli/term"
	"lockkeeper/internal/surface/view"
)

const eventsShown = 8

func (p *program) whyCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "why PATH | RESOURCE | HOLDER | GRANT | ITEM | TASK | UNIT",
		Short: "Explain why a path is locked or a request waits",
		Long: `Explain the state of one thing, with the latest events about it:

  a path or resource  who holds it, and who waits for it in which order
  a holder            what it holds, what it waits for, and who blocks it
  a grant             everything known about it
  an item             what it waits for, who blocks it and when it may start;
                      where it runs; or why it failed
  a task or batch     the same, also before it is queued
  a unit              its phase, and the state of its batches

A name is tried in this order: the id of a grant or of an item such as j12, a holder, an
existing path, the key or name of an item, a resource, a path that is locked or has
events, the start of a grant's id, a unit, batch or task of the last run. Any other name
is an error.`,
		Example: `  lockkeeper why app/user.rb
  lockkeeper why j12
  lockkeeper why otter
  lockkeeper why Chapter_03
  lockkeeper why rate-limit
  lockkeeper why 1b4e28ba`,
		Args: command.Exactly(1, "one path, resource, holder, grant, item, task or unit"),
		RunE: p.OnQueue(func(cmd *cobra.Command, a *project.Project, q *job.Queue, args []string) error {
			it, err := jobs.ItemNamed(cmd.Context(), p.Program, a, q, args[0])
			if err != nil {
				return err
			}
			if it != nil {
				return jobs.WhyItem(cmd.Context(), p.Program, a, q, it.ID)
			}
			answer, err := p.why(cmd.Context(), a, q, args[0])
			if err != nil {
				return err
			}
			if answer.isUnknown() {
				return p.whyWork(cmd.Context(), a, q, args[0])
			}
			return p.Show(answer, func() { p.showReasons(answer) })
		}),
	}
}

type reasons struct {
	About   string             `json:"about"` // "path", "resource", "holder" or "grant"
	Name    string             `json:"name"`
	Held    []view.Holding     `json:"held"`
	Waiting []view.Holding     `json:"waiting"` // waiting requests, in the order of granting
	Queued  []*lockkeeper.Item `json:"queued"`  // items that want the path
	Events  []lockkeeper.Event `json:"events"`  // newest last

	missing bool        // a path that does not exist
	recent  []view.Line // the lines of Events, newest first
}

func newReasons(about, name string) *reasons {
	return &reasons{About: about, Name: name, Held: []view.Holding{}, Waiting: []view.Holding{}, Queued: []*lockkeeper.Item{}, Events: []lockkeeper.Event{}}
}

func (p *program) why(ctx context.Context, a *project.Project, q *job.Queue, name string) (*reasons, error) {
	if jobs.LooksLikeGrant(name) {
		e, err := a.Locks.Request(ctx, name)
		if err != nil {
			return nil, err
		}
		r := newReasons("grant", name)
		if e != nil {
			r.add(view.New(a).Holding(*e))
		}
		return r, r.recall(ctx, a, func(ev lockkeeper.Event) bool { return ev.GrantID == name })
	}
	entries, err := a.Locks.Requests(ctx)
	if err != nil {
		return nil, err
	}
	r := newReasons("holder", name)
	for _, e := range entries {
		if e.Holder == name {
			r.add(view.New(a).Holding(e))
		}
	}
	there := len(r.Held)+len(r.Waiting) > 0
	if isPath := strings.ContainsAny(name, "/.") || p.Exists(name); there || !isPath {
		if err := r.recall(ctx, a, func(ev lockkeeper.Event) bool { return ev.Holder == name }); err != nil {
			return nil, err
		}
	}
	if there || len(r.Events) > 0 {
		return r, nil
	}
	set, err := resource.Of(a.Config)
	if err != nil {
		return nil, err
	}
	if named, unknown := set.Resolve(name); unknown == nil && !p.Exists(name) {
		locks, err := a.Resolved(named.Locks(lockkeeper.Write, false))
		if err != nil {
			return nil, err
		}
		r = newReasons("resource", named.Name)
		return r, r.read(ctx, a, q, locks)
	}
	r, err = p.whyPath(ctx, a, q, name)
	if err == nil && r.isUnknown() && project.CheckGrantName(name) == nil {
		return p.whyGrantPrefix(ctx, a, name, r)
	}
	return r, err
}

// whyGrantPrefix explains the grant whose id starts with a text. If there is none, it returns otherwise.
func (p *program) whyGrantPrefix(ctx context.Context, a *project.Project, start string, otherwise *reasons) (*reasons, error) {
	id, err := a.GrantID(ctx, start)
	if err == nil {
		e, err := a.Locks.Request(ctx, id)
		r := newReasons("grant", id)
		if e != nil {
			r.add(view.New(a).Holding(*e))
		}
		if err == nil {
			err = r.recall(ctx, a, func(ev lockkeeper.Event) bool { return ev.GrantID == id })
		}
		return r, err
	}
	if lockkeeper.CodeOf(err) != lockkeeper.CodeNotHeld {
		return nil, err
	}
	ended := newReasons("grant", start)
	if err := ended.recall(ctx, a, func(ev lockkeeper.Event) bool { return strings.HasPrefix(ev.GrantID, start) }); err != nil {
		return nil, err
	}
	if len(ended.Events) == 0 {
		return otherwise, nil
	}
	return ended, nil
}

// isUnknown reports whether the answer is about a path that does not exist and that nothing is known about.
func (r *reasons) isUnknown() bool {
	return r.missing && len(r.Held)+len(r.Waiting)+len(r.Queued)+len(r.Events) == 0
}

func (p *program) whyPath(ctx context.Context, a *project.Project, q *job.Queue, path string) (*reasons, error) {
	l, err := a.Resolve(lockkeeper.Read, path)
	if err != nil {
		return nil, err
	}
	r := newReasons("path", l.Path)
	_, err = os.Lstat(filepath.Join(a.Root.Dir(), filepath.FromSlash(l.Path)))
	r.missing = errors.Is(err, fs.ErrNotExist)
	l.Mode = lockkeeper.Write
	return r, r.read(ctx, a, q, []lockkeeper.Lock{l})
}

// read adds who holds the targets, who waits for them, and the events about them. A write lock
// conflicts with every holder.
func (r *reasons) read(ctx context.Context, a *project.Project, q *job.Queue, targets []lockkeeper.Lock) error {
	found, err := a.Locks.CheckConflicts(ctx, targets)
	if err != nil {
		return err
	}
	slices.Reverse(found) // the earliest comes first
	seen := map[string]bool{}
	for _, c := range found {
		if seen[c.GrantID] {
			continue
		}
		seen[c.GrantID] = true
		e, err := a.Locks.Request(ctx, c.GrantID)
		if err != nil {
			return err
		}
		if e != nil {
			r.add(view.New(a).Holding(*e))
		}
	}
	for _, l := range targets {
		wanting, err := q.QueuedFor(ctx, l.Path)
		if err != nil {
			return err
		}
		for _, it := range wanting {
			if !slices.ContainsFunc(r.Queued, func(o *lockkeeper.Item) bool { return o.ID == it.ID }) {
				r.Queued = append(r.Queued, it)
			}
		}
	}
	return r.recall(ctx, a, func(ev lockkeeper.Event) bool {
		return slices.ContainsFunc(targets, func(l lockkeeper.Lock) bool { return view.Concerns(ev, l.Target) })
	})
}

func (r *reasons) add(s view.Holding) {
	if s.State == string(lockkeeper.Waiting) {
		r.Waiting = append(r.Waiting, s)
	} else {
		r.Held = append(r.Held, s)
	}
}

// recall adds the latest matching events.
func (r *reasons) recall(ctx context.Context, a *project.Project, want func(lockkeeper.Event) bool) (err error) {
	r.recent, err = view.New(a).Recent(ctx, eventsShown, term.All, want)
	for _, line := range slices.Backward(r.recent) {
		r.Events = append(r.Events, line.Event)
	}
	return err
}

func (p *program) showReasons(r *reasons) {
	name := term.Clean(r.Name)
	switch {
	case len(r.Held)+len(r.Waiting) > 0:
	case len(r.Queued) > 0:
		fmt.Fprintf(p.Out, "%s is not locked, and %s it\n", name, term.Plural(len(r.Queued), "a queued item wants", "queued items want"))
	case r.About == "path" && r.missing:
		fmt.Fprintf(p.Out, "%s is free, and no such file exists now\n", name)
	case r.About == "path", r.About == "resource":
		fmt.Fprintf(p.Out, "%s is free: no holder has it or waits for it\n", name)
	case r.About == "holder":
		fmt.Fprintf(p.Out, "%s holds nothing and waits for nothing\n", name)
	default:
		fmt.Fprintf(p.Out, "grant %s is not held here: it was released, has expired, or never existed\n", name)
	}
	for _, s := range r.Held {
		locks.Show(p.Program, p.Out, s)
	}
	for i, s := range r.Waiting {
		if r.About == "path" || r.About == "resource" {
			fmt.Fprintf(p.Out, "%d. ", i+1)
		}
		locks.Show(p.Program, p.Out, s)
	}
	for _, it := range r.Queued[:min(len(r.Queued), term.Few(p.Out, locks.PathsShown))] {
		fmt.Fprintf(p.Out, "queued: %s (%s) %s, %s, wants %s\n", it.ID, jobs.Title(it), term.Clean(it.Phase), jobs.StateOf(it), jobs.LockList(it.Locks))
	}
	if more := len(r.Queued) - term.Few(p.Out, locks.PathsShown); more > 0 {
		fmt.Fprintf(p.Out, "queued: and %d more\n", more)
	}
	if len(r.Events) > 0 {
		fmt.Fprintln(p.Out, p.Painter(p.Out)(term.Bold, "recently:"))
		for _, line := range slices.Backward(r.recent) {
			fmt.Fprintln(p.Out, "  "+lineText(line))
		}
	}
}

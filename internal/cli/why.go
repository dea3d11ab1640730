package cli

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
	"lockkeeper/internal/app"
	"lockkeeper/internal/resource"
	"lockkeeper/internal/view"
	"lockkeeper/lock"
)

// eventsShown is how many recent events why shows.
const eventsShown = 8

func (p *program) whyCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "why PATH | RESOURCE | HOLDER | GRANT | ITEM",
		Short: "Why something is locked, or somebody waits",
		Long: `Say why: of a path, or of a resource such as Chapter_03, who holds it and who waits
for it in which order; of a holder, what it holds, what it waits for and on whom; of
a grant, all that is known. Then the latest events about it. Of an item of the queue:
what it waits for, who is in its way and when it may start; where it runs; or why it
failed.

An id is a grant, or an item such as j12; the name of somebody who holds or waits
is a holder; a path that is there is a path; the key of an item, or what it is
called, is an item; a name of the table of resources is a resource; anything else is
a path.`,
		Example: `  lockkeeper why app/user.rb
  lockkeeper why j12
  lockkeeper why otter
  lockkeeper why Chapter_03
  lockkeeper why 1b4e28ba-2fa1-41d2-883f-0016d3cca427`,
		Args: exactly(1, "one path, resource, holder, grant or item"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return p.withQueue(cmd.Context(), p.settings(), func(a *app.App, q *app.Queue) error {
				it, err := p.itemNamed(cmd.Context(), a, q, args[0])
				if err != nil {
					return err
				}
				if it != nil {
					return p.whyItem(cmd.Context(), a, q, it.ID)
				}
				answer, err := p.why(cmd.Context(), a, q, args[0])
				if err != nil {
					return err
				}
				if p.json {
					return p.printJSON(answer)
				}
				p.showReasons(answer)
				return nil
			})
		},
	}
}

// reasons is the answer to why.
type reasons struct {
	About   string             `json:"about"` // "path", "resource", "holder" or "grant"
	Name    string             `json:"name"`
	Held    []standing         `json:"held"`
	Waiting []standing         `json:"waiting"` // in the order they will be served
	Queued  []*lockkeeper.Item `json:"queued"`  // items that want the path
	Events  []lockkeeper.Event `json:"events"`  // newest last

	missing bool // a path that does not exist
}

func newReasons(about, name string) *reasons {
	return &reasons{About: about, Name: name, Held: []standing{}, Waiting: []standing{}, Queued: []*lockkeeper.Item{}, Events: []lockkeeper.Event{}}
}

func (p *program) why(ctx context.Context, a *app.App, q *app.Queue, name string) (*reasons, error) {
	if looksLikeGrant(name) {
		e, err := a.Locks.Entry(ctx, name)
		if err != nil {
			return nil, err
		}
		r := newReasons("grant", name)
		if e != nil {
			r.add(stand(a, *e))
		}
		return r, r.recall(ctx, a, func(ev lockkeeper.Event) bool { return ev.GrantID == name })
	}
	s, err := gather(ctx, a)
	if err != nil {
		return nil, err
	}
	r := newReasons("holder", name)
	for _, e := range slices.Concat(s.Held, s.Stale, s.Gone, s.Waiting) {
		if e.Holder == name {
			r.add(e)
		}
	}
	there := len(r.Held)+len(r.Waiting) > 0
	if there || !p.looksLikePath(name) {
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
	if named, unknown := set.Resolve(name); unknown == nil && !p.exists(name) {
		locks, err := resolved(a, named.Locks(lockkeeper.Write, false))
		if err != nil {
			return nil, err
		}
		r = newReasons("resource", named.Name)
		return r, r.look(ctx, a, q, locks)
	}
	return p.whyPath(ctx, a, q, name)
}

// looksLikeGrant is generous: what is nearly an id is answered as a wrong id.
func looksLikeGrant(name string) bool {
	return len(name) == 36 && strings.Count(name, "-") == 4 && !strings.ContainsAny(name, "/.")
}

// looksLikePath says that a name is surely no holder of the past.
func (p *program) looksLikePath(name string) bool {
	return strings.ContainsAny(name, "/.") || p.exists(name)
}

// exists reports whether there is something at a path as it was typed.
func (p *program) exists(name string) bool {
	_, err := os.Lstat(filepath.Join(p.base(), name))
	return err == nil
}

func (p *program) whyPath(ctx context.Context, a *app.App, q *app.Queue, path string) (*reasons, error) {
	l, err := a.Resolve(lockkeeper.Read, path)
	if err != nil {
		return nil, err
	}
	r := newReasons("path", l.Path)
	_, err = os.Lstat(filepath.Join(a.Root.Dir(), filepath.FromSlash(l.Path)))
	r.missing = errors.Is(err, fs.ErrNotExist)
	l.Mode = lockkeeper.Write
	return r, r.look(ctx, a, q, []lockkeeper.Lock{l})
}

// look finds who holds places, who waits for them, and what happened to them. Asked
// for writing they meet everybody who is there.
func (r *reasons) look(ctx context.Context, a *app.App, q *app.Queue, places []lockkeeper.Lock) error {
	found, err := a.Locks.CheckConflicts(ctx, places)
	if err != nil {
		return err
	}
	slices.Reverse(found) // the earliest first
	seen := map[string]bool{}
	for _, c := range found {
		if seen[c.GrantID] {
			continue
		}
		seen[c.GrantID] = true
		e, err := a.Locks.Entry(ctx, c.GrantID)
		if err != nil {
			return err
		}
		if e != nil {
			r.add(stand(a, *e))
		}
	}
	for _, l := range places {
		wanting, err := q.Wanting(ctx, l.Path)
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
		return slices.ContainsFunc(places, func(l lockkeeper.Lock) bool { return view.Concerns(ev, l.Target) })
	})
}

func (r *reasons) add(s standing) {
	if s.State == waiting {
		r.Waiting = append(r.Waiting, s)
	} else {
		r.Held = append(r.Held, s)
	}
}

// recall adds the latest events, looking back over the last page only.
func (r *reasons) recall(ctx context.Context, a *app.App, want func(lockkeeper.Event) bool) error {
	page, err := a.Locks.Events(ctx, lockkeeper.EventQuery{Limit: pageSize, Latest: true})
	if err != nil {
		return err
	}
	for _, ev := range page {
		if want(ev) && len(r.Events) < eventsShown {
			r.Events = append(r.Events, ev)
		}
	}
	slices.Reverse(r.Events)
	return nil
}

func (p *program) showReasons(r *reasons) {
	name := clean(r.Name)
	switch {
	case len(r.Held)+len(r.Waiting) > 0:
	case len(r.Queued) > 0:
		fmt.Fprintf(p.Out, "%s is not held, and %s it\n", name, plural(len(r.Queued), "a queued item wants", "queued items want"))
	case r.About == "path" && r.missing:
		fmt.Fprintf(p.Out, "%s is free, and no such file exists\n", name)
	case r.About == "path", r.About == "resource":
		fmt.Fprintf(p.Out, "%s is free: nobody holds it or waits for it\n", name)
	case r.About == "holder":
		fmt.Fprintf(p.Out, "%s holds nothing and waits for nothing\n", name)
	default:
		fmt.Fprintf(p.Out, "grant %s is not held here: it was released, it expired, or it never was\n", name)
	}
	for _, s := range r.Held {
		p.showEntry(p.Out, s)
	}
	for i, s := range r.Waiting {
		if r.About == "path" || r.About == "resource" {
			fmt.Fprintf(p.Out, "%d. in line: ", i+1)
		}
		p.showEntry(p.Out, s)
	}
	for _, it := range r.Queued[:min(len(r.Queued), few(p.Out, pathsShown))] {
		fmt.Fprintf(p.Out, "queued: %s (%s) %s, %s, wants %s\n", it.ID, title(it), clean(it.Phase), stateOf(it), lockList(it.Locks))
	}
	if more := len(r.Queued) - few(p.Out, pathsShown); more > 0 {
		fmt.Fprintf(p.Out, "queued: and %d more\n", more)
	}
	if len(r.Events) > 0 {
		fmt.Fprintln(p.Out, p.painter(p.Out)(bold, "recently:"))
		for _, ev := range r.Events {
			fmt.Fprintln(p.Out, "  "+eventLine(ev, all))
		}
	}
}

// showEntry tells all that is known of a grant or a waiting request.
func (p *program) showEntry(f file, s standing) {
	now := p.Now()
	verb := "holds"
	if s.State == waiting {
		verb = "waits for"
	}
	fmt.Fprintf(f, "%s %s %s", p.painter(f)(bold, clean(s.Holder)), verb, listed(s.Entry))
	if note := s.note(); note != "" {
		fmt.Fprint(f, " ", p.painter(f)(yellow, note))
	}
	fmt.Fprintf(f, "\n  for %s, since %s; expires %s", span(now.Sub(s.AcquiredAt)), stamp(s.AcquiredAt), until(s.ExpiresAt, now))
	fmt.Fprintf(f, "; last heartbeat %s ago\n", span(now.Sub(s.HeartbeatAt)))
	fmt.Fprintf(f, "  grant %s, policy %s", s.ID, clean(s.Policy))
	if s.State != waiting {
		fmt.Fprintf(f, ", fence %d", s.Fence)
	}
	if s.Process != nil {
		fmt.Fprintf(f, ", process %d on %s is %s", s.Process.PID, clean(s.Process.Host), s.Life)
	} else {
		fmt.Fprint(f, ", no process recorded")
	}
	fmt.Fprintln(f)
	if s.Gone {
		fmt.Fprintln(f, "  it is free for whoever asks, for its process is gone")
	}
	if reason := s.Metadata["reason"]; reason != "" {
		fmt.Fprintf(f, "  reason: %s\n", clean(reason))
	}
	for _, c := range s.Conflicts {
		how := "holds"
		if c.Kind == lockkeeper.Waiting {
			how = "waits earlier for"
		}
		fmt.Fprintf(f, "  blocked: %s %s %s for %s, grant %s\n", clean(c.Holder), how,
			lockkeeper.Lock{Target: lockkeeper.Target{Path: clean(c.BlockingPath)}, Mode: c.BlockingMode}, span(now.Sub(c.AcquiredAt)), c.GrantID)
	}
}

// listed is all locks of an entry: in the line while they are few, below it when
// they are many.
func listed(e lock.Entry) string {
	rows := rowsOf(e, all)
	parts := make([]string, len(rows))
	for i, row := range rows {
		parts[i] = row[0] + " " + row[1]
	}
	if len(parts) > pathsShown {
		return counted(len(parts), "lock") + ":\n    " + strings.Join(parts, "\n    ")
	}
	return strings.Join(parts, ", ")
}

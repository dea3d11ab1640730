package view

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"lockkeeper"
	"lockkeeper/internal/compat/resource"
	"lockkeeper/internal/job"
	"lockkeeper/internal/project"
)

// Why explains a path, a resource, a holder or a grant.
type Why struct {
	About   string             `json:"about"` // "path", "resource", "holder" or "grant"
	Name    string             `json:"name"`
	Held    []Holding          `json:"held"`
	Waiting []Holding          `json:"waiting"` // waiting requests, in the order of granting
	Queued  []*lockkeeper.Item `json:"queued"`  // items that want the path
	Events  []lockkeeper.Event `json:"events"`  // newest last

	Lines   []Line `json:"-"` // the lines of Events
	Missing bool   `json:"-"` // a path that does not exist
}

// whyEvents is how many events Why has at most.
const whyEvents = 8

func newWhy(about, name string) *Why {
	return &Why{About: about, Name: name, Held: []Holding{}, Waiting: []Holding{}, Queued: []*lockkeeper.Item{}, Events: []lockkeeper.Event{}}
}

// IsUnknown reports whether the answer is about a path that does not exist and that nothing is known about.
func (w *Why) IsUnknown() bool {
	return w.Missing && len(w.Held)+len(w.Waiting)+len(w.Queued)+len(w.Events) == 0
}

// LooksLikeGrant reports whether a name resembles the id of a grant, so that a mistyped id is
// reported as an unknown grant.
func LooksLikeGrant(name string) bool {
	return len(name) == 36 && strings.Count(name, "-") == 4 && !strings.ContainsAny(name, "/.")
}

// Why explains what a name means: the id of a grant, a holder, a resource, a path, or the start of a
// grant's id, in this order. isFile reports that the caller knows a file of this name.
func (rd *Reader) Why(ctx context.Context, name string, isFile bool) (*Why, error) {
	if LooksLikeGrant(name) {
		return rd.whyGrant(ctx, name)
	}
	entries, err := rd.project.Locks.Requests(ctx)
	if err != nil {
		return nil, err
	}
	w := newWhy("holder", name)
	for _, e := range entries {
		if e.Holder == name {
			w.add(rd.Holding(e))
		}
	}
	active := len(w.Held)+len(w.Waiting) > 0
	if isPath := strings.ContainsAny(name, "/.") || isFile; active || !isPath {
		if err := rd.recall(ctx, w, func(ev lockkeeper.Event) bool { return ev.Holder == name }); err != nil {
			return nil, err
		}
	}
	if active || len(w.Events) > 0 {
		return w, nil
	}
	set, err := resource.Of(rd.project.Config)
	if err != nil {
		return nil, err
	}
	if named, unknown := set.Resolve(name); unknown == nil && !isFile {
		targets, err := rd.project.Resolved(named.Locks(lockkeeper.Write, false))
		if err != nil {
			return nil, err
		}
		w = newWhy("resource", named.Name)
		return w, rd.whyTargets(ctx, w, targets)
	}
	w, err = rd.whyPath(ctx, name)
	if err == nil && w.IsUnknown() && project.CheckGrantName(name) == nil {
		return rd.whyGrantPrefix(ctx, name, w)
	}
	return w, err
}

func (rd *Reader) whyGrant(ctx context.Context, id string) (*Why, error) {
	w := newWhy("grant", id)
	e, err := rd.project.Locks.Request(ctx, id)
	if err != nil {
		return nil, err
	}
	if e != nil {
		w.add(rd.Holding(*e))
	}
	return w, rd.recall(ctx, w, func(ev lockkeeper.Event) bool { return ev.GrantID == id })
}

// whyGrantPrefix explains the grant whose id starts with a text. If there is none, it returns otherwise.
func (rd *Reader) whyGrantPrefix(ctx context.Context, start string, otherwise *Why) (*Why, error) {
	id, err := rd.project.GrantID(ctx, start)
	if err == nil {
		return rd.whyGrant(ctx, id)
	}
	if lockkeeper.CodeOf(err) != lockkeeper.CodeNotHeld {
		return nil, err
	}
	ended := newWhy("grant", start)
	err = rd.recall(ctx, ended, func(ev lockkeeper.Event) bool { return strings.HasPrefix(ev.GrantID, start) })
	if len(ended.Events) == 0 {
		return otherwise, err
	}
	return ended, err
}

func (rd *Reader) whyPath(ctx context.Context, path string) (*Why, error) {
	l, err := rd.project.Resolve(lockkeeper.Write, path)
	if err != nil {
		return nil, err
	}
	w := newWhy("path", l.Path)
	_, err = os.Lstat(filepath.Join(rd.project.Root.Dir(), filepath.FromSlash(l.Path)))
	w.Missing = errors.Is(err, fs.ErrNotExist)
	return w, rd.whyTargets(ctx, w, []lockkeeper.Lock{l})
}

// whyTargets adds who holds the targets, who waits for them, and the events about them. The targets are
// write locks, which conflict with every holder.
func (rd *Reader) whyTargets(ctx context.Context, w *Why, targets []lockkeeper.Lock) error {
	found, err := rd.project.Locks.CheckConflicts(ctx, targets)
	if err != nil {
		return err
	}
	seen := map[string]bool{}
	for _, c := range slices.Backward(found) { // the earliest comes first
		if seen[c.GrantID] {
			continue
		}
		seen[c.GrantID] = true
		e, err := rd.project.Locks.Request(ctx, c.GrantID)
		if err != nil {
			return err
		}
		if e != nil {
			w.add(rd.Holding(*e))
		}
	}
	q, err := job.Open(rd.project)
	if err != nil {
		return err
	}
	for _, l := range targets {
		wanting, err := q.QueuedFor(ctx, l.Path)
		if err != nil {
			return err
		}
		for _, it := range wanting {
			if !slices.ContainsFunc(w.Queued, func(o *lockkeeper.Item) bool { return o.ID == it.ID }) {
				w.Queued = append(w.Queued, it)
			}
		}
	}
	return rd.recall(ctx, w, func(ev lockkeeper.Event) bool {
		return slices.ContainsFunc(targets, func(l lockkeeper.Lock) bool { return Concerns(ev, l.Target) })
	})
}

func (w *Why) add(s Holding) {
	if s.State == waitingState {
		w.Waiting = append(w.Waiting, s)
	} else {
		w.Held = append(w.Held, s)
	}
}

// recall adds the latest matching events.
func (rd *Reader) recall(ctx context.Context, w *Why, matches func(lockkeeper.Event) bool) (err error) {
	w.Lines, err = rd.Recent(ctx, whyEvents, maxPaths, matches)
	slices.Reverse(w.Lines)
	for _, line := range w.Lines {
		w.Events = append(w.Events, line.Event)
	}
	return err
}

package coverage

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"lockkeeper"
	"lockkeeper/durable"
	"lockkeeper/internal/project"
	"lockkeeper/store"
)

// logReach bounds how many events are read to find the lock under which a change was made.
// logPage is how many of them one query reads.
const (
	logReach = 50_000
	logPage  = 1_000
)

// A history reads the log from its newest event on. It finds the holders of write locks on
// changed paths at the time when the paths were last modified. If the store is on another
// machine, its clock must agree with that of the disk.
type history struct {
	under  map[string][]*Change // the changes at and below each path
	left   int                  // number of changes that are not covered yet
	oldest time.Time            // the time of the earliest change that is not covered yet

	open  map[string]bool      // grants that have not ended, from the store
	ended map[string]time.Time // the ends of other grants, from the log
	// awaited has the grants whose beginning was not read yet, with the changes that each may
	// cover: those made before the grant ended. Reading continues while there are any.
	awaited map[string][]*Change
}

func newHistory(changes []*Change) *history {
	h := &history{left: len(changes), under: map[string][]*Change{},
		open: map[string]bool{}, ended: map[string]time.Time{}, awaited: map[string][]*Change{}}
	for i, c := range changes {
		if i == 0 || c.Modified.Before(h.oldest) {
			h.oldest = c.Modified
		}
		for here, more := c.Path, true; more; here, more = lockkeeper.Parent(here) {
			h.under[here] = append(h.under[here], c)
		}
	}
	return h
}

// cover marks the changes that were made under a write lock of a past or current grant.
func cover(ctx context.Context, a *project.Project, changes []*Change) error {
	h := newHistory(changes)
	if h.left == 0 {
		return nil
	}
	err := a.Store.View(ctx, func(r store.Reader) error { return h.findOpen(r, changes) })
	if err != nil {
		return err
	}
	var last lockkeeper.Event
	for read := 0; read < logReach; read += logPage {
		page, err := a.Locks.Events(ctx, store.EventQuery{Before: last.Seq, Limit: logPage, Latest: true})
		if err != nil {
			return err
		}
		for _, last = range page {
			if h.done(last.At) {
				return nil
			}
			h.visit(last)
		}
		if len(page) < logPage {
			break
		}
	}
	if last.Seq > 1 { // if last is the first event, the log was read to its beginning
		h.tellShort(changes, last.At)
	}
	return nil
}

// findOpen finds the grants at the changed paths that have not ended. They include expired
// grants that were not freed, because no other grant had their locks.
func (h *history) findOpen(r store.Reader, changes []*Change) error {
	var asked []lockkeeper.Lock
	for _, c := range changes {
		asked = append(asked, lockkeeper.Lock{Target: lockkeeper.Target{Path: c.Path, Kind: lockkeeper.File}, Mode: lockkeeper.Read})
	}
	found, _, err := r.Overlapping(store.Query{Locks: asked, Before: store.HeldOnly})
	for _, o := range found {
		id, list := o.Record.ID, h.at(o.Lock)
		if len(list) > 0 && (o.Record.State == store.StateHeld || o.Record.State == store.StateLanding) {
			h.open[id], h.awaited[id] = true, append(h.awaited[id], list...)
		}
	}
	return err
}

// done reports whether events before a time cannot cover any more changes.
func (h *history) done(at time.Time) bool {
	return h.left == 0 || at.Before(h.oldest) && len(h.awaited) == 0
}

func (h *history) visit(ev lockkeeper.Event) {
	switch ev.Kind {
	case lockkeeper.EventReleased, lockkeeper.EventExpired, lockkeeper.EventRecovered, lockkeeper.EventForceReleased, lockkeeper.EventRevoking,
		lockkeeper.EventWithdrawn, lockkeeper.EventTimedOut: // a grant that its waiter had not confirmed ends with one of these events
		h.end(ev)
	case lockkeeper.EventUpgraded, lockkeeper.EventExtended:
		h.begin(ev)
	case lockkeeper.EventAcquired:
		h.begin(ev)
		delete(h.awaited, ev.GrantID)
	}
}

// end records when a grant ended, if it can cover a change. A revoked grant ended when it was
// revoked. The log is read backwards, so the event that freed the grant comes before the one that
// revoked it.
func (h *history) end(ev lockkeeper.Event) {
	var before []*Change
	for _, l := range ev.Locks {
		for _, c := range h.at(l) {
			if !c.Modified.After(ev.At) {
				before = append(before, c)
			}
		}
	}
	delete(h.open, ev.GrantID) // the grant ended after the store was read
	if len(before) > 0 {
		h.ended[ev.GrantID], h.awaited[ev.GrantID] = ev.At, before
	} else {
		delete(h.ended, ev.GrantID)
		delete(h.awaited, ev.GrantID)
	}
}

// begin covers the changes that were made under the locks of a grant between this event and
// the end of the grant.
func (h *history) begin(ev lockkeeper.Event) {
	until, over := h.ended[ev.GrantID]
	if !over && !h.open[ev.GrantID] {
		return
	}
	for _, l := range ev.Locks {
		for _, c := range h.at(l) {
			if c.Modified.Before(ev.At.Add(-durable.FileTick)) || over && c.Modified.After(until) {
				continue
			}
			c.State, c.Holder, c.GrantID, c.HeldFrom = Covered, ev.Holder, ev.GrantID, &ev.At
			if over {
				c.HeldUntil = &until
			}
			h.left--
		}
	}
}

// at lists the changes that a write lock covers and that no newer lock covers.
func (h *history) at(l lockkeeper.Lock) (list []*Change) {
	if l.Mode != lockkeeper.Write {
		return nil
	}
	for _, c := range h.under[l.Path] {
		if c.State == Uncovered && (c.Path == l.Path || l.Kind.Below()) {
			list = append(list, c)
		}
	}
	return list
}

// tellShort marks the changes that a log with this beginning cannot explain.
func (h *history) tellShort(changes []*Change, begins time.Time) {
	for _, c := range changes {
		c.BeforeLog = c.State == Uncovered && c.Modified.Before(begins)
	}
	for _, list := range h.awaited {
		for _, c := range list {
			c.BeforeLog = c.State == Uncovered
		}
	}
}

// modifiedAt returns when a path of the tree was last modified. For a missing path it
// returns the time of its nearest existing parent.
func modifiedAt(tree *os.Root, name string) (at time.Time, gone bool, err error) {
	found, err := tree.Lstat(".")
	if err != nil {
		return at, false, err
	}
	here := ""
	for segment := range strings.SplitSeq(name, "/") {
		if gone = !found.IsDir(); gone {
			break
		}
		here = path.Join(here, segment)
		next, err := tree.Lstat(filepath.FromSlash(here))
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ENOTDIR) {
			gone = true
			break
		}
		if err != nil {
			return at, false, err
		}
		found = next
	}
	return found.ModTime(), gone, nil
}

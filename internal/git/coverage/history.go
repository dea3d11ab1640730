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

	"lockkeeper/internal/project"

	"golang.org/x/sys/unix"

	"lockkeeper"
	"lockkeeper/store"
)

// logReach bounds how many events are read to find out under whose lock a change
// was made; logPage is how many of them one look at the store reads.
const (
	logReach = 50_000
	logPage  = 1_000
)

// coarseClock is how far the times of files may be behind the clock: file systems
// take them from the last tick, of which there are at least a hundred a second.
// They are never ahead of it, as long as log and disk have one clock: with a
// store on another machine, the clocks of both must agree.
const coarseClock = 10 * time.Millisecond

// history finds in the log, read from its newest event on, who held a write lock
// on changed paths at the time when they were last modified. That nobody forges
// the times of files is taken for granted: it is a help for the honest.
type history struct {
	under  map[string][]*Change // the changes at each path and below it
	left   int                  // changes that are not covered yet
	oldest time.Time            // when the earliest of them was made

	open  map[string]bool      // grants that have not ended, as the store says
	ended map[string]time.Time // those that have, as the log says
	// Grants that ended after a change that they may cover, and whose beginning is
	// further back, with those changes. While there are any, reading goes on.
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

// cover marks those of the changes that were made under a write lock of a grant,
// be it live or not any more.
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
	if last.Seq > 1 { // else the log was read to its very beginning
		h.tellShort(changes, last.At)
	}
	return nil
}

// findOpen asks the store which grants at the changed paths have not ended. A
// lapsed one that nobody has freed yet is among them: nobody else had its locks.
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

// done reports whether events from before then cannot cover anything more.
func (h *history) done(at time.Time) bool {
	return h.left == 0 || at.Before(h.oldest) && len(h.awaited) == 0
}

func (h *history) visit(ev lockkeeper.Event) {
	switch ev.Kind {
	case lockkeeper.EventReleased, lockkeeper.EventExpired, lockkeeper.EventRecovered, lockkeeper.EventForceReleased, lockkeeper.EventRevoking,
		lockkeeper.EventWithdrawn, lockkeeper.EventTimedOut: // also of a grant that its waiter had not confirmed
		h.end(ev)
	case lockkeeper.EventUpgraded, lockkeeper.EventExtended:
		h.begin(ev)
	case lockkeeper.EventAcquired:
		h.begin(ev)
		delete(h.awaited, ev.GrantID)
	}
}

// end notes when a grant ended, if it can cover anything. Of a revoked one that
// is when it was taken away, which is read after its freeing.
func (h *history) end(ev lockkeeper.Event) {
	var before []*Change
	for _, l := range ev.Locks {
		for _, c := range h.at(l) {
			if !c.Modified.After(ev.At) {
				before = append(before, c)
			}
		}
	}
	delete(h.open, ev.GrantID) // it was when the store was asked
	if len(before) > 0 {
		h.ended[ev.GrantID], h.awaited[ev.GrantID] = ev.At, before
	} else {
		delete(h.ended, ev.GrantID)
		delete(h.awaited, ev.GrantID)
	}
}

// begin covers what was changed under the locks that a grant was given then,
// from then until it ended.
func (h *history) begin(ev lockkeeper.Event) {
	until, over := h.ended[ev.GrantID]
	if !over && !h.open[ev.GrantID] {
		return
	}
	for _, l := range ev.Locks {
		for _, c := range h.at(l) {
			if c.Modified.Before(ev.At.Add(-coarseClock)) || over && c.Modified.After(until) {
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

// at lists the changes that a lock covers, if it is one for writing, and that
// nothing newer covers.
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

// tellShort marks the changes about which a log that begins at some time says
// nothing, or not enough.
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

// modifiedAt is when a path of the tree was last modified. Of what is gone it is
// when the nearest directory above was, or what is there in its place.
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

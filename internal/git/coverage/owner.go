package coverage

import (
	"context"
	"time"

	"lockkeeper"
	"lockkeeper/internal/project"
	"lockkeeper/lock"
	"lockkeeper/store"
)

// These are the owners of a change. A change without an owner is free.
const (
	Yours = "yours" // the caller holds the path, or made the last change of it and nobody holds it now
	Held  = "held"  // another holder has a write lock on the path; Holder, GrantID and HeldFrom describe it
)

// A Caller is the session, person or program for which changes are listed.
type Caller interface {
	// Owns reports whether a grant that is held now is the caller's.
	Owns(*lock.RequestInfo) bool
	// Was reports whether the holder of an ended grant, or the writer of a landing, at this time
	// was the caller.
	Was(holder string, at time.Time) bool
	// Made returns the paths whose current content the caller made without a lock.
	Made(paths []string) (map[string]bool, error)
}

// assign sets the owner of each change. If another holder has the path now, the change is not the
// caller's, even if the caller made it. The change is not the caller's either if the path has the
// content of another holder's file, which was moved there.
func (j *judge) assign(ctx context.Context, a *project.Project, who Caller, list []Change) error {
	var unexplained []string
	for i := range list {
		c := &list[i]
		held := j.writers.of(c.Path)
		if held != nil && !held.Free && !owns(who, held) {
			c.MovedFrom = "" // the new path itself is held
		} else if c.MovedFrom != "" {
			held = j.writers.of(c.MovedFrom)
		}
		switch {
		case held == nil || held.Free:
			was, err := wasMade(ctx, a, who, c)
			if err != nil {
				return err
			}
			if was {
				c.Owner = Yours
			} else if c.State == Uncovered {
				unexplained = append(unexplained, c.Path)
			}
		default:
			c.Owner, c.Holder, c.GrantID, c.HeldFrom, c.HeldUntil = Held, held.Holder, held.ID, &held.AcquiredAt, nil
			if owns(who, held) {
				c.Owner = Yours
			}
		}
	}
	if who == nil || len(unexplained) == 0 {
		return nil
	}
	made, err := who.Made(unexplained)
	for i := range list {
		if c := &list[i]; c.State == Uncovered && c.Owner == "" && made[c.Path] {
			c.Owner = Yours
		}
	}
	return err
}

// wasMade reports whether the caller made a change under a grant that it no longer holds.
func wasMade(ctx context.Context, a *project.Project, who Caller, c *Change) (was bool, err error) {
	switch {
	case who == nil:
		return false, nil
	case c.State == Covered:
		return who.Was(c.Holder, *c.HeldFrom), nil
	case c.State != Landed:
		return false, nil
	}
	err = a.Store.View(ctx, func(r store.Reader) error {
		list, err := r.Landings(store.LandingQuery{Seq: c.Landing})
		for _, l := range list {
			was = was || l.Seq == c.Landing && who.Was(l.Holder, l.At)
		}
		return err
	})
	return was, err
}

// HeldByOthers returns, for each path, the holder that has it locked for writing, unless that is
// the caller.
func HeldByOthers(ctx context.Context, a *project.Project, who Caller, paths []string) (map[string]*lock.RequestInfo, error) {
	held, err := heldForWriting(ctx, a)
	if err != nil {
		return nil, err
	}
	others := map[string]*lock.RequestInfo{}
	for _, p := range paths {
		if g := held.other(who, p); g != nil {
			others[p] = g
		}
	}
	return others, nil
}

// A writers has the holders of write locks, by path.
type writers map[string]*lock.RequestInfo

func heldForWriting(ctx context.Context, a *project.Project) (writers, error) {
	entries, err := a.Locks.Requests(ctx)
	if err != nil {
		return nil, err
	}
	held := writers{}
	for i := range entries {
		e := &entries[i]
		if e.State != "held" && e.State != "landing" {
			continue
		}
		for _, path := range e.WritePaths {
			held[path] = e
		}
	}
	return held, nil
}

// Writer returns the holder of a write lock on a path, or nil.
func Writer(ctx context.Context, a *project.Project, path string) (*lock.RequestInfo, error) {
	held, err := heldForWriting(ctx, a)
	return held.of(path), err
}

// of returns the holder of a path or of one of its parent directories, or nil.
func (w writers) of(path string) *lock.RequestInfo {
	for here, more := path, true; more; here, more = lockkeeper.Parent(here) {
		if found := w[here]; found != nil {
			return found
		}
	}
	return nil
}

// other returns the holder of a path or of one of its parent directories, unless that is the
// caller or the lock is free.
func (w writers) other(who Caller, path string) *lock.RequestInfo {
	g := w.of(path)
	if g != nil && !g.Free && !owns(who, g) {
		return g
	}
	return nil
}

func owns(who Caller, g *lock.RequestInfo) bool { return who != nil && who.Owns(g) }

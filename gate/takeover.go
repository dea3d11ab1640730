package gate

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"time"

	"lockkeeper"
	"lockkeeper/internal/machine/filelock"
	"lockkeeper/store"
)

// takeOverTries bounds how often concurrent recoveries take a landing from each other.
const takeOverTries = 5

// recoverOne completes a decided landing or rolls it back, depending on what is on the
// disk, and returns its final state. It returns Decided for a landing that its writer had
// completed and not marked. If a person abandoned the landing, abandoned says who and why,
// and the landing is rolled back without the directories that are missing.
func (g *Gate) recoverOne(ctx context.Context, l *lockkeeper.Landing, abandoned string) (lockkeeper.LandingState, error) {
	if !g.isHere(l) {
		return l.State, &lockkeeper.RefusedError{Act: fmt.Sprintf("recovery of landing %d", l.Seq), Reason: "its files are on " + siteOf(l),
			Next: "run `lockkeeper gate recover` on the machine with the files"}
	}
	removed, err := g.isRemoved(g.recovs)
	if err != nil {
		return l.State, err
	}
	if removed {
		fresh, err := g.reopen()
		if err != nil {
			return l.State, err
		}
		state, err := fresh.recoverOne(ctx, l, abandoned)
		return state, errors.Join(err, fresh.closeDirs())
	}
	lock := &recoveryLock{g: g}
	defer lock.close()
	for try := range takeOverTries {
		state, err := g.tryRecover(ctx, l, abandoned)
		if !errors.Is(err, errFenced) {
			return state, err
		}
		now, err := g.Landing(ctx, l.Seq) // another process took the landing over and may have ended it
		if err != nil {
			return l.State, err
		}
		if now.State != lockkeeper.Decided {
			return lockkeeper.Decided, nil // the process that took the landing over reports it
		}
		if err := lock.wait(ctx, l, 500*time.Millisecond<<try); err != nil {
			return l.State, err
		}
	}
	return l.State, &lockkeeper.RefusedError{Act: fmt.Sprintf("recovery of landing %d", l.Seq), Reason: "several recoveries of this landing interrupt each other",
		Next: "run `lockkeeper gate recover` when they have ended"}
}

// tryRecover takes over a landing and ends it. It makes its own stage before the store
// names it as the taker. So the last taker finds the stages of all earlier ones. It
// empties and removes them first, after which an earlier taker finds nothing and cannot
// end the landing.
func (g *Gate) tryRecover(ctx context.Context, l *lockkeeper.Landing, abandoned string) (lockkeeper.LandingState, error) {
	s, err := g.makeStage(g.recovs, func() string { return l.Commit + "." + newID() })
	if err != nil {
		return l.State, err
	}
	defer s.close()
	taken, err := g.takeLanding(ctx, store.TakenLanding{Seq: l.Seq, Taker: newID()})
	if err != nil || taken == nil {
		return lockkeeper.Decided, errors.Join(err, s.drop())
	}
	state, err := g.finish(ctx, taken, s, abandoned)
	if errors.Is(err, errFenced) {
		return state, errors.Join(err, s.drop())
	}
	return state, err
}

func (g *Gate) finish(ctx context.Context, taken *lockkeeper.Landing, s *stage, abandoned string) (lockkeeper.LandingState, error) {
	survived, err := g.takeOver(taken, s)
	if err != nil {
		return taken.State, err
	}
	p := g.newApplier(taken, s)
	defer p.close()
	kept, err := g.isKept(taken)
	if err != nil {
		return taken.State, err
	}
	if kept { // the landing is complete, and only its mark in the store is missing
		return lockkeeper.Decided, p.end(ctx, s.returnOriginals, "")
	}
	cause := p.inspect(survived)
	if cause != nil && !errors.As(cause, new(*conflictError)) {
		return taken.State, cause
	}
	if cause == nil {
		cause = p.forward()
	}
	switch {
	case errors.Is(cause, errFenced):
		return taken.State, cause
	case cause != nil:
		if p.abandon = abandoned != ""; p.abandon {
			cause = fmt.Errorf("%w; %s", cause, abandoned)
		}
		return lockkeeper.Undone, p.rolledBack(ctx, cause, p.keepNewContent)
	}
	return lockkeeper.Committed, p.end(ctx, s.keepOriginals, "its process ended before it was complete")
}

// end makes the changes of a landing durable, keeps the originals and marks the landing as
// committed. If it cannot keep the originals, it returns the error, but still ends the landing,
// which then cannot be undone.
func (p *applier) end(ctx context.Context, keep func(*lockkeeper.Landing) error, reason string) error {
	if err := p.sync(); err != nil {
		return err
	}
	left := p.orFenced(keep(p.l))
	if errors.Is(left, errFenced) {
		return left
	}
	left = errors.Join(left, p.s.drop())
	ended, err := p.g.endLanding(ctx, p.ending(), lockkeeper.Committed, reason)
	if err == nil && !ended {
		err = errFenced
	}
	return errors.Join(err, left)
}

// A source is a directory that may be a stage of a landing.
type source struct {
	in   *os.File
	name string
}

// sources lists the possible stages of a landing: its writer's and those of recoveries.
func (g *Gate) sources(l *lockkeeper.Landing) ([]source, error) {
	from := []source{{g.stages, stageName(l.GrantID, l.Fence, l.Commit)}}
	names, err := g.disk.List(g.recovs)
	for _, name := range names {
		if strings.HasPrefix(name, l.Commit+".") {
			from = append(from, source{g.recovs, name})
		}
	}
	return from, err
}

// takeOver moves the content of a landing's other stages into s, which fences the processes
// that worked on them. It reports whether there was any other stage.
func (g *Gate) takeOver(l *lockkeeper.Landing, s *stage) (survived bool, err error) {
	from, err := g.sources(l)
	if err != nil {
		return false, err
	}
	for _, f := range from {
		if f.in == s.in && f.name == s.name {
			continue
		}
		there, err := g.drain(f.in, f.name, s)
		if err != nil {
			return false, err
		}
		survived = survived || there
	}
	if l.Draft != "" {
		there, err := s.reclaimDraft(l.Draft)
		if err != nil {
			return false, err
		}
		survived = survived || there
	}
	return survived, s.syncNames()
}

// drain moves the content of a stage into another one and removes it. Until then its
// writer may still add entries.
func (g *Gate) drain(in *os.File, name string, into *stage) (there bool, err error) {
	dir, err := g.disk.OpenDir(in, name)
	if err != nil {
		return false, unlessMissing(err)
	}
	defer dir.Close()
	for range 2 * lockkeeper.MaxTargets { // a bound: a writer makes fewer renames
		names, err := g.disk.List(dir)
		if errors.Is(err, fs.ErrNotExist) { // another recovery was faster
			return true, nil
		}
		if err != nil {
			return true, err
		}
		for _, entry := range names {
			if !strings.HasPrefix(entry, into.entry("")) {
				continue
			}
			if err := g.drainEntry(dir, entry, into); err != nil {
				return true, err
			}
		}
		err = g.disk.RemoveDir(in, name)
		switch {
		case err == nil || errors.Is(err, fs.ErrNotExist):
			return true, nil
		case !isInUse(err):
			return true, err
		}
	}
	return true, lockkeeper.WithNext(fmt.Errorf("another program keeps writing into stage %s", name), "stop the program that writes into "+dir.Name())
}

func (g *Gate) drainEntry(dir *os.File, entry string, into *stage) error {
	var err error
	switch {
	case entry == into.entry(draftNote):
		err = g.disk.Remove(dir, entry)
	case strings.HasPrefix(entry, into.entry(dirPrefix)): // the entry is an empty directory that is not in the tree yet
		err = g.disk.RemoveDir(dir, entry)
	default:
		err = g.disk.Move(dir, entry, into.dir, entry)
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	// A stage is missing if the writer or another recovery was faster, or if it is our own.
	removed, err := g.isRemoved(into.dir)
	if removed {
		return errFenced
	}
	return err
}

// inspect determines from the content of the stage which changes were made. It returns a
// conflictError if one of the remaining changes cannot be made.
func (p *applier) inspect(survived bool) error {
	var blocked error
	for n, c := range p.l.Changes {
		if c.Old == c.New {
			continue
		}
		staged, err := p.g.observe(p.s.at(n))
		if err != nil && !errors.Is(err, errIrregular) {
			return err
		}
		now, nowErr := p.g.observePath(c.Path)
		if nowErr != nil && !errors.Is(nowErr, errIrregular) && !isElsewhere(nowErr) {
			return nowErr
		}
		if err := p.judge(n, c, staged, err, now, nowErr, survived); err != nil && blocked == nil {
			blocked = err
		}
	}
	return blocked
}

// judge does the work of inspect for one change. If the stage holds neither the old nor the new
// version, the change displaced another writer's edit and must be rolled back.
func (p *applier) judge(n int, c lockkeeper.PathChange, staged lockkeeper.Version, stagedErr error, now lockkeeper.Version, nowErr error, survived bool) error {
	synced := len(p.l.Changes) > 1 || p.l.Draft != "" // the stage's names were durable before the decision
	switch {
	case c.New.Exists() && staged == c.New && stagedErr == nil: // the change was not made
	case !c.Old.Exists() && !staged.Exists() && stagedErr == nil && (survived && synced || now == c.New): // the change created the file
		p.done[n] = true
		return nil
	case c.Old.Exists() && staged == c.Old && stagedErr == nil: // the change displaced the expected version
		p.done[n] = true
		return nil
	case !c.New.Exists() && !staged.Exists() && stagedErr == nil: // this landing did not delete the file
		if !now.Exists() && nowErr == nil {
			p.noOriginal[n] = true // another writer deleted the file
			return nil
		}
	case !staged.Exists() && stagedErr == nil:
		if now == c.New && nowErr == nil {
			p.noOriginal[n] = true // the original is lost
			return nil
		}
		return &conflictError{c.Path, "its new content was lost in a crash"}
	default:
		p.done[n] = true
		return &conflictError{c.Path, "the landing displaced another writer's edit"}
	}
	if now != c.Old || nowErr != nil {
		return &conflictError{c.Path, differs(c.Old, now)}
	}
	return nil
}

// A recoveryLock orders recoveries that have fenced each other, which would otherwise all
// retry at once. It is a lock on the directory of all recoveries and ends with its process.
// Safety does not depend on it.
type recoveryLock struct {
	g    *Gate
	dir  *os.File // nil until the first wait
	held bool
}

// wait waits until it holds the lock and no other process works on the landing. It
// waits no longer than limit, because that process may be stopped.
func (r *recoveryLock) wait(ctx context.Context, l *lockkeeper.Landing, limit time.Duration) (err error) {
	if r.dir == nil {
		if r.dir, err = r.g.disk.OpenDir(r.g.recovs, "."); err != nil {
			return err
		}
	}
	ctx, cancel := context.WithTimeoutCause(ctx, limit, errNotInTime)
	defer cancel()
	for wait := time.Millisecond; ; wait = min(2*wait, 50*time.Millisecond) {
		if !r.held {
			if r.held, err = lockStage(r.dir, filelock.Try); err != nil {
				return err
			}
		}
		busy, err := r.g.isBusy(l)
		if err != nil || r.held && !busy {
			return err
		}
		select {
		case <-time.After(wait): // nothing signals that a file lock is free
		case <-ctx.Done():
			if err := context.Cause(ctx); !errors.Is(err, errNotInTime) {
				return err
			}
			return nil
		}
	}
}

func (r *recoveryLock) close() {
	if r.dir != nil {
		r.dir.Close() // nothing was written through the descriptor
	}
}

// errNotInTime says that the limit of a recoveryLock passed.
var errNotInTime = errors.New("another recovery is still running")

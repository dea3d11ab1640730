package gate

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"lockkeeper"
	"lockkeeper/store"
)

// takeOverTries bounds how often two recoveries of one landing take it from each
// other.
const takeOverTries = 5

// recoverOne completes a decided landing, or rolls it back, by what is on the disk, and
// returns the state in which it ended. It returns Decided for a landing that its writer
// had completed and not marked. If a person gave the landing up, givenUp says who and
// why, and the landing is rolled back without the directories that are missing.
func (g *Gate) recoverOne(ctx context.Context, l *lockkeeper.Landing, givenUp string) (lockkeeper.LandingState, error) {
	if !g.isHere(l) {
		return l.State, &lockkeeper.RefusedError{Act: fmt.Sprintf("finishing landing %d", l.Seq), Reason: "its files are on " + siteOf(l),
			Next: "run `lockkeeper gate recover` there"}
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
		state, err := fresh.recoverOne(ctx, l, givenUp)
		return state, errors.Join(err, fresh.closeDirs())
	}
	turn := &turn{g: g}
	defer turn.end()
	for try := range takeOverTries {
		state, err := g.tryRecover(ctx, l, givenUp)
		if !errors.Is(err, errFenced) {
			return state, err
		}
		now, err := g.Landing(ctx, l.Seq) // somebody else took it over; it may be done
		if err != nil {
			return l.State, err
		}
		if now.State != lockkeeper.Decided {
			return lockkeeper.Decided, nil // and has told so
		}
		if err := turn.wait(ctx, l, 500*time.Millisecond<<try); err != nil {
			return l.State, err
		}
	}
	return l.State, &lockkeeper.RefusedError{Act: fmt.Sprintf("finishing landing %d", l.Seq), Reason: "several recoveries take it from each other",
		Next: "run `lockkeeper gate recover` once they are done"}
}

// tryRecover takes a landing over and brings it to its end. Its own stage is there
// before the store says who has the landing. So the last who takes it finds the
// stages of all who had it before, empties and removes them, and only then goes on:
// whoever is late finds nothing, and cannot end it either.
func (g *Gate) tryRecover(ctx context.Context, l *lockkeeper.Landing, givenUp string) (lockkeeper.LandingState, error) {
	s, err := g.makeStage(g.recovs, func() string { return l.Commit + "." + newID() })
	if err != nil {
		return l.State, err
	}
	defer s.close()
	taken, err := g.takeLanding(ctx, store.Ending{Seq: l.Seq, Taker: newID()})
	if err != nil || taken == nil {
		return lockkeeper.Decided, errors.Join(err, s.drop())
	}
	state, err := g.finish(ctx, taken, s, givenUp)
	if errors.Is(err, errFenced) {
		return state, errors.Join(err, s.drop())
	}
	return state, err
}

func (g *Gate) finish(ctx context.Context, taken *lockkeeper.Landing, s *stage, givenUp string) (lockkeeper.LandingState, error) {
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
	if kept { // all was done, only the mark is missing
		return lockkeeper.Decided, p.end(ctx, s.giveBack, "")
	}
	cause := p.inspect(survived)
	var met *obstacle
	if cause != nil && !errors.As(cause, &met) {
		return taken.State, cause
	}
	if cause == nil {
		cause = p.forward()
	}
	switch {
	case errors.Is(cause, errFenced):
		return taken.State, cause
	case cause != nil:
		if p.giveUp = givenUp != ""; p.giveUp {
			cause = fmt.Errorf("%w; %s", cause, givenUp)
		}
		return lockkeeper.Undone, p.rolledBack(ctx, cause, p.shelveWanted)
	}
	return lockkeeper.Committed, p.end(ctx, s.retire, "its writer left it")
}

// end makes a landing that is done durable, puts the originals away and says so.
// Originals that cannot be put away are lost for an undo; that is told, and stops
// nothing.
func (p *applier) end(ctx context.Context, putAway func(*lockkeeper.Landing) error, reason string) error {
	if err := p.sync(); err != nil {
		return err
	}
	left := p.orFenced(putAway(p.l))
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

// source is where a stage may be.
type source struct {
	in   *os.File
	name string
}

// sources lists where the stage of a landing may be: where its writer made it, and
// where recoveries took it.
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

// takeOver moves all that is left of a landing's stages into a new one. That
// fences whoever worked on them. survived says whether there was any other.
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
	return survived, s.settle()
}

// drain empties a stage into another and removes it. Its writer may still put
// something in until it is gone.
func (g *Gate) drain(in *os.File, name string, into *stage) (there bool, err error) {
	dir, err := g.disk.OpenDir(in, name)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	defer dir.Close()
	for range 2 * lockkeeper.MaxTargets { // more than a writer has renames
		names, err := g.disk.List(dir)
		if errors.Is(err, fs.ErrNotExist) { // another recovery was quicker
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
	return true, fmt.Errorf("stage %s is filled again and again; next: end whoever writes into %s", name, dir.Name())
}

func (g *Gate) drainEntry(dir *os.File, entry string, into *stage) error {
	var err error
	switch {
	case entry == into.entry(draftNote):
		err = g.disk.Remove(dir, entry)
	case strings.HasPrefix(entry, into.entry(dirPrefix)): // an empty directory on its way
		err = g.disk.RemoveDir(dir, entry)
	default:
		err = g.disk.Move(dir, entry, into.dir, entry)
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	// Its writer, or another recovery, was quicker; unless it is the stage to move it
	// into that is gone.
	removed, err := g.isRemoved(into.dir)
	if removed {
		return errFenced
	}
	return err
}

// inspect finds out which changes are done, by what the stage holds, and whether
// the others can be.
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

// judge decides for one change. What was displaced and is not what was expected
// belongs to somebody else: then the change is done and has to be taken back.
func (p *applier) judge(n int, c lockkeeper.Alteration, staged lockkeeper.Version, odd error, now lockkeeper.Version, nowOdd error, survived bool) error {
	synced := len(p.l.Changes) > 1 || p.l.Draft != "" // the names in the stage, before it was decided
	switch {
	case c.New.Exists() && staged == c.New && odd == nil: // not done
	case !c.Old.Exists() && !staged.Exists() && odd == nil && (survived && synced || now == c.New): // created
		p.done[n] = true
		return nil
	case c.Old.Exists() && staged == c.Old && odd == nil: // displaced as expected
		p.done[n] = true
		return nil
	case !c.New.Exists() && !staged.Exists() && odd == nil: // not deleted by us
		if !now.Exists() && nowOdd == nil {
			p.bare[n] = true // somebody else did
			return nil
		}
	case !staged.Exists() && odd == nil:
		if now == c.New && nowOdd == nil {
			p.bare[n] = true // its original is lost, it is not
			return nil
		}
		return &obstacle{c.Path, "its new content was lost in a crash before it was in place"}
	default:
		p.done[n] = true
		return &obstacle{c.Path, "an edit by another writer was displaced"}
	}
	if now != c.Old || nowOdd != nil {
		return &obstacle{c.Path, differs(c.Old, now)}
	}
	return nil
}

// A turn orders recoveries that have fenced each other. Without it they would all try
// again at once, and fence each other again. It is a lock on the directory of all
// recoveries, which ends with its process.
type turn struct {
	g    *Gate
	dir  *os.File // nil: nobody was met yet
	mine bool
}

// wait waits for the turn, and for the process that works on a landing to end it. It
// does not wait for long, because that process may be stopped: no promise depends on
// the turn.
func (t *turn) wait(ctx context.Context, l *lockkeeper.Landing, limit time.Duration) (err error) {
	if t.dir == nil {
		if t.dir, err = t.g.disk.OpenDir(t.g.recovs, "."); err != nil {
			return err
		}
	}
	ctx, cancel := context.WithTimeoutCause(ctx, limit, errNotInTime)
	defer cancel()
	for wait := time.Millisecond; ; wait = min(2*wait, 50*time.Millisecond) {
		if !t.mine {
			if t.mine, err = lockStage(t.dir, unix.LOCK_EX); err != nil {
				return err
			}
		}
		busy, err := t.g.isBusy(l)
		if err != nil || t.mine && !busy {
			return err
		}
		select {
		case <-time.After(wait): // a lock on a file rings no bell
		case <-ctx.Done():
			if err := context.Cause(ctx); !errors.Is(err, errNotInTime) {
				return err
			}
			return nil
		}
	}
}

// end lets the next recovery have its turn.
func (t *turn) end() {
	if t.dir != nil {
		t.dir.Close() // nothing was written through it
	}
}

// errNotInTime says that another recovery was not done in time.
var errNotInTime = errors.New("another recovery is still at work")

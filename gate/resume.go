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
)

// takeOverTries bounds how often two recoveries of one landing take it from each
// other.
const takeOverTries = 5

// resume brings a decided landing to its end from what is on the disk.
func (g *Gate) resume(ctx context.Context, l *lockkeeper.Landing) (lockkeeper.LandingState, error) {
	if !g.isHere(l) {
		return l.State, &lockkeeper.RefusedError{Act: fmt.Sprintf("finishing landing %d", l.Seq), Reason: "its files are on " + siteOf(l),
			Next: "run `lockkeeper gate recover` there"}
	}
	removed, err := g.isRemoved(g.recovs)
	if err != nil {
		return l.State, err
	}
	if removed {
		fresh, err := g.anew()
		if err != nil {
			return l.State, err
		}
		state, err := fresh.resume(ctx, l)
		return state, errors.Join(err, fresh.closeDirs())
	}
	for try := range takeOverTries {
		state, err := g.resumeOnce(ctx, l)
		if !errors.Is(err, errFenced) {
			return state, err
		}
		now, err := g.Landing(ctx, l.Seq) // somebody else took it over; it may be done
		if err != nil || now.State != lockkeeper.Decided {
			return now.State, err
		}
		if err := g.standAside(ctx, l, 500*time.Millisecond<<try); err != nil {
			return l.State, err
		}
	}
	return l.State, &lockkeeper.RefusedError{Act: fmt.Sprintf("finishing landing %d", l.Seq), Reason: "several recoveries take it from each other",
		Next: "run `lockkeeper gate recover` once they are done"}
}

// standAside lets whoever took a landing over bring it to its end, lest two
// recoveries take it from each other for ever. It does not wait for long: the other
// one may be stopped.
func (g *Gate) standAside(ctx context.Context, l *lockkeeper.Landing, limit time.Duration) error {
	ctx, cancel := context.WithTimeoutCause(ctx, limit, errNotInTime)
	defer cancel()
	for wait := time.Millisecond; ; wait = min(2*wait, 50*time.Millisecond) {
		busy, err := g.isBusy(l)
		if err != nil || !busy {
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

// errNotInTime says that another recovery was not done in time.
var errNotInTime = errors.New("another recovery is still at work")

func (g *Gate) resumeOnce(ctx context.Context, l *lockkeeper.Landing) (lockkeeper.LandingState, error) {
	s, survived, err := g.takeOver(l)
	if err != nil {
		return l.State, err
	}
	p := g.pass(l.Clone(), s)
	// From here on nobody else can end it without fencing this recovery. It may have
	// ended just before.
	now, err := g.Landing(ctx, l.Seq)
	if err != nil {
		return l.State, errors.Join(err, s.dir.Close())
	}
	if now.State != lockkeeper.Decided {
		return now.State, p.orFenced(s.discard())
	}
	kept, err := g.isKept(l)
	if err != nil {
		return l.State, errors.Join(err, s.dir.Close())
	}
	if kept { // all was done, only the mark is missing
		if err := errors.Join(p.sync(), p.orFenced(s.discard())); err != nil {
			return l.State, err
		}
		return g.finished(ctx, l)
	}
	cause := p.inspect(survived)
	var met *obstacle
	if cause != nil && !errors.As(cause, &met) {
		return l.State, errors.Join(cause, s.dir.Close())
	}
	if cause == nil {
		cause = p.forward()
	}
	switch {
	case errors.Is(cause, errFenced):
		return l.State, errors.Join(cause, s.dir.Close())
	case cause != nil:
		if err := p.takenBack(ctx, cause); err != nil {
			return l.State, err
		}
		return lockkeeper.Undone, nil
	}
	if err := p.sync(); err != nil {
		return l.State, errors.Join(err, s.dir.Close())
	}
	if err := p.s.retire(p.l); err != nil {
		return l.State, p.orFenced(err)
	}
	return g.finished(ctx, l)
}

// finished marks a landing that its writer left.
func (g *Gate) finished(ctx context.Context, l *lockkeeper.Landing) (lockkeeper.LandingState, error) {
	if err := g.locks.Committed(ctx, l.GrantID, l.Seq); err != nil {
		return l.State, err
	}
	_, err := g.locks.Note(ctx, "", lockkeeper.Event{Kind: lockkeeper.EventFinished, Actor: g.opt.Actor, GrantID: l.GrantID, Holder: l.Holder,
		Reason: "its writer left it", Data: map[string]string{"landing": itoa(l.Seq)}})
	return lockkeeper.Committed, err
}

// isKept reports whether a landing's originals have been put away, which happens
// when all is done.
func (g *Gate) isKept(l *lockkeeper.Landing) (bool, error) {
	dir, err := g.openKept(l)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	return true, dir.Close()
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
// fences whoever worked on them. survived says whether there was any stage.
func (g *Gate) takeOver(l *lockkeeper.Landing) (s *stage, survived bool, err error) {
	from, err := g.sources(l)
	if err != nil {
		return nil, false, err
	}
	if s, err = g.makeStage(g.recovs, func() string { return l.Commit + "." + newCommit() }); err != nil {
		return nil, false, err
	}
	for _, f := range from {
		there, err := g.drain(f.in, f.name, s)
		if err != nil {
			return nil, false, errors.Join(err, s.dir.Close())
		}
		survived = survived || there
	}
	if l.Draft != "" {
		there, err := s.reclaimDraft(l.Draft)
		if err != nil {
			return nil, false, errors.Join(err, s.dir.Close())
		}
		survived = survived || there
	}
	if err := s.settle(); err != nil {
		return nil, false, errors.Join(err, s.dir.Close())
	}
	return s, survived, nil
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
	const tries = 10_000 // one more than a writer has renames
	for range lockkeeper.MaxTargets + tries {
		names, err := g.disk.List(dir)
		if errors.Is(err, fs.ErrNotExist) { // another recovery was quicker
			return true, nil
		}
		if err != nil {
			return true, err
		}
		for _, entry := range names {
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
	return true, fmt.Errorf("stage %s is filled again and again", name)
}

func (g *Gate) drainEntry(dir *os.File, entry string, into *stage) error {
	var err error
	switch {
	case entry == draftNote:
		err = g.disk.Remove(dir, entry)
	case strings.HasPrefix(entry, "d"): // an empty directory on its way
		err = g.disk.RemoveDir(dir, entry)
	default:
		err = g.disk.Move(dir, entry, into.dir, entry)
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil // its writer, or another recovery, was quicker
	}
	return err
}

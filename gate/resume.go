package gate

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"lockkeeper"
)

// takeOverTries bounds how often two recoveries of one landing take it from each
// other.
const takeOverTries = 5

// resume brings a decided landing to its end from what is on the disk.
func (g *Gate) resume(ctx context.Context, l *lockkeeper.Landing) (lockkeeper.LandingState, error) {
	if l.Site != g.opt.Site {
		return l.State, &lockkeeper.RefusedError{Act: fmt.Sprintf("finishing landing %d", l.Seq), Reason: "its files are on " + l.Site,
			Next: "run `lockkeeper gate recover` there"}
	}
	for range takeOverTries {
		state, err := g.resumeOnce(ctx, l)
		if !errors.Is(err, errFenced) {
			return state, err
		}
		now, err := g.Landing(ctx, l.Seq) // somebody else took it over; it may be done
		if err != nil || now.State != lockkeeper.Decided {
			return now.State, err
		}
	}
	return l.State, &lockkeeper.RefusedError{Act: fmt.Sprintf("finishing landing %d", l.Seq), Reason: "several recoveries take it from each other",
		Next: "run `lockkeeper gate recover` once they are done"}
}

func (g *Gate) resumeOnce(ctx context.Context, l *lockkeeper.Landing) (lockkeeper.LandingState, error) {
	p := &passage{g: g, l: l.Clone(), done: make([]bool, len(l.Changes))}
	kept, err := g.isKept(l)
	if err != nil {
		return l.State, err
	}
	if kept { // all was done, only the mark is missing
		if err := p.sync(); err != nil {
			return l.State, err
		}
		return g.finished(ctx, l)
	}
	s, survived, err := g.takeOver(l)
	if err != nil {
		return l.State, err
	}
	p.s = s
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
		if err := p.back(ctx); err != nil {
			return l.State, errors.Join(err, s.dir.Close())
		}
		if err := g.locks.TakenBack(ctx, l.Seq, cause.Error()); err != nil {
			return l.State, errors.Join(err, s.dir.Close())
		}
		return lockkeeper.Undone, p.s.discard()
	}
	if err := p.sync(); err != nil {
		return l.State, errors.Join(err, s.dir.Close())
	}
	if err := p.s.retire(p.l); err != nil {
		return l.State, err
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

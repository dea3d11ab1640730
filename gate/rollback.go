package gate

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"

	"lockkeeper"
	"lockkeeper/rescue"
)

// rollBack rolls back a landing that cannot be completed. It keeps the new content before
// the landing ends, so that recovery keeps it after a crash in between.
func (p *applier) rollBack(ctx context.Context, cause error) error {
	told := p.refusalOf(cause)
	keep := func(error) error {
		if p.keepWith == nil {
			return nil
		}
		kept := p.keepWith(ctx, told)
		if !errors.As(kept, new(*NotKeptError)) { // otherwise the caller tries again after the stage is removed
			told = kept
		}
		return nil
	}
	if err := p.rolledBack(ctx, cause, keep); err != nil {
		if errors.Is(err, errFenced) {
			return p.outcome(ctx)
		}
		p.pending = true
		return errors.Join(cause, lockkeeper.WithNext(fmt.Errorf("cannot roll back landing %d: %w", p.l.Seq, err), "lockkeeper gate recover"))
	}
	return told
}

// refusalOf returns the error for the caller of a landing that was rolled back.
func (p *applier) refusalOf(cause error) error {
	var denied *deniedError
	var conflict *conflictError
	switch {
	case errors.As(cause, &denied):
		return &lockkeeper.InputError{Field: "path", Value: denied.path, Reason: denied.reason,
			Next: "check whether it is immutable or append-only (lsattr), or in a sticky directory of another user (ls -ld)"}
	case errors.As(cause, &conflict):
		return &lockkeeper.LockViolationError{Check: checkBase, Path: conflict.path, GrantID: p.l.GrantID, Reason: conflict.reason,
			Next: mergeFirst}
	}
	return fmt.Errorf("landing %d was rolled back: %w", p.l.Seq, cause)
}

// rolledBack rolls back all changes, ends the landing and then removes the stage. If
// another process took over the landing, it needs the stage, and rolledBack returns
// errFenced.
func (p *applier) rolledBack(ctx context.Context, cause error, keep func(error) error) error {
	if err := p.rollBackAll(); err != nil {
		return err
	}
	if err := keep(cause); err != nil {
		return err
	}
	ended, err := p.g.endLanding(ctx, p.ending(), lockkeeper.Undone, cause.Error())
	if err != nil {
		return err
	}
	if !ended {
		return errFenced
	}
	p.l.State = lockkeeper.Undone
	return p.s.discard()
}

// rollBackAll rolls back every change that was made, the last one first.
func (p *applier) rollBackAll() error {
	for n, c := range slices.Backward(p.l.Changes) {
		if !p.done[n] || c.Old == c.New {
			continue
		}
		if err := p.rollBackOne(n, c); err != nil {
			return err
		}
		p.done[n] = false
	}
	made := slices.Clone(p.l.Made)
	slices.Reverse(made)
	if err := p.clearDirs(slices.Values(made)); err != nil {
		return err
	}
	return p.sync()
}

// rollBackOne rolls back one change in the directory in which it was made, even if that
// was moved. If another program has changed the file since, its version stays, and the
// original is kept on the rescue shelf.
func (p *applier) rollBackOne(n int, c lockkeeper.PathChange) error {
	const since = "the original of a landing that was rolled back; another writer has changed the path since"
	var conflict *conflictError
	dir, release, err := p.dirOf(c.Path)
	switch {
	case errors.As(err, new(*awayError)) && p.abandon && c.Old.Exists():
		return p.keep(n, c.Path, "the original of a landing that was rolled back; its directory was abandoned")
	case errors.As(err, new(*awayError)) && p.abandon:
		return nil
	case err != nil:
		return err
	}
	defer release()
	_, name := split(c.Path)
	back := lockkeeper.PathChange{Path: c.Path, Old: c.New, New: c.Old}
	err = p.swap(n, dir, name, back)
	switch {
	case errors.As(err, new(*deniedError)):
		return err // the landing's own content, which cannot be moved now
	case errors.As(err, &conflict) && c.Old.Exists():
		return p.keep(n, c.Path, since)
	case errors.As(err, &conflict):
		return nil // another writer removed or replaced the file
	case err != nil || !c.New.Exists():
		return err
	}
	displaced, err := p.g.observe(p.s.at(n))
	if err != nil && !errors.Is(err, errIrregular) {
		return err
	}
	if err == nil && displaced == c.New {
		return nil
	}
	if err := p.swapBack(n, dir, name, back); err != nil {
		return err
	}
	if c.Old.Exists() {
		return p.keep(n, c.Path, since)
	}
	return nil
}

// swapBack reverses a swap that was just made. If another program wrote to the new file
// in between, it keeps that version on the rescue shelf.
func (p *applier) swapBack(n int, dir *os.File, name string, c lockkeeper.PathChange) error {
	disk := p.g.disk
	own, staged := p.s.at(n)
	var err error
	switch {
	case !c.Old.Exists():
		err = disk.Move(dir, name, own, staged)
	case !c.New.Exists():
		err = disk.Move(own, staged, dir, name)
		if errors.Is(err, fs.ErrExist) {
			return p.keep(n, c.Path, "a landing that was rolled back had displaced it, and another writer created a new file")
		}
		return p.orFenced(err)
	default:
		err = disk.Exchange(own, staged, dir, name)
	}
	if err != nil {
		return p.orFenced(err)
	}
	now, err := p.g.observe(own, staged)
	if err != nil && !errors.Is(err, errIrregular) || err == nil && now == c.New {
		return err
	}
	return p.keep(n, c.Path, "written on top of a landing that was just being rolled back")
}

// keep puts entry n of a stage on the rescue shelf: another writer's edit or an original
// that cannot return to the tree.
func (p *applier) keep(n int, path, reason string) error {
	g := p.g
	e := rescue.Entry{Kind: rescue.Displaced, Path: path, GrantID: p.l.GrantID, Holder: p.l.Holder, Reason: reason}
	own, staged := p.s.at(n)
	st, err := g.disk.Lstat(own, staged)
	if err != nil {
		return p.orFenced(err)
	}
	e.Mode = st.Mode.Perm()
	if !st.Mode.IsRegular() {
		return p.keepWhole(n, e)
	}
	f, err := g.disk.OpenFile(own, staged)
	if err != nil {
		return p.orFenced(err)
	}
	defer f.Close()
	if e.Base, err = g.observePath(path); err != nil && !errors.Is(err, errIrregular) && !isElsewhere(err) {
		return err
	}
	return g.shelve(e, f)
}

// shelve puts content on the rescue shelf that exists nowhere else. Therefore it ignores
// limits and the caller's context.
func (g *Gate) shelve(e rescue.Entry, content io.Reader) error {
	_, err := g.shelf.PutUnlimited(context.Background(), e, content)
	return err
}

// keepWhole moves a directory or an irregular file into the kept directory, and puts a
// note on the shelf that says where it is.
func (p *applier) keepWhole(n int, e rescue.Entry) error {
	day, err := p.g.subdir(p.g.kept, keptDay(p.l))
	if err != nil {
		return err
	}
	e.Kind = rescue.Whole
	name := p.l.Commit + ".displaced." + newID()
	own, staged := p.s.at(n)
	if err := errors.Join(p.g.disk.Move(own, staged, day, name), p.g.disk.Close(day)); err != nil {
		return err
	}
	return p.g.shelve(e, strings.NewReader(keptNote+stateDir+"/"+keptDir+"/"+keptDay(p.l)+"/"+name+"\n"))
}

// keepNewContent keeps the new content of a landing that was rolled back if no caller has
// it: after a crash, or if it is a directory. All of it is in the stage again.
func (p *applier) keepNewContent(cause error) error {
	for n, c := range p.l.Changes {
		if c.Old == c.New || !c.New.Exists() {
			continue
		}
		own, staged := p.s.at(n)
		if now, err := p.g.observe(own, staged); err != nil || now != c.New {
			if err != nil && !errors.Is(err, errIrregular) {
				return err
			}
			continue // another program has changed the file since, and its version is kept
		}
		e := rescue.Entry{Kind: rescue.Gap, Path: c.Path, GrantID: p.l.GrantID, Holder: p.l.Holder, Base: c.Old, Mode: c.New.Mode,
			Reason: "landing " + itoa(p.l.Seq) + " was rolled back: " + cause.Error()}
		if c.New.Kind == lockkeeper.Dir {
			if err := p.keepWhole(n, e); err != nil {
				return err
			}
			continue
		}
		f, err := p.g.disk.OpenFile(own, staged)
		if err != nil {
			return p.orFenced(err)
		}
		if err := errors.Join(p.g.shelve(e, f), f.Close()); err != nil {
			return err
		}
	}
	return nil
}

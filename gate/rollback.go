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

// rollBack rolls back a landing that cannot be finished. Its new content is kept
// before the landing ends, so that a crash in between leaves it to recovery.
func (p *applier) rollBack(ctx context.Context, cause error) error {
	told := p.refusalOf(cause)
	keep := func(error) error {
		if p.keepWith == nil {
			return nil
		}
		kept := p.keepWith(ctx, told)
		if !errors.As(kept, new(*NotKeptError)) { // else the caller tries again, once the stage has made room
			told = kept
		}
		return nil
	}
	if err := p.rolledBack(ctx, cause, keep); err != nil {
		if errors.Is(err, errFenced) {
			return p.outcome(ctx)
		}
		p.pending = true
		return errors.Join(cause, fmt.Errorf("landing %d could not be rolled back: %w; next: lockkeeper gate recover", p.l.Seq, err))
	}
	return told
}

// refusalOf is why a landing was rolled back, as its caller is told.
func (p *applier) refusalOf(cause error) error {
	var not *denied
	var met *obstacle
	switch {
	case errors.As(cause, &not):
		return &lockkeeper.InputError{Field: "path", Value: not.path, Reason: not.reason,
			Next: "check whether it is immutable or append-only (lsattr), or in a sticky directory of another user (ls -ld)"}
	case errors.As(cause, &met):
		return &lockkeeper.LockViolationError{Check: checkBase, Path: met.path, GrantID: p.l.GrantID, Reason: met.reason,
			Next: "look at the change, and write again on top of it"}
	}
	return fmt.Errorf("landing %d was rolled back: %w", p.l.Seq, cause)
}

// rolledBack takes back what is done, and says so; only then is the stage of no use
// any more. Whoever took the landing over meanwhile does as the stage tells, which
// is left to them.
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

// rollBackOne rolls one change back, in the directory in which it was made, wherever that
// is now. If another program has changed the file since, its version stays, and what
// was there before is kept on the rescue shelf.
func (p *applier) rollBackOne(n int, c lockkeeper.Alteration) error {
	const since = "it was there before a landing that was taken back, and somebody else has changed the path since"
	var met *obstacle
	dir, release, err := p.dirOf(c.Path)
	switch {
	case errors.As(err, new(*awayError)) && p.giveUp && c.Old.Exists():
		return p.keep(n, c.Path, "it was there before a landing that was rolled back, and its directory was given up")
	case errors.As(err, new(*awayError)) && p.giveUp:
		return nil
	case err != nil:
		return err
	}
	defer release()
	_, name := split(c.Path)
	back := lockkeeper.Alteration{Path: c.Path, Old: c.New, New: c.Old}
	err = p.swap(n, dir, name, back)
	var not *denied
	switch {
	case errors.As(err, &not):
		return err // what is there is ours, and cannot be moved now
	case errors.As(err, &met) && c.Old.Exists():
		return p.keep(n, c.Path, since)
	case errors.As(err, &met):
		return nil // it is gone, or another one is there
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

// swapBack undoes a swap that has just been made. Whoever wrote to the new file in
// that moment finds it on the rescue shelf.
func (p *applier) swapBack(n int, dir *os.File, name string, c lockkeeper.Alteration) error {
	disk := p.g.disk
	own, staged := p.s.at(n)
	var err error
	switch {
	case !c.Old.Exists():
		err = disk.Move(dir, name, own, staged)
	case !c.New.Exists():
		err = disk.Move(own, staged, dir, name)
		if errors.Is(err, fs.ErrExist) {
			return p.keep(n, c.Path, "a landing that was taken back had moved it aside, and somebody else wrote a new one")
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
	return p.keep(n, c.Path, "it was written on top of a landing that was taken back in that moment")
}

// keep puts what entry n of a stage holds on the rescue shelf: an edit of somebody
// else, or an original, for which there is no place in the tree.
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

// shelve puts content on the rescue shelf, whatever the caller's context says: it
// has no other place any more. For the same reason no limit applies.
func (g *Gate) shelve(e rescue.Entry, content io.Reader) error {
	_, err := g.shelf.PutUnlimited(context.Background(), e, content)
	return err
}

// keepWhole moves a directory, or something odd, aside as it is, and leaves a note
// on the shelf that says where.
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
	return p.g.shelve(e, strings.NewReader("kept as it was in "+stateDir+"/kept/"+keptDay(p.l)+"/"+name+"\n"))
}

// shelveWanted keeps the new content of a landing that was rolled back and whose
// caller does not have it: a recovery has none, and a replaced directory was written
// in the tree. All of it is in the stage again.
func (p *applier) shelveWanted(cause error) error {
	for n, c := range p.l.Changes {
		if c.Old == c.New || !c.New.Exists() {
			continue
		}
		own, staged := p.s.at(n)
		if now, err := p.g.observe(own, staged); err != nil || now != c.New {
			if err != nil && !errors.Is(err, errIrregular) {
				return err
			}
			continue // somebody has written on top of it, and that is kept
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

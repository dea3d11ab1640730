package gate

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"

	"lockkeeper"
)

// takeBack rolls back a landing that cannot be finished. Its new content is kept
// before the landing ends, so that a crash in between leaves it to recovery.
func (p *passage) takeBack(ctx context.Context, cause error) error {
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
	if err := p.takenBack(ctx, cause, keep); err != nil {
		if errors.Is(err, errFenced) {
			return p.outcome(ctx)
		}
		p.pending = true
		return errors.Join(cause, fmt.Errorf("landing %d could not be rolled back: %w; next: lockkeeper gate recover", p.l.Seq, err))
	}
	return told
}

// refusalOf is why a landing was rolled back, as its caller is told.
func (p *passage) refusalOf(cause error) error {
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

// takenBack takes back what is done, and says so; only then is the stage of no use
// any more. Whoever took the landing over meanwhile does as the stage tells, which
// is left to them.
func (p *passage) takenBack(ctx context.Context, cause error, keep func(error) error) error {
	if err := p.back(); err != nil {
		return err
	}
	if err := keep(cause); err != nil {
		return err
	}
	ended, err := p.g.locks.EndLanding(ctx, p.ending(), lockkeeper.Undone, cause.Error())
	if err != nil {
		return err
	}
	if !ended {
		return errFenced
	}
	p.l.State = lockkeeper.Undone
	return p.s.discard()
}

// back takes back all that is done, last first.
func (p *passage) back() error {
	for n, c := range slices.Backward(p.l.Changes) {
		if !p.done[n] || c.Old == c.New {
			continue
		}
		if err := p.undo(n, c); err != nil {
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

// undo rolls one change back, in the directory in which it was made, wherever that
// is now. If another program has changed the file since, its version stays, and what
// was there before is kept on the rescue shelf.
func (p *passage) undo(n int, c lockkeeper.Alteration) error {
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
func (p *passage) swapBack(n int, dir *os.File, name string, c lockkeeper.Alteration) error {
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

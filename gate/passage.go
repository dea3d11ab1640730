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

// passage carries out a decided landing through its stage.
type passage struct {
	g    *Gate
	l    *lockkeeper.Landing
	s    *stage
	done []bool // which changes are in the tree
}

// errFenced says that somebody else has taken the stage over, and with it the
// landing.
var errFenced = errors.New("the landing was taken over")

// obstacle says that the tree does not hold what the landing took for granted.
type obstacle struct {
	path   string
	reason string
}

func (o *obstacle) Error() string { return o.path + ": " + o.reason }

// land brings a decided landing to its end. When it returns nil all changes are in
// the tree, on disk, and the stage is put away.
func (p *passage) land(ctx context.Context) error {
	err := p.forward()
	if err == nil {
		if err := p.sync(); err != nil {
			return p.indeterminate(err)
		}
		if err := p.s.retire(p.l); err != nil && !errors.Is(err, fs.ErrNotExist) { // not there: taken over, when all was done
			return p.indeterminate(err)
		}
		return nil
	}
	if errors.Is(err, errFenced) {
		return p.outcome(ctx)
	}
	return p.takeBack(ctx, err)
}

// indeterminate says that the changes are in place but may not survive a crash, or
// are not accounted for yet. Recovery looks again, through new descriptors.
func (p *passage) indeterminate(err error) error {
	return errors.Join(fmt.Errorf("landing %d is in place, but it is not certain that it survives a crash: %w; next: lockkeeper gate recover", p.l.Seq, err), p.s.dir.Close())
}

// outcome finds out what became of a landing that somebody else took over.
func (p *passage) outcome(ctx context.Context) error {
	closing := p.s.dir.Close()
	l, err := p.g.Landing(ctx, p.l.Seq)
	if err == nil {
		err = closing
	}
	switch {
	case err != nil:
		return err
	case l.State == lockkeeper.Committed:
		p.l.State = l.State
		return nil
	case l.State == lockkeeper.Undone:
		return &lockkeeper.LockViolationError{Check: checkBase, Path: p.l.Changes[0].Path, GrantID: p.l.GrantID,
			Reason: fmt.Sprintf("the grant was taken away meanwhile, and landing %d was taken back because of somebody else's edit", l.Seq),
			Next:   "acquire again, and look at the change first"}
	}
	return &lockkeeper.RefusedError{Act: "landing " + itoa(l.Seq), Reason: "the grant was taken away meanwhile, and somebody else is bringing the landing to its end",
		Next: "lockkeeper gate recover, to see what became of it"}
}

// takeBack undoes what is done of a landing that cannot be finished.
func (p *passage) takeBack(ctx context.Context, cause error) error {
	if err := p.back(ctx); err != nil {
		if errors.Is(err, errFenced) {
			return p.outcome(ctx)
		}
		return errors.Join(cause, fmt.Errorf("landing %d could not be taken back: %w; next: lockkeeper gate recover", p.l.Seq, err), p.s.dir.Close())
	}
	if err := p.g.locks.TakenBack(ctx, p.l.Seq, cause.Error()); err != nil {
		return errors.Join(cause, err, p.s.dir.Close())
	}
	p.l.State = lockkeeper.Undone
	if err := p.s.discard(); err != nil {
		return errors.Join(cause, err)
	}
	var met *obstacle
	if errors.As(cause, &met) {
		return &lockkeeper.LockViolationError{Check: checkBase, Path: met.path, GrantID: p.l.GrantID, Reason: met.reason,
			Next: "look at the change, and write again on top of it; what was to be written is kept: lockkeeper rescue list"}
	}
	return fmt.Errorf("landing %d was taken back: %w", p.l.Seq, cause)
}

// forward does what is not done yet.
func (p *passage) forward() error {
	for n, dir := range p.l.Made {
		if err := p.makeDir(n, dir); err != nil {
			return err
		}
	}
	for n, c := range p.l.Changes {
		if p.done[n] || c.Old == c.New {
			continue
		}
		if err := p.do(n); err != nil {
			return err
		}
	}
	for _, dir := range p.l.Clears {
		if err := p.clearDir(dir); err != nil {
			return err
		}
	}
	return nil
}

// makeDir makes a directory in the stage and moves it to its place, so that a
// writer without a stage makes none. One that is there already is as good.
func (p *passage) makeDir(n int, path string) error {
	disk := p.g.disk
	at, name, err := p.open(path)
	if err != nil {
		return err
	}
	defer at.Close()
	made := "d" + entry(n)
	if st, err := disk.Lstat(at, name); err == nil && st.Mode.IsDir() {
		return nil
	}
	if err := disk.Mkdir(p.s.dir, made, 0o777); err != nil {
		return p.orFenced(err)
	}
	err = disk.Move(p.s.dir, made, at, name)
	if errors.Is(err, fs.ErrExist) {
		if err := disk.RemoveDir(p.s.dir, made); err != nil {
			return p.orFenced(err)
		}
		st, err := disk.Lstat(at, name)
		if err != nil || !st.Mode.IsDir() {
			return &obstacle{path, "somebody else put a file where a directory is needed"}
		}
		return nil
	}
	return p.orFenced(err)
}

// orFenced tells a stage that is gone from other errors.
func (p *passage) orFenced(err error) error {
	if err == nil || !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	mine, errMine := p.s.dir.Stat()
	there, errThere := p.g.disk.OpenDir(p.s.in, p.s.name)
	if errMine != nil || errThere != nil {
		return errFenced
	}
	defer there.Close()
	if info, err := there.Stat(); err != nil || !os.SameFile(mine, info) {
		return errFenced
	}
	return err
}

// open opens the directory of a path in the tree.
func (p *passage) open(path string) (*os.File, string, error) {
	dir, name, err := p.g.openParent(path)
	if errors.Is(err, fs.ErrNotExist) || isElsewhere(err) {
		return nil, "", &obstacle{path, "its directory is gone, or is not one any more"}
	}
	return dir, name, err
}

// do makes one change, and takes it back at once when it displaced something else
// than it took for granted, or when its directory was moved away under it.
func (p *passage) do(n int) error {
	c := p.l.Changes[n]
	dir, name, err := p.open(c.Path)
	if err != nil {
		return err
	}
	defer dir.Close()
	if err := p.swap(n, dir, name, c); err != nil {
		return err
	}
	p.done[n] = true
	met := ""
	if c.Old.Exists() {
		displaced, err := p.g.observe(p.s.at(n))
		switch {
		case errors.Is(err, errIrregular):
			met = "somebody else put something there that is not a file"
		case err != nil:
			return err
		case displaced != c.Old:
			met = fmt.Sprintf("it was changed by somebody else: expected %s, found %s", brief(c.Old), brief(displaced))
		}
	}
	if met == "" {
		stands, err := p.g.standsAt(dir, c.Path)
		if err != nil {
			return err
		}
		if stands {
			return nil
		}
		met = "its directory was moved away, or replaced by a link"
	}
	if err := p.swapBack(n, dir, name, c); err != nil {
		return err
	}
	p.done[n] = false
	return &obstacle{c.Path, met}
}

// swap is the one rename that makes a change.
func (p *passage) swap(n int, dir *os.File, name string, c lockkeeper.Alteration) error {
	disk := p.g.disk
	own, staged := p.s.at(n)
	var err error
	switch {
	case !c.Old.Exists():
		err = disk.Move(own, staged, dir, name)
		if errors.Is(err, fs.ErrExist) {
			return &obstacle{c.Path, "somebody else made it meanwhile"}
		}
	case !c.New.Exists():
		err = disk.Move(dir, name, own, staged)
	default:
		err = disk.Exchange(own, staged, dir, name)
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if fenced := p.orFenced(err); errors.Is(fenced, errFenced) {
		return fenced
	}
	if c.New.Exists() {
		if _, err := disk.Lstat(own, staged); errors.Is(err, fs.ErrNotExist) {
			return errFenced // emptied, and about to be removed
		}
	}
	return &obstacle{c.Path, "somebody else removed it, or its directory"}
}

// swapBack undoes a swap that has just been made. Whoever wrote to the new file in
// that moment finds it on the rescue shelf.
func (p *passage) swapBack(n int, dir *os.File, name string, c lockkeeper.Alteration) error {
	disk := p.g.disk
	own, staged := p.s.at(n)
	switch {
	case !c.Old.Exists():
		return p.orFenced(disk.Move(dir, name, own, staged))
	case !c.New.Exists():
		err := disk.Move(own, staged, dir, name)
		if errors.Is(err, fs.ErrExist) {
			return p.keep(n, c.Path, "a landing that was taken back had moved it aside, and somebody else wrote a new one")
		}
		return p.orFenced(err)
	}
	if err := disk.Exchange(own, staged, dir, name); err != nil {
		return p.orFenced(err)
	}
	now, err := p.g.observe(own, staged)
	if err != nil || now == c.New {
		return err
	}
	return p.keep(n, c.Path, "it was written on top of a landing that was taken back in that moment")
}

// back takes back all that is done, last first.
func (p *passage) back(context.Context) error {
	for n, c := range slices.Backward(p.l.Changes) {
		if !p.done[n] || c.Old == c.New {
			continue
		}
		if err := p.undo(n, c); err != nil {
			return err
		}
		p.done[n] = false
	}
	for _, dir := range slices.Backward(p.l.Made) {
		if err := p.clearDir(dir); err != nil {
			return err
		}
	}
	return p.sync()
}

// undo takes one change back, unless somebody has changed the path since: then
// theirs stays, and what was there before is kept on the rescue shelf.
func (p *passage) undo(n int, c lockkeeper.Alteration) error {
	const since = "it was there before a landing that was taken back, and somebody else has changed the path since"
	dir, name, err := p.open(c.Path)
	var met *obstacle
	switch {
	case errors.As(err, &met) && c.Old.Exists():
		return p.keep(n, c.Path, since)
	case errors.As(err, &met):
		return nil
	case err != nil:
		return err
	}
	defer dir.Close()
	back := lockkeeper.Alteration{Path: c.Path, Old: c.New, New: c.Old}
	err = p.swap(n, dir, name, back)
	switch {
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

// clearDir removes a directory if it is empty.
func (p *passage) clearDir(path string) error {
	dir, name, err := p.g.openParent(path)
	if errors.Is(err, fs.ErrNotExist) || isElsewhere(err) {
		return nil
	}
	if err != nil {
		return err
	}
	defer dir.Close()
	err = p.g.disk.RemoveDir(dir, name)
	if isElsewhere(err) || isInUse(err) || errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// sync makes the names in every touched directory durable.
func (p *passage) sync() error {
	var dirs []string
	for _, c := range p.l.Changes {
		if c.Old != c.New {
			dir, _ := split(c.Path)
			dirs = append(dirs, dir)
		}
	}
	for _, made := range slices.Concat(p.l.Made, p.l.Clears) {
		dir, _ := split(made)
		dirs = append(dirs, dir)
	}
	dirs = unique(dirs)
	return together(len(dirs), func(i int) error {
		dir, err := p.g.disk.OpenDir(p.g.root, dirs[i])
		if errors.Is(err, fs.ErrNotExist) || isElsewhere(err) {
			return nil // cleared, or moved by somebody else
		}
		if err != nil {
			return err
		}
		return errors.Join(p.g.disk.Sync(dir), p.g.disk.Close(dir))
	})
}

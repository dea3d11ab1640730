package gate

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"os"
	"slices"
	"strconv"

	"lockkeeper"
	"lockkeeper/store"
)

// An applier carries out a decided landing through its stage, or rolls it back.
type applier struct {
	g    *Gate
	l    *lockkeeper.Landing
	s    *stage
	done []bool // which changes are in the tree
	bare []bool // which are besides in the tree, with nothing in the stage to put back

	held   map[string]*os.File // directories in which changes were made, by path
	used   map[string]dirID    // all of them
	giveUp bool                // a person gave up directories that are away

	keepWith func(context.Context, error) error // keeps new content before a rolled back landing ends
	pending  bool                               // recovery has to bring the landing to its end
}

func (g *Gate) newApplier(l *lockkeeper.Landing, s *stage) *applier {
	n := len(l.Changes)
	return &applier{g: g, l: l, s: s, done: make([]bool, n), bare: make([]bool, n), held: map[string]*os.File{}, used: map[string]dirID{}}
}

// ending is how whoever carries the landing out ends it.
func (p *applier) ending() store.Ending {
	return store.Ending{Seq: p.l.Seq, Taker: p.l.Taker}
}

// errFenced says that somebody else has taken the stage over, and with it the
// landing.
var errFenced = errors.New("the landing was taken over")

// obstacle says that the tree does not hold what the landing took for granted.
type obstacle struct {
	path   string
	reason string
}

// denied is an obstacle that the operating system puts in the way.
type denied struct{ obstacle }

// Unwrap makes denied an obstacle for errors.As.
func (d *denied) Unwrap() error { return &d.obstacle }

func deny(path string, err error) error {
	return &denied{obstacle{path, "the operating system does not permit to rename it: " + err.Error()}}
}

// movedAway is the reason of an obstacle that standsAt found.
const movedAway = "its directory was moved away, or replaced by a link"

func (o *obstacle) Error() string { return o.path + ": " + o.reason }

// apply carries out a decided landing. When it returns nil all changes are in the
// tree and on disk, and the stage is put away.
func (p *applier) apply(ctx context.Context) error {
	err := p.forward()
	if err == nil {
		if err := p.sync(); err != nil {
			return p.indeterminate(err)
		}
		err := p.s.retire(p.l)
		switch {
		case err != nil && !errors.Is(err, fs.ErrNotExist): // not there: taken over, when all was done
			return p.indeterminate(err)
		case err == nil && keepsOne(p.l):
			p.s.spare()
		}
		return nil
	}
	if errors.Is(err, errFenced) {
		return p.outcome(ctx)
	}
	return p.rollBack(ctx, err)
}

// indeterminate says that the changes are in place but may not survive a crash, or
// are not accounted for yet. Recovery looks again, through new descriptors.
func (p *applier) indeterminate(err error) error {
	p.pending = true
	return fmt.Errorf("landing %d is in place, but it is not certain that it survives a crash: %w; next: lockkeeper gate recover", p.l.Seq, err)
}

// outcome finds out what became of a landing that somebody else took over.
func (p *applier) outcome(ctx context.Context) error {
	l, err := p.g.Landing(ctx, p.l.Seq)
	switch {
	case err != nil:
		p.pending = true
		return err
	case l.State == lockkeeper.Committed:
		p.l.State = l.State
		return nil
	case l.State == lockkeeper.Undone:
		return &lockkeeper.LockViolationError{Check: checkBase, Path: p.l.Changes[0].Path, GrantID: p.l.GrantID,
			Reason: fmt.Sprintf("the grant was taken away meanwhile, and landing %d was rolled back because of another writer's edit", l.Seq),
			Next:   "acquire again, and look at the change first"}
	}
	p.pending = true
	return &lockkeeper.RefusedError{Act: "landing " + itoa(l.Seq), Reason: "the grant was taken away meanwhile, and another process is completing the landing",
		Next: "lockkeeper gate recover, to see what became of it"}
}

// forward does what is not done yet.
func (p *applier) forward() error {
	for n, dir := range p.l.Made {
		if err := p.makeDir(n, dir); err != nil {
			return err
		}
	}
	for n, c := range p.l.Changes {
		if p.done[n] || p.bare[n] || c.Old == c.New {
			continue
		}
		if err := p.do(n); err != nil {
			return err
		}
	}
	return p.clearDirs(slices.Values(p.l.Clears))
}

// clearDirs removes directories where they are empty, unless the landing is in
// somebody else's hands by now.
func (p *applier) clearDirs(dirs iter.Seq[string]) error {
	for dir := range dirs {
		if fenced, err := p.s.isGone(); err != nil || fenced {
			return cmp.Or(err, errFenced)
		}
		if err := p.clearDir(dir); err != nil {
			return err
		}
	}
	return nil
}

// makeDir makes a directory in the stage and moves it to its place, so that a
// writer without a stage makes none. One that is there already is as good.
func (p *applier) makeDir(n int, path string) error {
	disk := p.g.disk
	at, name, err := p.open(path)
	if err != nil {
		return err
	}
	at, release, err := p.hold(path, at)
	if err != nil {
		return err
	}
	defer release()
	made := p.s.entry(dirPrefix + strconv.Itoa(n))
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
			return &obstacle{path, "another writer put a file where a directory is needed"}
		}
		return nil
	}
	if err != nil {
		return p.orFenced(err)
	}
	stands, err := p.g.standsAt(at, path)
	if err != nil || stands {
		return err
	}
	if err := disk.RemoveDir(at, name); err != nil && !isInUse(err) && !isElsewhere(err) && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return &obstacle{path, movedAway}
}

// orFenced tells a stage that is gone from other errors.
func (p *applier) orFenced(err error) error {
	if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	fenced, lookErr := p.s.isGone()
	if fenced {
		return errFenced
	}
	return errors.Join(err, lookErr)
}

// open opens the directory of a path in the tree.
func (p *applier) open(path string) (*os.File, string, error) {
	dir, name, err := p.g.openParent(path)
	if errors.Is(err, fs.ErrNotExist) || isElsewhere(err) {
		return nil, "", &obstacle{path, "its directory is gone, or is not one any more"}
	}
	return dir, name, err
}

// do makes one change, and takes it back at once when it displaced something else
// than it took for granted, or when its directory was moved away under it.
func (p *applier) do(n int) error {
	c := p.l.Changes[n]
	dir, name, err := p.open(c.Path)
	if err != nil {
		return err
	}
	dir, release, err := p.hold(c.Path, dir)
	if err != nil {
		return err
	}
	defer release()
	if err := p.swap(n, dir, name, c); err != nil {
		return err
	}
	p.done[n] = true
	met := ""
	if c.Old.Exists() {
		displaced, err := p.g.observe(p.s.at(n))
		switch {
		case errors.Is(err, errIrregular):
			met = "another writer put something there that is not a file"
		case err != nil:
			return err
		case displaced != c.Old:
			met = differs(c.Old, displaced)
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
		met = movedAway
	}
	if err := p.swapBack(n, dir, name, c); err != nil {
		return err
	}
	p.done[n] = false
	return &obstacle{c.Path, met}
}

// swap is the one rename that makes a change.
func (p *applier) swap(n int, dir *os.File, name string, c lockkeeper.Alteration) error {
	disk := p.g.disk
	own, staged := p.s.at(n)
	var err error
	switch {
	case !c.Old.Exists():
		err = disk.Move(own, staged, dir, name)
		if errors.Is(err, fs.ErrExist) {
			return &obstacle{c.Path, "another writer created it meanwhile"}
		}
	case !c.New.Exists():
		err = disk.Move(dir, name, own, staged)
	default:
		err = disk.Exchange(own, staged, dir, name)
	}
	if errors.Is(err, fs.ErrPermission) {
		return deny(c.Path, err)
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
	return &obstacle{c.Path, "another writer removed it, or its directory"}
}

// clearDir removes a directory if it is empty, also if the one above it was moved
// since the landing made it there.
func (p *applier) clearDir(path string) error {
	parent, name := split(path)
	dir := p.held[parent]
	if dir == nil {
		var err error
		dir, err = p.g.disk.OpenDir(p.g.root, parent)
		if errors.Is(err, fs.ErrNotExist) || isElsewhere(err) {
			return nil
		}
		if err != nil {
			return err
		}
		defer dir.Close()
	}
	err := p.g.disk.RemoveDir(dir, name)
	if isElsewhere(err) || isInUse(err) || errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// sync makes the names in every touched directory durable.
func (p *applier) sync() error {
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
		if dir := p.held[dirs[i]]; dir != nil {
			// A new descriptor: a failed sync is never tried again on the same one.
			again, err := p.g.disk.OpenDir(dir, ".")
			if errors.Is(err, fs.ErrNotExist) {
				return nil // removed
			}
			if err != nil {
				return err
			}
			return errors.Join(p.g.disk.Sync(again), p.g.disk.Close(again))
		}
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

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

// An applier makes the changes of a decided landing through its stage, or rolls them back.
type applier struct {
	g          *Gate
	l          *lockkeeper.Landing
	s          *stage
	done       []bool // whether each change is in the tree
	noOriginal []bool // whether a change is in the tree without its original in the stage; rolling back skips it

	held    map[string]*os.File // directories in which changes were made, by path
	used    map[string]dirID    // every directory in which changes were made, by path
	abandon bool                // whether a person gave up the directories that were moved out of the tree

	keepWith func(context.Context, error) error // keeps new content before a rolled back landing ends
	pending  bool                               // recovery must complete the landing or roll it back
}

func (g *Gate) newApplier(l *lockkeeper.Landing, s *stage) *applier {
	n := len(l.Changes)
	return &applier{g: g, l: l, s: s, done: make([]bool, n), noOriginal: make([]bool, n), held: map[string]*os.File{}, used: map[string]dirID{}}
}

// ending identifies the landing, and this process as its taker, which alone may end the landing.
func (p *applier) ending() store.TakenLanding {
	return store.TakenLanding{Seq: p.l.Seq, Taker: p.l.Taker}
}

// errFenced says that another process has taken over the stage, and with it the landing.
var errFenced = errors.New("the landing was taken over")

// A conflictError says that the tree is not as the landing expects it.
type conflictError struct {
	path   string
	reason string
}

// A deniedError says that the operating system does not permit a rename.
type deniedError struct{ conflictError }

// Unwrap makes a deniedError a conflictError for errors.As.
func (d *deniedError) Unwrap() error { return &d.conflictError }

// movedAway is the reason if isParentOf returns false.
const movedAway = "its directory was moved or replaced by a link"

func (e *conflictError) Error() string { return e.path + ": " + e.reason }

// apply makes the changes of a decided landing. If it returns nil, all of them are in the
// tree and on disk, and the originals are kept.
func (p *applier) apply(ctx context.Context) error {
	err := p.forward()
	if err == nil {
		if err := p.sync(); err != nil {
			return p.indeterminate(err)
		}
		err := p.s.keepOriginals(p.l)
		switch {
		case err != nil && !errors.Is(err, fs.ErrNotExist): // a stage is missing if it was taken over after all changes were made
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

// indeterminate reports that the changes are in the tree but may not survive a crash, or
// that their originals are not kept yet. Recovery tries again, with new descriptors.
func (p *applier) indeterminate(err error) error {
	p.pending = true
	return lockkeeper.WithNext(fmt.Errorf("landing %d is in the tree but may not survive a crash: %w", p.l.Seq, err), "lockkeeper gate recover")
}

// outcome returns the result of a landing that another process took over.
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
			Reason: fmt.Sprintf("the grant was lost, and landing %d was rolled back because of another writer's edit", l.Seq),
			Next:   "acquire the lock again, and read the current content first"}
	}
	p.pending = true
	return &lockkeeper.RefusedError{Act: "landing " + itoa(l.Seq), Reason: "the grant was lost, and another process is completing the landing",
		Next: "lockkeeper gate recover"}
}

// forward makes the changes that are not yet made.
func (p *applier) forward() error {
	for n, dir := range p.l.Made {
		if err := p.makeDir(n, dir); err != nil {
			return err
		}
	}
	for n, c := range p.l.Changes {
		if p.done[n] || p.noOriginal[n] || c.Old == c.New {
			continue
		}
		if err := p.do(n); err != nil {
			return err
		}
	}
	return p.clearDirs(slices.Values(p.l.Clears))
}

// clearDirs removes those of the directories that are empty, unless another process has taken over the
// landing.
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

// makeDir makes a directory in the stage and moves it into the tree, so that a fenced
// writer makes none. It accepts a directory that already exists.
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
			return &conflictError{path, "another writer created a file where a directory is needed"}
		}
		return nil
	}
	if err != nil {
		return p.orFenced(err)
	}
	inPlace, err := p.g.isParentOf(at, path)
	if err != nil || inPlace {
		return err
	}
	if err := disk.RemoveDir(at, name); err != nil && !isInUse(err) && !isElsewhere(err) && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return &conflictError{path, movedAway}
}

// orFenced returns errFenced if err occurred because the stage is gone, and otherwise err.
func (p *applier) orFenced(err error) error {
	if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	fenced, goneErr := p.s.isGone()
	if fenced {
		return errFenced
	}
	return errors.Join(err, goneErr)
}

// open opens the directory of a path in the tree.
func (p *applier) open(path string) (*os.File, string, error) {
	dir, name, err := p.g.openParent(path)
	if errors.Is(err, fs.ErrNotExist) || isElsewhere(err) {
		return nil, "", &conflictError{path, "its directory was removed or replaced"}
	}
	return dir, name, err
}

// do makes one change. It reverses the change at once if the displaced version is not the
// expected one, or if the directory was moved meanwhile.
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
	conflict := ""
	if c.Old.Exists() {
		displaced, err := p.g.observe(p.s.at(n))
		switch {
		case errors.Is(err, errIrregular):
			conflict = "another writer replaced it by something that is not a file"
		case err != nil:
			return err
		case displaced != c.Old:
			conflict = differs(c.Old, displaced)
		}
	}
	if conflict == "" {
		inPlace, err := p.g.isParentOf(dir, c.Path)
		if err != nil || inPlace {
			return err
		}
		conflict = movedAway
	}
	if err := p.swapBack(n, dir, name, c); err != nil {
		return err
	}
	p.done[n] = false
	return &conflictError{c.Path, conflict}
}

// swap makes a change with one rename.
func (p *applier) swap(n int, dir *os.File, name string, c lockkeeper.PathChange) error {
	disk := p.g.disk
	own, staged := p.s.at(n)
	var err error
	switch {
	case !c.Old.Exists():
		err = disk.Move(own, staged, dir, name)
		if errors.Is(err, fs.ErrExist) {
			return &conflictError{c.Path, "another writer created it"}
		}
	case !c.New.Exists():
		err = disk.Move(dir, name, own, staged)
	default:
		err = disk.Exchange(own, staged, dir, name)
	}
	if errors.Is(err, fs.ErrPermission) {
		return &deniedError{conflictError{c.Path, "the operating system does not permit renaming it: " + err.Error()}}
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if fenced := p.orFenced(err); errors.Is(fenced, errFenced) {
		return fenced
	}
	if c.New.Exists() {
		if _, err := disk.Lstat(own, staged); errors.Is(err, fs.ErrNotExist) {
			return errFenced // another process has emptied the stage and will remove it
		}
	}
	return &conflictError{c.Path, "another writer removed it, or its directory"}
}

// clearDir removes a directory if it is empty, even if its parent was moved since the
// landing made it there.
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
	return inParallel(len(dirs), func(i int) error {
		at, path, held := p.g.root, dirs[i], p.held[dirs[i]]
		if held != nil {
			at, path = held, "." // a failed sync is never tried again on the same descriptor
		}
		dir, err := p.g.disk.OpenDir(at, path)
		if errors.Is(err, fs.ErrNotExist) || held == nil && isElsewhere(err) {
			return nil // the directory was removed, or moved by another program
		}
		if err != nil {
			return err
		}
		return errors.Join(p.g.disk.Sync(dir), p.g.disk.Close(dir))
	})
}

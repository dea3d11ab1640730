package documents

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"slices"

	"golang.org/x/sys/unix"

	"lockkeeper/durable"
)

// Move moves all folders of units and batches from where an earlier version stored them. Only the
// conductor of a run calls it.
func (s *Store) Move(ctx context.Context) error {
	units, _, err := s.Units(ctx)
	if err != nil {
		return err
	}
	for _, unit := range units { // the order moves blog/posts before blog/posts/archive
		u := s.Unit(unit)
		if err := u.Move(ctx); err != nil {
			return err
		}
		batches, err := os.ReadDir(u.own(batchesDir).Dir())
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		for _, e := range batches {
			if id, ok := ParseKeyName(e.Name()); ok {
				if err := u.Batch(id).Move(ctx); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// Move moves a folder from where an earlier version stored it. A crash leaves it in one of the two
// places, and it is read in both. If there are documents of another unit below the new name
// already, the folder stays where it is.
func (f *Folder) Move(ctx context.Context) (err error) {
	p, err := f.open(ctx)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	is, end := p.folder, place{store: f.store}
	if err := p.close(); err != nil {
		return err
	}
	for _, s := range f.steps {
		end = end.below(s.names...)
	}
	if slices.Equal(is.parts, end.parts) {
		return nil
	}
	lock, err := f.store.lock(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.store.unlock(lock)) }()
	at := place{store: f.store}
	for _, s := range f.steps {
		if at.isFormer(s) {
			if moved, err := at.move(s); err != nil || !moved {
				return err
			}
		}
		at = at.below(s.names...)
	}
	return nil
}

// move renames the former folder of a step. It reports false if the new name is in use.
func (p place) move(s step) (moved bool, err error) {
	last := len(s.names) - 1
	for _, above := range []place{p.below(s.former[:len(s.former)-1]...), p.below(s.names[:last]...)} {
		l, err := above.enter(true) // follows no link
		if err != nil {
			return false, err
		}
		if err := l.close(); err != nil {
			return false, err
		}
	}
	root, err := os.OpenRoot(p.store.dir)
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, root.Close()) }()
	err = root.Rename(p.below(s.former...).rel(""), p.below(s.names...).rel(""))
	if errors.Is(err, unix.ENOTEMPTY) || errors.Is(err, unix.EEXIST) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	err = errors.Join(durable.OS{}.SyncDir(p.below(s.names[:last]...).dir()), durable.OS{}.SyncDir(p.below(s.former[:len(s.former)-1]...).dir()))
	for n := len(s.former) - 1; n > 0 && err == nil; n-- {
		if root.Remove(p.below(s.former[:n]...).rel("")) != nil {
			break // the folder of another unit is in it
		}
	}
	return true, err
}

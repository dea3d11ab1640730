package workspace

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strconv"

	"lockkeeper"

	"golang.org/x/sys/unix"
)

// Close removes a workspace, or only unlocks it if keep is set. Abandoned then lists it. If
// something cannot be removed, because it is mounted or a process still writes there, the
// error names it, and Abandoned lists the rest.
func (w *Workspace) Close(ctx context.Context, keep bool) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.home < 0 {
		return nil
	}
	w.leaveView()
	defer w.forget()
	if keep {
		return nil
	}
	if err := openFully(w.home); err != nil { // the agent may have removed rights
		return pathError("chmod", w.dir, err)
	}
	r := &removal{ctx: ctx, dir: w.dir, top: w.home}
	if err := r.run(); err != nil {
		return fmt.Errorf("remove workspace %s: %w", w.dir, err)
	}
	if w.layered != nil && w.layered.leave != nil {
		w.layered.leave()
	}
	return nil
}

// Remove removes a directory with its content, as Close does. It handles directories that are
// deeper than the longest path, or that the owner may not enter.
func Remove(ctx context.Context, dir string) error {
	open := func() (int, error) { return openAt(unix.AT_FDCWD, dir, unix.O_RDONLY|unix.O_DIRECTORY, 0) }
	top, err := open()
	if errors.Is(err, unix.EACCES) {
		if err = chmodAt(unix.AT_FDCWD, dir, 0o700); err == nil {
			top, err = open()
		}
	}
	switch {
	case isGone(err):
		return nil
	case err != nil:
		return pathError("open", dir, err)
	}
	defer closeFD(top)
	if err := openFully(top); err != nil {
		return pathError("chmod", dir, err)
	}
	return (&removal{ctx: ctx, dir: dir, top: top}).run()
}

// A removal empties a directory. It moves nested directories to the top first, so that depth
// does not matter and every mount point is found by name.
type removal struct {
	ctx   context.Context
	dir   string
	top   int
	moved int
	left  []error
}

// removalTries bounds how often a directory is emptied while a process writes into it.
const removalTries = 8

// maxLeft bounds how many errors are reported.
const maxLeft = 8

func (r *removal) run() error {
	for range removalTries {
		r.left = nil
		if err := r.empty(r.top, r.dropFolder); err != nil {
			return err
		}
		if len(r.left) > 0 {
			return errors.Join(r.left[:min(len(r.left), maxLeft)]...)
		}
		err := untilDone(func() error { return unix.Rmdir(r.dir) })
		if !isInUse(err) {
			if isGone(err) {
				return nil // another process removed or moved the directory
			}
			return pathError("remove", r.dir, err)
		}
	}
	return lockkeeper.WithNext(pathError("remove", r.dir, errors.New("a process still writes into it")), "end that process, then try again")
}

// empty removes all names in a directory, and calls a function for directories. It repeats
// this while directories appear, and a few times more if a process still writes there.
func (r *removal) empty(dir int, folder func(dir int, name string) error) error {
	for tries := 0; tries < removalTries; {
		found, moved := 0, r.moved
		err := eachName(dir, func(names []string) error {
			found += len(names)
			for _, name := range names {
				if r.ctx.Err() != nil {
					return context.Cause(r.ctx)
				}
				err := untilDone(func() error { return unix.Unlinkat(dir, name, 0) })
				if errors.Is(err, unix.EISDIR) || errors.Is(err, unix.EPERM) {
					if seen, failed := statAt(dir, name); failed == nil && seen.mode.IsDir() {
						err = folder(dir, name)
					}
				}
				if err != nil && !isGone(err) && !isInUse(err) {
					r.left = append(r.left, r.explain(name, err))
				}
			}
			return nil
		})
		switch {
		case isGone(err): // the directory itself is gone
			return nil
		case err != nil || found == 0 || len(r.left) > 0:
			return err
		}
		if r.moved == moved {
			tries++
		}
	}
	return nil
}

// dropFolder removes a directory that is in the top one.
func (r *removal) dropFolder(top int, name string) error {
	if err := inside(top, name, func(dir int) error { return r.empty(dir, r.moveUp) }); err != nil {
		return err
	}
	return unix.Unlinkat(top, name, unix.AT_REMOVEDIR)
}

// moveUp removes a directory if it is empty. A directory with content is moved into the top
// directory.
func (r *removal) moveUp(dir int, name string) error {
	err := unix.Unlinkat(dir, name, unix.AT_REMOVEDIR)
	if !isInUse(err) {
		return err
	}
	for {
		r.moved++
		as := "removed-" + strconv.Itoa(r.moved)
		if _, err := statAt(r.top, as); err == nil {
			continue
		}
		return moveAway(dir, name, r.top, as)
	}
}

func (r *removal) explain(name string, err error) error {
	if errors.Is(err, unix.EBUSY) || errors.Is(err, unix.EXDEV) {
		return lockkeeper.WithNext(fmt.Errorf("%q is a mount point", name), "unmount it, then close the workspace again")
	}
	return pathError("remove", filepath.Join(r.dir, name), err)
}

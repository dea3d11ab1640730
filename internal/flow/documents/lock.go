package documents

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"lockkeeper"
	"lockkeeper/internal/machine/filelock"
)

// change runs the function do in the folder under the exclusive lock of the directory of documents.
// If making is set, it creates the folder. Otherwise it returns fs.ErrNotExist for a missing
// folder.
func (f *Folder) change(ctx context.Context, making bool, do func(*location) error) (err error) {
	if f.err != nil {
		return f.err
	}
	if !making { // reading must create nothing
		p, err := f.open(ctx)
		if err != nil {
			return err
		}
		if err := p.close(); err != nil {
			return err
		}
	}
	lock, err := f.store.lock(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.store.unlock(lock)) }()
	p, err := f.place().enter(making)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.close()) }()
	return do(p)
}

// lock waits for the exclusive lock of the directory of documents, across goroutines and processes.
// The kernel releases it when the process dies.
func (s *Store) lock(ctx context.Context) (*os.File, error) {
	since := time.Now()
	waited := func() error {
		return lockkeeper.WithNext(fmt.Errorf("waited %s for the lock %s of another process or goroutine: %w",
			time.Since(since).Round(time.Millisecond), filepath.Join(s.dir, lockFile), context.Cause(ctx)), "find the process that has the file open")
	}
	if err := context.Cause(ctx); err != nil {
		return nil, err
	}
	select {
	case s.turn <- struct{}{}:
	case <-ctx.Done():
		return nil, waited()
	}
	for {
		f, err := s.openLock()
		if err != nil {
			<-s.turn
			return nil, err
		}
		// A canceled caller releases the turn only when its wait in the kernel is over, so that
		// a Store has at most one such wait.
		taken, err := filelock.Await(ctx, f, func() { s.unlock(f) })
		switch {
		case err != nil:
			return nil, errors.Join(lockkeeper.WithNext(fmt.Errorf("lock %s: %w", f.Name(), err), "name a directory on a local disk"), s.unlock(f))
		case !taken:
			return nil, waited()
		}
		now, err := os.Lstat(f.Name())
		if err == nil {
			var mine fs.FileInfo
			if mine, err = f.Stat(); err == nil && os.SameFile(mine, now) {
				return f, nil
			}
		}
		// The file or the directory was removed during the wait.
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, errors.Join(err, s.unlock(f))
		}
		if err := f.Close(); err != nil {
			<-s.turn
			return nil, err
		}
	}
}

func (s *Store) unlock(f *os.File) error {
	err := errors.Join(filelock.Unlock(f), f.Close())
	<-s.turn
	return err
}

// openLock opens the lock file, which is never removed and stays empty.
func (s *Store) openLock() (*os.File, error) {
	if err := s.makeOwn(); err != nil {
		return nil, err
	}
	if err := s.ignoreLock(); err != nil {
		return nil, err
	}
	f, err := os.OpenFile(filepath.Join(s.dir, lockFile), os.O_RDONLY|os.O_CREATE|unix.O_NOFOLLOW|unix.O_NONBLOCK, filePerm)
	if errors.Is(err, unix.ELOOP) {
		err = &MalformedError{Path: lockFile, Reason: linkReason, Next: "remove it"}
	}
	return f, err
}

// ignoreLock keeps the lock file out of commits of the documents. A file of the user stays as it is.
func (s *Store) ignoreLock() error {
	f, err := os.OpenFile(filepath.Join(s.dir, ignoreFile), os.O_WRONLY|os.O_CREATE|os.O_EXCL, filePerm)
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	if err != nil {
		return err
	}
	_, err = f.WriteString("/" + lockFile + "\n")
	return errors.Join(err, f.Close())
}

package snapshot

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"
)

// errMoves reports that a file was written while it was copied.
var errMoves = errors.New("it is being written")

// keep copies a file, unless the store has a copy of this state. fresh is true if it made a
// copy.
func (s *Store) keep(ctx context.Context, id string, w wanted) (f File, fresh bool, err error) {
	now, err := clock()
	if err != nil {
		return File{}, false, err
	}
	f = File{Path: w.Path, State: w.State, Mode: w.mode, Copy: w.name()}
	if w.Ctime < now {
		if info, err := os.Lstat(s.copyAt(f.Copy)); err == nil && info.Size() == w.Size {
			return f, false, nil
		}
	}
	draft := s.copyAt("draft-" + id)
	f.State, err = s.copy(ctx, w.Path, draft)
	if errors.Is(err, errMoves) {
		f.State, err = s.copy(ctx, w.Path, draft)
	}
	if err != nil && !errors.Is(err, errMoves) {
		return File{}, false, errors.Join(err, removed(draft))
	}
	f.Copy = f.State.name()
	if err != nil || f.State.Ctime >= now { // later content may have the same state
		f.Copy += "-" + id
	}
	return f, true, os.Rename(draft, s.copyAt(f.Copy))
}

func removed(file string) error {
	if err := os.Remove(file); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// copy copies a file to a draft and returns the state that the file had at the start.
func (s *Store) copy(ctx context.Context, path, draft string) (_ State, err error) {
	from, err := os.OpenFile(s.at(path), os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return State{}, err
	}
	defer from.Close()
	to, err := os.OpenFile(draft, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return State{}, err
	}
	defer func() { err = errors.Join(err, to.Close()) }()
	before, err := stateOf(from)
	if err != nil {
		return State{}, err
	}
	if unix.IoctlFileClone(int(to.Fd()), int(from.Fd())) != nil { // most file systems cannot clone
		if err := transfer(ctx, to, from, before.Size); err != nil {
			return State{}, err
		}
	}
	after, err := stateOf(from)
	if err == nil && after != before {
		err = errMoves
	}
	return before, err
}

// transfer copies at most size bytes, and stops when ctx ends.
func transfer(ctx context.Context, to io.Writer, from io.Reader, size int64) error {
	const piece = 4 << 20
	for from := io.LimitReader(from, size); ; {
		n, err := io.CopyN(to, from, piece)
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		case n == piece:
			if err := ctx.Err(); err != nil {
				return err
			}
		}
	}
}

// grew reports whether a file still begins with the content of its copy, so that nothing is
// lost.
func grew(file, copied string) (bool, error) {
	was, err := os.ReadFile(copied)
	if err != nil {
		return false, err
	}
	f, err := os.OpenFile(file, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return false, nil // a file that cannot be read counts as changed
	}
	defer f.Close()
	begin := make([]byte, len(was))
	_, err = io.ReadFull(f, begin)
	return err == nil && bytes.Equal(begin, was), nil
}

package snapshot

import (
	"context"
	"crypto/sha256"
	"errors"
	"io"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"

	"lockkeeper"
)

// A Change is a file that lost content since its snapshot was taken.
type Change struct {
	File
	Gone bool  // the path has no regular file now
	Now  State // zero if the file is gone
}

// Changed lists the files of a snapshot that were removed or overwritten. It leaves out
// files to which content was only appended.
func (s *Store) Changed(ctx context.Context, snap *Snapshot) (list []Change, err error) {
	for _, f := range snap.Files {
		if err := ctx.Err(); err != nil {
			return list, err
		}
		is, there, err := stat(s.at(f.Path))
		switch {
		case err != nil && !errors.Is(err, fs.ErrPermission):
			return list, err
		case there && is.State == f.State && f.shared():
			continue
		case there && is.Size >= f.State.Size:
			same, err := grew(s.at(f.Path), s.copyAt(f.Copy))
			if err != nil {
				return list, err
			}
			if same {
				continue
			}
		}
		c := Change{File: f, Gone: !there}
		if there {
			c.Now = is.State
		}
		list = append(list, c)
	}
	return list, nil
}

// Present returns the current version of the file at the path of a change.
func (s *Store) Present(c Change) (v lockkeeper.Version, err error) {
	if c.Gone {
		return v, nil
	}
	f, err := os.OpenFile(s.at(c.Path), os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return v, nil
	}
	if err != nil {
		return v, err
	}
	defer f.Close()
	sum := sha256.New()
	if _, err := io.Copy(sum, f); err != nil {
		return v, err
	}
	info, err := f.Stat()
	if err == nil {
		v = lockkeeper.Version{Kind: lockkeeper.File, Mode: info.Mode().Perm(), Sum: [32]byte(sum.Sum(nil))}
	}
	return v, err
}

// Moved looks for removed files at other paths of the tree, and returns the new path of each by
// its old one. A moved file keeps its inode, size and mtime.
func (s *Store) Moved(gone []Change, paths []string) map[string]string {
	type file struct {
		dev, inode  uint64
		size, mtime int64
	}
	was := map[file]string{}
	for _, c := range gone {
		was[file{c.State.Dev, c.State.Inode, c.State.Size, c.State.Mtime}] = c.Path
	}
	to := map[string]string{}
	for _, p := range paths {
		if is, there, err := stat(s.at(p)); err == nil && there {
			if from, moved := was[file{is.Dev, is.Inode, is.Size, is.Mtime}]; moved && from != p {
				to[from] = p
			}
		}
	}
	return to
}

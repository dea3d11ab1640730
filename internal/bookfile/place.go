package bookfile

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"lockkeeper"
)

// enter makes the directory, opens it and takes the guard. The way there is walked from
// the root, which no link leads out of: what is written here would otherwise be written
// wherever whoever made the link likes.
func (f *File) enter(ctx context.Context) (dir *os.File, leave func() error, err error) {
	if dir, err = f.openDir(); err != nil {
		return nil, nil, f.unreachable(err)
	}
	unguard, err := f.guard(ctx, dir)
	if err != nil {
		return nil, nil, errors.Join(err, dir.Close())
	}
	return dir, func() error { return errors.Join(unguard(), dir.Close()) }, nil
}

func (f *File) openDir() (dir *os.File, err error) {
	root, err := os.OpenRoot(f.root)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, root.Close()) }()
	at := filepath.Dir(f.name)
	if err := root.MkdirAll(at, dirPerm); err != nil {
		return nil, err
	}
	return root.OpenFile(at, os.O_RDONLY|unix.O_DIRECTORY|unix.O_NONBLOCK, 0)
}

// trouble says what is wrong with the file.
func (f *File) trouble(reason string, err error) error {
	return &lockkeeper.StoreError{Store: f.Path(), Reason: reason, Err: err,
		Next: "make it a file of locks that you may read and write, or move it away; what Lockkeeper holds is in its own store"}
}

// unreachable says why the file's directory cannot be used: of a link, where it leads.
func (f *File) unreachable(err error) error {
	reason, at := "its directory cannot be used", f.root
	for name := range strings.SplitSeq(filepath.Dir(f.name), string(filepath.Separator)) {
		at = filepath.Join(at, name)
		if what := otherThan(fs.ModeDir, at); what != "" {
			reason += ", for " + at + " is " + what
			break
		}
	}
	return &lockkeeper.StoreError{Store: f.Path(), Reason: reason, Err: err,
		Next: "make it a directory inside the root that you may read and write, or give another locks_file; what Lockkeeper holds is in its own store"}
}

// otherThan says what is at a path, if it is something else than it should be.
func otherThan(want fs.FileMode, path string) string {
	info, err := os.Lstat(path)
	if err != nil || info.Mode().Type() == want {
		return ""
	}
	switch info.Mode().Type() {
	case 0:
		return "a file"
	case fs.ModeDir:
		return "a directory"
	case fs.ModeNamedPipe:
		return "a pipe"
	case fs.ModeSocket:
		return "a socket"
	case fs.ModeSymlink:
		to, err := os.Readlink(path)
		if err != nil {
			to = "what cannot be told: " + err.Error()
		}
		return fmt.Sprintf("a link to %s", to)
	}
	return "a device"
}

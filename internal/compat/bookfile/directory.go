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

// open creates and opens the directory and acquires the guard. It does not follow a link
// out of the root, because the link's creator could choose where to write.
func (f *File) open(ctx context.Context) (dir *os.File, leave func() error, err error) {
	if dir, err = f.openDir(); err != nil {
		return nil, nil, f.directoryError(err)
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

// fileError returns the error for a file that cannot be used.
func (f *File) fileError(reason string, err error) error {
	return &lockkeeper.StoreError{Store: f.Path(), Reason: reason, Err: err,
		Next: "make it a readable and writable locks file, or move it away; Lockkeeper's claims are safe in its own store"}
}

// directoryError says why the directory of the file cannot be used, and where a link
// leads.
func (f *File) directoryError(err error) error {
	reason, at := "its directory cannot be used", f.root
	for name := range strings.SplitSeq(filepath.Dir(f.name), string(filepath.Separator)) {
		at = filepath.Join(at, name)
		if what := otherThan(fs.ModeDir, at); what != "" {
			reason += " because " + at + " is " + what
			break
		}
	}
	return &lockkeeper.StoreError{Store: f.Path(), Reason: reason, Err: err,
		Next: "make it a readable and writable directory inside the root, or set another locks_file; Lockkeeper's claims are safe in its own store"}
}

// otherThan describes the file at a path if its type is not want, or returns "".
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
			to = "an unknown target: " + err.Error()
		}
		return fmt.Sprintf("a link to %s", to)
	}
	return "a device"
}

package durable

import (
	"io/fs"
	"os"
	"time"
)

// A Disk has the operations on names in open directories that change sets of files. Each is one
// method, so that tests can make any of them fail or crash. An open directory stays the same
// directory even if its path is renamed or replaced.
type Disk interface {
	// OpenDir opens a directory below the directory at. No part of path may be a link or on
	// another mount. The path "." opens the directory at again.
	OpenDir(at *os.File, path string) (*os.File, error)
	// OpenFile opens a file for reading, never a link. It does not block on a FIFO.
	OpenFile(at *os.File, name string) (*os.File, error)
	// Create creates a file for writing that only its owner can read.
	Create(at *os.File, name string) (*os.File, error)
	Mkdir(at *os.File, name string, perm fs.FileMode) error
	Lstat(at *os.File, name string) (Stat, error)
	List(dir *os.File) ([]string, error)
	Write(f *os.File, data []byte) error
	Chmod(f *os.File, perm fs.FileMode) error
	// Sync makes a file's content, or a directory's names, durable.
	Sync(f *os.File) error
	Close(f *os.File) error
	// Move renames; it fails with fs.ErrExist rather than replace anything.
	Move(from *os.File, name string, to *os.File, as string) error
	// Exchange swaps two names, both of which must exist.
	Exchange(a *os.File, name string, b *os.File, as string) error
	Remove(at *os.File, name string) error
	// RemoveDir removes an empty directory.
	RemoveDir(at *os.File, name string) error
}

// A Stat describes a name without following links.
type Stat struct {
	Mode  fs.FileMode
	Size  int64
	Dev   uint64
	Inode uint64
	Links uint64

	Born    time.Time // zero if the file system does not support it
	Changed time.Time // the last change of content, attributes or name; only the kernel sets it
}

// SameFile reports whether two Stats describe the same file.
func (s Stat) SameFile(t Stat) bool { return s.Dev == t.Dev && s.Inode == t.Inode }

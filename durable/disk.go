package durable

import (
	"io/fs"
	"os"
	"time"
)

// Disk are the operations on names in open directories with which whole sets of
// files are changed, one method each, so that tests can let any single one fail
// or end the process there. A directory that is held open stays the same one
// whatever happens to its path.
type Disk interface {
	// OpenDir opens a directory below at. No part of path may be a link or lead
	// onto another mount; "." opens at itself once more.
	OpenDir(at *os.File, path string) (*os.File, error)
	// OpenFile opens a file to read it; never a link, and without waiting for
	// the writer of a FIFO.
	OpenFile(at *os.File, name string) (*os.File, error)
	// Create makes a file that only its owner can read, to write it.
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
	// RemoveDir removes a directory that is empty.
	RemoveDir(at *os.File, name string) error
}

// Stat is what is known of a name, links not followed.
type Stat struct {
	Mode  fs.FileMode
	Size  int64
	Dev   uint64
	Inode uint64
	Links uint64

	Born    time.Time // zero where the file system does not tell
	Changed time.Time // when content, attributes or name changed last; only the kernel sets it
}

// SameFile reports whether two names lead to one file.
func (s Stat) SameFile(t Stat) bool { return s.Dev == t.Dev && s.Inode == t.Inode }

package durable

import (
	"errors"
	"io/fs"
	"os"
	"syscall"
)

// Ops are the operations on files that this package uses, one method each, so
// that tests can make any of them fail.
type Ops interface {
	Lstat(path string) (fs.FileInfo, error)
	CreateTemp(dir, pattern string) (*os.File, error)
	Write(f *os.File, data []byte) error
	Chmod(f *os.File, perm fs.FileMode) error
	Sync(f *os.File) error
	Close(f *os.File) error
	Rename(from, to string) error
	Remove(path string) error
	SyncDir(dir string) error
	Mkdir(path string, perm fs.FileMode) error
}

// OS is the operating system's Ops.
type OS struct{}

func (OS) Lstat(path string) (fs.FileInfo, error)           { return os.Lstat(path) }
func (OS) CreateTemp(dir, pattern string) (*os.File, error) { return os.CreateTemp(dir, pattern) }

func (OS) Write(f *os.File, data []byte) error {
	_, err := f.Write(data)
	return err
}

func (OS) Chmod(f *os.File, perm fs.FileMode) error  { return f.Chmod(perm) }
func (OS) Sync(f *os.File) error                     { return f.Sync() }
func (OS) Close(f *os.File) error                    { return f.Close() }
func (OS) Rename(from, to string) error              { return os.Rename(from, to) }
func (OS) Remove(path string) error                  { return os.Remove(path) }
func (OS) Mkdir(path string, perm fs.FileMode) error { return os.Mkdir(path, perm) }

// SyncDir makes the names in a directory durable. It ignores file systems on which
// directories cannot be fsynced.
func (OS) SyncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	err = d.Sync()
	if errors.Is(err, syscall.EINVAL) || errors.Is(err, errors.ErrUnsupported) {
		err = nil
	}
	return errors.Join(err, d.Close())
}

package durabletest

import (
	"io/fs"
	"os"

	"lockkeeper/durable"
)

// Operations of durable.Disk only.
const (
	OpenDir   Op = "open_dir"
	OpenFile  Op = "open_file"
	Create    Op = "create"
	LstatAt   Op = "lstat_at"
	List      Op = "list"
	Move      Op = "move"
	Exchange  Op = "exchange"
	RemoveAt  Op = "remove_at"
	RemoveDir Op = "remove_dir"
)

// A FaultyDisk is a durable.Disk on the real disk whose operations fail as planned.
type FaultyDisk struct {
	Plan
	disk durable.OSDisk
}

var _ durable.Disk = (*FaultyDisk)(nil)

// OpenDir implements durable.Disk.
func (f *FaultyDisk) OpenDir(at *os.File, path string) (*os.File, error) {
	if _, err := f.begin(OpenDir); err != nil {
		return nil, err
	}
	return f.disk.OpenDir(at, path)
}

// OpenFile implements durable.Disk.
func (f *FaultyDisk) OpenFile(at *os.File, name string) (*os.File, error) {
	if _, err := f.begin(OpenFile); err != nil {
		return nil, err
	}
	return f.disk.OpenFile(at, name)
}

// Create implements durable.Disk.
func (f *FaultyDisk) Create(at *os.File, name string) (*os.File, error) {
	if _, err := f.begin(Create); err != nil {
		return nil, err
	}
	return f.disk.Create(at, name)
}

// Mkdir implements durable.Disk.
func (f *FaultyDisk) Mkdir(at *os.File, name string, perm fs.FileMode) error {
	if _, err := f.begin(Mkdir); err != nil {
		return err
	}
	return f.disk.Mkdir(at, name, perm)
}

// Lstat implements durable.Disk.
func (f *FaultyDisk) Lstat(at *os.File, name string) (durable.Stat, error) {
	if _, err := f.begin(LstatAt); err != nil {
		return durable.Stat{}, err
	}
	return f.disk.Lstat(at, name)
}

// List implements durable.Disk.
func (f *FaultyDisk) List(dir *os.File) ([]string, error) {
	if _, err := f.begin(List); err != nil {
		return nil, err
	}
	return f.disk.List(dir)
}

// Move implements durable.Disk.
func (f *FaultyDisk) Move(from *os.File, name string, to *os.File, as string) error {
	if _, err := f.begin(Move); err != nil {
		return err
	}
	return f.disk.Move(from, name, to, as)
}

// Exchange implements durable.Disk.
func (f *FaultyDisk) Exchange(a *os.File, name string, b *os.File, as string) error {
	if _, err := f.begin(Exchange); err != nil {
		return err
	}
	return f.disk.Exchange(a, name, b, as)
}

// Remove implements durable.Disk.
func (f *FaultyDisk) Remove(at *os.File, name string) error {
	if _, err := f.begin(RemoveAt); err != nil {
		return err
	}
	return f.disk.Remove(at, name)
}

// RemoveDir implements durable.Disk.
func (f *FaultyDisk) RemoveDir(at *os.File, name string) error {
	if _, err := f.begin(RemoveDir); err != nil {
		return err
	}
	return f.disk.RemoveDir(at, name)
}

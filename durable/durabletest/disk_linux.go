package durabletest

import (
	"io/fs"
	"os"

	"lockkeeper/durable"
)

// These are the operations of durable.Disk only.
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
	FaultPlan
	disk durable.OSDisk
}

var _ durable.Disk = (*FaultyDisk)(nil)

func (f *FaultyDisk) OpenDir(at *os.File, path string) (*os.File, error) {
	return do(&f.FaultPlan, OpenDir, func() (*os.File, error) { return f.disk.OpenDir(at, path) })
}

func (f *FaultyDisk) OpenFile(at *os.File, name string) (*os.File, error) {
	return do(&f.FaultPlan, OpenFile, func() (*os.File, error) { return f.disk.OpenFile(at, name) })
}

func (f *FaultyDisk) Create(at *os.File, name string) (*os.File, error) {
	return do(&f.FaultPlan, Create, func() (*os.File, error) { return f.disk.Create(at, name) })
}

func (f *FaultyDisk) Mkdir(at *os.File, name string, perm fs.FileMode) error {
	return f.do(Mkdir, func() error { return f.disk.Mkdir(at, name, perm) })
}

func (f *FaultyDisk) Lstat(at *os.File, name string) (durable.Stat, error) {
	return do(&f.FaultPlan, LstatAt, func() (durable.Stat, error) { return f.disk.Lstat(at, name) })
}

func (f *FaultyDisk) List(dir *os.File) ([]string, error) {
	return do(&f.FaultPlan, List, func() ([]string, error) { return f.disk.List(dir) })
}

func (f *FaultyDisk) Move(from *os.File, name string, to *os.File, as string) error {
	return f.do(Move, func() error { return f.disk.Move(from, name, to, as) })
}

func (f *FaultyDisk) Exchange(a *os.File, name string, b *os.File, as string) error {
	return f.do(Exchange, func() error { return f.disk.Exchange(a, name, b, as) })
}

func (f *FaultyDisk) Remove(at *os.File, name string) error {
	return f.do(RemoveAt, func() error { return f.disk.Remove(at, name) })
}

func (f *FaultyDisk) RemoveDir(at *os.File, name string) error {
	return f.do(RemoveDir, func() error { return f.disk.RemoveDir(at, name) })
}

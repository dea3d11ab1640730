package durabletest

import (
	"io/fs"
	"os"

	"lockkeeper/durable"
)

// These are the operations of durable.Ops only.
const (
	Lstat      Op = "lstat"
	CreateTemp Op = "create_temp"
	Rename     Op = "rename"
	Remove     Op = "remove"
	SyncDir    Op = "sync_dir"
)

// A Faults is a durable.Ops on the real disk whose operations fail as planned.
type Faults struct{ FaultPlan }

var _ durable.Ops = (*Faults)(nil)

func (f *Faults) Lstat(path string) (fs.FileInfo, error) {
	return do(&f.FaultPlan, Lstat, func() (fs.FileInfo, error) { return f.real.Lstat(path) })
}

func (f *Faults) CreateTemp(dir, pattern string) (*os.File, error) {
	return do(&f.FaultPlan, CreateTemp, func() (*os.File, error) { return f.real.CreateTemp(dir, pattern) })
}

func (f *Faults) Rename(from, to string) error {
	return f.do(Rename, func() error { return f.real.Rename(from, to) })
}

func (f *Faults) Remove(path string) error {
	return f.do(Remove, func() error { return f.real.Remove(path) })
}

func (f *Faults) SyncDir(dir string) error {
	return f.do(SyncDir, func() error { return f.real.SyncDir(dir) })
}

func (f *Faults) Mkdir(path string, perm fs.FileMode) error {
	return f.do(Mkdir, func() error { return f.real.Mkdir(path, perm) })
}

package durabletest

import (
	"io/fs"
	"os"

	"lockkeeper/durable"
)

// Operations of durable.Ops only.
const (
	Lstat      Op = "lstat"
	CreateTemp Op = "create_temp"
	Rename     Op = "rename"
	Remove     Op = "remove"
	SyncDir    Op = "sync_dir"
)

// A Faults is a durable.Ops on the real disk whose operations fail as planned.
type Faults struct{ Plan }

var _ durable.Ops = (*Faults)(nil)

// Lstat implements durable.Ops.
func (f *Faults) Lstat(path string) (fs.FileInfo, error) {
	if _, err := f.begin(Lstat); err != nil {
		return nil, err
	}
	return f.real.Lstat(path)
}

// CreateTemp implements durable.Ops.
func (f *Faults) CreateTemp(dir, pattern string) (*os.File, error) {
	if _, err := f.begin(CreateTemp); err != nil {
		return nil, err
	}
	return f.real.CreateTemp(dir, pattern)
}

// Rename implements durable.Ops.
func (f *Faults) Rename(from, to string) error {
	if _, err := f.begin(Rename); err != nil {
		return err
	}
	return f.real.Rename(from, to)
}

// Remove implements durable.Ops.
func (f *Faults) Remove(path string) error {
	if _, err := f.begin(Remove); err != nil {
		return err
	}
	return f.real.Remove(path)
}

// SyncDir implements durable.Ops.
func (f *Faults) SyncDir(dir string) error {
	if _, err := f.begin(SyncDir); err != nil {
		return err
	}
	return f.real.SyncDir(dir)
}

// Mkdir implements durable.Ops.
func (f *Faults) Mkdir(path string, perm fs.FileMode) error {
	if _, err := f.begin(Mkdir); err != nil {
		return err
	}
	return f.real.Mkdir(path, perm)
}

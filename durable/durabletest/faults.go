package durabletest

import (
	"errors"
	"io/fs"
	"os"
	"slices"
	"sync"

	"lockkeeper/durable"
)

// ErrCrashed is what every operation returns from the crash on.
var ErrCrashed = errors.New("crashed")

// Op names an operation of durable.Ops.
type Op string

// The operations.
const (
	Lstat      Op = "lstat"
	CreateTemp Op = "create_temp"
	Write      Op = "write"
	Chmod      Op = "chmod"
	Sync       Op = "sync"
	Close      Op = "close"
	Rename     Op = "rename"
	Remove     Op = "remove"
	SyncDir    Op = "sync_dir"
)

// Faults is a durable.Ops on the real disk whose operations fail as told. Its
// zero value fails nothing.
type Faults struct {
	mu      sync.Mutex
	trace   []Op
	at      map[int]error
	next    map[Op][]error
	crashes bool
	crashAt int
	real    durable.OS
}

var _ durable.Ops = (*Faults)(nil)

// FailAt lets operation number k, counted from 0 over all operations, fail.
func (f *Faults) FailAt(k int, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.at == nil {
		f.at = map[int]error{}
	}
	f.at[k] = err
}

// FailNext lets the next operations of one kind fail, as many times as told.
func (f *Faults) FailNext(op Op, times int, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.next == nil {
		f.next = map[Op][]error{}
	}
	f.next[op] = append(f.next[op], slices.Repeat([]error{err}, times)...)
}

// CrashAt lets operation number k and all later ones return ErrCrashed and do
// nothing.
func (f *Faults) CrashAt(k int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.crashes, f.crashAt = true, k
}

// Trace lists the operations attempted so far.
func (f *Faults) Trace() []Op {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.trace)
}

// begin records an operation and returns the error it is to fail with, and
// whether the process was alive when it began.
func (f *Faults) begin(op Op) (alive bool, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	k := len(f.trace)
	f.trace = append(f.trace, op)
	if f.crashes && k >= f.crashAt {
		return k == f.crashAt, ErrCrashed
	}
	if err := f.at[k]; err != nil {
		return true, err
	}
	if queue := f.next[op]; len(queue) > 0 {
		f.next[op] = queue[1:]
		return true, queue[0]
	}
	return true, nil
}

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

// Write implements durable.Ops.
func (f *Faults) Write(file *os.File, data []byte) error {
	alive, err := f.begin(Write)
	if err == nil {
		return f.real.Write(file, data)
	}
	if alive {
		return errors.Join(err, f.real.Write(file, data[:len(data)/2]))
	}
	return err
}

// Chmod implements durable.Ops.
func (f *Faults) Chmod(file *os.File, perm fs.FileMode) error {
	if _, err := f.begin(Chmod); err != nil {
		return err
	}
	return f.real.Chmod(file, perm)
}

// Sync implements durable.Ops.
func (f *Faults) Sync(file *os.File) error {
	if _, err := f.begin(Sync); err != nil {
		return err
	}
	return f.real.Sync(file)
}

// Close implements durable.Ops. The descriptor is closed in any case, as the
// kernel does for a failed close and for a dead process.
func (f *Faults) Close(file *os.File) error {
	_, err := f.begin(Close)
	return errors.Join(err, f.real.Close(file))
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

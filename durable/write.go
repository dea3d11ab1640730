package durable

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"lockkeeper"
)

// TempPrefix begins the name of every temporary file. A crash may leave one.
const TempPrefix = ".lockkeeper-tmp-"

// replaceWait is the wait after the first failed rename. The n-th is n times as
// long.
const (
	replaceWait    = 100 * time.Millisecond
	replaceRetries = 3
)

// An Error says which operation failed and in what state the file is.
type Error struct {
	Op       string // "write", "sync", "rename", …
	Path     string // the file to replace
	Replaced bool   // the new content is in place, but may not survive a crash
	Err      error
}

func (e *Error) Error() string {
	left := "the old file is unchanged"
	if e.Replaced {
		left = "the new content is in place but may not survive a crash"
	}
	return fmt.Sprintf("replace %s: %s: %v; %s", e.Path, e.Op, e.Err, left)
}

func (e *Error) Unwrap() error { return e.Err }

// A Writer replaces files. Its zero value uses the operating system.
type Writer struct {
	Ops Ops // default OS{}
}

// WriteFile replaces the content of path, or creates it. An existing file keeps
// its permission bits; a new one gets exactly perm. If ctx ends before
// the replacement, nothing is changed.
func WriteFile(ctx context.Context, path string, data []byte, perm fs.FileMode) error {
	return Writer{}.WriteFile(ctx, path, data, perm)
}

// WriteFile is the package's WriteFile with this writer's operations.
func (w Writer) WriteFile(ctx context.Context, path string, data []byte, perm fs.FileMode) error {
	ops := w.ops()
	perm, err := permFor(ops, path, perm)
	if err != nil {
		return err
	}
	failed := func(op string, err error) error { return &Error{Op: op, Path: path, Err: err} }
	dir := filepath.Dir(path)
	temp, err := ops.CreateTemp(dir, TempPrefix+"*")
	if err != nil {
		return failed("create", err)
	}
	if op, err := fillTemp(ops, temp, data, perm); err != nil {
		return failed(op, errors.Join(err, ops.Remove(temp.Name())))
	}
	if err := replace(ctx, ops, temp.Name(), path); err != nil {
		return failed("rename", errors.Join(err, ops.Remove(temp.Name())))
	}
	if err := ops.SyncDir(dir); err != nil {
		return &Error{Op: "sync directory", Path: path, Replaced: true, Err: err}
	}
	return nil
}

func (w Writer) ops() Ops {
	if w.Ops == nil {
		return OS{}
	}
	return w.Ops
}

// permFor returns the permissions of the new content. It refuses a path that must
// not be replaced.
func permFor(ops Ops, path string, perm fs.FileMode) (fs.FileMode, error) {
	info, err := ops.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return perm.Perm(), nil
	case err != nil:
		return 0, &Error{Op: "stat", Path: path, Err: err}
	case info.Mode()&fs.ModeSymlink != 0:
		return 0, &lockkeeper.InputError{Field: "path", Value: path, Reason: "a symlink, and writing through links is refused",
			Next: "give the path of the file it points to"}
	case !info.Mode().IsRegular():
		return 0, &lockkeeper.InputError{Field: "path", Value: path, Reason: "not a regular file", Next: "give the path of a file"}
	}
	return info.Mode().Perm(), nil
}

// fillTemp makes the temporary file complete and durable. It always closes it.
func fillTemp(ops Ops, temp *os.File, data []byte, perm fs.FileMode) (op string, err error) {
	steps := []struct {
		op string
		do func() error
	}{
		{"write", func() error { return ops.Write(temp, data) }},
		{"chmod", func() error { return ops.Chmod(temp, perm) }},
		{"sync", func() error { return ops.Sync(temp) }},
	}
	for _, step := range steps {
		if err := step.do(); err != nil {
			return step.op, errors.Join(err, ops.Close(temp))
		}
	}
	return "close", ops.Close(temp)
}

func replace(ctx context.Context, ops Ops, from, to string) error {
	for try := 1; ; try++ {
		if err := ctx.Err(); err != nil {
			return err
		}
		err := ops.Rename(from, to)
		if err == nil || try > replaceRetries {
			return err
		}
		select {
		case <-ctx.Done():
			return errors.Join(err, ctx.Err())
		case <-time.After(time.Duration(try) * replaceWait):
		}
	}
}

// FileTick is how far the clock that sets file times may lag: the time of a file may be this
// much earlier than the write.
const FileTick = 10 * time.Millisecond

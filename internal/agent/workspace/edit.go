package workspace

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"path/filepath"

	"golang.org/x/sys/unix"

	"lockkeeper"
)

// Put writes a file into the workspace as an agent would, so that Changes reports it. A run
// uses it to continue with stored work in a new workspace. Put creates parent directories. It
// refuses to replace a directory, and a path below a file.
func (w *Workspace) Put(ctx context.Context, path string, mode fs.FileMode, body io.Reader) error {
	if mode.Type() != 0 {
		return &lockkeeper.InputError{Field: "mode", Value: mode.String(), Reason: "not the mode of a regular file", Next: "give the mode of a regular file"}
	}
	return w.edit(ctx, path, func(p string) error {
		err := w.fillTemp(ctx, mode, body)
		if err == nil {
			err = w.withParents(p, func(dir int, name string) error { return unix.Renameat(w.top, tempName, dir, name) })
		}
		if err != nil {
			return errors.Join(err, w.dropTemp())
		}
		return nil
	})
}

// Delete removes a file, a link or an empty directory from the workspace as an agent would.
// The path may be missing.
func (w *Workspace) Delete(ctx context.Context, path string) error {
	return w.edit(ctx, path, func(p string) error {
		err := w.at(p, func(dir int, name string) error {
			flags := 0
			if seen, err := statAt(dir, name); err != nil {
				return err
			} else if seen.mode.IsDir() {
				flags = unix.AT_REMOVEDIR
			}
			return unix.Unlinkat(dir, name, flags)
		})
		if isGone(err) {
			return nil
		}
		return err
	})
}

func (w *Workspace) edit(ctx context.Context, path string, change func(p string) error) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := w.beginEdit(ctx); err != nil {
		return err
	}
	p, err := clean(path)
	if err != nil {
		return err
	}
	private := p == "."
	for at := p; at != "."; at, _ = split(at) {
		private = private || w.isPrivate(split(at))
	}
	if private {
		return &lockkeeper.InputError{Field: "path", Value: path, Reason: "not part of the tree", Next: "give a path of a file in the tree"}
	}
	switch err := change(p); {
	case isGone(err), isInUse(err), errors.Is(err, unix.EISDIR):
		return &lockkeeper.RefusedError{Act: "changing " + p + " in workspace " + w.dir,
			Reason: "it is a directory, or a parent is not a directory", Next: "delete the conflicting path first"}
	case err != nil:
		return pathError("change", filepath.Join(w.Dir(), p), err)
	}
	return nil
}

// fillTemp writes the temporary file.
func (w *Workspace) fillTemp(ctx context.Context, mode fs.FileMode, body io.Reader) (err error) {
	f, err := w.newTemp()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if _, err := io.Copy(f, &stoppable{ctx, body}); err != nil {
		return err
	}
	return f.Chmod(mode.Perm())
}

// A stoppable is a reader that ends with a context.
type stoppable struct {
	ctx context.Context
	io.Reader
}

func (s *stoppable) Read(part []byte) (int, error) {
	if s.ctx.Err() != nil {
		return 0, context.Cause(s.ctx)
	}
	return s.Reader.Read(part)
}

// withParents calls the function do for a name, and creates missing parent directories first.
func (w *Workspace) withParents(p string, do func(dir int, name string) error) error {
	err := w.at(p, do)
	parent, _ := split(p)
	if parent == "." || !errors.Is(err, unix.ENOENT) {
		return err
	}
	if err := w.withParents(parent, func(dir int, name string) error { return unix.Mkdirat(dir, name, 0o755) }); err != nil {
		return err
	}
	return w.at(p, do)
}

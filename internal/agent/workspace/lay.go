//go:build unix

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

// Put lays a file over the workspace as an agent would: what was copied is known as
// before, so that Changes tells of it. So work that was kept comes back into a fresh
// workspace. Directories above it are made; nothing is laid over a directory, or
// below something that is none.
func (w *Workspace) Put(ctx context.Context, path string, mode fs.FileMode, body io.Reader) error {
	if mode.Type() != 0 {
		return &lockkeeper.InputError{Field: "mode", Value: mode.String(), Reason: "not that of a file", Next: "put files only"}
	}
	return w.lay(path, func(p string) error {
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

// Delete removes a file, a link or an empty directory from the workspace as an agent
// would. Where nothing is, there is nothing to do.
func (w *Workspace) Delete(path string) error {
	return w.lay(path, func(p string) error {
		dirPath, name := split(p)
		err := w.inFolder(dirPath, func(dir int) error {
			flags := 0
			if seen, err := lookAt(dir, name); err != nil {
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

// lay changes one path of the workspace.
func (w *Workspace) lay(path string, change func(p string) error) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := w.begin(); err != nil {
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
		return &lockkeeper.InputError{Field: "path", Value: path, Reason: "the workspace's own", Next: "give a path that Changes can tell of"}
	}
	switch err := change(p); {
	case isGone(err), isInUse(err), errors.Is(err, unix.EISDIR):
		return &lockkeeper.RefusedError{Act: "changing " + p + " in workspace " + w.dir,
			Reason: "there is a directory, or something above it is none", Next: "delete what is in the way first"}
	case err != nil:
		return pathError("change", filepath.Join(w.Dir(), p), err)
	}
	return nil
}

// fillTemp makes a file beside the tree.
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

// stoppable is a reader that ends with a context.
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

// withParents does something to a name, and makes the directories above it if they
// turn out to be missing. One without them cannot be, so it ends at the top.
func (w *Workspace) withParents(p string, do func(dir int, name string) error) error {
	dirPath, name := split(p)
	try := func() error { return w.inFolder(dirPath, func(dir int) error { return do(dir, name) }) }
	err := try()
	if dirPath == "." || !errors.Is(err, unix.ENOENT) {
		return err
	}
	if err := w.withParents(dirPath, func(dir int, name string) error { return unix.Mkdirat(dir, name, 0o755) }); err != nil {
		return err
	}
	return try()
}

package run

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"slices"
	"sync"

	"lockkeeper/internal/agent/workspace"
	"lockkeeper/internal/git/parcel"
)

// A baseTree is the tree that a workspace was made of, as git has it.
type baseTree struct {
	tree  string
	mu    sync.Mutex
	moved map[string]bool // paths that were updated since
}

// snapshotTries bounds how often a workspace is made again because the tree changed meanwhile.
const snapshotTries = 3

// withTree makes a workspace of which another machine can make an equal one: the tree was the same
// before and after. If the tree does not stay the same, calls in the workspace run here.
func (c *crew) withTree(ctx context.Context, make func() (*workspace.Workspace, error)) (*workspace.Workspace, error) {
	before, err := c.Parcels.Snapshot(ctx, c.p.opt.Own)
	for try := 1; ; try++ {
		w, failed := make()
		if err != nil || failed != nil {
			if failed == nil {
				c.p.trouble(errors.Join(errors.New("calls run on this machine only: git cannot store the tree"), err))
			}
			return w, failed
		}
		var after string
		if after, err = c.Parcels.Snapshot(ctx, c.p.opt.Own); err == nil && after == before {
			c.bases.Store(w.Home(), &baseTree{tree: after, moved: map[string]bool{}})
			return w, nil
		}
		if err == nil && try == snapshotTries {
			return w, nil
		}
		if err := w.Close(ctx, false); err != nil {
			return nil, err
		}
		before = after
	}
}

// noteMoved records that paths of a workspace were updated.
func (c *crew) noteMoved(w *workspace.Workspace, paths ...string) {
	if c == nil {
		return
	}
	if b, ok := c.bases.Load(w.Home()); ok {
		base := b.(*baseTree)
		base.mu.Lock()
		defer base.mu.Unlock()
		for _, path := range paths {
			base.moved[path] = true
		}
	}
}

func (c *crew) forget(w *workspace.Workspace) {
	if c != nil {
		c.bases.Delete(w.Home())
	}
}

var errNoTree = errors.New("the workspace is older than its tree in git, or the tree changed while it was made")

// pack makes the parcel of a workspace: the tree it was made of, and what differs in it.
func (c *crew) pack(ctx context.Context, w *workspace.Workspace, subject string, files map[string][]byte) (string, error) {
	b, ok := c.bases.Load(w.Home())
	if !ok {
		return "", errNoTree
	}
	base := b.(*baseTree)
	changes, err := w.Changes(ctx)
	if err != nil {
		return "", err
	}
	p := parcel.Parcel{Base: base.tree, Files: files, Subject: subject}
	if head := c.Parcels.Head(ctx); head != "" {
		p.Parents = []string{head}
	}
	base.mu.Lock()
	moved := make([]string, 0, len(base.moved))
	for path := range base.moved {
		moved = append(moved, path)
	}
	base.mu.Unlock()
	for _, change := range changes {
		if change.Now != nil && !change.Now.Mode.IsRegular() {
			continue // directories exist with their files; only files are stored with a batch
		}
		p.Edits = append(p.Edits, editOf(w, change.Path, change.Now))
		moved = slices.DeleteFunc(moved, func(path string) bool { return path == change.Path })
	}
	for _, path := range moved {
		state, err := stateIn(w, path)
		if err != nil {
			return "", err
		}
		p.Edits = append(p.Edits, editOf(w, path, state))
	}
	return c.Parcels.Pack(ctx, p)
}

func editOf(w *workspace.Workspace, path string, now *workspace.State) parcel.Edit {
	e := parcel.Edit{Path: path}
	if now != nil {
		e.Exec = now.Mode.Perm()&0o111 != 0
		e.Open = func() (io.ReadCloser, error) { return w.Open(path) }
	}
	return e
}

// stateIn returns the state of a file in a workspace; nil: it does not exist.
func stateIn(w *workspace.Workspace, path string) (*workspace.State, error) {
	f, err := w.Open(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err = errors.Join(err, f.Close()); err != nil {
		return nil, err
	}
	return &workspace.State{Mode: info.Mode() & (fs.ModeType | fs.ModePerm), Size: info.Size()}, nil
}

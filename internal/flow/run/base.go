package run

import (
	"context"
	"errors"
	"sync"
	"time"

	"lockkeeper"
	"lockkeeper/internal/agent/sandbox"
	"lockkeeper/internal/agent/workspace"
)

// A workspaceBase is the base of the workspaces of a run, once one was needed.
type workspaceBase struct {
	mu   sync.Mutex
	base *workspace.Base
	none bool // workspaces are copies, because overlays do not work here
}

// openBase returns the base of the workspaces, or nil if workspaces are copies.
func (p *Pipeline) openBase(ctx context.Context) (*workspace.Base, error) {
	p.workspaces.mu.Lock()
	defer p.workspaces.mu.Unlock()
	if p.workspaces.base != nil || p.workspaces.none || !p.opt.Sandbox.Overlays() || !sandbox.RenamesLower() {
		return p.workspaces.base, nil
	}
	o, err := p.workspaceOptions(ctx)
	if err != nil {
		return nil, err
	}
	p.workspaces.base, err = workspace.NewBase(ctx, o)
	if errors.Is(err, workspace.ErrNoOverlays) && ctx.Err() == nil { // doctor says why
		p.workspaces.none, err = true, nil
	}
	return p.workspaces.base, err
}

// closeBase leaves the base to the next run.
func (p *Pipeline) closeBase(ctx context.Context) error {
	return p.endBase(ctx, (*workspace.Base).Close)
}

// discardBase removes the base, unless it was there before.
func (p *Pipeline) discardBase(ctx context.Context) error {
	return p.endBase(ctx, (*workspace.Base).Discard)
}

func (p *Pipeline) endBase(ctx context.Context, end func(*workspace.Base, context.Context) error) error {
	p.workspaces.mu.Lock()
	defer p.workspaces.mu.Unlock()
	if p.workspaces.base == nil {
		return nil
	}
	err := end(p.workspaces.base, ctx)
	p.workspaces.base = nil
	return err
}

// tellAfter is how long the base may take before people are told why no agent starts.
const tellAfter = 2 * time.Second

// prepareBase makes the base in the background, so that it is ready for the first workspace. A
// failure is reported by the workspace that needs it.
func (p *Pipeline) prepareBase(ctx context.Context) {
	done := make(chan struct{})
	defer close(done)
	p.goroutines.Go(func() {
		select {
		case <-time.After(tellAfter):
			p.tell(News{Kind: NewsRun, Text: "copying the codebase once for all agents; the first ones wait for it"})
		case <-done:
		}
	})
	if base, err := p.openBase(ctx); err == nil && base != nil {
		base.Prepare(ctx)
	}
}

func (p *Pipeline) workspaceOptions(ctx context.Context) (workspace.Options, error) {
	o := workspace.Options{
		Root: p.opt.Root.Dir(), Dir: p.opt.Workspaces,
		Linked: p.opt.Linked, Sealed: p.opt.Sandbox.HoldsWrites(), Sums: p.sums, Without: p.opt.Own, Keep: true,
	}
	if p.opt.Store == nil { // nothing lands in the checkout of a joiner
		return o, nil
	}
	last, err := p.lastLanding(ctx)
	o.Landed, o.After = p.landed, last
	return o, err
}

// treeOf shows the tree of a workspace to a command.
func treeOf(w *workspace.Workspace, c *sandbox.Confinement) error {
	stack, tree, layered, err := w.Overlay()
	switch {
	case err != nil:
		return err
	case layered:
		c.Overlays = append(c.Overlays, sandbox.Overlay{Stack: stack, Sub: tree, At: w.Dir()})
	default:
		c.Write = append(c.Write, w.Dir())
	}
	return nil
}

// lockedPaths returns the paths of the tree that a grant locks.
func lockedPaths(g *lockkeeper.Grant) (paths []string) {
	if g == nil {
		return nil
	}
	for _, l := range g.Locks {
		if l.Path != lockkeeper.GitTarget {
			paths = append(paths, l.Path)
		}
	}
	return paths
}

package run

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"lockkeeper"
	"lockkeeper/gate"
	"lockkeeper/internal/agent"
	"lockkeeper/internal/agent/workspace"
	"lockkeeper/internal/flow"
	"lockkeeper/internal/flow/documents"
	"lockkeeper/rescue"
)

// sweep removes the workspaces of dead processes. It leaves workspaces with an unused result, and
// keeps the changes in the others for lockkeeper rescue.
func (p *Pipeline) sweep(ctx context.Context) error {
	left, err := workspace.Abandoned(ctx, p.opt.Workspaces)
	if err != nil {
		return err
	}
	unused, err := p.unusedTraces()
	if err != nil {
		return err
	}
	for _, l := range left {
		wanted := slices.ContainsFunc(unused, func(t unusedTrace) bool { return t.home == l.Home })
		if l.Root != "" && l.Root != p.opt.Root.Dir() || wanted {
			continue
		}
		if err := p.clear(ctx, l); err != nil {
			p.tell(News{Kind: NewsWarning, Text: fmt.Sprintf("an abandoned workspace in %s: %v", l.Home, err)})
		}
	}
	return nil
}

// discardUnused marks all calls of the flow as used and removes their workspaces, at the end of
// a run. A call whose changes are stored nowhere else stays, for a retry of its batch.
func (p *Pipeline) discardUnused(ctx context.Context) error {
	unused, err := p.unusedTraces()
	if err != nil {
		return err
	}
	for _, t := range unused {
		rec := t.rec
		if !strings.HasPrefix(filepath.Base(filepath.Dir(t.dir)), documents.KeyName(p.opt.Flow.Name+"/")) {
			continue // the item belongs to another flow
		}
		if rec != nil && rec.Error == "" && p.isUnstored(ctx, t.home) {
			continue
		}
		if rec == nil { // the run crashed before it counted the call
			adapter, err := p.opt.Agents.Named("")
			if err != nil {
				return err
			}
			res, _, _ := agent.Completed(adapter, t.files(), nil) // only the cost of the call is used
			cost, _ := p.ledger.count(res, errCutShort)
			rec = &record{Run: p.ledger.run, Cost: cost, Call: flow.Call{Agent: adapter.Name(), USD: float64(cost.MicroUSD) / 1e6, Tokens: cost.Tokens, Error: errCutShort.Error()}}
		}
		rec.Used = true
		if err := t.write(rec); err != nil {
			return err
		}
	}
	return p.sweep(ctx)
}

// isUnstored reports whether the workspace of a call exists and has changes that are stored
// nowhere else.
func (p *Pipeline) isUnstored(ctx context.Context, home string) bool {
	w, err := p.adoptWorkspace(home)
	if err != nil {
		return false // the workspace is gone, or sweep reports the error
	}
	defer w.Close(ctx, true)
	changes, err := w.Survey(ctx, nil)
	return err == nil && slices.ContainsFunc(changes, func(c workspace.Change) bool {
		stored, err := p.isStored(ctx, w, c)
		return err == nil && !stored && c.Now != nil // a removal loses no content
	})
}

// An unusedTrace is a call of an agent whose result is unused.
type unusedTrace struct {
	trace
	home string  // home of the call's workspace
	rec  *record // nil: the run crashed before it counted the call
}

func (p *Pipeline) unusedTraces() (unused []unusedTrace, err error) {
	traces, err := p.ledger.traces()
	if err != nil {
		return nil, err
	}
	for _, at := range traces {
		if p.ledger.isUsed(at) {
			continue
		}
		t := unusedTrace{trace: at}
		if t.home, err = t.workspace(); err != nil {
			return nil, err
		}
		if t.home == "" {
			continue
		}
		if t.rec, err = t.record(); err != nil {
			return nil, err
		}
		if t.rec == nil || !t.rec.Used {
			unused = append(unused, t)
		}
	}
	return unused, nil
}

// clear removes an abandoned workspace and keeps its changes for lockkeeper rescue.
func (p *Pipeline) clear(ctx context.Context, l workspace.Left) error {
	w, err := p.adoptWorkspace(l.Home)
	if err != nil {
		return err
	}
	if l.Fault != nil { // the workspace was never complete, so no agent has used it
		return w.Close(ctx, false)
	}
	changes, err := w.Survey(ctx, nil)
	if refused, ok := errors.AsType[*lockkeeper.RefusedError](err); ok { // retrying cannot help: a later run could not list the changes either
		return errors.Join(fmt.Errorf("its changes cannot be kept: %s", refused.Reason), w.Close(ctx, false))
	}
	if err != nil {
		return errors.Join(err, w.Close(ctx, true))
	}
	var keep []workspace.Change
	for _, c := range changes {
		stored, err := p.isStored(ctx, w, c)
		if err != nil {
			return errors.Join(err, w.Close(ctx, true))
		}
		if !stored {
			keep = append(keep, c)
		}
	}
	kept, err := p.shelveAll(ctx, w, keep, nil, "an agent of a crashed run", "the run crashed before the agent finished")
	if err != nil {
		return errors.Join(err, w.Close(ctx, true))
	}
	if kept > 0 {
		p.tell(News{Kind: NewsWarning, Text: "an agent had changed " + counted(kept, "file") + " when its run crashed; they are kept: lockkeeper rescue list"})
	}
	return w.Close(ctx, false)
}

// adoptWorkspace takes over a workspace of this project. It refuses any other directory that a
// trace may name.
func (p *Pipeline) adoptWorkspace(home string) (*workspace.Workspace, error) {
	if filepath.Dir(home) != filepath.Clean(p.opt.Workspaces) {
		return nil, fmt.Errorf("%s is not a workspace of this project", home)
	}
	w, err := workspace.Adopt(home, p.landed)
	if err == nil && w.Root() != "" && w.Root() != p.opt.Root.Dir() {
		return nil, errors.Join(fmt.Errorf("%s is a workspace of %s", home, w.Root()), w.Close(context.Background(), true))
	}
	return w, err
}

// isStored reports whether the content of a change is stored with a batch.
func (p *Pipeline) isStored(ctx context.Context, w *workspace.Workspace, c workspace.Change) (bool, error) {
	if c.Now == nil || !c.Now.Mode.IsRegular() || p.isTooLarge(c) {
		return false, nil
	}
	sum, err := sumOfFile(w, c.Path)
	if err != nil {
		return false, err
	}
	units, _, err := p.opt.Documents.Units(ctx)
	for _, unit := range units {
		found, err := fs.Glob(os.DirFS(p.opt.Documents.Unit(unit).Dir()), fmt.Sprintf("batches/*/files/%x", sum))
		if err != nil || len(found) > 0 {
			return err == nil, err
		}
	}
	return false, err
}

// isTooLarge reports whether a file is too large to be stored, landed or kept. The caller must
// not read such a file: it may be sparse and larger than the disk.
func (p *Pipeline) isTooLarge(c workspace.Change) bool {
	return c.Now != nil && c.Now.Size > p.opt.Gate.Rescue().Limits().Entry
}

func sumOfFile(w *workspace.Workspace, path string) (sum [32]byte, err error) {
	f, err := w.Open(path)
	if err != nil {
		return sum, err
	}
	h := sha256.New()
	_, err = io.Copy(h, f)
	return [32]byte(h.Sum(nil)), errors.Join(err, f.Close())
}

// shelve keeps one change of a workspace for lockkeeper rescue.
func (p *Pipeline) shelve(ctx context.Context, w *workspace.Workspace, c workspace.Change, holder, why string) (err error) {
	e := rescue.Entry{Kind: rescue.Unlanded, Path: c.Path, Holder: holder, Reason: why, Base: c.Base, Delete: c.Now == nil, Mode: 0o644}
	var body gate.Body
	if c.Now != nil && c.Now.Mode.IsRegular() {
		e.Mode = c.Now.Mode.Perm()
		f, err := w.Open(c.Path)
		if errors.Is(err, os.ErrPermission) {
			return nil
		}
		if err != nil {
			return err
		}
		body = func() (io.ReadCloser, error) { return f, nil }
	} else if c.Now != nil {
		return nil // the path is not a file
	}
	_, err = p.opt.Gate.Keep(ctx, e, body)
	return err
}

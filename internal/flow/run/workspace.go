package run

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/rogpeppe/go-internal/diff"

	"lockkeeper"
	"lockkeeper/gate"
	"lockkeeper/internal/agent/workspace"
	"lockkeeper/internal/flow"
	"lockkeeper/internal/flow/documents"
	"lockkeeper/store"
)

// makeWorkspace makes a workspace that has the present content of some paths.
func (p *Pipeline) makeWorkspace(ctx context.Context, fresh []string) (*workspace.Workspace, error) {
	if !p.crew.ships() {
		return p.makeOne(ctx, fresh)
	}
	return p.crew.withTree(ctx, func() (*workspace.Workspace, error) { return p.makeOne(ctx, fresh) })
}

func (p *Pipeline) makeOne(ctx context.Context, fresh []string) (w *workspace.Workspace, err error) {
	base, err := p.openBase(ctx)
	switch {
	case err != nil:
		return nil, err
	case base != nil:
		w, err = base.Make(ctx, fresh)
	default:
		var o workspace.Options
		if o, err = p.workspaceOptions(ctx); err == nil {
			w, err = workspace.Make(ctx, o)
		}
	}
	if err != nil {
		return nil, err
	}
	for _, o := range w.Oddities() {
		if _, told := p.oddities.LoadOrStore(o, true); !told && !isInterpreter(p.opt.Root.Dir(), o.Path) {
			p.tell(News{Kind: NewsWarning, Text: fmt.Sprintf("agents do not see %s as it is in the codebase: %s", o.Path, o.What)})
		}
	}
	return w, nil
}

// isInterpreter reports whether a path is the link of a virtual environment of Python to its interpreter, which every
// workspace can use.
func isInterpreter(root, path string) bool {
	bin := filepath.Dir(path)
	_, err := os.Lstat(filepath.Join(root, filepath.Dir(bin), "pyvenv.cfg"))
	return err == nil && filepath.Base(bin) == "bin" && strings.HasPrefix(filepath.Base(path), "python")
}

// lastLanding returns the number of the last landing, once all are complete.
func (p *Pipeline) lastLanding(ctx context.Context) (last uint64, err error) {
	err = p.opt.Store.View(ctx, func(r store.Reader) error {
		latest, err := r.Landings(store.LandingQuery{Latest: true, Limit: 1})
		if len(latest) > 0 {
			last = latest[0].Seq
		}
		return err
	})
	if err != nil {
		return 0, err
	}
	_, last, err = p.landed(ctx, last)
	return last, err
}

func (p *Pipeline) landed(ctx context.Context, after uint64) (paths []string, last uint64, err error) {
	for {
		var open []*lockkeeper.Landing
		p.landing.Lock() // waits until no landing of this process is in progress
		err := p.opt.Store.View(ctx, func(r store.Reader) (err error) {
			paths, last, open = nil, after, nil
			if open, err = r.Landings(store.LandingQuery{Open: true}); err != nil {
				return err
			}
			since, err := r.Landings(store.LandingQuery{After: after})
			for _, l := range since {
				last = l.Seq
				for _, change := range l.Changes {
					paths = append(paths, change.Path)
				}
			}
			return err
		})
		p.landing.Unlock()
		if err != nil || len(open) == 0 {
			return paths, last, err
		}
		// Another process lands: it completes soon, or has died.
		select {
		case <-time.After(20 * time.Millisecond):
		case <-ctx.Done():
			return nil, 0, context.Cause(ctx)
		}
		for _, l := range open {
			if time.Since(l.At) > 2*time.Second {
				if p.opt.Gate == nil {
					return nil, 0, errUnrecovered
				}
				if err := p.opt.Gate.RecoverLandings(ctx, l.GrantID); err != nil {
					return nil, 0, err
				}
			}
		}
	}
}

// errUnrecovered reports a landing that only a pipeline that leads a run completes or rolls back.
var errUnrecovered = errors.New("a crash left a landing incomplete")

func errReadOnly(phase string) error {
	return fmt.Errorf("the phase %s only reads the code", phase)
}

// removeUncovered removes changes that the grant does not cover from a workspace, keeps them,
// and returns them as gaps. With readOnly no change is covered.
func (p *Pipeline) removeUncovered(ctx context.Context, t execution, q question, w *workspace.Workspace, readOnly bool) (gaps []flow.Gap, err error) {
	gaps = append([]flow.Gap{}, p.requestedBy(t, q)...)
	changes, err := p.survey(ctx, t, w, readOnly)
	if err != nil || len(changes) == 0 {
		return gaps, err
	}
	refused := p.opt.Gate.Check(ctx, t.Grant(), pathsOf(changes)...)
	var out []refusal
	for i, c := range changes {
		why := refused[i]
		switch {
		case readOnly:
			why = errReadOnly(q.phase)
		case why == nil && !c.CanLand():
			why = fmt.Errorf("it became %s, but only files can land", c.Now)
		case why == nil && p.isTooLarge(c):
			why = fmt.Errorf("it has %d MB, more than gate.keep_file_mb, and so could be neither kept nor undone", c.Now.Size>>20)
		}
		if why != nil {
			out = append(out, refusal{c, why})
		}
	}
	more, err := p.keepOut(ctx, t, q, w, out)
	gaps = append(gaps, more...)
	if err == nil && len(out) > 0 {
		_, err = w.TakeOut(ctx, pathsOf(changesOf(out)))
	}
	return gaps, err
}

func pathsOf(changes []workspace.Change) []string {
	paths := make([]string, len(changes))
	for i, c := range changes {
		paths[i] = c.Path
	}
	return paths
}

// keepGap keeps one change that cannot land.
func (p *Pipeline) keepGap(ctx context.Context, t execution, q question, w *workspace.Workspace, c refusal, answered []string) (flow.Gap, error) {
	change := gate.Change{Path: c.Path, Delete: c.Now == nil, Base: &c.Base}
	if c.Now != nil && c.Now.Mode.IsRegular() {
		change.Body = func() (io.ReadCloser, error) { return w.Open(c.Path) }
		mode := c.Now.Mode.Perm()
		change.Mode = &mode
	}
	gap := flow.Gap{Path: c.Path, Reason: reasonOf(c.why), Phase: q.phase, Planned: p.plannedBy(q), At: time.Now().UTC()}
	e, err := p.opt.Gate.Refuse(ctx, t.Grant(), change, c.why, answered...)
	gap.Rescue = e.ID
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) { // the path is no readable file, so there is nothing to keep
		err = nil
	}
	return gap, err
}

func reasonOf(why error) string {
	if v, ok := errors.AsType[*lockkeeper.LockViolationError](why); ok {
		return v.Check + ": " + v.Reason
	}
	return why.Error()
}

// plannedBy names the step that should have declared a path.
func (p *Pipeline) plannedBy(q question) string {
	if q.batch == "" {
		return q.phase
	}
	return p.opt.Flow.PlannedBy
}

// snapshot stores the changed files of a batch, and their originals.
func (p *Pipeline) snapshot(ctx context.Context, w *workspace.Workspace, blobs *documents.Folder) ([]flow.File, error) {
	changes, err := w.Changes(ctx)
	if err != nil {
		return nil, err
	}
	files := []flow.File{}
	for _, c := range changes {
		f := flow.File{Path: c.Path, Old: c.Base}
		if f.Old.Exists() {
			if err := p.keepOriginal(ctx, f, blobs); err != nil {
				return nil, err
			}
		}
		if c.Now != nil {
			body, err := w.Open(c.Path)
			if err != nil {
				return nil, err
			}
			sum, err := blobs.Keep(ctx, body)
			if err = errors.Join(err, body.Close()); err != nil {
				return nil, err
			}
			f.New = lockkeeper.Version{Kind: lockkeeper.File, Mode: c.Now.Mode.Perm(), Sum: sum}
		}
		if f.Old != f.New {
			files = append(files, f)
		}
	}
	return files, nil
}

// keepOriginal stores the original of a file. The tree still has it, because the batch holds
// its lock.
func (p *Pipeline) keepOriginal(ctx context.Context, f flow.File, blobs *documents.Folder) error {
	if kept, err := blobs.Kept(f.Old.Sum); err == nil {
		return kept.Close()
	}
	root, err := os.OpenRoot(p.opt.Root.Dir())
	if err != nil {
		return err
	}
	defer root.Close()
	body, err := root.Open(filepath.FromSlash(f.Path))
	if err != nil {
		return fmt.Errorf("read the original of %s: %w", f.Path, err)
	}
	sum, err := blobs.Keep(ctx, body)
	if err = errors.Join(err, body.Close()); err != nil {
		return err
	}
	if sum != f.Old.Sum {
		return &lockkeeper.MovedError{Path: f.Path}
	}
	return nil
}

// replay writes the stored changes of a batch into a new workspace. It returns the paths whose
// originals changed.
func (p *Pipeline) replay(ctx context.Context, w *workspace.Workspace, files []flow.File, blobs *documents.Folder) (moved []string, err error) {
	for _, f := range files {
		base, err := w.Base(f.Path)
		if err != nil {
			return nil, err
		}
		if base != f.Old {
			if base != f.New { // a file that has this content landed before a crash
				moved = append(moved, f.Path)
			}
			continue
		}
		if !f.New.Exists() {
			if err := w.Delete(ctx, f.Path); err != nil {
				return nil, err
			}
			continue
		}
		body, err := blobs.Kept(f.New.Sum)
		if err != nil {
			return nil, err
		}
		if err := errors.Join(w.Put(ctx, f.Path, f.New.Mode, body), body.Close()); err != nil {
			return nil, err
		}
	}
	return moved, nil
}

// maxDiff bounds how much of a diff an agent sees.
const maxDiff = 400 << 10

// diffOf returns the diff of a batch for agents and people.
func diffOf(files []flow.File, blobs *documents.Folder) (string, error) {
	var all strings.Builder
	for _, f := range files {
		before, err := content(blobs, f.Old)
		if err != nil {
			return "", err
		}
		after, err := content(blobs, f.New)
		if err != nil {
			return "", err
		}
		fmt.Fprintf(&all, "%s: %s\n", f.Path, howChanged(f))
		if isLong(blobs, f) {
			fmt.Fprintf(&all, "(longer than %d bytes: this diff covers only its beginning; read the file itself)\n", maxDiff)
		}
		if bytes.IndexByte(before, 0) >= 0 || bytes.IndexByte(after, 0) >= 0 {
			all.WriteString("(not text)\n")
			continue
		}
		all.Write(diff.Diff("a/"+f.Path, before, "b/"+f.Path, after))
		if all.Len() > maxDiff {
			all.WriteString("\n(the rest of the diff is omitted)\n")
			break
		}
	}
	return all.String(), nil
}

// isLong reports whether a file is longer than a diff shows.
func isLong(blobs *documents.Folder, f flow.File) bool {
	for _, v := range []lockkeeper.Version{f.Old, f.New} {
		if !v.Exists() {
			continue
		}
		kept, err := blobs.Kept(v.Sum)
		if err != nil {
			return true // the size is unknown
		}
		info, err := kept.Stat()
		kept.Close() // nothing was written
		if err != nil || info.Size() > maxDiff {
			return true
		}
	}
	return false
}

func howChanged(f flow.File) string {
	switch {
	case !f.Old.Exists():
		return "created"
	case !f.New.Exists():
		return "deleted"
	case f.Old.Sum == f.New.Sum:
		return fmt.Sprintf("mode %04o, was %04o", f.New.Mode, f.Old.Mode)
	}
	return "changed"
}

func content(blobs *documents.Folder, v lockkeeper.Version) ([]byte, error) {
	if !v.Exists() {
		return nil, nil
	}
	f, err := blobs.Kept(v.Sum)
	if err != nil {
		return nil, err
	}
	text, err := io.ReadAll(io.LimitReader(f, maxDiff))
	return text, errors.Join(err, f.Close())
}

// sumOf returns a hash of the changes of a batch.
func sumOf(files []flow.File) [32]byte {
	h := sha256.New()
	for _, f := range files {
		fmt.Fprintf(h, "%q %s %s\n", f.Path, f.Old, f.New)
	}
	return [32]byte(h.Sum(nil))
}

package run

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"lockkeeper"
	"lockkeeper/gate"
	"lockkeeper/internal/agent/workspace"
	"lockkeeper/internal/flow"
	"lockkeeper/internal/flow/documents"
	"lockkeeper/internal/flow/failure"
	"lockkeeper/internal/flow/progress"
	"lockkeeper/rescue"
)

// A batchRun takes one batch from its first phase to its landing, under one grant.
type batchRun struct {
	p      *Pipeline
	t      *timed
	unit   *progress.Unit
	batch  *progress.Batch
	folder *documents.Folder

	w        *workspace.Workspace
	done     *asked      // the unused result of an agent whose run crashed
	files    []flow.File // the changes of the batch so far, as stored
	lands    []uint64    // the landings of the batch so far
	alone    bool        // the batch took the token of Pipeline.lander, so no other batch of this run lands
	head     string      // git's HEAD when rewritten was last called
	checked  bool        // the files passed all checks in this workspace
	rechecks []flow.Recheck
	failure  failure.Failure // how the last failed command failed
}

// runBatch continues a batch after its last document, up to its landing.
func (p *Pipeline) runBatch(ctx context.Context, t *timed, unit, id string) (err error) {
	u, b, err := p.opt.Progress.BatchOf(ctx, unit, id)
	if err != nil {
		return err
	}
	if b == nil {
		return &lockkeeper.InputError{Field: "batch", Value: unit + "/" + id, Reason: "it is no longer in the plan", Next: "lockkeeper decide"}
	}
	if b.Next == "" {
		return nil // a run crashed after it completed the batch
	}
	if len(b.Blocked) > 0 {
		return nil // a conductor that disappeared queued it by newer documents: it is queued again when it is due
	}
	if b, err = p.opt.Progress.Begin(ctx, unit, id, p.opt.Actor.Name); err != nil {
		return err
	}
	l := &batchRun{p: p, t: t, unit: u, batch: b, folder: p.folder(unit, id)}
	defer func() { err = l.end(ctx, err) }()
	if err := l.open(ctx); err != nil {
		return err
	}
	return l.run(ctx)
}

func (p *Pipeline) folder(unit, batch string) *documents.Folder {
	return p.opt.Documents.Unit(unit).Batch(batch)
}

// open opens the workspace of the batch. It reuses the workspace that a crashed run left, or
// creates one with the stored changes of the batch.
func (l *batchRun) open(ctx context.Context) (err error) {
	if l.lands, err = l.notedLandings(ctx); err != nil {
		return err
	}
	if err := l.undoLandings(ctx, "the previous run crashed before it was tested"); err != nil {
		return err
	}
	l.files = l.batch.Files()
	if applied, _ := l.p.opt.Flow.Phase(l.first()); l.batch.Next == applied.Name {
		if l.done, l.w, err = l.p.takeOver(ctx, l.ask(l.first(), applied.Answer)); err != nil || l.w != nil {
			return err
		}
		l.done, l.files = nil, nil // the changes are lost with the workspace
	}
	if l.w, err = l.p.makeWorkspace(ctx, lockedPaths(l.t.Grant())); err != nil {
		return err
	}
	moved, err := l.p.replay(ctx, l.w, l.files, l.folder)
	if err != nil {
		return err
	}
	if len(moved) > 0 {
		return l.restart(ctx, moved)
	}
	if phase, ok := l.p.opt.Flow.Phase(l.batch.Next); ok && phase.Name != l.first() && l.p.opt.Land == "after_apply" {
		return l.landNow(ctx)
	}
	return nil
}

// restart starts a batch again because its files changed.
func (l *batchRun) restart(ctx context.Context, moved []string) error {
	l.p.news(NewsWarning, l.ask(l.batch.Next, ""), fmt.Sprintf("%s changed since the batch was applied (%s): the batch starts again", counted(len(moved), "file"), moved[0]))
	if err := errors.Join(l.keep(ctx, "its files changed since it was made"), l.keepComments(ctx)); err != nil {
		return err
	}
	if err := l.p.opt.Progress.RedoBatch(ctx, l.unit.Name, l.batch.ID, l.first(), l.p.opt.Actor.Name); err != nil {
		return err
	}
	if err := errors.Join(l.refresh(ctx), l.closeWorkspace(ctx, false)); err != nil {
		return err
	}
	l.files = nil
	var err error
	l.w, err = l.p.makeWorkspace(ctx, lockedPaths(l.t.Grant()))
	return err
}

func (l *batchRun) refresh(ctx context.Context) error {
	u, b, err := l.p.opt.Progress.BatchOf(ctx, l.unit.Name, l.batch.ID)
	if err != nil {
		return err
	}
	if b == nil {
		return &lockkeeper.InputError{Field: "batch", Value: l.batch.ID, Reason: "it is no longer in the plan"}
	}
	l.unit, l.batch = u, b
	return nil
}

func (l *batchRun) first() string { return l.p.opt.Flow.FirstOfBatch() }

// ask returns a question about the batch, without its prompt.
func (l *batchRun) ask(phase, form string) question {
	return question{unit: l.unit.Name, batch: l.batch.ID, phase: phase, form: form, agent: l.batch.Agent,
		purpose: fmt.Sprintf("%s/%s/%s/%s", l.p.opt.Flow.Name, l.unit.Name, l.batch.ID, phase) + "@" + flow.Digest(l.batch.Batch)[:8]}
}

func (l *batchRun) run(ctx context.Context) error {
	checks := 0
	for {
		switch l.batch.Next {
		case "", progress.ReviewPhase:
			return nil // the batch is complete, or waits for a person
		case progress.LandPhase:
			if l.batch.Review == nil && l.needsReview() {
				return l.review(ctx)
			}
			return l.land(ctx)
		}
		phase, _ := l.p.opt.Flow.Phase(l.batch.Next)
		step := batchSteps()[phase.Step]
		if step == nil {
			return fmt.Errorf("a batch has no phase %q", l.batch.Next)
		}
		if err := step(l, ctx, phase); err != nil {
			return err
		}
		if phase.Step == flow.Checking {
			checks++
			l.checked = checks == len(l.p.opt.Flow.Checks())
		}
		if err := l.refresh(ctx); err != nil {
			return err
		}
		if l.batch.Next == phase.Name {
			return fmt.Errorf("the phase %s of %s/%s left no valid document", phase.Name, l.unit.Name, l.batch.ID)
		}
	}
}

// apply calls the agent that makes the changes of the batch.
func (l *batchRun) apply(ctx context.Context, phase flow.Phase) error {
	q := l.ask(phase.Name, phase.Answer)
	a, err := l.done, error(nil)
	if a == nil {
		if q.prompt, err = l.prompt(ctx, q.phase, flow.Ask{}); err != nil {
			return err
		}
		if a, err = l.p.call(ctx, l.t, q, l.w, ""); err != nil {
			return err
		}
	}
	gaps, err := l.collect(ctx, q)
	if err != nil {
		return err
	}
	sum, err := answer[struct{ Summary string }](a.Result)
	if err != nil {
		return err
	}
	err = l.p.opt.Progress.PutApplied(ctx, l.unit.Name, l.batch.ID, flow.Applied{Batch: l.batch.Digest, Summary: sum.Summary, Files: l.files, Gaps: gaps}, []flow.Call{a.call})
	if err != nil {
		return err
	}
	if err := l.p.used(a); err != nil {
		return err
	}
	if len(l.files) == 0 {
		l.p.news(NewsDone, q, "no change")
		l.p.news(NewsWarning, q, "the agent changed none of the files it may change")
	} else {
		l.p.news(NewsDone, q, counted(len(l.files), "file"))
	}
	if l.p.opt.Land == "after_apply" {
		return l.landNow(ctx)
	}
	return nil
}

// collect removes the changes that the grant does not cover and stores the others.
func (l *batchRun) collect(ctx context.Context, q question) ([]flow.Gap, error) {
	gaps, err := l.p.removeUncovered(ctx, l.t, q, l.w, false)
	if err == nil {
		err = l.w.Restore(ctx)
	}
	if err != nil {
		return nil, err
	}
	l.files, err = l.p.snapshot(ctx, l.w, l.folder)
	return gaps, err
}

// phaseOf returns the batch phase with this name, or with a prompt of this name.
func (p *Pipeline) phaseOf(name string) (flow.Phase, bool) {
	for _, phase := range p.opt.Flow.Phases {
		if phase.Unit == flow.BatchUnit && (phase.Name == name || phase.Prompt == name) {
			return phase, true
		}
	}
	return flow.Phase{}, false
}

// prompt renders a prompt about the batch.
func (l *batchRun) prompt(ctx context.Context, name string, a flow.Ask) (string, error) {
	def := l.batch.Batch
	a.Name, a.Batch = l.unit.Name+"/"+l.batch.ID, &def
	a.Files = l.p.filesOf(l.unit.Name)
	if phase, ok := l.p.phaseOf(name); ok {
		for _, n := range l.unit.Notes(l.batch.ID, phase) {
			a.Notes = append(a.Notes, n.Text)
		}
	}
	if l.unit.Decisions != nil {
		for _, d := range l.unit.Decisions.Items {
			if slices.Contains(def.Items, d.ID) {
				a.Items = append(a.Items, d)
			}
		}
	}
	if l.unit.Analysis != nil {
		a.Analysis = text(l.unit.Analysis)
	}
	if l.p.opt.Flow.HasScreens() {
		docs, err := l.p.screenDocs(ctx, l.unit.Name)
		if err != nil {
			return "", err
		}
		a.Docs = docs
	}
	template := name
	if phase, ok := l.p.phaseOf(name); ok {
		template = phase.Prompt
	}
	a.Phase = template
	return l.p.opt.Prompts.Render(template, a)
}

// rescueTimeout bounds how long a batch that ends may copy its changes to the rescue shelf.
// Otherwise the workspace stays for the next run.
const rescueTimeout = 30 * time.Second

// end closes the workspace. If the batch failed, end keeps its changes for lockkeeper rescue. If
// the run only stopped the batch, end keeps the changes that are not stored. If keeping them
// fails, the workspace stays for the next run.
func (l *batchRun) end(ctx context.Context, failure error) error {
	ctx = context.WithoutCancel(ctx)
	if failure == nil {
		return l.closeWorkspace(ctx, false)
	}
	failure = errors.Join(failure, l.undoLandings(ctx, "it did not complete"))
	var paused *pausedError
	stopped := errors.As(failure, &paused) || l.p.stopping(failure)
	var lost error
	if l.w != nil {
		limited, cancel := context.WithTimeout(ctx, rescueTimeout)
		lost = l.shelve(limited, failure, stopped)
		cancel()
	}
	return errors.Join(failure, lost, l.closeWorkspace(ctx, lost != nil))
}

// shelve keeps the changes in the workspace for lockkeeper rescue. If unstored is set, it skips
// changes that are stored with the batch.
func (l *batchRun) shelve(ctx context.Context, why error, unstored bool) error {
	changes, err := l.w.Survey(ctx, l.batch.WriteTargets)
	if _, ok := errors.AsType[*workspace.LostError](err); ok {
		return nil // the agent removed its workspace: there is nothing to keep
	}
	if err != nil {
		return err
	}
	var keep []workspace.Change
	for _, c := range changes {
		stored, err := l.isStoredAs(c)
		if err != nil {
			return err
		}
		if !(stored && unstored) {
			keep = append(keep, c)
		}
	}
	_, err = l.p.shelveAll(ctx, l.w, keep, l.batch.WriteTargets, l.unit.Name+"/"+l.batch.ID, firstLine(why))
	return err
}

func firstLine(err error) string {
	line, _, _ := strings.Cut(err.Error(), "\n")
	return line
}

func (l *batchRun) closeWorkspace(ctx context.Context, keep bool) error {
	if l.w == nil {
		return nil
	}
	w := l.w
	l.w = nil
	l.p.crew.forget(w)
	return w.Close(ctx, keep)
}

// keep keeps the stored changes of the batch for lockkeeper rescue.
func (l *batchRun) keep(ctx context.Context, why string) error {
	for _, f := range l.files {
		e := rescue.Entry{Kind: rescue.Unlanded, Path: f.Path, Holder: l.unit.Name + "/" + l.batch.ID, Reason: why, Base: f.Old, Mode: f.New.Mode, Delete: !f.New.Exists()}
		var body gate.Body
		if !e.Delete {
			body = func() (io.ReadCloser, error) { return l.folder.Kept(f.New.Sum) }
		}
		if _, err := l.p.opt.Gate.Keep(ctx, e, body); err != nil {
			return err
		}
	}
	return nil
}

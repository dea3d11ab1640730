package pipeline

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"lockkeeper"
	"lockkeeper/internal/dossier"
	"lockkeeper/internal/flow"
	"lockkeeper/internal/sidecar"
	"lockkeeper/internal/workspace"
	"lockkeeper/rescue"
	"lockkeeper/sched"
)

// life is the lifecycle of one batch, from apply to its landing, under one grant.
type life struct {
	p      *Pipeline
	t      turn
	unit   *dossier.Unit
	batch  *dossier.Batch
	folder *sidecar.Folder

	w       *workspace.Workspace
	done    *asked      // what an agent had done already when somebody died
	files   []flow.File // what it has changed so far, as it is stored
	lands   []uint64    // what of it is in the tree already
	alone   bool        // nobody else lands meanwhile
	head    string      // of git, when it was last looked at
	checked bool        // it passed its tests in this copy, as it is
	again   []flow.Recheck
}

// runBatch takes a batch from where its documents end to its landing.
func (p *Pipeline) runBatch(ctx context.Context, t turn, unit, id string) (err error) {
	u, b, err := p.opt.Book.BatchOf(ctx, unit, id)
	if err != nil {
		return err
	}
	if b == nil {
		return &lockkeeper.InputError{Field: "batch", Value: unit + "/" + id, Reason: "it is not in the plan any more", Next: "lockkeeper decide"}
	}
	if b.Next == "" {
		return nil // somebody died between its end and the record of it
	}
	if b, err = p.opt.Book.Begin(ctx, unit, id, p.opt.Actor.Name); err != nil {
		return err
	}
	l := &life{p: p, t: t, unit: u, batch: b, folder: p.folder(unit, id)}
	defer func() { err = l.end(ctx, err) }()
	if err := l.open(ctx); err != nil {
		return err
	}
	return l.run(ctx)
}

func (p *Pipeline) folder(unit, batch string) *sidecar.Folder {
	return p.opt.Documents.Unit(unit).Sub("batches", batch)
}

// open makes the copy that the batch goes on in: the one that an agent left which nobody
// came back to, or a fresh one with all that is stored of the batch.
func (l *life) open(ctx context.Context) (err error) {
	if l.lands, err = l.notedLandings(ctx); err != nil {
		return err
	}
	if err := l.takeBack(ctx, "whoever ran it died before it was tested"); err != nil {
		return err
	}
	l.files = l.batch.Files()
	if l.batch.Next == l.first() {
		if l.done, l.w, err = l.p.takeOver(ctx, l.ask(l.first(), "summary")); err != nil || l.w != nil {
			return err
		}
		l.done, l.files = nil, nil // what it did is gone with its copy
	}
	if l.w, err = l.p.makeCopy(ctx); err != nil {
		return err
	}
	moved, err := l.p.layOver(ctx, l.w, l.files, l.folder)
	if err != nil {
		return err
	}
	if len(moved) > 0 {
		return l.beginAnew(ctx, moved)
	}
	if l.p.opt.Land == "after_apply" && (l.batch.Next == "test" || l.batch.Next == "ci" || l.batch.Next == "verify") {
		return l.landNow(ctx)
	}
	return nil
}

// beginAnew starts a batch again whose files are not what they were.
func (l *life) beginAnew(ctx context.Context, moved []string) error {
	l.p.news(NewsWarning, l.ask(l.batch.Next, ""), fmt.Sprintf("%s changed since the batch was applied (%s): it starts anew", counted(len(moved), "file"), moved[0]))
	if err := errors.Join(l.keep(ctx, "it was made for files that have changed since"), l.keepComments(ctx)); err != nil {
		return err
	}
	if err := l.p.opt.Book.RedoBatch(ctx, l.unit.Name, l.batch.ID, l.first(), l.p.opt.Actor.Name); err != nil {
		return err
	}
	if err := errors.Join(l.refresh(ctx), l.closeCopy(ctx, false)); err != nil {
		return err
	}
	l.files = nil
	var err error
	l.w, err = l.p.makeCopy(ctx)
	return err
}

// refresh reads the documents again.
func (l *life) refresh(ctx context.Context) error {
	u, b, err := l.p.opt.Book.BatchOf(ctx, l.unit.Name, l.batch.ID)
	if err != nil {
		return err
	}
	if b == nil {
		return &lockkeeper.InputError{Field: "batch", Value: l.batch.ID, Reason: "it is not in the plan any more"}
	}
	l.unit, l.batch = u, b
	return nil
}

// first is the first phase of the batch.
func (l *life) first() string { return firstOf(l.p.opt.Flow) }

func firstOf(f flow.Flow) string {
	for _, p := range f.Phases {
		if p.Unit == flow.BatchUnit {
			return p.Name
		}
	}
	return ""
}

// ask begins a question about the batch.
func (l *life) ask(phase, form string) question {
	return question{unit: l.unit.Name, batch: l.batch.ID, phase: phase, form: form, agent: l.batch.Agent,
		purpose: fmt.Sprintf("%s/%s/%s/%s", l.p.opt.Flow.Name, l.unit.Name, l.batch.ID, phase) + "@" + flow.Digest(l.batch.Batch)[:8]}
}

// run goes through the phases that are left.
func (l *life) run(ctx context.Context) error {
	tested := false
	for {
		var err error
		phase := l.batch.Next
		switch phase {
		case "":
			return nil
		case l.first():
			err = l.apply(ctx)
		case "test":
			err = l.check(ctx, l.tests())
			tested = err == nil
		case "ci":
			if err = l.check(ctx, l.ci()); err == nil {
				l.checked = tested
			}
		case "verify":
			err = l.verify(ctx)
		case dossier.ReviewPhase:
			return nil // a person has it
		case dossier.LandPhase:
			if l.batch.Review == nil && l.needsReview() {
				return l.review(ctx)
			}
			return l.land(ctx)
		default:
			err = fmt.Errorf("a batch has no phase %q", phase)
		}
		if err == nil {
			err = l.refresh(ctx)
		}
		if err != nil {
			return err
		}
		if l.batch.Next == phase {
			return fmt.Errorf("the phase %s of %s/%s left nothing that counts", phase, l.unit.Name, l.batch.ID)
		}
	}
}

// apply lets the agent do what the batch says.
func (l *life) apply(ctx context.Context) error {
	q := l.ask(l.first(), "summary")
	a, err := l.done, error(nil)
	if a == nil {
		if err := l.takeAgentSlot(ctx, q.phase); err != nil {
			return err
		}
		if q.prompt, err = l.prompt(ctx, q.phase, flow.Ask{}); err != nil {
			return err
		}
		l.p.news(NewsStarted, q, "")
		if a, err = l.p.ask(ctx, l.t, q, l.w); err != nil {
			return err
		}
	}
	gaps, err := l.takeUp(ctx, q)
	if err != nil {
		return err
	}
	sum, err := answer[struct{ Summary string }](a.Result)
	if err != nil {
		return err
	}
	err = l.p.opt.Book.PutApplied(ctx, l.unit.Name, l.batch.ID, flow.Applied{Batch: l.batch.Digest, Summary: sum.Summary, Files: l.files, Gaps: gaps}, []flow.Call{a.call})
	if err != nil {
		return err
	}
	if err := l.p.used(a); err != nil {
		return err
	}
	if len(l.files) == 0 {
		l.p.news(NewsDone, q, "no change")
		l.p.news(NewsWarning, q, "the agent changed nothing that it may change")
	} else {
		l.p.news(NewsDone, q, counted(len(l.files), "file"))
	}
	if l.p.opt.Land == "after_apply" {
		return l.landNow(ctx)
	}
	return nil
}

// takeAgentSlot waits for an agent slot, unless the batch was dispatched with one. A batch
// that starts again has the slots of the phase in which it failed.
func (l *life) takeAgentSlot(ctx context.Context, phase string) error {
	if l.t.Holds(sched.PoolAgent) && !l.t.Holds(sched.PoolTest) {
		return nil
	}
	return l.t.Phase(ctx, phase, sched.PoolAgent)
}

// takeUp takes out what the grant does not cover and stores the rest.
func (l *life) takeUp(ctx context.Context, q question) ([]flow.Gap, error) {
	gaps, err := l.p.takeOut(ctx, l.t, q, l.w, false)
	if err != nil {
		return nil, err
	}
	l.files, err = l.p.snapshot(ctx, l.w, l.folder)
	return gaps, err
}

// phaseOf is the phase that a prompt belongs to, by its own name or by that of the prompt.
func (p *Pipeline) phaseOf(name string) (flow.Phase, bool) {
	for _, phase := range p.opt.Flow.Phases {
		if phase.Unit == flow.BatchUnit && (phase.Name == name || phase.Prompt == name) {
			return phase, true
		}
	}
	return flow.Phase{}, false
}

// prompt is what an agent is asked about the batch.
func (l *life) prompt(ctx context.Context, name string, a flow.Ask) (string, error) {
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
	if l.p.opt.Flow.Name == "screens" {
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

// end closes the copy. What failed leaves its work on the shelf; of what only stopped,
// what is not stored. A copy whose work could not be shelved stays, for the next run.
func (l *life) end(ctx context.Context, failure error) error {
	ctx = context.WithoutCancel(ctx)
	if failure == nil {
		return l.closeCopy(ctx, false)
	}
	failure = errors.Join(failure, l.takeBack(ctx, "it did not come to its end"))
	var paused *pausedError
	stopped := errors.As(failure, &paused) || l.p.stopping(failure)
	var lost error
	if l.w != nil {
		lost = l.shelve(ctx, failure, stopped)
	}
	return errors.Join(failure, lost, l.closeCopy(ctx, lost != nil))
}

// shelve keeps what is in the copy, or only what is not stored anyway.
func (l *life) shelve(ctx context.Context, why error, unstored bool) error {
	changes, err := l.w.Changes(ctx)
	var gone *workspace.LostError
	if errors.As(err, &gone) {
		return nil // the agent made away with its copy: there is nothing to keep
	}
	if err != nil {
		return err
	}
	for _, c := range changes {
		stored, err := l.isStoredAs(c)
		if err == nil && !(stored && unstored) {
			err = l.p.shelve(ctx, l.w, c, l.unit.Name+"/"+l.batch.ID, firstLine(why))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// firstLine is how an error begins.
func firstLine(err error) string {
	line, _, _ := strings.Cut(err.Error(), "\n")
	return line
}

func (l *life) closeCopy(ctx context.Context, keep bool) error {
	if l.w == nil {
		return nil
	}
	w := l.w
	l.w = nil
	return w.Close(ctx, keep)
}

// keep puts what the batch has made and did not land on the shelf.
func (l *life) keep(ctx context.Context, why string) error {
	for _, f := range l.files {
		e := rescue.Entry{Kind: rescue.Unlanded, Path: f.Path, Holder: l.unit.Name + "/" + l.batch.ID, Reason: why, Base: f.Old, Mode: f.New.Mode, Delete: !f.New.Exists()}
		if e.Delete {
			if _, err := l.p.opt.Gate.Rescue().Put(ctx, e, nil); err != nil {
				return err
			}
			continue
		}
		body, err := l.folder.Kept(f.New.Sum)
		if err != nil {
			return err
		}
		_, err = l.p.opt.Gate.Rescue().Put(ctx, e, body)
		if err = errors.Join(err, body.Close()); err != nil {
			return err
		}
	}
	return nil
}

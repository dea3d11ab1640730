package progress

import (
	"context"
	"io"
	"os"
	"slices"
	"strings"

	"lockkeeper"
	"lockkeeper/internal/flow"
	"lockkeeper/internal/flow/documents"
)

// The states of a review.
const (
	Wanted   = "wanted"
	Approved = "approved"
	Returned = "returned"
)

// Begin records that work on a batch begins. From then on its plan cannot be edited. Begin
// refuses a batch that is not approved or comes after an incomplete one.
func (b *Tracker) Begin(ctx context.Context, unit, batch, by string) (begun *Batch, err error) {
	err = b.actOn(ctx, unit, batch, func(u *Unit) error {
		begun, err = u.needBatch("begin", batch)
		switch {
		case err != nil:
			return err
		case !begun.Approved:
			return refused("begin "+unit+"/"+batch, "approve plan "+unit, "it is not approved")
		case len(begun.Blocked) > 0:
			return refused("begin "+unit+"/"+batch, "wait until they are complete", "it comes after %s, which are not complete", list(begun.Blocked))
		case begun.Started != nil:
			return nil
		}
		about, err := b.about(by)
		if err != nil {
			return err
		}
		begun.Started = &Started{Batch: begun.Digest, By: by, At: about.WrittenAt}
		return begun.docs.started.replace(ctx, begun.Started, about)
	})
	if err != nil {
		return nil, err
	}
	return begun, nil
}

// PutApplied stores the changes of an agent. It refuses changes made from another definition of
// the batch.
func (b *Tracker) PutApplied(ctx context.Context, unit, batch string, a flow.Applied, calls []flow.Call) error {
	return putBatch(ctx, b, unit, batch, flow.ApplyFile, a, calls, func(is *Batch) (loaded[flow.Applied], error) {
		switch {
		case !is.Approved:
			return is.docs.applied, refused("store "+unit+"/"+batch+"/"+flow.ApplyFile, "approve plan "+unit, "the plan is no longer approved")
		case is.Started == nil:
			return is.docs.applied, refused("store "+unit+"/"+batch+"/"+flow.ApplyFile, "begin the batch first", "work on its current definition has not begun")
		case a.Batch != is.Digest:
			return is.docs.applied, refused("store "+unit+"/"+batch+"/"+flow.ApplyFile, "apply the current definition",
				"it was made from the definition %.12s, but the batch now has %.12s", a.Batch, is.Digest)
		}
		return is.docs.applied, is.needs(unit, flow.ApplyFile, is.Next == b.phaseFor(flow.ApplyFile))
	})
}

// PutCheck stores the outcome of a check phase of a batch.
func (b *Tracker) PutCheck(ctx context.Context, unit, batch, phase string, c flow.Checked, calls []flow.Call) error {
	p, ok := b.flow.Phase(phase)
	if !ok || p.Step != flow.Checking {
		return &lockkeeper.InputError{Field: "phase", Value: phase, Reason: "not a check phase of the flow " + b.flow.Name, Next: "use one of " + b.phaseNames()}
	}
	return putBatch(ctx, b, unit, batch, p.Output, c, calls, func(is *Batch) (loaded[flow.Checked], error) {
		return is.docs.checks[p.Output], is.needs(unit, p.Output, is.reached(phase))
	})
}

// PutVerification stores the report that compares the original and the modified code.
func (b *Tracker) PutVerification(ctx context.Context, unit, batch string, v flow.Verification, calls []flow.Call) error {
	return putBatch(ctx, b, unit, batch, flow.VerificationFile, v, calls, func(is *Batch) (loaded[flow.Verification], error) {
		return is.docs.verification, is.needs(unit, flow.VerificationFile, is.reached(b.phaseFor(flow.VerificationFile)))
	})
}

// reached reports whether every phase before this one is done. If a reviewer returned the diff,
// only the next phase is reached, because the checks run again.
func (b *Batch) reached(phase string) bool {
	at := slices.IndexFunc(b.phases, func(p flow.Phase) bool { return p.Name == phase })
	return at <= b.passed && (!b.Returned() || b.Next == phase)
}

// PutReview asks a person to review the verified files.
func (b *Tracker) PutReview(ctx context.Context, unit, batch string, files []flow.File) error {
	r := flow.Review{State: Wanted, Files: files, At: b.time()}
	return putBatch(ctx, b, unit, batch, flow.ReviewFile, r, nil, func(is *Batch) (loaded[flow.Review], error) {
		if is.Next == LandPhase && is.Review == nil && !slices.Equal(is.Files(), files) {
			return is.docs.review, &lockkeeper.InputError{Field: "files", Value: unit + "/" + batch, Reason: "they differ from the verified files", Next: "verify them first"}
		}
		return is.docs.review, is.needs(unit, flow.ReviewFile, is.Next == LandPhase && is.Review == nil)
	})
}

// PutLanded stores the landing of a batch. The batch is then complete.
func (b *Tracker) PutLanded(ctx context.Context, unit, batch string, l flow.Landed) error {
	return putBatch(ctx, b, unit, batch, flow.LandedFile, l, nil, func(is *Batch) (loaded[flow.Landed], error) {
		return is.docs.landed, is.needs(unit, flow.LandedFile, is.Next == LandPhase)
	})
}

// PutUndone records that the landing of a batch was undone.
func (b *Tracker) PutUndone(ctx context.Context, unit, batch, by string) error {
	return b.personal(ctx, unit, by, func(u *Unit) error {
		is, err := u.needBatch("undo", batch)
		if err != nil {
			return err
		}
		if is.Landed == nil || is.Landed.Undone != nil {
			return refused("undo "+unit+"/"+batch, "lockkeeper report", "it is %s, and none of its changes are in the tree", is.Status)
		}
		return is.setUndone(ctx, &flow.Approval{By: by, At: b.time()})
	})
}

// ClearUndone records that the landing of a batch is in the tree again.
func (b *Tracker) ClearUndone(ctx context.Context, unit, batch, by string) error {
	return b.personal(ctx, unit, by, func(u *Unit) error {
		is, err := u.needBatch("redo the landing of", batch)
		if err != nil {
			return err
		}
		if is.Landed == nil || is.Landed.Undone == nil {
			return refused("redo the landing of "+unit+"/"+batch, "lockkeeper report", "it is %s, and was not undone", is.Status)
		}
		return is.setUndone(ctx, nil)
	})
}

func (b *Batch) setUndone(ctx context.Context, undone *flow.Approval) error {
	l := *b.Landed
	l.Undone = undone
	return b.docs.landed.replace(ctx, l, b.docs.landed.doc.About)
}

// Keep stores the content of a file of a batch under its hash.
func (b *Tracker) Keep(ctx context.Context, unit, batch string, r io.Reader) (sum [32]byte, err error) {
	return b.folder(unit, batch).Keep(ctx, r)
}

// Kept opens a stored content. It returns fs.ErrNotExist if the content is not stored.
func (b *Tracker) Kept(unit, batch string, sum [32]byte) (*os.File, error) {
	return b.folder(unit, batch).Kept(sum)
}

func (b *Tracker) folder(unit, batch string) *documents.Folder {
	return b.documents.Unit(unit).Batch(batch)
}

// needs refuses a document if met is false, because an earlier document is missing or outdated.
func (b *Batch) needs(unit, file string, met bool) error {
	if met {
		return nil
	}
	return refused("store "+unit+"/"+b.ID+"/"+file, "run the phase "+b.Next, "the batch is %s, and its next phase is %s", b.Status, b.Next)
}

// Returned reports whether a reviewer returned the diff.
func (b *Batch) Returned() bool { return b.Review != nil && b.Review.State == Returned }

// needBatch returns the batch for an act, or refuses the act.
func (u *Unit) needBatch(act, id string) (*Batch, error) {
	if u.Plan == nil {
		return nil, refused(act+" "+u.Name+"/"+id, "run the phase "+u.phase, "%s is %s and has no batches", u.Name, u.status)
	}
	is, ok := u.Batch(id)
	if !ok {
		return nil, &lockkeeper.InputError{Field: "batch", Value: id, Reason: u.Name + " has no such batch", Next: "use one of " + listOf(u.Batches, func(b Batch) string { return b.ID })}
	}
	return is, nil
}

// putBatch stores the output of a phase of a batch. It first moves later documents away, from the
// last to the first, because they were made from the old output. A review stays, because it names
// its files. Replaced documents are kept.
func putBatch[T any](ctx context.Context, b *Tracker, unit, batch, file string, value T, calls []flow.Call, may func(*Batch) (loaded[T], error)) error {
	return b.actOn(ctx, unit, batch, func(u *Unit) error {
		is, err := u.needBatch("store "+file+" of", batch)
		if err != nil {
			return err
		}
		was, err := may(is)
		if is.Next != b.phaseFor(file) && equal(was.value, value) {
			return nil
		}
		if is.Landed != nil && is.Landed.Undone == nil {
			return refused("store "+unit+"/"+batch+"/"+file, "undo the landing first", "the batch landed at %s", stamp(is.Landed.At))
		}
		if err != nil {
			return err
		}
		if err := b.check(file, value); err != nil {
			return err
		}
		for _, later := range is.after(file) {
			if err := later.archive(ctx); err != nil {
				return err
			}
		}
		if err := was.keepCopy(ctx); err != nil {
			return err
		}
		err = b.write(ctx, was.stored, value, author(calls), calls...)
		if err == nil && is.Returned() {
			err = is.docs.review.archive(ctx) // the archive comes last, so that a crash loses no comment
		}
		return err
	})
}

// phaseFor returns the name of the batch phase that writes a document.
func (b *Tracker) phaseFor(file string) string {
	switch file {
	case flow.ReviewFile:
		return ReviewPhase
	case flow.LandedFile:
		return LandPhase
	}
	p, _ := b.flow.PhaseOf(file)
	return p.Name
}

// stored lists the documents of a batch, the last first.
func (b *Batch) stored() []stored {
	p := b.docs
	list := []stored{p.landed.stored, p.review.stored}
	for _, phase := range slices.Backward(b.phases) {
		switch phase.Step {
		case flow.Applying:
			list = append(list, p.applied.stored)
		case flow.Checking:
			list = append(list, p.checks[phase.Output].stored)
		case flow.Verifying:
			list = append(list, p.verification.stored)
		}
	}
	return list
}

// after lists the documents that become outdated when this one is written, the last first.
func (b *Batch) after(file string) (later []stored) {
	for _, f := range b.stored() {
		if f.name == file {
			break
		}
		if f.name != flow.ReviewFile || file == flow.ApplyFile {
			later = append(later, f)
		}
	}
	return later
}

// Redo repeats a phase of a unit and all later phases: it moves their documents away. Answers to
// topics stay, because a new analysis may ask the same questions.
func (b *Tracker) Redo(ctx context.Context, unit, phase, by string) error {
	from := slices.IndexFunc(b.flow.Phases, func(p flow.Phase) bool { return p.Name == phase && p.Unit != flow.BatchUnit && p.Output != "" })
	if from < 0 {
		return &lockkeeper.InputError{Field: "phase", Value: phase, Reason: "not a phase of the units of " + b.flow.Name, Next: "use one of " + b.phaseNames()}
	}
	return b.personal(ctx, unit, by, func(u *Unit) error {
		for _, f := range u.docs.stored() {
			output := strings.Replace(f.name, ".draft.", ".", 1)
			at := slices.IndexFunc(b.flow.Phases, func(p flow.Phase) bool { return p.Output == output && p.Unit != flow.BatchUnit })
			if at < from {
				continue
			}
			if err := f.archive(ctx); err != nil {
				return err
			}
		}
		return nil
	})
}

// RedoBatch repeats a phase of a batch and all later phases. A landing must be undone first.
func (b *Tracker) RedoBatch(ctx context.Context, unit, batch, phase, by string) error {
	p, ok := b.flow.Phase(phase)
	if !ok || p.Unit != flow.BatchUnit {
		return &lockkeeper.InputError{Field: "phase", Value: phase, Reason: "not a phase of the batches of " + b.flow.Name, Next: "use one of " + b.phaseNames()}
	}
	return b.personal(ctx, unit, by, func(u *Unit) error {
		is, err := u.needBatch("redo", batch)
		if err != nil {
			return err
		}
		if is.Landed != nil && is.Landed.Undone == nil {
			return refused("redo "+unit+"/"+batch, "undo the landing first", "it landed at %s", stamp(is.Landed.At))
		}
		for _, f := range is.stored() {
			if err := f.archive(ctx); err != nil || f.name == p.Output {
				return err
			}
		}
		return nil
	})
}

// stored lists the documents of a unit, the last first.
func (p unitDocs) stored() []stored {
	list := []stored{p.proposed.stored, p.plan.stored, p.decisions.stored, p.draft.stored, p.audit.stored, p.synthesis.stored, p.extract.stored, p.analysis.stored}
	for _, s := range p.others {
		list = append(list, s.stored)
	}
	return list
}

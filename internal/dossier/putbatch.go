package dossier

import (
	"context"
	"io"
	"os"
	"slices"

	"lockkeeper"
	"lockkeeper/internal/flow"
	"lockkeeper/internal/sidecar"
)

// The states of a review.
const (
	Wanted   = "wanted"
	Approved = "approved"
	Returned = "returned"
)

// Begin notes that work on a batch begins, from where it stands. From then on its plan
// can no longer be edited. It is refused before a person agreed to it, and while a batch
// that comes first is not complete.
func (b *Book) Begin(ctx context.Context, unit, batch, by string) (begun *Batch, err error) {
	err = b.actOn(ctx, unit, batch, func(u *Unit) error {
		begun, err = u.needBatch("begin", batch)
		switch {
		case err != nil:
			return err
		case !begun.Approved:
			return refused("begin "+unit+"/"+batch, "approve plan "+unit, "nobody has agreed to it")
		case len(begun.Blocked) > 0:
			return refused("begin "+unit+"/"+batch, "wait for those", "it comes after %s, which are not complete", list(begun.Blocked))
		case begun.Started != nil:
			return nil
		}
		about, err := b.about(by)
		if err != nil {
			return err
		}
		begun.Started = &Started{Batch: begun.Digest, By: by, At: about.WrittenAt}
		return replace(ctx, begun.pages.folder, begun.pages.started.doc, begun.pages.started.bad, startedFile, begun.Started, about)
	})
	if err != nil {
		return nil, err
	}
	return begun, nil
}

// PutApplied stores what an agent made of a batch. It has to say from which definition
// it was made; if the batch has another one by now it is refused.
func (b *Book) PutApplied(ctx context.Context, unit, batch string, a flow.Applied, calls []flow.Call) error {
	return putBatch(ctx, b, unit, batch, flow.ApplyFile, a, calls, func(is *Batch) (sheet[flow.Applied], error) {
		switch {
		case !is.Approved:
			return is.pages.applied, refused("store "+unit+"/"+batch+"/"+flow.ApplyFile, "approve plan "+unit, "nobody agrees to the plan any more")
		case is.Started == nil:
			return is.pages.applied, refused("store "+unit+"/"+batch+"/"+flow.ApplyFile, "begin the batch first", "work on it, as it is now, was not begun")
		case a.Batch != is.Digest:
			return is.pages.applied, refused("store "+unit+"/"+batch+"/"+flow.ApplyFile, "apply the batch as it is now",
				"it was made from the definition %.12s, and the batch has %.12s", a.Batch, is.Digest)
		}
		return is.pages.applied, is.needs(unit, flow.ApplyFile, is.Next == b.phaseFor(flow.ApplyFile))
	})
}

// PutTests stores how the tests of a batch went.
func (b *Book) PutTests(ctx context.Context, unit, batch string, c flow.Checked, calls []flow.Call) error {
	return putBatch(ctx, b, unit, batch, flow.TestFile, c, calls, func(is *Batch) (sheet[flow.Checked], error) {
		return is.pages.tests, is.needs(unit, flow.TestFile, is.Applied != nil)
	})
}

// PutCI stores how the CI checks of a batch went.
func (b *Book) PutCI(ctx context.Context, unit, batch string, c flow.Checked, calls []flow.Call) error {
	return putBatch(ctx, b, unit, batch, flow.CIFile, c, calls, func(is *Batch) (sheet[flow.Checked], error) {
		return is.pages.ci, is.needs(unit, flow.CIFile, is.Tested.Cleared() && !is.Returned())
	})
}

// PutVerification stores the report on original and modified code.
func (b *Book) PutVerification(ctx context.Context, unit, batch string, v flow.Verification, calls []flow.Call) error {
	return putBatch(ctx, b, unit, batch, flow.VerificationFile, v, calls, func(is *Batch) (sheet[flow.Verification], error) {
		return is.pages.verification, is.needs(unit, flow.VerificationFile, is.CI.Cleared() && !is.Returned())
	})
}

// PutReview asks for a person's word on what was verified.
func (b *Book) PutReview(ctx context.Context, unit, batch string, files []flow.File) error {
	r := flow.Review{State: Wanted, Files: files, At: b.time()}
	return putBatch(ctx, b, unit, batch, flow.ReviewFile, r, nil, func(is *Batch) (sheet[flow.Review], error) {
		if is.Next == LandPhase && is.Review == nil && !slices.Equal(is.Verification.Files, files) {
			return is.pages.review, &lockkeeper.InputError{Field: "files", Value: unit + "/" + batch, Reason: "not those that were verified", Next: "verify them first"}
		}
		return is.pages.review, is.needs(unit, flow.ReviewFile, is.Next == LandPhase && is.Review == nil)
	})
}

// PutLanded stores how a batch reached the shared tree: it is complete then.
func (b *Book) PutLanded(ctx context.Context, unit, batch string, l flow.Landed) error {
	return putBatch(ctx, b, unit, batch, flow.LandedFile, l, nil, func(is *Batch) (sheet[flow.Landed], error) {
		return is.pages.landed, is.needs(unit, flow.LandedFile, is.Next == LandPhase)
	})
}

// PutUndone notes that what a batch landed was taken back.
func (b *Book) PutUndone(ctx context.Context, unit, batch, by string) error {
	return b.personal(ctx, unit, by, func(u *Unit) error {
		is, err := u.needBatch("undo", batch)
		if err != nil {
			return err
		}
		if is.Landed == nil || is.Landed.Undone != nil {
			return refused("undo "+unit+"/"+batch, "look at what landed", "it is %s, and nothing of it is in the tree", is.Status)
		}
		return is.setUndone(ctx, &flow.Approval{By: by, At: b.time()})
	})
}

// TakeBackUndone notes that what a batch landed is in the tree again.
func (b *Book) TakeBackUndone(ctx context.Context, unit, batch, by string) error {
	return b.personal(ctx, unit, by, func(u *Unit) error {
		is, err := u.needBatch("take back the undo of", batch)
		if err != nil {
			return err
		}
		if is.Landed == nil || is.Landed.Undone == nil {
			return refused("take back the undo of "+unit+"/"+batch, "look at what landed", "it is %s, and was not undone", is.Status)
		}
		return is.setUndone(ctx, nil)
	})
}

func (b *Batch) setUndone(ctx context.Context, undone *flow.Approval) error {
	l := *b.Landed
	l.Undone = undone
	return replace(ctx, b.pages.folder, b.pages.landed.doc, nil, flow.LandedFile, l, b.pages.landed.doc.About)
}

// Keep keeps the content of a file of a batch under its hash.
func (b *Book) Keep(ctx context.Context, unit, batch string, r io.Reader) (sum [32]byte, err error) {
	return b.folder(unit, batch).Keep(ctx, r)
}

// Kept opens a content that was kept. It is fs.ErrNotExist if there is none.
func (b *Book) Kept(unit, batch string, sum [32]byte) (*os.File, error) {
	return b.folder(unit, batch).Kept(sum)
}

func (b *Book) folder(unit, batch string) *sidecar.Folder {
	return b.sidecar.Unit(unit).Sub("batches", batch)
}

// needs refuses an output whose predecessor does not count.
func (b *Batch) needs(unit, file string, met bool) error {
	if met {
		return nil
	}
	return refused("store "+unit+"/"+b.ID+"/"+file, "go on with the phase "+b.Next, "the batch is %s, its phase %s comes next", b.Status, b.Next)
}

// Returned reports whether a person looked at the diff and wants it changed.
func (b *Batch) Returned() bool { return b.Review != nil && b.Review.State == Returned }

// needBatch finds a batch for an act.
func (u *Unit) needBatch(act, id string) (*Batch, error) {
	if u.Plan == nil {
		return nil, refused(act+" "+u.Name+"/"+id, "go on with the phase "+u.phase, "%s is %s and has no batches", u.Name, u.status)
	}
	is, ok := u.Batch(id)
	if !ok {
		var ids []string
		for _, batch := range u.Batches {
			ids = append(ids, batch.ID)
		}
		return nil, &lockkeeper.InputError{Field: "batch", Value: id, Reason: u.Name + " has no such batch", Next: "use one of " + list(ids)}
	}
	return is, nil
}

// putBatch stores the output of a phase of a batch. What was made from an earlier output
// is moved away first, the last before the others, so that nothing is ever behind what it
// was not made from. A review stays: it says which files it is about. Nothing that an
// agent was paid for, or that a person wrote into it, is overwritten.
func putBatch[T any](ctx context.Context, b *Book, unit, batch, file string, value T, calls []flow.Call, may func(*Batch) (sheet[T], error)) error {
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
		if err := check(file, value); err != nil {
			return err
		}
		for _, later := range is.pages.after(file) {
			if err := archive(ctx, is.pages.folder, later.doc, later.bad, later.name); err != nil {
				return err
			}
		}
		if was.doc != nil {
			if err := shelve(ctx, is.pages.folder, was.doc, file); err != nil {
				return err
			}
		}
		about, err := b.about(author(calls), calls...)
		if err != nil {
			return err
		}
		err = replace(ctx, is.pages.folder, was.doc, was.bad, file, value, about)
		if err == nil && is.Returned() {
			// Answered. Not before what was made of it is stored: a crash must not lose a person's words.
			err = archive(ctx, is.pages.folder, is.pages.review.doc, is.pages.review.bad, flow.ReviewFile)
		}
		return err
	})
}

// phaseFor names the phase of a batch that leaves a document.
func (b *Book) phaseFor(file string) string {
	switch file {
	case flow.ReviewFile:
		return ReviewPhase
	case flow.LandedFile:
		return LandPhase
	}
	p, _ := b.phaseOf(file)
	return p.Name
}

// filed is a document, whatever its type.
type filed struct {
	name string
	doc  *sidecar.Doc
	bad  *sidecar.MalformedError
}

// filed lists the documents of a batch, the last first.
func (p *batchPages) filed() []filed {
	return []filed{
		{flow.LandedFile, p.landed.doc, p.landed.bad},
		{flow.ReviewFile, p.review.doc, p.review.bad},
		{flow.VerificationFile, p.verification.doc, p.verification.bad},
		{flow.CIFile, p.ci.doc, p.ci.bad},
		{flow.TestFile, p.tests.doc, p.tests.bad},
		{flow.ApplyFile, p.applied.doc, p.applied.bad},
	}
}

// after lists the documents that do not count once another one is written, the last
// first.
func (p *batchPages) after(file string) (later []filed) {
	for _, f := range p.filed() {
		if f.name == file {
			break
		}
		if f.name != flow.ReviewFile || file == flow.ApplyFile {
			later = append(later, f)
		}
	}
	return later
}

package dossier

import (
	"context"
	"slices"
	"time"

	"lockkeeper/internal/flow"
	"lockkeeper/internal/sidecar"
)

// Batch is where a batch stands.
type Batch struct {
	flow.Batch
	Digest       string             `json:"digest"`            // of its definition
	Approved     bool               `json:"approved"`          // a person agreed to it; nothing is applied before
	Started      *Started           `json:"started,omitempty"` // work on this definition has begun
	Stale        bool               `json:"stale,omitempty"`   // what was made of it was made from another definition: it starts anew
	Applied      *flow.Applied      `json:"applied,omitempty"`
	Tested       *flow.Checked      `json:"tested,omitempty"`
	CI           *flow.Checked      `json:"ci,omitempty"`
	Verification *flow.Verification `json:"verification,omitempty"`
	Review       *flow.Review       `json:"review,omitempty"`
	Landed       *flow.Landed       `json:"landed,omitempty"`
	Blocked      []string           `json:"blocked,omitempty"` // ids of batches that come first and are not complete
	Next         string             `json:"next,omitempty"`    // the phase; empty: none is left
	Status       string             `json:"status"`

	// AwaitsReview: it is verified, and a person has to look at it before it lands.
	AwaitsReview bool `json:"awaits_review,omitempty"`

	pages *batchPages
}

// Started says when work on a definition began.
type Started struct {
	Batch string    `json:"batch_sha256"`
	By    string    `json:"by"`
	At    time.Time `json:"at"`
}

// batchPages are the documents of a batch, whether they count or not.
type batchPages struct {
	folder       *sidecar.Folder
	started      sheet[Started]
	applied      sheet[flow.Applied]
	tests        sheet[flow.Checked]
	ci           sheet[flow.Checked]
	verification sheet[flow.Verification]
	review       sheet[flow.Review]
	landed       sheet[flow.Landed]
}

// batch reads the documents of a batch.
func (r *reader) batch(ctx context.Context, id string) *batchPages {
	in := &reader{unit: r.unit, folder: r.unit.folder.Sub("batches", id), where: "batches/" + id + "/", err: r.err}
	p := &batchPages{
		folder:       in.folder,
		started:      private[Started](ctx, in, startedFile),
		applied:      published[flow.Applied](ctx, in, flow.ApplyFile),
		tests:        published[flow.Checked](ctx, in, flow.TestFile),
		ci:           published[flow.Checked](ctx, in, flow.CIFile),
		verification: published[flow.Verification](ctx, in, flow.VerificationFile),
		review:       published[flow.Review](ctx, in, flow.ReviewFile),
		landed:       published[flow.Landed](ctx, in, flow.LandedFile),
	}
	r.err = in.err
	return p
}

// batch judges the documents of a batch in the order of its phases. The first that is
// missing, or that says that something did not pass, decides; nothing behind it counts.
func (u *Unit) batch(f flow.Flow, def flow.Batch, approved bool) Batch {
	p := u.pages.batches[def.ID]
	b := Batch{Batch: def, Digest: flow.Digest(def), Approved: approved, pages: p}
	if s := p.started.value; s != nil && s.Batch == b.Digest {
		b.Started = s
	}
	b.Stale = p.applied.value != nil && p.applied.value.Batch != b.Digest
	phases := slices.DeleteFunc(slices.Clone(f.Phases), func(p flow.Phase) bool { return p.Unit != flow.BatchUnit })
	for _, phase := range phases {
		if !b.accept(phase.Output) {
			b.Next, b.Status = phase.Name, phase.Status
			return b
		}
	}
	last := phases[len(phases)-1]
	b.Review, b.Landed = p.review.value, p.landed.value
	if b.Review != nil && !slices.Equal(b.Review.Files, b.Verification.Files) {
		b.Review, b.Landed = nil, nil // it was of another diff
	}
	b.AwaitsReview = b.Review != nil && b.Review.State == Wanted
	switch {
	case b.AwaitsReview:
		b.Next, b.Status, b.Landed = ReviewPhase, last.Status, nil
	case b.Returned():
		mends := phases[slices.IndexFunc(phases, func(p flow.Phase) bool { return p.Fixing != "" })]
		b.Next, b.Status, b.Landed = mends.Name, mends.Fixing, nil
	case b.Landed == nil:
		b.Next, b.Status = LandPhase, last.Status
	case len(b.Landed.Files) == 0 && len(b.Landed.Landings) == 0:
		b.Status = flow.NoChange
	default:
		b.Status = flow.Complete
	}
	return b
}

// accept takes up the output of a phase. It says whether the phase is done.
func (b *Batch) accept(output string) bool {
	p := b.pages
	switch output {
	case flow.ApplyFile:
		if b.Stale {
			return false
		}
		b.Applied = p.applied.value
		return b.Applied != nil
	case flow.TestFile:
		b.Tested = p.tests.value
		return b.Tested.Cleared()
	case flow.CIFile:
		b.CI = p.ci.value
		return b.CI.Cleared()
	case flow.VerificationFile:
		b.Verification = p.verification.value
		return b.Verification != nil && b.Verification.Verdict.Verdict == "pass"
	}
	return true
}

// Files is what a batch has changed, by the last of its documents that counts: what would
// land, and what whoever goes on with it begins with.
func (b *Batch) Files() []flow.File {
	switch {
	case b.Verification != nil:
		return b.Verification.Files
	case b.CI.Cleared():
		return b.CI.Files
	case b.Tested.Cleared():
		return b.Tested.Files
	case b.Applied != nil:
		return b.Applied.Files
	}
	return nil
}

// Untested says why nothing tests what a batch changed; empty: something does, or it is not
// known yet.
func (b *Batch) Untested() string {
	if b.Tested == nil || b.CI == nil || b.Tested.State != flow.CheckSkipped || b.CI.State != flow.CheckSkipped {
		return ""
	}
	return b.Tested.Skipped + ", and " + b.CI.Skipped
}

// Summary is what the last agent that changed something says of it.
func (b *Batch) Summary() string {
	for _, c := range []*flow.Checked{b.CI, b.Tested} {
		if c != nil && c.Summary != "" {
			return c.Summary
		}
	}
	if b.Applied == nil {
		return ""
	}
	return b.Applied.Summary
}

// blocked lists the batches that a batch comes after and that are not complete.
func (u *Unit) blocked(of Batch) (ids []string) {
	for _, id := range of.After {
		if before, ok := u.Batch(id); !ok || !flow.IsDone(before.Status) {
			ids = append(ids, id)
		}
	}
	return ids
}

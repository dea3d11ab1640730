package progress

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"lockkeeper/internal/flow"
)

type Batch struct {
	flow.Batch
	Digest       string             `json:"digest"`            // digest of the batch's definition
	Approved     bool               `json:"approved"`          // nothing is applied without approval
	Started      *Started           `json:"started,omitempty"` // work on this definition has begun
	Stale        bool               `json:"stale,omitempty"`   // the batch was applied from another definition, so it starts again
	Applied      *flow.Applied      `json:"applied,omitempty"`
	Checks       []Check            `json:"-"`                // the check phases that have a document, in order
	Tested       *flow.Checked      `json:"tested,omitempty"` // the result of the tests, for JSON
	CI           *flow.Checked      `json:"ci,omitempty"`     // the result of the check phase with its own commands, for JSON
	Verification *flow.Verification `json:"verification,omitempty"`
	Review       *flow.Review       `json:"review,omitempty"`
	Landed       *flow.Landed       `json:"landed,omitempty"`
	Blocked      []string           `json:"blocked,omitempty"` // ids of batches that come first and are not complete
	Next         string             `json:"next,omitempty"`    // the next phase; empty: none is left
	Status       string             `json:"status"`

	// AwaitsReview is true if the batch is verified and a person must review it before it lands.
	AwaitsReview bool `json:"awaits_review,omitempty"`

	Excluded *Exclusion `json:"excluded,omitempty"` // set if no run works on the batch, which is not complete
	Left     string     `json:"left,omitempty"`     // the phase that was next when the batch was excluded

	docs   *batchDocs
	phases []flow.Phase // the batch phases of the flow
	passed int          // how many phases are done
}

// A Check is the outcome of one check phase of a batch.
type Check struct {
	Phase flow.Phase
	*flow.Checked
	stored
}

// A Started records when work on a definition began.
type Started struct {
	Batch string    `json:"batch_sha256"`
	By    string    `json:"by"`
	At    time.Time `json:"at"`
}

type batchDocs struct {
	started      loaded[Started]
	applied      loaded[flow.Applied]
	checks       map[string]loaded[flow.Checked] // by file
	verification loaded[flow.Verification]
	review       loaded[flow.Review]
	landed       loaded[flow.Landed]
}

// batch reads the documents of a batch.
func (r *reader) batch(ctx context.Context, f flow.Flow, id string) *batchDocs {
	in := newReader(ctx, r.unit, r.unit.folder.Batch(id))
	in.where, in.err = "batches/"+id+"/", r.err
	p := &batchDocs{
		started: private[Started](ctx, in, startedFile),
		applied: published[flow.Applied](ctx, in, flow.ApplyFile),
		checks:  map[string]loaded[flow.Checked]{},
	}
	for _, phase := range f.Checks() {
		p.checks[phase.Output] = load[flow.Checked](ctx, in, phase.Output, phase.CheckOutput)
	}
	p.verification = published[flow.Verification](ctx, in, flow.VerificationFile)
	p.review = published[flow.Review](ctx, in, flow.ReviewFile)
	p.landed = published[flow.Landed](ctx, in, flow.LandedFile)
	r.err = errors.Join(in.err, in.open.Close())
	return p
}

// batch evaluates the documents of a batch in the order of its phases. The first document that is
// missing or reports a failure determines the status. Later documents do not count.
func (u *Unit) batch(f flow.Flow, def flow.Batch, approved bool) Batch {
	p := u.docs.batches[def.ID]
	b := Batch{Batch: def, Digest: flow.Digest(def), Approved: approved, docs: p, phases: f.BatchPhases()}
	if s := p.started.value; s != nil && s.Batch == b.Digest {
		b.Started = s
	}
	b.Stale = p.applied.value != nil && p.applied.value.Batch != b.Digest
	for _, phase := range b.phases {
		if !b.accept(phase) {
			b.Next, b.Status = phase.Name, phase.Status
			return b
		}
		b.passed++
	}
	last := b.phases[len(b.phases)-1]
	b.Review, b.Landed = p.review.value, p.landed.value
	if b.Review != nil && !slices.Equal(b.Review.Files, b.Files()) {
		b.Review, b.Landed = nil, nil // the review and the landings are about another diff
	}
	b.AwaitsReview = b.Review != nil && b.Review.State == Wanted
	switch {
	case b.AwaitsReview:
		b.Next, b.Status, b.Landed = ReviewPhase, flow.AwaitingReview, nil
	case b.Returned():
		fixes := b.phases[max(0, slices.IndexFunc(b.phases, func(p flow.Phase) bool { return p.Step == flow.Checking }))]
		b.Next, b.Status, b.Landed = fixes.Name, cmp.Or(fixes.Fixing, fixes.Status), nil
	case b.Landed == nil:
		b.Next, b.Status = LandPhase, last.Status
	case len(b.Landed.Files) == 0 && len(b.Landed.Landings) == 0:
		b.Status = flow.NoChange
	default:
		b.Status = flow.Complete
	}
	return b
}

// accept uses the document of a phase and reports whether the phase is done.
func (b *Batch) accept(phase flow.Phase) bool {
	p := b.docs
	switch phase.Step {
	case flow.Applying:
		if b.Stale {
			return false
		}
		b.Applied = p.applied.value
		return b.Applied != nil
	case flow.Checking:
		s := p.checks[phase.Output]
		if s.value == nil {
			return false
		}
		b.Checks = append(b.Checks, Check{phase, s.value, s.stored})
		if phase.Commands == "" {
			b.Tested = s.value
		} else {
			b.CI = s.value
		}
		return s.value.Cleared()
	case flow.Verifying:
		b.Verification = p.verification.value
		return b.Verification != nil && b.Verification.Verdict.Verdict == "pass"
	}
	return true
}

// Check returns the outcome of a check phase, or nil if no valid outcome is stored.
func (b *Batch) Check(phase string) *flow.Checked {
	for _, c := range b.Checks {
		if c.Phase.Name == phase {
			return c.Checked
		}
	}
	return nil
}

// Files returns the changed files of the batch, from its last valid document. These files would
// land, and the next phase starts from them.
func (b *Batch) Files() []flow.File {
	if b.Verification != nil {
		return b.Verification.Files
	}
	for _, c := range slices.Backward(b.Checks) {
		if c.Cleared() {
			return c.Files
		}
	}
	if b.Applied != nil {
		return b.Applied.Files
	}
	return nil
}

// Untested returns why no command tested the changes of the batch. It returns "" if a command
// did, or if a check is not done yet.
func (b *Batch) Untested() string {
	var why []string
	for _, c := range b.Checks {
		if c.State == flow.CheckSkipped {
			why = append(why, c.Skipped)
		}
	}
	if checks := slices.DeleteFunc(slices.Clone(b.phases), func(p flow.Phase) bool { return p.Step != flow.Checking }); len(why) < len(checks) {
		return ""
	}
	return strings.Join(why, ", and ")
}

// AsBefore returns what fails in the checks of the batch exactly as it did before the run, or "" if
// nothing does.
func (b *Batch) AsBefore() string {
	var what []string
	for _, c := range b.Checks {
		if c.State == flow.CheckAsBefore {
			what = append(what, c.AsBefore)
		}
	}
	return strings.Join(what, ", and ")
}

// Fixes counts how often an agent fixed a failed check.
func (b *Batch) Fixes() (n int) {
	for _, c := range b.Checks {
		n += c.Fixes
	}
	return n
}

// Asked lists the changes that a reviewer requested, if the diff was returned.
func (b *Batch) Asked() []string {
	for _, c := range b.Checks {
		if len(c.Asked) > 0 {
			return c.Asked
		}
	}
	return nil
}

// Summary returns the summary of the last agent that changed something.
func (b *Batch) Summary() string {
	for _, c := range slices.Backward(b.Checks) {
		if c.Summary != "" {
			return c.Summary
		}
	}
	if b.Applied == nil {
		return ""
	}
	return b.Applied.Summary
}

// blocked lists the incomplete batches that must come before a batch.
func (u *Unit) blocked(of Batch) (ids []string) {
	for _, id := range of.After {
		if before, ok := u.Batch(id); !ok || !flow.IsDone(before.Status) {
			ids = append(ids, id)
		}
	}
	return ids
}

package run

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"lockkeeper/internal/flow"
	"lockkeeper/internal/flow/progress"
)

// verify calls an agent to compare the original with the changes, unless that is switched off. It
// changes nothing.
func (l *batchRun) verify(ctx context.Context, phase flow.Phase) error {
	q := l.ask(phase.Name, phase.Answer)
	if l.p.opt.Unverified {
		const why = "not verified: run.verify is off"
		l.p.news(NewsSkipped, q, why)
		return l.p.opt.Progress.PutVerification(ctx, l.unit.Name, l.batch.ID, flow.Verification{Verdict: flow.Verdict{Verdict: "pass", Report: why, Issues: []string{}}, Files: l.files}, []flow.Call{})
	}
	q.purpose += fmt.Sprintf("-%x", sumOf(l.files))[:9]
	a, w, err := l.p.takeOver(ctx, q)
	if w != nil {
		err = errors.Join(err, w.Close(ctx, false)) // the changes of the workspace are stored
	}
	if err != nil {
		return err
	}
	if a == nil {
		if a, err = l.callAgent(ctx, q, phase.Name, flow.Ask{Checks: l.outcomes()}, ""); err != nil {
			return err
		}
		if err := l.restore(ctx, q); err != nil {
			return err
		}
	}
	verdict, err := answer[flow.Verdict](a.Result)
	if err != nil {
		return err
	}
	if verdict.Verdict != "pass" {
		err := fmt.Errorf("verification: %s; %d issues: %s", verdict.Report, len(verdict.Issues), first(verdict.Issues))
		return errors.Join(err, l.p.used(a))
	}
	if err := l.p.opt.Progress.PutVerification(ctx, l.unit.Name, l.batch.ID, flow.Verification{Verdict: verdict, Files: l.files}, []flow.Call{a.call}); err != nil {
		return err
	}
	l.p.news(NewsDone, q, "")
	return l.p.used(a)
}

func first(list []string) string {
	if len(list) == 0 {
		return "none named"
	}
	return list[0]
}

// restore undoes the changes of an agent that may only read, and keeps them as gaps. Otherwise
// untested changes would land.
func (l *batchRun) restore(ctx context.Context, q question) error {
	l.p.requestedBy(l.t, q) // discards the requests: they were reported, and the document of this phase has no field for them
	changes, err := l.w.Survey(ctx, l.paths())
	if err != nil {
		return err
	}
	var out []refusal
	for _, c := range changes {
		stored, err := l.isStoredAs(c)
		if err != nil {
			return err
		}
		if !stored {
			out = append(out, refusal{c, errReadOnly(q.phase)})
		}
	}
	if _, err := l.p.keepOut(ctx, l.t, q, l.w, out); err != nil {
		return err
	}
	return l.reset(ctx)
}

func (l *batchRun) outcomes() (list []flow.AskCheck) {
	for _, phase := range l.p.opt.Flow.Checks() {
		at := flow.AskCheck{Phase: phase.Name, Skipped: skippedOf(l.batch.Check(phase.Name))}
		if c := l.batch.Check(phase.Name); c != nil {
			at.AsBefore = c.AsBefore
		}
		list = append(list, at)
	}
	return list
}

// untested reports whether the tests of the batch had no command to run.
func (l *batchRun) untested() bool {
	phase, ok := l.p.opt.Flow.PhaseOf(flow.TestFile)
	return ok && skippedOf(l.batch.Check(phase.Name)) != ""
}

// skippedOf returns why a check had no command to run. It returns "" if the check passed.
func skippedOf(c *flow.Checked) string {
	if c == nil {
		return "it has no record"
	}
	return c.Skipped
}

// needsReview reports whether a person must review the diff before it lands.
func (l *batchRun) needsReview() bool {
	switch l.p.opt.Review {
	case "all":
		return len(l.files) > 0
	case "risky":
		return l.risk() != ""
	}
	return false
}

// manyFiles is the largest number of files in a change that is not risky.
const manyFiles = 10

// risk returns why a person should review the diff, or "" if there is no reason.
func (l *batchRun) risk() string {
	switch {
	case l.batch.Effort == flow.High:
		return "it takes high effort"
	case len(l.files) > manyFiles:
		return "it changes many files"
	case len(l.batch.Gaps()) > 0:
		return "its agent changed files outside the plan"
	}
	for _, f := range l.files {
		if isLong(l.folder, f) {
			return f.Path + " is too long to show"
		}
	}
	own := l.reads()
	for _, f := range l.files {
		switch {
		case !f.New.Exists():
			return "it deletes " + f.Path
		case l.p.opt.Flow.UnitsOwnFiles && !slices.Contains(own, f.Path) && !strings.Contains(f.Path, l.unit.Name) && f.Old.Exists():
			return f.Path + " belongs to other units as well"
		}
	}
	return ""
}

// review asks a person for a review. Meanwhile the batch holds no locks.
func (l *batchRun) review(ctx context.Context) error {
	if err := l.undoLandings(ctx, "a person must review it first"); err != nil {
		return err
	}
	if err := l.p.opt.Progress.PutReview(ctx, l.unit.Name, l.batch.ID, l.files); err != nil {
		return err
	}
	l.p.news(NewsPerson, l.ask(progress.ReviewPhase, ""), "review "+counted(len(l.files), "file")+": lockkeeper decide")
	return nil
}

// answerReview calls an agent to change a returned diff as the reviewer wants. This does not
// count as a fix.
func (l *batchRun) answerReview(ctx context.Context, c checks, at *checkState) error {
	if !l.batch.Returned() || at.Answered.Equal(l.batch.Review.At) {
		return nil
	}
	q := l.ask(flow.FixReview, c.Answer)
	q.purpose += fmt.Sprintf("-%x", sumOf(l.files))[:9]
	at.Answered, at.Done.Asked = l.batch.Review.At, l.batch.Review.Comments
	return l.change(ctx, q, c.FixQueue, at, flow.Ask{Comments: l.batch.Review.Comments}, "as the review says")
}

// keepComments turns the comments of a returned review into notes for the next agent.
func (l *batchRun) keepComments(ctx context.Context) error {
	if !l.batch.Returned() {
		return nil
	}
	for _, text := range l.batch.Review.Comments {
		n := progress.Note{Phase: l.first(), Batch: l.batch.ID, Text: text, By: l.batch.Review.By}
		if err := l.p.opt.Progress.AddNote(ctx, l.unit.Name, n); err != nil {
			return err
		}
	}
	return nil
}

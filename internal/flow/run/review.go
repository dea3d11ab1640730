package run

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"lockkeeper/internal/flow"
	"lockkeeper/internal/flow/progress"
)

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

package pipeline

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"lockkeeper/internal/dossier"
	"lockkeeper/internal/flow"
)

// needsReview reports whether a person looks at the diff before it lands.
func (l *life) needsReview() bool {
	switch l.p.opt.Review {
	case "all":
		return len(l.files) > 0
	case "risky":
		return l.risk() != ""
	}
	return false
}

// manyFiles is how many files make a change risky.
const manyFiles = 10

// risk says why a diff should be looked at; empty: nothing speaks for it.
func (l *life) risk() string {
	switch {
	case l.batch.Effort == flow.High:
		return "it takes much effort"
	case len(l.files) > manyFiles:
		return "it changes many files"
	case len(l.batch.Gaps()) > 0:
		return "its agent wanted to change more than was planned"
	}
	for _, f := range l.files {
		if isLong(l.folder, f) {
			return f.Path + " is too long to be shown"
		}
	}
	own := l.reads()
	for _, f := range l.files {
		switch {
		case !f.New.Exists():
			return "it deletes " + f.Path
		case l.p.opt.Flow.Name == "controllers" && !slices.Contains(own, f.Path) && !strings.Contains(f.Path, l.unit.Name) && f.Old.Exists():
			return f.Path + " belongs to others as well"
		}
	}
	return ""
}

// review asks a person, and holds nothing while they think.
func (l *life) review(ctx context.Context) error {
	if err := l.takeBack(ctx, "a person is to see it first"); err != nil {
		return err
	}
	if err := l.p.opt.Book.PutReview(ctx, l.unit.Name, l.batch.ID, l.files); err != nil {
		return err
	}
	l.p.news(NewsPerson, l.ask(dossier.ReviewPhase, ""), "a review of "+counted(len(l.files), "file")+": lockkeeper decide")
	return nil
}

// answerReview lets an agent change the diff as the person wants who sent it back, before
// it is tested again. It is no fix that the limit of fixes counts: a person asked for it.
func (l *life) answerReview(ctx context.Context, c checks, at *progress) error {
	if !l.batch.Returned() || at.Answered.Equal(l.batch.Review.At) {
		return nil
	}
	q := l.ask(flow.FixReview, "summary")
	q.purpose += fmt.Sprintf("-%x", sumOf(l.files))[:9]
	at.Answered, at.Done.Asked = l.batch.Review.At, l.batch.Review.Comments
	return l.change(ctx, q, c.fix, at, flow.Ask{Comments: l.batch.Review.Comments}, "as the review says")
}

// keepComments hands what a person said of a diff to whoever makes it anew.
func (l *life) keepComments(ctx context.Context) error {
	if !l.batch.Returned() {
		return nil
	}
	for _, text := range l.batch.Review.Comments {
		n := dossier.Note{Phase: l.first(), Batch: l.batch.ID, Text: text, By: l.batch.Review.By}
		if err := l.p.opt.Book.AddNote(ctx, l.unit.Name, n); err != nil {
			return err
		}
	}
	return nil
}
